"""Manual optimal: the assignment by which all that waits is done at the earliest, by a solver.

Each job goes to the cores or to a GPU of one node. With T(j, r) the run time of job j on resource r
(infinite where it cannot run), b(r) when r is free, and x(j, r) = 1 where j is given r:

    minimise C,  Σ_r x(j, r) = 1 for each j,  b(r) + Σ_j T(j, r)·x(j, r) <= C for each r

which is the paper's "exhaustive search ... to find the schedule leading to the best overall system
throughput", as a mixed-integer program (HiGHS, through scipy: the extra ``solvers``). It is worked
out anew whenever a resource is free. On one resource jobs run in the order of the queue.

What the paper does not cover:

- Jobs on several nodes or with several GPUs are not in the program: they start after the others as
  their fastest shape, where that is free. So does what a node could not take after all.
- How many jobs run on the cores of a node at once is told by what the first of the queue need.
- More than ``window`` jobs: the first ``window`` of the queue are assigned, as if nobody came after
  them.
- The solver tries at most ``branches`` nodes of its tree, and then the best that it found counts.
  The paper's 24 jobs on four resources took up to 138; alike resources, as the GPUs of one node,
  have so many assignments that differ in name only that no proof comes to its end.

It knows all jobs beforehand: for simulations only.

Raises BadInput where no solver is installed.

Source: Ravi et al. (paper 004), section IV-C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pliant.errors import BadInput
from pliant.model import Job, Snapshot
from pliant.placement import Option, Profile, Taken
from pliant.plan import Plan
from pliant.policies.candidates import ENDLESS_S, run_s
from pliant.policies.chosen import Count
from pliant.policies.desk import Desk
from pliant.policies.outlook import NEVER_S, Opening, Outlook
from pliant.policies.queues import sides
from pliant.policies.roundrobin import could_hold
from pliant.speedup import DEFAULT_CPU_SPEED

Resource = tuple[int, bool, float]
"""A node by number; whether it is a GPU of it, or its cores; from when on it is free."""


@dataclass(frozen=True, eq=False, slots=True)
class Wanting:
    """A job (one task of an array), its options on cores and on a GPU, and the nodes for each."""

    job: Job
    profile: Profile
    options: tuple[Option | None, Option | None]
    holders: tuple[frozenset[int], frozenset[int]]


@dataclass(frozen=True, slots=True)
class ManualOptimal:
    """The assignment with the least completion time, exactly where ``branches`` are enough."""

    name: ClassVar[str] = "manual-optimal"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    window: Count = 40
    branches: Count = 1000
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk = Desk(snapshot)
        now_s = snapshot.now_s
        some, others = self._split(desk)
        resources = self._resources(desk, some)
        times = [[self._time_s(one, resource) for resource in resources] for one in some]
        possible = [at for at, row in enumerate(times) if min(row, default=NEVER_S) < NEVER_S]
        if possible and any(ready_s <= now_s for _, _, ready_s in resources):
            ready = [ready_s - now_s for _, _, ready_s in resources]
            chosen = assignment([times[at] for at in possible], ready, self.branches)
            self._start(desk, [some[at] for at in possible], resources, chosen)
        # What the program leaves out, and who runs for ever, is not to wait for ever.
        idle = not snapshot.running and not desk.plan().starts
        for one in (*others, *(some if idle else ())):
            self._fallback(desk, one)
        return desk.plan()

    def _split(self, desk: Desk) -> tuple[list[Wanting], list[Wanting]]:
        """The jobs that are in the program, and the others."""
        some: list[Wanting] = []
        others: list[Wanting] = []
        for job in desk.queue():
            profile = desk.free.profile(job)
            small = tuple(o for o in profile.options if o[0].nodes == 1 and o[0].gpus <= 1)
            options = sides(job, Profile(profile.scopes, small, (), profile.kinds), self.cpu_speed)
            holders = [
                frozenset(could_hold(desk.free, profile, option)) if option else frozenset[int]()
                for option in options
            ]
            one = Wanting(job, profile, options, (holders[0], holders[1]))
            if (holders[0] or holders[1]) and len(some) < self.window:
                some += [one] * min(job.tasks_waiting, self.window - len(some))
            else:
                others.append(one)
        return (some, others)

    def _resources(self, desk: Desk, some: list[Wanting]) -> list[Resource]:
        """Each node's cores and GPUs: when each would be free for the first job that needs it."""
        outlook = Outlook(desk.free, self.cpu_speed)
        found: list[Resource] = []
        for gpu in (False, True):
            with outlook.supposing():
                for place in sorted({place for one in some for place in one.holders[gpu]}):
                    option = next(one.options[gpu] for one in some if place in one.holders[gpu])
                    assert option is not None  # noqa: S101 - who has holders has an option
                    times = _free_times(outlook, place, option, len(some))
                    found += [
                        (place, gpu, at_s) for at_s in times if at_s < outlook.now_s + ENDLESS_S
                    ]
        return found

    def _time_s(self, one: Wanting, resource: Resource) -> float:
        """T(j, r)."""
        place, gpu, _ = resource
        option = one.options[gpu]
        if option is None or place not in one.holders[gpu]:
            return NEVER_S
        time_s = run_s(one.job, option[0], self.cpu_speed)
        return time_s if time_s < ENDLESS_S else NEVER_S

    def _start(
        self, desk: Desk, some: list[Wanting], resources: list[Resource], chosen: list[int]
    ) -> None:
        """Let the first job of each free resource start there; an array on one sort only."""
        free = desk.free
        first: dict[int, Wanting] = {}
        for one, at in zip(some, chosen, strict=True):
            if resources[at][2] <= free.now_s:
                first.setdefault(at, one)
        tasks: dict[str, list[tuple[Wanting, int]]] = {}
        for at, one in first.items():
            tasks.setdefault(one.job.id, []).append((one, at))
        for of_job in tasks.values():
            one, gpu = of_job[0][0], resources[of_job[0][1]][1]
            option, bound = one.options[gpu], free.bound(one.job)
            places = [(resources[at][0],) for _, at in of_job if resources[at][1] is gpu]
            given: list[Taken] = []
            for place in places:
                if option is not None and free.admits(one.profile, option, place, bound):
                    given.append(free.take_places(one.job, option, place))
            if given:
                desk.start(one.job, given, "all jobs are done soonest so")

    def _fallback(self, desk: Desk, one: Wanting) -> None:
        """Let a job that is not in the program start as what it runs fastest as."""
        options = sorted(
            one.profile.options,
            key=lambda option: (run_s(one.job, option[0], self.cpu_speed), option[0]),
        )
        for option in options:
            given = desk.fill(one.job, one.profile, option)
            if given:
                desk.start(one.job, given, "it runs fastest so")
                return


