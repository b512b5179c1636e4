"""How a reproduction was asked for, and where its runs are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.simulator.sweep import HERE, Item, Result, Sweep

Progress = Callable[[str, int, int], None]
"""Told what is being run, how many of its runs are done, and of how many."""


def in_silence(what: str, done: int, of: int) -> None:
    """Tell nobody how far it is."""
    del what, done, of


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked: the first of the seeds, where data lie, where runs are done.

    ``data``: a directory with what is not Pliant's own, as traces; None: there is none.
    """

    quick: bool = False
    seed: int = 0
    data: Path | None = None
    sweep: Sweep = HERE
    progress: Progress = in_silence

    def seeds(self, count: int) -> range:
        """Return so many seeds."""
        return range(self.seed, self.seed + count)

    def spread(
        self, what: str, run: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return ``run(item)`` for each item, in their order, as :meth:`Sweep.each` says."""
        of = len(items)
        self.progress(what, 0, of)
        return self.sweep.each(run, items, lambda done: self.progress(what, done, of))
