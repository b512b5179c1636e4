"""One moldable submission, and the shapes that this site could ever give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pliant.filter.view import View
from pliant.filter.written import Written
from pliant.grammar import shapes
from pliant.model import Kind, Request, Shape


@dataclass(frozen=True, slots=True)
class Case:
    """A submission, its request, and its shapes: allowed by the owner, and possible here."""

    submission: Mapping[str, str]
    view: View
    request: Request
    written: Written
    allowed: tuple[Shape, ...]
    possible: tuple[Shape, ...]

    @classmethod
    def of(
        cls, submission: Mapping[str, str], view: View, request: Request, written: Written
    ) -> Case:
        names = submission.get("partition", "")
        footprint = written.footprint
        own = written.own or unwritten(request, written)
        allowed = shapes(_within(request, own, view.most_gpus(names)), own)
        possible = tuple(
            shape
            for shape in allowed
            if view.ever(
                names,
                footprint.demand(shape, request.cores),
                shape.nodes,
                request.gpu_mem_mib,
            )
            and (not shape.is_share or _whole_share(view, names, shape))
        )
        return cls(submission, view, request, written, allowed, possible)


def _within(request: Request, own: Shape, most: int) -> Request:
    """Leave out the totals that are beyond all that a site has: there may be thousands."""
    nodes = max(request.nodes or (own.nodes,))
    kept = tuple(total for total in request.gpus if total <= nodes * most)
    return replace(request, gpus=kept or request.gpus[:1])


def unwritten(request: Request, written: Written) -> Shape:
    """The own shape of a job that asks for no GPU, as far as it is known."""
    nodes = max(1, written.nodes)
    if request.gpus or request.gpu_types or {Kind.GPU, Kind.BOTH} & set(request.kinds):
        return Shape(nodes, 1)
    return Shape(nodes, 0, kind=Kind.CPU)


def _whole_share(view: View, names: str, shape: Shape) -> bool:
    shards = view.shards(names, shape.gpu_type)
    return bool(shards) and shards % shape.share == 0


def has_cpu(some: tuple[Shape, ...]) -> bool:
    """Whether one of them is a CPU shape."""
    return any(shape.kind is Kind.CPU for shape in some)
