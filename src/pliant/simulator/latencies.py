"""ANL, AQL and MIT: how jobs fare that may run on the cores or on the GPUs of nodes.

A job alone would run on the resource that is best for it, at once. What is beyond that is either
queuing, or that it was given another resource. A *resource* here is all cores, or all GPUs, of one
node; a job on both has both.

Source: Ravi et al. (paper 004), section IV-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pliant.model import Kind, Shape

Resource = tuple[str, str]
"""A node's name, and ``cpu`` or ``gpu``."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One job that has run. ``best_s``: how long it takes alone where it is fastest."""

    submit_s: float
    start_s: float
    end_s: float
    shape: Shape
    nodes: tuple[str, ...]
    best_s: float

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What it had."""
        match self.shape.kind:
            case Kind.CPU:
                sides: tuple[str, ...] = ("cpu",)
            case Kind.GPU:
                sides = ("gpu",)
            case Kind.BOTH:
                sides = ("cpu", "gpu")
        return tuple((node, side) for node in self.nodes for side in sides)


def completion_s(jobs: Sequence[Ran]) -> float:
    """Return CT, the total completion time: from the first submission to the last end."""
    return max(job.end_s for job in jobs) - min(job.submit_s for job in jobs)


def assignment_latency_s(jobs: Sequence[Ran]) -> float:
    """Return ANL, the average latency by non-optimal assignment: 0 where all ran at their best."""
    return sum(job.end_s - job.start_s - job.best_s for job in jobs) / len(jobs)


def queuing_latency_s(jobs: Sequence[Ran]) -> float:
    """Return AQL, the average delay in the queue."""
    return sum(job.start_s - job.submit_s for job in jobs) / len(jobs)


def most_idle_s(jobs: Sequence[Ran], resources: Iterable[Resource]) -> float:
    """Return MIT, for how long the least occupied of all ``resources`` was not used."""
    busy = dict.fromkeys(resources, 0.0)
    for job in jobs:
        for resource in job.resources:
            busy[resource] += job.end_s - job.start_s
    return completion_s(jobs) - min(busy.values())


def resources_of(nodes: Iterable[str]) -> tuple[Resource, ...]:
    """Return the resources of nodes."""
    return tuple((node, side) for node in nodes for side in ("cpu", "gpu"))
