"""A site's recorded jobs on its own cluster, rigid as they were or moldable, as a workload."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import NamedTuple

from pliant.errors import BadInput
from pliant.model import Footprint, Job, Request, Shape, Spec
from pliant.simulator.metrics import Span, Task
from pliant.simulator.traces import Record
from pliant.simulator.traces.guess import FORMATS, guess
from pliant.simulator.whatif.cluster import SiteCluster
from pliant.simulator.whatif.molding import Molding, Relative
from pliant.simulator.whatif.rooms import Room
from pliant.simulator.workload import Arrival, Speed, Workload, alike
from pliant.simulator.workloads.rows import Kinds, Rows, Words


@dataclass(frozen=True, slots=True)
class Month:
    """What is replayed: a trace of sacct's on a cluster. ``molds``: else all jobs are rigid."""

    trace: str
    format: str
    cluster: SiteCluster
    molding: Molding
    molds: bool = True

    def workload(self, seed: int) -> Workload:
        """Return the jobs. Raises BadInput: a line that cannot be right, or no job at all."""
        del seed
        jobs = _Jobs(self)
        for record in self.records():
            jobs.append(record)
        cluster = self.cluster
        return Workload(
            self.trace, cluster.nodes, cluster.partitions, Rows(len(jobs), jobs.arrival)
        )

    def records(self) -> Iterator[Record]:
        """Yield the jobs that ran and have ended. Raises BadInput."""
        path, none = Path(self.trace), True
        of = FORMATS[self.format] if self.format else guess(path)
        for record in of.read(path):
            none = False
            yield record
        if none:
            raise BadInput(f"{path}: no job in it ran and has ended")


def happened(records: Iterable[Record], month: Month) -> Iterator[Task]:
    """Yield what became of the jobs in truth, as what a replay yields.

    A job that was requeued counts with its last run; before it, it waited.
    """
    curve = month.molding.curve
    for record in records:
        gpus = _units(record, month)
        start_s = record.submit_s + record.wait_s
        end_s = start_s + record.run_s
        volume_s = record.run_s * (curve(gpus) if gpus else 1.0)
        span = Span(start_s, end_s, gpus)
        yield Task(record.id, record.user, record.submit_s, volume_s, (span,))


def _units(record: Record, month: Month) -> int:
    return record.width if month.cluster.by_cpu else record.gpus


class _Key(NamedTuple):
    """What jobs alike have in common, as they were recorded."""

    queue: str
    units: int
    cpus: int
    nodes: int
    molds: bool


class _Kind(NamedTuple):
    """What follows from it. ``slower``: how much longer it may run than as its own shape."""

    shape: Shape
    shapes: tuple[Shape, ...]
    footprint: Footprint
    spec: Spec | None
    speed: Speed
    slower: float = 1.0


class _Jobs:
    """The jobs read so far; each is made when it is asked for."""

    def __init__(self, month: Month) -> None:
        self._month = month
        cluster = month.cluster
        of = {node.name: node for node in cluster.nodes}
        self._rooms = {p.name: Room(of[name] for name in p.nodes) for p in cluster.partitions}
        self._usual = next(p.name for p in cluster.partitions if p.default)
        self._ids, self._users = Words(), Kinds[str]()
        self._keys = Kinds[_Key]()
        self._submit_s, self._work_s, self._limit_s = array("d"), array("d"), array("d")
        self._made: dict[_Key, _Kind] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, record: Record) -> None:
        """Keep what of a job is replayed."""
        month = self._month
        units = _units(record, month)
        queue = record.queue if record.queue in self._rooms else self._usual
        molds = month.molds and units > 0 and month.molding.is_of(record.user)
        self._ids.append(record.id)
        self._users.append(record.user)
        self._keys.append(_Key(queue, units, record.width, record.nodes, molds))
        self._submit_s.append(record.submit_s)
        self._work_s.append(record.run_s)
        # One that ran on beyond its limit for a moment (OverTimeLimit) is not ended before.
        self._limit_s.append(max(record.limit_s, record.run_s) if record.limit_s else 0.0)

    def arrival(self, row: int) -> Arrival:
        """Return a job by its place."""
        key = self._keys[row]
        kind = self._made.get(key) or self._made.setdefault(key, self._kind(key))
        restart_s = self._month.molding.restart_s if kind.spec else 0.0
        job = Job(
            id=self._ids[row],
            user=self._users[row],
            partitions=(key.queue,),
            submit_s=self._submit_s[row],
            shape=kind.shape,
            shapes=kind.shapes,
            footprint=kind.footprint,
            spec=kind.spec,
            time_limit_s=ceil(self._limit_s[row] * kind.slower),
            grace_s=restart_s / 2,
            restart_s=restart_s,
        )
        half_s = restart_s / 2
        return Arrival(job, self._work_s[row], kind.speed, save_s=half_s, restart_s=half_s)

    def _kind(self, key: _Key) -> _Kind:
        room, month = self._rooms[key.queue], self._month
        if not key.units:
            shape, cpus = room.on_cpus(key.cpus, key.nodes)
            return _Kind(shape, (shape,), Footprint(cpus_per_task=cpus), None, alike)
        own = room.own(key.units, key.nodes)
        speed = Relative(own.nodes * own.gpus, month.molding.curve)
        each = 1
        if month.cluster.counts_cpus and not month.cluster.by_cpu:
            each = room.cpus_per_gpu(own, key.cpus)
        footprint = Footprint(cpus_per_gpu=each)
        if not key.molds:
            return _Kind(own, (own,), footprint, None, speed)
        shapes = self._shapes(room, own, each)
        totals = tuple(Fraction(shape.amount) for shape in shapes)
        spec = Spec(Request(gpus=totals, malleable=self._month.molding.malleable), own=own)
        slower = max(1.0, *(1.0 / speed(shape) for shape in shapes))
        return _Kind(own, shapes, footprint, spec, speed, slower)

    def _shapes(self, room: Room, own: Shape, cpus_per_gpu: int) -> tuple[Shape, ...]:
        total = own.nodes * own.gpus
        found = [
            own if gpus == total else room.other(gpus, cpus_per_gpu)
            for gpus in self._month.molding.totals(total)
        ]
        return tuple(shape for shape in found if shape is not None)
