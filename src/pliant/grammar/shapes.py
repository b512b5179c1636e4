"""Which shapes a request allows, and which of its totals no shape can have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from pliant.model import Kind, Request, Shape


@lru_cache(maxsize=64)  # a request may allow thousands
def shapes(request: Request, own: Shape) -> tuple[Shape, ...]:
    """Return the allowed shapes, smallest first; always with ``own`` where nothing is asked.

    What the request does not name is as in ``own``, the shape written without Pliant. Totals that
    do not divide over a number of nodes are left out for that number (see :func:`dropped`).
    Equal totals stand in order of fewer nodes, and GPU shapes after CPU shapes.
    """
    if not request.is_moldable:
        return (own,)
    kinds = request.kinds or (own.kind,)
    found: list[Shape] = []
    for nodes in request.nodes or (own.nodes,):
        if Kind.CPU in kinds:
            found.append(Shape(nodes, 0, kind=Kind.CPU))
        for gpu_type in request.gpu_types or (own.gpu_type,):
            for total in _totals(request, own, nodes):
                shape = _shape(total, nodes, gpu_type)
                if shape is not None:
                    found += [replace(shape, kind=kind) for kind in kinds if kind is not Kind.CPU]
    return tuple(sorted(set(found), key=_order)) or (own,)


def no_larger(some: Iterable[Shape], own: Shape) -> tuple[Shape, ...]:
    """Return those of ``some`` shapes that are no more of anything than ``own``, nor on a node.

    Another kind or type of GPU is more of that. Where ``own`` is not among them, the smallest in
    its place.
    """
    found = tuple(some)
    bound = own if own in found else min(found, key=_order, default=own)
    return tuple(shape for shape in found if _is_within(shape, bound))


def _is_within(shape: Shape, bound: Shape) -> bool:
    return (
        (shape.kind, shape.gpu_type) == (bound.kind, bound.gpu_type)
        and shape.amount <= bound.amount
        and shape.nodes <= bound.nodes
        and Fraction(shape.gpus, shape.share) <= Fraction(bound.gpus, bound.share)
    )


def dropped(request: Request, own: Shape) -> tuple[Fraction, ...]:
    """Return the totals in ``request.gpus`` that no allowed shape has."""
    kept = {shape.amount for shape in shapes(request, own)}
    return tuple(total for total in request.gpus if total not in kept)


def _totals(request: Request, own: Shape, nodes: int) -> tuple[Fraction, ...]:
    if request.gpus:
        return request.gpus
    if own.gpus:
        return (Fraction(own.gpus * nodes, own.share),)
    return (Fraction(nodes),)  # type=gpu on a job written without GPUs: one on each node


def _shape(total: Fraction, nodes: int, gpu_type: str) -> Shape | None:
    if total < 1:
        return Shape(1, 1, total.denominator, gpu_type=gpu_type) if nodes == 1 else None
    if total.numerator % nodes:
        return None
    return Shape(nodes, total.numerator // nodes, gpu_type=gpu_type)


def _order(shape: Shape) -> tuple[int, int, int, Shape]:
    """By the amount of GPUs, in whole numbers: there may be thousands of shapes."""
    if shape.is_share:
        return (1, -shape.share, 1, shape)
    total = shape.nodes * shape.gpus
    return (2 if total else 0, total, shape.nodes, shape)
