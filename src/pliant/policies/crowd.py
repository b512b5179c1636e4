"""A cluster where GPUs are just a number: one node of whole GPUs, on which nothing else runs short.

There any GPU is as good as another, and what fits is told by comparing numbers: nothing needs to
be placed to decide. So it is where all that runs and waits takes whole GPUs of the one node that
is up, and no more of its cores and memory than these GPUs' part: then neither is ever short where
GPUs are free. Where more matters (types, shares, several nodes or queues, arrays, limits, changes
under way) there is no crowd, and a decision is made over :class:`pliant.placement.Free`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Protocol

from pliant.model import Job, JobState, Kind, Node, Shape, Snapshot
from pliant.placement import limit_s
from pliant.placement.ground import Ground, Grounded, Supposed
from pliant.placement.profiles import Ladder, within_part
from pliant.placement.queue import Queue
from pliant.placement.room import Ends, Room
from pliant.plan import Reshape
from pliant.speedup import volume_left_s, volume_of_s


class Standing(Protocol):
    """A running job that may be changed: what numbers tell of it."""

    @property
    def job(self) -> Job:
        """What it asks: neither what it has nor how far it is need be right here."""

    @property
    def arrival(self) -> tuple[float, str]:
        """When it came, and its id."""

    @property
    def ladder(self) -> Ladder:
        """What it may run as from now on."""

    @property
    def gpus(self) -> int:
        """What it has now."""

    @property
    def limit_s(self) -> float:
        """Its time limit."""

    @property
    def over_s(self) -> float:
        """When that ends it."""

    @property
    def whole_s(self) -> float:
        """How long all of its work would take alone on one GPU."""

    def left_s(self, now_s: float) -> float:
        """Return how long what is left of its work would take alone on one GPU."""


@dataclass(eq=False, slots=True)
class Crowd:
    """Who runs and who waits, in numbers.

    ``free``: GPUs that nobody has; ``rows``: the running jobs that may be changed, those that came
    first before others; ``shown``: as policies see one. ``closed``: as in :class:`Room`.
    """

    now_s: float
    free: int
    rows: Sequence[Standing]
    queue: Queue
    ground: Ground
    node: str
    closed: bool
    shown: Callable[[Standing], Job]

    def reshape(self, row: Standing, shape: Shape, reason: str) -> Reshape:
        """Return that a job is to become another shape; the job is made when it is looked at."""
        return _Reshape(row, self.shown, shape, (self.node,), reason)

    def room(self, more: int = 0) -> Room:
        """Return what is free, and ``more``."""
        return Room(self.now_s, self.free + more, self.closed)

    def ends(self, others: Sequence[tuple[float, int]] = (), without: Iterable[str] = ()) -> Ends:
        """Yield when what runs and ``others`` give back what they have, but some jobs, by id."""
        gone = frozenset(without)
        known = (
            (end.at_s, end.need.gpus)
            for end in self.ground.ends.among((), self.now_s)
            if end.need is not None and end.job not in gone
        )
        return merge(known, sorted(others, key=_when), key=_when)


class _Reshape(Reshape):
    """A change of a running job that is made when it is looked at, as long as nothing changes."""

    __slots__ = ("_row", "_shown")
    _row: Standing
    _shown: Callable[[Standing], Job]

    def __init__(
        self,
        row: Standing,
        shown: Callable[[Standing], Job],
        shape: Shape,
        nodes: tuple[str, ...],
        reason: str,
    ) -> None:
        put = object.__setattr__
        put(self, "_row", row)
        put(self, "_shown", shown)
        put(self, "shape", shape)
        put(self, "nodes", nodes)
        put(self, "reason", reason)

    @property
    def job(self) -> Job:
        return self._shown(self._row)

    @property
    def job_id(self) -> str:
        return self._row.arrival[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reshape):
            return NotImplemented
        mine = (self.job, self.shape, self.nodes, self.reason)
        return mine == (other.job, other.shape, other.nodes, other.reason)

    __hash__ = Reshape.__hash__


def _when(end: tuple[float, int]) -> float:
    return end[0]


class Running(Sequence[Job]):
    """The running jobs of a cluster that keeps its ground, and can show them in numbers."""

    def crowd(self, queue: Queue) -> Crowd | None:
        """Return the crowd of them and those that wait; None where more than numbers matters."""
        raise NotImplementedError


def crowd_of(snapshot: Snapshot) -> Crowd | None:
    """Return a snapshot's jobs in numbers; None where more than numbers matters."""
    if isinstance(snapshot, Grounded):
        running, waiting = snapshot.running, snapshot.waiting
        if isinstance(running, Running) and isinstance(waiting, Queue):
            snapshot.ground.restored()
            return running.crowd(waiting)
        return None
    if isinstance(snapshot, Supposed) or sum(node.up for node in snapshot.nodes) != 1:
        return None
    return _read(snapshot)


