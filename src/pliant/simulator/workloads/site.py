"""A trace's jobs on a cluster of equal nodes, as many GPUs and CPUs on each.

A trace that tells of GPUs (sacct) has jobs with GPUs and jobs without; in one that does not (SWF) a
processor is a GPU. On nodes without GPUs a CPU stands for a GPU, so that policies divide CPUs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from pliant.errors import BadInput
from pliant.model import (
    Footprint,
    Job,
    Kind,
    Malleable,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Spec,
)
from pliant.simulator.traces import Record
from pliant.simulator.workload import Arrival, Speed, Workload, alike
from pliant.simulator.workloads.records import LIMITS, Linear
from pliant.simulator.workloads.rows import Kinds, Rows, Words

_ALL = ("all",)
PLENTY = 1_000_000
"""CPUs of a node where none are counted."""


@dataclass(frozen=True, slots=True)
class Site:
    """``nodes`` nodes with ``gpus`` and ``cpus`` on each; ``cpus`` 0: they are not counted.

    ``bounds``: the fewest and the most GPUs that every job with GPUs may run on, with linear
    speedup; None: it keeps its own. ``by_processor``: a trace's processor is a GPU. ``offline``,
    ``limits`` and ``told``: as :class:`~pliant.simulator.workloads.records.Machine` has them.
    """

    nodes: int
    gpus: int
    cpus: int = 0
    bounds: tuple[int, int] | None = None
    by_processor: bool = False
    offline: bool = False
    limits: bool = False
    told: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be: raises BadInput."""
        if self.nodes < 1 or not (self.gpus or self.cpus):
            raise BadInput("a cluster has a node at least, and GPUs or CPUs on it")
        least, most = self.bounds or (1, 1)
        if not 1 <= least <= most:
            raise BadInput(f"{least} to {most} GPUs for a job: 1 to 8, say, is expected")

    @property
    def units(self) -> int:
        """What stands for GPUs on a node."""
        return self.gpus or self.cpus

    def shape(self, units: int, nodes: int = 0) -> Shape:
        """Return so many GPUs, on ``nodes`` nodes where that goes, else on the fewest.

        As many on each. More than there are is all of them.
        """
        units = min(units, self.units * self.nodes)
        for count in (nodes, *range(ceil(units / self.units), self.nodes + 1)):
            if 0 < count <= self.nodes and units % count == 0 and units // count <= self.units:
                return Shape(count, units // count)
        fewest = ceil(units / self.units)
        return Shape(fewest, ceil(units / fewest))


def on_site(records: Iterable[Record], site: Site, name: str) -> Workload:
    """Return a trace's jobs on a cluster; they come in the order of their submission."""
    jobs = _Jobs(site)
    for record in records:
        jobs.append(record)
    names = tuple(f"n{number:0{len(str(site.nodes))}}" for number in range(1, site.nodes + 1))
    cpus = site.cpus or PLENTY
    pool = Pool("", site.units, site.units)
    nodes = tuple(Node(one, cpus, cpus, 0, 0, (pool,)) for one in names)
    return Workload(
        name,
        nodes,
        (Partition("all", names, default=True),),
        Rows(len(jobs), jobs),
        _choices(site),
    )


def _choices(site: Site) -> tuple[str, ...]:
    of = "GPUs" if site.gpus else "CPUs"
    said = [
        f"a job keeps its number of nodes where its {of} divide over them, else has the fewest over"
        " which they do",
        f"where they divide over none, they are rounded up to the same number on each of the fewest"
        f" nodes: 7 {of} on two nodes of 4 are 2 x 4",
        "a job that is larger than the cluster is cut to all of it, and runs as long as it did",
        "jobs that failed or were cancelled run as long as they did",
        "memory, partitions, types of GPU and features are not known, and do not count",
    ]
    if site.limits:
        said.append(LIMITS)
    return tuple(said)


class _Kind(NamedTuple):
    """What jobs alike have in common."""

    shape: Shape
    shapes: tuple[Shape, ...]
    footprint: Footprint
    spec: Spec | None
    speed: Speed


class _Jobs:
    """The jobs read so far; makes each when it is asked for."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ids, self._users = Words(), Kinds[str]()
        self._kinds = Kinds[tuple[int, int, int]]()
        self._submit_s, self._work_s, self._limit_s = array("d"), array("d"), array("d")
        self._made: dict[tuple[int, int, int], _Kind] = {}
        self._shapes: tuple[Shape, ...] = ()
        self._request: Request | None = None
        if site.bounds is not None:
            most = site.units * site.nodes
            least, most = (min(bound, most) for bound in site.bounds)
            found = dict.fromkeys(site.shape(total) for total in range(least, most + 1))
            self._shapes = tuple(found)
            totals = tuple(sorted({Fraction(shape.amount) for shape in found}))
            self._request = Request(gpus=totals, malleable=Malleable())

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, record: Record) -> None:
        site = self._site
        units = record.width if site.by_processor or not site.gpus else record.gpus
        self._ids.append(record.id)
        self._users.append(record.user)
        self._kinds.append((units, record.width, record.nodes))
        self._submit_s.append(0.0 if site.offline else record.submit_s)
        self._work_s.append(record.run_s)
        limited = site.limits and record.limit_s
        self._limit_s.append(max(record.limit_s, record.run_s) if limited else 0.0)

    def __call__(self, row: int) -> Arrival:
        key, work_s = self._kinds[row], self._work_s[row]
        kind = self._made.get(key) or self._made.setdefault(key, self._kind(*key))
        job = Job(
            id=self._ids[row],
            user=self._users[row],
            partitions=_ALL,
            submit_s=self._submit_s[row],
            shape=kind.shape,
            shapes=kind.shapes,
            footprint=kind.footprint,
            spec=kind.spec,
            time_limit_s=ceil(self._limit_s[row]),
            volume_s=work_s * float(kind.shape.amount) if self._site.told else 0.0,
        )
        return Arrival(job, work_s, kind.speed)

    def _kind(self, units: int, width: int, nodes: int) -> _Kind:
        site = self._site
        cpus = site.cpus or PLENTY
        if not units:  # on CPUs alone
            count = min(site.nodes, max(1, nodes, ceil(width / cpus)))
            shape = Shape(count, 0, kind=Kind.CPU)
            footprint = Footprint(cpus_per_task=min(cpus, ceil(width / count)))
            return _Kind(shape, (shape,), footprint, None, alike)
        shape = site.shape(units, nodes if site.bounds is None else 0)
        footprint = Footprint()
        if site.cpus and site.gpus and not site.by_processor:
            each = min(ceil(width / units), site.cpus // site.gpus)
            footprint = Footprint(cpus_per_gpu=max(1, each))
        spec = Spec(self._request, own=shape) if self._request is not None else None
        speed = Linear(shape.nodes * shape.gpus)
        return _Kind(shape, self._shapes or (shape,), footprint, spec, speed)
