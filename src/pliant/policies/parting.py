"""Who leaves a pair that is too slow, on a real cluster.

Of two that run together at less than ``least``, by more than measuring errs, the later one goes,
if it is malleable, its program can be asked for a checkpoint and its protected time is over; else
the earlier one. It goes to a node that is idle and on which nobody who waits is to start, or is
expected by the batch system before the job that leaves would be done: it would else stand before
the first of those, or save and have nowhere to go. And only where both together gain more by it,
until the first of them ends, than its restart costs. Else two stay together to the end of one.
"""

from __future__ import annotations

from collections.abc import Iterable

from pliant.model import Job, JobState, Node, Snapshot, Speeds
from pliant.placement import limit_s
from pliant.plan import Plan, Reshape

PAIR = 2
"""How many share a node: what was measured of two says nothing of three."""
MARGIN = 0.05
"""So much below ``least`` a pair is slow: what is measured wavers."""
GO_ON_S = 10.0
"""Longer than a job takes from its checkpoint to its next line, 6.7 s at most as measured.

Slurm's bf_interval does not count here: the end of a fence starts a pass (see pliant.handover).
"""


def partings(snapshot: Snapshot, least: float, plan: Plan) -> tuple[Reshape, ...]:
    """Return who leaves which pair, to go on alone; ``plan``: who starts or is to start where."""
    idle = _idle(snapshot, plan)
    on: dict[str, list[Job]] = {}
    for job in snapshot.running:
        for name in job.nodes:
            on.setdefault(name, []).append(job)
    table = snapshot.company.table
    found: list[Reshape] = []
    for jobs in on.values():
        speeds = table.get(frozenset(job.id for job in jobs)) if len(jobs) == PAIR else None
        shared = all(job.shares and job.colocates and stays(job) for job in jobs)
        if speeds is not None and shared and total(speeds) < least - MARGIN:
            gains_s = (PAIR - total(speeds)) * (min(j.end_s for j in jobs) - snapshot.now_s)
            found += _parting(snapshot, jobs, idle, gains_s)
    return tuple(found)


def _idle(snapshot: Snapshot, plan: Plan) -> list[Node]:
    """The nodes where nothing runs or is on its way to, and nobody who waits is to start."""
    taken = {name for job in snapshot.running for name in (*job.nodes, *job.next_nodes)}
    taken |= {name for start in plan.starts for nodes in start.all_nodes for name in nodes}
    taken |= {name for claim in plan.claims for name in claim.nodes}
    return [node for node in snapshot.nodes if node.up and node.name not in taken]


def _parting(
    snapshot: Snapshot, jobs: list[Job], idle: list[Node], gains_s: float
) -> Iterable[Reshape]:
    for job in sorted(jobs, key=_since, reverse=True):
        if not _may_leave(job) or gains_s <= _costs_s(job):
            continue
        kept = expected_nodes(snapshot.waiting, snapshot.now_s + limit_s(job)) if idle else ()
        fit = (node for node in idle if node.name not in kept and _could_run(job, node))
        place = next(fit, None)
        if place is not None:
            idle.remove(place)
            other = next(one.id for one in jobs if one.id != job.id)
            speeds = snapshot.company.table[frozenset(one.id for one in jobs)]
            words = f"it is parted from job {other}: {told(speeds)}"
            return [Reshape(job, job.shape, (place.name,), words)]
    return []


def _costs_s(job: Job) -> float:
    """What leaving costs a job at most: as long as it may save, or its last restart took."""
    return max(job.grace_s, job.restart_s) + GO_ON_S


def _could_run(job: Job, node: Node) -> bool:
    """Whether an idle node is like the one that the job has."""
    return job.features <= node.features and node.cpus == job.demand(job.shape).cpus


def expected_nodes(waiting: Iterable[Job], before_s: float) -> frozenset[str]:
    """Return the nodes on which the batch system expects to start waiting jobs until then."""
    return frozenset(
        name
        for job in waiting
        if job.eligible and job.expected_s < before_s
        for name in job.expected_nodes
    )


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
    each = ", ".join(f"job {job} at {speed:.2f}" for job, speed in sorted(speeds.items()))
    return f"together they do {total(speeds):.2f} of what one does alone ({each})"
