"""Whether changing running jobs pays: what all gain in time against what it costs.

A job that grows gains the difference of what is left of its run, and pays its restart. A job that
shrinks loses that difference and its restart; who waits for what it gives up gains: a waiting job
by being done earlier than if it waited for its opening, a running one by growing. Times to
completion are added up over all jobs concerned: what is compared is the sum of flow times.

The expected run is that of :mod:`pliant.speedup`, the cost of a restart is the job's ``restart_s``.
"""

from __future__ import annotations

from pliant.model import Job, Shape
from pliant.policies.desk import Desk
from pliant.speedup import left_s, run_time_s

ENDLESS_S = 1e12
"""For a job that makes no progress: more than any run, and still to be compared."""


class Gain:
    """Adds up what one decision gains and costs."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._gained_s = 0.0

    def growth_pays(self, job: Job, shape: Shape) -> bool:
        """Whether a job is done earlier as ``shape``, the change included."""
        return _left_s(job, job.shape) - _left_s(job, shape) > job.restart_s

    def grows(self, job: Job, shape: Shape) -> None:
        """Count a job that will grow into what others give up."""
        self._gained_s += _left_s(job, job.shape) - _left_s(job, shape) - job.restart_s

    def awaits(self, job: Job, shape: Shape, tasks: int) -> None:
        """Count tasks that will start on what others give up, before they keep an opening."""
        free = self._desk.free
        profile = free.profile(job)
        waits_s = min(
            self._desk.opening_s(job, profile, option) - free.now_s + _run_s(job, option[0])
            for option in profile.options
        )
        self._gained_s += tasks * (min(waits_s, ENDLESS_S) - _run_s(job, shape))

    def shrinks(self, job: Job, shape: Shape) -> None:
        """Count a job that gives something up."""
        self._gained_s -= _left_s(job, shape) - _left_s(job, job.shape) + job.restart_s

    def shrinking_pays(self) -> bool:
        """Whether all together are done earlier."""
        return self._gained_s > 0


def _left_s(job: Job, shape: Shape) -> float:
    return min(ENDLESS_S, left_s(job, shape))


def _run_s(job: Job, shape: Shape) -> float:
    return min(ENDLESS_S, run_time_s(job, shape))
