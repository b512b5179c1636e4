"""What is known of how fast jobs run in each other's company."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Combination = frozenset[str]
"""Jobs that run together on one node, by id."""

Speeds = Mapping[str, float]
"""How fast each of them runs then, relative to itself alone there: 1.0 is no slower."""


@dataclass(frozen=True, slots=True)
class Together:
    """How fast some jobs ran together, each relative to itself alone on the same node."""

    speeds: tuple[tuple[str, float], ...]

    @property
    def jobs(self) -> Combination:
        """Who ran together."""
        return frozenset(job for job, _ in self.speeds)


@dataclass(frozen=True)
class Company:
    """The combinations of jobs whose speeds are known: measured so far, or, in simulations, true.

    Jobs that have ended may be among them. What is not in it is not known.
    """

    known: tuple[Together, ...] = ()

    @cached_property
    def table(self) -> dict[Combination, Speeds]:
        """The speeds by combination; of one known twice, the later."""
        return {together.jobs: dict(together.speeds) for together in self.known}
