"""Waits for wishes without a thread for each who waits: thousands may."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

MOST_OF_JOB = 4
"""So many watches of one job wait; further ones are answered at once."""


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

    @contextmanager
    def of(self, job_id: str) -> Iterator[asyncio.Event]:
        """What is told of a job from here on; see :func:`news`."""
        self._waiting[job_id] += 1
        crowded = self._waiting[job_id] > MOST_OF_JOB
        changed = asyncio.Event() if crowded else self._changed.setdefault(job_id, asyncio.Event())
        if crowded:
            changed.set()
        try:
            yield changed
        finally:
            self._waiting[job_id] -= 1
            if not self._waiting[job_id]:
                del self._waiting[job_id]
                self._changed.pop(job_id, None)


async def news(changed: asyncio.Event, gone: Awaitable[bool], at_most_s: float) -> bool:
    """Wait until something has changed, or so long; return whether who waits has left meanwhile."""
    waits = asyncio.create_task(changed.wait())
    left = asyncio.ensure_future(gone)
    try:
        await asyncio.wait((waits, left), timeout=at_most_s, return_when="FIRST_COMPLETED")
        return left.done() and left.result()
    finally:
        waits.cancel()
        left.cancel()
