"""What pliantd stores of hand-overs, in memory; it may be put back to what it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pliant.store import Decision, HandOverRow


class FakeStore:
    """The rows of hand-overs; all else is forgotten."""

    def __init__(self) -> None:
        self.rows: tuple[HandOverRow, ...] = ()

    def _set(self, number: int, **values: object) -> None:
        self.rows = tuple(
            replace(row, **values) if row.id == number else row  # type: ignore[arg-type]  # names of its own
            for row in self.rows
        )

    def hand_over(self, row: HandOverRow) -> int:
        self.rows = (*self.rows, replace(row, id=len(self.rows) + 1))
        return len(self.rows)

    def saved(self, number: int, saved_s: float) -> None:
        self._set(number, saved_s=saved_s)

    def ends(self, number: int, end_s: float, asked: str) -> None:
        self._set(number, end_s=end_s, asked=asked)

    def made(self, number: int, made: bool) -> None:
        self._set(number, made=made)

    def reopened(self, number: int, saved_s: float, after: str, guest: str) -> None:
        self._set(number, saved_s=saved_s, done_s=0.0, outcome="", after=after, guest=guest)

    def handed_over(self, number: int, now_s: float, outcome: str) -> None:
        self._set(number, done_s=now_s, outcome=str(outcome))

    def handovers(self, job: str = "") -> tuple[HandOverRow, ...]:
        if job:
            return tuple(row for row in self.rows if row.job == job)
        return tuple(row for row in self.rows if not row.done_s)

    def decide(self, _decisions: Iterable[Decision]) -> None:
        """Nothing here asks for it."""

    def forget_before(self, _jobs: Iterable[tuple[str, float]]) -> None:
        """No number comes again here."""

    def runs(self, _job: str) -> tuple[()]:
        return ()
