"""The counters of a node's jobs: a source for `service`, which says when windows open and close."""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pliant.monitor import perf, tier
from pliant.monitor.counting import Attempt, begin, offered
from pliant.monitor.perf import Event
from pliant.monitor.processes import JobHere
from pliant.monitor.refusals import CannotCount, Way
from pliant.monitor.sample import Counts

PATIENCE_NS = 10**9
"""For how long a job's threads may want the PMU in vain before it is said that they do."""


def here(
    log: Callable[[str], None], syscall: perf.Syscall = perf.perf_event_open
) -> Counters | None:
    """Return what counts this machine's jobs; None, and a line of the log, where nothing can.

    This process may then open as many files as it is allowed to: a job takes one for each CPU, or
    thread, and event.
    """
    machine = offered(syscall=syscall)
    if refused := machine[Event.INSTRUCTIONS]:
        cycles = "" if machine[Event.CYCLES] else ", of which cycles alone are no speed"
        log(f"jobs are measured without counters{cycles}: {refused.why}")
        return None
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return Counters(log, syscall=syscall)


@dataclass
class Counters:
    """Count jobs while they are asked for; `log` gets a line whenever the tier of one changes."""

    log: Callable[[str], None]
    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    syscall: perf.Syscall = perf.perf_event_open
    _open: dict[str, Attempt] = field(default_factory=dict)
    _choices: dict[str, tier.Choice] = field(default_factory=dict)  # outlive a window

    def read(self, jobs: Sequence[JobHere]) -> Mapping[str, Counts]:
        """Return what these jobs have executed since they were first asked for; close all others.

        A job that cannot be counted is left out, and tried again the next time.
        """
        here = {job.job for job in jobs}
        for job in self._open.keys() - here:
            self._close(job)
        if here:
            self._choices = {job: self._choices[job] for job in self._choices.keys() & here}
        found = {job.job: self._count(job) for job in jobs}
        return {job: counts for job, counts in found.items() if counts}

    def _count(self, job: JobHere) -> Counts | None:
        """Return a job's counts; None where there are none, or none yet."""
        pids = [process.pid for process in job.processes]
        if job.job not in self._open:
            self._begin(job, pids)
        attempt = self._open.get(job.job)
        if attempt is None or attempt.counting is None:
            return None
        try:
            attempt.counting.find(pids)
        except CannotCount as refused:
            self._close(job.job)
            self._tell(job.job, Attempt(None, None, (refused,)))
            return None
        reading = attempt.counting.read()
        instructions = reading.counts[Event.INSTRUCTIONS]
        if instructions is None:
            if reading.enabled_ns > PATIENCE_NS:
                taken = CannotCount(errno.EBUSY, Event.INSTRUCTIONS.label, Way.THREADS)
                self._tell(job.job, Attempt(None, None, (taken,)))
            return None
        self._tell(job.job, attempt)
        cycles = reading.counts.get(Event.CYCLES) or 0  # without them there is a speed, but no IPC
        return Counts(instructions, cycles, (reading.counts.get(Event.TASK_CLOCK) or 0) / 1e9)

    def _begin(self, job: JobHere, pids: Sequence[int]) -> None:
        """Open a job's counters; one of several nodes on one host has several cgroups."""
        cgroup = job.groups[0].tracked if len(job.groups) == 1 else None
        attempt = begin(cgroup, pids, proc=self.proc, sysfs=self.sysfs, syscall=self.syscall)
        if attempt.counting:
            self._open[job.job] = attempt
        else:
            self._tell(job.job, attempt)

    def _close(self, job: str) -> None:
        counting = self._open.pop(job).counting
        if counting:
            counting.close()

    def _tell(self, job: str, attempt: Attempt) -> None:
        after = tier.choose(attempt.way, attempt.refusals, partial=attempt.partial)
        if line := tier.line(job, self._choices.get(job), after):
            self.log(line)
        self._choices[job] = after
