"""Signals that come to a wrapper twice: sent to the whole job, and passed on by the guardian.

Slurm and a terminal signal every process, or the first alone, which is the guardian; it cannot tell
which, and passes all on. So of two of one number, one from the guardian and one from another, the
second is the same signal again. It comes at once: AT_ONCE_S is far more than that takes.
"""

from __future__ import annotations

AT_ONCE_S = 5.0


class Copies:
    """What came from either side and has not come from the other yet."""

    def __init__(self) -> None:
        """Nothing has come."""
        self._came: dict[tuple[int, bool], list[float]] = {}

    def is_second(self, number: int, passed_on: bool, now_s: float) -> bool:
        """Whether this one came from the other side before; it counts once."""
        others = self._came.setdefault((number, not passed_on), [])
        others[:] = [at_s for at_s in others if now_s - at_s < AT_ONCE_S]
        if others:
            del others[0]
            return True
        self._came.setdefault((number, passed_on), []).append(now_s)
        return False
