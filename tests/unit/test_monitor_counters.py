"""Which jobs of a node are counted, by what, and what is logged of it."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from perf_machine import counts_software, lacking, machine, refusing

from pliant.monitor.cgroups import JobGroup
from pliant.monitor.counters import PATIENCE_NS, SPARE, Counters, here
from pliant.monitor.counting import Attempt, begin
from pliant.monitor.perf import Event, Reading
from pliant.monitor.proc import Process
from pliant.monitor.processes import JobHere
from pliant.monitor.refusals import CannotCount, Way
from pliant.monitor.sample import Counts

BLIND = "speed in tier 3, CPU time alone, which does not see interference in caches and memory"
NO_PMU = "no PMU here offers this event (ENOENT)"
FORBIDDEN = "kernel.perf_event_paranoid or the thread's owner does not let us count it (EACCES)"
NO_ACCESS = CannotCount(errno.EACCES, "instructions", Way.THREADS)
Lines = Callable[[], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level("INFO", "pliant.monitor")

    def logged() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return logged


@dataclass
class Counted:
    """Counters that say what they are told."""

    counts: tuple[int | None, ...] = (2000, 1000, 500_000_000)
    enabled_ns: int = 1
    refusal: CannotCount | None = None
    found: list[list[int]] = field(default_factory=list)
    closed: bool = False

    def find(self, pids: Iterable[int]) -> int:
        self.found.append(sorted(pids))
        if self.refusal:
            raise self.refusal
        return 0

    def read(self) -> Reading:
        return Reading(dict(zip(Event, self.counts, strict=False)), self.enabled_ns, 1)

    def close(self) -> None:
        self.closed = True


@dataclass
class Kernel:
    """Counts whatever it is asked to, or nothing, and keeps what it was asked."""

    way: Way = Way.CGROUP
    refusal: CannotCount | None = None
    begun: list[tuple[str, list[int]]] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)

    def __call__(self, place: Path | None, pids: Iterable[int]) -> Attempt:
        self.begun.append((str(place and place.parent.name), sorted(pids)))
        if self.refusal:
            return Attempt(None, None, (self.refusal,))
        self.counted.append(Counted())
        return Attempt(self.counted[-1], self.way, ())


def in_cgroups(top: Path, job: str, **steps: int) -> JobHere:
    """A job of v2 with these steps, each with a process at work and a slurmstepd."""
    tracked = top / f"job_{job}"
    for step, pid in steps.items():
        for leaf, member in (("user/task_0", pid), ("slurm", pid - 1)):
            folder = tracked / step / leaf
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cgroup.procs").write_text(f"{member}\n")
    return JobHere(job, (), (JobGroup(job, True, tracked, tracked, tracked),))


def of_processes(job: str, *pids: int, groups: tuple[JobGroup, ...] = ()) -> JobHere:
    members = tuple(Process(pid, "work", 1, pid, 0.0, 0.0, 1, 7, 0) for pid in pids)
    return JobHere(job, members, groups)


def test_the_steps_work_is_counted_and_neither_slurmstepds_nor_logins(
    tmp_path: Path, lines: Lines
) -> None:
    kernel = Kernel()
    job = in_cgroups(tmp_path, "12", step_extern=10, step_batch=20, step_0=30)
    assert Counters(kernel).read([job]) == {"12": Counts(4000, 2000, 1.0)}
    assert kernel.begun == [("step_0", [30]), ("step_batch", [20])]
    assert lines() == ["job 12: speed in tier 1, counters by cgroup"]


def test_what_an_ended_step_has_counted_stays_and_a_new_one_is_added(tmp_path: Path) -> None:
    kernel = Kernel()
    counters = Counters(kernel)
    job = in_cgroups(tmp_path, "12", step_batch=20, step_0=30)
    counters.read([job])
    for path in sorted((tmp_path / "job_12/step_0").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    kernel.counted[0].counts = (5000, 3000, 1_500_000_000)
    assert counters.read([job]) == {"12": Counts(7000, 4000, 2.0)}
    assert [one.closed for one in kernel.counted] == [True, False]
    assert counters.read([in_cgroups(tmp_path, "12", step_1=40)]) == {"12": Counts(9000, 5000, 2.5)}
    assert kernel.begun[-1] == ("step_1", [40])


def test_a_job_of_v1_or_without_cgroups_is_counted_by_its_processes(
    tmp_path: Path, lines: Lines
) -> None:
    kernel = Kernel(Way.THREADS)
    counters = Counters(kernel)
    old = JobGroup("13", False, tmp_path, None, None)
    counters.read([of_processes("12", 20, 21), of_processes("13", 30, groups=(old,))])
    assert kernel.begun == [("None", [20, 21]), ("None", [30])]
    counters.read([of_processes("12", 20, 22), of_processes("13", 30, groups=(old,))])
    assert [one.found for one in kernel.counted] == [[[20, 22]], [[30]]]
    assert lines() == ["job 12: speed in tier 1, counters by threads"]


def test_a_job_that_has_gone_is_counted_no_longer() -> None:
    kernel = Kernel(Way.THREADS)
    counters = Counters(kernel)
    counters.read([of_processes("12", 20), of_processes("13", 30)])
    counters.read([of_processes("13", 30)])
    assert [one.closed for one in kernel.counted] == [True, False]
    counters.read([])
    assert all(one.closed for one in kernel.counted)


def test_a_job_without_work_yet_is_neither_counted_nor_told(tmp_path: Path, lines: Lines) -> None:
    assert Counters(Kernel()).read([in_cgroups(tmp_path, "12", step_extern=10)]) == {}
    assert lines() == []


def test_a_change_of_tier_is_told_once(lines: Lines) -> None:
    kernel = Kernel(Way.THREADS)
    counters = Counters(kernel)
    for refusal in (None, None, NO_ACCESS, NO_ACCESS, None):
        kernel.refusal = refusal
        for _look in range(2):
            assert bool(counters.read([of_processes("12", 20)])) is (refusal is None)
        counters.read([])
    assert lines() == [
        "job 12: speed in tier 1, counters by threads",
        f"job 12: {BLIND} (it was tier 1): {FORBIDDEN}",
        "job 12: speed in tier 1, counters by threads (it was tier 3)",
    ]


def test_a_job_is_not_counted_in_part(tmp_path: Path, lines: Lines) -> None:
    kernel = Kernel(Way.THREADS)
    counters = Counters(kernel)
    counters.read([of_processes("12", 20)])
    kernel.counted[0].refusal = NO_ACCESS
    for _look in range(2):
        assert counters.read([of_processes("12", 20, 21)]) == {}
    assert kernel.counted[0].closed
    assert len(kernel.begun) == 1  # it is tried again in the next window
    assert lines()[1:] == [f"job 12: {BLIND} (it was tier 1): {FORBIDDEN}"]

    kernel.refusal = NO_ACCESS
    assert Counters(kernel).read([in_cgroups(tmp_path, "13", step_0=20, step_1=30)]) == {}


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ((2000, None, 500_000_000), Counts(2000, None, 0.5)),
        ((2000,), Counts(2000, None, None)),
        ((None, 1000, 500_000_000), None),
    ],
)
def test_what_is_not_counted_is_not_zero(
    counts: tuple[int | None, ...], found: Counts | None
) -> None:
    kernel = Kernel()
    counters = Counters(kernel)
    job = of_processes("12", 20)
    counters.read([job])
    kernel.counted[0].counts = counts
    assert counters.read([job]).get("12") == found


def test_a_pmu_that_others_hold_is_told_after_a_while_and_when_it_is_free_again(
    lines: Lines,
) -> None:
    kernel = Kernel()
    counters = Counters(kernel)
    job = of_processes("12", 20)
    seen = ["12" in counters.read([job])]
    for counts, enabled_ns in (
        ((None, None, None), 9),
        ((None, None, None), PATIENCE_NS + 1),
        ((None, None, None), 2 * PATIENCE_NS),
        ((5, 5, 5), 3 * PATIENCE_NS),
    ):
        kernel.counted[0].counts, kernel.counted[0].enabled_ns = counts, enabled_ns
        seen.append("12" in counters.read([job]))
    assert seen == [True, False, False, False, True]
    assert lines() == [
        "job 12: speed in tier 1, counters by cgroup",
        f"job 12: {BLIND} (it was tier 1): another profiler holds the PMU (EBUSY)",
        "job 12: speed in tier 1, counters by cgroup (it was tier 3)",
    ]


# the kernel's own answers


@counts_software
def test_a_machine_that_counts_no_job_is_one_line(lines: Lines) -> None:
    partial_pmu = machine(lacking(errno.ENOENT, Event.INSTRUCTIONS))
    none = machine(lacking(errno.EPERM, *Event))
    assert [here(partial_pmu), here(none)] == [None, None]
    seccomp = "a container's seccomp filter or security module forbids perf_event_open (EPERM)"
    assert lines() == [
        f"jobs are measured without counters, for cycles alone are no speed: {NO_PMU}",
        f"jobs are measured without counters: {seccomp}",
    ]


@counts_software
@pytest.mark.usefixtures("few_files")
def test_as_many_files_may_be_opened_as_are_allowed() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert here(machine())
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)


@counts_software
def test_this_process_is_counted_by_the_kernel(lines: Lines) -> None:
    counters = Counters(partial(begin, syscall=machine()))
    job = of_processes("12", os.getpid())
    before = counters.read([job])["12"]
    sum(range(1_000_000))
    after = counters.read([job])["12"]
    counters.read([])
    assert after.instructions > before.instructions  # of the task-clock, here
    assert lines() == ["job 12: speed in tier 1, counters by threads"]


@counts_software
def test_a_node_without_a_pmu_says_so_once_for_all_jobs_and_windows(lines: Lines) -> None:
    lacks = lacking(errno.ENOENT, Event.INSTRUCTIONS, Event.CYCLES)
    counters = Counters(partial(begin, syscall=machine(lacks)))
    for _window in range(2):
        assert counters.read([of_processes(job, os.getpid()) for job in ("12", "13")]) == {}
        counters.read([])
    assert lines() == [f"job 12: {BLIND}: {NO_PMU}"]


@counts_software
def test_a_pmu_with_cycles_alone_is_tier_3(lines: Lines) -> None:
    lacks = lacking(errno.ENOENT, Event.INSTRUCTIONS)
    assert Counters(partial(begin, syscall=machine(lacks))).read([of_processes("12", 1)]) == {}
    partial_pmu = "the PMU counts cycles but no instructions"
    assert lines() == [f"job 12: {BLIND}: {partial_pmu}: {NO_PMU}"]


@counts_software
def test_a_cgroup_that_perf_does_not_follow_is_counted_by_its_threads(
    tmp_path: Path, lines: Lines
) -> None:
    refuses = machine(refusing(Way.CGROUP, errno.EBADF))
    counters = Counters(partial(begin, syscall=refuses))
    assert "12" in counters.read([in_cgroups(tmp_path, "12", step_0=os.getpid())])
    counters.read([])
    why = "this folder is no cgroup (EBADF)"
    assert lines() == [f"job 12: speed in tier 1, counters by threads: {why}"]


@pytest.fixture
def few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
def test_counters_leave_some_files_for_looking_at_processes() -> None:
    taken: list[int] = []

    def greedy(_place: Path | None, _pids: Iterable[int]) -> Attempt:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        return Attempt(Counted(), Way.THREADS, ())

    Counters(greedy).read([of_processes("12", 20)])
    left = [os.dup(1) for _ in range(SPARE)]
    for descriptor in (*taken, *left):
        os.close(descriptor)
    assert taken
