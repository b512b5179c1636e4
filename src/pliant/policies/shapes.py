"""Choosing among a job's shapes without looking at what is free."""

from __future__ import annotations

from typing import Literal

from pliant.model import Job, Shape
from pliant.placement import Option, Profile
from pliant.speedup import run_time_s

Fixed = Literal["own", "largest", "smallest", "best"]
"""Which one shape a rigid policy gives to a job: what its owner wrote without Pliant, its largest,
its smallest, or the one that runs it fastest."""


def allowed(job: Job) -> tuple[Shape, ...]:
    """Return the shapes that a job may run as now."""
    return job.shapes or (job.shape,)


def base_shape(job: Job, possible: tuple[Shape, ...] = ()) -> Shape:
    """Return what a waiting job carries: what its user wrote, or else its largest shape.

    ``possible``: those of its shapes that the nodes could ever hold; () where that is not known.
    A job submitted with one shape allowed and another written waits as it is; one whose owner has
    given it a new request since waits as that says.
    """
    shapes = allowed(job)
    own = job.spec.own if job.spec is not None else None
    if own is not None and own in (possible or shapes):
        return own
    renewed = job.spec is not None and job.spec.renewed
    return job.shape if len(shapes) == 1 and not renewed else largest(possible or shapes)


def largest(shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the most GPUs; of equal ones that on the fewest nodes."""
    return max(shapes, key=lambda shape: (shape.amount, -shape.nodes, shape))


def smallest(shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the fewest GPUs; of equal ones that on the fewest nodes."""
    return min(shapes, key=lambda shape: (shape.amount, shape.nodes, shape))


def fastest(job: Job, shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the shortest run time; of equal ones the smallest."""
    return min(shapes, key=lambda shape: (run_time_s(job, shape), shape.amount, shape))


class FixedShapes:
    """The one shape that a rigid policy gives to each job, worked out once for equal jobs."""

    def __init__(self, which: Fixed) -> None:
        self._which = which
        self._known: dict[object, tuple[object, Option | None]] = {}

    def of(self, job: Job, profile: Profile) -> Option | None:
        """Return the shape with its need.

        None where the nodes could not hold it, or the batch system refused it.
        """
        if len(profile.options) == 1:
            return profile.options[0]
        key = (profile, id(job.spec), id(job.shape), job.time_limit_s)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = ((job.spec, job.shape), self._choose(job, profile))
        return known[1]

    def is_of_all(self, profile: Profile) -> bool:
        """Whether all jobs of a profile get the same shape."""
        return len(profile.options) == 1 or self._which in ("largest", "smallest")

    def _choose(self, job: Job, profile: Profile) -> Option | None:
        possible = profile.shapes
        if not possible:
            return None
        match self._which:
            case "own":
                chosen = base_shape(job, possible)
            case "largest":
                chosen = largest(possible)
            case "smallest":
                chosen = smallest(possible)
            case "best":
                chosen = fastest(job, possible)
        return next((option for option in profile.options if option[0] == chosen), None)
