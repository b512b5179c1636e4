"""Blind round robin: each job in turn to the next resource, whatever it is good at.

The resources are the cores of each node and its GPUs, in the order cores of the first node, GPUs of
the first node, cores of the second …; a job waits for the one whose turn it was, also while others
are idle. It is the baseline of RSA, RSC and ASJF.

What the paper does not cover:

- Whose turn it is, is told by the job's number, which batch systems give out one by one: job k gets
  resource k modulo their number, of those that could hold it. A number may be missing; nothing is
  lost by that but evenness.
- Among several shapes of a sort the fastest is taken, as by RSA. One on several nodes goes by its
  sort alone, to whatever nodes are free.

It keeps jobs waiting beside idle resources: for simulations only.

Source: Ravi et al. (paper 004), section IV-C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from pliant.model import Job, Snapshot
from pliant.placement import Free, Option, Profile, Taken
from pliant.placement.needs import find
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.queues import sides
from pliant.speedup import DEFAULT_CPU_SPEED

Turn = tuple[Option, int | None]
"""What a job runs as, and the number of its node; None: any."""


@dataclass(frozen=True, slots=True)
class BlindRoundRobin:
    """Each job in turn to the next resource."""

    name: ClassVar[str] = "blind-round-robin"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk = Desk(snapshot)
        for job in desk.queue():
            profile = desk.free.profile(job)
            turns = self._turns(desk.free, job, profile)
            if turns:
                option, place = turns[number(job) % len(turns)]
                given = _fill(desk, job, profile, option, place)
                if given:
                    desk.start(job, given, f"it is the turn of {option[0]} on this node")
        return desk.plan()

    def _turns(self, free: Free, job: Job, profile: Profile) -> list[Turn]:
        """The resources that could hold a job, in their order."""
        options = [option for option in sides(job, profile, self.cpu_speed) if option is not None]
        turns: list[tuple[int, int, Turn]] = []
        for side, option in enumerate(options):
            if option[0].nodes > 1:
                turns.append((-1, side, (option, None)))
            else:
                places = could_hold(free, profile, option)
                turns += [(place, side, (option, place)) for place in places]
        return [turn for _, _, turn in sorted(turns, key=lambda turn: turn[:2])]


def number(job: Job) -> int:
    """Return a job's number in its batch system; 0 where it has none."""
    digits = re.match(r"\d+", job.id) or re.search(r"\d+$", job.id)
    return int(digits[0]) if digits else 0


def could_hold(free: Free, profile: Profile, option: Option) -> list[int]:
    """Return the nodes that could hold an option on one node when empty, by number."""
    return [
        place
        for place in free.places_on(profile.kinds)
        if find(kind := free.cell(place).kind, kind.empty, option[1]) is not None
        and any(
            scope.allows(1, option[1].cpus)
            and kind in scope.kinds
            and place not in scope.excluded
            and scope.required in ((), (place,))
            for scope in profile.scopes
        )
    ]


def _fill(desk: Desk, job: Job, profile: Profile, option: Option, place: int | None) -> list[Taken]:
    """Give as many tasks as possible their turn's resource."""
    free = desk.free
    if place is None:
        return desk.fill(job, profile, option)
    given: list[Taken] = []
    while len(given) < job.tasks_waiting and free.admits(
        profile, option, (place,), free.bound(job)
    ):
        given.append(free.take_places(job, option, (place,)))
    return given
