"""Machines as perf sees them: this one's kernel, with software events where a PMU would be."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pliant.monitor import perf
from pliant.monitor.counting import offered
from pliant.monitor.perf import Event
from pliant.monitor.refusals import Way

PID_CGROUP = 4
counts_software = pytest.mark.skipif(
    offered()[Event.TASK_CLOCK] is not None, reason="perf_event_open is forbidden here"
)


def hierarchy() -> Path:
    """Return the hierarchy whose cgroups perf follows: cgroup2, or perf_event's own once mounted.

    Docker's service script mounts that, perhaps while these tests run. Skips where none can be written.
    """
    own = any(
        line.split()[0] == "perf_event" and line.split()[1] != "0"
        for line in Path("/proc/cgroups").read_text().splitlines()
    )
    for line in Path("/proc/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        follows = "perf_event" in options.split(",") if own else kind == "cgroup2"
        if follows and os.geteuid() == 0 and os.access(folder, os.W_OK):
            return Path(folder)
    pytest.skip("root and a hierarchy that perf follows and that can be written are needed")


@dataclass(frozen=True)
class Asked:
    """What the kernel is asked to count; `own`: our own thread, which is a question about it."""

    way: Way
    event: Event
    cpu: int
    own: bool


Refuse = Callable[[Asked], int]  # an errno, or 0 to count it


def machine(refuse: Refuse = lambda _: 0) -> perf.Syscall:
    """Return a kernel with a PMU that refuses as told: task-clock stands for what a PMU counts."""

    def syscall(attr: bytes, pid: int, cpu: int, leader: int, flags: int) -> int:
        kind, size, config = struct.unpack_from("=IIQ", attr)
        (event,) = (e for e in Event if (e.kind, e.config) == (kind, config))
        way = Way.CGROUP if flags & PID_CGROUP else Way.THREADS
        number = refuse(Asked(way, event, cpu, own=pid == 0 and way is Way.THREADS))
        if number:
            raise OSError(number, os.strerror(number))
        clock = Event.TASK_CLOCK
        head = struct.pack("=IIQ", clock.kind, size, clock.config)
        return perf.perf_event_open(head + attr[len(head) :], pid, cpu, leader, flags)

    return syscall


def refusing(way: Way, number: int) -> Refuse:
    """Refuse a job by this way, and nobody else."""
    return lambda asked: number if asked.way is way and not asked.own else 0


def lacking(number: int, *events: Event) -> Refuse:
    """Refuse these events to everybody, as a machine without a PMU for them does."""
    return lambda asked: number if asked.event in events else 0
