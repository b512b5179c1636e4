"""Moldable equipartition: what is free is divided equally among the jobs that wait.

For the jobs that wait, in the order of the queue (Q), with p_min and p_max the smallest and the
largest amount of GPUs that each may run on, A the vacant GPUs:

1. If the p_min of all are at least all that is available, each gets its p_min.
2. If the p_max of all are at most |A|, each gets its p_max.
3. If there are at most |A| jobs, each gets one vacant GPU, and the rest is distributed by the
   D'Hondt method: every further GPU goes to the job with the most votes per GPU that it would
   then hold, p_max being its votes and its limit.
4. Otherwise each is pre-assigned to the GPU with the fewest tasks that has its p_min available,
   and all that were pre-assigned to one GPU get the largest 1/n that divides what was available.

What the paper does not cover:

- Jobs that can use the same nodes are divided among together, other groups apart.
- "One GPU" is the smallest allowed amount of at least one GPU, and counts as such in step 3; an
  array counts each waiting task, and all of them get one shape. A rigid job has p_min = p_max.
- Only shapes that the request allows and the nodes can hold are given. A job gets what comes
  first as nodes × GPUs; it grows by the D'Hondt method to its next larger shape, by the votes per
  GPU at that size, and what it cannot take is offered to the next. So totals are rounded down, and
  what that leaves over is offered again.
- After every step, whatever is still free is offered in the same way: to jobs that got nothing,
  at any shape, then to those that did.
- The first job of each queue (a partition) that fits nowhere keeps the earliest opening; others
  get no more than the hole that this leaves them.
- In step 4 no task is pushed below its p_min, and a job that cannot share gets its GPUs whole.
- A job that may run on CPUs does so if no GPU shape fits now and it would be done before a GPU
  shape can be expected to be: by its throughput, or ``cpu_speed``. Else it waits for the GPU shape,
  though cores are free, and as the first that waits keeps the opening of that.

Options: ``votes``: ``largest`` (p_max, as printed) or ``equal``; ``cpu_speed``: the speed of one
node's cores, in GPUs, of jobs that do not say.

Where GPUs are just a number (see :mod:`pliant.policies.crowd`) the same is decided over numbers, in
:mod:`pliant.policies.numbers`: what it comes to is the same.

Source: Fujiwara et al. (paper 000), section IV-A, Moldable Equipartition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import ClassVar, Literal

from pliant.model import Job, Shape, Snapshot
from pliant.placement import Option, Taken
from pliant.placement.queue import Alike
from pliant.plan import Plan
from pliant.policies.crowd import Crowd, Standing, crowd_of
from pliant.policies.desk import Desk
from pliant.policies.dhondt import Bidder, divided
from pliant.policies.groups import Group, Sizes, groups
from pliant.policies.numbers import equipartition
from pliant.policies.reasons import CPU, LARGEST, SHARED, SMALLEST, SPREAD, why
from pliant.policies.sharing import Seats, Sharing
from pliant.policies.split import Split
from pliant.speedup import DEFAULT_CPU_SPEED, run_time_s


@dataclass(frozen=True, slots=True)
class MoldableEquipartition:
    """What is free, divided among the jobs that wait."""

    name: ClassVar[str] = "moldable-equipartition"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    votes: Literal["largest", "equal"] = "largest"
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        crowd = crowd_of(snapshot)
        return self.divide(Desk(snapshot)) if crowd is None else self.split(crowd, ()).plan()

    def divide(self, desk: Desk) -> Plan:
        """Return the same over a desk that has its own order among equal jobs."""
        for group in groups(desk):
            Division(desk, group, self.cpu_speed, self.votes).run()
        return desk.plan()

    def split(self, crowd: Crowd, rows: Sequence[Standing]) -> Split:
        """Return the same in numbers, the GPUs of some running jobs divided too."""
        return equipartition(crowd, rows, self.votes)


@dataclass(eq=False, slots=True)
class _Holding:
    """What a job (all its tasks) holds so far."""

    job: Job
    sizes: Sizes
    level: int
    given: list[Taken]
    raised: bool = False  # by what was left over


class Division:
    """One group's jobs and what they hold so far."""

    def __init__(self, desk: Desk, group: Group, cpu_speed: float, votes: str = "") -> None:
        self._desk, self._free, self._group = desk, desk.free, group
        self._cpu_speed, self._votes = cpu_speed, votes
        self._kinds = frozenset(group.kinds)
        self._held: dict[str, _Holding] = {}
        self._blocked: set[str] = set()  # jobs with a claim
        self._stuck: set[tuple[Sizes, float]] = set()  # nothing fits jobs like these
        self._times: dict[tuple[int, int, int, int], tuple[object, float]] = {}
        self._reason = ""

    def run(self) -> None:
        """Decide for the whole group."""
        tasks = self._group.tasks
        least = sum(count * of.least for of, count in tasks.items())
        most = sum(count * of.most for of, count in tasks.items())
        first = sum(count * of.levels[of.first][0] for of, count in tasks.items() if of.levels)
        vacant = self._free.vacant_on(self._kinds)
        if least >= self._free.available_on(self._kinds):
            self._reason = SMALLEST
            self._serve(dict.fromkeys(tasks, 0))
        elif most <= vacant:
            self._reason = LARGEST
            self._serve({of: len(of.levels) - 1 for of in tasks})
        elif first <= vacant:
            self._reason = SPREAD
            self._serve({of: of.first for of in tasks})
        else:
            self._reason = SHARED
            self._share()
        if self._grow():
            self._free.forget_failures()
            self._stuck.clear()
            self._serve(dict.fromkeys(tasks, 0))
        for holding in self._held.values():
            self._write(holding)

    # --- each its first shape ---------------------------------------------------------------

    def _serve(self, level: dict[Sizes, int]) -> None:
        """Give each job that holds nothing its shape at ``level``, or else any that fits."""
        orders = {of: of.from_level(start) for of, start in level.items()}
        passed: set[Alike] = set()
        for job, of in self._group.jobs(self._desk, passed):
            if job.id not in self._held and job.id not in self._blocked:
                self._serve_one(job, of, orders[of])
                if self._is_hopeless(job, of):
                    passed.add((of.profile, job.time_limit_s))

    def _serve_one(self, job: Job, of: Sizes, order: tuple[tuple[int, Option], ...]) -> None:
        key = (of, self._free.bound(job))
        if key not in self._stuck:
            most = max(1, self._free.vacant_on(of.profile.kinds))
            for level, option in order:
                if of.amounts[level] > most:  # a quick look, for what was found would be nothing
                    if level > order[0][0]:
                        break
                    continue
                given = self._desk.fill(job, of.profile, option)
                if given:
                    self._held[job.id] = _Holding(job, of, level, given)
                    break
            if job.id not in self._held:
                if of.cpu:
                    self._serve_cpu(job, of)
                else:
                    self._stuck.add(key)
        self._keep(job, of)

    def _is_hopeless(self, job: Job, of: Sizes) -> bool:
        """Whether no job like this one can start, or keep anything."""
        return self._desk.all_kept and (of, self._free.bound(job)) in self._stuck

    def _serve_cpu(self, job: Job, of: Sizes) -> None:
        """Start on CPUs where that is done before a GPU shape can be expected to be."""
        bound = self._free.bound(job)
        fitting = [o for o in of.cpu if self._free.places(of.profile, o, bound) is not None]
        if not fitting:
            return
        best = min(fitting, key=lambda option: self._run_s(job, option))
        if self._free.now_s + self._run_s(job, best) <= self._done_s(job, of, of.gpu):
            given = self._desk.fill(job, of.profile, best)
            self._held[job.id] = _Holding(job, of, -1, given)

    def _done_s(self, job: Job, of: Sizes, options: tuple[Option, ...]) -> float:
        """Estimate when a job is done at the earliest that waits for one of these options."""
        done = (
            self._desk.opening_s(job, of.profile, option) + self._run_s(job, option)
            for option in options
        )
        return min(done, default=float("inf"))

    def _awaited(self, job: Job, of: Sizes) -> tuple[Shape, ...]:
        """The shapes that a job waits for: of GPUs and CPUs those on which it is done first.

        Cores may be free now and not be taken: what it keeps is the GPU that it waits for.
        """
        if not of.cpu or not of.gpu:
            return of.profile.shapes
        cpu_s, gpu_s = self._done_s(job, of, of.cpu), self._done_s(job, of, of.gpu)
        if cpu_s == gpu_s:
            return of.profile.shapes
        return tuple(shape for shape, _ in (of.cpu if cpu_s < gpu_s else of.gpu))

    def _run_s(self, job: Job, option: Option) -> float:
        key = (id(job.spec), id(job.shape), id(option), job.time_limit_s)
        known = self._times.get(key)
        if known is None:
            run_s = run_time_s(job, option[0], self._cpu_speed)
            known = self._times[key] = ((job.spec, job.shape, option), run_s)
        return known[1]

    def _keep(self, job: Job, of: Sizes) -> None:
        """Let the first job that waits keep its opening; of an array, its next task."""
        if not self._desk.may_keep(job):
            return
        holding = self._held.get(job.id)
        if holding is None:
            if self._desk.keep(job, self._awaited(job, of)):
                self._blocked.add(job.id)
        elif len(holding.given) < job.tasks_waiting:
            self._desk.keep(job, (holding.given[0].shape,))

    # --- shares -----------------------------------------------------------------------------

    def _share(self) -> None:
        """Seat each job that can share; give the others their GPUs whole, all in one order."""
        sharing = Sharing(self._free, self._kinds)
        seated: dict[str, Seats] = {}
        for job, of in self._group.jobs(self._desk):
            seats = sharing.seat(job, of) if of.shares else None
            if seats is None:
                self._serve_one(job, of, of.from_level(of.first))
            else:
                seated[job.id] = seats
                self._held[job.id] = _Holding(job, of, seats.level, seats.given)
                self._keep(job, of)
        for id_, seats in seated.items():
            sharing.enlarge(seats)
            self._held[id_].level, self._held[id_].given = seats.level, seats.given

    # --- what is left over ------------------------------------------------------------------

    def _grow(self) -> bool:
        """Offer what is still free to those that hold something, by D'Hondt; say if any took.

        On a single node only their number matters: there each gets at once what it has in the end.
        """
        grown = False
        if len(self._free.places_on(self._kinds)) == 1:
            for holding, level in self._by_numbers():
                grown = self._raise(holding, level) or grown
        if not self._free.has_gpus(self._kinds):
            return grown
        heap = self._bids()
        while heap:
            _, position, level, holding = heap[0]
            grown = self._raise(holding, level) or grown
            if level + 1 < len(holding.sizes.levels):
                heapreplace(heap, self._bid(holding, position, level + 1))
            else:
                heappop(heap)
        return grown

    def _by_numbers(self) -> list[tuple[_Holding, int]]:
        """Return who grows to which level, where any free GPU is as good as another."""
        may = [
            h for h in self._held.values() if self._may_grow(h) and h.sizes.amounts[h.level] >= 1
        ]
        may.sort(key=lambda holding: self._desk.position(holding.job))
        bidders = [
            Bidder(h.sizes.amounts, h.level, self._votes_of(h.sizes.amounts), len(h.given))
            for h in may
        ]
        levels = divided(bidders, self._free.vacant_on(self._kinds))
        return [(h, level) for h, level in zip(may, levels, strict=True) if level > h.level]

    def _bids(self) -> list[tuple[float, int, int, _Holding]]:
        """The first bid of each that may grow."""
        bids = [
            self._bid(holding, self._desk.position(holding.job), holding.level + 1)
            for holding in self._held.values()
            if self._may_grow(holding)
        ]
        heapify(bids)
        return bids

    def _may_grow(self, holding: _Holding) -> bool:
        complete = len(holding.given) == holding.job.tasks_waiting
        return complete and 0 <= holding.level < len(holding.sizes.levels) - 1

    def _bid(
        self, holding: _Holding, position: int, level: int
    ) -> tuple[float, int, int, _Holding]:
        """Votes per GPU at a level, then the queue's order."""
        amounts = holding.sizes.amounts
        return (-self._votes_of(amounts) / amounts[level], position, level, holding)

    def _votes_of(self, amounts: Sequence[float]) -> float:
        return amounts[-1] if self._votes == "largest" else 1.0

    def _raise(self, holding: _Holding, level: int) -> bool:
        """Give a job a larger shape, all its tasks or none; say whether it was possible."""
        of = holding.sizes
        for option in of.levels[level][1]:
            larger = self._desk.instead(holding.given, of.profile, option)
            if larger:
                holding.level, holding.given, holding.raised = level, larger, True
                return True
        return False

    def _write(self, holding: _Holding) -> None:
        self._desk.start(holding.job, holding.given, self._why(holding))

    def _why(self, holding: _Holding) -> str:
        """What was decided for all, as far as it is true of this job."""
        last = len(holding.sizes.levels) - 1
        if holding.level < 0:
            return CPU if holding.sizes.levels else self._reason
        return why(self._reason, holding.level, last, raised=holding.raised)
