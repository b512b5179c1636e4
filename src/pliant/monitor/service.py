"""Look at a node's jobs again and again, and tell what was seen.

Clocks, roots, the waiting and the place where readings go are arguments. What counts something
that costs, such as hardware counters, is a :class:`Source`: it is asked at the edges of windows and
at the ticks in them, and told to let go between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from pliant.errors import Unavailable
from pliant.monitor import cgroups, usage
from pliant.monitor.gpus import GpuReading
from pliant.monitor.processes import JobHere, jobs_here
from pliant.monitor.reading import Look, NodeReading, reading
from pliant.monitor.sample import Counts
from pliant.monitor.windows import Windows, next_tick, pause_s

MOST = 0.01
"""The part of one core that looking may take."""
T_co = TypeVar("T_co", covariant=True)


class Source(Protocol[T_co]):
    """What counts something of jobs while it is asked."""

    def read(self, jobs: Sequence[JobHere]) -> Mapping[str, T_co]:
        """Return what is known of these jobs, by number, and let go of all others.

        Totals since a job was first asked for; a job of which nothing is known is left out.
        """


class GpuReader(Protocol):
    """What reads the node's GPUs; it holds the driver from a reading until it is closed."""

    def read(self, now_s: float) -> GpuReading:
        """Return what the GPUs do now (Unix time)."""

    def close(self) -> None:
        """Let go of the driver; the next reading opens it again."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What is the time: for windows, for people, and of the CPU that this process has used."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    cpu: Callable[[], float] = time.process_time


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is looked at: its name, the kernel's files, the clocks, what reads its GPUs."""

    name: str
    proc: Path = Path("/proc")
    cgroup: Path = Path("/sys/fs/cgroup")
    clocks: Clocks = field(default_factory=Clocks)
    gpus: GpuReader | None = None

    def look(self, counters: Source[Counts] | None = None) -> Look:
        """Return all jobs as they are now. Raises Unavailable where /proc cannot be read.

        The GPUs' driver is held while there are jobs: opening it may take long, and who wants to
        unload it, or to reset a GPU, drains the node first.
        """
        try:
            jobs = jobs_here(self.proc, self.cgroup)
        except OSError as error:
            raise Unavailable(f"{self.proc}: {error.strerror}") from error
        gpus = self.gpus.read(self.clocks.epoch()) if self.gpus else None
        if self.gpus and not jobs:
            self.gpus.close()
        counts = counters.read(jobs) if counters else {}
        clock = self.clocks.monotonic
        at_s = clock()
        samples = {
            job.job: usage.sample(job, clock(), self.proc, counts.get(job.job), gpus)
            for job in jobs
        }
        return Look(at_s, self.clocks.epoch(), samples, cgroups.node_pressure(self.proc), gpus)


Wait = Callable[[float], bool]
"""Wait so many seconds; True where it is time to end."""


def once(
    node: Node, window_s: float, wait: Wait, counters: Source[Counts] | None = None
) -> NodeReading | None:
    """Return one reading over a window; None where it was ended meanwhile."""
    before = node.look(counters)
    try:
        if wait(window_s):
            return None
        return reading(node.name, before, node.look(counters))
    finally:
        _let_go(counters)
        if node.gpus:
            node.gpus.close()


def run(
    node: Node,
    sink: Callable[[NodeReading], None],
    every_s: float,
    wait: Wait,
    *,
    counters: Source[Counts] | None = None,
    windows: Windows | None = None,
) -> None:
    """Give a reading to ``sink`` at each tick, until ``wait`` says that it is time to end.

    Ticks come every ``every_s`` seconds, or less often where the node is so full of processes that
    a tick costs more than :data:`MOST` of that. With ``counters`` there is a tick at both ends of
    each window too.
    """
    windows = windows or Windows()
    clock = node.clocks.monotonic
    counted = False
    before: Look | None = None
    try:
        while True:
            at_s, began_cpu_s = clock(), node.clocks.cpu()
            is_open = counters is not None and windows.is_open(at_s)
            after = node.look(counters if is_open or counted else None)
            if counted and not is_open:
                _let_go(counters)
            counted = is_open
            if before:
                sink(reading(node.name, before, after))
            before = after
            pause = pause_s(every_s, node.clocks.cpu() - began_cpu_s, MOST)
            next_s = next_tick(windows, at_s, pause) if counters else at_s + pause
            if wait(max(0.0, next_s - clock())):
                return
    finally:
        _let_go(counters)
        if node.gpus:
            node.gpus.close()


def _let_go(counters: Source[Counts] | None) -> None:
    if counters:
        counters.read(())
