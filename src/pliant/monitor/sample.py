"""One look at a job: what it has taken until now. Totals, of which two make a speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pliant.monitor.gpu_use import GpuUse

ThreadId = tuple[int, int, int]
"""A thread for ever: its process, when that began (ticks since the host's start), its number."""


class CountedBy(StrEnum):
    """How something was counted; totals of different ways are never subtracted."""

    CGROUP = "cgroup"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Pressure:
    """For how many seconds some of the work waited for CPUs, memory, disks (PSI), until now."""

    cpu_s: float
    memory_s: float
    io_s: float


@dataclass(frozen=True, slots=True)
class Counts:
    """Hardware counts of all of a job's threads, since they are counted; they never fall.

    None: not counted, as cycles by a PMU that lacks them.
    """

    instructions: int
    cycles: int | None
    task_clock_s: float | None


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """For how long a thread ran, and waited for a CPU, until now (seconds)."""

    run_s: float
    wait_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What a job has taken on this node.

    ``cpu_s``: CPU seconds by account: one for the job's cgroup, else one for each living step.
    ``memory``: bytes; by processes a page that several of them share counts for each.
    ``counts``: None where none are read now. ``gpus``: those that its processes are on.
    """

    job: str
    at_s: float  # a monotonic clock
    cpu_by: CountedBy
    cpu_s: Mapping[str, float]
    threads: Mapping[ThreadId, ThreadTime]
    processes: int
    memory_bytes: int
    memory_by: CountedBy
    pressure: Pressure | None = None
    counts: Counts | None = None
    gpus: tuple[GpuUse, ...] = ()
