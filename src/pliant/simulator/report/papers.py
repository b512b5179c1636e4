"""The papers' claims as a page: what ``pliant reproduce`` finds."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.simulator.report.page import Page, Part, Table
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import NOTHING, Claim, Section

_HOLDS = {True: "yes", False: "no", None: NOTHING}


def page(sections: Sequence[Section], asked: Asked) -> Page:
    """Return the page."""
    size = "A quick look" if asked.quick else "In full"
    lead = [f"{size}, first seed {asked.seed}."]
    lead += [f"{section.title}: {section.count}" for section in sections]
    return Page("The papers' claims, run again", lead, [_part(section) for section in sections])


def _part(section: Section) -> Part:
    header = ("claim", "kind", "paper", "ours", "holds", "why")
    claims = Table(header, [_cells(claim) for claim in section.claims], "Claims", words=6)
    behind = [Table(one.header, one.rows, one.title, one.note) for one in section.tables]
    words = [section.sizes, section.count]
    if section.choices:
        words.append("What the paper leaves open is chosen so:")
    return Part(section.title, words, section.choices, [claims, *behind])


def _cells(claim: Claim) -> tuple[str, ...]:
    holds = _HOLDS[claim.holds]
    return (claim.text, claim.kind, claim.paper, claim.ours, holds, claim.why or NOTHING)
