"""The papers' claims as a page: what ``pliant reproduce`` finds."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.pages.model import OverSizes, Page, Part, Picture, Table
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import NOTHING, Chart, Claim, Section

_HOLDS = {True: "yes", False: "no", None: NOTHING}


def page(sections: Sequence[Section], asked: Asked) -> Page:
    """Return the page."""
    size = "A quick look" if asked.quick else "In full"
    lead = [f"{section.title}: {section.count}" for section in sections]
    about = [f"{size}, first seed {asked.seed}", "Cluster: simulated, as each paper has it"]
    return Page("The papers' claims, run again", about, lead, [*map(_part, sections)])


def _part(section: Section) -> Part:
    header = ("claim", "kind", "paper", "ours", "holds", "why")
    claims = Table(header, [_cells(claim) for claim in section.claims], "Claims", words=range(6))
    behind = [Table(one.header, one.rows, one.title, one.note) for one in section.tables]
    words = [section.sizes, section.count]
    if section.choices:
        words.append("What the paper leaves open is chosen so:")
    pictures = [_picture(chart) for chart in section.charts]
    return Part(section.title, words, section.choices, [claims, *behind], pictures)


def _picture(chart: Chart) -> Picture:
    lines = next(iter(chart.panels.values()))
    text = f"{chart.title}: {' and '.join(chart.panels)} by {chart.x}, of {', '.join(lines)}."
    return OverSizes(chart.name, f"{chart.title}.", text, chart.sizes, chart.x, chart.panels)


def _cells(claim: Claim) -> tuple[str, ...]:
    holds = _HOLDS[claim.holds]
    return (claim.text, claim.kind, claim.paper, claim.ours, holds, claim.why or NOTHING)
