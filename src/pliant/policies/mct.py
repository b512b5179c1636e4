"""TORQUE and MCT, the baselines of FMS: both give each job the nodes that it asks.

- ``torque``: the kind of resource too is the job's own, cores, GPUs or both: that which runs it
  fastest, as a knowing user would ask. Jobs start in the order of the queue.
- ``mct``, minimum completion time: jobs are taken in the order of the queue, and each gets the kind
  by which it is done first, its wait for each included. What it waits for is booked for it.

What the paper does not cover:

- Whether TORQUE passes over a job that does not fit, which its own scheduler does or not, as it is
  set up: with ``overtaking`` it does, without any promise to that job; else nothing overtakes.
- The nodes that a job asks are the most that its shapes have; without nodes to choose from, it is
  the most GPUs.
- MCT knows run times (see :mod:`pliant.policies.outlook`) and decides anew at every event: what was
  booked and has not started is booked again.
- An array is booked as one of its tasks, and starts as many as fit in that shape.

They choose what a real cluster's batch system chooses itself, or count on run times that nobody
keeps to: for simulations only. Live there are ``easy-backfill`` and ``fms``.

Source: Ravi et al. (paper 004), section IV-D; MCT: Maheswaran et al., "Dynamic matching and
scheduling of a class of independent tasks onto heterogeneous computing systems" (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pliant.model import Job, Snapshot
from pliant.placement import Option, Profile
from pliant.plan import Plan
from pliant.policies.candidates import at_part, run_s
from pliant.policies.desk import Desk
from pliant.policies.plans import Plans
from pliant.speedup import DEFAULT_CPU_SPEED


@dataclass(frozen=True, slots=True)
class Torque:
    """Each job as it asks, in the order of the queue."""

    name: ClassVar[str] = "torque"
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    overtaking: bool = False
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, and claims where nothing overtakes."""
        desk = Desk(snapshot)
        for job in desk.queue():
            profile = desk.free.profile(job)
            if profile.options and (self.overtaking or not desk.has_claims(job)):
                option = asked(job, profile, self.cpu_speed)
                given = desk.fill(job, profile, option)
                if given:
                    desk.start(job, given, f"{option[0]} is free, and it is this job's turn")
                if len(given) < job.tasks_waiting and not self.overtaking:
                    desk.keep(job, (option[0],))
        return desk.plan()


@dataclass(frozen=True, slots=True)
class Mct:
    """Each job by the kind of resource that has it done first, in the order of the queue."""

    name: ClassVar[str] = "mct"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        plans = Plans(snapshot, self.cpu_speed)
        queue = [(job, plans.profile(job)) for job in plans.desk.queue()]
        for at, (job, profile) in enumerate(queue):
            if not plans.some_fit(queue[at:]):
                break
            best = plans.best(job, profile, at_part(profile, 1))
            if best is not None:
                plans.carry_out(best, "it is done soonest so")
        return plans.desk.plan()


def asked(job: Job, profile: Profile, cpu_speed: float) -> Option:
    """Return what a user who knows the job would ask: the fastest kind on the nodes asked."""
    return min(
        at_part(profile, 1),
        key=lambda option: (run_s(job, option[0], cpu_speed), option[0].amount, option[0]),
    )
