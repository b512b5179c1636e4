"""Choosing among a job's shapes without looking at what is free."""

from __future__ import annotations

from typing import Literal

from pliant.model import Job, Shape
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
    """
    shapes = allowed(job)
    own = job.spec.own if job.spec is not None else None
    if own is not None and own in shapes:
        return own
    return job.shape if len(shapes) == 1 else largest(possible or shapes)


def largest(shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the most GPUs; of equal ones that on the fewest nodes."""
    return max(shapes, key=lambda shape: (shape.amount, -shape.nodes, shape))


def smallest(shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the fewest GPUs; of equal ones that on the fewest nodes."""
    return min(shapes, key=lambda shape: (shape.amount, shape.nodes, shape))


def fastest(job: Job, shapes: tuple[Shape, ...]) -> Shape:
    """Return the shape with the shortest run time; of equal ones the smallest."""
    return min(shapes, key=lambda shape: (run_time_s(job, shape), shape.amount, shape))


def fixed_shape(job: Job, which: Fixed, possible: tuple[Shape, ...]) -> Shape:
    """Return the one shape that a rigid policy considers, of those that the nodes could hold."""
    match which:
        case "own":
            return base_shape(job, possible)
        case "largest":
            return largest(possible or allowed(job))
        case "smallest":
            return smallest(possible or allowed(job))
        case "best":
            return fastest(job, possible or allowed(job))
