"""Which nodes a shape would get now: of those that it fits, the first in the cells' order."""

from __future__ import annotations

from itertools import islice

from pliant.placement.cells import Cells
from pliant.placement.needs import Need
from pliant.placement.scopes import Scope

Places = tuple[int, ...]


def pick(cells: Cells, scope: Scope, need: Need, nodes: int, bound: float) -> Places | None:
    """Return ``nodes`` nodes of a scope that ``need`` fits on now, by number; None: too few.

    ``bound``: when the last claim begins that the job would still run into.
    """
    if scope.required or scope.excluded or scope.kept:
        return _pick_among(cells, scope, need, nodes, bound)
    chosen: list[int] = []
    for cell in cells.fitting(scope, need, bound):
        chosen += cell.nodes[: nodes - len(chosen)]
        if len(chosen) == nodes:
            return tuple(chosen)
    return None


def _pick_among(cells: Cells, scope: Scope, need: Need, nodes: int, bound: float) -> Places | None:
    """The same where certain nodes are required or excluded."""
    chosen = list(scope.required)
    if len(chosen) > nodes or any(cells.of[p].receipt(need, bound) is None for p in chosen):
        return None
    if not scope.kept.isdisjoint(chosen):
        return None
    barred = scope.excluded.union(scope.kept, chosen)
    for cell in cells.fitting(scope, need, bound):
        allowed = (place for place in cell.nodes if place not in barred)
        chosen.extend(islice(allowed, nodes - len(chosen)))
    return tuple(chosen) if len(chosen) == nodes else None
