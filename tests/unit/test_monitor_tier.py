"""Every refusal of the kernel: provoked where it can be, else injected; its tier and its one line."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from perf_machine import counts_software, hierarchy, lacking, machine, refusing

from limits import HANG_S
from pliant.monitor.counting import Attempt, begin, offered
from pliant.monitor.perf import Event, Syscall, perf_event_open
from pliant.monitor.refusals import CannotCount, Then, Way
from pliant.monitor.tier import Choice, choose, line

CLOCK = (Event.TASK_CLOCK,)
PMU = (Event.INSTRUCTIONS, Event.CYCLES)
BLIND = "tier 3, CPU time alone, which does not see interference in caches and memory"
LIMIT = "kernel.perf_event_paranoid leaves counting cgroups to the administrator (EACCES)"
SECCOMP = "a container's seccomp filter or security module forbids perf_event_open (EPERM)"
NO_CGROUP = (
    "perf does not follow this cgroup: it has gone, is of another hierarchy, or waits for a "
    "controller in cgroup.subtree_control (ENOENT)"
)


def tell(attempt: Attempt) -> list[str]:
    """Choose the job's tier twice over, as two windows do; return the lines that were logged."""
    if attempt.counting:
        attempt.counting.close()
    lines: list[str | None] = []
    before: Choice | None = None
    for _window in range(2):
        after = choose(attempt.way, attempt.refusals, partial=attempt.partial)
        lines.append(line("12", before, after))
        before = after
    return [text for text in lines if text]


def by_both(number: int, way: Way) -> Attempt:
    """Begin to count ourselves where one way, or for THREADS both, are refused."""
    cgroup = Path("/proc") if way is Way.CGROUP else None  # any folder will do: the kernel is asked
    return begin(cgroup, [os.getpid()], syscall=machine(refusing(way, number)))


@counts_software
@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOENT, NO_CGROUP),
        (errno.EACCES, LIMIT),
        (errno.EBADF, "this folder is no cgroup (EBADF)"),
        (
            errno.EMFILE,
            "no file descriptors are left, one is needed for each CPU and event: raise "
            "LimitNOFILE (EMFILE)",
        ),
        (errno.ENODEV, "the CPU is offline (ENODEV)"),
        (errno.EINVAL, "Invalid argument (EINVAL)"),
    ],
)
def test_where_the_cgroup_is_refused_the_threads_are_counted(number: int, why: str) -> None:
    assert tell(by_both(number, Way.CGROUP)) == [
        f"job 12: speed in tier 1, counters by threads: {why}"
    ]


@counts_software
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EPERM, SECCOMP),
        (
            errno.ENOSYS,
            "perf_event_open is missing: an old or foreign kernel, or a seccomp filter (ENOSYS)",
        ),
        (errno.EOPNOTSUPP, "the PMU does not support this event (ENOTSUP)"),
        (errno.EBUSY, "another profiler holds the PMU (EBUSY)"),
    ],
)
def test_what_forbids_either_way_ends_the_search(way: Way, number: int, why: str) -> None:
    assert tell(by_both(number, way)) == [f"job 12: speed in {BLIND}: {why}"]


@counts_software
@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOENT, "no PMU here offers this event (ENOENT)"),
        (errno.ENODEV, "the CPU lacks what this event needs (ENODEV)"),
        (
            errno.EACCES,
            "kernel.perf_event_paranoid or the thread's owner does not let us count it (EACCES)",
        ),
        (
            errno.EMFILE,
            "no file descriptors are left, one is needed for each thread and event: raise "
            "LimitNOFILE (EMFILE)",
        ),
        (errno.E2BIG, "Argument list too long (E2BIG)"),
    ],
)
def test_where_the_threads_are_refused_there_are_no_counters(number: int, why: str) -> None:
    assert tell(by_both(number, Way.THREADS)) == [f"job 12: speed in {BLIND}: {why}"]


@counts_software
def test_a_thread_that_has_gone_changes_nothing() -> None:
    attempt = by_both(errno.ESRCH, Way.THREADS)
    assert attempt.refusals == ()
    assert tell(attempt) == ["job 12: speed in tier 1, counters by threads"]


@counts_software
@pytest.mark.parametrize("number", [errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV])
def test_a_machine_without_a_pmu_is_known_by_our_own_thread(number: int) -> None:
    attempt = begin(Path("/proc"), [os.getpid()], syscall=machine(lacking(number, *PMU)))
    assert (attempt.way, attempt.partial) == (None, False)
    (text,) = tell(attempt)
    assert text.startswith(f"job 12: speed in {BLIND}: ")
    assert text.endswith(f"({errno.errorcode[number]})")


@counts_software
def test_a_partial_pmu_has_cycles_but_no_speed() -> None:
    kernel = machine(lacking(errno.ENOENT, Event.INSTRUCTIONS))
    attempt = begin(None, [os.getpid()], syscall=kernel)
    assert tell(attempt) == [
        f"job 12: speed in {BLIND}: the PMU counts cycles but no instructions: no PMU here "
        "offers this event (ENOENT)"
    ]


@counts_software
def test_instructions_alone_are_a_speed_without_cycles() -> None:
    kernel = machine(lacking(errno.ENOENT, Event.CYCLES))
    attempt = begin(None, [os.getpid()], syscall=kernel)
    assert attempt.counting
    assert set(attempt.counting.read().counts) == {Event.INSTRUCTIONS, Event.TASK_CLOCK}
    assert tell(attempt) == ["job 12: speed in tier 1, counters by threads"]


@counts_software
def test_a_cpu_that_is_offline_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "online").write_text("0,7\n")
    kernel = machine(lambda asked: errno.ENODEV if asked.cpu == 7 else 0)
    attempt = begin(hierarchy(), [], sysfs=tmp_path, syscall=kernel)
    assert tell(attempt) == ["job 12: speed in tier 1, counters by cgroup"]


