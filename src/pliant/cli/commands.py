"""The programs that the command line asks: Slurm's clients, munge, make, a Lua."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pliant.batch.slurm.commands import Answer, Commands
from pliant.batch.slurm.site import Site, parse_config
from pliant.errors import Unavailable

TIMEOUT_S = 10.0


def run(
    argv: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    text: str = "",
    conf: str = "",
    bin_dir: str = "",
) -> Answer:
    """Run one command; ``text`` goes to its stdin.

    Raises Unavailable where it is missing, does not answer in time, or finds no slurmctld.
    """
    return Commands(bin_dir, timeout_s, conf=conf).run(argv, stdin=text)


def show_config(conf: str = "", bin_dir: str = "", timeout_s: float = TIMEOUT_S) -> Site:
    """Return what ``scontrol show config`` says; it asks slurmctld.

    Raises Unavailable, BadAnswer.
    """
    answer = run(["scontrol", "show", "config"], timeout_s, conf=conf, bin_dir=bin_dir)
    if answer.status != 0:
        raise Unavailable(f"scontrol show config: {answer.words}")
    return parse_config(answer.out)


def is_there(path: Path | str) -> bool:
    """Say whether a file is there for this user; Path.exists raises where one may not look."""
    try:
        Path(path).stat()
    except (OSError, ValueError):
        return False
    return True


def conf_here(conf: str) -> str:
    """Return the slurm.conf that pliant.toml names, "" where this host has none of that name.

    A login node may have a copy of the controller's pliant.toml and its configuration from
    slurmctld: its commands find that by themselves.
    """
    return conf if is_there(conf) else ""


def bin_here(bin_dir: str, program: str) -> str:
    """Return the directory that pliant.toml names, "" where it has no such program on this host."""
    return bin_dir if bin_dir and is_there(Path(bin_dir) / program) else ""


def option(site: Site, name: str) -> str:
    """Return an option of slurm.conf as it is in force; "" where it is not set."""
    return site.options.get(name, "")
