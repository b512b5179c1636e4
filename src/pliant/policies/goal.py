"""What a running job should become, or a waiting one start as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.model import Job, JobState, Kind, Shape, Snapshot
from pliant.placement.giving_up import certain_holders


@dataclass(frozen=True, slots=True)
class Goal:
    """What a job should have: the first of ``shapes`` that can be placed."""

    job: Job
    shapes: tuple[Shape, ...]
    reason: str
    tasks: int = 1  # of an array


Goals = Mapping[str, Goal]
"""By job; a running job without one stays as it is."""


def movable(snapshot: Snapshot) -> list[Job]:
    """Return the running jobs that may be given another amount of GPUs, the first come first."""
    found = (
        job
        for job in snapshot.running
        if len(job.shapes) > 1
        and job.state is JobState.RUNNING
        and job.shape.kind is not Kind.CPU
        and not job.whole_nodes
    )
    return sorted(certain_holders(snapshot, found), key=arrival)


def arrival(job: Job) -> tuple[float, str]:
    """Order jobs by when they came: no plan changes that."""
    return (job.submit_s, job.id)
