"""Waits for wishes without a thread for each who waits: thousands may."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress


class Watching:
    """Lets watches of a job wait until something about it has changed."""

    def __init__(self) -> None:
        """Belong to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._changed: dict[str, asyncio.Event] = {}
        self._waiting: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._waiting.total()

    def tell(self, job_id: str) -> None:
        """Say, from any thread, that a job is to be looked at."""
        self._loop.call_soon_threadsafe(self._tell, job_id)

    def _tell(self, job_id: str) -> None:
        changed = self._changed.pop(job_id, None)
        if changed is not None:
            changed.set()

    async def wait(self, job_id: str, at_most_s: float) -> None:
        """Wait until something has changed, or so long."""
        changed = self._changed.setdefault(job_id, asyncio.Event())
        self._waiting[job_id] += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await changed.wait()
        finally:
            self._waiting[job_id] -= 1
            if not self._waiting[job_id]:
                del self._waiting[job_id]
                self._changed.pop(job_id, None)
