"""What is expected to be free on each node from now on: for policies that are told run times.

Running jobs are taken to end when their run times say so, not when their time limits would end
them (see :mod:`pliant.speedup`); what is over by then and still runs may end at any moment. Beside
them stands what a policy has booked: from when on, for how long, on which nodes. Nodes that will be
free in the same way share one :class:`Line`, which remembers what fits it.

Nothing here is a promise: a job starts only where it fits now (see :mod:`pliant.policies.desk`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pliant.model import Job
from pliant.placement import Free, Need, Option, Profile
from pliant.placement.needs import find, freed
from pliant.placement.pick import Places
from pliant.placement.scopes import Scope
from pliant.placement.states import NodeKind, Receipt, State, lesser, reduced
from pliant.policies.candidates import ENDLESS_S
from pliant.speedup import left_s, run_time_s

NEVER_S = float("inf")
OVERDUE_S = 1.0
"""How long a job is expected to go on that should be over already."""


class Opening(NamedTuple):
    """An option fits on ``places`` from ``at_s`` on, for as long as it was asked."""

    at_s: float
    places: Places


Pieces = tuple[tuple[float, State], ...]
"""What is free from each instant on, until the next; the last one stays."""


@dataclass(eq=False, slots=True)
class Line:
    """What will be free on nodes of one kind; equal ones are one object."""

    kind: NodeKind
    pieces: Pieces
    known: dict[tuple[Need, float, float], Receipt | None]

    def receipt(self, need: Need, at_s: float, run_s: float) -> Receipt | None:
        """Return what ``need`` would take from ``at_s`` on for ``run_s`` seconds; None: no room."""
        key = (need, at_s, run_s)
        try:
            return self.known[key]
        except KeyError:
            found = find(self.kind, self._least(at_s, at_s + run_s), need)
            self.known[key] = found
            return found

    def at(self, at_s: float) -> State:
        """Return what is free at an instant."""
        return next(state for since_s, state in reversed(self.pieces) if since_s <= at_s)

    def _least(self, from_s: float, to_s: float) -> State:
        """What is free all the time between two instants."""
        state = self.at(from_s)
        for since_s, later in self.pieces:
            if from_s < since_s < to_s:
                state = lesser(state, later)
        return state


class Outlook:
    """The nodes' lines, and what is booked on them."""

    def __init__(self, free: Free, cpu_speed: float) -> None:
        self.now_s = free.now_s
        self._known: dict[tuple[NodeKind, Pieces], Line] = {}
        self._lines: dict[int, Line] = {}
        pieces: dict[int, list[tuple[float, State]]] = {}
        kinds: dict[int, NodeKind] = {}
        for place in free.places_on(free.kinds()):
            cell = free.cell(place)
            kinds[place], pieces[place] = cell.kind, [(self.now_s, cell.state)]
        ends = ((end_s(job, self.now_s, cpu_speed), job.id, job) for job in free.snapshot.running)
        for at_s, _, job in sorted(ends, key=lambda end: end[:2]):
            places, need = free.held(job)
            for place in places:
                if place in pieces:
                    kind, state = kinds[place], pieces[place][-1][1]
                    left = kind.empty if job.whole_nodes else freed(kind, state, need)
                    pieces[place].append((at_s, left))
        for place, some in pieces.items():
            self._lines[place] = self._line(kinds[place], _tidy(some))

    def _line(self, kind: NodeKind, pieces: Pieces) -> Line:
        line = self._known.get((kind, pieces))
        if line is None:
            line = self._known[kind, pieces] = Line(kind, pieces, {})
        return line

    def earliest(
        self, profile: Profile, option: Option, run_s: float, from_s: float | None = None
    ) -> Opening | None:
        """Return the first opening for an option from ``from_s`` (now) on; None: never.

        Of the nodes where it fits those come first that have least left then.
        """
        start_s = self.now_s if from_s is None else from_s
        for at_s in self._instants(start_s):
            for scope in profile.scopes:
                places = self._pick(scope, option, at_s, run_s)
                if places is not None:
                    return Opening(at_s, places)
        return None

    def on(self, place: int, option: Option, run_s: float) -> float | None:
        """Return when an option fits on one node for the first time; None: never."""
        line = self._lines.get(place)
        if line is None:
            return None
        instants = (at_s for at_s, _ in line.pieces)
        return next((at for at in instants if line.receipt(option[1], at, run_s)), None)

    def book(self, option: Option, opening: Opening, run_s: float) -> None:
        """Take what an option needs in an opening found for it."""
        for place in opening.places:
            line = self._lines[place]
            receipt = line.receipt(option[1], opening.at_s, run_s)
            if receipt is not None:  # else it was taken otherwise than expected
                self._lines[place] = self._without(line, receipt, opening.at_s, run_s)

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """Book in between, and forget it afterwards."""
        lines = dict(self._lines)
        try:
            yield
        finally:
            self._lines = lines

    def _without(self, line: Line, receipt: Receipt, at_s: float, run_s: float) -> Line:
        until_s = at_s + run_s
        edges = sorted({at_s, until_s, *(since_s for since_s, _ in line.pieces)} - {NEVER_S})
        pieces = tuple(
            (edge, reduced(line.at(edge), receipt) if at_s <= edge < until_s else line.at(edge))
            for edge in edges
        )
        return self._line(line.kind, pieces)

    def _instants(self, from_s: float) -> list[float]:
        edges = {edge for line in set(self._lines.values()) for edge, _ in line.pieces}
        return sorted({from_s, *(edge for edge in edges if edge > from_s)})

    def _pick(self, scope: Scope, option: Option, at_s: float, run_s: float) -> Places | None:
        shape, need = option
        if not scope.allows(shape.nodes, need.cpus) or len(scope.required) > shape.nodes:
            return None
        barred = scope.excluded | scope.kept if at_s <= self.now_s else scope.excluded
        fitting = [
            place
            for place, line in self._lines.items()
            if line.kind in scope.kinds
            and place not in barred
            and line.receipt(need, at_s, run_s) is not None
        ]
        if len(fitting) < shape.nodes or not set(scope.required).issubset(fitting):
            return None
        fitting.sort(key=lambda place: (place not in scope.required, *self._rest(place, at_s)))
        return tuple(sorted(fitting[: shape.nodes]))

    def _rest(self, place: int, at_s: float) -> tuple[int, int, int, int]:
        cpus, mem, pools, _ = self._lines[place].at(at_s)
        gpus = sum(pool if isinstance(pool, int) else sum(pool) for pool in pools)
        return (gpus, cpus, mem, place)


def end_s(job: Job, now_s: float, cpu_speed: float) -> float:
    """Return when a running job is expected to end, always after now."""
    if job.progress > 0:
        at_s = now_s + left_s(job, job.shape, cpu_speed)
    else:
        at_s = job.start_s + run_time_s(job, job.shape, cpu_speed)
    return min(now_s + ENDLESS_S, max(now_s + OVERDUE_S, at_s))


def _tidy(pieces: Iterable[tuple[float, State]]) -> Pieces:
    """One piece to an instant: the last."""
    return tuple(dict(pieces).items())
