"""A memory that forgets by itself: what neither this look nor the one before had use for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """What was worked out, by what it was worked out from."""

    def __init__(self) -> None:
        self._now: dict[K, V] = {}
        self._before: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._now) + len(self._before)

    def turn(self) -> None:
        """Begin a new look."""
        self._before, self._now = self._now, {}

    def get(self, key: K, work_out: Callable[[], V]) -> V:
        """Return what belongs to ``key``, worked out where it is not known."""
        known = self._now.get(key)
        if known is None:
            known = self._before.get(key)
            self._now[key] = known = work_out() if known is None else known
        return known
