"""What a strategy goes by: the tasks that are left, and what is known of their speeds."""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.cosched.belief import Belief
from pliant.cosched.tables import Fits, anything
from pliant.model import Combination, Speeds

SMALL = 15
"""Up to so many tasks all 2^n - 1 combinations are looked at, else those of few tasks."""


@dataclass(slots=True)
class Knowledge:
    """The tasks that are left with their volumes b_i, in seconds alone, and known speeds.

    ``table`` may hold combinations with tasks that are done. Alone each task's speed is 1.
    """

    volumes: dict[str, float]
    table: dict[Combination, Speeds] = field(default_factory=dict)
    fits: Fits = anything
    _beliefs: dict[tuple[float, int], Belief] = field(default_factory=dict)

    def __post_init__(self) -> None:
        alone = {frozenset({task}): {task: 1.0} for task in self.volumes}
        self.table = alone | self.table

    @property
    def known(self) -> list[Combination]:
        """The combinations of tasks that are left whose speeds are known, fit or not."""
        left = self.volumes.keys()
        return [tasks for tasks in self.table if tasks <= left]

    def learn(self, measured: Combination, speeds: Speeds) -> None:
        """Take in what was measured."""
        self.table[measured] = speeds
        for belief in self._beliefs.values():
            belief.learn(measured, speeds)

    def done(self, task: str) -> None:
        """Leave out a task that is done."""
        del self.volumes[task]
        self._beliefs.clear()

    def belief(self, probability: float, most: int) -> Belief:
        """Return what is believed of all combinations that may be run: see :meth:`candidates`."""
        key = (probability, most)
        if key not in self._beliefs:
            left = self.volumes.keys()
            table = {some: speeds for some, speeds in self.table.items() if some & left}
            self._beliefs[key] = Belief(self.candidates(most), table, len(left), probability)
        return self._beliefs[key]

    def most_at_once(self, most: int) -> int:
        """Return how many tasks may run at once: ``most``, where that counts."""
        left = len(self.volumes)
        return left if left <= SMALL or not most else min(most, left)

    def candidates(self, most: int) -> list[Combination]:
        """Return the combinations that may be run, those of fewer tasks first.

        ``most``: so many tasks at once at most, where more than fifteen are left; 0: any number.
        """
        names = sorted(self.volumes)
        rows = [one for task in names if self.fits(one := frozenset({task}))]
        found = list(rows)
        for _ in range(self.most_at_once(most) - 1):
            rows = [
                larger
                for tasks in rows
                for task in names
                if task > max(tasks) and self.fits(larger := tasks | {task})
            ]
            found += rows
        return found
