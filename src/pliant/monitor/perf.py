"""Count what threads and cgroups execute: perf_event_open(2), by ctypes.

The events of one thread, or of one cgroup on one CPU, are a group: the kernel puts all of them on
the PMU at once or none, so their ratios hold (instructions per cycle), and one read returns all of
them. Where others want the PMU too, the kernel takes turns and says for how long the group was on
it; what was counted between two reads is then scaled by that share, as perf(1) does. Instructions
and cycles are those in user space: the job's own work. Reading them as their owner needs no
privilege up to kernel.perf_event_paranoid 2.

Needs nothing beyond the standard library, Linux, and x86-64 or AArch64.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pliant.monitor.refusals import CannotCount, Then, Way

# (attr, pid or cgroup's descriptor, cpu, leader's descriptor, flags) → descriptor, or OSError.
Syscall = Callable[[bytes, int, int, int, int], int]

_NUMBERS = {"x86_64": 298, "aarch64": 241}
# linux/perf_event.h: struct perf_event_attr, the 64 bytes of its first version.
_ATTR = struct.Struct("=IIQQQQQIIQ")
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1, 1 << 1, 1 << 5, 1 << 6
_TIME_ENABLED, _TIME_RUNNING, _GROUP = 1, 2, 8
_PID_CGROUP, _CLOEXEC = 4, 8
_IOC_ENABLE = 0x2400
_TRIES = 10  # to open a thread's group, some 40 µs, without a clone by it meanwhile


class Event(Enum):
    """What is counted: perf's name, type and config."""

    INSTRUCTIONS = ("instructions", 0, 1)
    CYCLES = ("cycles", 0, 0)
    TASK_CLOCK = ("task-clock", 1, 1)  # ns on a CPU; the kernel counts it without a PMU

    def __init__(self, label: str, kind: int, config: int) -> None:
        self.label = label
        self.kind = kind
        self.config = config


@dataclass(frozen=True, slots=True)
class Reading:
    """What was counted since the counters were opened.

    A count is None where the kernel never had the group on a PMU: not counted, which is not zero.
    `enabled_ns` and `running_ns`: for how long it should and could count, summed over all groups.
    """

    counts: Mapping[Event, int | None]
    enabled_ns: int
    running_ns: int


