"""F-scheduling: every GPU to the job that makes the most of it, as long as that is fair.

Every job brings f(N), its steps per second on N GPUs. The jobs A are those that wait and those that
run and may be changed, N the GPUs that they have and those that are free. Listing 1:

1. Each job in turn gets the fewest GPUs that it can run on, if so many are left.
2. Every further GPU is given to one of these jobs. Of all ways to give it those are fair after
   which the variance of the slowdowns f(R)/f(U) is below ``v_bound``, R being what a job has and U
   all GPUs there are. Of the fair ways the one with the largest sum of throughput is taken; where
   none is fair, the one with the least variance.
3. The new plan is applied only if the sum of throughput of the running jobs rises by at least
   ``least_rise`` step/s, or if a job starts that waits.

What the paper does not cover, or its listing has wrong:

- The GPUs of a job's first share are taken off inside the first loop, and the second one ends when
  no job can take more.
- Slowdowns lie between 0 and 1, so their variance is 0.25 at most, and 0.025 at most over the
  thesis's own four jobs: its ``v_bound`` of 0.5 binds nobody, and its run is greedy throughput.
  Bounds from 0.005 to 0.02 make a difference; the default is the largest of these.
- "A further GPU" is a job's next larger shape, all of whose GPUs must be there, on nodes that hold
  it; what one job cannot take is offered to the others. A job that shares a GPU gets a whole one
  where it may have one.
- f is the owner's ``throughput`` (see :mod:`pliant.speedup`); without it, 1 step/s for each GPU. A
  GPU is given also where f falls: ``only_gains`` leaves it free.
- Of the new plan, a cycle does what can be done at once, later ones the rest (see
  :mod:`pliant.policies.steps`); a job that should have as many GPUs as it has stays where it is. A
  job that is being changed counts as what it becomes, one in its protected time as it is.
- Jobs without GPU shapes start as they come, on the cores that are free.

Options: ``v_bound``; ``least_rise``: step/s; ``only_gains``; ``pays``: change jobs only where all
together are done earlier, restarts included (see :mod:`pliant.policies.gain`). Off, it is the
thesis's rule.

Source: Seo (paper 003), sections 3.1, 4.2 (listing 1) and 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar

from pliant.model import Job, Shape, Snapshot
from pliant.placement import Taken
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.goal import Goals, movable
from pliant.policies.goals import as_if_waiting, goals_of
from pliant.policies.groups import Sizes, sizes_of
from pliant.policies.steps import stepwise
from pliant.speedup import DEFAULT_CPU_SPEED, assumed_speed, known_speed

FEWEST = "the fewest GPUs that it can run on"
MORE = "where further GPUs give the most throughput, as far as that is fair"
CORES = "it needs no GPU"


@dataclass(frozen=True, slots=True)
class FScheduling:
    """The largest sum of throughput, under a bound on the variance of slowdowns."""

    name: ClassVar[str] = "f-scheduling"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = True
    v_bound: float = 0.02
    least_rise: float = 1.0
    only_gains: bool = False
    pays: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims and reshapes."""

        def rule(desk: Desk) -> Plan:
            return _Greedy(desk, self).plan()

        def goals(running: list[Job]) -> Goals:
            desk = as_if_waiting(snapshot, running)
            plan = rule(desk)
            if running and not self._is_worth(plan, running):
                return goals([])
            return goals_of(snapshot, desk, plan)

        return stepwise(snapshot, movable(snapshot), goals, rule, pays=self.pays)

    def _is_worth(self, plan: Plan, running: list[Job]) -> bool:
        """Whether a job starts on GPUs that waits, or throughput rises enough.

        Who starts on cores takes none of what is divided here.
        """
        had = {job.id: job for job in running}
        if any(start.job.id not in had and start.shape.gpus for start in plan.starts):
            return True
        rises = (
            speed(start.job, start.shape) - speed(start.job, had[start.job.id].shape)
            for start in plan.starts
            if start.job.id in had
        )
        return sum(rises) >= self.least_rise


def speed(job: Job, shape: Shape) -> float:
    """Return f: steps per second as given or measured, else 1 for each GPU."""
    known = known_speed(job, shape)
    return assumed_speed(shape, DEFAULT_CPU_SPEED) if known is None else known


@dataclass(eq=False, slots=True)
class _Holding:
    """What a job (all its tasks) has so far; ``slowdown``: of one task."""

    job: Job
    sizes: Sizes
    level: int
    given: list[Taken]
    slowdown: float


