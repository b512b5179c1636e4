"""What is free for each job, as a policy decides: the one mutable thing of a cycle.

Within a cycle what is free only becomes less, but for :meth:`Free.release`; so what did not fit
once is not tried again, for any job that is alike. A claim is what is kept for a first waiting
job: another job may use it only if its time limit ends before the claim begins, or if it needs no
more than the claim leaves (EASY backfilling: Lifka, "The ANL/IBM SP scheduling system", 1995).
Where the batch system keeps whole nodes (see Abilities), a claim leaves nothing on its nodes.

Nodes have a number here, their place in the snapshot: ``places`` are such numbers.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from itertools import islice
from math import ceil

from pliant.model import Job, Shape, Snapshot
from pliant.placement.cells import Cell, Cells, Left
from pliant.placement.ends import Ends
from pliant.placement.needs import (
    NOTHING,
    Need,
    NodeKind,
    Receipt,
    find,
    most_gpus,
    nothing_of,
    state_of,
    taken,
)
from pliant.placement.profiles import Option, Profile, Profiles
from pliant.placement.scopes import Scope, limit_s
from pliant.placement.timeline import Opening, Release, Wanted, opening
from pliant.plan import Claim

NEVER_S = float("inf")
Places = tuple[int, ...]


@dataclass(eq=False, slots=True)
class Taken:
    """What a job was given in this cycle. Made thousands of times: frozen would take longer."""

    job: Job
    shape: Shape
    places: Places
    need: Need
    receipts: tuple[Receipt, ...]
    end_s: float


class Free:
    """What is free now and until when, seen by each job."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now_s = snapshot.now_s
        self.claims: list[Claim] = []
        self._claim_times: list[float] = []
        self._bounds: dict[int, float] = {}  # by time limit
        self._claim_ends: list[float] = []
        self._names = [node.name for node in snapshot.nodes]
        self._number = {name: place for place, name in enumerate(self._names)}
        self._profiles = Profiles(snapshot)
        self._cells = Cells()
        for place, kind in enumerate(self._profiles.scopes.kinds):
            if kind is not None:
                self._cells.add(place, kind, state_of(snapshot.nodes[place]))
        self._failed: set[tuple[Scope, Need, int, float]] = set()
        self._not_instead: set[tuple[Profile, Need, Cell, Receipt, float]] = set()
        self._ends = Ends(snapshot, self._profiles, self._number)
        self._taken: dict[int, Taken] = {}

    def profile(self, job: Job) -> Profile:
        """Return what this job has in common with others."""
        return self._profiles.of(job)

    def need(self, job: Job, shape: Shape) -> Need:
        """Return what ``shape`` takes on each node for this job."""
        return self._profiles.need(job, shape)

    def names(self, places: Iterable[int]) -> tuple[str, ...]:
        """Return the names of nodes given by number."""
        return tuple([self._names[place] for place in places])

    def cell(self, place: int) -> Cell:
        """Return the cell of one node."""
        return self._cells.of[place]

    # --- now --------------------------------------------------------------------------------

    def fit(self, job: Job, shape: Shape) -> tuple[str, ...] | None:
        """Return the nodes that ``job`` could start on now as ``shape``; None: it cannot."""
        places = self.places(self.profile(job), (shape, self.need(job, shape)), self.bound(job))
        return None if places is None else self.names(places)

    def bound(self, job: Job) -> float:
        """Return when the last claim begins that ``job`` would still run into; -inf: none."""
        known = self._bounds.get(job.time_limit_s)
        if known is None:
            place = bisect_left(self._claim_times, self.now_s + limit_s(job))
            known = self._claim_times[place - 1] if place else -NEVER_S
            self._bounds[job.time_limit_s] = known
        return known

    def places(self, profile: Profile, option: Option, bound: float) -> Places | None:
        """Return the same as :meth:`fit` for any job of this profile under such claims."""
        shape, need = option
        for scope in profile.scopes:
            key = (scope, need, shape.nodes, bound)
            if key in self._failed or not scope.allows(shape.nodes, need.cpus):
                continue
            found = self._pick(scope, need, shape.nodes, bound)
            if found is not None:
                return found
            self._failed.add(key)
        return None

    def _pick(self, scope: Scope, need: Need, nodes: int, bound: float) -> Places | None:
        if scope.required or scope.excluded or scope.kept:
            return self._pick_among(scope, need, nodes, bound)
        chosen: list[int] = []
        for cell in self._cells.fitting(scope, need, bound):
            chosen += cell.nodes[: nodes - len(chosen)]
            if len(chosen) == nodes:
                return tuple(chosen)
        return None

    def _pick_among(self, scope: Scope, need: Need, nodes: int, bound: float) -> Places | None:
        """The same where certain nodes are required or excluded."""
        chosen = list(scope.required)
        if len(chosen) > nodes or any(self.cell(p).receipt(need, bound) is None for p in chosen):
            return None
        if not scope.kept.isdisjoint(chosen):
            return None
        barred = scope.excluded.union(scope.kept, chosen)
        for cell in self._cells.fitting(scope, need, bound):
            allowed = (place for place in cell.nodes if place not in barred)
            chosen.extend(islice(allowed, nodes - len(chosen)))
        return tuple(chosen) if len(chosen) == nodes else None

    def fits_on(self, job: Job, shape: Shape, nodes: Iterable[str]) -> bool:
        """Whether ``job`` could start now as ``shape`` on exactly these nodes."""
        need, bound = self.need(job, shape), self.bound(job)
        cells = [self._cells.of.get(self._number.get(name, -1)) for name in nodes]
        return all(cell is not None and cell.receipt(need, bound) is not None for cell in cells)

    def take(self, job: Job, shape: Shape, nodes: Iterable[str]) -> Taken:
        """Give ``job`` what ``shape`` needs on these nodes, until the end of its time limit."""
        places = tuple(self._number[name] for name in nodes)
        return self.take_places(job, (shape, self.need(job, shape)), places)

    def take_places(self, job: Job, option: Option, places: Places) -> Taken:
        """Give ``job`` what an option needs on nodes given by number."""
        need, bound = option[1], self.bound(job)
        receipts = tuple([self._cells.take(place, need, bound) for place in places])
        return self._noted(job, option, places, receipts)

    def take_receipt(self, job: Job, option: Option, place: int, receipt: Receipt) -> Taken:
        """Give ``job`` exactly ``receipt`` on one node: a share of one certain GPU."""
        self._cells.move(place, self._cells.without(self.cell(place), receipt, self.bound(job)))
        return self._noted(job, option, (place,), (receipt,))

    def _noted(
        self, job: Job, option: Option, places: Places, receipts: tuple[Receipt, ...]
    ) -> Taken:
        given = Taken(job, option[0], places, option[1], receipts, self.now_s + limit_s(job))
        self._taken[id(given)] = given
        return given

    def release(self, given: Taken) -> None:
        """Take back what a job was given in this cycle."""
        del self._taken[id(given)]
        self._not_instead.clear()
        bound = self.bound(given.job)
        for place, receipt in zip(given.places, given.receipts, strict=True):
            self._cells.move(place, self._cells.with_back(self.cell(place), receipt, bound))

    def retake(self, given: Taken) -> Taken:
        """Give back to a job exactly what was taken from it."""
        bound = self.bound(given.job)
        for place, receipt in zip(given.places, given.receipts, strict=True):
            self._cells.move(place, self._cells.without(self.cell(place), receipt, bound))
        self._taken[id(given)] = given
        return given

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """Take and release in between without remembering afterwards what did not fit.

        What was remembered before is not believed in between, as something may be released, and
        only afterwards again.
        """
        known, self._failed = self._failed, set()
        try:
            yield
        finally:
            self._failed = known

    def forget_failures(self) -> None:
        """Try again what did not fit: to be called when a release has made more free."""
        self._failed.clear()

    def may_fit_instead(self, given: list[Taken], profile: Profile, option: Option) -> bool:
        """Whether an option may fit if a job's tasks gave back what they have; False: it cannot.

        Cheaper than trying it, most of all for a single task on one node.
        """
        one = given[0]
        if len(given) > 1 or option[0].nodes > 1 or len(one.places) > 1:
            return self._enough_instead(given, profile, option)
        bound = self.bound(one.job)
        key = (profile, option[1], self.cell(one.places[0]), one.receipts[0], bound)
        if key in self._not_instead:
            return False
        may = self._fits_instead(*key)
        if not may:
            self._not_instead.add(key)
        return may

    def _enough_instead(self, given: list[Taken], profile: Profile, option: Option) -> bool:
        """Whether there are whole GPUs enough, also those whose cores the job itself has."""
        more = option[0].amount
        held = ceil(given[0].shape.amount)
        own = map(self.cell, {place for one in given for place in one.places})
        beside = sum(most_gpus(cell.kind, cell.state, "") for cell in own if cell.state[0] < 1)
        vacant = self.vacant_on(profile.kinds) + beside
        return more < 1 or vacant >= (more - held) * len(given)

    def _fits_instead(
        self, profile: Profile, need: Need, cell: Cell, receipt: Receipt, bound: float
    ) -> bool:
        """Whether a need fits on a node of this cell that gets something back, or elsewhere."""
        back = self._cells.with_back(cell, receipt, bound)
        return back.receipt(need, bound) is not None or any(
            self._pick(scope, need, 1, bound) is not None for scope in profile.scopes
        )

    def cells_in(self, profile: Profile) -> list[Cell]:
        """Return the cells with nodes that jobs of this profile may use."""
        kinds = frozenset(kind for scope in profile.scopes for kind in scope.kinds)
        return [cell for cell in self._cells.filled() if cell.kind in kinds]

    # --- how much ---------------------------------------------------------------------------

    def vacant(self, job: Job) -> int:
        """Return how many whole GPUs are free on the nodes that ``job`` could use."""
        return self.vacant_on(self.profile(job).kinds)

    def vacant_on(self, kinds: frozenset[NodeKind]) -> int:
        """Return how many whole GPUs are free on nodes of these kinds."""
        return sum([self._cells.vacant.get(kind, 0) for kind in kinds])

    def available(self, job: Job) -> Fraction:
        """Return the GPUs that are free for ``job``, parts of GPUs counted as parts."""
        return self.available_on(self.profile(job).kinds)

    def available_on(self, kinds: frozenset[NodeKind]) -> Fraction:
        """Return the GPUs that are free on nodes of these kinds, parts counted as parts."""
        cells = (cell for cell in self._cells.filled() if cell.kind in kinds)
        return sum((cell.available * len(cell.nodes) for cell in cells), Fraction(0))

    def kinds(self) -> frozenset[NodeKind]:
        """Return the kinds of all nodes that are up."""
        return frozenset(self._profiles.size)

    def total(self) -> int:
        """Return how many GPUs the nodes have that are up."""
        sizes = self._profiles.size.items()
        return sum(count * pool.total for kind, count in sizes for pool in kind.pools)

    def places_on(self, kinds: frozenset[NodeKind]) -> list[int]:
        """Return the nodes of these kinds by number, ascending."""
        cells = (cell for cell in self._cells.filled() if cell.kind in kinds)
        return sorted(place for cell in cells for place in cell.nodes)

    # --- later ------------------------------------------------------------------------------

    def earliest(
        self, job: Job, shape: Shape, before_s: float = NEVER_S
    ) -> tuple[float, tuple[str, ...]] | None:
        """Return when ``shape`` can start at the earliest, and where; None: not by ``before_s``.

        Running jobs are taken to last until their time limits.
        """
        nodes = self.fit(job, shape)
        if nodes is not None:
            return (self.now_s, nodes)
        found = self._opening(job, shape, before_s)
        return None if found is None else (found.at_s, self.names(found.places))

    def _opening(self, job: Job, shape: Shape, before_s: float) -> Opening | None:
        need = self.need(job, shape)
        best: Opening | None = None
        for scope in self.profile(job).scopes:
            if not self._profiles.could_hold(scope, need, shape.nodes):
                continue
            wanted = Wanted(scope, (shape, need), limit_s(job))
            limit = before_s if best is None else best.at_s
            found = opening(self._cells, wanted, self._releases(), limit)
            if found is not None and (best is None or found.at_s < best.at_s):
                best = found
        return best

    def _releases(self) -> Iterator[Release]:
        """When what runs or starts gives back what it has, and when claims end."""
        given = sorted(self._taken.values(), key=lambda one: one.end_s)
        starts = (Release(one.end_s, one.places, one.need) for one in given)
        claims = (Release(until_s, (), None) for until_s in sorted(self._claim_ends))
        return self._ends.among(merge(starts, claims, key=lambda release: release.at_s))

    def claim(self, job: Job, shapes: Iterable[Shape], reason: str = "") -> Claim | None:
        """Keep for ``job`` the earliest opening for any of ``shapes``, of these the largest.

        Of equal amounts, that on the fewest nodes: it leaves more to others until then.
        Returns None where no opening is in sight: then nothing is kept.
        """
        best: tuple[Opening, Shape] | None = None
        for shape in sorted(shapes, key=lambda shape: (shape.amount, -shape.nodes, shape)):
            found = self._opening(job, shape, NEVER_S if best is None else best[0].at_s)
            if found is not None:
                best = (found, shape)
        if best is None:
            return None
        found, shape = best
        claim = Claim(job, shape, found.at_s, self.names(found.places), reason)
        self._keep(found, self.need(job, shape), found.at_s + limit_s(job))
        self.claims.append(claim)
        return claim

    def _keep(self, found: Opening, need: Need, until_s: float) -> None:
        closed = self.snapshot.abilities.claims_whole_nodes
        for place, state in zip(found.places, found.states, strict=True):
            receipt = find(self.cell(place).kind, state, need)
            assert receipt is not None, "a claim is made where it fits"  # noqa: S101
            rest = nothing_of(state) if closed else taken(state, receipt)
            left = Left(found.at_s, until_s, rest, receipt, closed)
            self._cells.claim(place, left)
        self._bind(found.at_s, until_s)

    def _bind(self, at_s: float, until_s: float) -> None:
        """Note from when to when a claim binds others."""
        insort(self._claim_times, at_s)
        self._claim_ends.append(until_s)
        self._bounds.clear()

    def keep_whole(self, job: Job, nodes: tuple[str, ...]) -> None:
        """Keep nodes on which the batch system expects to start a waiting job, as it is."""
        at_s = max(self.now_s, job.expected_s)
        until_s = at_s + limit_s(job)
        for name in nodes:
            place = self._number.get(name, -1)
            cell = self._cells.of.get(place)
            if cell is not None:
                left = Left(at_s, until_s, nothing_of(cell.state), NOTHING, closed=True)
                self._cells.claim(place, left)
        self._bind(at_s, until_s)
        reason = "the batch system expects to start it there"
        self.claims.append(Claim(job, job.shape, at_s, nodes, reason))
