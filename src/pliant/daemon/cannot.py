"""Which shapes of a request a waiting job cannot be changed to here, and why, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pliant.cycle.gate import can_become
from pliant.daemon.answers import CannotRow
from pliant.grammar import shapes
from pliant.model import Abilities, Job, JobState, Kind, Partition, Shape, shape_text

MOST_SHAPES = 8
"""How many shapes are named for one reason."""

GIVE_UP_GPUS = (
    "a waiting job cannot give up its GPUs here: that takes Slurm 24.11 or later and the dummy "
    "GRES nogpu on every node"
)
TAKE_GPUS = "a waiting job cannot be given GPUs here"
SHARES = "a waiting job cannot go from a share of a GPU to whole GPUs, or back"
OTHERWISE = (
    "as the job is written the batch system cannot change it to that, or no node could ever give it"
)


def cannot_rows(
    job: Job, abilities: Abilities, partitions: Iterable[Partition] = ()
) -> tuple[CannotRow, ...]:
    """Return the shapes that a flagged waiting job asked for and cannot be changed to.

    None for a job whose shape is not changed at all: that is another answer.
    """
    spec = job.spec
    left = job.frozen or spec is None or spec.pinned or job.state is not JobState.WAITING
    if left or spec is None or not spec.request.is_moldable:
        return ()
    by_reason: dict[str, list[Shape]] = {}
    own = [one for one in partitions if one.name in job.partitions]
    for shape in _out_of_reach(job, shapes(spec.request, spec.own or job.shape)):
        reason = _beyond_limits(job, shape, own) or _reason(job.shape, shape, abilities)
        by_reason.setdefault(reason, []).append(shape)
    return tuple(CannotRow(_named(some), reason) for reason, some in by_reason.items())


def beyond_reach(job: Job, abilities: Abilities, partitions: Iterable[Partition] = ()) -> str:
    """Return why a job carries no shape that it asks for and can be changed to none; else ""."""
    rows, spec = cannot_rows(job, abilities, partitions), job.spec
    if not rows or spec is None or set(job.shapes) - {job.shape}:
        return ""
    if job.shape in shapes(spec.request, spec.own or job.shape):
        return ""
    return f"it cannot become {', '.join(rows[0].shapes)}: {rows[0].reason}"


def _out_of_reach(job: Job, asked: tuple[Shape, ...]) -> Iterator[Shape]:
    reach = {job.shape, *job.shapes}
    return (shape for shape in asked if shape not in reach)


def _beyond_limits(job: Job, shape: Shape, partitions: Iterable[Partition]) -> str:
    """Return what of all queues where it may run keeps a shape from a job; "" for nothing."""
    broken = [
        one.limits.why_not(shape.nodes, job.demand(shape)) or one.keeps_from(shape.nodes)
        for one in partitions
    ]
    return broken[0] if broken and all(broken) else ""


def _reason(carried: Shape, shape: Shape, abilities: Abilities) -> str:
    if can_become(carried, shape, abilities):
        return OTHERWISE
    if shape.kind is Kind.CPU:
        return GIVE_UP_GPUS
    return TAKE_GPUS if carried.kind is Kind.CPU else SHARES


def _named(some: list[Shape]) -> tuple[str, ...]:
    more = len(some) - MOST_SHAPES
    names = [shape_text(shape) for shape in some[:MOST_SHAPES]]
    return (*names, f"and {more} more") if more > 0 else tuple(names)
