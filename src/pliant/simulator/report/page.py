"""A report as data: parts with words, tables and plots, whoever shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts. The first ``words`` columns are words, the others numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""
    words: int = 1


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing: ``name`` of its file, without an end; ``text``: what is to be seen, in words."""

    name: str
    title: str
    text: str
    png: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """A section: a list stands below its paragraphs, then tables and plots."""

    title: str
    paragraphs: Sequence[str] = ()
    items: Sequence[str] = ()
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report; ``lead``: what a reader is to know first."""

    title: str
    lead: Sequence[str]
    parts: Sequence[Part]

    @property
    def plots(self) -> list[Plot]:
        """All plots, in their order."""
        return [plot for part in self.parts for plot in part.plots]


def number(value: float) -> str:
    """Write a figure with about four digits, and all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(part: float | None) -> str:
    """Write by what part something changed: -0.1 is -10.0 %; None: ""."""
    return "" if part is None else f"{100 * part:+.1f} %"
