"""What is free where GPUs are just a number: so many now, and what a claim leaves of them.

The same rules as :class:`pliant.placement.Free` has for nodes, for one node, in whole numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NEVER_S = float("inf")
Ends = Iterable[tuple[float, int]]
"""When so many GPUs are given back, the earliest first."""


@dataclass(slots=True)
class Room:
    """``free`` GPUs now; from ``claim_s`` on, what a claim leaves of them: ``left``.

    ``closed``: a claim leaves nothing to others, whatever is given back.
    """

    now_s: float
    free: int
    closed: bool = False
    claim_s: float = NEVER_S
    left: int = 0

    def has(self, limit_s: float) -> int:
        """Return how many GPUs a job can have now that runs so long at most."""
        if self.claim_s < self.now_s + limit_s and self.left < self.free:
            return self.left
        return self.free

    def take(self, gpus: int, limit_s: float) -> None:
        """Give GPUs to such a job; a negative number: take them back."""
        self.free -= gpus
        if self.claim_s < self.now_s + limit_s and not self.closed:
            self.left -= gpus

    def claim(self, amounts: Sequence[int], ends: Ends) -> int | None:
        """Keep the earliest opening for any of some amounts, and the largest that fits then.

        Returns it; None where no opening is in sight.
        """
        free, best = self.free, -1
        for at_s, gpus in ends:
            if best >= 0 and at_s > self.claim_s:
                break
            free += gpus
            place = bisect_right(amounts, free) - 1
            if place >= 0:  # what else is given back at that instant counts too
                best, self.claim_s = place, at_s
                self.left = 0 if self.closed else free - amounts[place]
        return amounts[best] if best >= 0 else None

    # --- in place of what a job has ---------------------------------------------------------

    def has_instead(self, held: int, limit_s: float, over_s: float, *, alone: bool = False) -> int:
        """Return how many GPUs a running job can have now in place of the ``held``.

        ``over_s``: when its time limit ends it; ``alone``: no claim counts.
        """
        free = self.free + held
        if alone or self.claim_s >= self.now_s + limit_s:
            return free
        return min(free, self.left + (held if over_s > self.claim_s else 0))

    def trade(self, held: int, gpus: int, limit_s: float, over_s: float) -> None:
        """Give such a job ``gpus`` for what it has; what it gives up is free for nobody yet."""
        self.free = min(self.free, self.free + held - gpus)
        if self.claim_s < NEVER_S:
            left = self.left + (held if over_s > self.claim_s else 0)
            if self.claim_s < self.now_s + limit_s and not self.closed:
                left -= gpus
            self.left = min(self.left, left)
