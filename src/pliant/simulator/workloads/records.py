"""A trace's jobs on one machine of N processors: as they ran, or moldable within bounds.

The machine is one node, for traces say nothing of nodes that a shape could follow. Its processors
are GPUs of the model, so that policies for GPUs divide them, or CPUs, which only rigid jobs take.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

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
from pliant.simulator.workloads.rows import Kinds, Rows, Words

Width = Literal["allocated", "asked"]
"""Which of a record's two numbers of processors a job takes."""

LIMITS = "a time limit shorter than the run is as long as the run: nothing is ended"
"""What is chosen where jobs have the trace's time limits."""
NODE = "machine"
PARTITIONS = (Partition("all", (NODE,), default=True),)
_ALL = ("all",)


@dataclass(frozen=True, slots=True)
class Linear:
    """A speed in proportion to the GPUs: 1 at the own number."""

    own: int

    def __call__(self, shape: Shape) -> float:
        """Return the speed as a shape."""
        return shape.nodes * shape.gpus / (shape.share * self.own)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a trace's jobs are replayed on, and how.

    ``bounds``: the fewest and the most processors that every job may run on, with linear speedup;
    None: it runs on its own number alone. ``cpus``: its processors are CPUs; else GPUs. ``width``:
    how many of them a job takes for its own. ``offline``: all jobs are there from the beginning.
    ``limits``: jobs have the trace's time limits, where it has any, but none that would end them
    early. ``told``: policies know each job's volume.
    """

    processors: int
    bounds: tuple[int, int] | None = None
    cpus: bool = False
    width: Width = "allocated"
    offline: bool = False
    limits: bool = False
    told: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be: raises BadInput."""
        least, most = self.bounds or (1, 1)
        if self.processors < 1:
            raise BadInput(f"{self.processors} processors: at least one is needed")
        if not 1 <= least <= most:
            raise BadInput(f"{least} to {most} processors for a job: 1 to 240, say, is expected")
        if self.cpus and (self.bounds or self.told):
            raise BadInput("jobs on CPUs keep their width here: take GPUs for processors to mold")

    @property
    def node(self) -> Node:
        """The machine as one node; a core for each GPU, so that no job lacks one."""
        pools = () if self.cpus else (Pool("", self.processors, self.processors),)
        return Node(NODE, self.processors, self.processors, 0, 0, pools)


def from_records(records: Iterable[Record], machine: Machine, name: str) -> Workload:
    """Return a trace's jobs on a machine; they must come in the order of their submission.

    Raises BadInput where they do not.
    """
    jobs = _Jobs(machine)
    for record in records:
        jobs.append(record)
    nodes = (machine.node,)
    return Workload(name, nodes, PARTITIONS, Rows(len(jobs), jobs), _choices(machine))


def _choices(machine: Machine) -> tuple[str, ...]:
    had = "it was allocated" if machine.width == "allocated" else "it asked for"
    said = [
        "the machine is one node: nothing is lost by how processors lie",
        f"a job's own number of processors is what {had}",
        "a job that is wider than the machine is cut to all of it, and runs as long as it did",
        "jobs that failed or were cancelled run as long as they did",
    ]
    if machine.limits:
        said.append(LIMITS)
    return tuple(said)


class _Kind(NamedTuple):
    """What jobs of one width have in common."""

    shape: Shape
    shapes: tuple[Shape, ...]
    footprint: Footprint
    spec: Spec | None
    speed: Speed


class _Jobs:
    """The jobs read so far; makes each when it is asked for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._ids, self._users, self._widths = Words(), Kinds[str](), Kinds[int]()
        self._submit_s, self._work_s, self._limit_s = array("d"), array("d"), array("d")
        self._kinds: dict[int, _Kind] = {}
        self._shapes, self._request = _allowed(machine)

    def __len__(self) -> int:
        return len(self._ids)

    def append(self, record: Record) -> None:
        machine = self._machine
        if self._submit_s and record.submit_s < self._submit_s[-1] and not machine.offline:
            raise BadInput(f"job {record.id} was submitted before the one that is read before it")
        self._ids.append(record.id)
        self._users.append(record.user)
        width = record.width if machine.width == "allocated" else record.asked
        self._widths.append(min(width, machine.processors))
        self._submit_s.append(0.0 if machine.offline else record.submit_s)
        self._work_s.append(record.run_s)
        if machine.limits:
            limit_s = max(record.limit_s, record.run_s) if record.limit_s else 0.0
            self._limit_s.append(limit_s)

    def __call__(self, row: int) -> Arrival:
        work_s, width = self._work_s[row], self._widths[row]
        kind = self._kinds.get(width) or self._kind(width)
        job = Job(
            id=self._ids[row],
            user=self._users[row],
            partitions=_ALL,
            submit_s=self._submit_s[row],
            shape=kind.shape,
            shapes=kind.shapes,
            footprint=kind.footprint,
            spec=kind.spec,
            time_limit_s=ceil(self._limit_s[row]) if self._limit_s else 0,
            volume_s=work_s * width if self._machine.told else 0.0,
        )
        return Arrival(job, work_s, kind.speed)

    def _kind(self, width: int) -> _Kind:
        if self._machine.cpus:
            one = Shape(1, 0, kind=Kind.CPU)
            kind = _Kind(one, (one,), Footprint(cpus_per_task=width), None, alike)
        else:
            shape = next((s for s in self._shapes if s.gpus == width), Shape(1, width))
            spec = Spec(self._request, own=shape) if self._request is not None else None
            kind = _Kind(shape, self._shapes or (shape,), _ONE_CORE, spec, Linear(width))
        self._kinds[width] = kind
        return kind


_ONE_CORE = Footprint()


def _allowed(machine: Machine) -> tuple[tuple[Shape, ...], Request | None]:
    """What all jobs may run as, and ask: () and None where each keeps its width."""
    if machine.bounds is None:
        return (), None
    least, most = (min(bound, machine.processors) for bound in machine.bounds)
    totals = range(least, most + 1)
    request = Request(gpus=tuple(map(Fraction, totals)), malleable=Malleable())
    return tuple(Shape(1, total) for total in totals), request
