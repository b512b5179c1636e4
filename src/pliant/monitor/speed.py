"""From two samples of a job, how fast it ran between them. Pure.

Paper 002, section 3, takes a task's speed as its instructions per cycle times the fraction of time
that it is on a CPU, averaged over its threads: that is ``Parts.ipc_cpu``. At one frequency it is
the instructions per second of wall time divided by frequency and number of threads, so a job whose
idle threads come and go seems to change its speed, and one whose frequency changes seems not to.
The value here is therefore the instructions per second themselves (tier 1), or, where no counters
can be read, the CPU seconds per second (tier 3), which do not see interference in caches and
memory. Busy-waiting, as of MPI, makes both too high. Steps per second (tier 2) are pliantd's to
know, and pressure (tier 4) is an alarm and no speed.

Only a ratio of two speeds of one tier says something: :func:`relative`, the paper's speed relative
to the job alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TypeVar

from pliant.monitor.sample import Counts, Pressure, Sample, ThreadTime
from pliant.monitor.tier import Tier

ALARM = 0.1
"""A part of the window from which on stalling is told; a choice, no measurement."""


_BORN = ThreadTime(0.0, 0.0)
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a speed is made of; None where it cannot be told.

    ``cpu``: CPU seconds per second, of all threads together. ``run_share``: of the time in which
    threads ran or wanted to, how much they ran. ``thread_cpu``: the fraction of the window that a
    thread was on a CPU, averaged over the threads. ``ipc_cpu``: the paper's speed.
    """

    cpu: float
    run_share: float | None
    thread_cpu: float | None
    ipc: float | None = None
    ipc_cpu: float | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """A speed: instructions per second (tier 1) or CPU seconds per second (tier 3)."""

    value: float
    tier: Tier
    window_s: float
    parts: Parts


def speed(before: Sample, after: Sample) -> Speed | None:
    """Return a job's speed between two samples of it.

    None where they do not tell: no time went by, CPU time was counted another way meanwhile, or
    some of it has gone out of sight with a process that nobody waited for.
    """
    window_s = after.at_s - before.at_s
    cpu_s = _cpu_s(before, after)
    if window_s <= 0 or cpu_s is None:
        return None
    run_s, wait_s = _thread_times(before, after)
    threads = len(after.threads)
    parts = Parts(
        cpu=cpu_s / window_s,
        run_share=run_s / (run_s + wait_s) if run_s + wait_s > 0 else None,
        thread_cpu=run_s / window_s / threads if threads else None,
    )
    counts = _counts(before.counts, after.counts)
    if counts is None:
        return Speed(parts.cpu, Tier.CPU, window_s, parts)
    with_ipc = _with_ipc(parts, counts, window_s * threads)
    return Speed(counts.instructions / window_s, Tier.COUNTERS, window_s, with_ipc)


def _cpu_s(before: Sample, after: Sample) -> float | None:
    """Return the CPU seconds taken; an account that is new was opened meanwhile, at nought."""
    if before.cpu_by is not after.cpu_by:
        return None
    taken = [used - before.cpu_s.get(account, 0.0) for account, used in after.cpu_s.items()]
    return None if min(taken, default=0.0) < 0 else sum(taken)


def _thread_times(before: Sample, after: Sample) -> tuple[float, float]:
    """Return how long the threads that live now ran, and waited, since the first sample."""
    run_s = wait_s = 0.0
    for thread, now in after.threads.items():
        then = before.threads.get(thread, _BORN)
        if then.run_s > now.run_s:  # its process has given the number to another thread
            then = _BORN
        run_s += now.run_s - then.run_s
        wait_s += now.wait_s - then.wait_s
    return run_s, wait_s


def _counts(before: Counts | None, after: Counts | None) -> Counts | None:
    """Return what was counted; None where nothing was, or counting began anew meanwhile."""
    if before is None or after is None:
        return None
    taken = Counts(
        after.instructions - before.instructions,
        _less(after.cycles, before.cycles),
        _less(after.task_clock_s, before.task_clock_s),
    )
    anew = min(taken.instructions, taken.cycles or 0, taken.task_clock_s or 0) < 0
    return None if anew else taken


def _less(after: Number | None, before: Number | None) -> Number | None:
    return None if after is None or before is None else after - before


def _with_ipc(parts: Parts, counts: Counts, threads_s: float) -> Parts:
    """Add the paper's speed. With all threads at one frequency its average needs sums only."""
    ipc = counts.instructions / counts.cycles if counts.cycles else None
    if ipc is None or counts.task_clock_s is None or not threads_s:
        return replace(parts, ipc=ipc)
    return replace(parts, ipc=ipc, ipc_cpu=ipc * counts.task_clock_s / threads_s)


def relative(together: Speed, alone: Speed) -> float | None:
    """Return a speed as a part of the job's speed alone; None where that was nought.

    Raises ValueError for speeds of two tiers, which have nothing to do with each other.
    """
    if together.tier is not alone.tier:
        raise ValueError(f"tier {together.tier} is not compared with tier {alone.tier}")
    return together.value / alone.value if alone.value > 0 else None


@dataclass(frozen=True, slots=True)
class Stalled:
    """The part of the window in which some of the work waited for each."""

    cpu: float
    memory: float
    io: float

    def alarms(self, least: float = ALARM) -> tuple[str, ...]:
        """Return what is waited for so much that it should be told."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name) >= least)


def stalled(before: Pressure | None, after: Pressure | None, window_s: float) -> Stalled | None:
    """Return how much was stalled between two looks; None where that is not known."""
    if before is None or after is None or window_s <= 0:
        return None
    return Stalled(
        max(0.0, after.cpu_s - before.cpu_s) / window_s,
        max(0.0, after.memory_s - before.memory_s) / window_s,
        max(0.0, after.io_s - before.io_s) / window_s,
    )
