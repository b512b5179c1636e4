"""FMS, flexible moldable scheduling: neighbours in the queue are placed two by two.

The jobs that wait are grouped by the number of nodes N that each asks, and sorted within a group by
T(i, N, CG), the run time on the cores and GPUs of N nodes. For each pair of neighbours:

1. one after the other, each on the CPUs and GPUs of N nodes,
2. side by side, if 2N nodes are free now, each on the CPUs and GPUs of N nodes,
3. one on the CPU cores and one on the GPUs of N nodes, either way round,

and, where N nodes are not free or the load is high, all of these at N/2 and N/4 too. Of all ways
the one is chosen after which both are done at the earliest. A GPU shape takes only the cores that
its request has beside its GPUs and leaves the others to CPU shapes. ``fms-type`` molds the kind of
resource alone: N stays. ``fms-nodes`` molds the number of nodes alone: CPUs and GPUs always.

Run times are known (``throughput`` and ``steps``; see :mod:`pliant.speedup`, and
:mod:`pliant.policies.outlook` for when running jobs end), and what a pair waits for is booked for
it, so that later pairs do not delay it.

What the paper does not cover:

- The order of the groups: from few nodes to many. What waits of earlier batches is sorted in.
- Of ways that are done at the same time that with the earlier sum of completions is chosen, then
  that on fewer nodes, then that named first. In way 3 both start at their earliest, on the same
  nodes where these are free; where a CPU job runs already, its GPUs are used too.
- Everything is decided anew at every event: who was booked second and has not started pairs with
  its neighbour of then. Who is left alone gets the way by which it is done first.
- A size is any amount of GPUs (for CPU shapes: nodes). N/2 and N/4 are the largest allowed sizes
  that are no more than that; a job that has none goes with its next larger one. A job without a
  shape on both is taken on its GPUs, else its cores, where the paper says CPUs and GPUs.
- The load is what the waiting jobs ask at N and what is busy, over all GPUs; above ``high_load``
  it is high. At 1.0 smaller sizes are tried as soon as not all jobs fit at N.
- An array is placed alone: one shape for all its tasks.

Options that deviate; a real cluster has the last two:

- ``beside = later``: the second way also where 2N nodes are free only later, each job as soon as
  there are N for it.
- ``order = queue``: the batch system's order instead of the groups.
- ``times = limits``: running jobs are taken to last until their time limits, which is what can be
  counted on, and all sizes and kinds of the one job stand beside all of the other. A job then waits
  by choice only as the first that waits in its queue (a partition), and keeps its opening; others
  start as soon as anything fits, in the hole that the claims leave. Where none of N, N/2 and N/4
  fits, it is the largest allowed size that does; ``sizes = all`` tries every allowed size.

Source: Ravi et al. (paper 004), section III-B; the halves: section IV-D.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Literal

from pliant.model import Job, Snapshot
from pliant.placement import Option, Profile
from pliant.plan import Plan
from pliant.policies.candidates import Candidate, Candidates, Dimensions, run_s, whole
from pliant.policies.desk import Desk
from pliant.policies.pairs import Pairing
from pliant.policies.plans import Entry, Plans
from pliant.policies.ways import Way, Ways
from pliant.speedup import DEFAULT_CPU_SPEED


@dataclass(frozen=True, slots=True)
class Fms:
    """Pairs of neighbours, done at the earliest over the allowed shapes."""

    name: ClassVar[str] = "fms"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    live_options: ClassVar[Mapping[str, object]] = {"order": "queue", "times": "limits"}
    molded: ClassVar[Dimensions] = Dimensions()
    order: Literal["grouped", "queue"] = "grouped"
    times: Literal["expected", "limits"] = "expected"
    sizes: Literal["halves", "all"] = "halves"
    beside: Literal["now", "later"] = "now"
    high_load: float = 1.0
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, and with ``times = limits`` claims."""
        plans = Plans(snapshot, self.cpu_speed) if self.times == "expected" else None
        desk = plans.desk if plans is not None else Desk(snapshot)
        queue = [(job, desk.free.profile(job)) for job in desk.queue()]
        queue = [entry for entry in queue if entry[1].options]
        if self.order == "grouped":
            queue.sort(key=self._group)  # of equal ones, the queue's order
        light = load(desk, queue) <= self.high_load
        if plans is not None:
            later = self.beside == "later"
            Pairing(plans, self.molded, light=light, later=later).run(list(_neighbours(queue)))
        else:
            _Holes(desk, self, queue, light=light).run()
        return desk.plan()

    def _group(self, entry: Entry) -> tuple[int, float]:
        job, profile = entry
        nodes = max(shape.nodes for shape in profile.shapes)
        at_n = (option for option in profile.options if option[0].nodes == nodes)
        return (nodes, min(run_s(job, shape, self.cpu_speed) for shape, _ in whole(at_n)))


