"""The jobs that run in a simulated cluster, and how they are shown: as jobs, and in numbers."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import TypeVar, overload

from pliant.model import Job, Shape, Snapshot
from pliant.placement import Need
from pliant.placement.ground import Ground
from pliant.placement.needs import find
from pliant.placement.profiles import Ladder, within_part
from pliant.placement.queue import Queue
from pliant.placement.states import NodeKind, Receipt, beyond
from pliant.policies.crowd import Crowd, Running, Standing, only_counts, only_node
from pliant.simulator.metrics import Span
from pliant.simulator.workload import Arrival

Seen = TypeVar("Seen")
NO_LADDER = Ladder((), (), even=False)


def is_elastic(job: Job) -> bool:
    """Whether its owner lets a job be changed while it runs, and there is a choice."""
    request = job.spec.request if job.spec is not None else None
    return request is not None and request.malleable is not None and len(job.shapes) > 1


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
    run_s: float  # all of its work, as fast as it is now
    alone: tuple[Shape, ...]  # its shape, and no other
    timed_out: bool = False
    protected_s: float = 0.0  # until then nothing may be taken from it
    saving_s: float = 0.0  # since when it makes no more progress; 0.0: it does
    next_shape: Shape | None = None
    next_places: tuple[int, ...] = ()
    next_need: Need | None = None
    extra: tuple[tuple[int, Receipt], ...] = ()  # what is kept for its next shape meanwhile
    room_for: str = ""
    arrival: tuple[float, str] = (0.0, "")
    ladder: Ladder = NO_LADDER  # that: more than the number of its GPUs matters
    gpus: int = 0
    whole_s: float = 0.0  # all of its work alone on one GPU
    limit_s: float = 0.0
    elastic: bool = False  # its owner lets it be changed while it runs
    over_s: float = 0.0  # when its time limit ends it
    free_s: float = inf  # from when on it may be changed
    rests_s: float = -inf  # until then its owner's max-resizes and min-run keep it; inf: for good
    left_at_s: float = -1.0  # when was asked last what is left of its work, and what was said
    left_known_s: float = 0.0
    seen: Job | None = None  # as it was shown last
    seen_until_s: float = 0.0  # but for its progress it is still the same
    done: float = 0.0  # the part of its work that was done at since_s
    since_s: float = 0.0  # from then on it makes progress, as fast as it is now
    pace: float = 1.0  # how fast it is beside others on its nodes, relative to without them

    def go_on(self, shape: Shape, need: Need, receipt: Receipt, number: int) -> None:
        """Be from now on another run of the same job, on the same node."""
        self.shape, self.need, self.receipts, self.number = shape, need, (receipt,), number
        self.gpus, self.alone = shape.gpus, (shape,)
        self.timed_out, self.protected_s, self.saving_s = False, 0.0, 0.0
        self.next_shape, self.next_places, self.extra = None, (), ()
        self.room_for, self.seen, self.left_at_s = "", None, -1.0

    def done_at(self, now_s: float) -> float:
        """The part of its work that is done."""
        until_s = self.saving_s if self.saving_s and self.saving_s < now_s else now_s
        worked_s = until_s - self.since_s
        if worked_s <= 0.0:
            return min(1.0, self.done)
        return min(1.0, self.done + worked_s / max(1e-9, self.run_s))

    def left_s(self, now_s: float) -> float:
        """Return how long what is left of its work would take alone on one GPU."""
        if now_s != self.left_at_s:
            left = max(0.0, 1.0 - self.done_at(now_s))
            self.left_at_s, self.left_known_s = now_s, left * self.whole_s if left else 0.0
        return self.left_known_s


class Differences:
    """What needs take of nodes of whole GPUs, and one beyond another: worked out once."""

    def __init__(self) -> None:
        self._beyond: dict[tuple[NodeKind, Need, Need], Receipt] = {}
        self._receipts: dict[tuple[NodeKind, Need], Receipt] = {}
        self._numbers: dict[tuple[NodeKind, Need], bool] = {}

    def of(self, kind: NodeKind, need: Need, less: Need) -> Receipt:
        """Return what ``need`` takes beyond ``less``."""
        key = (kind, need, less)
        known = self._beyond.get(key)
        if known is None:
            receipts = (self.receipt(kind, need), self.receipt(kind, less))
            known = self._beyond[key] = beyond(*receipts)
        return known

    def are_numbers(self, kind: NodeKind, need: Need) -> bool:
        """Whether a need is whole GPUs with no more than their part of the node."""
        key = (kind, need)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = within_part(kind, need)
        return known

    def receipt(self, kind: NodeKind, need: Need) -> Receipt:
        """Return what a need takes, wherever it fits."""
        key = (kind, need)
        known = self._receipts.get(key)
        if known is None:
            known = find(kind, kind.empty, need)
            assert known is not None, f"no node ever has {need}"  # noqa: S101 - callers see to it
            self._receipts[key] = known
        return known


class Standings:
    """The jobs that run, in numbers, as long as nothing but the number of GPUs matters."""

    def __init__(self, whole: Snapshot, ground: Ground) -> None:
        self._ground = ground
        self._node = only_node(whole, ground)
        self._runs: list[Run] = []  # by arrival
        self.others = 0  # runs, and changes under way, of which more than numbers matters

    def begin(self, run: Run) -> None:
        """A job runs."""
        if self._node is None:
            return
        if run.ladder is not NO_LADDER:
            insort(self._runs, run, key=_arrival)
        else:
            self.others += 1

    def end(self, run: Run) -> None:
        """A job runs no longer."""
        if self._node is None:
            return
        if run.ladder is not NO_LADDER:
            del self._runs[bisect_left(self._runs, run.arrival, key=_arrival)]
        else:
            self.others -= 1

    def crowd(self, now_s: float, queue: Queue, shown: Callable[[Standing], Job]) -> Crowd | None:
        """Return them and those that wait; None where more than numbers matters."""
        if self._node is None or self.others or not only_counts(queue):
            return None
        rows = [run for run in self._runs if run.free_s <= now_s]
        (cell,) = self._ground.cells.of.values()
        (free,) = cell.state[2]
        assert isinstance(free, int)  # noqa: S101  # for types: whole GPUs
        return Crowd(now_s, free, rows, queue, self._ground, self._node.name, False, shown)


_arrival = attrgetter("arrival")


class Lazy(Sequence[Seen]):
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


class Shown(Lazy[Job], Running):
    """The running jobs."""

    def __init__(
        self,
        make: Callable[[], tuple[Job, ...]],
        count: int,
        crowd: Callable[[Queue], Crowd | None],
    ) -> None:
        super().__init__(make, count)
        self._crowd = crowd

    def crowd(self, queue: Queue) -> Crowd | None:
        """Return the crowd of them and those that wait; None where more than numbers matters."""
        return self._crowd(queue)
