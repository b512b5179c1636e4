"""Rigid jobs, first come first served: each job gets one shape, in the order of the queue.

The first job of a queue (a partition) that does not fit ends the queue for this cycle: nothing
overtakes it. It keeps the earliest opening, so that other queues on the same nodes leave it alone.
A job that the nodes could never hold does not count.

Options: ``shape``: which of a job's shapes it gets; ``overtaking``: jobs that do not fit are
passed over instead (list scheduling), without any promise to them.

Source: Fujiwara et al. (paper 000), section V-B: "allocates p_max to each task in the arrival
order".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pliant.model import Snapshot
from pliant.placement.queue import Alike
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.shapes import Fixed, FixedShapes


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
        desk, fixed, passed = Desk(snapshot), FixedShapes(self.shape), set[Alike]()
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
