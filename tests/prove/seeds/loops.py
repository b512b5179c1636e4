"""Time that is only counted, and event loops that run by it: a process is a loop.

All that happens stands in one heap, by when and in which order it was asked for. While a thread of
pliantd's waits for a command, whatever is due meanwhile happens: cycles, hand-overs and doors come
between each other at each command, as those of real threads may, and nowhere else. A process that
is killed has a loop that runs no more; one that stands still does later what is due meanwhile.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

BEGAN_S = 1_700_000_000.0
"""When every seed begins, in seconds since the epoch."""
BURY_S = 1000.0
"""Longer than anything waits in a process that is told to end."""
_T = TypeVar("_T")


class Killed(BaseException):
    """The process that this runs in was killed."""


class Entry:
    """Something that is to be called; as asyncio wants it of a loop."""

    __slots__ = ("_args", "_call", "_is_cancelled", "_when_s", "loop")

    def __init__(
        self, when_s: float, loop: Loop | None, call: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self._when_s, self.loop, self._call, self._args = when_s, loop, call, args
        self._is_cancelled = False

    def cancel(self) -> None:
        self._is_cancelled = True

    def cancelled(self) -> bool:
        return self._is_cancelled

    def when(self) -> float:
        return self._when_s

    def run(self) -> None:
        """Call it, unless it was cancelled, or its process stands still or is no more."""
        loop = self.loop
        if self._is_cancelled:
            return
        if loop is not None and loop.is_dead:
            loop.missed.append(self)
            return
        if loop is not None and loop.stands_still:
            loop.waiting.append(self)
            return
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(loop.as_asyncio if loop is not None else None)
        try:
            self._call(*self._args)
        finally:
            asyncio._set_running_loop(before)


class Time:
    """What happens, in order; ``now_s`` counts seconds since the epoch."""

    def __init__(self) -> None:
        self.now_s = BEGAN_S
        self._heap: list[tuple[float, int, Entry]] = []
        self._asked = 0

    def at(
        self, when_s: float, call: Callable[..., object], *args: Any, loop: Loop | None = None
    ) -> Entry:
        """Let something happen at an instant, after all that was to happen then already."""
        entry = Entry(when_s, loop, call, args)
        self._asked += 1
        heapq.heappush(self._heap, (max(when_s, self.now_s), self._asked, entry))
        return entry

    def after(self, for_s: float, call: Callable[..., object], *args: Any) -> Entry:
        """Let something happen so many seconds from now."""
        return self.at(self.now_s + for_s, call, *args)

    def pass_to(self, until_s: float) -> None:
        """Let happen what is due until an instant."""
        while self._heap and self._heap[0][0] <= until_s:
            when_s, _, entry = heapq.heappop(self._heap)
            self.now_s = max(self.now_s, when_s)
            entry.run()
        self.now_s = max(self.now_s, until_s)

    def of(self, loop: Loop) -> list[Entry]:
        """Return what is to happen in a process, in order."""
        return [entry for _, _, entry in sorted(self._heap) if entry.loop is loop]

    def pass_for(self, for_s: float) -> None:
        """The same for so many seconds."""
        self.pass_to(self.now_s + for_s)


class Loop:
    """One process: what asyncio runs on.

    What is to be done in a thread is done in its place, and may take its time. Meanwhile hand-overs
    go on, as in their own thread; all else that has one waits, as for the lock of whoever acts.
    """

    def __init__(self, time: Time) -> None:
        self._time = time
        self.is_dead = self._is_buried = False
        self._threads: dict[bool, deque[Callable[[], None]]] = {True: deque(), False: deque()}
        self.missed: list[Entry] = []
        """What was to happen in it, and it was dead."""
        self.stands_still = False
        self.waiting: list[Entry] = []
        """What was to happen in it, and it stood still."""
        self.signals: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self.on_error: Callable[[dict[str, Any]], None] = lambda _context: None

    @property
    def as_asyncio(self) -> asyncio.AbstractEventLoop:
        """The same, as asyncio takes it: what else it could ask, nobody here does."""
        return cast("asyncio.AbstractEventLoop", self)

    # --- what asyncio asks of a loop -------------------------------------------------------

    def time(self) -> float:
        return self._time.now_s

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.is_dead

    def is_closed(self) -> bool:
        return self.is_dead

    def call_soon(self, call: Callable[..., object], *args: Any, **_named: object) -> Entry:
        return self._time.at(self._time.now_s, call, *args, loop=self)

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, call: Callable[..., object], *args: Any, **_named: object
    ) -> Entry:
        return self._time.at(when, call, *args, loop=self)

    def call_later(
        self, delay: float, call: Callable[..., object], *args: Any, **_named: object
    ) -> Entry:
        return self._time.at(self._time.now_s + delay, call, *args, loop=self)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self.as_asyncio)

    def create_task(self, coro: Coroutine[Any, Any, _T], **_named: object) -> asyncio.Task[_T]:
        return asyncio.Task(coro, loop=self.as_asyncio)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.on_error(context)

    def run_in_executor(
        self, executor: Executor | None, call: Callable[..., _T], *args: Any
    ) -> asyncio.Future[_T]:
        done: asyncio.Future[_T] = self.create_future()
        if self._is_buried:
            done.cancel()
            return done
        steps = getattr(executor, "_thread_name_prefix", "") == "handing"
        thread = self._threads[steps]
        thread.append(partial(self._in_thread, done, call, args))
        if len(thread) == 1:
            self.call_soon(self._turn_of, thread)
        return done

    def _turn_of(self, thread: deque[Callable[[], None]]) -> None:
        if self._is_buried:
            return
        with suppress(Killed):
            thread[0]()
            thread.popleft()
            if thread:
                self.call_soon(self._turn_of, thread)

    def _in_thread(
        self, done: asyncio.Future[_T], call: Callable[..., _T], args: tuple[Any, ...]
    ) -> None:
        try:
            found = call(*args)
        except Exception as error:
            if not done.cancelled():
                done.set_exception(error)
        else:
            if not done.cancelled():
                done.set_result(found)

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        self.signals[sig] = callback, args

    # --- a process -------------------------------------------------------------------------

    def stands_still_for(self, for_s: float) -> None:
        """Do nothing for a while, in the middle of what it does: all else goes on. Raises Killed."""
        self.stands_still = True
        self._time.pass_for(for_s)
        self.stands_still = False
        waited, self.waiting = self.waiting, []
        for entry in waited:
            self._time.at(self._time.now_s, entry.run, loop=self)
        if self.is_dead:
            raise Killed

    def bury(self) -> None:
        """Let go of what a process held that was killed: nobody hears of it, and it does nothing."""
        due, self._time = [*self.missed, *self._time.of(self)], Time()
        self.is_dead, self._is_buried = False, True
        for entry in due:
            self._time.at(self._time.now_s, entry.run, loop=self)
        for task in asyncio.all_tasks(self.as_asyncio):
            task.cancel()
        self._time.pass_for(BURY_S)
        assert not asyncio.all_tasks(self.as_asyncio)
        self.is_dead = True

    def signal(self, number: int) -> None:
        """Send it a signal that it handles."""
        call, args = self.signals[number]
        self.call_soon(call, *args)
