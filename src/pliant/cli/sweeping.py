"""Where many runs are done: the options of the commands that have many."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import click

from pliant.errors import BadInput
from pliant.grammar import quoted

if TYPE_CHECKING:  # the simulator is large, and every `pliant --help` loads this module
    from pliant.simulator.sweep import Sweep

_processes = functools.partial(click.option, "--processes", type=click.IntRange(min=1), metavar="N")
PROCESSES = _processes(help="So many replays at once.  [default: as there are CPUs]")
SWEEP_OPTIONS = (
    _processes(help="So many runs at once.  [default: as there are CPUs; with --slurm: all]"),
    click.option(
        "--slurm", is_flag=True, help="Run them as a Slurm job array, by submitit, not here."
    ),
    click.option(
        "--sbatch",
        multiple=True,
        metavar="OPTION[=VALUE]",
        help="With --slurm: an option of sbatch, as partition=cpu; may stand several times.",
    ),
)


def sweep_asked(processes: int | None, slurm: bool = False, sbatch: tuple[str, ...] = ()) -> Sweep:
    """Return where the runs are done. Raises BadInput, and Unavailable where that cannot be."""
    from pliant.simulator.job_array import JobArray, check  # noqa: PLC0415  # the simulator is large
    from pliant.simulator.sweep import Processes  # noqa: PLC0415  # the same

    if sbatch and not slurm:
        raise BadInput("--sbatch goes with --slurm")
    if slurm:
        options = dict(map(_option, sbatch))
        check()
        return JobArray(options, processes or 0)
    return Processes(processes or len(os.sched_getaffinity(0)))


def _option(word: str) -> tuple[str, str | bool]:
    from pliant.simulator.job_array import OURS  # noqa: PLC0415  # the simulator is large

    name, equals, value = word.removeprefix("--").partition("=")
    if not name or name.startswith("-"):
        raise BadInput(f"--sbatch: {quoted(word)}: OPTION=VALUE is expected, as partition=cpu")
    if name.replace("_", "-") in OURS:
        raise BadInput(f"--sbatch: {quoted(word)}: Pliant says that itself")
    return name, value if equals else True
