"""The papers that can be reproduced, by the names that users choose them by."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from pliant import __version__
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Section

PAPERS = {
    "fujiwara": "pliant.simulator.reproduce.fujiwara",
    "fitgpp": "pliant.simulator.reproduce.fitgpp",
    "cosched": "pliant.simulator.reproduce.cosched",
    "fsched": "pliant.simulator.reproduce.fsched",
    "ravi": "pliant.simulator.reproduce.ravi",
    "curves": "pliant.simulator.reproduce.curves",
}
"""Each paper's module, and that of what holds of all policies, imported when it is asked for.

It has ``reproduce(asked) -> Section``.
"""
ALL = "all"
_SOLVED = ("cosched", "ravi", "curves")
"""Those that need a solver."""


def chosen(names: Sequence[str]) -> list[str]:
    """Return the papers of these names, each once, in the order of :data:`PAPERS`.

    Raises BadInput, listing what there is, for an unknown one and for none.
    """
    right = ", ".join([*PAPERS, ALL])
    if not names:
        raise BadInput(f"paper: none is given: one of {right} is expected")
    for name in names:
        if name not in PAPERS and name != ALL:
            raise BadInput(f"paper: {quoted(name)}: one of {right} is expected")
    return [name for name in PAPERS if ALL in names or name in names]


def check_solver(names: Sequence[str]) -> None:
    """Raise Unavailable where one of these papers needs a solver that is not installed."""
    for name in _SOLVED:
        if name in names and find_spec("scipy") is None:
            raise Unavailable(f"{name}: scipy is not installed: pip install 'pliant[solvers]'")


def reproduce(name: str, asked: Asked) -> Section:
    """Run a paper's claims; ``name``: one of :data:`PAPERS`.

    Raises Unavailable where a solver is not installed, BadInput where data are not as they should.
    """
    section: Section = importlib.import_module(PAPERS[name]).reproduce(asked)
    return section


def document(sections: Sequence[Section], asked: Asked) -> Iterator[str]:
    """Yield the lines of a whole document."""
    size = "a quick look" if asked.quick else "in full"
    yield from ("# The papers' claims, run again", "")
    yield from (f"Pliant {__version__}, {size}, first seed {asked.seed}.", "")
    for section in sections:
        yield from section.markdown()
