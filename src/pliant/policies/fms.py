"""FMS, flexible moldable scheduling: neighbours in the queue are placed two by two.

For each pair of jobs, in the order of the queue, with N the largest size that a job's request
allows, and for both of them GPUs alone, CPU cores alone, or both, as the requests allow:

1. one after the other on the same nodes,
2. side by side on as many nodes as both need,
3. one on the CPU cores and one on the GPUs of the same nodes,

and, where N is not free or the load is high, all of these at N/2 and N/4 too. Of all ways the one
is chosen after which both are done at the earliest; of equal ones that with the earlier sum of
completions, then that on fewer nodes, then that named first. A GPU shape takes only the cores that
its request has beside its GPUs and leaves the others to CPU shapes.

Completion is start plus run time: by the owner's ``throughput`` and ``steps``, else by the time
limit for the own shape and the ratio of speeds, else linear in GPUs, with a node's cores at
``cpu_speed`` (see :mod:`pliant.speedup`).

What the paper does not cover:

- The queue's order is the batch system's. ``order = grouped`` is the paper's: by the number of
  nodes asked, then by the run time on all that a node has.
- A size is any amount of GPUs (for CPU shapes: nodes). N/2 and N/4 are the largest allowed sizes
  that are no more than that; where none of the three fits, the largest allowed one that does.
  ``sizes = all`` tries every allowed size.
- The load is what the waiting jobs ask at N and what is busy, over all GPUs; above ``high_load``
  it is high. At 1.0 smaller sizes are tried as soon as not all jobs fit at N.
- A job waits by choice only as the first that waits in its queue (a partition): it then keeps its
  opening. Others start as soon as anything fits, in the hole that the claims leave.
- An array is placed alone: one shape for all its tasks, that by which they are done first.

Source: Ravi et al. (paper 004), section III-B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from pliant.model import Job, Kind, Shape, Snapshot
from pliant.placement import Option, Profile
from pliant.placement.free import Places
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.speedup import DEFAULT_CPU_SPEED, run_time_s

Entry = tuple[Job, Profile]
PARTS = (1, 2, 4)
NEVER_S = float("inf")
ENDLESS_S = 1e12
"""The run time of a job that makes no progress: worse than any other, better than never."""


@dataclass(frozen=True, slots=True)
class Fms:
    """Pairs of neighbours, done at the earliest over the allowed shapes."""

    order: Literal["queue", "grouped"] = "queue"
    sizes: Literal["halves", "all"] = "halves"
    high_load: float = 1.0
    cpu_speed: float = DEFAULT_CPU_SPEED

    @property
    def name(self) -> str:
        """The name users choose it by."""
        return "fms"

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        return _Pairing(Desk(snapshot), self).run()


@dataclass(frozen=True, eq=False, slots=True)
class _Candidate:
    """A job in a pair: what is tried for it, and what of that fits now."""

    job: Job
    profile: Profile
    tried: tuple[Option, ...]
    now: tuple[tuple[Option, Places], ...]


@dataclass(frozen=True, slots=True)
class _Move:
    """One job in one way: ``places`` None: it waits."""

    job: Job
    option: Option | None
    places: Places | None
    done_s: float


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to place a pair."""

    moves: tuple[_Move, ...]
    words: str

    @property
    def rank(self) -> tuple[float, float, int]:
        """Last completion, sum of completions, nodes."""
        done = [move.done_s for move in self.moves]
        nodes = {place for move in self.moves for place in move.places or ()}
        return (max(done), sum(done), len(nodes))


