"""What each job should have, by a policy that is shown running jobs as if they waited."""

from __future__ import annotations

from dataclasses import replace

from pliant.model import Job, JobState, Kind, Shape, Snapshot
from pliant.placement.giving_up import settled, without
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.groups import sizes
from pliant.policies.steps import Goal, Goals, arrival


def as_if_waiting(snapshot: Snapshot, running: list[Job]) -> Desk:
    """Return a desk at which running jobs wait, before all others, and have nothing."""
    base = without(settled(snapshot), running)
    queue = (*map(_waiting, running), *snapshot.waiting)
    order = sorted(queue, key=arrival)
    return Desk(replace(base, waiting=queue), order)


def _waiting(job: Job) -> Job:
    shapes = job.shapes  # the same object where nothing is left out: jobs that share it are alike
    if any(shape.kind is Kind.CPU for shape in shapes):
        shapes = tuple(shape for shape in shapes if shape.kind is not Kind.CPU)
    return replace(
        job, state=JobState.WAITING, shapes=shapes, tasks_waiting=1, eligible=True, limited=False
    )


def goals_of(snapshot: Snapshot, desk: Desk, plan: Plan) -> Goals:
    """Turn what a policy would start at such a desk into what each job should have."""
    running = {job.id: job for job in snapshot.running}
    found: dict[str, Goal] = {}
    for start in plan.starts:
        job = running.get(start.job.id)
        if job is None:
            shapes = _or_else(desk, start.job, start.shape)
            found[start.job.id] = Goal(start.job, shapes, start.reason, start.tasks)
        elif start.shape.amount != job.shape.amount:
            found[job.id] = Goal(job, _towards(desk, start.job, start.shape), start.reason)
    return found


def _or_else(desk: Desk, job: Job, shape: Shape) -> tuple[Shape, ...]:
    """What a waiting job should start as, then what else it may be, smaller first."""
    of = sizes(desk.free.profile(job))
    level = next((at for at, (amount, _) in enumerate(of.levels) if amount == shape.amount), None)
    if shape.kind is Kind.CPU or level is None:
        return (shape,)
    return tuple(dict.fromkeys((shape, *(option[0] for _, option in of.from_level(level)))))


def _towards(desk: Desk, job: Job, shape: Shape) -> tuple[Shape, ...]:
    """What a running job should become, then what lies between that and what it is."""
    low, high = sorted((job.shape.amount, shape.amount))
    of = sizes(desk.free.profile(job))
    between = [
        option[0]
        for amount, options in of.levels
        if low <= amount <= high and amount != job.shape.amount
        for option in options
    ]
    between.sort(key=lambda other: abs(other.amount - shape.amount))
    return tuple(dict.fromkeys((shape, *between)))
