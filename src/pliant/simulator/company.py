"""Who shares a GPU or a node with whom in a replay, and how fast each job is so.

Jobs slow each other where the workload says how (:class:`~pliant.simulator.workload.Workload`,
``beside``). A job is a neighbour from its start until it holds nothing any more, also while it
launches and saves. A cluster without such a workload is a plain one, and keeps no such books.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from pliant.model import Job, Shape
from pliant.placement.ground import Grounded
from pliant.simulator.cluster import Cluster
from pliant.simulator.running import History, Run
from pliant.simulator.workload import Beside, Neighbour, Workload

Gpu = tuple[int, int, int]
"""A GPU that may be shared: its node, its pool and its number, counted from 0."""


class Shared(Cluster):
    """A cluster on whose nodes jobs slow each other."""

    def __init__(self, workload: Workload, beside: Beside) -> None:
        super().__init__(workload)
        self._beside, self._known_of = beside, workload.company
        self._on: dict[int, set[Run]] = {}  # those that run, by node
        self._changed: set[int] = set()  # nodes on which somebody came or went

    def snapshot(self, now_s: float, *, progress: bool = True) -> Grounded:
        """Show the cluster as it is now, with what is known of its jobs beside each other."""
        found = super().snapshot(now_s, progress=progress)
        if self._known_of is None:
            return found
        jobs = [*self.queue, *(run.job for run in self.running.values())]
        return replace(found, company=self._known_of(jobs))

    def start(self, job: Job, of: History, shape: Shape, nodes: Sequence[str]) -> Run | None:
        """Let a job hold what it needs, as :class:`Cluster` does."""
        run = super().start(job, of, shape, nodes)
        if run is not None:
            for place in run.places:
                self._on.setdefault(place, set()).add(run)
            self._changed.update(run.places)
        return run

    def change(self, run: Run) -> bool:
        """Let no run go on as another shape on the spot: those beside it are to notice."""
        del run
        return False

    def stop(self, run: Run) -> None:
        """Give back all that a run holds."""
        super().stop(run)
        for place in run.places:
            self._on[place].remove(run)
        self._changed.update(run.places)

    def new_paces(self) -> Iterator[Run]:
        """Yield those whose pace has changed since the last call, by who came or went."""
        near = self._all_on(self._changed)
        self._changed.clear()
        for run in near:
            pace = self._pace(run)
            if pace != run.pace:
                run.pace = pace
                yield run

    def _all_on(self, places: Iterable[int]) -> list[Run]:
        """Who runs on any of some nodes, in the order in which they began."""
        runs = set().union(*(self._on.get(place, ()) for place in places))
        return sorted(runs, key=attrgetter("number"))

    def _pace(self, run: Run) -> float:
        others = [other for other in self._all_on(run.places) if other is not run]
        if not others:
            return 1.0
        gpus = set(_gpus(run))
        neighbours = [
            Neighbour(other.job, other.shape, not gpus.isdisjoint(_gpus(other))) for other in others
        ]
        return self._beside(run.job, run.shape, neighbours)


def _gpus(run: Run) -> Iterator[Gpu]:
    """The GPUs of which a run has a part."""
    for place, receipt in zip(run.places, run.receipts, strict=True):
        for pool, _, gpus in receipt[2]:
            for gpu, _, _ in gpus:
                yield (place, pool, gpu)
