"""A thread that does in order what a file system that hangs may keep for ever: nobody else waits.

It is a daemon: the end of the process waits for none of it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

from pliant.node.saying import say

T = TypeVar("T")


class Aside:
    """Begins its thread with the first piece of work."""

    def __init__(self) -> None:
        """Nothing is to be done yet."""
        self._work: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def do(self, work: Callable[[], object]) -> None:
        """Do it there; here where no thread can be made, for what comes of it is waited for."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # `ulimit -u`
                _done(work)
                return
            self._thread = thread
        self._work.put(work)

    def wait(self, at_most_s: float) -> bool:
        """Wait until all of it is done; return whether it is."""
        if self._thread is None:
            return True
        done = threading.Event()
        self.do(done.set)
        return done.wait(at_most_s)

    def within(self, at_most_s: float, look: Callable[[], T]) -> T | None:
        """Return what was seen; None where a file system does not answer in time."""
        found: list[T] = []
        self.do(lambda: found.append(look()))
        return found[0] if self.wait(at_most_s) and found else None

    def _run(self) -> None:
        while True:
            _done(self._work.get())


def _done(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as fault:  # what comes after it is done all the same
        say(f"a mistake of Pliant's own ({type(fault).__name__}: {fault})")
