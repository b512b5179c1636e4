"""Why the kernel does not count, in words, and what follows from it. Pure.

Each errno of perf_event_open(2) that was met stands in `_REASONS` once for each way to count, for
the same errno says different things: by threads ENOENT means that no PMU offers the event; by a
cgroup it may also mean that this cgroup is not one perf can follow, and only the other way tells
which.
"""

from __future__ import annotations

import errno as numbers
import os
from enum import Enum, StrEnum

from pliant.errors import Unavailable


class Way(StrEnum):
    """How a job is counted."""

    CGROUP = "cgroup"  # the job's cgroup, on each CPU: nothing is missed
    THREADS = "threads"  # each thread of the job and all that it clones


class Then(Enum):
    """What follows from a refusal."""

    OTHER_WAY = "the next way to count is tried"
    LEAVE_OUT = "this thread or CPU has gone: it is left out, and nothing else changes"
    NO_COUNTERS = "the job's speed is measured without counters"


_SECCOMP = "a container's seccomp filter or security module forbids perf_event_open"
_SAME_EITHER_WAY = {
    numbers.EPERM: (Then.NO_COUNTERS, _SECCOMP),
    numbers.ENOSYS: (
        Then.NO_COUNTERS,
        "perf_event_open is missing: an old or foreign kernel, or a seccomp filter",
    ),
    numbers.EOPNOTSUPP: (Then.NO_COUNTERS, "the PMU does not support this event"),
    numbers.EBUSY: (Then.NO_COUNTERS, "another profiler holds the PMU"),
}
_REASONS = {
    Way.CGROUP: {
        **_SAME_EITHER_WAY,
        numbers.ENOENT: (
            Then.OTHER_WAY,
            "perf does not follow this cgroup: it has gone, is of another hierarchy, or waits "
            "for a controller in cgroup.subtree_control",
        ),
        numbers.EBADF: (Then.OTHER_WAY, "this folder is no cgroup"),
        numbers.EACCES: (
            Then.OTHER_WAY,
            "kernel.perf_event_paranoid leaves counting cgroups to the administrator",
        ),
        numbers.EMFILE: (
            Then.OTHER_WAY,
            "no file descriptors are left, one is needed for each CPU and event: raise LimitNOFILE",
        ),
        numbers.ENODEV: (Then.LEAVE_OUT, "the CPU is offline"),
    },
    Way.THREADS: {
        **_SAME_EITHER_WAY,
        numbers.ENOENT: (Then.NO_COUNTERS, "no PMU here offers this event"),
        numbers.ENODEV: (Then.NO_COUNTERS, "the CPU lacks what this event needs"),
        numbers.EACCES: (
            Then.NO_COUNTERS,
            "kernel.perf_event_paranoid or the thread's owner does not let us count it",
        ),
        numbers.EMFILE: (
            Then.NO_COUNTERS,
            "no file descriptors are left, one is needed for each thread and event: "
            "raise LimitNOFILE",
        ),
        numbers.ECHILD: (Then.NO_COUNTERS, "the thread clones faster than counters can be opened"),
        numbers.ESRCH: (Then.LEAVE_OUT, "the thread has ended"),
    },
}
_UNKNOWN = {Way.CGROUP: Then.OTHER_WAY, Way.THREADS: Then.NO_COUNTERS}


class CannotCount(Unavailable):
    """An event cannot be counted in one way: the errno, and why in words.

    `event` is perf's name of it: instructions, cycles, task-clock.
    """

    def __init__(self, errno: int, event: str, way: Way) -> None:
        self.errno = errno
        self.event = event
        self.way = way
        self.then, words = _REASONS[way].get(errno, (_UNKNOWN[way], os.strerror(errno)))
        self.why = f"{words} ({numbers.errorcode.get(errno, errno)})"
        super().__init__(f"{event} cannot be counted by {way}: {self.why}")
