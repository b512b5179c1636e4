"""A page as data: tiles with the results, parts with words, pictures and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Mark = Literal["", "better", "worse", "bad"]
"""Against something else, or, bad, by itself."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A text that is a good or a bad result. ``more``: in a table, what stands below it."""

    text: str
    mark: Mark = ""
    more: str = ""


Text = str | Marked


@dataclass(frozen=True, slots=True)
class Tile:
    """A result that meets the eye: the number, and what it is of."""

    number: str
    short: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts; ``words``: the places of columns that are words, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[Text]]
    title: str = ""
    note: str = ""
    words: Collection[int] = (0,)


@dataclass(frozen=True, slots=True)
class Picture:
    """What all pictures have; ``name``: of a file, without its end; ``text``: it, in words."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Distributions(Picture):
    """Which part of the jobs had at most so much.

    A line holds figures at equal parts of the jobs, ascending. ``times``: they are seconds.
    """

    lines: Mapping[str, Sequence[float]]
    what: str
    times: bool


@dataclass(frozen=True, slots=True)
class OverTime(Picture):
    """How many GPUs of ``most`` were held when. A line: begin and steps in seconds, its values."""

    lines: Mapping[str, tuple[float, float, Sequence[float]]]
    most: float


@dataclass(frozen=True, slots=True)
class OverSizes(Picture):
    """Lines over sizes, which stand equally far apart; each panel has a scale of its own."""

    sizes: Sequence[int]
    what: str
    panels: Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class Changes(Picture):
    """By what part figures of some changed: -0.1 is 10 % less, which is better.

    Up to ``same`` it is neither better nor worse.
    """

    changes: Sequence[tuple[str, float]]
    same: float


@dataclass(frozen=True, slots=True)
class Stacks(Picture):
    """Bars over time, each of several kinds on top of each other.

    ``kinds``: their names in the page's colours, and in words. A bar: its place in steps, the value
    of each kind, and each one's words. ``most``: what the full height is; ``first``, ``last``:
    when.
    """

    kinds: Sequence[tuple[str, str]]
    bars: Sequence[tuple[float, Sequence[tuple[float, str]]]]
    steps: float
    most: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Lengths(Picture):
    """One bar each: a name, its kind, how long it is and what is written beside it."""

    lines: Sequence[tuple[str, str, float, str]]


@dataclass(frozen=True, slots=True)
class Part:
    """A section: pictures, paragraphs, a list, tables."""

    title: str
    paragraphs: Sequence[str] = ()
    items: Sequence[Text] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page; ``about``: which cluster, and when; ``lead``: what is to be known first."""

    title: str
    about: Sequence[str]
    lead: Sequence[Text]
    parts: Sequence[Part]
    tiles: Sequence[Tile] = ()

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in their order."""
        return [picture for part in self.parts for picture in part.pictures]


def plain(text: Text) -> str:
    """Return a text without its mark."""
    return text if isinstance(text, str) else text.text
