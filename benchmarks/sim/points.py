"""One replay of Pliant's simulator: ``python -m benchmarks.sim.points POINT``, a :class:`Point`.

POINT is JSON, and so is the line that is printed: a :class:`Came`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchmarks.sim.memory import peak_mib
from pliant.model import Snapshot
from pliant.plan import Plan, Policy
from pliant.policies import by_name
from pliant.simulator.metrics import Task
from pliant.simulator.reproduce.fujiwara_runs import POLICIES
from pliant.simulator.reproduce.fujiwara_runs import RIGID as RIGIDS
from pliant.simulator.runs import replayed
from pliant.simulator.traces import read_swf
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.fitgpp import fitgpp
from pliant.simulator.workloads.hpc2n import BOUNDS, on_cpus
from pliant.simulator.workloads.records import Machine, from_records

RIGID: dict[str, Policy] = {
    "fifo": by_name("rigid-fcfs", shape="own"),
    "easy": by_name("easy-backfill", shape="own"),
    "list": by_name("rigid-fcfs", shape="own", overtaking=True),
}
"""Of jobs that keep their width."""


class Point(msgspec.Struct, frozen=True):
    """What is replayed, for ``cap_s`` seconds at most; all that there is where that is 0.

    ``rigid``: one of :data:`RIGID` on HPC2N's trace with 240 CPUs; ``fujiwara``: one of his
    policies on it; ``fitgpp``: FitGpp on its own mix. ``jobs``: the first so many; 0: all.
    ``clocked``: time the policy too, by a clock around each of its calls.
    """

    kind: Literal["rigid", "fujiwara", "fitgpp"]
    policy: str
    trace: str = ""
    cpus: int = 240
    jobs: int = 0
    cap_s: float = 0.0
    clocked: bool = False


class Came(msgspec.Struct, frozen=True):
    """What came of it: ``jobs`` of ``of`` have ended. Times in wall seconds, memory in MiB.

    ``wall_s``: from before the trace is opened to the last figure, of which ``read_s`` until the
    workload was there, and ``policy_s`` in the policy (0: not measured). ``wait_s`` and
    ``slowdown``: means, 0 where not all jobs have ended.
    """

    jobs: int
    of: int
    wall_s: float
    read_s: float
    policy_s: float
    peak_mib: float
    wait_s: float
    slowdown: float

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended."""
        return self.jobs == self.of

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.wall_s


class _Enough(Exception):
    """The time for a point is over."""


class Clocked:
    """A policy that is timed; all else is as it was."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self.spent_s = policy, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Decide as the policy does."""
        began_s = time.perf_counter()
        plan = self._policy(snapshot)
        self.spent_s += time.perf_counter() - began_s
        return plan


def run(point: Point, clock: Callable[[], float] = time.perf_counter) -> Came:
    """Replay a point until its end, or until its time is over."""
    began_s, ended = clock(), 0

    def count(task: Task) -> None:
        nonlocal ended
        del task
        ended += 1
        if point.cap_s and clock() - began_s > point.cap_s:
            raise _Enough

    workload = workload_of(point)
    read_s = clock() - began_s
    policy = policy_of(point)
    clocked = Clocked(policy)
    wait_s = slowdown = 0.0
    try:
        used: Policy = clocked if point.clocked else policy
        figures = replayed(workload, used, idle=False, ended=count)
        if figures.tasks is not None:
            wait_s, slowdown = figures.tasks.wait_s.mean, figures.tasks.slowdown.mean
    except _Enough:
        pass
    wall_s, of = clock() - began_s, len(workload.arrivals)
    return Came(ended, of, wall_s, read_s, clocked.spent_s, peak_mib(), wait_s, slowdown)


def workload_of(point: Point) -> Workload:
    """Return what is replayed."""
    path, jobs = Path(point.trace), point.jobs or None
    if point.kind == "rigid":
        machine = Machine(point.cpus, cpus=True, width="asked", limits=True)
        return from_records(islice(read_swf(path), jobs), machine, "HPC2N")
    if point.kind == "fujiwara":
        bounds = None if point.policy in RIGIDS else BOUNDS  # as where the claims are looked at
        return on_cpus(islice(read_swf(path), jobs), Machine(point.cpus, bounds, told=True))
    return fitgpp(1, jobs=point.jobs)


def policy_of(point: Point) -> Policy:
    """Return the policy."""
    if point.kind == "rigid":
        return RIGID[point.policy]
    return POLICIES[point.policy] if point.kind == "fujiwara" else by_name(point.policy)


def main(arguments: list[str]) -> None:
    """Replay one point and say what came of it."""
    came = run(msgspec.json.decode(arguments[0], type=Point))
    print(msgspec.json.encode(came).decode())


if __name__ == "__main__":
    main(sys.argv[1:])