def perf_event_open(attr: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
    """Return a counter's file descriptor; raises OSError (perf_event_open(2))."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"{platform.machine()}: x86_64 or aarch64 is expected")
    fd: int = _libc.syscall(number, attr, pid, cpu, leader, flags)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return fd


_libc = ctypes.CDLL(None, use_errno=True)


class Group:
    """The counters of one thread, or of one cgroup on one CPU."""

    def __init__(self, fds: Sequence[int], events: Sequence[Event]) -> None:
        self._fds = fds
        self._events = events
        self._form = struct.Struct(f"={3 + len(events)}Q")
        self._raw = [0] * (2 + len(events))  # ns enabled, ns running, a count of each event
        self._counts = [0] * len(events)

    def read(self) -> Reading:
        """Return what was counted since the group was opened, scaled where the PMU was shared."""
        _, *raw = self._form.unpack(os.read(self._fds[0], self._form.size))
        enabled, running, *counted = (new - old for new, old in zip(raw, self._raw, strict=True))
        if running:  # else it had no turn: the next that it has will stand for this time too
            scaled = [n * enabled // running for n in counted]
            self._counts = [old + new for old, new in zip(self._counts, scaled, strict=True)]
            self._raw = raw
        never = raw[0] > raw[1] == 0
        counts = {e: None if never else n for e, n in zip(self._events, self._counts, strict=True)}
        return Reading(counts, raw[0], raw[1])

    def is_whole(self) -> bool:
        """Tell whether all that was cloned so far has all events (Linux 6.6 and later tell)."""
        try:
            os.read(self._fds[0], self._form.size)
        except ChildProcessError:
            return False
        return True

    def close(self) -> None:
        """Count no longer."""
        for fd in self._fds:
            os.close(fd)


def of_thread(
    tid: int,
    events: Sequence[Event],
    *,
    inherit: bool = False,
    syscall: Syscall = perf_event_open,
) -> Group:
    """Count a thread (0: this one); with `inherit` also all that it clones from now on.

    What it clones after the first event was opened and before the last has only some of them, or
    has taken the first along (the kernel swaps the equal counters of a clone and its parent rather
    than switch them): the group is then opened anew. Raises CannotCount.
    """
    where = (tid, -1, _CLOEXEC)
    if not inherit:
        return _open(events, Way.THREADS, where, 0, syscall)
    for _ in range(_TRIES):
        try:
            group = _open(events, Way.THREADS, where, _INHERIT, syscall)
        except CannotCount as refused:
            if refused.errno != errno.EINVAL or refused.event == events[0].label:
                raise
            continue
        if group.is_whole():
            return group
        group.close()
    raise CannotCount(errno.ECHILD, events[0].label, Way.THREADS)


def of_cgroup(
    folder: Path,
    cpus: Iterable[int],
    events: Sequence[Event],
    *,
    syscall: Syscall = perf_event_open,
) -> list[Group]:
    """Count a cgroup and all below it: one group for each CPU that is online.

    Raises CannotCount.
    """
    groups: list[Group] = []
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as missing:
        raise CannotCount(missing.errno or 0, events[0].label, Way.CGROUP) from missing
    offline = None
    try:
        for cpu in cpus:
            where = (descriptor, cpu, _PID_CGROUP | _CLOEXEC)
            try:
                groups.append(_open(events, Way.CGROUP, where, 0, syscall))
            except CannotCount as refused:
                if refused.then is not Then.LEAVE_OUT:
                    raise
                offline = refused
        if offline and not groups:
            raise offline
    except CannotCount:
        close(groups)
        raise
    finally:
        os.close(descriptor)
    return groups


def total(groups: Iterable[Group], events: Sequence[Event]) -> Reading:
    """Return the sum of all groups' readings; a count is None if any group's is."""
    readings = [group.read() for group in groups]
    columns = {event: [reading.counts[event] for reading in readings] for event in events}
    return Reading(
        {
            event: None if None in counts else sum(n or 0 for n in counts)
            for event, counts in columns.items()
        },
        sum(reading.enabled_ns for reading in readings),
        sum(reading.running_ns for reading in readings),
    )


def close(groups: Iterable[Group]) -> None:
    """Close all of them."""
    for group in groups:
        group.close()


def online_cpus(sysfs: Path = Path("/sys")) -> list[int]:
    """Return the numbers of the CPUs that are online, of a list such as ``0-3,8``.

    Raises OSError.
    """
    text = (sysfs / "devices/system/cpu/online").read_text().strip()
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [cpu for part in ends for cpu in range(part[0], part[-1] + 1)]


def _open(
    events: Sequence[Event], way: Way, where: tuple[int, int, int], bits: int, syscall: Syscall
) -> Group:
    """Open a group at `where` (pid or descriptor, cpu, flags), then let all of it count at once."""
    pid, cpu, flags = where
    fds: list[int] = []
    for event in events:
        leads = not fds
        try:
            fds.append(
                syscall(_attr(event, bits, leads=leads), pid, cpu, -1 if leads else fds[0], flags)
            )
        except OSError as refused:
            for fd in fds:
                os.close(fd)
            raise CannotCount(refused.errno or 0, event.label, way) from refused
    fcntl.ioctl(fds[0], _IOC_ENABLE, 0)
    return Group(fds, events)


def _attr(event: Event, bits: int, *, leads: bool) -> bytes:
    """Return perf_event_attr: the leader waits for its group, the others for their leader."""
    reads = _TIME_ENABLED | _TIME_RUNNING | _GROUP
    bits |= _EXCLUDE_KERNEL | _EXCLUDE_HV | (_DISABLED if leads else 0)
    return _ATTR.pack(event.kind, _ATTR.size, event.config, 0, 0, reads, bits, 0, 0, 0)
