"""What the kernel says of processes in /proc: their parents, their CPU time, their waiting.

Read with few system calls, since a node has hundreds of processes and each is looked at at every
tick; psutil would read the same files again for each question, and takes its root from a global.
A process that ends meanwhile is left out: that is no error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_PF_KTHREAD = 0x200000
_LONGEST = 65536
"""More than any file has that is read here in one part (bytes)."""


class Process(NamedTuple):
    """A line of /proc/PID/stat (proc_pid_stat(5)).

    ``own_s``: CPU seconds of all its threads, ended ones too. ``children_s``: of the children that
    ended and for which it has waited, and of theirs. ``started``: ticks since the host's start.
    """

    pid: int
    name: str
    parent: int
    session: int
    own_s: float
    children_s: float
    threads: int
    started: int
    rss_bytes: int


def read(path: str | Path) -> bytes:
    """Return a file of the kernel that comes in one part; empty where it is gone or forbidden."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(file, _LONGEST)
    except OSError:  # ESRCH: it ended between open and read
        return b""
    finally:
        os.close(file)


def processes(proc: Path) -> dict[int, Process]:
    """Return every process of the host by its number, but for most of the kernel's own threads.

    Raises OSError where ``proc`` itself cannot be listed.
    """
    skipped = _kernel_threads(proc)
    root = str(proc)
    pids = (int(name) for name in os.listdir(root) if name.isdecimal())  # noqa: PTH208  # hundreds
    found = (process(root, pid) for pid in pids if pid not in skipped)
    return {each.pid: each for each in found if each is not None}


def _kernel_threads(proc: Path) -> set[int]:
    """Return the children of kthreadd, of which a large node has more than of all else.

    In a container process 2 may be anybody's; the kernel's own has a flag that nobody can set.
    """
    fields = read(f"{proc}/2/stat").rpartition(b")")[2].split()
    if len(fields) > 6 and int(fields[6]) & _PF_KTHREAD:
        try:  # a list comes in several parts, which `read` is not for
            return set(map(int, Path(f"{proc}/2/task/2/children").read_bytes().split()))
        except OSError:  # a kernel without CONFIG_PROC_CHILDREN
            pass
    return set()


def process(proc: Path | str, pid: int) -> Process | None:
    """Return one process; None where it is gone."""
    return parse_stat(read(f"{proc}/{pid}/stat"))


def parse_stat(line: bytes) -> Process | None:
    """Parse /proc/PID/stat. A name may hold blanks and brackets: it ends at the last bracket."""
    head, end, tail = line.rpartition(b")")
    pid, _, name = head.partition(b" (")
    fields = tail.split()
    if not end or len(fields) < 22:
        return None
    user, system, children_user, children_system = map(int, fields[11:15])
    return Process(
        pid=int(pid),
        name=os.fsdecode(name),
        parent=int(fields[1]),
        session=int(fields[3]),
        own_s=(user + system) / TICKS_PER_S,
        children_s=(children_user + children_system) / TICKS_PER_S,
        threads=int(fields[17]),
        started=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def thread_times(proc: Path, of: Process) -> Iterator[tuple[int, float, float]]:
    """Yield each living thread: its number, how long it ran and how long it waited to run (s).

    From schedstat, which counts in nanoseconds (Linux: Documentation/scheduler/sched-stats); a
    kernel without it yields nothing.
    """
    for tid in _threads(proc, of):
        fields = read(f"{proc}/{of.pid}/task/{tid}/schedstat").split()
        if len(fields) >= 2:
            yield tid, int(fields[0]) / 1e9, int(fields[1]) / 1e9


def _threads(proc: Path, of: Process) -> list[int]:
    if of.threads == 1:  # one listing less for most processes
        return [of.pid]
    try:
        return sorted(map(int, os.listdir(f"{proc}/{of.pid}/task")))  # noqa: PTH208  # as above
    except OSError:
        return []


def program(proc: Path, pid: int) -> str:
    """Return the name of the program that a process runs; "" where that cannot be seen.

    It is the file's own name, which a process cannot choose as it can its title.
    """
    try:
        name = Path(f"{proc}/{pid}/exe").readlink().name
    except OSError:
        return ""
    return name.removesuffix(" (deleted)")


def title(proc: Path, pid: int) -> str:
    """Return what a process calls itself; it may say anything."""
    return read(f"{proc}/{pid}/cmdline").partition(b"\0")[0].decode(errors="replace")


def real_user(proc: Path, pid: int) -> int | None:
    """Return a process's real user id, which a set-user-ID program leaves its caller's."""
    for line in read(f"{proc}/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return None
