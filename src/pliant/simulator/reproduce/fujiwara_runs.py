"""The replays behind the figures of Fujiwara et al. (paper 000): what is run, and what it comes to.

Each point is one workload under one policy; the same point gives the same figures.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from pliant.plan import Policy
from pliant.policies import by_name
from pliant.simulator.metrics import Task, bags, spread
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.fujiwara_figures import Came
from pliant.simulator.runs import replayed
from pliant.simulator.traces import Record, read_swf
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.fujiwara import SENSITIVITY, fujiwara
from pliant.simulator.workloads.fujiwara_trace import TRACES, observed
from pliant.simulator.workloads.hpc2n import BOUNDS, on_cpus
from pliant.simulator.workloads.records import Machine

FCFS, LIST, SHORTEST = "rigid FCFS", "rigid list", "rigid shortest"
MOLDABLE, MALLEABLE = "moldable equipartition", "malleable equipartition"
MOLDABLE_P, MALLEABLE_P = "moldable proportional", "malleable proportional"

POLICIES: dict[str, Policy] = {
    FCFS: by_name("rigid-fcfs", shape="own"),
    LIST: by_name("rigid-fcfs", shape="own", overtaking=True),
    SHORTEST: by_name("rigid-shortest", shape="own"),
    MOLDABLE: by_name("moldable-equipartition"),
    MOLDABLE_P: by_name("moldable-proportional"),
    MALLEABLE: by_name("malleable-equipartition"),
    MALLEABLE_P: by_name("malleable-proportional"),
}
"""In the papers' exact form; ``rigid list``: what does not fit is passed over."""
LEFT = "malleable proportional by what is left"
RULES: dict[str, Policy] = {
    **POLICIES,
    LEFT: by_name("malleable-proportional", target="left"),
}
"""And another reading: the target of what is left of running tasks, as their v^rem is."""
RIGID = (FCFS, LIST, SHORTEST)
"""Their tasks have their own width alone: all of a width are passed over at once."""
CHANGING = (MALLEABLE, MALLEABLE_P, LEFT)
_SLOW = 20
"""About how much longer these take, which change what runs."""
ALL = 202_871
"""HPC2N's tasks."""


Row = TypeVar("Row")


class Gpu(NamedTuple):
    """A policy on so many tasks of the synthetic GPU trace.

    ``curves`` and ``choices``: which of :data:`SENSITIVITY` and :data:`TRACES`.
    """

    policy: str
    gpus: int
    tasks: int
    seed: int
    overhead_s: float = 0.0
    curves: int = 0
    choices: int = 0


class Some(NamedTuple):
    """Every ``step``-th task from the ``begin``-th to the ``end``-th; 0: the last."""

    begin: int = 0
    end: int = 0
    step: int = 1

    def of(self, records: Sequence[Row]) -> Sequence[Row]:
        """Return them."""
        return records[self.begin : self.end or None : self.step]


class Cpu(NamedTuple):
    """A policy on some of HPC2N's tasks, of which ``some`` says which.

    ``asked``: a task's own number of CPUs is what it asked for, not what it was allocated.
    """

    policy: str
    cpus: int
    path: Path
    some: Some = Some()
    offline: bool = False
    asked: bool = False


Point = Gpu | Cpu
Results = Mapping[Point, Came]


class _Jobs:
    """Adds up tasks by the job that they belong to."""

    def __init__(self, job_of: Mapping[str, Hashable]) -> None:
        self._job_of = job_of
        self._sums: dict[Hashable, list[float]] = {}

    def add(self, task: Task) -> None:
        sums = self._sums.setdefault(self._job_of[task.id], [task.submit_s, 0.0, 0.0])
        sums[0] = min(sums[0], task.submit_s)
        sums[1] = max(sums[1], task.end_s)
        sums[2] += task.volume_s

    @property
    def flow_s(self) -> list[float]:
        return [end_s - submit_s for submit_s, end_s, _ in self._sums.values()]

    @property
    def stretch(self) -> list[float]:
        return [(end_s - submit_s) / volume_s for submit_s, end_s, volume_s in self._sums.values()]


def run_point(point: Point) -> Came:
    """Replay one point."""
    if isinstance(point, Gpu):
        workload, jobs = _gpu(point), _Jobs(_gpu_jobs(point))
    else:
        records = point.some.of(records_in(point.path))
        machine = Machine(
            point.cpus,
            None if point.policy in RIGID else BOUNDS,
            width="asked" if point.asked else "allocated",
            offline=point.offline,
            told=True,
        )
        workload, jobs = on_cpus(records, machine), _Jobs(_cpu_jobs(records))
    figures = replayed(workload, RULES[point.policy], idle=False, ended=jobs.add)
    tasks, own = figures.tasks, figures.bags
    assert tasks and own and not figures.never, point  # noqa: S101  # all can run, and have users
    return Came(
        tasks.tasks,
        len(jobs.flow_s),
        tasks.flow_s,
        tasks.stretch,
        spread(jobs.flow_s),
        spread(jobs.stretch),
        own.flow_s,
        tasks.wait_s,
        figures.utilisation,
        figures.makespan_s,
        figures.restarts,
    )


def _gpu(point: Gpu) -> Workload:
    return fujiwara(
        point.seed,
        point.gpus,
        tasks=point.tasks,
        curves=SENSITIVITY[point.curves],
        overhead_s=point.overhead_s,
        told=True,
        choices=TRACES[point.choices],
    )


def _gpu_jobs(point: Gpu) -> dict[str, Hashable]:
    found = observed(point.seed, point.tasks, TRACES[point.choices])
    digits = len(str(len(found) - 1))
    return {f"{row:0{digits}}": task.job for row, task in enumerate(found)}


@lru_cache(maxsize=1)
def records_in(path: Path) -> Sequence[Record]:
    """Return the tasks of a trace. Raises BadInput where it cannot be right."""
    return tuple(read_swf(path))


class _Ran(NamedTuple):
    """A task of HPC2N as it ran there."""

    id: str
    user: str
    submit_s: float
    start_s: float
    end_s: float
    volume_s: float


def _cpu_jobs(records: Sequence[Record]) -> dict[str, Hashable]:
    tasks = (_ran(record) for record in records)
    return {task.id: (bag.user, bag.tasks[0].id) for bag in bags(tasks) for task in bag.tasks}


def _ran(record: Record) -> _Ran:
    start_s = record.submit_s + record.wait_s
    volume_s = record.run_s * record.width
    return _Ran(record.id, record.user, record.submit_s, start_s, start_s + record.run_s, volume_s)


def run_points(asked: Asked, what: str, points: Iterable[Point]) -> dict[Point, Came]:
    """Run all points, each once, the longest first, so that no process is left alone with them."""
    some = sorted(dict.fromkeys(points), key=_cost, reverse=True)
    return dict(zip(some, asked.spread(what, run_point, some), strict=True))


def _cost(point: Point) -> float:
    """About how long a point takes, to say which is longer."""
    some = point.tasks if isinstance(point, Gpu) else len(point.some.of(range(ALL)))
    return some * (_SLOW if point.policy in CHANGING else 1)
