"""What looking at a node's jobs costs: CPU time of the monitor, and the jobs some of their speed.

Twenty jobs, each a process with ten threads that wake ten times a second and work for a moment,
below what looks like slurmstepds: no Slurm is needed. The looks are those of `pliant monitor`, in
this process. Where the machine has no PMU, the kernel's own clock of a thread stands for each of
the three events: the system calls are the same, and no more is claimed. GPUs are not read.
"""

from __future__ import annotations

import resource
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks import slowdown, stepd
from benchmarks.section import Section, verdict
from benchmarks.stats import estimate
from pliant.monitor import perf
from pliant.monitor.counters import Counters
from pliant.monitor.counting import begin, offered
from pliant.monitor.perf import Event
from pliant.monitor.reading import Look, reading
from pliant.monitor.service import Node
from pliant.monitor.windows import Windows

GOAL = 0.01
JOBS, THREADS = 20, 10
_WORK = f"""
import threading, time
def work():
    while True:
        sum(range(1000))
        time.sleep(0.1)
for _ in range({THREADS - 1}):
    threading.Thread(target=work, daemon=True).start()
work()
"""


def measure(quick: bool) -> list[Section]:
    """Measure a look with counters and without."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    has_pmu = offered()[Event.INSTRUCTIONS] is None
    syscall = perf.perf_event_open if has_pmu else _clock_for_all
    with _jobs():
        plain = _looks(None, 5 if quick else 60)
        counters = Counters(partial(begin, syscall=syscall))
        opening = [_opening_s(counters) for _ in range(3 if quick else 20)]
        counted = _looks(counters, 5 if quick else 60)
        slowed = slowdown.measure(quick, syscall)
    return [_section(plain, opening, counted, has_pmu), slowed]


def _looks(counters: Counters | None, times: int) -> list[float]:
    """Return the CPU seconds of each of so many looks, one a second; the first is left out."""
    node = Node("bench")
    before = _whole(node.look(counters))
    costs = []
    for _ in range(times):
        time.sleep(1.0)
        began_s = time.process_time()
        after = node.look(counters)
        reading(node.name, before, after)
        costs.append(time.process_time() - began_s)
        before = after
    if counters:
        counters.read(())
    return costs


def _whole(look: Look) -> Look:
    """Return a look that has seen all jobs and threads."""
    ours = [sample for job, sample in look.jobs.items() if int(job) >= stepd.FIRST_JOB]
    assert [len(sample.threads) for sample in ours] == [THREADS] * JOBS
    return look


def _opening_s(counters: Counters) -> float:
    """Return the CPU seconds of a look that opens all counters, and of closing them."""
    began_s = time.process_time()
    look = Node("bench").look(counters)
    counters.read(())
    cost_s = time.process_time() - began_s
    assert all(sample.counts for sample in _whole(look).jobs.values())
    return cost_s


def _section(
    plain: list[float], opening: list[float], counted: list[float], has_pmu: bool
) -> Section:
    least, open_s, most = (1000 * estimate(costs).value for costs in (plain, opening, counted))
    windows = Windows()
    extra_s = (windows.length_s * (most - least) + open_s - least) / 1000
    part = least / 1000 + extra_s / windows.every_s
    stands = "" if has_pmu else " This machine has no PMU: a clock stands for each counter."
    return Section(
        "What looking at a node's jobs costs",
        f"{JOBS} jobs with {JOBS * THREADS} threads without cgroups, beside the other processes of "
        "this machine; CPU time of a look and of the reading made of it, once a second. Counters "
        f"are by thread.{stands}",
        ("a look", "times", "CPU time, ms"),
        [
            (what, str(len(costs)), estimate([1000 * cost for cost in costs]).text())
            for what, costs in (
                ("without counters", plain),
                ("that opens counters, and their closing", opening),
                ("with counters open", counted),
            )
        ],
        f"At one look a second, counters open for {windows.length_s:g} s of "
        f"{windows.every_s:g} s: {100 * part:.2f} % of a core. Goal: at most {100 * GOAL:g} %: "
        f"{verdict(part <= GOAL)}.",
    )


def _clock_for_all(attr: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
    """Open task-clock, whatever event is asked for."""
    kind, size, config = Event.TASK_CLOCK.kind, len(attr), Event.TASK_CLOCK.config
    head = struct.pack("=IIQ", kind, size, config)
    return perf.perf_event_open(head + attr[len(head) :], pid, cpu, leader, flags)


@contextmanager
def _jobs() -> Iterator[None]:
    """Run the jobs until the end."""
    with stepd.jobs([[sys.executable, "-c", _WORK]] * JOBS):
        _wait_for_threads()
        yield


def _wait_for_threads() -> None:
    deadline_s = time.monotonic() + 120
    while True:
        look = Node("bench").look()
        ours = [sample for job, sample in look.jobs.items() if int(job) >= stepd.FIRST_JOB]
        if sum(len(sample.threads) for sample in ours) == JOBS * THREADS:
            return
        assert time.monotonic() < deadline_s, "waited 120 s for the jobs' threads"
        time.sleep(0.5)