@dataclass(slots=True)
class _Spread:
    """The variance of the slowdowns of all tasks, from their sums."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, slowdown: float, tasks: int) -> None:
        self.count += tasks
        self.total += tasks * slowdown
        self.squares += tasks * slowdown * slowdown

    def with_instead(self, old: float, new: float, tasks: int) -> float:
        """The variance if some tasks had another slowdown."""
        total = self.total + tasks * (new - old)
        squares = self.squares + tasks * (new * new - old * old)
        return max(0.0, squares / self.count - (total / self.count) ** 2)


_Bid = tuple[float, int, int]
"""Less throughput first, then the order of A; and the level."""


class _Greedy:
    """Listing 1 over a desk at which all jobs wait."""

    def __init__(self, desk: Desk, policy: FScheduling) -> None:
        self._desk, self._free, self._policy = desk, desk.free, policy
        self._all = Shape(1, max(1, desk.free.total()))
        self._held: list[_Holding] = []
        self._spread = _Spread()

    def plan(self) -> Plan:
        """Return who gets what."""
        for job in self._desk.queue():
            self._first(job)
        self._give_out()
        for holding in self._held:
            raised = holding.level > 0 and holding.given[0].shape.amount > 1
            self._desk.start(holding.job, holding.given, MORE if raised else FEWEST)
        return self._desk.plan()

    def _first(self, job: Job) -> None:
        """Give a job the fewest GPUs that it can run on."""
        of = sizes_of(self._free, self._free.profile(job))
        runs = [at for at in range(max(0, of.first), len(of.levels)) if self._f(job, of, at) > 0]
        for level, option in of.from_level(runs[0] if runs else of.first) if of.levels else ():
            if runs and not self._f(job, of, level) > 0:
                continue  # it would hold them without a step: listing 1 passes over such a job
            given = self._desk.fill(job, of.profile, option)
            if given:
                slowdown = self._slowdown(job, of, level)
                self._held.append(_Holding(job, of, level, given, slowdown))
                self._spread.add(slowdown, len(given))
                break
        else:
            given = self._on_cores(job, of) if not of.levels else []
        if len(given) < job.tasks_waiting:
            self._desk.keep(job, (given[0].shape,) if given else of.profile.shapes)

    def _on_cores(self, job: Job, of: Sizes) -> list[Taken]:
        for option in of.cpu:
            given = self._desk.fill(job, of.profile, option)
            if given:
                self._desk.start(job, given, CORES)
                return given
        return []

    def _f(self, job: Job, of: Sizes, level: int) -> float:
        return speed(job, of.levels[level][1][0][0])

    def _slowdown(self, job: Job, of: Sizes, level: int) -> float:
        """f(R)/f(U): of what it would have with all GPUs."""
        most = speed(job, self._all) or max(self._f(job, of, at) for at in range(len(of.levels)))
        return self._f(job, of, level) / most if most > 0 else 0.0

    # --- every further GPU ------------------------------------------------------------------

    def _give_out(self) -> None:
        bids = [
            bid
            for at, holding in enumerate(self._held)
            if (bid := self._bid(at, holding.level + 1))
        ]
        heapify(bids)
        while bids:
            _, at, level = self._pick(bids)
            holding = self._held[at]
            if self._raise(holding, level):
                slowdown = self._slowdown(holding.job, holding.sizes, level)
                tasks = len(holding.given)
                self._spread.add(holding.slowdown, -tasks)
                self._spread.add(slowdown, tasks)
                holding.slowdown = slowdown
            bid = self._bid(at, level + 1)
            if bid is not None:
                heappush(bids, bid)

    def _bid(self, at: int, level: int) -> _Bid | None:
        holding = self._held[at]
        complete = len(holding.given) == holding.job.tasks_waiting
        if not complete or level >= len(holding.sizes.levels):
            return None
        job, of = holding.job, holding.sizes
        rise = len(holding.given) * (self._f(job, of, level) - self._f(job, of, holding.level))
        if self._policy.only_gains and rise <= 0:
            return None
        return (-rise, at, level)

    def _pick(self, bids: list[_Bid]) -> _Bid:
        """Take the fair bid with the most throughput; where none is fair, the least variance."""
        unfair: list[tuple[float, int, _Bid]] = []
        chosen: _Bid | None = None
        while bids and chosen is None:
            bid = heappop(bids)
            variance = self._variance(bid)
            if variance < self._policy.v_bound:
                chosen = bid
            else:
                unfair.append((variance, bid[1], bid))
        if chosen is None:
            least = min(unfair)
            unfair.remove(least)
            chosen = least[2]
        for _, _, bid in unfair:
            heappush(bids, bid)
        return chosen

    def _variance(self, bid: _Bid) -> float:
        holding = self._held[bid[1]]
        after = self._slowdown(holding.job, holding.sizes, bid[2])
        return self._spread.with_instead(holding.slowdown, after, len(holding.given))

    def _raise(self, holding: _Holding, level: int) -> bool:
        of = holding.sizes
        for option in of.levels[level][1]:
            larger = self._desk.instead(holding.given, of.profile, option)
            if larger:
                holding.level, holding.given = level, larger
                return True
        return False
