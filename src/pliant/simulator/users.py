"""For whom a policy is better, and for whom worse: each user's mean flow time under two of them."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.simulator.tally import Figures

SAME = 0.01
"""A user's mean flow time that changes by no larger part has not changed."""
SHOWN = 5
"""How many users of each side are named."""


@dataclass(frozen=True, slots=True)
class Change:
    """One user's mean flow time, before and under a policy."""

    user: str
    jobs: int
    before_s: float
    after_s: float

    @property
    def part(self) -> float:
        """By what part it changed: -0.1 is 10 % less."""
        return self.after_s / self.before_s - 1


@dataclass(frozen=True, slots=True)
class Sides:
    """For whom a policy is better and for whom worse, by users; the same: within :data:`SAME`."""

    policy: str
    better: int
    worse: int
    same: int
    changes: tuple[Change, ...]  # the worst first

    @property
    def worst(self) -> tuple[Change, ...]:
        """Those hit worst, the worst first."""
        return tuple(one for one in self.changes if one.part > SAME)[:SHOWN]

    @property
    def best(self) -> tuple[Change, ...]:
        """Those who gain most, the best first."""
        return tuple(one for one in reversed(self.changes) if one.part < -SAME)[:SHOWN]


def sides(policy: str, now: Figures, before: Figures) -> Sides:
    """Return for whom a policy is better, and for whom worse, than what was before."""
    changes = [
        Change(name, user.tasks, before.users[name].flow_s, user.flow_s)
        for name, user in now.users.items()
        if name in before.users and before.users[name].flow_s > 0
    ]
    changes.sort(key=lambda one: (-one.part, one.user))
    better = sum(one.part < -SAME for one in changes)
    worse = sum(one.part > SAME for one in changes)
    return Sides(policy, better, worse, len(changes) - better - worse, tuple(changes))