class _Pairing:
    """One decision."""

    def __init__(self, desk: Desk, policy: Fms) -> None:
        self._desk, self._free, self._policy = desk, desk.free, policy
        self._sizes: dict[Profile, tuple[tuple[Option, ...], ...]] = {}
        self._times: dict[tuple[int, int, int, int], tuple[object, float]] = {}
        self._stuck: set[tuple[Profile, float]] = set()
        self._light = False

    def run(self) -> Plan:
        """Place the whole queue, two jobs at a time."""
        queue = [(job, self._free.profile(job)) for job in self._desk.queue()]
        queue = self._ordered([entry for entry in queue if entry[1].options])
        self._light = self._load(queue) <= self._policy.high_load
        for jobs in _neighbours(queue):
            if jobs[0][0].tasks_waiting > 1:
                self._place_array(*jobs[0])
            else:
                self._place(jobs)
        return self._desk.plan()

    # --- what is asked ----------------------------------------------------------------------

    def _ordered(self, queue: list[Entry]) -> list[Entry]:
        return queue if self._policy.order == "queue" else sorted(queue, key=self._group)

    def _group(self, entry: Entry) -> tuple[int, float, int]:
        job, profile = entry
        nodes = max(shape.nodes for shape in profile.shapes)
        run_s = min(self._run_s(job, s) for s in profile.shapes if s.nodes == nodes)
        return (nodes, run_s, self._desk.position(job))

    def _load(self, queue: Iterable[Entry]) -> float:
        """What waits, at its largest, and what is busy, over all GPUs that are up."""
        asked: Counter[Profile] = Counter()
        for job, profile in queue:
            asked[profile] += job.tasks_waiting
        waiting = sum(count * max(s.amount for s in p.shapes) for p, count in asked.items())
        total = self._free.total()
        busy = total - self._free.available_on(self._free.kinds())
        return float((waiting + busy) / total) if total else 0.0

    def _run_s(self, job: Job, shape: Shape) -> float:
        key = (id(job.spec), id(job.shape), id(shape), job.time_limit_s)
        known = self._times.get(key)
        if known is None:
            run_s = min(ENDLESS_S, run_time_s(job, shape, self._policy.cpu_speed))
            known = self._times[key] = ((job.spec, job.shape, shape), run_s)
        return known[1]

    def _steps(self, profile: Profile) -> tuple[tuple[Option, ...], ...]:
        """The options at N, and at all sizes to try where N is not free or the load is high."""
        known = self._sizes.get(profile)
        if known is None:
            known = self._sizes[profile] = (
                _at_parts(profile, PARTS[:1]),
                profile.options if self._policy.sizes == "all" else _at_parts(profile, PARTS),
            )
        return known

    def _candidate(self, job: Job, profile: Profile) -> _Candidate:
        bound = self._free.bound(job)
        if (profile, bound) in self._stuck:
            return _Candidate(job, profile, (), ())
        full, parts = self._steps(profile)
        if self._light:
            now = self._fitting(profile, full, bound)
            if now:
                return _Candidate(job, profile, full, now)
        now = self._fitting(profile, parts, bound)
        if not now:
            largest_first = sorted(profile.options, key=lambda option: -option[0].amount)
            now = self._fitting(profile, largest_first, bound)[:1]
        if not now:
            self._stuck.add((profile, bound))
        return _Candidate(job, profile, parts, now)

    def _fitting(
        self, profile: Profile, options: Iterable[Option], bound: float
    ) -> tuple[tuple[Option, Places], ...]:
        found = ((option, self._free.places(profile, option, bound)) for option in options)
        return tuple((option, places) for option, places in found if places is not None)

    # --- two jobs ---------------------------------------------------------------------------

    def _place(self, jobs: tuple[Entry, ...]) -> None:
        candidates = [self._candidate(*entry) for entry in jobs if self._matters(*entry)]
        if len(candidates) == 2 and all(candidate.now for candidate in candidates):
            way = min(self._ways(*candidates), key=lambda way: way.rank)
            self._carry_out(way)
            if way.moves[0].places is None:
                # What the first keeps may not be free for the second: it is placed again.
                self._place_one(candidates[1])
            return
        for candidate in candidates:
            self._place_one(candidate)

    def _matters(self, job: Job, profile: Profile) -> bool:
        """Whether a job may fit, or keep an opening as the first that waits."""
        stuck = (profile, self._free.bound(job)) in self._stuck
        return not stuck or self._desk.may_keep(job)

    def _place_one(self, candidate: _Candidate) -> None:
        if candidate.now:
            # What fits is looked up again: the other of the pair may have made a claim since.
            candidate = self._candidate(candidate.job, candidate.profile)
        if not candidate.now:
            self._desk.keep(candidate.job, candidate.profile.shapes)
            return
        ways = [_Way((move,), "it is done soonest so") for move in self._moves(candidate)]
        if self._desk.may_keep(candidate.job):
            ways.append(_Way((self._wait(candidate),), "it is done sooner if it waits"))
        self._carry_out(min(ways, key=lambda way: way.rank))

    def _moves(self, candidate: _Candidate) -> Iterator[_Move]:
        for option, places in candidate.now:
            done_s = self._free.now_s + self._run_s(candidate.job, option[0])
            yield _Move(candidate.job, option, places, done_s)

    def _ways(self, one: _Candidate, two: _Candidate) -> Iterator[_Way]:
        yield from self._side_by_side(one, two)
        if self._desk.may_keep(two.job):
            yield from self._in_sequence(one, two)
        if self._desk.may_keep(one.job):
            first = self._wait(one)
            for move in self._moves(two):
                yield _Way((first, move), "")

    def _side_by_side(self, one: _Candidate, two: _Candidate) -> Iterator[_Way]:
        """Both now: on the same nodes where one takes the cores and the other the GPUs."""
        alone = True
        for first in self._moves(one):
            assert first.option is not None and first.places is not None  # noqa: S101
            with self._free.supposing():
                given = self._free.take_places(one.job, first.option[0], first.places)
                seconds = list(self._seconds(two, first))
                self._free.release(given)
            for second in seconds:
                yield _Way((first, second), "beside job {other} both are done soonest")
                alone = False
        if alone:
            for first in self._moves(one):
                later = self._after(two, first)
                yield _Way((first, later), "job {other} cannot start beside it in any way")

    def _seconds(self, two: _Candidate, first: _Move) -> Iterator[_Move]:
        """What the second job can do now that the first has taken what it needs."""
        bound = self._free.bound(two.job)
        for option in two.tried:
            places = self._beside(two, option, first)
            if places is None:
                places = self._free.places(two.profile, option, bound)
            if places is not None:
                done_s = self._free.now_s + self._run_s(two.job, option[0])
                yield _Move(two.job, option, places, done_s)

    def _beside(self, two: _Candidate, option: Option, first: _Move) -> Places | None:
        """The nodes of ``first``, where one takes the cores and the other the GPUs of them."""
        assert first.option is not None and first.places is not None  # noqa: S101
        shapes = (first.option[0], option[0])
        if {shape.kind for shape in shapes} != {Kind.CPU, Kind.GPU}:
            return None
        if shapes[0].nodes != shapes[1].nodes or len(two.profile.scopes) != 1:
            return None
        names = self._free.names(first.places)
        fits = self._free.fits_on(two.job, option[0], names)
        admitted = all(
            two.profile.scopes[0].admits(place, self._free.cell(place).kind)
            for place in first.places
        )
        return first.places if fits and admitted else None

    def _in_sequence(self, one: _Candidate, two: _Candidate) -> Iterator[_Way]:
        for first in self._moves(one):
            yield _Way(
                (first, self._after(two, first)), "one after the other both are done soonest"
            )

    def _after(self, two: _Candidate, first: _Move) -> _Move:
        """The second job when the first is done, in its place, or at its own next opening."""
        assert first.option is not None  # noqa: S101
        shape = first.option[0]
        best = self._wait(two)
        for option in two.tried:
            if option[0].nodes <= shape.nodes and option[0].amount <= shape.amount:
                done_s = first.done_s + self._run_s(two.job, option[0])
                if done_s < best.done_s:
                    best = _Move(two.job, option, None, done_s)
        return best

    def _wait(self, candidate: _Candidate) -> _Move:
        """The job at the opening after which it is done first, of those that are not now."""
        now = {option[0] for option, _ in candidate.now}
        best = _Move(candidate.job, None, None, NEVER_S)
        for option in candidate.tried:
            if option[0] not in now:
                at_s = self._desk.opening_s(candidate.job, candidate.profile, option)
                done_s = at_s + self._run_s(candidate.job, option[0])
                if done_s < best.done_s:
                    best = _Move(candidate.job, option, None, done_s)
        return best

    # --- what was chosen --------------------------------------------------------------------

    def _carry_out(self, way: _Way) -> None:
        """Let those start that do, in order; a first job that waits goes before all others."""
        for place, move in enumerate(way.moves):
            other = way.moves[1 - place].job.id if len(way.moves) == 2 else ""
            if move.option is not None and move.places is not None:
                given = self._free.take_places(move.job, move.option[0], move.places)
                self._desk.start(move.job, [given], way.words.format(other=other))
                continue
            shapes = (move.option[0],) if move.option else self._free.profile(move.job).shapes
            self._desk.keep(move.job, shapes)
            return

    def _place_array(self, job: Job, profile: Profile) -> None:
        """Give all tasks the one shape by which they are done first, one wave after another."""
        best: tuple[float, Option] | None = None
        for option in self._steps(profile)[1]:
            tasks = self._desk.tried(job, profile, option)
            if tasks:
                waves = ceil(job.tasks_waiting / tasks)
                done_s = self._free.now_s + waves * self._run_s(job, option[0])
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


def _at_parts(profile: Profile, parts: tuple[int, ...]) -> tuple[Option, ...]:
    """The options at N, N/2 … of each kind, N first."""
    chosen: dict[Option, None] = {}
    for part in parts:
        for cpu in (False, True):
            options = [o for o in profile.options if (o[0].kind is Kind.CPU) is cpu]
            most = max((_size(option[0]) for option in options), default=Fraction(0))
            size = max((s for o in options if (s := _size(o[0])) <= most / part), default=None)
            chosen.update(dict.fromkeys(o for o in options if _size(o[0]) == size))
    return tuple(chosen)


def _size(shape: Shape) -> Fraction:
    return Fraction(shape.nodes) if shape.kind is Kind.CPU else shape.amount
