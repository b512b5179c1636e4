"""What a job could have in place of what running jobs hold, now and under the claims of others.

What the givers have counts for that one job alone: what it leaves of it is free for others only
when the old runs are really gone, which a later snapshot shows. A claim counts on the ends of the
running jobs: where a giver would have held something longer than until the claim begins, it is
given back to what the claim leaves too; else the claim has it already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pliant.model import Job
from pliant.placement.cells import Cell, Cells, Left
from pliant.placement.giving_up import given_back
from pliant.placement.needs import Need
from pliant.placement.pick import Places
from pliant.placement.profiles import Option
from pliant.placement.scopes import limit_s
from pliant.placement.states import Receipt, State, lesser, taken

Held = dict[int, list[tuple[Job, Need]]]
"""What givers have, by node."""


class Trades:
    """Looks at nodes as if running jobs had given back what they hold."""

    def __init__(self, cells: Cells, held: Callable[[Job], tuple[tuple[int, ...], Need]]) -> None:
        """``held``: the nodes of a running job, by number, and what it has on each."""
        self._cells, self._held = cells, held

    @contextmanager
    def supposed(self, givers: Iterable[Job], beside: frozenset[str]) -> Iterator[None]:
        """Suppose that ``givers`` are gone, and the claims of the jobs ``beside``."""
        before = {place: self._cells.of[place] for place in self._by_place(givers)}
        if beside:
            before |= {place: self._cells.of[place] for place in self._cells.claimed}
        after = self._after(givers, beside, before)
        for place, cell in after.items():
            self._cells.move(place, cell)
        try:
            yield
        finally:
            for place, cell in before.items():
                self._cells.move(place, cell)

    def carry_out(
        self, option: Option, places: Places, bound: float, givers: Iterable[Job]
    ) -> tuple[Receipt, ...]:
        """Take an option on places where it fits once ``givers`` are gone; return what was taken.

        For everybody else there is no more than before, and what it took is gone.
        """
        before = {place: self._cells.of[place] for place in places}
        receipts = []
        for place, cell in self._after(givers, frozenset(), before).items():
            receipt = cell.receipt(option[1], bound) or cell.receipt(option[1], -float("inf"))
            assert receipt is not None, place  # noqa: S101  # a trade is made where it fits
            old = before[place]
            lefts = tuple(
                left.taking(receipt) if left.at_s <= bound and not left.closed else left
                for left in cell.lefts
            )
            lefts = tuple(
                kept._replace(state=lesser(kept.state, was.state))
                for kept, was in zip(lefts, old.lefts, strict=True)
            )
            state = lesser(old.state, taken(cell.state, receipt))
            self._cells.move(place, self._cells.like(old, state, lefts))
            receipts.append(receipt)
        return tuple(receipts)

    def _by_place(self, givers: Iterable[Job]) -> Held:
        held: Held = {}
        for job in givers:
            places, need = self._held(job)
            for place in places:
                if place in self._cells.of:
                    held.setdefault(place, []).append((job, need))
        return held

    def _after(
        self, givers: Iterable[Job], beside: frozenset[str], before: dict[int, Cell]
    ) -> dict[int, Cell]:
        held = self._by_place(givers)
        return {
            place: self._emptied(cell, held.get(place, []), beside)
            for place, cell in before.items()
        }

    def _emptied(self, cell: Cell, held: list[tuple[Job, Need]], beside: frozenset[str]) -> Cell:
        state = self._with(cell, cell.state, (need for _, need in held))
        lefts = tuple(self._left(cell, left, held) for left in cell.lefts if left.job not in beside)
        return self._cells.like(cell, state, lefts)

    def _left(self, cell: Cell, left: Left, held: list[tuple[Job, Need]]) -> Left:
        """What a claim leaves once these jobs are gone that would have held on beyond its begin."""
        beyond = (need for job, need in held if job.start_s + limit_s(job) > left.at_s)
        return left._replace(state=self._with(cell, left.state, beyond))

    def _with(self, cell: Cell, state: State, needs: Iterable[Need]) -> State:
        for need in needs:
            state = given_back(cell.kind, state, need)
        return state
