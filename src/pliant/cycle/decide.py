"""One decision: what the policy says, and which waiting jobs are changed for it.

A waiting job carries the request that its user wrote, or else its largest shape, and is changed
only when another shape can start now, or when its owner allows the carried one no longer. So a
start at another shape than the carried one is a change, and a job that carries something else and
cannot start is changed back.
The same snapshot always gives the same plan; once its changes are made there are no more.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from pliant.cycle.bounds import own_of, own_stands
from pliant.cycle.gate import (
    can_become,
    carries_ours,
    excluded,
    goes_back,
    is_grown,
    partitions_off,
    view,
)
from pliant.cycle.kept import decided
from pliant.cycle.running import let_through
from pliant.model import UNMARKED, Job, Shape, Snapshot
from pliant.placement.profiles import Profiles
from pliant.plan import Mark, Mold, Plan, Policy, Start
from pliant.policies import base_shape, largest

DEFAULT_LIMIT = 50
"""How many jobs one cycle changes at most."""


def cycle(snapshot: Snapshot, policy: Policy, limit: int = DEFAULT_LIMIT) -> Plan:
    """Return what can start now, what is kept, and the changes to make, ``limit`` at most.

    Changes that let a job start come first, in the order of the queue; then those of jobs that
    wait on, and last those of jobs that run. Where no batch system stands between (see
    :attr:`Snapshot.is_plain`) all jobs start as the plan says, and nothing needs to be changed.
    """
    seen = view(snapshot)
    plan = let_through(seen, decided(seen, policy))
    if seen.is_plain:
        return plan
    changes = (*_to_start(plan), *_back(seen, plan))
    actions = tuple(_mold(change) for change in changes[:limit])
    marks = _marks(seen, plan, actions)
    kept = marks[: limit - len(actions)]
    left = len(changes) - len(actions) + len(marks) - len(kept)
    plan = replace(plan.with_actions(actions, left), marks=kept)
    return _capped(plan, limit - len(actions) - len(kept)) if plan.changes_running else plan


def _marks(seen: Snapshot, plan: Plan, actions: tuple[Mold, ...]) -> tuple[Mark, ...]:
    """What a plan says of marks, those to take away first: of all that wait where it says nothing.

    A job that is changed has its mark changed by a later cycle.
    """
    changed = {mold.job.id for mold in actions}
    told = {mark.job.id for mark in plan.marks}
    left = [
        Mark(job, UNMARKED, "nobody pairs jobs here now")
        for job in seen.waiting
        if job.mark and job.id not in told and not plan.pairs
    ]
    marks = [mark for mark in (*left, *plan.marks) if mark.job.id not in changed]
    return tuple(sorted(marks, key=lambda mark: mark.mark != UNMARKED))


def _capped(plan: Plan, limit: int) -> Plan:
    """Leave no more than ``limit`` changes of running jobs: those that make room come first."""
    preempts = plan.preempts[:limit]
    reshapes = plan.reshapes[: limit - len(preempts)]
    left = len(plan.preempts) + len(plan.reshapes) - len(preempts) - len(reshapes)
    deferred = plan.deferred + left
    return replace(plan, preempts=preempts, reshapes=reshapes, deferred=deferred)


_Change = tuple[Job, Shape, Start | None]
"""A job, the shape that it gets, and the start that this is for; None: it waits."""


def _to_start(plan: Plan) -> Iterator[_Change]:
    """Changes of those that can start, at another shape than the one that they carry."""
    for start in plan.starts:
        if start.shape != start.job.shape:
            yield (start.job, start.shape, start)


def _back(seen: Snapshot, plan: Plan) -> Iterator[_Change]:
    """Changes back: those that wait after all carry what they should while they wait."""
    started = {start.job.id for start in plan.starts}
    bases, off = _Bases(seen), partitions_off(seen)
    for job in seen.waiting:
        if job.id in started:
            continue
        if excluded(job) and off.isdisjoint(job.partitions):
            yield from _to_base(job, bases.within(job))
        elif _is_ruled_out(job) and off.isdisjoint(job.partitions):
            yield from _to_base(job, own_of(job))
        elif len(job.shapes) > 1 and not job.limited and (job.eligible or goes_back(job, off)):
            base = bases.of(job)
            if base is job.shape or _reversible(seen, job, base):
                yield from _to_base(job, base)


def _is_ruled_out(job: Job) -> bool:
    """Whether a limit stops what Pliant made of it, its own or that of a job before it."""
    return is_grown(job) or (carries_ours(job) and job.shape not in job.shapes)


def _to_base(job: Job, base: Shape) -> Iterator[_Change]:
    """The change to what a job should carry; none to what the batch system refused."""
    if base is not job.shape and base != job.shape and base not in job.refused:
        yield (job, base, None)


def taken_back(snapshot: Snapshot, jobs: Container[str]) -> Iterator[Mold]:
    """Give back to each of these waiting jobs what its user wrote: Pliant acts on them no longer.

    Where the user has ruled that out since, the largest shape that the new request allows.
    ``jobs``: ids. What the batch system refused, or cannot change back, stays as it is.
    """
    bases = _Bases(snapshot)
    for job in snapshot.waiting:
        spec = job.spec
        if spec is None or spec.own is None or job.id not in jobs or not carries_ours(job):
            continue
        says = own_stands(job)
        shape = spec.own if says else bases.of(job)
        carries = "what its user wrote" if says else "the largest shape that its user allows now"
        left = shape == job.shape or shape in job.refused
        if not left and can_become(job.shape, shape, snapshot.abilities):
            yield Mold(job, shape, f"Pliant no longer acts here: it carries {carries}")


def _reversible(seen: Snapshot, job: Job, base: Shape) -> bool:
    """Whether the job could be changed again: else going back would cost it its other shapes."""
    return can_become(base, job.shape, seen.abilities)


def _mold(change: _Change) -> Mold:
    job, shape, start = change
    if start is not None:
        return Mold(job, shape, f"{shape} can start now: {start.reason}")
    own = job.spec is not None and job.spec.own == shape
    carries = "the shape its user wrote" if own else "its largest shape"
    why = "no shape can start now" if job.eligible else f"it waits for {job.reason}"
    why = f"its owner allows {job.shape} no longer" if excluded(job) else why
    return Mold(job, shape, f"{why}: while it waits it carries {carries}")


class _Bases:
    """What waiting jobs should carry, worked out once for jobs that are alike."""

    def __init__(self, seen: Snapshot) -> None:
        self._seen = seen
        self._profiles: Profiles | None = None
        self._known: dict[object, tuple[object, Shape]] = {}

    def of(self, job: Job) -> Shape:
        key = (id(job.shape), id(job.shapes), id(job.spec), job.refused)
        known = self._known.get(key)
        if known is None:
            kept = (job.shape, job.shapes, job.spec)
            known = self._known[key] = (kept, self._base(job))
        return known[1]

    def within(self, job: Job) -> Shape:
        """For a job that carries what its owner excludes: of the same kind where there is a choice.

        Else it would lose the shapes that it could not be changed to from there.
        """
        base, abilities = self.of(job), self._seen.abilities
        if can_become(base, job.shape, abilities):
            return base
        kept = [s for s in self._possible(job) if can_become(s, job.shape, abilities)]
        return largest(tuple(kept)) if kept else base

    def _base(self, job: Job) -> Shape:
        base = base_shape(job)
        return base if base == job.shape else base_shape(job, self._possible(job))

    def _possible(self, job: Job) -> tuple[Shape, ...]:
        if self._profiles is None:
            self._profiles = Profiles(self._seen)
        return self._profiles.of(job).shapes
