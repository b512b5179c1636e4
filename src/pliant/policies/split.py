"""Who gets how many GPUs, where GPUs are just a number: see :mod:`pliant.policies.crowd`.

The jobs that are served are the running ones whose GPUs are to be divided, then those that wait.
Each gets the amount that its policy names, or the largest smaller one that is free. The first that
waits and gets nothing keeps the earliest opening, and others get no more than that leaves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from itertools import islice
from operator import attrgetter

from pliant.model import Job
from pliant.placement import limit_s
from pliant.placement.profiles import Ladder, Profile
from pliant.placement.queue import Alike
from pliant.plan import Claim, Plan, Start
from pliant.policies.crowd import Crowd, Standing
from pliant.policies.dhondt import Bidder, divided, divided_alike
from pliant.policies.reasons import FIRST, why
from pliant.speedup import volume_left_s, volume_of_s


@dataclass(eq=False, slots=True)
class Waiting:
    """A job that waits, in numbers."""

    job: Job
    ladder: Ladder
    limit_s: float
    profile: Profile
    gpus: int = 0  # it has none

    @property
    def arrival(self) -> tuple[float, str]:
        """When it came, and its id."""
        return (self.job.submit_s, self.job.id)

    @property
    def whole_s(self) -> float:
        """How long all of its work would take alone on one GPU."""
        return volume_of_s(self.job)

    def left_s(self, _now_s: float) -> float:
        """Return how long what is left of its work would take alone on one GPU."""
        return volume_left_s(self.job)


Member = Standing | Waiting


@dataclass(eq=False, slots=True)
class Given:
    """A job and what it gets; ``raised``: by what was left over."""

    member: Member
    level: int
    gpus: int
    raised: bool = False


class Split:
    """One division of the free GPUs and those of ``rows``; ``given``: in the order of serving."""

    def __init__(self, crowd: Crowd, rows: Sequence[Standing]) -> None:
        self.crowd, self.rows = crowd, rows
        self.room = crowd.room(sum([row.gpus for row in rows]))
        self.given: list[Given] = []
        self.claim: Claim | None = None
        self.reason = ""
        self.ladder = self._alike()

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest amounts of all jobs together, and the largest."""
        ladder = self.ladder
        if ladder is not None:
            tasks = self.crowd.queue.tasks.items()
            count = len(self.rows) + sum([some for profile, some in tasks if profile.ladder])
            return count * ladder.amounts[0], count * ladder.amounts[-1]
        least = sum([row.ladder.amounts[0] for row in self.rows])
        most = sum([row.ladder.amounts[-1] for row in self.rows])
        for profile, count in self.crowd.queue.tasks.items():
            if profile.ladder is not None:
                least += count * profile.ladder.amounts[0]
                most += count * profile.ladder.amounts[-1]
        return least, most

    def _alike(self) -> Ladder | None:
        """The one ladder of all jobs, where they have one in common that is even."""
        found = {row.ladder for row in self.rows}
        found.update([p.ladder for p in self.crowd.queue.tasks if p.ladder is not None])
        one = found.pop() if len(found) == 1 else None
        return one if one is not None and one.even else None

    def members(self, passed: set[Alike] | None = None) -> Iterator[Member]:
        """Yield all jobs in the order of serving; of those that wait, those not passed over."""
        yield from self.rows
        for job, profile in self.crowd.queue.turns(set() if passed is None else passed):
            if profile.ladder is not None:
                yield Waiting(job, profile.ladder, limit_s(job), profile)

    # --- what each is meant to have ---------------------------------------------------------

    def serve_least(self) -> None:
        """Give each job its smallest amount, where all together are at least what there is.

        Where nothing is left then, only those are written down that have something else.
        """
        ladder, free = self.ladder, self.room.free
        if ladder is None or not self.rows or free % ladder.amounts[0]:
            self.serve_all(lambda _member: 0)
            return
        least = ladder.amounts[0]
        served = islice(self.members(), free // least)
        self.given = [Given(member, 0, least) for member in served if member.gpus != least]
        self.room.free = 0

    def serve_all(self, level_of: Callable[[Member], int]) -> None:
        """Give each job what it is meant to have, in the order of serving."""
        passed: set[Alike] = set()
        self.serve(((one, level_of(one)) for one in self.members(passed)), passed)

    def serve(self, meant: Iterable[tuple[Member, int]], passed: set[Alike] | None = None) -> None:
        """Give each job what it is meant to have, or the largest smaller amount that is free.

        ``passed``: where to note what jobs are like that get nothing and keep nothing.
        """
        room, alone = self.room, not self.rows
        for member, wanted in meant:
            if not room.free and (not alone or self.claim is not None):
                return  # with rows, what a claim leaves of nothing does not matter
            amounts = member.ladder.amounts
            has = room.free if self.claim is None else room.has(member.limit_s)
            level = wanted if amounts[wanted] <= has else bisect_right(amounts, has) - 1
            if level >= 0:
                gpus = amounts[level]
                room.take(gpus, member.limit_s)
                self.given.append(Given(member, level, gpus))
            elif self._keep(member) and passed is not None and isinstance(member, Waiting):
                passed.add((member.profile, member.job.time_limit_s))

    def _keep(self, member: Member) -> bool:
        """Let the first job that gets nothing keep its opening; whether somebody has one."""
        if self.claim is None:
            given = [(self.room.now_s + one.member.limit_s, one.gpus) for one in self.given]
            gone = [row.job.id for row in self.rows]
            ladder, room = member.ladder, self.room
            gpus = room.claim(ladder.amounts, self.crowd.ends(given, gone))
            if gpus is not None:
                shape = ladder.shapes[ladder.amounts.index(gpus)]
                nodes = (self.crowd.node,)
                self.claim = Claim(member.job, shape, room.claim_s, nodes, FIRST)
        return self.claim is not None

    # --- what is left over ------------------------------------------------------------------

    def spread(self, ladder: Ladder) -> None:
        """Give equal jobs, of which all get something, equal parts; first come, first raised.

        Only those are written down that have something else.
        """
        members, amounts = list(self.members()), ladder.amounts
        if self.rows:
            members.sort(key=_arrival)
        left = self.room.free - amounts[0] * len(members)
        each, more = divided_alike(amounts, len(members), left)
        self.given = [
            Given(member, level, amounts[level], level > 0)
            for place, member in enumerate(members)
            if member.gpus != amounts[level := each + (place < more)]
        ]
        self.room.free = left - each * len(members) - more

    def grow(self, votes: Callable[[Sequence[int]], float]) -> None:
        """Offer what is left to those that have something, by D'Hondt's method."""
        may = [one for one in self.given if one.level < len(one.member.ladder.amounts) - 1]
        if self.rows:
            may.sort(key=lambda one: one.member.arrival)
        bidders = [
            Bidder(one.member.ladder.amounts, one.level, votes(one.member.ladder.amounts))
            for one in may
        ]
        for one, level in zip(may, divided(bidders, self.room.free), strict=True):
            if level > one.level:
                self._raise(one, level)
        if self.room.free and self.claim is not None:  # else nobody can take any more
            self._bid(may, votes)

    def _bid(self, may: Sequence[Given], votes: Callable[[Sequence[int]], float]) -> None:
        """Offer to each the amounts that are left to it, one by one."""

        def bid(at: int, level: int) -> tuple[float, int, int]:
            amounts = may[at].member.ladder.amounts
            return (-votes(amounts) / amounts[level], at, level)

        last = [len(one.member.ladder.amounts) - 1 for one in may]
        heap = [bid(at, one.level + 1) for at, one in enumerate(may) if one.level < last[at]]
        heapify(heap)
        while heap:
            _, at, level = heap[0]
            self._raise(may[at], level)
            if level < last[at]:
                heapreplace(heap, bid(at, level + 1))
            else:
                heappop(heap)

    def _raise(self, one: Given, level: int) -> None:
        amounts, limit = one.member.ladder.amounts, one.member.limit_s
        more = amounts[level] - amounts[one.level]
        if more <= self.room.has(limit):
            self.room.take(more, limit)
            one.level, one.gpus, one.raised = level, amounts[level], True

    # --- as a plan --------------------------------------------------------------------------

    def why(self, one: Given) -> str:
        """Return what was decided for all, as far as it is true of a job."""
        last = len(one.member.ladder.amounts) - 1
        return why(self.reason, one.level, last, raised=one.raised)

    def plan(self) -> Plan:
        """Return what it comes to where nobody runs whose GPUs are divided."""
        nodes = (self.crowd.node,)
        waiting = self.crowd.queue
        given = sorted(self.given, key=lambda one: waiting.place(one.member.job.id))
        starts = [
            Start(one.member.job, one.member.ladder.shapes[one.level], nodes, self.why(one))
            for one in given
        ]
        return Plan(tuple(starts), () if self.claim is None else (self.claim,))


_arrival = attrgetter("arrival")
