"""How far our clock is ahead of slurmctld's, whose seconds a hand-over counts.

``scontrol show config`` begins with slurmctld's own time, in whole seconds. So each answer bounds
how far ours is ahead, to within a second and what it took, and several bound it closer. Asked
seldom: clocks drift slowly.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pliant.batch.slurm.commands import Runs
from pliant.errors import PliantError

EVERY_S = 60.0
SET_S = 0.5
"""Ours was set where it has gained or lost so much on one that counts evenly."""
_ANY = (float("-inf"), float("inf"))
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
        self._bounds_s = _ANY  # within which ours is ahead, at least and at most

    def ahead_s(self) -> float:
        """Return the seconds; 0 where the clocks may agree, or where slurmctld does not say.

        As many as may be: nothing is then done before its time.
        """
        even_s = self._monotonic()
        epoch_s = self._clock() - even_s
        was_set = abs(epoch_s - self._epoch_s) >= SET_S
        if was_set or even_s - self._asked_s >= EVERY_S:
            self._asked_s, self._epoch_s = even_s, epoch_s
            self._ask(_ANY if was_set else self._bounds_s)
        least_s, most_s = self._bounds_s
        return 0.0 if least_s <= 0.0 <= most_s else most_s

    def _ask(self, known_s: tuple[float, float]) -> None:
        """Bound it closer, or anew where it is not within what was known: a clock has drifted."""
        begun_s = self._clock()
        try:
            answer = self._commands.run(("scontrol", "show", "config"))
        except PliantError:
            return
        said = _SAID.search(answer.out)
        if answer.status or said is None:
            return
        theirs_s = float(said[1])
        told_s = (begun_s - theirs_s - 1.0, self._clock() - theirs_s)
        both_s = max(known_s[0], told_s[0]), min(known_s[1], told_s[1])
        self._bounds_s = both_s if both_s[0] <= both_s[1] else told_s
