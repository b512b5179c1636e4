"""What a plan leaves, and whether a running job could go on in it, or its guest start."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pliant.cycle.gate import view
from pliant.cycle.kept import kept_first
from pliant.model import Job, Shape, Snapshot
from pliant.placement import Free, limit_s
from pliant.placement.giving_up import settled, without
from pliant.plan import Plan, Start


def leftover(snapshot: Snapshot, plan: Plan, behind: str = "") -> Free:
    """Return what a plan leaves free: its starts taken, its claims kept.

    And what the batch system keeps for all who wait, or for those before the job ``behind``.
    Where Slurm puts a share on a node, or which GPUs of several types it gives to a job that names
    none, is its own choice: the larger shares and those that name a type are placed first, and one
    that finds no GPU so is left out.
    """
    free = _after_starts(snapshot, plan)
    for claim in plan.claims:
        free.claim(claim.job, (claim.shape,), claim.reason)
    started = {start.job.id for start in plan.starts}
    before = takewhile(lambda job: job.id != behind, snapshot.waiting)
    for job, nodes in kept_first(job for job in before if job.id not in started):
        free.keep_whole(job, nodes)
    return free


def _after_starts(snapshot: Snapshot, plan: Plan) -> Free:
    free = Free(view(snapshot))
    for start in sorted(plan.starts, key=_largest_first):
        _take(free, start)
    return free


def has_room(snapshot: Snapshot, plan: Plan, job: Job, shape: Shape) -> bool:
    """Whether a running job could go on as ``shape`` now, in place of what it has.

    Beside what else runs, also what others are on their way to, what a plan starts, and what is
    kept for those who are next; until the end of ``job``'s time limit from now on.
    """
    running = tuple(_as_it_is(one) if one.id == job.id else one for one in snapshot.running)
    free = leftover(settled(replace(snapshot, running=running)), plan)
    own, _ = free.held(job)
    option = (shape, free.need(job, shape))
    return free.room(job, option, (job,), first=(own[: shape.nodes],)) is not None


def could_follow(snapshot: Snapshot, plan: Plan, guest: Job, job: Job) -> bool:
    """Whether a guest could start now were a running job gone that makes room for it.

    As its ``next_shape``, where that was said. Beside what else runs, what others are on their way
    to, and what a plan starts. Where the job runs it has its turn before all that wait: what is
    kept for them is no less its room there. It is elsewhere for those before it.
    """
    running = tuple(_as_it_is(one) if one.id == job.id else one for one in snapshot.running)
    seen = settled(replace(snapshot, running=running))
    others = tuple(start for start in plan.starts if start.job.id != guest.id)
    free, shape = _after_starts(seen, replace(plan, starts=others)), guest.next_shape or guest.shape
    option, (own, _) = (shape, free.need(guest, shape)), free.held(job)
    places = [own[: shape.nodes]] if shape.nodes > 1 else [(place,) for place in own]
    if free.has_room_on(guest, option, (job,), places):
        return True
    free = leftover(seen, _before(snapshot, plan, guest), behind=guest.id)
    return free.room(guest, option, (job,)) is not None


def starts_anyway(snapshot: Snapshot, plan: Plan, guest: Job) -> bool:
    """Whether a plan starts a guest in what is free by now, as the batch system will, too.

    That starts all those first that are before it and fit.
    """
    planned = {one.job.id for one in plan.starts}
    start = next((one for one in plan.starts if one.job.id == guest.id), None)
    if start is None:
        return False
    free = leftover(settled(snapshot), _before(snapshot, plan, guest), behind=guest.id)
    for job in takewhile(lambda job: job.id != guest.id, snapshot.waiting):
        for _ in range(job.tasks_waiting if job.eligible and job.id not in planned else 0):
            nodes = free.fit(job, job.shape)
            if nodes is None:
                break
            free.take(job, job.shape, nodes)
    return free.fit(guest, start.shape) is not None


def kept_from(snapshot: Snapshot, plan: Plan, job: Job, running: str, shape: Shape) -> set[str]:
    """Return the nodes that are kept for others, where a job could start as ``shape``.

    ``job``: the one that runs or ran, ``running``, or its guest as it waited at first, for which
    those alone are others that are before it. Of its partitions a job that runs shows but one: all
    count.
    """
    others, ahead = plan, snapshot.waiting
    if job.id == running:
        job = replace(job, partitions=tuple(one.name for one in snapshot.partitions))
    else:
        others = _before(snapshot, plan, job)
        ahead = tuple(takewhile(lambda one: one.id != job.id, ahead))
    end_s, own = snapshot.now_s + limit_s(job), (job.id, running)
    kept = [
        *((one.job, snapshot.now_s, nodes) for one in others.starts for nodes in one.all_nodes),
        *((one.job, one.at_s, one.nodes) for one in others.claims),
        *((one, one.expected_s, one.expected_nodes) for one in ahead if one.eligible),
    ]
    nodes = {
        node for one, at_s, nodes in kept if at_s < end_s and one.id not in own for node in nodes
    }
    gone = [one for one in snapshot.running if one.id == running]
    free = Free(view(settled(without(snapshot, gone))))
    return {node for node in nodes if free.may_be_on(job, shape, node)}


def _before(snapshot: Snapshot, plan: Plan, guest: Job) -> Plan:
    """A plan but for a guest's own start, with the claims of those alone that are before it."""
    before = {job.id for job in takewhile(lambda job: job.id != guest.id, snapshot.waiting)}
    starts = tuple(start for start in plan.starts if start.job.id != guest.id)
    claims = tuple(claim for claim in plan.claims if claim.job.id in before)
    return replace(plan, starts=starts, claims=claims)


def could_start(
    snapshot: Snapshot, plan: Plan, job: Job, shape: Shape, nodes: tuple[str, ...] = ()
) -> bool:
    """Whether a running job could start as ``shape`` now beside what it has, as another would.

    ``nodes``: on these; none: anywhere.
    """
    running = tuple(_as_it_is(one) if one.id == job.id else one for one in snapshot.running)
    free = leftover(settled(replace(snapshot, running=running)), plan)
    return free.fits_on(job, shape, nodes) if nodes else free.fit(job, shape) is not None


def _as_it_is(job: Job) -> Job:
    return replace(job, next_shape=None, next_nodes=()) if job.next_shape is not None else job


def _largest_first(start: Start) -> tuple[int, bool, str]:
    return (start.shape.share, not start.shape.gpu_type, start.job.id)


def _take(free: Free, start: Start) -> None:
    for nodes in start.all_nodes:
        if free.fits_on(start.job, start.shape, nodes):
            free.take(start.job, start.shape, nodes)
