"""What the filter knows when a job is submitted: the inventory, and what is left of the hole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pliant.filter.inventory import Inventory
from pliant.filter.trials import Trials
from pliant.model import Job, Shape


class FreeLike(Protocol):
    """What no job of the last plan takes; :class:`pliant.placement.Free` is one."""

    def fit(self, job: Job, shape: Shape) -> tuple[str, ...] | None:
        """Return the nodes that ``job`` could start on now as ``shape``."""
        ...

    def take(self, job: Job, shape: Shape, nodes: Iterable[str]) -> object:
        """Give them to ``job``, so that the next submission sees less."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """pliantd makes a new one after each cycle.

    ``free`` None: nothing is known to be free. ``molds``: whether the policy chooses shapes; one
    that does not leaves every job at the shape its owner wrote. ``limits_wait``: a job waits for a
    limit that several share. ``trials``: what may be a trial job; None where it is not looked at.
    """

    inventory: Inventory
    free: FreeLike | None = None
    molds: bool = True
    limits_wait: bool = False
    trials: Trials | None = None
