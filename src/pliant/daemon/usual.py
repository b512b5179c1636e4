"""How long something usually takes, by which the pause after it is chosen.

One slow look, as at a slurmctld that is just starting, is to make no long pause; slow ones are,
though quick ones come between them.
"""

from __future__ import annotations

from collections import deque


class Usual:
    """The seconds of the last time, at most those of the longer of the two before it."""

    def __init__(self) -> None:
        self.takes_s = 0.0
        self._before_s = deque((0.0, 0.0), maxlen=2)

    def took(self, time_s: float) -> None:
        """Note how long it took now."""
        self.takes_s = min(time_s, max(self._before_s))
        self._before_s.append(time_s)
