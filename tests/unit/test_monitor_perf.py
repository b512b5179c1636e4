"""The counters: read for real by software events, and scaled where a PMU is shared."""

from __future__ import annotations

import errno
import os
import platform
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import perf_machine
import pytest
from perf_machine import counts_software, hierarchy

from pliant.monitor import perf
from pliant.monitor.counting import begin
from pliant.monitor.perf import Event, Group, Reading
from pliant.monitor.refusals import Way
from pliant.monitor.threads import Threads

CLOCK = (Event.TASK_CLOCK,)
PAIR = (Event.INSTRUCTIONS, Event.CYCLES)
NEAR = 0.2  # two of the kernel's clocks of the same thread, read one after the other
# A job: it waits for a line, burns CPU as told, says how many ns that were, and waits for another.
JOB = """
import resource, subprocess, sys, time
def spent():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
children = []
print("ready", flush=True)
for line in sys.stdin:
    before = spent()
    exec(line)
    print(int((spent() - before) * 1e9), flush=True)
for child in children: child.kill()
"""


class Job:
    """A process of ours that computes when told, and knows what it took."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def does(self, statement: str) -> int:
        """Have it execute a statement; return the CPU time that took, ns, its children's too."""
        assert self.process.stdin
        self.process.stdin.write(f"{statement}\n")
        self.process.stdin.flush()
        return int(self._answer())

    def ends(self) -> None:
        self.process.communicate()

    def _answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    yield job
    job.ends()


