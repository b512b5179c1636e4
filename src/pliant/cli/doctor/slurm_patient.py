"""What the checks of Slurm look at beside that of :mod:`.patient`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.node_rows import NodeRow, parse_nodes
from pliant.batch.slurm.site import Site, parse_config
from pliant.batch.slurm.standby import is_controller
from pliant.cli.commands import bin_here, conf_here, run
from pliant.cli.doctor.cures import DAEMON
from pliant.cli.doctor.patient import Host, Patient
from pliant.daemon.config import DEFAULT_PATH
from pliant.errors import PliantError, Unavailable

_AS_OF = re.compile(r"^Configuration data as of ([0-9]+)", re.MULTILINE)

_PARTITION = re.compile(r"^PartitionName=(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPatient(Patient):
    """One host of one Slurm cluster."""

    site: Site | None
    site_trouble: str
    nodes: tuple[NodeRow, ...]
    partitions: tuple[str, ...] = ()
    skew_s: float = 0.0  # how far slurmctld's clock is from ours
    system = "Slurm"
    log = "journalctl -u pliantd"
    start = f"start pliantd; {log} says why it ended"
    again = "systemctl reload pliantd"
    start_commands = ("systemctl start pliantd",)
    again_commands = (again,)
    place = "the controller"
    door = "filter's door"

    def option(self, name: str) -> str:
        """Return an option of slurm.conf as it is in force; "" where it is not known."""
        return self.site.options.get(name, "") if self.site else ""

    @property
    def conf_path(self) -> Path:
        """slurm.conf: slurmctld's, or where it does not answer, that of its commands here."""
        named = self.config.slurm.conf if self.config else ""
        here = named or os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf"
        return Path(self.site.conf if self.site and self.site.conf else here)

    @property
    def conf_dir(self) -> Path:
        """The directory of slurm.conf."""
        return self.conf_path.parent

    @property
    def is_controller(self) -> bool:
        """Whether slurmctld runs, or may run, on this host."""
        return self.site is not None and is_controller(self.site.controllers, self.hostname)

    @property
    def writes_config(self) -> str:
        """In words: where pliantd does not belong it is copied, and another one is the site's."""
        if self.site is not None and not self.is_controller:
            return f"copy it from {(*self.site.controllers, 'the controller')[0]}"
        return "" if self.config_path == DEFAULT_PATH else "write it"

    @property
    def config_commands(self) -> tuple[str, ...]:
        """An installation writes the default one alone."""
        return () if self.writes_config else (DAEMON,)

    @property
    def known_partitions(self) -> frozenset[str]:
        """Those that slurmctld has; none where it may hide some from us (PrivateData)."""
        hides = self.site is not None and "partitions" in self.site.private_data
        return frozenset() if hides and not self.may_see_all else frozenset(self.partitions)

    @property
    def submits_by_lua(self) -> bool:
        """Whether JobSubmitPlugins names lua."""
        plugins = self.site.submit_plugins if self.site else ()
        return "lua" in [word.removeprefix("job_submit/") for word in plugins]

    @property
    def started(self) -> float:
        """When slurmctld started, in seconds since the epoch; 0 where it does not say."""
        text = self.option("BOOT_TIME")
        return float(text) if text.isdecimal() else 0.0

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

    @property
    def who_may(self) -> str:
        """Who may ask there."""
        return "root and slurmctld's user"


def gather_slurm(host: Host, clock: Callable[[], float] = time.time) -> SlurmPatient:
    """Look at the cluster that a host belongs to."""
    slurm = host.config.slurm if host.config else None

    def asked(argv: list[str], *, text: str = "") -> Answer:
        if slurm is None:
            return run(argv, text=text)
        bin_dir = bin_here(slurm.bin_dir, argv[0])
        return run(argv, text=text, conf=conf_here(slurm.conf), bin_dir=bin_dir)

    site, trouble, skew_s = None, "", 0.0
    nodes: tuple[NodeRow, ...] = ()
    partitions: tuple[str, ...] = ()
    try:
        answer = asked(["scontrol", "show", "config"])
        if answer.status != 0:
            raise Unavailable(answer.words)
        as_of = _AS_OF.search(answer.out)
        skew_s = float(as_of[1]) - clock() if as_of else 0.0
        site = parse_config(answer.out)
        nodes = tuple(parse_nodes(asked(["scontrol", "-o", "-d", "show", "node"]).out))
        shown = asked(["scontrol", "-a", "-o", "show", "partition"]).out  # hidden ones too
        partitions = tuple(_PARTITION.findall(shown))
    except PliantError as wrong:
        trouble = str(wrong)
    return SlurmPatient(
        **host.known(),
        run=asked,
        site=site,
        site_trouble=trouble,
        nodes=nodes,
        partitions=partitions,
        skew_s=skew_s,
    )
