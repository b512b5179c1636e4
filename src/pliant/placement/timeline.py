"""When a shape fits at the earliest, from the time limits of what runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.placement.cells import Cell, Cells
from pliant.placement.needs import Need, State, find, freed, lesser
from pliant.placement.profiles import Option
from pliant.placement.scopes import Scope


@dataclass(frozen=True, slots=True)
class Release:
    """A running job gives back what it has on ``nodes`` at the end of its time limit."""

    at_s: float
    nodes: tuple[int, ...]
    need: Need


@dataclass(frozen=True, slots=True)
class Opening:
    """From ``at_s`` on a shape fits on ``places``; ``states``: what is free there then."""

    at_s: float
    places: tuple[int, ...]
    states: tuple[State, ...]


def opening(
    cells: Cells, scope: Scope, option: Option, releases: Iterable[Release], before_s: float
) -> Opening | None:
    """Return the earliest opening for a shape in a scope; None: not by ``before_s``.

    ``releases`` come in the order of their times. On nodes with claims, only what those leave free
    is counted.
    """
    search = _Search(cells, scope, option)
    for release in releases:
        if release.at_s > before_s:
            return None
        search.apply(release)
        if search.satisfied():
            return search.opening(release.at_s)
    return None


class _Search:
    def __init__(self, cells: Cells, scope: Scope, option: Option) -> None:
        self._cells, self._scope = cells, scope
        shape, self._need = option
        self._wanted = shape.nodes
        self._states: dict[int, State] = {}
        self._ready: list[int] = []  # nodes that fit only since a release
        self._now = [
            node
            for cell in cells.fitting(scope, self._need, float("inf"))
            for node in cell.nodes
            if node not in scope.excluded
        ]
        self._fits = set(self._now)

    def satisfied(self) -> bool:
        return len(self._fits) >= self._wanted and all(
            node in self._fits for node in self._scope.required
        )

    def apply(self, release: Release) -> None:
        for node in release.nodes:
            cell = self._cells.of.get(node)
            if cell is None or cell.kind not in self._scope.kinds:
                continue
            state = freed(cell.kind, self._state(node, cell), release.need)
            self._states[node] = state
            if node not in self._fits and node not in self._scope.excluded:
                self._look(node, cell, state)

    def _look(self, node: int, cell: Cell, state: State) -> None:
        if find(cell.kind, _under_claims(cell, state), self._need) is not None:
            self._fits.add(node)
            self._ready.append(node)

    def _state(self, node: int, cell: Cell) -> State:
        return self._states.get(node, cell.state)

    def opening(self, at_s: float) -> Opening:
        """The nodes that were waited for come first: what is free now stays free for others."""
        order = dict.fromkeys((*self._scope.required, *sorted(self._ready), *self._now))
        chosen = tuple(sorted(list(order)[: self._wanted]))
        cells = [self._cells.of[node] for node in chosen]
        states = (
            _under_claims(cell, self._state(node, cell))
            for node, cell in zip(chosen, cells, strict=True)
        )
        return Opening(at_s, chosen, tuple(states))


def _under_claims(cell: Cell, state: State) -> State:
    for _, left in cell.lefts:
        state = lesser(state, left)
    return state
