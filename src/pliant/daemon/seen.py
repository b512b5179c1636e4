"""What a cycle has seen and decided, as the doors read it, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.cycle import some_wait_for_all
from pliant.filter import Inventory, View
from pliant.model import Snapshot
from pliant.placement import Free
from pliant.plan import Plan, Policy


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last cycle saw and decided; replaced as a whole, never changed."""

    snapshot: Snapshot
    plan: Plan  # what is acted on
    shadow: Plan  # what would be done if every partition were enforced
    free: Free  # what no job of the plan takes
    inventory: Inventory
    policy: Policy
    at_s: float  # by the monotonic clock
    observe_s: float  # how long the look took
    decide_s: float

    def view(self, *, paused: bool) -> View:
        """Return what the filter knows of it."""
        inventory = self.inventory.observing() if paused else self.inventory
        limits_wait = some_wait_for_all(self.snapshot)
        return View(inventory, self.free, self.policy.molds, limits_wait)


@dataclass(slots=True)
class Counts:
    """Since the start."""

    cycles: int = 0
    updates: int = 0
    failures: int = 0
    marks: int = 0  # given: each lets a job share
