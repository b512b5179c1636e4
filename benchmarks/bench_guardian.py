"""What the guardian of `pliant run` costs for as long as a job lives: processor time and memory.

Beside it a bare interpreter, which waits too: the difference is the guardian's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

from benchmarks.section import Section, verdict
from benchmarks.stats import estimate

GOAL_MS, GOAL_MIB = 10.0, 12.0
_RUN = "from pliant.entry import main; main()"
_BARE = "import os; os.read(0, 1)"


def measure(quick: bool) -> list[Section]:
    """Measure both in turn."""
    bare: list[tuple[float, float]] = []
    guardian: list[tuple[float, float]] = []
    for _ in range(2 if quick else 30):
        bare.append(_costs(("-c", _BARE), 0))
        guardian.append(_costs(("-c", _RUN, "run", "--", sys.executable, "-c", _BARE), 2))
    own = [one[0] - other[0] for one, other in zip(guardian, bare, strict=True)]
    most_mib = max(mib for _, mib in guardian)
    result = (
        f"Of its own the guardian takes {estimate(own).text(1)} ms (goal: below {GOAL_MS:.0f}, "
        f"{verdict(estimate(own).value < GOAL_MS)}); it has {most_mib:.1f} MiB at most "
        f"(goal: below {GOAL_MIB:.0f}, {verdict(most_mib < GOAL_MIB)})."
    )
    rows = [_row("bare interpreter", bare), _row("guardian", guardian)]
    how = (
        f"{len(bare)} times each, in turn: the processor time (schedstat of proc(5)) and the "
        "resident memory of the process once its program has run for a while."
    )
    header = ("", "processor time, ms", "resident, MiB")
    return [Section("The guardian of a job's program", how, header, rows, result)]


def _row(name: str, seen: list[tuple[float, float]]) -> list[str]:
    return [name, *(estimate(values).text(1) for values in zip(*seen, strict=True))]


def _costs(words: tuple[str, ...], children: int) -> tuple[float, float]:
    """Return the milliseconds and MiB of a process that waits, with so many below it."""
    with subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, "SLURM_JOB_ID": "1", "PLIANT_CONFIG": "/dev/null"},
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        process_now = psutil.Process(process.pid)
        while len(process_now.children()) < children:
            time.sleep(0.05)
        time.sleep(0.5)
        ran_ms = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e6
        mib = process_now.memory_info().rss / 2**20
        process.communicate(b"x")
    return ran_ms, mib
