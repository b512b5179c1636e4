"""What the options of ``pliant install slurm`` may say. Each function raises BadInput."""

from __future__ import annotations

import pwd
import re
from collections.abc import Mapping
from pathlib import Path

from pliant.errors import BadInput
from pliant.grammar import quoted

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", re.ASCII)


def must_be_one(said: Mapping[str, bool]) -> None:
    """Refuse several of some switches."""
    chosen = [option for option, is_said in said.items() if is_said]
    if len(chosen) > 1:
        raise BadInput(f"{' and '.join(chosen)} exclude each other")


def must_be_absolute(option: str, path: str) -> None:
    """Refuse a path that depends on where one stands."""
    if path and not Path(path).is_absolute():
        raise BadInput(f"--{option}: {quoted(path)}: an absolute path is expected")


def must_be_plugin(plugin: str) -> None:
    """Refuse what slurmd and sbatch could not load: they would complain at every job."""
    try:
        text = Path(plugin).read_bytes() if plugin else None
    except OSError as error:
        raise BadInput(f"--plugin: {quoted(plugin)}: {error.strerror}") from None
    if text is not None and not (text.startswith(b"\x7fELF") and b"slurm_spank_init" in text):
        raise BadInput(f"--plugin: {quoted(plugin)}: a pliant.so is expected")


def must_be_user(user: str, root: str) -> None:
    """Refuse a user that is no name, or that this system, if it is meant, does not know."""
    if user and not _USER.fullmatch(user):
        raise BadInput(f"--user: {quoted(user)}: the name of a user is expected")
    if user and root == "/":
        try:
            pwd.getpwnam(user)
        except KeyError:
            raise BadInput(f"--user: {quoted(user)}: no such user here") from None


def directory(root: str) -> Path:
    """Return the directory that --root names."""
    if not root or not Path(root).is_dir():
        raise BadInput(f"--root: {quoted(root)}: a directory is expected")
    return Path(root).resolve()
