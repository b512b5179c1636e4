"""Every file name of a sandbox."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pliant.errors import BadInput
from pliant.sandbox.options import check_name

# sun_path holds 108 bytes; slurmstepd's socket is the longest: <spool>/n512/n512_<job>.<step>
_LONGEST_TAIL = len("/spool/n512/n512_4294967295.4294967295")
_SUN_PATH = 107


def base_directory() -> Path:
    """Return the directory of this user's sandboxes.

    Not /run for root: Debian mounts it noexec, and batch scripts are executed from the spool.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/pliant-sandbox")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    parent = Path(runtime) if runtime and Path(runtime).is_dir() else Path.home() / ".cache"
    return parent / "pliant-sandbox"


@dataclass(frozen=True)
class Layout:
    """The directory of one sandbox; everything it ever writes lies below `top`."""

    base: Path
    name: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(os.fsencode(self.top)) + _LONGEST_TAIL > _SUN_PATH:
            raise BadInput(f"{self.top}: too long for Unix sockets; a shorter directory or name")

    @property
    def top(self) -> Path:
        """The sandbox's own directory."""
        return self.base / self.name

    @property
    def record(self) -> Path:
        """What was asked for, the ports, and who brings it up."""
        return self.top / "sandbox.json"

    @property
    def etc(self) -> Path:
        """The directory that plays /etc/slurm."""
        return self.top / "etc"

    @property
    def slurm_conf(self) -> Path:
        """The value of SLURM_CONF."""
        return self.etc / "slurm.conf"

    @property
    def plugstack(self) -> Path:
        """Which SPANK plugins are loaded."""
        return self.etc / "plugstack.conf"

    @property
    def job_submit(self) -> Path:
        """The site's job_submit.lua."""
        return self.etc / "job_submit.lua"

    @property
    def pliant_toml(self) -> Path:
        """The daemon's configuration."""
        return self.etc / "pliant.toml"

    @property
    def run(self) -> Path:
        """Sockets and the pid files that Slurm insists on."""
        return self.top / "run"

    @property
    def munge_socket(self) -> Path:
        """The private munged."""
        return self.top / "munge" / "socket"

    @property
    def munge_key(self) -> Path:
        """The private munged's key."""
        return self.top / "munge" / "key"

    @property
    def logs(self) -> Path:
        """One log for each part."""
        return self.top / "log"

    def log(self, part: str) -> Path:
        """Return the log that a part writes itself."""
        return self.logs / f"{part}.log"

    def output(self, part: str) -> Path:
        """Return what a part said on stdout and stderr."""
        return self.logs / f"{part}.out"

    @property
    def jobcomp(self) -> Path:
        """The completed jobs, one a line, where there is no accounting."""
        return self.logs / "jobcomp.txt"

    @property
    def ctld_state(self) -> Path:
        """The state of slurmctld."""
        return self.top / "state"

    @property
    def spool(self) -> Path:
        """The spool directories of the nodes."""
        return self.top / "spool"

    @property
    def devices(self) -> Path:
        """The fake GPUs."""
        return self.top / "dev"

    @property
    def database(self) -> Path:
        """The data of the private MariaDB."""
        return self.top / "mariadb"

    @property
    def database_tmp(self) -> Path:
        """Its temporary tables: a mariadbd that starts removes those of all others in its own."""
        return self.top / "mariadb.tmp"

    @property
    def database_socket(self) -> Path:
        """The private MariaDB; its directory is its own user's."""
        return self.top / "mariadb.run" / "socket"

    @property
    def database_init(self) -> Path:
        """The SQL that the private MariaDB runs when it starts."""
        return self.etc / "mariadb-init.sql"

    @property
    def plugin(self) -> Path:
        """The compiled SPANK plugin."""
        return self.top / "lib" / "pliant.so"

    @property
    def notify_socket(self) -> Path:
        """Where a starting pliantd says that it is ready."""
        return self.run / "notify.socket"

    @property
    def pliant_state(self) -> Path:
        """The daemon's store."""
        return self.top / "pliant"

    @property
    def pliant_socket(self) -> Path:
        """The filter's door."""
        return self.run / "pliant.socket"
