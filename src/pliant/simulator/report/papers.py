"""The papers' claims as a page: what ``pliant reproduce`` finds."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.simulator.report import plots
from pliant.simulator.report.page import Page, Part, Plot, Table
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import NOTHING, Chart, Claim, Section

_HOLDS = {True: "yes", False: "no", None: NOTHING}


def page(sections: Sequence[Section], asked: Asked, *, drawn: bool = False) -> Page:
    """Return the page; ``drawn``: with charts. Raises Unavailable: no matplotlib."""
    size = "A quick look" if asked.quick else "In full"
    lead = [f"{size}, first seed {asked.seed}."]
    lead += [f"{section.title}: {section.count}" for section in sections]
    return Page("The papers' claims, run again", lead, [_part(one, drawn) for one in sections])


def _part(section: Section, drawn: bool) -> Part:
    header = ("claim", "kind", "paper", "ours", "holds", "why")
    claims = Table(header, [_cells(claim) for claim in section.claims], "Claims", words=6)
    behind = [Table(one.header, one.rows, one.title, one.note) for one in section.tables]
    words = [section.sizes, section.count]
    if section.choices:
        words.append("What the paper leaves open is chosen so:")
    charts = [_plot(chart) for chart in section.charts] if drawn else []
    return Part(section.title, words, section.choices, [claims, *behind], charts)


def _plot(chart: Chart) -> Plot:
    lines = next(iter(chart.panels.values()))
    text = f"{' and '.join(chart.panels)} by {chart.x}, of {', '.join(lines)}."
    png = plots.over_sizes(chart.sizes, chart.x, chart.panels)
    return Plot(chart.name, f"{chart.title}.", f"{chart.title}: {text}", png)


def _cells(claim: Claim) -> tuple[str, ...]:
    holds = _HOLDS[claim.holds]
    return (claim.text, claim.kind, claim.paper, claim.ours, holds, claim.why or NOTHING)
