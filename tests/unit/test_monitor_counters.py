"""All jobs of a node counted in windows: what is opened, closed and told."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterable
from pathlib import Path

import pytest
from perf_machine import counts_software, lacking, machine

from pliant.monitor import counters, proc
from pliant.monitor.counters import PATIENCE_NS, Counters
from pliant.monitor.counting import Attempt
from pliant.monitor.perf import Event, Reading
from pliant.monitor.processes import JobHere
from pliant.monitor.refusals import Way

COUNTED = "job 7: speed in tier 1, counters by threads"
BLIND = (
    "job 7: speed in tier 3, CPU time alone, which does not see interference in caches and memory"
)


def us(job: str = "7") -> JobHere:
    """A job of which we are the only process."""
    ourselves = proc.process(Path("/proc"), os.getpid())
    assert ourselves
    return JobHere(job, (ourselves,))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class Contended:
    """A PMU that others hold while this says so."""

    def __init__(self) -> None:
        self.enabled_ns = self.running_ns = 0

    def find(self, pids: Iterable[int]) -> int:  # noqa: ARG002  the threads need it
        return 0

    def read(self) -> Reading:
        count = 5 if self.running_ns or not self.enabled_ns else None
        counts: dict[Event, int | None] = dict.fromkeys(Event, count)
        return Reading(counts, self.enabled_ns, self.running_ns)

    def close(self) -> None:
        pass


@counts_software
def test_where_no_job_can_be_counted_that_is_one_line_for_the_whole_machine() -> None:
    lines: list[str] = []
    partial = machine(lacking(errno.ENOENT, Event.INSTRUCTIONS))
    none = machine(lacking(errno.EPERM, *Event))
    assert [counters.here(lines.append, kernel) for kernel in (partial, none)] == [None, None]
    assert lines == [
        "jobs are measured without counters, of which cycles alone are no speed: no PMU here "
        "offers this event (ENOENT)",
        "jobs are measured without counters: a container's seccomp filter or security module "
        "forbids perf_event_open (EPERM)",
    ]


@counts_software
def test_as_many_files_may_be_opened_as_are_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = min(before[1], 256)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        assert counters.here(print, machine())
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@counts_software
def test_counts_grow_in_a_window_and_begin_anew_in_the_next() -> None:
    lines: list[str] = []
    source = Counters(lines.append, syscall=machine())
    first = source.read([us()])["7"]
    sum(range(300_000))
    later = source.read([us()])["7"]
    source.read([])
    anew = source.read([us()])["7"]
    source.read([])
    assert first.instructions < later.instructions > anew.instructions
    assert lines == [COUNTED]


@counts_software
def test_a_job_that_is_not_asked_for_any_more_is_closed_and_forgotten() -> None:
    before, lines = descriptors(), list[str]()
    source = Counters(lines.append, syscall=machine())
    assert source.read([us("7"), us("8")]).keys() == {"7", "8"}
    source.read([us("8")])
    source.read([us("7"), us("8")])
    source.read([])
    assert descriptors() == before
    assert [line.partition(":")[0] for line in lines] == ["job 7", "job 8", "job 7"]


@counts_software
def test_a_job_that_cannot_be_counted_is_left_out_and_told_once() -> None:
    lines: list[str] = []
    pmu = (Event.INSTRUCTIONS, Event.CYCLES)
    source = Counters(lines.append, syscall=machine(lacking(errno.ENOENT, *pmu)))
    assert [source.read(jobs) for jobs in ([us()], [us()], [], [us()])] == [{}] * 4
    assert lines == [f"{BLIND}: no PMU here offers this event (ENOENT)"]


@counts_software
def test_a_process_that_is_refused_ends_the_counting_until_all_are_counted() -> None:
    refused = [False]
    kernel = machine(lambda asked: errno.EACCES if refused[0] and not asked.own else 0)
    lines: list[str] = []
    before, source = descriptors(), Counters(lines.append, syscall=kernel)
    init = proc.process(Path("/proc"), 1)
    assert init
    both = JobHere("7", (*us().processes, init))
    assert source.read([us()])
    refused[0] = True
    assert source.read([both]) == {}
    assert descriptors() == before
    refused[0] = False
    assert source.read([us()])
    source.read([])
    assert [line.split(":")[1] for line in lines] == [
        " speed in tier 1, counters by threads",
        f"{BLIND.partition(':')[2]} (it was tier 1)",
        " speed in tier 1, counters by threads (it was tier 3)",
    ]


def test_a_pmu_that_others_hold_is_told_after_a_while_and_when_it_is_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pmu, lines = Contended(), list[str]()
    monkeypatch.setattr(counters, "begin", lambda *_, **__: Attempt(pmu, Way.CGROUP, ()))
    source = Counters(lines.append)
    seen = []
    for pmu.enabled_ns, pmu.running_ns in (
        (0, 0),
        (9, 0),
        (PATIENCE_NS + 1, 0),
        (2 * PATIENCE_NS, 0),
    ):
        seen.append("7" in source.read([us()]))
    pmu.running_ns = 1
    seen.append("7" in source.read([us()]))
    assert seen == [True, False, False, False, True]
    assert lines == [
        "job 7: speed in tier 1, counters by cgroup",
        f"{BLIND} (it was tier 1): another profiler holds the PMU (EBUSY)",
        "job 7: speed in tier 1, counters by cgroup (it was tier 3)",
    ]
