"""What may never be, whatever happens."""

from __future__ import annotations

from pliant.handover import Outcome
from prove.world import RIVAL, Machine, World, Wrong, is_given_away


def check(machine: Machine, before: World, after: World) -> None:
    """Check that a move has lost nothing, let nobody slip in, and overruled nobody."""
    job, had = after.job, before.job
    if before.has_saved and after.has_saved and job.is_lost and not had.has_failed:
        raise Wrong(f"FAILED after its checkpoint: {job}")
    slips_in = _runs(after, RIVAL) and not _runs(before, RIVAL)
    if slips_in and _waits_for_its_place(machine, before, after):
        raise Wrong(f"the rival is in its place: {job}")
    if after.batch is not before.batch and machine.is_crowded(after):
        raise Wrong(f"two jobs have one GPU: {after.batch.jobs}")
    words = machine.wrong(before, after)
    if words:
        raise Wrong(words)
    for name, value in after.said:
        if (job.waits or job.runs) and not machine.stands(after, name, value):
            raise Wrong(f"its owner said {name}={value}: {job}")
    if is_given_away(had, job):
        raise Wrong(f"its program runs on what may be another's now: {job}")


def _runs(world: World, number: int) -> bool:
    return bool(world.batch.jobs[number].runs)


def _waits_for_its_place(machine: Machine, before: World, after: World) -> bool:
    """Whether it has saved for a place that nobody but pliantd has given away."""
    free = after.free or machine.has_lost_its_place(before)
    return after.job.is_between_runs and before.has_saved and not free


def check_undisturbed(world: World) -> None:
    """Check a moment to which nothing that went wrong has led: what was wanted is made, if saved."""
    outcome = world.store[-1].outcome
    if outcome.startswith(_NOT_MADE):  # the batch system's words may follow
        raise Wrong(f"nothing went wrong, and it was not made: {outcome}")


_NOT_MADE = (
    *(Outcome.AS_WAS, Outcome.CHANGED, Outcome.NOT_LAUNCHED),
    *(Outcome.REFUSED, Outcome.SLOW),
)


def check_settled(machine: Machine, world: World) -> None:
    """Check a moment in which pliantd has nothing to do any more."""
    job = world.job
    if world.has_saved and job.has_failed:
        raise Wrong(f"FAILED after its checkpoint: {job}")
    words = machine.left(world)
    if words:
        raise Wrong(words)