# Provoked: the same answers from this machine's kernel.

FILTERED = """
import ctypes, platform, struct
call = {{"x86_64": 298, "aarch64": 241}}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50000 | {number}), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
filter_ = struct.pack("@HP", len(steps), ctypes.addressof(program))
assert libc.prctl(22, 2, filter_, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
"""
UNPRIVILEGED = "os.geteuid() or os.setuid(65534)"
FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({number}, {number}))"
IMPORTS = """
import json, os, pathlib, threading
from pliant.monitor.counting import begin
from pliant.monitor.perf import Event
from pliant.monitor.tier import choose, line
"""
ASK = """
attempt = begin({cgroup}, {pids}, events=(Event.TASK_CLOCK,))
choice = choose(attempt.way, attempt.refusals)
print(json.dumps([[r.errno for r in attempt.refusals], line("12", None, choice), line("12", choice, choice)]))
"""


@dataclass(frozen=True)
class Said:
    """What a process of its own was refused, and the line that it logged."""

    errnos: list[int]
    line: str


def provoke(prepare: str, *, cgroup: Path | None = None, pids: str = "[os.getpid()]") -> Said:
    """Have a process of its own prepare itself so, and then count."""
    folder = f"pathlib.Path({str(cgroup)!r})" if cgroup else "None"
    # What is imported is imported before anything is forbidden.
    script = f"{IMPORTS}\n{prepare}\n{ASK.format(cgroup=folder, pids=pids)}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    errnos, text, again = json.loads(done.stdout)
    assert again is None
    return Said(errnos, text)


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_a_seccomp_filter_leads_to_cpu_time(number: int) -> None:
    said = provoke(FILTERED.format(number=number))
    assert said.errnos == [number]
    assert said.line.startswith(f"job 12: speed in {BLIND}: ")


@counts_software
def test_one_without_privilege_counts_threads_of_its_own() -> None:
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) != 2:
        pytest.skip("kernel.perf_event_paranoid is not 2")
    said = provoke(UNPRIVILEGED, cgroup=hierarchy())
    assert said == Said([errno.EACCES], f"job 12: speed in tier 1, counters by threads: {LIMIT}")


@counts_software
def test_one_without_privilege_does_not_count_the_threads_of_others() -> None:
    said = provoke(UNPRIVILEGED, pids="[1]")
    assert said.errnos == [errno.EACCES]
    assert said.line.startswith(f"job 12: speed in {BLIND}: kernel.perf_event_paranoid or ")


@counts_software
def test_without_file_descriptors_there_are_no_counters() -> None:
    # One is free, and our own thread's question leaves it free; the second of two threads has none.
    second = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    said = provoke(f"{FEW_FILES.format(number=4)}\n{second}")
    assert said.errnos == [errno.EMFILE]
    assert said.line.startswith(f"job 12: speed in {BLIND}: no file descriptors are left")


@counts_software
def test_a_folder_that_is_no_cgroup_leads_to_the_threads(tmp_path: Path) -> None:
    said = provoke("", cgroup=tmp_path)
    assert said == Said(
        [errno.EBADF],
        "job 12: speed in tier 1, counters by threads: this folder is no cgroup (EBADF)",
    )


@counts_software
@pytest.mark.parametrize(
    "folder", [Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup/gone-since")]
)
def test_a_cgroup_that_perf_does_not_follow_leads_to_the_threads(folder: Path) -> None:
    if not folder.name.startswith("gone") and not folder.is_dir():
        pytest.skip("there is no such hierarchy here")
    said = provoke("", cgroup=folder)
    assert said == Said(
        [errno.ENOENT], f"job 12: speed in tier 1, counters by threads: {NO_CGROUP}"
    )


@counts_software
def test_a_process_that_has_ended_leaves_nothing_to_count(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    task = tmp_path / str(ended.pid) / "task" / str(ended.pid)
    task.mkdir(parents=True)
    (tmp_path / str(ended.pid) / "stat").write_text(f"{ended.pid} (true) S 1 {'0 ' * 18}\n")
    asked: list[int] = []
    attempt = begin(None, [ended.pid], events=CLOCK, proc=tmp_path, syscall=listening(asked))
    assert errno.ESRCH in asked
    assert tell(attempt) == ["job 12: speed in tier 1, counters by threads"]


def listening(heard: list[int]) -> Syscall:
    """Return the true call, which writes down what it was refused."""

    def syscall(attr: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
        try:
            return perf_event_open(attr, pid, cpu, leader, flags)
        except OSError as refused:
            heard.append(refused.errno or 0)
            raise

    return syscall


def test_what_this_machine_offers_is_what_perf_says() -> None:
    """The kernel's answer on our own thread: a PMU's events together, or each with its reason."""
    machine_ = offered()
    for event in (Event.INSTRUCTIONS, Event.CYCLES):
        refused = machine_[event]
        assert refused is None or refused.then is Then.NO_COUNTERS


# The choice itself.

REFUSED = (CannotCount(errno.ENOENT, "instructions", Way.THREADS),)


def test_a_change_is_told_once_each_way() -> None:
    counted, blind = choose(Way.CGROUP, ()), choose(None, REFUSED)
    seen = [None, counted, counted, blind, blind, counted]
    told = [line("7", a, b) for a, b in pairwise(seen) if b]
    assert told == [
        "job 7: speed in tier 1, counters by cgroup",
        None,
        f"job 7: speed in {BLIND} (it was tier 1): no PMU here offers this event (ENOENT)",
        None,
        "job 7: speed in tier 1, counters by cgroup (it was tier 3)",
    ]
