"""What is kept for jobs that wait, and when a shape fits that does not fit now."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge

from pliant.model import Job, Shape, Snapshot
from pliant.placement.cells import Left
from pliant.placement.ground import Ground
from pliant.placement.needs import Need, find
from pliant.placement.scopes import limit_s
from pliant.placement.states import NOTHING, nothing_of, taken
from pliant.placement.taken import Taken
from pliant.placement.timeline import Opening, Release, Wanted, opening
from pliant.plan import Claim

NEVER_S = float("inf")


class Later:
    """The claims of a cycle. ``taken`` is read anew each time: what jobs have been given by then.

    Running jobs, and those that start, are taken to last until their time limits.
    """

    def __init__(self, snapshot: Snapshot, ground: Ground, taken: Mapping[int, Taken]) -> None:
        self.claims: list[Claim] = []
        self._now_s = snapshot.now_s
        self._closed = snapshot.abilities.claims_whole_nodes
        self._ground, self._taken = ground, taken
        self._cells, self._profiles = ground.cells, ground.profiles
        self._claim_times: list[float] = []
        self._claim_ends: list[float] = []
        self._bounds: dict[int, float] = {}  # by time limit

    def leave_out(self, running: Iterable[Job]) -> None:
        """Count no longer on the ends of these running jobs: they give back what they have now."""
        self._ground.ends.leave_out(running)

    def bound(self, job: Job) -> float:
        """Return when the last claim begins that ``job`` would still run into; -inf: none."""
        if not self._claim_times:
            return -NEVER_S
        known = self._bounds.get(job.time_limit_s)
        if known is None:
            place = bisect_left(self._claim_times, self._now_s + limit_s(job))
            known = self._claim_times[place - 1] if place else -NEVER_S
            self._bounds[job.time_limit_s] = known
        return known

    def opening(self, job: Job, shape: Shape, before_s: float = NEVER_S) -> Opening | None:
        """Return when and where ``shape`` fits after now; None: not by ``before_s``."""
        need = self._profiles.need(job, shape)
        best: Opening | None = None
        for scope in self._profiles.of(job).scopes:
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
        others: Iterable[Release] = (Release(one.end_s, one.places, one.need) for one in given)
        if self._claim_ends:
            claims = (Release(until_s, (), None) for until_s in sorted(self._claim_ends))
            others = merge(others, claims, key=lambda release: release.at_s)
        return self._ground.ends.among(others, self._now_s)

    def claim(self, job: Job, shapes: Iterable[Shape], reason: str) -> Claim | None:
        """Keep for ``job`` the earliest opening for any of ``shapes``, of these the largest.

        Of equal amounts, that on the fewest nodes: it leaves more to others until then.
        Returns None where no opening is in sight: then nothing is kept.
        """
        best: tuple[Opening, Shape] | None = None
        for chain in self._ground.chains(job, shapes):
            found_here = self._last_of(job, chain, NEVER_S if best is None else best[0].at_s)
            best = found_here or best
        if best is None:
            return None
        found, shape = best
        names = tuple([self._ground.names[place] for place in found.places])
        claim = Claim(job, shape, found.at_s, names, reason)
        self._keep(found, job, self._profiles.need(job, shape))
        self.claims.append(claim)
        return claim

    def _last_of(
        self, job: Job, chain: Sequence[tuple[Shape, Need]], before_s: float
    ) -> tuple[Opening, Shape] | None:
        """Return the earliest opening for any of these, and the last that fits as early.

        Each is more than the one before: what does not fit by then leaves none behind it, and the
        last that does is found by halving.
        """
        found = self.opening(job, chain[0][0], before_s)
        if found is None:
            return None
        low, end = 0, len(chain)  # the first fits, the second does not
        while low + 1 < end:
            middle = (low + end) // 2
            other = self.opening(job, chain[middle][0], found.at_s)
            if other is None:
                end = middle
            else:
                found, low = other, middle
        return found, chain[low][0]

    def _keep(self, found: Opening, job: Job, need: Need) -> None:
        until_s = found.at_s + limit_s(job)
        for place, state in zip(found.places, found.states, strict=True):
            cell = self._cells.of[place]
            receipt = find(cell.kind, state, need, now=cell.state[2])
            assert receipt is not None, "a claim is made where it fits"  # noqa: S101 - callers see to it
            rest = nothing_of(state) if self._closed else taken(state, receipt)
            left = Left(found.at_s, until_s, rest, receipt, self._closed, job.id)
            self._cells.claim(place, left)
        self._bind(found.at_s, until_s)

    def _bind(self, at_s: float, until_s: float) -> None:
        """Note from when to when a claim binds others."""
        insort(self._claim_times, at_s)
        self._claim_ends.append(until_s)
        self._bounds.clear()

    def keep_whole(self, job: Job, nodes: tuple[str, ...]) -> None:
        """Keep nodes on which the batch system expects to start a waiting job, as it is."""
        at_s = max(self._now_s, job.expected_s)
        until_s = at_s + limit_s(job)
        for name in nodes:
            place = self._ground.number.get(name, -1)
            cell = self._cells.of.get(place)
            if cell is not None:
                left = Left(at_s, until_s, nothing_of(cell.state), NOTHING, True, job.id)
                self._cells.claim(place, left)
        self._bind(at_s, until_s)
        reason = "the batch system expects to start it there"
        self.claims.append(Claim(job, job.shape, at_s, nodes, reason))
