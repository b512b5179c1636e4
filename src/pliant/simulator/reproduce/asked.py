"""How a reproduction was asked for, and how its runs are spread over processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[str, int, int], None]
"""Told what is being run, how many of its runs are done, and of how many."""


def in_silence(what: str, done: int, of: int) -> None:
    """Tell nobody how far it is."""
    del what, done, of


@dataclass(frozen=True, slots=True)
class Asked:
    """How it was asked: the first of the seeds, where data lie, on how many processes.

    ``data``: a directory with what is not Pliant's own, as traces; None: there is none.
    """

    quick: bool = False
    seed: int = 0
    data: Path | None = None
    processes: int = 1
    progress: Progress = in_silence

    def seeds(self, count: int) -> range:
        """Return so many seeds."""
        return range(self.seed, self.seed + count)

    def spread(
        self, what: str, run: Callable[[Item], Result], items: Sequence[Item]
    ) -> list[Result]:
        """Return ``run(item)`` for each item, in their order.

        ``run`` stands at its module's top level, where other processes find it.
        """
        if self.processes == 1 or len(items) == 1:
            return self._told(what, map(run, items), len(items))
        with ProcessPoolExecutor(self.processes, mp_context=get_context("spawn")) as pool:
            return self._told(what, pool.map(run, items), len(items))

    def _told(self, what: str, results: Iterable[Result], of: int) -> list[Result]:
        found: list[Result] = []
        self.progress(what, 0, of)
        for result in results:
            found.append(result)
            self.progress(what, len(found), of)
        return found