def _free_times(outlook: Outlook, place: int, option: Option, most: int) -> list[float]:
    """When a node has room for one such job, for a second beside it, and so on."""
    times: list[float] = []
    while len(times) < most:
        at_s = outlook.on(place, option, NEVER_S)
        if at_s is None:
            break
        outlook.book(option, Opening(at_s, (place,)), NEVER_S)
        times.append(at_s)
    return times


def assignment(times_s: list[list[float]], ready_s: list[float], branches: int = 1000) -> list[int]:
    """Return for each job the resource by which all are done at the earliest.

    ``times_s``: by job and resource, inf where a job cannot run; each can run somewhere.
    ``ready_s``: when each resource is free. ``branches``: after so many nodes of its tree the
    solver gives the best that it has; one after the other where it has none. Raises BadInput where
    no solver is installed.
    """
    milp, bounds, constraint = _solver()
    pairs = [
        (job, resource)
        for job, times in enumerate(times_s)
        for resource, time_s in enumerate(times)
        if time_s < NEVER_S
    ]
    size = len(pairs) + 1  # the last variable is C
    rows: list[list[float]] = []
    low: list[float] = []
    high: list[float] = []
    for job in range(len(times_s)):
        rows.append([float(one == job) for one, _ in pairs] + [0.0])
        low.append(1.0)
        high.append(1.0)
    for resource, ready in enumerate(ready_s):
        loads = [times_s[job][resource] if one == resource else 0.0 for job, one in pairs]
        rows.append([*loads, -1.0])
        low.append(-NEVER_S)
        high.append(-ready)
    solved = milp(
        c=[0.0] * (size - 1) + [1.0],
        integrality=[1] * (size - 1) + [0],
        bounds=bounds([0.0] * size, [1.0] * (size - 1) + [NEVER_S]),
        constraints=constraint(rows, low, high),
        options={"mip_rel_gap": 0.0, "node_limit": branches},
    )
    if solved.x is None:
        return _in_turn(times_s, ready_s)
    chosen = [-1] * len(times_s)
    for (job, resource), value in zip(pairs, solved.x, strict=False):
        if value > 0.5:
            chosen[job] = resource
    return chosen


def _in_turn(times_s: list[list[float]], ready_s: list[float]) -> list[int]:
    """Give each job in turn the resource by which it is done at the earliest."""
    ready = list(ready_s)
    chosen = []
    for times in times_s:
        at = min(range(len(ready)), key=lambda at: ready[at] + times[at])
        ready[at] += times[at]
        chosen.append(at)
    return chosen


def _solver() -> tuple[Any, Any, Any]:
    """The solver and its words, imported where it is needed only."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  # an extra
    except ImportError:
        raise BadInput(
            "policy manual-optimal: scipy is not installed: it comes with the extra 'solvers'"
        ) from None
    return (milp, Bounds, LinearConstraint)
