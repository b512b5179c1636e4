"""Who shares a GPU or a node with whom in a replay, and how fast each job is so.

Jobs slow each other where the workload says how (:class:`~pliant.simulator.workload.Workload`,
``beside``). A job is a neighbour from its start until it holds nothing any more, also while it
launches and saves. A cluster without such a workload is a plain one, and keeps no such books.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pliant.model import Job, Shape
from pliant.placement.ground import Grounded
from pliant.simulator.cluster import Cluster, History, Run
from pliant.simulator.workload import Beside, Neighbour, Workload

Gpu = tuple[int, int, int]
"""A GPU that may be shared: its node, its pool and its number, counted from 0."""


class Shared(Cluster):
    """A cluster on whose nodes jobs slow each other."""

    def __init__(self, workload: Workload, beside: Beside) -> None:
        super().__init__(workload)
        self._beside, self._company = beside, workload.company
        self._on: dict[int, dict[int, Run]] = {}  # by node, those that run there by their number
        self._changed: set[int] = set()  # nodes on which somebody came or went
        self._paces: dict[int, float] = {}  # by a run's number, if it is not 1.0

    def snapshot(self, now_s: float, *, progress: bool = True) -> Grounded:
        """Show the cluster as it is now, with what is known of its jobs beside each other."""
        found = super().snapshot(now_s, progress=progress)
        if self._company is None:
            return found
        jobs = [*self.queue, *(run.job for run in self.running.values())]
        return replace(found, company=self._company(jobs))

    def start(self, job: Job, of: History, shape: Shape, nodes: Sequence[str]) -> Run | None:
        """Let a job hold what it needs, as :class:`Cluster` does."""
        run = super().start(job, of, shape, nodes)
        if run is not None:
            for place in run.places:
                self._on.setdefault(place, {})[run.number] = run
            self._changed.update(run.places)
        return run

    def stop(self, run: Run) -> None:
        """Give back all that a run holds."""
        super().stop(run)
        for place in run.places:
            del self._on[place][run.number]
        self._changed.update(run.places)
        self._paces.pop(run.number, None)

    def new_paces(self) -> Iterator[tuple[Run, float]]:
        """Yield whose speed in company has changed since the last call, and what it is now.

        1.0: as fast as without others.
        """
        near = {
            number: run
            for place in self._changed
            for number, run in self._on.get(place, {}).items()
        }
        self._changed.clear()
        for number in sorted(near):
            run = near[number]
            pace = self._pace(run)
            if pace != self._paces.get(number, 1.0):
                self._paces[number] = pace
                yield run, pace

    def _pace(self, run: Run) -> float:
        others = {
            number: other
            for place in run.places
            for number, other in self._on[place].items()
            if other is not run
        }
        if not others:
            return 1.0
        gpus = set(_gpus(run))
        neighbours = [
            Neighbour(other.job, other.shape, not gpus.isdisjoint(_gpus(other)))
            for _, other in sorted(others.items())
        ]
        return self._beside(run.job, run.shape, neighbours)


def _gpus(run: Run) -> Iterator[Gpu]:
    """The GPUs of which a run has a part."""
    for place, receipt in zip(run.places, run.receipts, strict=True):
        for pool, _, gpus in receipt[2]:
            for gpu, _ in gpus:
                yield (place, pool, gpu)
