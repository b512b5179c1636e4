"""The nodes by what is free on them: nodes in one cell are interchangeable.

A search looks at cells, not at nodes, and knows from then on which cells fit: a cell's state never
changes, nodes move between cells. What a take turns a cell into is remembered too. So a cycle
costs little more for ten thousand nodes than for a hundred.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from pliant.placement.needs import Need, find
from pliant.placement.scopes import Scope
from pliant.placement.states import NodeKind, Receipt, State, lesser, returned, taken, whole_gpus


class Left(NamedTuple):
    """What a claim leaves free on a node, from when on, until when its job is over at the latest,
    and what it takes. ``closed``: whatever it leaves free, nobody else starts on. ``job``: whose
    claim it is.
    """

    at_s: float
    until_s: float
    state: State
    receipt: Receipt
    closed: bool = False
    job: str = ""

    def taking(self, receipt: Receipt) -> Left:
        """What is left once another job that runs into the claim has taken something."""
        return self if self.closed else self._replace(state=taken(self.state, receipt))

    def returning(self, receipt: Receipt) -> Left:
        """What is left once such a job has given something back."""
        return self if self.closed else self._replace(state=returned(self.state, receipt))


Lefts = tuple[Left, ...]

_NEVER_S = float("inf")

Order = tuple[int, int, int, int, int, tuple[tuple[int, ...], ...], int]
"""How cells are searched: fewest whole GPUs, cores, memory first.

