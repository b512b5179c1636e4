"""Why a job runs, waits, or would start as it would: every shape tried, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pliant.cycle.beside import beside, may_share
from pliant.cycle.decide import DEFAULT_LIMIT, cycle
from pliant.cycle.gate import view, why_left
from pliant.cycle.leftover import leftover
from pliant.cycle.running import why_stays
from pliant.errors import BadInput
from pliant.model import Job, JobState, Shape, Snapshot, is_task_of, jobs_text
from pliant.placement import Free, why_not
from pliant.plan import Claim, Mold, Plan, Policy, Reshape, Start
from pliant.policies import allowed, in_full

NOT_PAID = "all jobs together would be done no earlier, as far as their run times are known"


@dataclass(frozen=True, slots=True)
class Tried:
    """One shape: whether it fits what the others leave, why not, and when at the earliest.

    ``nodes``: where it would start. ``earliest_s`` is now for a shape that fits, None where no
    opening is in sight.
    """

    shape: Shape
    fits: bool
    why_not: str
    earliest_s: float | None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one cycle thinks about one job.

    ``left``: why its shape is not changed, "" where it may be. ``before``: the claims of others
    that stand before it. ``start``, ``claim``, ``action``: what the plan has for the job itself.
    ``says``: the decision in one sentence.
    """

    job: Job
    policy: str
    left: str
    tried: tuple[Tried, ...]
    before: tuple[Claim, ...]
    start: Start | None
    claim: Claim | None
    action: Mold | None
    deferred: bool
    says: str


def explain(
    snapshot: Snapshot, policy: Policy, job_id: str, limit: int = DEFAULT_LIMIT
) -> Explanation:
    """Explain what one cycle decides about one job.

    Raises BadInput for a job that the snapshot does not have.
    """
    plan = cycle(snapshot, policy, limit)
    unpaid = _unpaid(snapshot, policy, plan, limit)
    for job in view(snapshot).waiting:
        if job.id == job_id:
            found = _waiting(snapshot, plan, job, policy.name)
            return found if found.start else replace(found, says=found.says + _smaller(unpaid))
    for job in snapshot.running:
        if job.id == job_id:
            found = _running(job, policy.name, snapshot)
            found = replace(found, says=found.says + beside(snapshot, job))
            return replace(found, says=found.says + _unchanged(unpaid, job))
    raise BadInput(f"job {job_id!r}: it neither waits nor runs; see `squeue` for those that do")


def _unpaid(snapshot: Snapshot, policy: Policy, plan: Plan, limit: int) -> tuple[Reshape, ...]:
    """What would be done with running jobs if nobody asked whether it pays."""
    full = in_full(policy)
    if full is None or plan.reshapes:
        return ()
    return cycle(snapshot, full, limit).reshapes


def _smaller(unpaid: tuple[Reshape, ...]) -> str:
    shrink = [one.job.id for one in unpaid if one.shape.amount < one.job.shape.amount]
    if not shrink:
        return ""
    return f"; {jobs_text(shrink)} could be made smaller for those that wait, but {NOT_PAID}"


def _unchanged(unpaid: tuple[Reshape, ...], job: Job) -> str:
    shapes = [one.shape for one in unpaid if one.job.id == job.id]
    return f"; it could go on as {shapes[0]}, but {NOT_PAID}" if shapes else ""


def molded_from(job: Job) -> str:
    """Return what to say after a reason of a job that carries what Pliant set; "" for others."""
    own = job.spec.own if job.spec is not None else None
    return f"; its own shape is {own}" if own is not None and own != job.shape else ""


def _running(job: Job, policy: str, snapshot: Snapshot) -> Explanation:
    verb = "is ending" if job.state is JobState.ENDING else "runs"
    stays = why_stays(job, snapshot.abilities.preempts, now_s=snapshot.now_s) or _kept(
        job, snapshot
    )
    says = f"it {verb} as {job.shape}{'; ' + stays if stays else ''}{_class(job)}"
    return Explanation(job, policy, "it does not wait", (), (), None, None, None, False, says)


def _kept(job: Job, snapshot: Snapshot) -> str:
    """Return why no job is given another shape where a malleable one runs; "" where one is."""
    kept = (one.keeps_shapes for one in snapshot.partitions if one.name in job.partitions)
    why = next(filter(None, kept), "")
    resizes = job.spec is not None and job.spec.request.malleable is not None
    return f"it is not resized: {why}" if why and resizes else ""


def _class(job: Job) -> str:
    """What to say of a job that is not of the class that its owner said; "" of others."""
    return f"; it is no trial job here but an ordinary one: {job.ordinary}" if job.ordinary else ""


def _room(snapshot: Snapshot, job: Job) -> str:
    """Who makes room for a job meanwhile, in words; "" where nobody does."""
    jobs = (*snapshot.running, *snapshot.waiting)
    names = {job.id, *(one.room_for for one in jobs if is_task_of(one.room_for, job))}
    givers = jobs_text(one.id for one in jobs if one.room_for in names)
    return f"; room is made for it by {givers}" if givers else ""


def _waiting(snapshot: Snapshot, plan: Plan, job: Job, policy: str) -> Explanation:
    others = replace(
        plan,
        starts=tuple(start for start in plan.starts if start.job.id != job.id),
        claims=tuple(claim for claim in plan.claims if claim.job.id != job.id),
    )
    original = next(waiting for waiting in snapshot.waiting if waiting.id == job.id)
    free = leftover(snapshot, others, behind=job.id)
    start = next((start for start in plan.starts if start.job.id == job.id), None)
    claim = next((claim for claim in plan.claims if claim.job.id == job.id), None)
    action = next((action for action in plan.actions if action.job.id == job.id), None)
    changes = start is not None and start.shape != job.shape
    deferred = changes and action is None
    explanation = Explanation(
        job=original,
        policy=policy,
        left=why_left(snapshot, original),
        tried=tuple(_try(free, original, shape) for shape in allowed(original)),
        before=others.claims,
        start=start,
        claim=claim,
        action=action,
        deferred=deferred,
        says="",
    )
    says = _says(explanation, job, snapshot.now_s) + _room(snapshot, job)
    return replace(explanation, says=says + _class(job) + may_share(original))


def _try(free: Free, job: Job, shape: Shape) -> Tried:
    reason = why_not(free, job, shape)
    found = free.earliest(job, shape)
    if found is None:
        return Tried(shape, False, reason, None)
    return Tried(shape, not reason, reason, found[0], found[1])


def _says(explanation: Explanation, seen: Job, now_s: float) -> str:
    if explanation.start is not None:
        shape, nodes = explanation.start.shape, ", ".join(explanation.start.nodes)
        later = "; the change is left for a later cycle" if explanation.deferred else ""
        return f"it can start now as {shape} on {nodes}{later}: {explanation.start.reason}"
    if explanation.claim is not None:
        claim = explanation.claim
        minutes = max(0, round((claim.at_s - now_s) / 60))
        nodes = ", ".join(claim.nodes)
        return f"it waits, and {nodes} is kept for it as {claim.shape} in {minutes} min"
    if not seen.eligible:
        return f"it does not take part in the queue: {explanation.job.reason or 'held'}"
    return "it waits: no shape fits what is free for it"
