"""Who leaves a pair that is too slow, on a real cluster.

Of two that run together at no more than ``least`` the later one goes, if it is malleable, its
program can be asked for a checkpoint and its protected time is over; else the earlier one. Two of
which neither can go stay together to the end of one.
"""

from __future__ import annotations

from pliant.model import Job, JobState, Snapshot, Speeds
from pliant.plan import Reshape

PAIR = 2
"""How many share a node: what was measured of two says nothing of three."""


def partings(snapshot: Snapshot, least: float) -> tuple[Reshape, ...]:
    """Return who leaves which pair, to go on alone."""
    on: dict[str, list[Job]] = {}
    for job in snapshot.running:
        for name in job.nodes:
            on.setdefault(name, []).append(job)
    table = snapshot.company.table
    found = []
    for jobs in on.values():
        speeds = table.get(frozenset(job.id for job in jobs)) if len(jobs) == PAIR else None
        shared = all(job.shares and job.colocates and stays(job) for job in jobs)
        if speeds is not None and shared and total(speeds) <= least:
            found += _parting(jobs, speeds)
    return tuple(found)


def _parting(jobs: list[Job], speeds: Speeds) -> list[Reshape]:
    for job in sorted(jobs, key=_since, reverse=True):
        if _may_leave(job):
            other = next(one.id for one in jobs if one.id != job.id)
            words = f"it is parted from job {other}: {told(speeds)}"
            return [Reshape(job, job.shape, (), words)]
    return []


def stays(job: Job) -> bool:
    """Whether nothing is about to change about a running job."""
    running = job.state is JobState.RUNNING
    return running and job.next_shape is None and not job.room_for


def _may_leave(job: Job) -> bool:
    """Whether a running job may be asked for a checkpoint now, and be requeued."""
    spec = job.spec
    malleable = spec is not None and spec.request.malleable is not None and not spec.pinned
    return malleable and job.grace_s > 0 and job.requeues and not job.frozen


def _since(job: Job) -> tuple[float, float, int, str]:
    """Since when a job is there: instants have whole seconds, numbers grow."""
    return (job.start_s, job.submit_s, len(job.id), job.id)


def total(speeds: Speeds) -> float:
    """Return the sum of speeds, without what rounding adds."""
    return round(sum(speeds.values()), 9)


def told(speeds: Speeds) -> str:
    """Return speeds in words."""
    each = ", ".join(f"{job} at {speed:.2f}" for job, speed in sorted(speeds.items()))
    return f"together they do {total(speeds):.2f} of what one does alone ({each})"
