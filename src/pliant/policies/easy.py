"""EASY backfilling of rigid jobs: what Slurm does today with each job's own request.

In the order of the queue each job starts at its one shape where that fits now. The first of each
queue (a partition) that does not fit keeps the earliest opening that the time limits of the
running jobs promise; a later job starts only if its own time limit ends before that, or on what
the claim leaves over.

Options: ``shape``: which of a job's shapes it gets.

Source: Lifka, "The ANL/IBM SP scheduling system" (1995); the baseline of everything here.
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
class EasyBackfill:
    """Each job at one shape, later ones where they delay no first one."""

    name: ClassVar[str] = "easy-backfill"
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = False
    shape: Fixed = "own"

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        desk, fixed = Desk(snapshot), FixedShapes(self.shape)
        passed: set[Alike] = set()
        kept = False  # for the first job of every queue
        for job, profile in desk.turns(passed):
            option = fixed.of(job, profile)
            if option is not None:
                given = desk.fill(job, profile, option)
                if given:
                    desk.start(job, given, f"{option[0]} is free")
                if len(given) < job.tasks_waiting:
                    if not kept:
                        desk.keep(job, (option[0],))
                        kept = desk.all_kept
                    if kept and not given and fixed.is_of_all(profile):
                        passed.add((profile, job.time_limit_s))
        return desk.plan()
