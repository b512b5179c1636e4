"""Commands that cure: those that several checks name."""

from __future__ import annotations

from pathlib import Path

from pliant.cli.doctor.findings import command
from pliant.cli.install.record import Record, default_record, read
from pliant.errors import Unavailable


def install(part: str, *more: str) -> str:
    """Return the command that installs one part anew."""
    return command("pliant", "install", "slurm", "--part", part, "--apply", *more)


LUA, SPANK, DAEMON = install("lua"), install("spank"), install("daemon")
RECONFIGURE = command("scontrol", "reconfigure")


def written_anew(path: Path, part: str) -> tuple[str, ...]:
    """Return how a file of Pliant's own is written again.

    What somebody else changed since is never overwritten by an installation: it is moved aside.
    """
    aside = command("mv", path, f"{path}.broken")
    return (install(part),) if _is_as_written(path) else (aside, install(part))


def given_back(path: Path) -> tuple[str, ...]:
    """Return how a site's own file is as it was before the installation, none where there was none.

    What was kept of it is root's alone; the file gets back the mode that it had.
    """
    try:
        record = Record(default_record())
        entry = record.find(path)
    except Unavailable:  # root may see it
        return ()
    if entry is None or not entry.before:
        return ()
    return (command("install", "-m", f"{entry.mode:o}", record.backup(path), path),)


def _is_as_written(path: Path) -> bool:
    try:
        entry, text = Record(default_record()).find(path), read(path)
    except Unavailable:  # root may see it
        return True
    return text is None or (entry is not None and entry.wrote(text))
