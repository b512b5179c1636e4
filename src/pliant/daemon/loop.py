"""When a cycle runs, and what happens when the batch system is away.

::

    a submission, a change, `resume`  ─▶ soon: after a short settling, several at once
    a flagged job waits               ─▶ every second or so
    else                              ─▶ every cycle_s
    the batch system is away          ─▶ after 1, 2, 4 ... 30 s
    another host's pliantd acts       ─▶ every 5 s

and no more than a tenth of the time is spent looking, unless looks take so long (slow name
servers, say) that jobs would wait for many minutes. The doors answer all the while: cycles run in
a thread of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from pliant.daemon.cycling import Cycling
from pliant.daemon.seen import Seen
from pliant.daemon.usual import Usual
from pliant.errors import PliantError, StandsBy
from pliant.model import Mode

log = logging.getLogger("pliant.loop")

SETTLE_S = 0.25
"""From a submission to the look: the job is in the queue only after the filter has answered."""
EAGER_S = 1.0
"""Between looks while a flagged job waits."""
SHARE = 10.0
"""The pause after a look, in times that the look took."""
LONGEST_S = 120.0
"""The longest that such a pause becomes. A look is seven commands in a row at most, each with its
time limit of 10 s ([slurm] timeout_s): so every job is looked at within five minutes."""
AWAY_S = 30.0
"""The longest pause while the batch system is away."""
STAND_BY_S = 5.0
"""Between looks while another host's pliantd acts: so soon this one takes over."""
PRUNE_S = 3600.0


@dataclass(slots=True)
class Pace:
    """How long to wait after a cycle, from what the cycle was like."""

    cycle_s: float
    failures: int = 0  # in a row
    stands_by: bool = False
    next_in_turn: bool = False  # stood by when it last worked

    def failed(self) -> None:
        """Note a failure."""
        self.failures, self.stands_by = self.failures + 1, False

    def stood_by(self) -> None:
        """Note that another host acts; where it fails, it is soon this one's turn."""
        self.failures, self.stands_by, self.next_in_turn = 0, True, True

    def worked(self) -> None:
        """Note a success."""
        self.failures, self.stands_by, self.next_in_turn = 0, False, False

    def least_s(self, observe_s: float) -> float:
        """Return the shortest pause, whoever asks."""
        if self.stands_by:
            return STAND_BY_S
        if self.failures:
            return self._away_s()
        return max(SETTLE_S, _rest_s(observe_s))

    def most_s(self, observe_s: float, eager: bool) -> float:
        """Return the pause when nobody asks."""
        if self.stands_by:
            return STAND_BY_S
        if self.failures:
            return self._away_s()
        return max(_rest_s(observe_s), min(EAGER_S, self.cycle_s) if eager else self.cycle_s)

    def _away_s(self) -> float:
        most_s = STAND_BY_S if self.next_in_turn else AWAY_S
        return float(min(most_s, 2 ** min(self.failures - 1, 10)))


def _rest_s(observe_s: float) -> float:
    return min(SHARE * observe_s, LONGEST_S)


class Loop:
    """Runs cycles until it is stopped."""

    def __init__(
        self,
        cycling: Cycling,
        monotonic: Callable[[], float],
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """Run ``cycling``'s cycles; ``monotonic`` counts seconds, evenly.

        ``before``: is called before each, in its thread; it may raise PliantError as the cycle may.
        """
        self.cycling, self._before = cycling, before
        self.trouble = ""
        """Why the last cycle failed; "" where it did not."""
        self.stands_by = ""
        """Which other host acts, in words; "" where this one does or none."""
        self._monotonic = monotonic
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._pace = Pace(cycling.config.daemon.cycle_s)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cycle")
        self._pruned_s = -PRUNE_S
        self._look = Usual()
        self.busy_since_s: float | None = None
        """Since when the running cycle runs, by the monotonic clock."""

    def wake(self) -> None:
        """Let a cycle run soon."""
        self._wake.set()

    def stop(self) -> None:
        """Let the change in flight finish, and end."""
        self.cycling.stop()
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Run cycles until stopped."""
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                await self._once()
                await self._pause()
        finally:
            await asyncio.to_thread(self._worker.shutdown)

    async def _once(self) -> None:
        self.busy_since_s = self._monotonic()
        try:
            await asyncio.get_running_loop().run_in_executor(self._worker, self._cycle)
        except StandsBy as error:
            self._stood_by(str(error))
        except PliantError as error:
            self._failed(str(error))
        except Exception as error:
            log.exception("a cycle failed: this is Pliant's own mistake")
            self._failed(f"a mistake of Pliant's own: {type(error).__name__}: {error}")
        else:
            if self.stands_by:
                log.info("slurmctld runs here: this pliantd acts")
            elif self._pace.failures:
                log.info("the batch system answers again")
            self.trouble = self.stands_by = ""
            self._pace.worked()
            if self.cycling.seen is not None:
                self._look.took(self.cycling.seen.observe_s)
        finally:
            self.busy_since_s = None

    def _cycle(self) -> None:
        """In the worker thread."""
        self._before()
        self.cycling.run()
        if self._monotonic() - self._pruned_s >= PRUNE_S:
            self._pruned_s = self._monotonic()
            self.cycling.prune()

    def _failed(self, why: str) -> None:
        if why != self.trouble:
            log.warning("%s", why)
        self.trouble, self.stands_by = why, ""
        self._pace.failed()
        self.cycling.patience.reset()

    def _stood_by(self, why: str) -> None:
        if why != self.stands_by:
            log.info("%s", why)
        self.stands_by, self.trouble = why, ""
        self._pace.stood_by()
        self.cycling.patience.reset()

    async def _pause(self) -> None:
        """Wait: at least for the shortest pause, at most until somebody asks."""
        self._pace.cycle_s = self.cycling.config.daemon.cycle_s
        seen = self.cycling.seen
        least_s = self._pace.least_s(self._look.takes_s)
        most_s = self._pace.most_s(self._look.takes_s, seen is not None and is_eager(seen))
        most_s = max(least_s, min(most_s, self.cycling.next_change_s()))
        await wait_for(self._stopping, least_s)
        if most_s > least_s:
            await wait_for(self._wake, most_s - least_s)
            if self._wake.is_set() and not self._stopping.is_set():
                await wait_for(self._stopping, SETTLE_S)


def is_eager(seen: Seen) -> bool:
    """Whether a job waits that may be changed, or that something may be said about."""
    off = {p.name for p in seen.snapshot.partitions if p.mode is Mode.OFF}
    return any(
        job.spec is not None and job.eligible and not off.issuperset(job.partitions)
        for job in seen.snapshot.waiting
    )


async def wait_for(event: asyncio.Event, for_s: float) -> None:
    """Wait for an event, for so many seconds at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(for_s):
            await event.wait()
