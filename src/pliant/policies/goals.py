"""What each job should have, by a policy that is shown running jobs as if they waited."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace

from pliant.model import Job, JobState, Kind, Shape, Snapshot
from pliant.placement.giving_up import settled, without
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.goal import Goal, Goals, arrival
from pliant.policies.groups import sizes_of


def as_if_waiting(snapshot: Snapshot, running: list[Job]) -> Desk:
    """Return a desk at which running jobs wait, before all others, and have nothing."""
    base = without(settled(snapshot), running)
    on_gpus: dict[int, tuple[Shape, ...]] = {}  # once for jobs that share their shapes
    for job in running:
        if id(job.shapes) not in on_gpus:
            on_gpus[id(job.shapes)] = _on_gpus(job.shapes)
    waiting = [_waiting(job, on_gpus[id(job.shapes)]) for job in running]
    queue = (*waiting, *snapshot.waiting)
    order = sorted(queue, key=arrival)
    return Desk(replace(base, waiting=queue), order)


def _on_gpus(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The same object where nothing is left out: jobs that share it are alike."""
    left = tuple(shape for shape in shapes if shape.kind is not Kind.CPU)
    return shapes if len(left) == len(shapes) else left


def _waiting(job: Job, shapes: tuple[Shape, ...]) -> Job:
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
    of = sizes_of(desk.free, desk.free.profile(job))
    level = of.level_of(shape)
    if shape.kind is Kind.CPU or level is None:
        return (shape,)
    return (shape, *(option[0] for _, option in of.from_level(level) if option[0] != shape))


def _towards(desk: Desk, job: Job, shape: Shape) -> tuple[Shape, ...]:
    """What a running job should become, then what lies between that and what it is."""
    of = sizes_of(desk.free, desk.free.profile(job))
    low, high = sorted((job.shape.amount, shape.amount))
    first = bisect_left(of.amounts, float(low))
    last = bisect_right(of.amounts, float(high))
    levels = of.levels[first:last] if shape.amount == low else of.levels[first:last][::-1]
    between = (
        option[0] for amount, options in levels for option in options if amount != job.shape.amount
    )
    return (shape, *(other for other in between if other != shape))
