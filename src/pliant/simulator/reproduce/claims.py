"""What a paper claims and what came out, as a section in Markdown: the same for all papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["predicted", "fitted", "not testable"]
"""Nothing was fitted to it; something was; the paper or this machine lacks what it takes."""

NOTHING = "–"
"""What stands in a cell that has nothing to say."""
_HOLDS = {True: "yes", False: "**no**", None: NOTHING}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper: ``paper`` is what stands there, ``ours`` what came out.

    ``holds``: None where nothing came out. ``why``: why it does not hold, or how that was decided.
    """

    text: str
    kind: Kind
    paper: str
    ours: str = NOTHING
    holds: bool | None = None
    why: str = ""

    def __post_init__(self) -> None:
        untested = self.kind == "not testable"
        assert untested is (self.holds is None), self  # noqa: S101  # our own mistake
        assert self.why or self.holds, self  # noqa: S101  # what does not hold has a reason


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers behind the claims. The first column is words, the others are numbers."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> Iterator[str]:
        """Yield its lines."""
        yield from (f"### {self.title}", "")
        if self.note:
            yield from (self.note, "")
        yield from _table(self.header, self.rows, right=True)


Lines = Mapping[str, Sequence[float]]
"""By whose they are, the values at each size."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of the paper, with what came out here. ``name``: of its file, without an end.

    ``x``: what there is so much of as ``sizes`` say; ``panels``: lines by what they measure.
    """

    name: str
    title: str
    x: str
    sizes: Sequence[int]
    panels: Mapping[str, Lines]


@dataclass(frozen=True, slots=True)
class Section:
    """All of one paper. ``sizes``: what was run, with its seeds; ``choices``: what is left open.

    ``charts`` are drawn in reports only: their numbers stand in the tables.
    """

    title: str
    sizes: str
    claims: Sequence[Claim]
    tables: Sequence[Table] = ()
    choices: Sequence[str] = ()
    charts: Sequence[Chart] = ()

    def markdown(self) -> Iterator[str]:
        """Yield its lines."""
        yield from (f"## {self.title}", "", self.sizes, "", self.count, "")
        header = ("claim", "kind", "paper", "ours", "holds", "why")
        yield from _table(header, [_cells(claim) for claim in self.claims], right=False)
        for table in self.tables:
            yield from table.markdown()
        if self.choices:
            yield from ("### What the paper leaves open, as chosen here", "")
            yield from (f"- {choice}" for choice in self.choices)
            yield ""

    @property
    def count(self) -> str:
        """How many claims hold, in words."""
        held = [claim.holds for claim in self.claims]
        tested = len(held) - held.count(None)
        untested = f"; {held.count(None)} not testable" if None in held else ""
        return f"{held.count(True)} of {tested} claims that could be tested hold{untested}."


def _cells(claim: Claim) -> tuple[str, ...]:
    return (
        claim.text,
        claim.kind,
        claim.paper,
        claim.ours,
        _HOLDS[claim.holds],
        claim.why or NOTHING,
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], right: bool) -> Iterator[str]:
    """Yield the lines of a table and an empty one; ``right``: all columns but the first."""
    yield _row(header)
    yield _row(["---", *["---:" if right else "---"] * (len(header) - 1)])
    yield from (_row(row) for row in rows)
    yield ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def percent(part: float, digits: int = 0) -> str:
    """Return a part of 1 in per cent."""
    return f"{100 * part:.{digits}f} %"


ABOUT = 0.25
"""What is "about", or "up to", so much lies within this part of it."""


def is_about(ours: float, printed: float) -> bool:
    """Return whether a number is about the printed one."""
    return abs(ours - printed) <= ABOUT * printed