@dataclass(frozen=True, slots=True)
class FmsType(Fms):
    """The kind of resource alone."""

    name: ClassVar[str] = "fms-type"
    molded: ClassVar[Dimensions] = Dimensions(nodes=False)


@dataclass(frozen=True, slots=True)
class FmsNodes(Fms):
    """The number of nodes alone."""

    name: ClassVar[str] = "fms-nodes"
    molded: ClassVar[Dimensions] = Dimensions(kinds=False)


def load(desk: Desk, queue: list[Entry]) -> float:
    """Return what waits, at its largest, and what is busy, over all GPUs that are up."""
    asked: Counter[Profile] = Counter()
    for job, profile in queue:
        asked[profile] += job.tasks_waiting
    waiting = sum(count * max(s.amount for s in p.shapes) for p, count in asked.items())
    total = desk.free.total()
    busy = total - desk.free.available_on(desk.free.kinds())
    return float((waiting + busy) / total) if total else 0.0


class _Holes:
    """One decision by time limits over a queue in its order, in the hole that claims leave."""

    def __init__(self, desk: Desk, policy: Fms, queue: list[Entry], *, light: bool) -> None:
        self._desk, self._free, self._queue = desk, desk.free, queue
        self._ways = Ways(desk)
        self._candidates = Candidates(
            desk.free,
            policy.molded,
            light=light,
            every_size=policy.sizes == "all",
            cpu_speed=policy.cpu_speed,
        )

    def run(self) -> None:
        """Place the whole queue, two jobs at a time."""
        for jobs in _neighbours(self._queue):
            if jobs[0][0].tasks_waiting > 1:
                self._place_array(*jobs[0])
            else:
                self._place(jobs)

    def _place(self, jobs: tuple[Entry, ...]) -> None:
        candidates = [self._candidates.of(*entry) for entry in jobs if self._matters(*entry)]
        if len(candidates) == 2 and all(candidate.now for candidate in candidates):
            way = self._ways.best(*candidates)
            self._carry_out(way)
            if way.moves[0].places is not None:
                return
        elif candidates:
            self._place_one(candidates[0])
        for second in candidates[1:]:
            # What the first has taken or keeps may not be free for it: it is looked at again.
            self._place_one(self._candidates.of(second.job, second.profile))

    def _matters(self, job: Job, profile: Profile) -> bool:
        """Whether a job may fit, or keep an opening as the first that waits."""
        return not self._candidates.stuck(job, profile) or self._desk.may_keep(job)

    def _place_one(self, candidate: Candidate) -> None:
        if candidate.now:
            self._carry_out(self._ways.best_alone(candidate))
        else:
            self._desk.keep(candidate.job, candidate.profile.shapes)

    def _carry_out(self, way: Way) -> None:
        """Let those start that do, in order; a first job that waits goes before all others."""
        for place, move in enumerate(way.moves):
            other = way.moves[1 - place].job.id if len(way.moves) == 2 else ""
            if move.option is not None and move.places is not None:
                given = self._free.take_places(move.job, move.option, move.places)
                self._desk.start(move.job, [given], way.words.format(other=other))
                continue
            shapes = (move.option[0],) if move.option else self._free.profile(move.job).shapes
            self._desk.keep(move.job, shapes)
            return

    def _place_array(self, job: Job, profile: Profile) -> None:
        """Give all tasks the one shape by which they are done first, one wave after another."""
        best: tuple[float, Option] | None = None
        for option, time_s in self._candidates.sizes(job, profile):
            tasks = self._desk.tried(job, profile, option)
            if tasks:
                waves = ceil(job.tasks_waiting / tasks)
                done_s = self._free.now_s + waves * time_s
                if best is None or done_s < best[0]:
                    best = (done_s, option)
        if best is None:
            self._desk.keep(job, profile.shapes)
            return
        given = self._desk.fill(job, profile, best[1])
        self._desk.start(job, given, "its tasks are done soonest so")
        if len(given) < job.tasks_waiting:
            self._desk.keep(job, (best[1][0],))


def _neighbours(queue: Iterable[Entry]) -> Iterator[tuple[Entry, ...]]:
    """Two by two, in order; an array alone, and who is left alone beside one."""
    one: Entry | None = None
    for entry in queue:
        array = entry[0].tasks_waiting > 1
        if one is not None:
            yield (one,) if array else (one, entry)
            one = None
            if not array:
                continue
        if array:
            yield (entry,)
        else:
            one = entry
    if one is not None:
        yield (one,)
