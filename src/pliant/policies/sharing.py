"""Putting shares side by side: each to the GPU with the fewest tasks, then as large as it goes.

Source: Fujiwara et al. (paper 000), section IV-A, the last branch of Moldable Equipartition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush

from pliant.model import Job
from pliant.placement import Free, Option, Profile, Taken
from pliant.placement.needs import share_shards
from pliant.placement.states import Gpus, NodeKind, PoolKind, Receipt
from pliant.policies.groups import Sizes


@dataclass(eq=False, slots=True)
class Slot:
    """One GPU that can be shared."""

    place: int
    pool: int
    gpu: int
    avail: Fraction  # that was free before anything was pre-assigned
    tasks: int = 0  # pre-assigned


@dataclass(eq=False, slots=True)
class Seats:
    """Where a job's tasks were pre-assigned, and what they hold there."""

    job: Job
    sizes: Sizes
    level: int
    slots: list[Slot]
    given: list[Taken]


class Sharing:
    """The GPUs of one group of jobs, by the number of tasks on each."""

    def __init__(self, free: Free, kinds: frozenset[NodeKind]) -> None:
        self._free = free
        self._full: set[tuple[Profile, float]] = set()
        slots = [slot for place in free.places_on(kinds) for slot in self._slots(place)]
        self._heap = [(tasks, number, slot) for number, (tasks, slot) in enumerate(slots)]
        heapify(self._heap)

    def _slots(self, place: int) -> list[tuple[int, Slot]]:
        return [
            (
                self._free.jobs_on(place, index, gpu),
                Slot(place, index, gpu, Fraction(shards, pool.shards)),
            )
            for index, (pool, gpus) in enumerate(self._pools(place))
            if not isinstance(gpus, int)
            for gpu, shards in enumerate(gpus)
            if shards
        ]

    def _pools(self, place: int) -> Iterable[tuple[PoolKind, Gpus]]:
        cell = self._free.cell(place)
        return zip(cell.kind.pools, cell.state[2], strict=True)

    def seat(self, job: Job, sizes: Sizes) -> Seats | None:
        """Pre-assign a job's tasks, each to the GPU with the fewest that has its smallest share.

        As many as there are places for; None: not one.
        """
        seats = Seats(job, sizes, sizes.shares[0], [], [])
        bound = self._free.bound(job)
        while len(seats.given) < job.tasks_waiting and self._seat_one(seats, bound):
            pass
        return seats if seats.given else None

    def _seat_one(self, seats: Seats, bound: float) -> bool:
        key = (seats.sizes.profile, bound)
        if key in self._full:
            return False
        passed: list[tuple[int, int, Slot]] = []
        seated = False
        while self._heap and not seated:
            tasks, number, slot = heappop(self._heap)
            seated = self._place(seats, slot, seats.level, bound)
            slot.tasks += seated
            passed.append((tasks + seated, number, slot))
        for entry in passed:
            heappush(self._heap, entry)
        if not seated:
            self._full.add(key)
        return seated

    def _place(self, seats: Seats, slot: Slot, level: int, bound: float) -> bool:
        for option in seats.sizes.levels[level][1]:
            receipt = self._receipt(seats.sizes.profile, option, slot, bound)
            if receipt is not None:
                given = self._free.take_receipt(seats.job, option, slot.place, receipt)
                seats.slots.append(slot)
                seats.given.append(given)
                return True
        return False

    def _receipt(
        self, profile: Profile, option: Option, slot: Slot, bound: float
    ) -> Receipt | None:
        """What ``option`` takes on exactly this GPU; None where it is not to be had."""
        shape, need = option
        cell = self._free.cell(slot.place)
        pool = cell.kind.pools[slot.pool]
        if not any(scope.admits(slot.place, cell.kind) for scope in profile.scopes):
            return None
        if need.gpu_type not in ("", pool.gpu_type):
            return None
        shards = share_shards(pool, need) if shape.is_share else pool.shards
        state = cell.effective(bound)
        gpus = state[2][slot.pool]
        somewhere = cell.receipt(need, bound)
        if somewhere is None or isinstance(gpus, int) or not 0 < shards <= gpus[slot.gpu]:
            return None
        mem_mib = 0
        if pool.counts_mem:
            mem_mib = need.gpu_mem_mib if shape.is_share else pool.mem_mib
            if mem_mib > state[3][slot.pool][slot.gpu]:
                return None
        return (somewhere[0], somewhere[1], ((slot.pool, 0, ((slot.gpu, shards, mem_mib),)),))

    def enlarge(self, seats: Seats) -> None:
        """Give a job the largest 1/n that divides what was free, on each of its GPUs."""
        fair = min(Fraction(1), *(slot.avail / slot.tasks for slot in seats.slots))
        for level in range(len(seats.sizes.levels) - 1, seats.level, -1):
            if seats.sizes.levels[level][0] <= fair and self._enlarged(seats, level):
                return

    def _enlarged(self, seats: Seats, level: int) -> bool:
        for given in seats.given:
            self._free.release(given)
        new = Seats(seats.job, seats.sizes, level, [], [])
        bound = self._free.bound(seats.job)
        if all(self._place(new, slot, level, bound) for slot in seats.slots):
            seats.level, seats.given = level, new.given
            return True
        for given in new.given:
            self._free.release(given)
        for given in seats.given:
            self._free.retake(given)
        return False
