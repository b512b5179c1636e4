"""Which running jobs policies may change, and which of these changes are let through.

A running job is changed only where its owner calls it malleable, and stopped only where it is
best-effort; never one that is frozen (as one that would lose its place to another while it holds
nothing, see :mod:`.bounds`) or pinned, or in a partition where Pliant is off, or that the
batch system would not requeue, or whose owner's max-resizes or min-run keep it. None is stopped
where the batch system itself ends jobs for others: two that do so undo each other's work. And none
grows onto a node on which the batch system expects to start a waiting job meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from pliant.model import Job, JobClass, JobState, Snapshot, why_rests
from pliant.placement import limit_s
from pliant.plan import Plan, Reshape

NO_REQUEUE = "the batch system would not requeue it (--no-requeue, -r n, or no batch job)"


def as_running(job: Job, off: frozenset[str], preempts: str = "", *, now_s: float = inf) -> Job:
    """Return a running job as policies see it: with its own shape alone where it may not change.

    ``off``: the partitions where Pliant is off; ``preempts``: as :attr:`Abilities.preempts`.
    Nor is a job asked for anything whose owner's max-resizes or min-run keep it at ``now_s``.
    """
    if why_rests(job, now_s):
        return replace(job, shapes=(job.shape,), preemptible=False, grace_s=0.0)
    if len(job.shapes) < 2 and not job.preemptible:
        return job
    free = _is_free(job) and off.isdisjoint(job.partitions)
    request = job.spec.request if job.spec is not None else None
    resizes = free and request is not None and request.malleable is not None
    stops = free and request is not None and request.job_class is JobClass.BEST_EFFORT
    stops = stops and not preempts
    if (resizes or len(job.shapes) < 2) and (stops or not job.preemptible):
        return job
    return replace(
        job,
        shapes=job.shapes if resizes else (job.shape,),
        preemptible=stops and job.preemptible,
    )


def _is_free(job: Job) -> bool:
    """Whether it runs, nothing is under way with it, and nobody keeps Pliant from it."""
    under_way = job.next_shape is not None or job.room_for
    pinned = job.spec is not None and job.spec.pinned
    kept = pinned or job.frozen or not job.requeues
    return job.state is JobState.RUNNING and not (under_way or kept)


def why_stays(job: Job, preempts: str = "", *, now_s: float = inf) -> str:
    """Return why a running job is not changed although its owner allows it; "" for all others.

    ``preempts``, ``now_s``: as for :func:`as_running`.
    """
    request = job.spec.request if job.spec is not None else None
    if request is None or job.state is not JobState.RUNNING:
        return ""
    resizes = request.malleable is not None
    stops = request.job_class is JobClass.BEST_EFFORT
    why = job.frozen or ("" if job.requeues else NO_REQUEUE) or why_rests(job, now_s)
    if why and (resizes or stops):
        kinds = {"resized": resizes, "preempted": stops}
        words = " nor ".join(kind for kind, applies in kinds.items() if applies)
        return f"it is {'neither' if resizes and stops else 'not'} {words}: {why}"
    return f"it is not preempted: {preempts}" if stops and preempts else ""


def let_through(seen: Snapshot, plan: Plan) -> Plan:
    """Return the plan without growth onto nodes that the batch system keeps for waiting jobs."""
    if not plan.reshapes or seen.is_plain:
        return plan
    starts = {start.job.id for start in plan.starts}
    kept_s: dict[str, float] = {}
    for job in seen.waiting:
        if job.eligible and job.id not in starts:
            for node in job.expected_nodes:
                kept_s[node] = min(kept_s.get(node, job.expected_s), job.expected_s)
    reshapes = tuple(r for r in plan.reshapes if not _grows_into(seen, r, kept_s))
    return replace(plan, reshapes=reshapes)


def _grows_into(seen: Snapshot, reshape: Reshape, kept_s: dict[str, float]) -> bool:
    """Whether it takes more on a kept node than the job has there, for longer than it is free."""
    job, end_s = reshape.job, seen.now_s + limit_s(reshape.job)
    less = reshape.shape.gpus * job.shape.share <= job.shape.gpus * reshape.shape.share
    return any(
        kept_s.get(node, end_s) < end_s and not (less and node in job.nodes)
        for node in reshape.nodes
    )
