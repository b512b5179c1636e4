"""What a benchmark returns: one section of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A title, how it was measured, a table, and what the numbers say about the goal."""

    title: str
    how: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    result: str = ""

    def markdown(self) -> Iterator[str]:
        """Yield the lines of the section."""
        yield from (f"## {self.title}", "", self.how, "")
        if self.rows:
            yield _row(self.header)
            yield _row(["---", *["---:"] * (len(self.header) - 1)])
            yield from (_row(row) for row in self.rows)
            yield ""
        if self.result:
            yield from (self.result, "")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def verdict(reached: bool) -> str:
    """Return a word for a goal."""
    return "reached" if reached else "**not reached**"
