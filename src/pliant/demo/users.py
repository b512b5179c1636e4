"""The demonstration's two users: made before it and removed after it."""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pliant.errors import Unavailable

MARK = "user of Pliant's demonstration"
_TIMEOUT_S = 20


@contextmanager
def users(names: Sequence[str]) -> Iterator[None]:
    """Have users of these names: system users without home or password are made where none are.

    Those that carry the demonstration's mark are removed afterwards, also such as a demonstration
    that was killed has left; others stay. Needs root; raises Unavailable where it fails.
    """
    try:
        for name in names:
            _make(name)
        yield
    finally:
        for name in names:
            if _comment(name) == MARK:
                _command(["userdel", name])


def _make(name: str) -> None:
    if _comment(name) is not None:
        return
    wrong = _command(
        [
            "useradd",
            "--system",
            "--no-create-home",
            "--shell=/usr/sbin/nologin",
            "--user-group",
            f"--comment={MARK}",
            name,
        ]
    )
    if wrong:
        raise Unavailable(f"the user {name} cannot be made: {wrong}")


def _comment(name: str) -> str | None:
    """Return what /etc/passwd says of a user; None where there is none."""
    try:
        return pwd.getpwnam(name).pw_gecos
    except KeyError:
        return None


def _command(argv: Sequence[str]) -> str:
    """Run a command and return what went wrong, "" if nothing did."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return " ".join(done.stderr.split()) if done.returncode else ""