Then the kind of the earlier node, those with fewer claims, those with the fuller GPUs, and last the
older cell. So as far as nodes can be told apart, what was decided before makes no difference.
"""


class Cell:
    """The nodes of one kind in one state under the same claims."""

    __slots__ = ("after", "before", "gpus", "kind", "lefts", "nodes", "order", "receipts", "state")

    def __init__(self, kind: NodeKind, state: State, lefts: Lefts, rank: int, serial: int) -> None:
        """``rank``: of the kind, ``serial``: of the cell; both decide between equal cells."""
        self.kind = kind
        self.state = state
        self.lefts = lefts
        self.nodes: list[int] = []  # ascending
        self.gpus = whole_gpus(kind, state)
        gpus = tuple([(of,) if isinstance(of, int) else tuple(sorted(of)) for of in state[2]])
        gpus += tuple([tuple(sorted(mem)) for mem in state[3]])
        self.order: Order = (self.gpus, state[0], state[1], rank, len(lefts), gpus, serial)
        self.after: dict[tuple[Need, float], tuple[Receipt, Cell]] = {}
        self.before: dict[tuple[Receipt, float], Cell] = {}
        self.receipts: dict[tuple[Need, float], Receipt | None] = {}

    @property
    def available(self) -> Fraction:
        """The free GPUs of one node, parts counted as parts; none where no core is left."""
        total = Fraction(0)
        if self.state[0]:
            for pool, gpus in zip(self.kind.pools, self.state[2], strict=True):
                total += gpus if isinstance(gpus, int) else Fraction(sum(gpus), pool.shards)
        return total

    def receipt(self, need: Need, bound: float) -> Receipt | None:
        """Return what ``need`` would take here, under the claims that begin by ``bound``."""
        key = (need, bound if self.lefts else -_NEVER_S)
        try:
            return self.receipts[key]
        except KeyError:
            found = find(self.kind, self.effective(bound), need)
            self.receipts[key] = found
            return found

    def effective(self, bound: float) -> State:
        """What is free now and stays free under the claims that begin by ``bound``."""
        state = self.state
        for left in self.lefts:
            if left.at_s <= bound:
                state = lesser(state, left.state)
        return state


_MOST = 50_000
"""How many cells are remembered from one decision to the next."""
_FEW = 64
"""How often cells may be filled, beside four times for each node, before that is forgotten."""


@dataclass(slots=True)
class _Fitting:
    """The cells that fit one need in one scope; ``seen`` of the log were looked at."""

    seen: int = 0
    cells: list[tuple[Order, Cell]] = field(default_factory=list)
    members: set[Cell] = field(default_factory=set)


class Cells:
    """Every node's cell, and the search over them."""

    def __init__(self) -> None:
        self.of: dict[int, Cell] = {}
        self.vacant: dict[NodeKind, int] = {}  # whole free GPUs
        self.claimed: dict[int, None] = {}  # nodes with claims, as a set that keeps its order
        self._cells: dict[tuple[NodeKind, State, Lefts], Cell] = {}
        self._ranks: dict[NodeKind, int] = {}
        self._serial = 0
        self._filled: dict[Cell, None] = {}  # cells with nodes, in the order in which they got some
        self._log: list[Cell] = []  # cells in the order in which they were filled
        self._fitting: dict[tuple[Scope, Need, float], _Fitting] = {}  # under no claims
        self._bounded: dict[tuple[Scope, Need, float], _Fitting] = {}  # in this decision alone
        self._first: dict[int, Cell] = {}  # where nodes were before the decision that goes on
        self._passing: list[tuple[NodeKind, State, Lefts]] = []  # cells that it alone needs

    # --- from one decision to the next --------------------------------------------------------

    def restore(self) -> None:
        """Put every node back where it was, and forget the claims."""
        if self._first:
            for node, cell in self._first.items():
                if self.of[node] is not cell:
                    self._put(node, cell)
            self._first = {}
        if self.claimed:
            self.claimed.clear()
            for key in self._passing:
                del self._cells[key]
            self._passing.clear()
            self._bounded.clear()
        if len(self._cells) > _MOST:
            self.forget()
        elif len(self._log) > 4 * len(self.of) + _FEW:
            self._log = [cell for cell in dict.fromkeys(self._log) if cell.nodes]
            self._fitting, self._bounded = {}, {}

    def really(self, node: int) -> State:
        """Return what is free on a node, whatever the decision that goes on has done."""
        return self._first.get(node, self.of[node]).state

    def keep(self) -> None:
        """Take what was moved since for what is: another decision begins from there."""
        self._first = {}

    def forget(self) -> None:
        """Remember nothing but where the nodes are."""
        for cell in self._cells.values():  # also of those that go: they hold each other
            cell.after, cell.before, cell.receipts = {}, {}, {}
        self._cells = {key: cell for key, cell in self._cells.items() if cell.nodes}
        self._log = list(self._cells.values())
        self._fitting, self._bounded = {}, {}

    # --- the nodes ----------------------------------------------------------------------------

    def add(self, node: int, kind: NodeKind, state: State) -> None:
        """Add a node; in ascending order of nodes."""
        cell = self._cell(kind, state, ())
        if not cell.nodes:
            self._log.append(cell)
        cell.nodes.append(node)
        self._filled[cell] = None
        self.of[node] = cell
        self.vacant[kind] = self.vacant.get(kind, 0) + cell.gpus

    def _cell(self, kind: NodeKind, state: State, lefts: Lefts) -> Cell:
        key = (kind, state, lefts)
        cell = self._cells.get(key)
        if cell is None:
            self._serial += 1
            rank = self._ranks.setdefault(kind, len(self._ranks))
            cell = self._cells[key] = Cell(kind, state, lefts, rank, self._serial)
            if lefts:
                self._passing.append(key)
        return cell

    def like(self, cell: Cell, state: State, lefts: Lefts) -> Cell:
        """Return the cell of nodes of the same kind in another state, or under other claims."""
        return self._cell(cell.kind, state, lefts)

    def move(self, node: int, to: Cell) -> None:
        """Put a node into another cell."""
        self._first.setdefault(node, self.of[node])
        self._put(node, to)

    def _put(self, node: int, to: Cell) -> None:
        cell = self.of[node]
        if len(cell.nodes) > 1:
            del cell.nodes[bisect_left(cell.nodes, node)]
        else:
            cell.nodes.clear()
            del self._filled[cell]
        if to.nodes:
            insort(to.nodes, node)
        else:
            to.nodes.append(node)
            self._log.append(to)
            self._filled[to] = None
        self.of[node] = to
        if to.gpus != cell.gpus:
            self.vacant[cell.kind] += to.gpus - cell.gpus

    def claim(self, node: int, left: Left) -> None:
        """Put a claim on a node."""
        cell = self.of[node]
        self.claimed[node] = None
        self.move(node, self._cell(cell.kind, cell.state, (*cell.lefts, left)))

    def take(self, node: int, need: Need, bound: float) -> Receipt:
        """Take ``need`` from a node that has it, now and under the claims that bind."""
        cell = self.of[node]
        key = (need, bound if cell.lefts else -_NEVER_S)
        step = cell.after.get(key)
        if step is None:
            receipt = cell.receipt(need, bound)
            assert receipt is not None, f"node {node} does not fit {need}"  # noqa: S101 - callers see to it
            step = cell.after[key] = (receipt, self.without(cell, receipt, bound))
        self.move(node, step[1])
        return step[0]

    def without(self, cell: Cell, receipt: Receipt, bound: float) -> Cell:
        """Return the cell that ``cell``'s nodes move to when ``receipt`` is taken."""
        lefts = tuple(left.taking(receipt) if left.at_s <= bound else left for left in cell.lefts)
        return self._cell(cell.kind, taken(cell.state, receipt), lefts)

    def with_back(self, cell: Cell, receipt: Receipt, bound: float) -> Cell:
        """Return the cell that ``cell``'s nodes move to when ``receipt`` is given back."""
        key = (receipt, bound if cell.lefts else -_NEVER_S)
        known = cell.before.get(key)
        if known is None:
            lefts = (left.returning(receipt) if left.at_s <= bound else left for left in cell.lefts)
            known = self._cell(cell.kind, returned(cell.state, receipt), tuple(lefts))
            cell.before[key] = known
        return known

    def vacant_on(self, kinds: Iterable[NodeKind]) -> int:
        """Return how many whole GPUs are free on nodes of these kinds."""
        return sum([self.vacant.get(kind, 0) for kind in kinds])

    def filled(self) -> Iterator[Cell]:
        """Yield the cells that have nodes."""
        return iter(self._filled)

    def fitting(self, scope: Scope, need: Need, bound: float) -> Iterator[Cell]:
        """Yield the cells with nodes that fit, best fit first."""
        key = (scope, need, bound)
        remembered = self._fitting if bound == -_NEVER_S else self._bounded
        known = remembered.get(key)
        if known is None:
            known = remembered[key] = _Fitting(len(self._log))
            self._see(known, self._filled, scope, need, bound)
        if known.seen < len(self._log):
            self._look(known, scope, need, bound)
        place = 0
        cells = known.cells
        while place < len(cells):
            cell = cells[place][1]
            if cell.nodes:
                yield cell
                place += 1
            else:
                known.members.discard(cell)
                del cells[place]

    def _look(self, known: _Fitting, scope: Scope, need: Need, bound: float) -> None:
        self._see(known, self._log[known.seen :], scope, need, bound)
        known.seen = len(self._log)

    def _see(
        self, known: _Fitting, cells: Iterable[Cell], scope: Scope, need: Need, bound: float
    ) -> None:
        for cell in cells:
            if (
                cell.nodes  # else it comes again when it is filled
                and need.cpus <= cell.state[0]  # a quick look
                and (need.gpus <= cell.gpus or need.share > 1)
                and cell.kind in scope.kinds
                and cell not in known.members
                and cell.receipt(need, bound) is not None
            ):
                known.members.add(cell)
                insort(known.cells, (cell.order, cell))
