"""Static partition: the GPUs of every node are divided into slots of n, each for one job at a time.

In the order of the queue each job gets a free slot, and keeps it until it ends. Nothing overtakes
a job that waits for one.

What the thesis does not cover:

- A job gets the largest of its shapes on one node that is no more than a slot; one that has none
  gets its smallest shape, and takes as many slots as that needs. What it leaves of its slots stays
  free.
- A node has as many slots as it has whole multiples of n GPUs, but at least one. What runs there
  that no such policy started takes as many slots as it touches.
- Jobs without GPU shapes take no slot.

Options: ``slot``: n, the GPUs of one slot, at least 1.

Source: Seo (paper 003), section 5.1.3: the baseline of F-scheduling.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

from pliant.model import Job, Node, Shape, Snapshot
from pliant.placement import Option, Profile, Taken
from pliant.plan import Plan
from pliant.policies.chosen import Count
from pliant.policies.desk import Desk
from pliant.policies.groups import sizes


@dataclass(frozen=True, slots=True)
class StaticPartition:
    """One job to a slot of so many GPUs."""

    name: ClassVar[str] = "static-partition"
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = False
    slot: Count = 1

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        slots = _Slots(snapshot, self.slot)
        desk, waits = Desk(snapshot), set[str]()
        for job in desk.queue():
            profile = desk.free.profile(job)
            option = self._option(profile)
            if option is None or desk.has_claims(job) or not waits.isdisjoint(job.partitions):
                continue
            given = self._fill(desk, slots, job, option)
            if given:
                desk.start(job, given, f"{option[0]} is free, and a slot for it")
            if len(given) < job.tasks_waiting:
                waits.update(job.partitions)
                if desk.free.places(profile, option, desk.free.bound(job)) is None:
                    desk.keep(job, (option[0],))
        return desk.plan()

    def _option(self, profile: Profile) -> Option | None:
        """What a job gets: the most in one slot, else its smallest shape."""
        of = sizes(profile)
        if not of.levels:
            return of.cpu[0] if of.cpu else None
        in_slot = [o for o in of.gpu if o[0].nodes == 1 and o[0].gpus <= self.slot]
        return max(in_slot, key=lambda o: o[0].amount) if in_slot else of.gpu[0]

    def _fill(self, desk: Desk, slots: _Slots, job: Job, option: Option) -> list[Taken]:
        """Give as many waiting tasks as possible their slots."""
        given: list[Taken] = []
        free, shape = desk.free, option[0]
        while len(given) < job.tasks_waiting:
            full = slots.full(slots.of(shape))
            among = replace(job, nodes_kept=job.nodes_kept | full) if full else job
            places = free.places(free.profile(among), option, free.bound(job))
            if places is None:
                break
            given.append(free.take_places(job, option, places))
            slots.take(free.names(places), slots.of(shape))
        return given


class _Slots:
    """The free slots of each node."""

    def __init__(self, snapshot: Snapshot, size: int) -> None:
        self._size = max(1, size)
        used = Counter[str]()
        for job in snapshot.running:
            for name in job.nodes:
                used[name] += self.of(job.shape)
        self._all = {node.name: self._in(node) for node in snapshot.nodes}
        self._free = {name: slots - used[name] for name, slots in self._all.items()}

    def _in(self, node: Node) -> int:
        gpus = sum(pool.total for pool in node.pools)
        return max(1, gpus // self._size) if gpus else 0

    def of(self, shape: Shape) -> int:
        """How many slots a shape takes on each of its nodes."""
        return -(-shape.gpus // self._size)

    def full(self, slots: int) -> frozenset[str]:
        """The nodes with fewer slots left; who needs more than a node has needs all of them."""
        return frozenset(
            name
            for name, free in self._free.items()
            if slots and free < min(slots, self._all[name])
        )

    def take(self, names: tuple[str, ...], slots: int) -> None:
        for name in names:
            self._free[name] -= slots
