"""What another user may do with a path, as the kernel says it: modes, groups and ACLs alike.

Only root can look with another's eyes: the effective user is changed for the look.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pliant.cli.commands import is_there
from pliant.cli.doctor.findings import command

_BITS = {"r": os.R_OK, "w": os.W_OK, "x": os.X_OK}
_WORDS = {"r": "read", "w": "write", "x": "enter"}
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Eyes:
    """A user with all groups."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()

    @classmethod
    def of(cls, name: str) -> Eyes | None:
        """Return a user of this host, None where there is none of that name."""
        try:
            known = pwd.getpwnam(name)
        except (KeyError, ValueError):
            return None
        groups = os.getgrouplist(name, known.pw_gid)
        return cls(name, known.pw_uid, known.pw_gid, tuple(groups))

    @property
    def can_be_ours(self) -> bool:
        """Whether we may look so: root may, and the user."""
        return os.geteuid() in (0, self.uid)


EVERYBODY = Eyes("a user", NOBODY, NOBODY)
"""Somebody whom no group helps."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What is in a user's way to ``path``: the letters, of rwx, that are missing at ``at``."""

    path: Path
    at: Path
    letters: str

    @property
    def says(self) -> str:
        """What may not be done there."""
        return " and ".join(_WORDS[letter] for letter in self.letters)


def obstacle(path: Path, letters: str, user: Eyes) -> Obstacle | None:
    """Return what keeps a user from a path, the outermost directory first.

    None: nothing does, or the path is not there. A link is followed. Raises OSError where root may
    not take another's rights, as in some containers.
    """
    real = Path(os.path.realpath(path))
    with _looking_as(user):
        for parent in reversed(real.parents):
            if not os.access(parent, os.X_OK, effective_ids=True):
                return Obstacle(path, parent, "x") if is_there(parent) else None
        if not is_there(real):
            return None
        missing = [one for one in letters if not os.access(real, _BITS[one], effective_ids=True)]
    return Obstacle(path, real, "".join(missing)) if missing else None


@contextmanager
def _looking_as(user: Eyes) -> Iterator[None]:
    if os.geteuid() == user.uid:
        yield
        return
    gid, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def opened(found: Obstacle, user: Eyes) -> str:
    """Return the command that takes the obstacle away, "" where modes are not what is in the way.

    No more is opened than is needed: to the owner, else to the group, else to all.
    """
    status = found.at.stat()
    of_user, of_group = status.st_uid == user.uid, status.st_gid in user.groups
    who, shift = ("u", 6) if of_user else ("g", 3) if of_group else ("o", 0)
    has = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in found.letters) << shift
    if status.st_mode & has == has:  # an ACL, or a file system that is read-only
        return ""
    if "w" in found.letters and who == "o":
        return command("chown", user.name, found.at)
    return command("chmod", f"{who}+{found.letters}", found.at)
