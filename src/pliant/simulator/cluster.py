"""A simulated cluster: what waits, what runs, what is free; and it shows itself as a snapshot.

It decides nothing and knows no time but what it is told: jobs start, change, stop and end as
:mod:`pliant.simulator.replay` says. A snapshot of it is a view: what was not looked at was not
made, and what has not changed is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, nextafter
from typing import TypeVar, overload

from pliant.model import Job, JobClass, JobState, Node, Pool, Shape, Snapshot
from pliant.placement import Need, limit_s
from pliant.placement.ground import Ground, Grounded
from pliant.placement.needs import NOTHING, Gpus, Receipt, State, beyond, find, returned
from pliant.placement.queue import Queue
from pliant.placement.timeline import Release
from pliant.simulator.metrics import Span
from pliant.simulator.workload import Arrival, Workload

Seen = TypeVar("Seen")
CHANGES = 4
"""How often a job may be changed in one instant."""
_NOW = -float("inf")
"""As a bound: under no claims."""


@dataclass(slots=True)
class History:
    """What is true of a job that has arrived, and what has happened to it."""

    arrival: Arrival
    spans: list[Span] = field(default_factory=list)
    done: float = 0.0  # the part of its work that is saved
    preemptions: int = 0


@dataclass(eq=False, slots=True)
class Run:
    """A job that runs, from ``start_s`` on; it makes progress from ``works_s`` on."""

    job: Job  # as it waited
    of: History
    shape: Shape
    need: Need
    places: tuple[int, ...]
    receipts: tuple[Receipt, ...]
    number: int
    start_s: float
    works_s: float
    end_s: float
    run_s: float  # all of its work, so
    alone: tuple[Shape, ...]  # its shape, and no other
    timed_out: bool = False
    protected_s: float = 0.0  # until then nothing may be taken from it
    saving_s: float = 0.0  # since when it makes no more progress; 0.0: it does
    next_shape: Shape | None = None
    next_places: tuple[int, ...] = ()
    extra: tuple[tuple[int, Receipt], ...] = ()  # what is kept for its next shape meanwhile
    room_for: str = ""
    seen: Job | None = None  # as it was shown last
    seen_until_s: float = 0.0  # but for its progress it is still the same

    def done_at(self, now_s: float) -> float:
        """The part of its work that is done."""
        until_s = min(self.saving_s or now_s, now_s)
        return min(1.0, self.of.done + max(0.0, until_s - self.works_s) / max(1e-9, self.run_s))


class Cluster:
    """Nodes, the jobs that wait for them, and those that run there."""

    def __init__(self, workload: Workload) -> None:
        whole = Snapshot(0.0, workload.nodes, workload.partitions)
        self._all, self._abilities, self._company = workload.nodes, whole.abilities, whole.company
        self.partitions = workload.partitions
        self.ground = Ground(whole)
        self._sharers = self.ground.sharers = {}
        self.queue = Queue(self.ground.profiles)
        self.running: dict[str, Run] = {}
        self._number = 0

    # --- as the cycle sees it ---------------------------------------------------------------

    def snapshot(self, now_s: float, *, progress: bool = True) -> Grounded:
        """Show the cluster as it is now. It is valid until something changes.

        ``progress``: also how far the jobs are that run.
        """
        running = _Lazy(partial(self._jobs, now_s, progress), len(self.running))
        nodes = _Lazy(self._nodes, len(self._all))
        return Grounded(
            *(now_s, nodes, self.partitions, self.queue, running, ()),
            *(self._abilities, self._company),
            ground=self.ground,
        )

    def _jobs(self, now_s: float, progress: bool) -> tuple[Job, ...]:
        return tuple([self.job(run, now_s, progress=progress) for run in self.running.values()])

    def _nodes(self) -> tuple[Node, ...]:
        cells = self.ground.cells
        return tuple(
            [
                self._node(place, node, cells.really(place)) if place in cells.of else node
                for place, node in enumerate(self._all)
            ]
        )

    def _node(self, place: int, node: Node, state: State) -> Node:
        """A node as it is in a state."""
        cpus, mem_mib, gpus = state
        pools = tuple(
            [
                self._pool(pool, left, partial(self.ground.jobs_on, place, index))
                for index, (pool, left) in enumerate(zip(node.pools, gpus, strict=True))
            ]
        )
        return replace(node, free_cpus=cpus, free_mem_mib=mem_mib, pools=pools)

    def _pool(self, pool: Pool, gpus: Gpus, jobs_on: Callable[[int], int]) -> Pool:
        if isinstance(gpus, int):
            return replace(pool, free=gpus)
        full = pool.shards_per_gpu
        parts = [(free, jobs_on(gpu)) for gpu, free in enumerate(gpus) if 0 < free < full]
        parts.sort(reverse=True)
        return replace(
            pool,
            free=gpus.count(full),
            parts=tuple([free for free, _ in parts]),
            sharers=tuple([jobs for _, jobs in parts]),
        )

    def names(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the names of nodes given by number."""
        return tuple([self.ground.names[place] for place in places])

    def job(self, run: Run, now_s: float, *, progress: bool = True) -> Job:
        """Return a running job as a policy sees it; its progress as it was shown last if not."""
        if run.seen is None or now_s >= run.seen_until_s:
            run.seen = self._seen(run, now_s)
            run.seen_until_s = self._stays_until_s(run, now_s)
        if progress:
            run.seen = run.seen.at(run.done_at(now_s))
        return run.seen

    def _stays_until_s(self, run: Run, now_s: float) -> float:
        """Until when a run may be changed as little as now; inf: until it has changed.

        A job is not changed for ever in one instant: what may be changed depends on who shares
        which GPU, and so on the change itself, and two decisions may be made in turn.
        """
        if now_s < run.protected_s:
            return run.protected_s
        spans = run.of.spans
        often = len(spans) >= CHANGES and spans[-CHANGES].end_s >= now_s
        return nextafter(now_s, inf) if often else inf

    def _seen(self, run: Run, now_s: float) -> Job:
        under_way = run.next_shape is not None or bool(run.room_for)
        request = run.job.spec.request if run.job.spec is not None else None
        free = not under_way and now_s >= run.protected_s and request is not None
        settled = self._stays_until_s(run, now_s) == inf
        elastic = free and settled and request is not None and request.malleable is not None
        effort = request is not None and request.job_class is JobClass.BEST_EFFORT
        return run.job.but(
            state=JobState.RUNNING,
            shape=run.shape,
            shapes=run.job.shapes if elastic else run.alone,
            tasks_waiting=1,
            start_s=run.start_s,
            nodes=self.names(run.places),
            restarts=len(run.of.spans),
            preempted=run.of.preemptions,
            preemptible=free and effort,
            room_for=run.room_for,
            next_shape=run.next_shape,
            next_nodes=self.names(run.next_places),
        )

    # --- what happens -----------------------------------------------------------------------

    def start(self, job: Job, of: History, shape: Shape, nodes: Sequence[str]) -> Run | None:
        """Let a job that has left the queue hold what ``shape`` needs; None: it does not fit.

        When it works and ends is for the caller to say.
        """
        places = tuple([self.ground.number[name] for name in nodes])
        need = self.ground.profiles.need(job, shape)
        receipts = self._take(places, need)
        if receipts is None:
            return None
        self._number += 1
        run = Run(
            job, of, shape, need, places, receipts, self._number, 0.0, 0.0, 0.0, 0.0, (shape,)
        )
        self.running[job.id] = run
        return run

    def begins(self, run: Run, start_s: float) -> None:
        """Note when a run began, by its time limit when it ends at the latest."""
        run.start_s = start_s
        end_s = start_s + limit_s(run.job)
        release = Release(end_s, run.places, run.need, False, run.job.id)
        self.ground.ends.begin(run.number, release)

    def stop(self, run: Run) -> None:
        """Give back all that a run holds."""
        del self.running[run.job.id]
        self.ground.ends.end(run.number)
        self._give_back(run.places, run.receipts)
        for place, receipt in run.extra:
            self._give_back((place,), (receipt,))

    def keep_extra(self, run: Run, shape: Shape, nodes: Sequence[str]) -> bool:
        """Keep for a run's next shape what it does not have itself; False: it is not free."""
        places = tuple([self.ground.number[name] for name in nodes])
        need, cells = self.ground.profiles.need(run.job, shape), self.ground.cells
        extra: list[tuple[int, Receipt]] = []
        for place in places:
            receipt = self._beyond(run, place, need)
            if receipt is None:
                return False
            if receipt != NOTHING:
                extra.append((place, receipt))
        for place, receipt in extra:
            cells.move(place, cells.without(cells.of[place], receipt, _NOW))
            self._count(place, receipt, 1)
        cells.keep()
        run.extra, run.next_shape, run.next_places = tuple(extra), shape, places
        run.seen = None
        return True

    def _beyond(self, run: Run, place: int, need: Need) -> Receipt | None:
        """What a need takes on a node beyond what a run has there; None: it is not free."""
        cell = self.ground.cells.of[place]
        if place not in run.places:
            return cell.receipt(need, _NOW)
        own = run.receipts[run.places.index(place)]
        found = find(cell.kind, returned(cell.state, own), need, now=cell.state[2])
        return None if found is None else beyond(found, own)

    def _take(self, places: tuple[int, ...], need: Need) -> tuple[Receipt, ...] | None:
        cells = self.ground.cells
        taken: list[Receipt] = []
        for place in places:
            if cells.of[place].receipt(need, _NOW) is None:
                self._give_back(places[: len(taken)], tuple(taken))
                return None
            taken.append(cells.take(place, need, _NOW))
            self._count(place, taken[-1], 1)
        cells.keep()
        return tuple(taken)

    def _give_back(self, places: tuple[int, ...], receipts: tuple[Receipt, ...]) -> None:
        cells = self.ground.cells
        for place, receipt in zip(places, receipts, strict=True):
            cells.move(place, cells.with_back(cells.of[place], receipt, _NOW))
            self._count(place, receipt, -1)
        cells.keep()

    def _count(self, place: int, receipt: Receipt, more: int) -> None:
        """Count the jobs on each single GPU."""
        sharers = self._sharers
        for pool, _, gpus in receipt[2]:
            for gpu, _ in gpus:
                key = (place, pool, gpu)
                sharers[key] = sharers.get(key, 0) + more


class _Lazy(Sequence[Seen]):
    """Rows that are made when they are looked at, all of them, once."""

    def __init__(self, make: Callable[[], tuple[Seen, ...]], count: int) -> None:
        self._make, self._count = make, count
        self._made: tuple[Seen, ...] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Seen: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Seen]: ...
    def __getitem__(self, at: int | slice) -> Seen | Sequence[Seen]:
        return self._rows()[at]

    def __iter__(self) -> Iterator[Seen]:
        return iter(self._rows())

    def _rows(self) -> tuple[Seen, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made
