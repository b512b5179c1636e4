"""Begin to count a job: by its cgroup, else by its threads, else not at all.

First this machine is asked what it offers, on our own thread, which is always ours to count. Only
then does ENOENT from a cgroup say something of the cgroup and nothing of the PMU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pliant.monitor import perf
from pliant.monitor.perf import Event, Group, Reading
from pliant.monitor.refusals import CannotCount, Then, Way
from pliant.monitor.threads import Threads


class Counting(Protocol):
    """A job that is being counted."""

    def find(self, pids: Iterable[int]) -> int:
        """Count these processes too where that needs doing; return how many counters opened."""

    def read(self) -> Reading:
        """Return what was counted since it began."""

    def close(self) -> None:
        """Count no longer."""


class Cgroup:
    """The counters of a job's cgroup: what begins in it is counted without being looked for."""

    def __init__(self, groups: list[Group], events: Sequence[Event]) -> None:
        self._groups = groups
        self._events = events

    def find(self, pids: Iterable[int]) -> int:  # noqa: ARG002  its threads need it
        """Open nothing."""
        return 0

    def read(self) -> Reading:
        """Return what the cgroup has executed since it was opened."""
        return perf.total(self._groups, self._events)

    def close(self) -> None:
        """Count no longer."""
        perf.close(self._groups)
        self._groups = []


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of the wish to count a job: the counters and their way, or why there are none."""

    counting: Counting | None
    way: Way | None
    refusals: tuple[CannotCount, ...]
    partial: bool = False  # the PMU counts cycles, but no instructions


def offered(
    events: Sequence[Event] = tuple(Event), syscall: perf.Syscall = perf.perf_event_open
) -> dict[Event, CannotCount | None]:
    """Return for each event why this machine does not count it, or None where it does."""
    return {event: _refusal(event, syscall) for event in events}


def begin(
    cgroup: Path | None,
    pids: Iterable[int],
    *,
    events: Sequence[Event] = tuple(Event),
    proc: Path = Path("/proc"),
    sysfs: Path = Path("/sys"),
    syscall: perf.Syscall = perf.perf_event_open,
) -> Attempt:
    """Begin to count a job by the first way that is open; the first event is the one it is for."""
    machine = offered(events, syscall)
    if refused := machine[events[0]]:
        return Attempt(
            None, None, (refused,), partial=Event.CYCLES in machine and not machine[Event.CYCLES]
        )
    counted = [event for event in events if not machine[event]]
    refusals: list[CannotCount] = []
    if cgroup:
        try:
            return Attempt(_of_cgroup(cgroup, counted, sysfs, syscall), Way.CGROUP, ())
        except CannotCount as no:
            refusals.append(no)
            if no.then is Then.NO_COUNTERS:
                return Attempt(None, None, tuple(refusals))
    threads = Threads(counted, proc=proc, syscall=syscall)
    try:
        threads.find(pids)
    except CannotCount as no:
        threads.close()
        return Attempt(None, None, (*refusals, no))
    return Attempt(threads, Way.THREADS, tuple(refusals))


def _of_cgroup(
    folder: Path, events: Sequence[Event], sysfs: Path, syscall: perf.Syscall
) -> Counting:
    try:
        cpus = perf.online_cpus(sysfs)
    except OSError as unread:
        raise CannotCount(unread.errno or 0, events[0].label, Way.CGROUP) from unread
    return Cgroup(perf.of_cgroup(folder, cpus, events, syscall=syscall), events)


def _refusal(event: Event, syscall: perf.Syscall) -> CannotCount | None:
    try:
        perf.of_thread(0, [event], syscall=syscall).close()
    except CannotCount as no:
        return no
    return None
