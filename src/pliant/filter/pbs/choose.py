"""Which of a submission's shapes it gets: one that is better than what it says, or that.

The rules are those of the filter for Slurm (:mod:`pliant.filter.choose`), on less knowledge: what
the state file says of a queue. GPUs may have come free since it was written, and a job that starts
smaller stays so for its life: what is worse than the owner wrote is left to pliantd, which looks
again, and so are shares of a GPU, shapes with all cores of a node, and requests for more shapes
than can be looked at while a server waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from pliant.filter.pbs.limits import Bounds
from pliant.filter.pbs.state import Ground, Room, State
from pliant.filter.pbs.written import Written, known_own, meant_shape, own_shape
from pliant.grammar.shapes import no_larger, shapes
from pliant.model.footprints import ALL_CORES, Demand
from pliant.model.limits import totals
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


def case_of(
    request: Request, written: Written, state: State, ground: Ground, bounds: Bounds
) -> Case:
    """Return the case of a request, as far as the queue's nodes are known.

    Where limits bound several jobs, PBS may refuse what is more of anything than was written.
    """
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
        and (not shape.gpu_type or state.type_resource)
        and _is_writable(case.demand(shape))
        and not bounds.limits.why_not(shape.nodes, case.demand(shape))
        and not (bounds.careful and _is_more(shape, case))
        and not (bounds.sets and shape.nodes > 1 and shape != meant)
        and _fits(shape, case.demand(shape), ground.kinds)
    )
    return replace(case, possible=possible)


def _is_more(shape: Shape, case: Case) -> bool:
    """Whether it is more of anything, in all, than was written."""
    own = own_shape(case.written)
    had = totals(own.nodes, case.written.footprint.demand(own))
    return any(many > had[name] for name, many in totals(shape.nodes, case.demand(shape)).items())


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


def waiting_shape(case: Case) -> Shape | None:
    """Return the shape to wait with: the own one, else the nearest to it, else the largest.

    None: none of its shapes is known to be possible, and the job stays as it was written.
    """
    if not case.possible or case.own in case.possible:
        return case.own
    if case.own is None:
        return max(case.possible, key=lambda shape: (shape.amount, -shape.nodes, shape))
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

    None where none is better than ``base``. Never one that is larger where others were submitted
    since the state was written (``fresh`` is false): they may have what seemed free.
    """
    if not state.molds:
        return None
    rooms = [room for room in ground.rooms if not room.until_s or until_s <= room.until_s]
    some = case.possible
    if not fresh:
        some = no_larger(some, case.own or base)
    least = _worth(case, base)
    better = (shape for shape in some if _worth(case, shape) > least)
    fitting = (shape for shape in better if _fits(shape, case.demand(shape), rooms))
    return max(fitting, key=lambda shape: (_worth(case, shape), shape), default=None)


def _worth(case: Case, shape: Shape) -> tuple[bool, float, Fraction, int]:
    speed = dict(case.request.throughput).get(shape, 0.0)
    return (shape.kind is not Kind.CPU, speed, shape.amount, -shape.nodes)
