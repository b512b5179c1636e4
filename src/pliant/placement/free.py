"""What is free for each job, as a policy decides: the one mutable thing of a cycle.

Within a cycle what is free only becomes less, but for :meth:`Free.release`; so what did not fit
once is not tried again, for any job that is alike. A claim is what is kept for a first waiting
job: another job may use it only if its time limit ends before the claim begins, or if it needs no
more than the claim leaves (EASY backfilling: Lifka, "The ANL/IBM SP scheduling system", 1995).
Where the batch system keeps whole nodes (see Abilities), a claim leaves nothing on its nodes.

Nodes have a number here, their place in the snapshot: ``places`` are such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from typing import TypeVar, cast

from pliant.model import Job, Shape, Snapshot
from pliant.placement.cells import Cell
from pliant.placement.ground import ground_of
from pliant.placement.instead import Instead
from pliant.placement.later import NEVER_S, Later
from pliant.placement.needs import Need
from pliant.placement.pick import Places, pick
from pliant.placement.profiles import Option, Profile
from pliant.placement.scopes import Scope, limit_s
from pliant.placement.states import NodeKind, Receipt
from pliant.placement.taken import Taken
from pliant.placement.trades import Trades
from pliant.plan import Claim

Known = TypeVar("Known")


_LATE = "another decision has begun"


class Free:
    """What is free now and until when, seen by each job."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now_s = snapshot.now_s
        self._ground = ground = ground_of(snapshot)
        self._turn = ground.turn
        self._names, self._number = ground.names, ground.number
        self._profiles, self._cells = ground.profiles, ground.cells
        self._failed: set[tuple[Scope, Need, int, float]] = set()
        self._taken: dict[int, Taken] = {}
        self._later = Later(snapshot, ground, self._taken)

    @cached_property
    def _instead(self) -> Instead:
        return Instead(self._cells)

    @cached_property
    def _trades(self) -> Trades:
        return Trades(self._cells, self._ground.held)

    def profile(self, job: Job) -> Profile:
        """Return what this job has in common with others."""
        return self._profiles.of(job)

    def remembered(self, key: object, make: Callable[[], Known]) -> Known:
        """Return what was made for a key, made now where it is not known from earlier."""
        known = self._ground.remembered.get(key)
        if known is None:
            known = self._ground.remembered[key] = make()
        return cast(Known, known)

    def need(self, job: Job, shape: Shape) -> Need:
        """Return what ``shape`` takes on each node for this job."""
        return self._profiles.need(job, shape)

    def names(self, places: Iterable[int]) -> tuple[str, ...]:
        """Return the names of nodes given by number."""
        return tuple([self._names[place] for place in places])

    def cell(self, place: int) -> Cell:
        """Return the cell of one node."""
        return self._cells.of[place]

    def jobs_on(self, place: int, pool: int, gpu: int) -> int:
        """Return how many jobs had a part of one GPU of a node before this decision."""
        return self._ground.jobs_on(place, pool, gpu)

    # --- now --------------------------------------------------------------------------------

    def fit(self, job: Job, shape: Shape) -> tuple[str, ...] | None:
        """Return the nodes that ``job`` could start on now as ``shape``; None: it cannot."""
        places = self.places(self.profile(job), (shape, self.need(job, shape)), self.bound(job))
        return None if places is None else self.names(places)

    def bound(self, job: Job) -> float:
        """Return when the last claim begins that ``job`` would still run into; -inf: none."""
        return self._later.bound(job)

    def places(self, profile: Profile, option: Option, bound: float) -> Places | None:
        """Return the same as :meth:`fit` for any job of this profile under such claims."""
        shape, need = option
        for scope in profile.scopes:
            key = (scope, need, shape.nodes, bound)
            if key in self._failed or not scope.allows(shape.nodes, need.cpus):
                continue
            found = pick(self._cells, scope, need, shape.nodes, bound)
            if found is not None:
                return found
            self._failed.add(key)
        return None

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
        assert self._turn == self._ground.turn, _LATE  # noqa: S101  # a mistake of our own
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
        self._instead.forget()
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
        """Whether an option may fit if a job's tasks gave back what they have; False: it cannot."""
        return self._instead.may_fit(given, profile, option, self.bound(given[0].job))

    def cells_in(self, profile: Profile) -> list[Cell]:
        """Return the cells with nodes that jobs of this profile may use."""
        kinds = frozenset(kind for scope in profile.scopes for kind in scope.kinds)
        return [cell for cell in self._cells.filled() if cell.kind in kinds]

    # --- in place of what runs --------------------------------------------------------------

    def room(
        self,
        job: Job,
        option: Option,
        givers: Iterable[Job],
        *,
        first: Iterable[Places] = (),
        beside: frozenset[str] = frozenset(),
    ) -> Places | None:
        """Return where an option fits now for ``job`` if the running ``givers`` were gone.

        ``first``: nodes to be tried before all others. ``beside``: jobs whose claims do not count.
        None: nowhere.
        """
        profile, bound, givers = self.profile(job), self.bound(job), tuple(givers)
        with self._trades.supposed(givers, beside), self.supposing():
            for places in first:
                if self.admits(profile, option, places, bound):
                    return places
            return self.places(profile, option, bound)

    def has_room_on(
        self, job: Job, option: Option, givers: Iterable[Job], places: Iterable[Places]
    ) -> bool:
        """Whether an option fits now for ``job`` on some of these places, the ``givers`` gone."""
        profile, bound = self.profile(job), self.bound(job)
        with self._trades.supposed(tuple(givers), frozenset()), self.supposing():
            return any(self.admits(profile, option, some, bound) for some in places)

    def may_be_on(self, job: Job, shape: Shape, node: str) -> bool:
        """Whether a task of ``job`` as ``shape`` could start on a node now, whatever is claimed."""
        place, need = self._number.get(node, -1), self.need(job, shape)
        cell = self._cells.of.get(place)
        if cell is None or cell.receipt(need, -NEVER_S) is None:
            return False
        return any(scope.may_lie(place, cell.kind) for scope in self.profile(job).scopes)

    def admits(self, profile: Profile, option: Option, places: Places, bound: float) -> bool:
        """Whether an option fits now on exactly these nodes, as far as its scopes allow them."""
        shape, need = option
        if len(places) != shape.nodes or any(place not in self._cells.of for place in places):
            return False
        fits = all(self.cell(place).receipt(need, bound) is not None for place in places)
        return fits and any(
            scope.allows(shape.nodes, need.cpus)
            and all(self.cell(place).kind in scope.kinds for place in places)
            and scope.kept.union(scope.excluded).isdisjoint(places)
            and set(scope.required) <= set(places)
            for scope in profile.scopes
        )

    def trade(self, job: Job, option: Option, places: Places, givers: Iterable[Job]) -> Taken:
        """Give ``job`` an option where it fits once the running ``givers`` are gone.

        What they have beyond that is free for nobody before a later snapshot.
        """
        givers = tuple(givers)
        receipts = self._trades.carry_out(option, places, self.bound(job), givers)
        self._later.leave_out(givers)
        return self._noted(job, option, places, receipts)

    def held(self, job: Job) -> tuple[Places, Need]:
        """Return the nodes of a running job, and what it has on each."""
        return self._ground.held(job)

    # --- how much ---------------------------------------------------------------------------

    def vacant(self, job: Job) -> int:
        """Return how many whole GPUs are free on the nodes that ``job`` could use."""
        return self.vacant_on(self.profile(job).kinds)

    def vacant_on(self, kinds: frozenset[NodeKind]) -> int:
        """Return how many whole GPUs are free on nodes of these kinds."""
        return self._cells.vacant_on(kinds)

    def has_gpus(self, kinds: frozenset[NodeKind]) -> bool:
        """Whether any part of a GPU is free on nodes of these kinds, with cores or without."""
        cells = (cell for cell in self._cells.filled() if cell.kind in kinds)
        return any(
            gpus if isinstance(gpus, int) else any(gpus) for cell in cells for gpus in cell.state[2]
        )

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

    @property
    def claims(self) -> list[Claim]:
        """What is kept for jobs that wait, in the order in which it was claimed."""
        return self._later.claims

    def earliest(
        self, job: Job, shape: Shape, before_s: float = NEVER_S
    ) -> tuple[float, tuple[str, ...]] | None:
        """Return when ``shape`` can start at the earliest, and where; None: not by ``before_s``.

        Running jobs are taken to last until their time limits.
        """
        nodes = self.fit(job, shape)
        if nodes is not None:
            return (self.now_s, nodes)
        found = self._later.opening(job, shape, before_s)
        return None if found is None else (found.at_s, self.names(found.places))

    def claim(self, job: Job, shapes: Iterable[Shape], reason: str = "") -> Claim | None:
        """Keep for ``job`` the earliest opening for any of ``shapes``, of these the largest.

        Returns None where no opening is in sight: then nothing is kept.
        """
        return self._later.claim(job, shapes, reason)

    def keep_whole(self, job: Job, nodes: tuple[str, ...]) -> None:
        """Keep nodes on which the batch system expects to start a waiting job, as it is."""
        self._later.keep_whole(job, nodes)
