"""Which GPUs a job holds and does not use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pliant.monitor.gpus import Gpu, GpuReading


@dataclass(frozen=True, slots=True)
class Holding:
    """A job, the minor numbers of its GPUs, and since when it has them (seconds of Unix time)."""

    job: str
    minors: Collection[int]
    since_s: float


@dataclass(frozen=True, slots=True)
class HeldIdle:
    """A GPU that its job has not used for so long."""

    job: str
    minor: int
    idle_s: float


def held_idle(
    readings: Sequence[GpuReading], holdings: Iterable[Holding], window_s: float, gap_s: float
) -> tuple[HeldIdle, ...]:
    """Return the GPUs that have been idle for ``window_s`` or more under the same job.

    ``readings`` in order of time. Idle: no process and a utilisation of 0 in each of the last of
    them, none farther than ``gap_s`` from the next. What could not be read is not called idle. A
    GPU with MIG is idle if no instance of it has a process: it has no utilisation.
    """
    return tuple(
        HeldIdle(holding.job, minor, idle_s)
        for holding in holdings
        for minor in sorted(holding.minors)
        if (idle_s := _idle_s(readings, minor, holding.since_s, gap_s)) >= window_s > 0
    )


def _idle_s(readings: Sequence[GpuReading], minor: int, since_s: float, gap_s: float) -> float:
    """Return how long the last readings have called a GPU idle, one after the other."""
    newest_s = oldest_s = readings[-1].at_s if readings else 0.0
    for reading in reversed(readings):
        is_followed = oldest_s - reading.at_s <= gap_s
        if reading.at_s < since_s or not is_followed or not _is_idle(reading.of_minors([minor])):
            break
        oldest_s = reading.at_s
    return newest_s - oldest_s


def _is_idle(rows: Sequence[Gpu]) -> bool:
    if not rows or any(row.processes != () for row in rows):
        return False
    return len(rows) > 1 or rows[0].util_pct == 0
