"""Count a node's jobs, and tell in which tier their speed is measured.

A job in cgroups of v2 is counted by the folders of its steps' work, ``step_S/user``: its
slurmstepds and the step extern, which are not its work, are beside them. A job of v1, whose folders
are of other hierarchies than perf's and hold its slurmstepds too, and one without cgroups are
counted by their threads. What cannot be counted is tried again in the next window.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pliant.monitor import cgroups, counting, perf
from pliant.monitor.counting import Attempt, Counting
from pliant.monitor.perf import Event, Reading
from pliant.monitor.processes import JobHere
from pliant.monitor.refusals import CannotCount, Way
from pliant.monitor.sample import Counts
from pliant.monitor.tier import Choice, choose, line

Begin = Callable[[Path | None, Iterable[int]], Attempt]
"""Begin to count a cgroup, or else processes, as :func:`pliant.monitor.counting.begin` does."""

SPARE = 16
"""File descriptors that counters leave: without one a living process would look like an ended."""
PATIENCE_NS = 10**9
"""For how long a job may want the PMU in vain before it is said that others hold it."""

log = logging.getLogger("pliant.monitor")


def here(syscall: perf.Syscall = perf.perf_event_open) -> Counters | None:
    """Return what counts this machine's jobs; None, and a line of the log, where nothing can.

    This process may then open as many files as it is allowed to: a job takes one for each CPU, or
    thread, and event.
    """
    machine = counting.offered(syscall=syscall)
    if refused := machine[Event.INSTRUCTIONS]:
        cycles = "" if machine[Event.CYCLES] else ", for cycles alone are no speed"
        log.info("jobs are measured without counters%s: %s", cycles, refused.why)
        return None
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return Counters(partial(counting.begin, syscall=syscall))


class Counters:
    """What the jobs of a node execute: a source for :func:`pliant.monitor.service.run`."""

    def __init__(self, begin: Begin = counting.begin) -> None:
        self._begin = begin
        self._counted: dict[str, _Job] = {}
        self._choices: dict[str, Choice] = {}  # they outlive windows: a change is told once
        self._usual: Choice | None = (
            None  # the last new job's: what holds for the node is told once
        )

    def read(self, jobs: Sequence[JobHere]) -> Mapping[str, Counts]:
        """Return what these jobs have executed since they are counted, and count no others."""
        asked = {job.job: job for job in jobs}
        for gone in self._counted.keys() - asked.keys():
            self._counted.pop(gone).close()
        if asked:
            self._choices = {job: self._choices[job] for job in self._choices.keys() & asked.keys()}
        return {job: counts for job in asked if (counts := self._read(asked[job])) is not None}

    def _read(self, job: JobHere) -> Counts | None:
        counted = self._counted.setdefault(job.job, _Job())
        with _spared():
            counted.find(job, self._begin)
        reading = counted.read()
        if choice := counted.choice(reading):
            self._tell(job.job, choice)
        return _counts(reading)

    def _tell(self, job: str, choice: Choice) -> None:
        before, self._choices[job] = self._choices.get(job), choice
        if before is None:
            if choice == self._usual:
                return
            self._usual = choice
        if words := line(job, before, choice):
            log.info("%s", words)


class _Job:
    """A job's counters in one window, by the folder of a step; None: all its processes."""

    def __init__(self) -> None:
        self._parts: dict[Path | None, Counting] = {}
        self._ended: list[Reading] = []
        self._ways: set[Way] = set()
        self._refusals: list[CannotCount] = []
        self._partial = False
        self._refused = False

    def find(self, job: JobHere, begin: Begin) -> None:
        """Count what is new of the job, and keep what its ended steps have counted."""
        if self._refused:
            return
        places = _places(job)
        for place in self._parts.keys() - places.keys():
            part = self._parts.pop(place)
            self._ended.append(part.read())
            part.close()
        try:
            for place, pids in places.items():
                self._find(place, pids, begin)
        except CannotCount as no:
            self._refusals.append(no)
            self._refuse()

    def _find(self, place: Path | None, pids: Iterable[int], begin: Begin) -> None:
        if self._refused:
            return
        if part := self._parts.get(place):
            part.find(pids)
            return
        attempt = begin(place, pids)
        self._refusals += attempt.refusals
        if attempt.counting is None or attempt.way is None:
            self._partial = attempt.partial
            self._refuse()
        else:
            self._parts[place] = attempt.counting
            self._ways.add(attempt.way)

    def _refuse(self) -> None:
        """Count nothing of it: a job that is counted in part would look slow."""
        self.close()
        self._refused = True

    def choice(self, reading: Reading | None) -> Choice | None:
        """Return the job's tier by what was read of it; None while that cannot be told."""
        if self._refused:
            return choose(None, self._refusals, partial=self._partial)
        if reading is None:
            return None
        way = Way.THREADS if Way.THREADS in self._ways else Way.CGROUP
        if reading.counts[Event.INSTRUCTIONS] is None:
            held = CannotCount(errno.EBUSY, Event.INSTRUCTIONS.label, way)
            return choose(None, [held]) if reading.enabled_ns > PATIENCE_NS else None
        return choose(way, self._refusals)

    def read(self) -> Reading | None:
        """Return what was counted; None where nothing is."""
        if self._refused or not self._ways:
            return None
        readings = [*self._ended, *(part.read() for part in self._parts.values())]
        return Reading(
            {event: _sum(each.counts.get(event) for each in readings) for event in Event},
            sum(each.enabled_ns for each in readings),
            sum(each.running_ns for each in readings),
        )

    def close(self) -> None:
        """Count it no longer."""
        for part in self._parts.values():
            part.close()
        self._parts = {}


def _places(job: JobHere) -> dict[Path | None, Iterable[int]]:
    """Return by what a job is counted, and the processes there, asked for only if needed."""
    if job.groups and all(group.unified for group in job.groups):
        return {path: _members(path) for group in job.groups for path in cgroups.work(group)}
    return {None: [process.pid for process in job.processes]}


def _members(path: Path) -> Iterator[int]:
    yield from cgroups.members(path)


def _sum(counts: Iterable[int | None]) -> int | None:
    """Return the sum; None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)


def _counts(reading: Reading | None) -> Counts | None:
    """Return what makes a speed; None where instructions are not counted."""
    if reading is None or (instructions := reading.counts[Event.INSTRUCTIONS]) is None:
        return None
    clock_ns = reading.counts[Event.TASK_CLOCK]
    clock_s = None if clock_ns is None else clock_ns / 1e9
    return Counts(instructions, reading.counts[Event.CYCLES], clock_s)


@contextmanager
def _spared() -> Iterator[None]:
    """Keep some file descriptors from being taken, as far as there are any."""
    kept: list[int] = []
    try:
        try:
            kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            while len(kept) < SPARE:
                kept.append(os.dup(kept[0]))
        except OSError:  # too few are left: counters are refused too
            pass
        yield
    finally:
        for descriptor in kept:
            os.close(descriptor)
