"""When a shape fits at the earliest, from the time limits of what runs and of what is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from pliant.placement.cells import Cells, Left
from pliant.placement.needs import Need, find, freed
from pliant.placement.profiles import Option
from pliant.placement.scopes import Scope
from pliant.placement.states import State, lesser, reduced


class Release(NamedTuple):
    """At ``at_s`` a job gives back what it has on these nodes; None: the end of a claim's job.

    ``whole``: it has all that is on them. ``job``: the id of one that runs.
    """

    at_s: float
    nodes: tuple[int, ...]
    need: Need | None
    whole: bool = False
    job: str = ""


@dataclass(frozen=True, slots=True)
class Opening:
    """From ``at_s`` on a shape fits on ``places``; ``states``: what is free there then."""

    at_s: float
    places: tuple[int, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A shape in a scope, for a job of a certain time limit."""

    scope: Scope
    option: Option
    limit_s: float


def opening(
    cells: Cells, wanted: Wanted, releases: Iterable[Release], before_s: float
) -> Opening | None:
    """Return the earliest opening after now; None: not by ``before_s``.

    ``releases`` come in the order of their times; all of one instant count before it is looked.
    A node with a claim is open before the claim to a job that ends by then, or needs no more than
    it leaves; and again when its job is over.
    """
    search = _Search(cells, wanted)
    for at_s, together in groupby(releases, key=attrgetter("at_s")):
        if at_s > before_s:
            return None
        for release in together:
            search.apply(release)
        found = search.found(at_s)
        if found is not None:
            return found
    return None


class _Search:
    def __init__(self, cells: Cells, wanted: Wanted) -> None:
        self._cells, self._scope, self._limit_s = cells, wanted.scope, wanted.limit_s
        shape, self._need = wanted.option
        self._nodes = shape.nodes
        self._states: dict[int, State] = {}
        self._claimed = [node for node in cells.claimed if self._usable(node)]
        self._now = [
            node
            for cell in cells.fitting(self._scope, self._need, -float("inf"))
            if not cell.lefts  # so that any bound would find it, and this one is remembered
            for node in cell.nodes
            if node not in self._scope.excluded
        ]
        self._open = dict.fromkeys(self._now)  # nodes without a claim that fit, in that order

    def _usable(self, node: int) -> bool:
        cell = self._cells.of.get(node)
        return (
            cell is not None and cell.kind in self._scope.kinds and node not in self._scope.excluded
        )

    def apply(self, release: Release) -> None:
        if release.need is None:
            return
        for node in release.nodes:
            if self._usable(node):
                cell = self._cells.of[node]
                before = self._states.get(node, cell.state)
                empty = cell.kind.empty if release.whole else None
                state = empty or freed(cell.kind, before, release.need)
                self._states[node] = state
                if not cell.lefts and node not in self._open and self._fits(node, state):
                    self._open[node] = None

    def _fits(self, node: int, state: State) -> bool:
        return find(self._cells.of[node].kind, state, self._need) is not None

    def found(self, at_s: float) -> Opening | None:
        if len(self._open) + len(self._claimed) < self._nodes:
            return None
        claimed = {node: self._under_claims(node, at_s) for node in self._claimed}
        fitting = [node for node, state in claimed.items() if self._fits(node, state)]
        if len(self._open) + len(fitting) < self._nodes:
            return None
        required = self._scope.required
        if not all(node in self._open or node in fitting for node in required):
            return None
        # The nodes that were waited for come first: what is free now stays free for others.
        waited = [node for node in self._open if node in self._states]
        order = dict.fromkeys((*required, *sorted(waited), *self._open, *fitting))
        chosen = tuple(sorted(list(order)[: self._nodes]))
        states = (claimed.get(node) or self._state(node) for node in chosen)
        return Opening(at_s, chosen, tuple(states))

    def _state(self, node: int) -> State:
        return self._states.get(node, self._cells.of[node].state)

    def _under_claims(self, node: int, at_s: float) -> State:
        """What is free on a node from ``at_s`` on for as long as the job runs."""
        state = self._state(node)
        for left in self._cells.of[node].lefts:
            if left.at_s < at_s + self._limit_s and at_s < left.until_s:
                state = _beside(state, left, at_s)
        return state


def _beside(state: State, left: Left, at_s: float) -> State:
    """What a claim leaves: of what is free by then, or once it has begun of what is free now."""
    if left.closed:
        return left.state
    return lesser(state, left.state) if at_s < left.at_s else reduced(state, left.receipt)
