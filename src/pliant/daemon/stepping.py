"""When the steps of hand-overs are done: as each is due, and at once where something was said.

They are done in a thread of their own, beside the cycles: a job that has saved holds GPUs that
stand idle, and waits for no look at all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pliant.daemon.handing import SLOW_S, HandOvers
from pliant.daemon.loop import wait_for


class Stepping:
    """Does the steps of hand-overs until it is stopped."""

    def __init__(
        self, overs: HandOvers, monotonic: Callable[[], float], acts: Callable[[], bool]
    ) -> None:
        """Belong to the running event loop; no step is done while this host is none that ``acts``.

        ``monotonic`` counts seconds, evenly.
        """
        self._overs, self._monotonic, self._acts = overs, monotonic, acts
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="handing")
        self._due = asyncio.Event()
        self._stopping = False
        overs.woken = self._wake

    async def run(self) -> None:
        """Do steps until stopped."""
        while not self._stopping:
            self._due.clear()
            next_s = float("inf")
            if self._acts():
                next_s = await self._loop.run_in_executor(self._worker, self._overs.turn)
            await wait_for(self._due, min(SLOW_S, max(0.0, next_s - self._monotonic())))

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._due.set)

    def stop(self) -> None:
        """Let the step that is under way be the last one."""
        self._stopping = True
        self._overs.stop()
        self._due.set()
