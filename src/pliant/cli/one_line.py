"""Rows of a table as one line each, as wide as a terminal: the last column is never lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pliant.cli.output import Column, printable

GAP = 2
"""Blanks between two columns."""
LEAST_LAST = 24
"""So much of the last column is shown at least, before others are left out."""
MOST_LETTERS = 16
"""Of a cell of any other column."""
CUT = "…"


def lines(
    columns: Sequence[Column[Any]],
    cells: Sequence[Sequence[str]],
    spared: Sequence[str],
    width: int,
    *,
    header: bool = True,
) -> list[str]:
    """Return a line for each row, of ``width`` letters at most.

    ``spared``: the columns that are left out, in this order, where there is no room for the last
    one; what is longer than its place ends in an ellipsis.
    """
    every = [[column.name.upper() for column in columns], *cells] if header else [*cells]
    rows = [[printable(cell) for cell in line] for line in every]
    widths = _widths(columns, rows, spared, width)
    return [_line(columns, row, widths) for row in rows]


def _widths(
    columns: Sequence[Column[Any]],
    rows: Sequence[Sequence[str]],
    spared: Sequence[str],
    width: int,
) -> dict[int, int]:
    """Return how wide each column is that is shown, by its place."""
    longest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(columns) - 1
    found = {place: min(longest[place], MOST_LETTERS) for place in range(last)}
    wanted = min(longest[last], LEAST_LAST)
    for name in spared:
        if _left(found, width) >= wanted:
            break
        place = next(place for place, column in enumerate(columns) if column.name == name)
        del found[place]
    found[last] = max(1, min(longest[last], _left(found, width)))
    return found


def _left(widths: dict[int, int], width: int) -> int:
    """Return how much room is left for the last column."""
    return width - sum(widths.values()) - GAP * len(widths)


def _line(columns: Sequence[Column[Any]], row: Sequence[str], widths: dict[int, int]) -> str:
    cells = []
    for place, width in widths.items():
        text = row[place] if len(row[place]) <= width else row[place][: width - 1] + CUT
        cells.append(text.rjust(width) if columns[place].right else text.ljust(width))
    return (" " * GAP).join(cells).rstrip()
