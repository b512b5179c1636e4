"""What the checks of either system look at, gathered once."""

from __future__ import annotations

import os
import shutil
import socket
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pliant.batch.clients import Answer
from pliant.cli.commands import is_there
from pliant.cli.pbs_conf import conf_path
from pliant.daemon.config import Config, config_path, load
from pliant.errors import PliantError


class Run(Protocol):
    """Runs one command, as :func:`pliant.cli.commands.run`."""

    def __call__(self, argv: list[str], *, text: str = "") -> Answer:
        """Return how it ended; raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Who looks from where, and what pliant.toml says; None where it says nothing."""

    config: Config | None
    config_trouble: str
    config_path: Path
    hostname: str = ""
    user: str = ""
    is_root: bool = False

    @classmethod
    def of(cls, user: str) -> Host:
        """Look at this host."""
        path, config, trouble = config_path(), None, ""
        try:
            config = load(path)
        except PliantError as wrong:
            trouble = str(wrong)
        return cls(
            config=config,
            config_trouble=trouble,
            config_path=path,
            hostname=socket.gethostname(),
            user=user,
            is_root=os.geteuid() == 0,
        )

    def known(self) -> dict[str, Any]:
        """Return all of it, for what knows more."""
        return {one.name: getattr(self, one.name) for one in fields(Host)}

    @property
    def is_of_pbs(self) -> bool:
        """Whether the system is PBS: as pliant.toml says, else by what is on this host."""
        if self.config is not None:
            return self.config.daemon.batch == "pbs"
        try:
            said = tomllib.loads(self.config_path.read_text()).get("daemon")
        except (OSError, ValueError, RecursionError):
            return is_there(conf_path()) and shutil.which("scontrol") is None
        return isinstance(said, dict) and said.get("batch") == "pbs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient(Host):
    """One host of one cluster. What could not be found is None or empty, with the reason."""

    run: Run
    system: ClassVar[str]
    """Slurm or PBS."""
    log: ClassVar[str]
    """Where pliantd says what goes wrong."""
    start: ClassVar[str]
    """How pliantd is started, and where it says why it ended."""
    again: ClassVar[str]
    """How pliantd is told to read pliant.toml again."""
    start_commands: ClassVar[tuple[str, ...]] = ()
    """Where commands do so, with ``start`` as what is to be known beside; so for ``again``."""
    again_commands: ClassVar[tuple[str, ...]] = ()
    place: ClassVar[str]
    """Where the server of the batch system is."""
    door: ClassVar[str]
    """How its first door is called."""

    @property
    def is_controller(self) -> bool:
        """Whether the server of the batch system runs, or may run, on this host."""
        raise NotImplementedError

    @property
    def writes_config(self) -> str:
        """How this host gets its pliant.toml."""
        raise NotImplementedError

    @property
    def known_partitions(self) -> frozenset[str]:
        """The partitions that the batch system has; none where it was not asked."""
        return frozenset()

    @property
    def config_commands(self) -> tuple[str, ...]:
        """The commands that write it, where some do."""
        return ()

    @property
    def may_see_all(self) -> bool:
        """Whether we are who may ask at pliantd's first door."""
        return self.is_root

    @property
    def who_may(self) -> str:
        """Who may ask there."""
        return "root"

    @property
    def has_pliantd(self) -> bool:
        """Whether pliantd runs on this host, or did: its first door is here."""
        return self.config is not None and is_there(self.config.daemon.socket)

    @property
    def munge_socket(self) -> str:
        """munged's socket; "" is munge's own default."""
        return self.config.daemon.munge_socket if self.config else ""
