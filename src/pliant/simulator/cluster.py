"""A simulated cluster: what waits, what runs, what is free; and it shows itself as a snapshot.

It decides nothing and knows no time but what it is told: jobs start, change, stop and end as
:mod:`pliant.simulator.replay` says. A snapshot of it is a view: what was not looked at was not
made, and what has not changed is what it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import inf, nextafter
from typing import TypeVar

from pliant.model import Job, JobClass, JobState, Node, Shape, Snapshot, rests_until_s
from pliant.placement import Need, limit_s
from pliant.placement.ground import Ground, Grounded
from pliant.placement.needs import find
from pliant.placement.queue import Queue
from pliant.placement.states import NOTHING, Receipt, State, beyond, has, node_in, returned
from pliant.placement.timeline import Release
from pliant.plan import Start
from pliant.policies.crowd import Crowd, Standing
from pliant.simulator.running import (
    NO_LADDER,
    Differences,
    History,
    Lazy,
    Run,
    Shown,
    Standings,
    is_elastic,
)
from pliant.simulator.workload import Workload
from pliant.speedup import run_time_s

Seen = TypeVar("Seen")
ONE = Shape(1, 1)
CHANGES = 4
"""How often a job may be changed in one instant."""
_NOW = -float("inf")
"""As a bound: under no claims."""


class Cluster:
    """Nodes, the jobs that wait for them, and those that run there."""

    def __init__(self, workload: Workload) -> None:
        whole = Snapshot(0.0, workload.nodes, workload.partitions)
        self._all = workload.nodes
        self._rest = (whole.reservations, whole.abilities, whole.company)
        self.partitions = workload.partitions
        self.ground = Ground(whole)
        self._sharers = self.ground.sharers = {}
        self.queue = Queue(self.ground.profiles)
        self.running: dict[str, Run] = {}
        self._number = 0
        self._standings = Standings(whole, self.ground)
        self._differences = Differences()
        self.has_several_gpus = any(
            len(node.pools) > 1
            or any(pool.total > 1 and pool.shards_per_gpu for pool in node.pools)
            for node in workload.nodes
        )
        """Whether it matters which GPUs of a node a job has."""

    # --- as the cycle sees it ---------------------------------------------------------------

    def snapshot(self, now_s: float, *, progress: bool = True) -> Grounded:
        """Show the cluster as it is now. It is valid until something changes.

        ``progress``: also how far the jobs are that run.
        """
        jobs = partial(self._jobs, now_s, progress)
        running = Shown(jobs, len(self.running), partial(self._crowd, now_s))
        nodes = Lazy(self._nodes, len(self._all))
        of = (now_s, nodes, self.partitions, self.queue, running, *self._rest)
        return Grounded(*of, ground=self.ground)

    def _jobs(self, now_s: float, progress: bool) -> tuple[Job, ...]:
        return tuple([self.job(run, now_s, progress=progress) for run in self.running.values()])

    def _crowd(self, now_s: float, queue: Queue) -> Crowd | None:
        return self._standings.crowd(now_s, queue, partial(self._standing, now_s))

    def _standing(self, now_s: float, standing: Standing) -> Job:
        return self.job(self.running[standing.job.id], now_s)

    def _nodes(self) -> tuple[Node, ...]:
        cells = self.ground.cells
        return tuple(
            [
                self._node(place, node, cells.really(place)) if place in cells.of else node
                for place, node in enumerate(self._all)
            ]
        )

    def _node(self, place: int, node: Node, state: State) -> Node:
        return node_in(node, state, partial(self.ground.jobs_on, place))

    def names(self, places: Sequence[int]) -> tuple[str, ...]:
        """Return the names of nodes given by number."""
        return tuple([self.ground.names[place] for place in places])

    def job(self, run: Run, now_s: float, *, progress: bool = True) -> Job:
        """Return a running job as a policy sees it; its progress as it was shown last if not."""
        if run.seen is None or now_s >= run.seen_until_s:
            done = run.done_at(now_s) if progress else run.job.progress
            run.seen = self._seen(run, now_s, done)
            known = (run.protected_s, run.free_s, run.rests_s)
            later = [at_s for at_s in known if at_s > now_s]
            run.seen_until_s = min(later, default=inf)
        elif progress:
            run.seen = run.seen.at(run.done_at(now_s))
        return run.seen

    def _seen(self, run: Run, now_s: float, done: float) -> Job:
        under_way = run.next_shape is not None or bool(run.room_for)
        request = run.job.spec.request if run.job.spec is not None else None
        free = not under_way and now_s >= max(run.protected_s, run.rests_s)
        elastic = free and now_s >= run.free_s
        effort = request is not None and request.job_class is JobClass.BEST_EFFORT
        return run.job.but(
            state=JobState.RUNNING,
            progress=done,
            shape=run.shape,
            shapes=run.job.shapes if elastic else run.alone,
            tasks_waiting=1,
            start_s=run.start_s,
            nodes=self.names(run.places),
            restarts=len(run.of.spans),
            preempted=run.of.preemptions,
            changes=len(run.of.spans),
            works_s=run.works_s,
            preemptible=free and effort,
            room_for=run.room_for,
            next_shape=run.next_shape,
            next_nodes=self.names(run.next_places),
        )

    # --- what would fit ---------------------------------------------------------------------

    def fits_all(self, starts: Iterable[Start]) -> bool:
        """Whether these can start now in this order."""
        cells, fits = self.ground.cells, True
        for start in starts:
            need = self.ground.profiles.need(start.job, start.shape)
            places = [self.ground.number[name] for nodes in start.all_nodes for name in nodes]
            for place in places:
                fits = fits and cells.of[place].receipt(need, _NOW) is not None
                if fits:
                    cells.take(place, need, _NOW)
        cells.restore()
        return fits

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
        run.arrival, run.gpus, run.limit_s = (job.submit_s, job.id), shape.gpus, limit_s(job)
        run.elastic = is_elastic(job)
        ladder = self.ground.profiles.of(job).ladder
        if ladder and self._differences.are_numbers(self.ground.cells.of[places[0]].kind, need):
            run.ladder, run.whole_s = ladder, job.volume_s or run_time_s(job, ONE)
        self.running[job.id] = run
        self._standings.begin(run)
        return run

    def begins(self, run: Run, start_s: float) -> None:
        """Note when a run began, by its time limit when it ends at the latest.

        A job is not changed for ever in one instant: what may be changed depends on who shares
        which GPU, and so on the change itself, and two decisions may be made in turn.
        """
        run.start_s = start_s
        run.over_s = end_s = start_s + run.limit_s
        release = Release(end_s, run.places, run.need, False, run.job.id)
        self.ground.ends.begin(run.number, release)
        run.free_s = run.protected_s if run.elastic else inf
        spans = run.of.spans
        malleable = run.job.spec.request.malleable if run.job.spec is not None else None
        run.rests_s = rests_until_s(malleable, len(spans), len(spans), run.works_s)
        run.free_s = max(run.free_s, run.rests_s)
        if len(spans) >= CHANGES and spans[-CHANGES].end_s >= start_s:
            run.free_s = max(run.free_s, nextafter(start_s, inf))

    def stop(self, run: Run) -> None:
        """Give back all that a run holds."""
        del self.running[run.job.id]
        self._standings.end(run)
        self._standings.others -= run.next_shape is not None
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
        run.next_need = need
        self._standings.others += 1
        run.seen = None
        return True

    def change(self, run: Run) -> bool:
        """Let a run go on as its next shape on what it has and what was kept for it.

        False: it must be stopped and started anew, as more than the number of its GPUs matters.
        """
        id_, shape, need, cells = run.job.id, run.next_shape, run.next_need, self.ground.cells
        if run.ladder is NO_LADDER or shape is None or run.places != run.next_places:
            return False
        assert need is not None  # noqa: S101  # for types: it comes with the shape
        (place,) = run.places
        left = self._differences.of(cells.of[place].kind, run.need, need)
        if left != NOTHING:
            cells.move(place, cells.with_back(cells.of[place], left, _NOW))
            cells.keep()
        self.ground.ends.end(run.number)
        self._number += 1
        self._standings.others -= 1
        run.go_on(shape, need, self._differences.receipt(cells.of[place].kind, need), self._number)
        del self.running[id_]  # the last one to begin stands last
        self.running[id_] = run
        return True

    def _beyond(self, run: Run, place: int, need: Need) -> Receipt | None:
        """What a need takes on a node beyond what a run has there; None: it is not free."""
        cell = self.ground.cells.of[place]
        if place not in run.places:
            return cell.receipt(need, _NOW)
        if run.ladder is not NO_LADDER:
            more = self._differences.of(cell.kind, need, run.need)
            return more if has(cell.state, more) else None
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
            for gpu, _, _ in gpus:
                key = (place, pool, gpu)
                sharers[key] = sharers.get(key, 0) + more
