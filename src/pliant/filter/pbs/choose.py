"""Which of a submission's shapes it gets: one that fits right now, or the one to wait with.

The rules are those of the filter for Slurm (:mod:`pliant.filter.choose`), on less knowledge: what
the state file says of a queue. Shares of a GPU, shapes with all cores of a node, and requests for
more shapes than can be looked at while a server waits are left to pliantd.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from pliant.filter.pbs.state import Ground, Room, State
from pliant.filter.pbs.written import Written, known_own, meant_shape
from pliant.grammar.shapes import no_larger, shapes
from pliant.model.footprints import ALL_CORES, Demand
from pliant.model.requests import Request
from pliant.model.shapes import Kind, Shape

MAX_LOOKED_AT = 64
"""The most combinations of totals, numbers of nodes and types of GPU that are looked at."""


@dataclass(frozen=True, slots=True)
class Case:
    """A request, what was written beside it, and the shapes that the queue's nodes could give."""

    request: Request
    written: Written
    own: Shape | None
    possible: tuple[Shape, ...]

    def demand(self, shape: Shape) -> Demand:
        """Return what ``shape`` takes on each node."""
        return self.written.footprint.demand(shape, self.request.cores)


def case_of(request: Request, written: Written, ground: Ground, type_resource: str) -> Case:
    """Return the case of a request, as far as the queue's nodes are known."""
    meant = meant_shape(written, request)
    most = max((kind.gpus for kind in ground.kinds), default=0)
    within = _within(request, meant, most)
    case = Case(request, written, known_own(written, request), ())
    if meant.is_share:
        return case
    if prod(max(1, len(n)) for n in (within.gpus, within.nodes, within.gpu_types)) > MAX_LOOKED_AT:
        return case
    allowed = shapes(within, meant)
    possible = tuple(
        shape
        for shape in allowed
        if not shape.is_share
        and (shape.nodes == 1 or not written.old)
        and (not shape.gpu_type or type_resource)
        and _is_writable(case.demand(shape))
        and _fits(shape, case.demand(shape), ground.kinds)
    )
    return replace(case, possible=possible)


def _is_writable(demand: Demand) -> bool:
    """Whether a chunk can say it: as many cores to each task, in a number that is known here."""
    return demand.cpus != ALL_CORES and demand.cpus % demand.tasks == 0


def _within(request: Request, meant: Shape, most: int) -> Request:
    """Leave out the totals that are beyond all that the queue has: there may be thousands."""
    nodes = max(request.nodes or (meant.nodes,))
    kept = tuple(total for total in request.gpus if total <= nodes * most)
    return replace(request, gpus=kept or request.gpus[:1])


def _fits(shape: Shape, demand: Demand, rooms: Iterable[Room]) -> bool:
    found = 0
    for room in rooms:
        alike = shape.gpu_type in ("", room.gpu_type)
        if alike and room.gpus >= demand.gpus and room.cpus >= demand.cpus:
            found += room.nodes if room.mem_mib >= demand.mem_mib else 0
    return found >= shape.nodes


def waiting_shape(case: Case, state: State) -> Shape | None:
    """Return the shape to wait with: the own one, else the nearest to it, else the largest.

    None: none of its shapes is known to be possible, and the job stays as it was written.
    """
    if not case.possible or case.own in case.possible:
        return case.own
    if case.own is None:
        choose = min if state.careful else max
        return choose(case.possible, key=lambda shape: (shape.amount, -shape.nodes, shape))
    own = case.own
    return min(case.possible, key=lambda shape: (*_distance(shape, own), shape))


def _distance(shape: Shape, own: Shape) -> tuple[bool, Fraction, int]:
    return (
        shape.kind is not own.kind,
        abs(shape.amount - own.amount),
        abs(shape.nodes - own.nodes),
    )


def shape_now(
    case: Case, base: Shape, state: State, ground: Ground, until_s: float, *, fresh: bool
) -> Shape | None:
    """Return the best shape that a job which may run until ``until_s`` could start with now.

    Never more than the owner wrote where that may be beyond a limit, or where others were submitted
    since the state was written (``fresh`` is false): they may have what seemed free.
    """
    if not state.molds:
        return None
    rooms = [room for room in ground.rooms if not room.until_s or until_s <= room.until_s]
    some = case.possible
    if state.careful or not fresh:
        some = no_larger(some, case.own or base)
    fitting = [shape for shape in some if _fits(shape, case.demand(shape), rooms)]
    with_gpu = [shape for shape in fitting if shape.kind is not Kind.CPU]
    speed = dict(case.request.throughput)
    return max(
        with_gpu or fitting,
        key=lambda shape: (speed.get(shape, 0.0), shape.amount, -shape.nodes, shape),
        default=None,
    )
