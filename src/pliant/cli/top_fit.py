"""Which columns of a table a screen has room for, and how wide each is.

Where there is no room for all, columns are left out in the table's own order, empty ones first;
then names are cut; then columns go from the right, but never the first. A number is shown whole or
not at all; sentences are as long as there is room for.
"""

from __future__ import annotations

from rich.cells import cell_len

from pliant.cli.top_view import LONG, TEXTS, Sheet

GAP = 2
"""Blanks between two columns."""
MOST_LETTERS = 24
"""Of a name on a screen: names may be long."""
LEAST_SENTENCE = 36
"""So much of a sentence is shown at least, before other columns are left out."""
NO_LIMIT = 1_000_000
LEAST_LETTERS = 4
"""A name that is cut shorter says nothing."""

Widths = dict[str, int]
"""Cells on the screen, by a column's name, from the left."""


def title(name: str) -> str:
    """Return what stands above a column on a screen."""
    return name.replace("_", " ").capitalize()


def fitted(sheet: Sheet, width: int) -> Widths:
    """Return the columns that ``width`` cells of a screen have room for, and their widths."""
    shown = _whole(sheet)
    for name in _spared(sheet):
        if _over(shown, width) <= 0:
            break
        del shown[name]
    cut = {n: min(w, LEAST_LETTERS) if n in TEXTS else w for n, w in shown.items()}
    while len(cut) > 1 and _over(cut, width) > 0:
        cut.popitem()
    for name, least in cut.items():
        cut[name] += max(0, min(shown[name] - least, -_over(cut, width)))
    for name in LONG.intersection(cut):
        cut[name] += max(0, min(_widest(sheet, name) - cut[name], -_over(cut, width)))
    return cut


def _spared(sheet: Sheet) -> list[str]:
    """Return the columns that may be left out, in this order: first those that say nothing."""
    places = {column.name: place for place, column in enumerate(sheet.columns)}
    return sorted(sheet.spared, key=lambda name: any(line[places[name]] for line in sheet.cells))


def _whole(sheet: Sheet) -> Widths:
    """Return how wide each column would be with room for all, texts up to ``MOST_LETTERS``."""
    return {
        column.name: min(_widest(sheet, column.name), _most(column.name))
        for column in sheet.columns
    }


def _most(name: str) -> int:
    return LEAST_SENTENCE if name in LONG else MOST_LETTERS if name in TEXTS else NO_LIMIT


def _widest(sheet: Sheet, name: str) -> int:
    place = [column.name for column in sheet.columns].index(name)
    return max(map(cell_len, (title(name), *(line[place] for line in sheet.cells))))


def _over(shown: Widths, width: int) -> int:
    """Return how many cells too wide a table of these columns is."""
    return sum(shown.values()) + GAP * (len(shown) - 1) - width
