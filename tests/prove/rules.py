"""What may never be, whatever happens."""

from __future__ import annotations

from pliant.handover import OURS
from prove.world import JOB, RIVAL, World


class Wrong(AssertionError):
    """It is."""


def check(before: World, after: World) -> None:
    """Check that a move has lost nothing, let nobody slip in, and overruled nobody."""
    job, had = after.job, before.job
    if before.has_saved and job.state == "FAILED" != had.state and job.end_s > job.start_s:
        raise Wrong(f"FAILED after its checkpoint: {job}")
    if _runs(after, RIVAL) and not _runs(before, RIVAL) and _waits_for_its_place(before, after):
        raise Wrong(f"the rival is in its place: {job}")
    for name, value in after.said:
        if getattr(job, name) != value and (job.waits or job.state == "RUNNING"):
            raise Wrong(f"its owner said {name}={value}: {job}")
    if after.slurm.free() < 0:
        raise Wrong(f"two have the same GPUs: {after.slurm.jobs}")


def _runs(world: World, number: int) -> bool:
    return world.slurm.jobs[number].state == "RUNNING"


def _waits_for_its_place(before: World, after: World) -> bool:
    """Whether it has saved for a place that nobody but pliantd has given away."""
    waits = after.job.state in ("PENDING", "COMPLETING")
    return waits and before.has_saved and not after.free


def check_settled(world: World) -> None:
    """Check a moment in which pliantd has nothing to do any more."""
    job = world.job
    if world.has_saved and job.state == "FAILED":
        raise Wrong(f"FAILED after its checkpoint: {job}")
    if world.slurm.fences:
        raise Wrong(f"a reservation is left: {world.slurm.fences}")
    if _runs(world, JOB) and (job.priority in OURS or "pliant-" in job.comment):
        raise Wrong(f"it runs with what is ours: {job}")
