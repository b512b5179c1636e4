"""Whether a job could have another shape in place of what it has: a quick look before trying."""

from __future__ import annotations

from math import ceil

from pliant.placement.cells import Cell, Cells
from pliant.placement.needs import Need
from pliant.placement.pick import pick
from pliant.placement.profiles import Option, Profile
from pliant.placement.states import Receipt, most_gpus
from pliant.placement.taken import Taken


class Instead:
    """Remembers what did not fit, as what is free only becomes less; :meth:`forget` otherwise."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._not: set[tuple[Profile, Need, Cell, Receipt, float]] = set()

    def forget(self) -> None:
        """Look again: something was released."""
        self._not.clear()

    def may_fit(self, given: list[Taken], profile: Profile, option: Option, bound: float) -> bool:
        """Whether an option may fit if a job's tasks gave back what they have; False: it cannot.

        Cheaper than trying it, most of all for a single task on one node.
        """
        one = given[0]
        if len(given) > 1 or option[0].nodes > 1 or len(one.places) > 1:
            return self._are_enough(given, profile, option)
        key = (profile, option[1], self._cells.of[one.places[0]], one.receipts[0], bound)
        if key in self._not:
            return False
        may = self._fits(*key)
        if not may:
            self._not.add(key)
        return may

    def _are_enough(self, given: list[Taken], profile: Profile, option: Option) -> bool:
        """Whether there are whole GPUs enough, also those whose cores the job itself has."""
        more = option[0].amount
        held = ceil(given[0].shape.amount)
        own = map(self._cells.of.__getitem__, {place for one in given for place in one.places})
        beside = sum(most_gpus(cell.kind, cell.state, "") for cell in own if cell.state[0] < 1)
        vacant = self._cells.vacant_on(profile.kinds) + beside
        return more < 1 or vacant >= (more - held) * len(given)

    def _fits(
        self, profile: Profile, need: Need, cell: Cell, receipt: Receipt, bound: float
    ) -> bool:
        """Whether a need fits on a node of this cell that gets something back, or elsewhere."""
        back = self._cells.with_back(cell, receipt, bound)
        return back.receipt(need, bound) is not None or any(
            pick(self._cells, scope, need, 1, bound) is not None for scope in profile.scopes
        )