def only_node(snapshot: Snapshot, ground: Ground) -> Node | None:
    """Return the one node that is up, where it has one pool of GPUs that are not shared.

    And there is one queue, and no reservation.
    """
    up = list(ground.cells.of)
    if len(up) != 1 or len(snapshot.partitions) != 1 or snapshot.reservations:
        return None
    node = snapshot.nodes[up[0]]
    whole = len(node.pools) == 1 and node.pools[0].total > 0 and not node.pools[0].shards_per_gpu
    return node if whole else None


def only_counts(queue: Queue) -> bool:
    """Whether only the number of GPUs matters for all jobs that wait, none of them an array."""
    for profile in queue.tasks:
        if profile.ladder is None and profile.kinds:
            return False
    return queue.all_tasks == len(queue)


# --- as a snapshot has them -----------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Row:
    """A running job of a snapshot."""

    job: Job
    arrival: tuple[float, str]
    ladder: Ladder
    gpus: int
    limit_s: float
    over_s: float

    @property
    def whole_s(self) -> float:
        return volume_of_s(self.job)

    def left_s(self, _now_s: float) -> float:
        return volume_left_s(self.job)


def _read(snapshot: Snapshot) -> Crowd | None:
    ground = Ground(snapshot)
    node = only_node(snapshot, ground)
    if node is None:
        return None
    queue = _queue(snapshot, ground)
    if queue is None or not _stand(snapshot.running, node, ground):
        return None
    rows = [_row(job, ground) for job in snapshot.running if _is_movable(job)]
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        return None
    found.sort(key=lambda row: row.arrival)
    closed = snapshot.abilities.claims_whole_nodes
    free = node.pools[0].free
    return Crowd(snapshot.now_s, free, found, queue, ground, node.name, closed, lambda row: row.job)


def _queue(snapshot: Snapshot, ground: Ground) -> Queue | None:
    names = (snapshot.partitions[0].name,)
    queue = Queue(ground.profiles)
    for job in snapshot.waiting:
        if job.eligible:
            if job.limited or job.partitions != names:
                return None
            queue.append(job)
    return queue if only_counts(queue) else None


def _stand(running: Iterable[Job], node: Node, ground: Ground) -> bool:
    """Whether all that runs has whole GPUs of the node, and what is free there fits to that."""
    kind = ground.cells.of[ground.number[node.name]].kind
    gpus, cpus, mem_mib = node.pools[0].free, node.free_cpus, node.free_mem_mib
    for job in running:
        need = ground.profiles.need(job, job.shape)
        under_way = job.next_shape is not None or job.whole_nodes
        if under_way or job.nodes != (node.name,) or not within_part(kind, need):
            return False
        gpus, cpus, mem_mib = gpus + need.gpus, cpus + need.cpus, mem_mib + need.mem_mib
    memory = not node.mem_mib or mem_mib == node.mem_mib
    return gpus == node.pools[0].total and cpus == node.cpus and memory


def _is_movable(job: Job) -> bool:
    return len(job.shapes) > 1 and job.state is JobState.RUNNING and job.shape.kind is not Kind.CPU


def _row(job: Job, ground: Ground) -> _Row | None:
    """A running job that may be changed, by its profile as one that waits."""
    profile = ground.profiles.of(replace(job, state=JobState.WAITING, tasks_waiting=1))
    if profile.ladder is None:
        return None
    arrival = (job.submit_s, job.id)
    most_s = limit_s(job)
    over_s = job.start_s + most_s
    return _Row(job, arrival, profile.ladder, job.shape.gpus, most_s, over_s)
