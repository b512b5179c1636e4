"""What the checks look at, gathered once."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.node_rows import NodeRow, parse_nodes
from pliant.batch.slurm.site import Site, parse_config
from pliant.batch.slurm.standby import is_controller
from pliant.cli.commands import bin_here, conf_here, is_there, run
from pliant.daemon.config import Config, config_path, load
from pliant.errors import PliantError, Unavailable

_AS_OF = re.compile(r"^Configuration data as of ([0-9]+)", re.MULTILINE)


class Run(Protocol):
    """Runs one command, as :func:`pliant.cli.commands.run`."""

    def __call__(self, argv: list[str], *, text: str = "") -> Answer:
        """Return how it ended; raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class Patient:
    """One host of one cluster. What could not be found is None or empty, with the reason."""

    run: Run
    site: Site | None
    site_trouble: str
    nodes: tuple[NodeRow, ...]
    config: Config | None
    config_trouble: str
    config_path: Path
    skew_s: float = 0.0  # how far slurmctld's clock is from ours
    hostname: str = ""
    user: str = ""
    is_root: bool = False

    def option(self, name: str) -> str:
        """Return an option of slurm.conf as it is in force; "" where it is not known."""
        value = self.site.options.get(name, "") if self.site else ""
        return "" if value == "(null)" else value

    @property
    def conf_dir(self) -> Path:
        """The directory of slurm.conf."""
        return Path(self.site.conf).parent if self.site and self.site.conf else Path("/etc/slurm")

    @property
    def is_controller(self) -> bool:
        """Whether slurmctld runs, or may run, on this host."""
        return self.site is not None and is_controller(self.site.controllers, self.hostname)

    @property
    def submits_by_lua(self) -> bool:
        """Whether JobSubmitPlugins names lua."""
        plugins = self.site.submit_plugins if self.site else ()
        return "lua" in [word.removeprefix("job_submit/") for word in plugins]

    @property
    def started(self) -> float:
        """When slurmctld started, in seconds since the epoch; 0 where it does not say."""
        text = self.option("BOOT_TIME")
        return float(text) if text.isdigit() else 0.0

    @property
    def has_pliantd(self) -> bool:
        """Whether pliantd runs on this host, or did: the filter's door is here."""
        return self.config is not None and is_there(self.config.daemon.socket)

    @property
    def munge_socket(self) -> str:
        """munged's socket, by pliant.toml or by Slurm's AuthInfo; "" is munge's own default."""
        if self.config and self.config.daemon.munge_socket:
            return self.config.daemon.munge_socket
        words = (word.partition("=") for word in self.option("AuthInfo").split(","))
        return next((value for key, _, value in words if key == "socket"), "")

    @property
    def may_see_all(self) -> bool:
        """Whether we are who may ask at the filter's door."""
        return self.is_root or bool(self.site and self.user == self.site.slurm_user)


def gather(user: str, clock: Callable[[], float] = time.time) -> Patient:
    """Look at this host and the cluster that it belongs to."""
    path = config_path()
    config, config_trouble = _config(path)
    slurm = config.slurm if config else None

    def asked(argv: list[str], *, text: str = "") -> Answer:
        if slurm is None:
            return run(argv, text=text)
        bin_dir = bin_here(slurm.bin_dir, argv[0])
        return run(argv, text=text, conf=conf_here(slurm.conf), bin_dir=bin_dir)

    site, trouble, skew_s = None, "", 0.0
    nodes: tuple[NodeRow, ...] = ()
    try:
        answer = asked(["scontrol", "show", "config"])
        if answer.status != 0:
            raise Unavailable(answer.words)
        as_of = _AS_OF.search(answer.out)
        skew_s = float(as_of[1]) - clock() if as_of else 0.0
        site = parse_config(answer.out)
        nodes = tuple(parse_nodes(asked(["scontrol", "-o", "-d", "show", "node"]).out))
    except PliantError as wrong:
        trouble = str(wrong)
    return Patient(
        run=asked,
        site=site,
        site_trouble=trouble,
        nodes=nodes,
        config=config,
        config_trouble=config_trouble,
        config_path=path,
        skew_s=skew_s,
        hostname=socket.gethostname(),
        user=user,
        is_root=os.geteuid() == 0,
    )


def _config(path: Path) -> tuple[Config | None, str]:
    try:
        return load(path), ""
    except PliantError as wrong:
        return None, str(wrong)
