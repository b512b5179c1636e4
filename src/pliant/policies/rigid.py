"""Rigid jobs: each gets one shape, first come first served, or the shortest first.

``rigid-fcfs``: in the order of the queue. The first job of a queue (a partition) that does not fit
ends the queue for this cycle: nothing overtakes it. It keeps the earliest opening, so that other
queues on the same nodes leave it alone. A job that the nodes could never hold does not count.

Options: ``shape``: which of a job's shapes it gets; ``overtaking``: jobs that do not fit are
passed over instead (list scheduling), without any promise to them.

``rigid-shortest``: the same in ascending order of volume, the time that a job would take alone on
one GPU; equal ones in the order of the queue. It says who is next, and so is for simulations only.

Source: Fujiwara et al. (paper 000), section V-B: "allocates p_max to each task in the arrival
order", or "sorted by v in an ascending order".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pliant.model import Job, Snapshot
from pliant.placement import Profile
from pliant.placement.queue import Alike
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.shapes import Fixed, FixedShapes
from pliant.speedup import volume_left_s

_NO_BOUND = -float("inf")  # before any claim


@dataclass(frozen=True, slots=True)
class RigidFcfs:
    """Each job at one shape, in the order of the queue."""

    name: ClassVar[str] = "rigid-fcfs"
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = False
    shape: Fixed = "largest"
    overtaking: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        desk, fixed = Desk(snapshot), FixedShapes(self.shape)
        passed: set[Alike] = set()
        for job, profile in desk.turns(passed):
            option = fixed.of(job, profile)
            if option is None or (not self.overtaking and desk.has_claims(job)):
                if desk.all_kept:
                    break
                continue
            given = desk.fill(job, profile, option)
            if given:
                desk.start(job, given, f"{option[0]} is free, and it is this job's turn")
            if len(given) < job.tasks_waiting:
                if not self.overtaking:
                    desk.end_queue(job, (option[0],))
                elif fixed.is_of_all(profile):
                    passed.add((profile, job.time_limit_s))
        return desk.plan()


@dataclass(frozen=True, slots=True)
class RigidShortest:
    """Each job at one shape, the shortest first."""

    name: ClassVar[str] = "rigid-shortest"
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    shape: Fixed = "largest"
    overtaking: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk, fixed, ended = Desk(snapshot), FixedShapes(self.shape), set[str]()
        queues = {partition.name for partition in snapshot.partitions}
        for job, profile in _by_volume(desk):
            option = fixed.of(job, profile)
            if option is None or not ended.isdisjoint(job.partitions):
                continue
            given = desk.fill(job, profile, option)
            if given:
                desk.start(job, given, f"{option[0]} is free, and no shorter job waits for it")
            if len(given) < job.tasks_waiting and not self.overtaking:
                ended.update(job.partitions)
                if ended >= queues:
                    break
        return desk.plan()


def _by_volume(desk: Desk) -> Iterator[tuple[Job, Profile]]:
    """Yield the jobs that wait, the shortest first; none where nothing at all could start."""
    free = desk.free
    if not any(
        free.places(profile, option, _NO_BOUND) is not None
        for profile in desk.tasks()
        for option in profile.options
    ):
        return
    yield from desk.ordered(volume_left_s)