@pytest.fixture
def other() -> Iterator[Job]:
    job = Job()
    yield job
    job.ends()


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A cgroup of our own, two deep: what is counted is all below it."""
    folder = hierarchy() / f"pliant-test-{os.getpid()}"
    (folder / "step_0").mkdir(parents=True)
    yield folder
    (folder / "step_0").rmdir()
    folder.rmdir()


def clock(reading: Reading) -> int:
    count = reading.counts[Event.TASK_CLOCK]
    assert count is not None
    return count


def group_of(*raw: tuple[int, int, int, int]) -> Group:
    """A group whose kernel says this: (ns enabled, ns running, instructions, cycles) at each read."""
    ours, theirs = os.pipe()
    for enabled, running, *counts in raw:
        os.write(theirs, struct.pack("=5Q", len(counts), enabled, running, *counts))
    os.close(theirs)
    return Group([ours], PAIR)


def counts(reading: Reading) -> list[int | None]:
    return [reading.counts[event] for event in PAIR]


def test_what_was_counted_all_the_time_is_not_scaled() -> None:
    group = group_of((10, 10, 700, 1000), (30, 30, 2100, 3001))
    assert counts(group.read()) == [700, 1000]
    assert group.read() == Reading(dict(zip(PAIR, (2100, 3001), strict=True)), 30, 30)
    group.close()


def test_only_what_passed_between_two_reads_is_scaled_by_its_own_share() -> None:
    group = group_of((100, 100, 500, 800), (200, 150, 600, 900))
    group.read()
    assert counts(group.read()) == [500 + 2 * 100, 800 + 2 * 100]
    group.close()


def test_a_group_that_had_no_turn_has_counted_nothing_which_is_not_zero() -> None:
    group = group_of((0, 0, 0, 0), (100, 0, 0, 0))
    assert counts(group.read()) == [0, 0]  # the thread has slept
    assert counts(group.read()) == [None, None]  # it has run, and the PMU was others'
    group.close()


def test_a_turn_stands_for_the_time_before_it_too() -> None:
    group = group_of((100, 100, 500, 800), (200, 100, 500, 800), (400, 200, 900, 1000))
    group.read()
    assert counts(group.read()) == [500, 800]
    assert counts(group.read()) == [500 + 3 * 400, 800 + 3 * 200]
    group.close()


def test_a_sum_is_unknown_where_one_of_its_parts_is() -> None:
    seen, unseen = group_of((10, 10, 7, 9)), group_of((10, 0, 0, 0))
    assert counts(perf.total([seen, unseen], PAIR)) == [None, None]
    perf.close([seen, unseen])


def test_the_cpus_that_are_online_are_read_from_their_list(tmp_path: Path) -> None:
    folder = tmp_path / "devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "online").write_text("0-2,5,8-9\n")
    assert perf.online_cpus(tmp_path) == [0, 1, 2, 5, 8, 9]


@counts_software
def test_a_thread_is_counted_and_its_neighbour_is_not() -> None:
    asked, told = threading.Event(), threading.Event()
    spent = []

    def burn() -> None:
        told.set()
        asked.wait()
        while time.thread_time_ns() < 50_000_000:
            pass
        spent.append(time.thread_time_ns())

    busy, idle = threading.Thread(target=burn), threading.Thread(target=asked.wait)
    busy.start()
    idle.start()
    told.wait()
    groups = [perf.of_thread(t.native_id or 0, CLOCK) for t in (busy, idle)]
    asked.set()
    busy.join()
    idle.join()
    busy_ns, idle_ns = (clock(group.read()) for group in groups)
    perf.close(groups)
    assert busy_ns == pytest.approx(spent[0], rel=NEAR)
    assert idle_ns < busy_ns / 10


@counts_software
def test_a_process_is_counted_with_all_that_it_starts_and_that_has_ended(job: Job) -> None:
    threads = Threads(CLOCK)
    assert threads.find([job.pid]) == 1
    spent = job.does("for _ in range(20): subprocess.run(['true'])")
    spent += job.does(
        "import threading; t = threading.Thread(target=burn, args=(0.05,)); t.start(); t.join()"
    )
    job.ends()
    assert clock(threads.read()) == pytest.approx(spent, rel=NEAR)
    threads.close()


@counts_software
def test_what_a_counted_process_started_is_not_counted_twice(job: Job) -> None:
    threads = Threads(CLOCK)
    threads.find([job.pid])
    job.does("child = subprocess.Popen(['cat'], stdin=subprocess.PIPE)")
    (child,) = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    assert threads.find([job.pid, int(child)]) == 0
    job.does("child.communicate()")
    threads.close()


@counts_software
def test_a_process_that_came_from_elsewhere_is_found(job: Job, other: Job) -> None:
    threads = Threads(CLOCK)
    threads.find([job.pid])
    assert threads.find([job.pid, other.pid]) == 1
    spent = job.does("burn(0.02)") + other.does("burn(0.04)")
    assert clock(threads.read()) == pytest.approx(spent, rel=NEAR)
    threads.close()


@counts_software
def test_each_thread_of_a_process_that_was_there_before_is_opened(job: Job) -> None:
    job.does("import threading; go = threading.Event()")
    job.does("ts = [threading.Thread(target=lambda: go.wait() and burn(0.02)) for _ in range(3)]")
    job.does("[t.start() for t in ts]")
    threads = Threads(CLOCK)
    assert threads.find([job.pid]) == 4
    spent = job.does("go.set(); [t.join() for t in ts]")
    assert clock(threads.read()) == pytest.approx(spent, rel=NEAR)
    threads.close()


@counts_software
def test_a_number_that_came_again_is_another_process(job: Job, tmp_path: Path) -> None:
    def appears(start: int) -> None:
        folder = tmp_path / str(job.pid)
        (folder / "task" / str(job.pid)).mkdir(parents=True, exist_ok=True)
        fields = ["S", "1", *["0"] * 17, str(start)]
        (folder / "stat").write_text(f"{job.pid} (a job) {' '.join(fields)}\n")

    threads = Threads(CLOCK, proc=tmp_path)
    appears(start=100)
    assert [threads.find([job.pid]) for _ in range(2)] == [1, 0]
    appears(start=900)
    assert threads.find([job.pid]) == 1
    threads.close()


@counts_software
def test_two_cgroups_are_counted_each_with_what_runs_below_it(
    cgroup: Path, job: Job, other: Job
) -> None:
    (cgroup / "step_0" / "cgroup.procs").write_text(str(job.pid))
    attempt = begin(cgroup, [], events=CLOCK)
    assert (attempt.way, attempt.refusals) == (Way.CGROUP, ())
    assert attempt.counting
    other.does("burn(0.05)")
    spent = job.does("burn(0.05); [subprocess.run(['true']) for _ in range(5)]")
    assert attempt.counting.find([other.pid]) == 0
    assert clock(attempt.counting.read()) == pytest.approx(spent, rel=NEAR)
    attempt.counting.close()
    job.ends()


@counts_software
def test_closing_leaves_no_descriptor(job: Job) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    attempt = begin(None, [job.pid], syscall=perf_machine.machine())
    assert attempt.counting
    attempt.counting.close()
    assert sorted(Path("/proc/self/fd").iterdir()) == before


KEEPS_A_CHILD = "children.append(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL))"
TELLS = tuple(int(n) for n in platform.release().split(".")[:2]) >= (6, 6)


def forking(job: Job, times: int) -> perf.Syscall:
    """Return a kernel in which the job starts a program after its first event was opened."""
    left = [times]

    def syscall(attr: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
        fd = perf_machine.machine()(attr, pid, cpu, leader, flags)
        if leader == -1 and pid == job.pid and left[0]:
            left[0] -= 1
            job.does(KEEPS_A_CHILD)
        return fd

    return syscall


@counts_software
def test_what_starts_while_the_counters_are_opened_spoils_no_group(job: Job) -> None:
    threads = Threads(PAIR, syscall=forking(job, times=2))
    assert threads.find([job.pid]) == 1
    job.does("burn(0.02)")
    assert len(set(counts(threads.read()))) == 1
    threads.close()


@counts_software
@pytest.mark.skipif(not TELLS, reason="before Linux 6.6 the kernel does not tell")
def test_what_starts_faster_than_counters_are_opened_is_not_counted(job: Job) -> None:
    attempt = begin(None, [job.pid], events=PAIR, syscall=forking(job, times=1000))
    assert [refused.errno for refused in attempt.refusals] == [errno.ECHILD]


@counts_software
def test_what_cannot_be_read_of_a_process_is_a_refusal_and_no_end(tmp_path: Path) -> None:
    (tmp_path / "77" / "stat").mkdir(parents=True)
    attempt = begin(None, [77], events=CLOCK, proc=tmp_path)
    assert [refused.errno for refused in attempt.refusals] == [errno.EISDIR]


@counts_software
def test_a_machine_that_does_not_say_its_cpus_is_counted_by_threads(
    tmp_path: Path, job: Job
) -> None:
    attempt = begin(Path("/proc"), [job.pid], events=CLOCK, sysfs=tmp_path)
    assert attempt.way is Way.THREADS
    assert [refused.errno for refused in attempt.refusals] == [errno.ENOENT]
    assert attempt.counting
    attempt.counting.close()
