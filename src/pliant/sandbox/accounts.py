"""The system users that a sandbox runs its parts and its commands as."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pliant.errors import BadInput


@dataclass(frozen=True)
class Accounts:
    """Who runs what; all the same user where we are not root."""

    slurm: str
    slurmd: str
    database: str


def current() -> Accounts:
    """Return who runs what: Debian's users where root may choose, else one user for all."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() != 0:
        return Accounts(slurm=me, slurmd=me, database=me)
    return Accounts(slurm=_existing("slurm"), slurmd="root", database=_existing("mysql"))


def _existing(name: str) -> str:
    try:
        return pwd.getpwnam(name).pw_name
    except KeyError:
        return "root"


@dataclass(frozen=True)
class Person:
    """A user whom a command is run as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: Path

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with this user's names and home."""
        whose = {"USER": self.name, "LOGNAME": self.name, "HOME": str(self.home)}
        return {key: value for key, value in env.items() if key != "XDG_RUNTIME_DIR"} | whose

    def directory(self) -> Path:
        """Return where this user's commands start: here if the user may be here, else home."""
        here = Path.cwd()
        for place in (here, self.home):
            if place.is_dir() and _may_enter(place, self):
                return place
        return Path("/")

    def become(self) -> None:
        """Make this process the user's own, for good."""
        os.setgroups(self.groups)
        os.setgid(self.gid)
        os.setuid(self.uid)


def _may_enter(place: Path, person: Person) -> bool:
    """Return whether mode bits let the user read and write in the directory and reach it."""
    return all(_has(part, person, 1) for part in place.parents) and _has(place, person, 3)


def _has(place: Path, person: Person, bits: int) -> bool:
    status = place.stat()
    if status.st_uid == person.uid:
        return status.st_mode >> 6 & bits == bits
    if status.st_gid in {person.gid, *person.groups}:
        return status.st_mode >> 3 & bits == bits
    return status.st_mode & bits == bits


def person(name: str) -> Person:
    """Return a user of this machine; raise BadInput where there is none of that name."""
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError) as error:
        raise BadInput(
            f"{name[:64]!r}: no such user on this machine; create one with useradd -m"
        ) from error
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Person(entry.pw_name, entry.pw_uid, entry.pw_gid, groups, Path(entry.pw_dir))
