"""How far our clock is ahead of slurmctld's, whose seconds a hand-over counts.

``scontrol show config`` begins with slurmctld's own time, in whole seconds. Asked seldom: clocks
drift slowly.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pliant.batch.slurm.commands import Runs
from pliant.errors import PliantError

EVERY_S = 60.0
AGREE_S = 2.0
"""Clocks that differ by less are taken to agree."""
SET_S = 0.5
"""Ours was set where it has gained or lost so much on one that counts evenly."""
_SAID = re.compile(r"Configuration data as of (\d{1,12})\n")


class Clocks:
    """Knows how far ours is ahead; asks once a minute, and whenever ours was set."""

    def __init__(
        self, commands: Runs, clock: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        """``clock`` counts seconds since the epoch, and may be set; ``monotonic`` counts evenly."""
        self._commands, self._clock, self._monotonic = commands, clock, monotonic
        self._asked_s = float("-inf")  # by the monotonic clock
        self._epoch_s = 0.0  # when that one began to count, by ours as it was then
        self._ahead_s = 0.0

    def ahead_s(self) -> float:
        """Return the seconds; 0 where the clocks agree, or where slurmctld does not say."""
        even_s = self._monotonic()
        epoch_s = self._clock() - even_s
        if even_s - self._asked_s >= EVERY_S or abs(epoch_s - self._epoch_s) >= SET_S:
            self._asked_s, self._epoch_s = even_s, epoch_s
            self._ahead_s = self._ask()
        return self._ahead_s

    def _ask(self) -> float:
        try:
            answer = self._commands.run(("scontrol", "show", "config"))
        except PliantError:
            return self._ahead_s
        said = _SAID.search(answer.out)
        if answer.status or said is None:
            return self._ahead_s
        ahead_s = self._clock() - float(said[1])
        return ahead_s if abs(ahead_s) >= AGREE_S else 0.0
