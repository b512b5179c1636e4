"""Many runs by one call: over processes here, or as a Slurm job array (:mod:`.job_array`).

``run`` is a function at its module's top level, where a process that is started anew finds it, and
what it takes and returns is plain data. The same runs give the same results wherever they run.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Ended = Callable[[int], None]
"""Told how many runs have ended."""


class Sweep(Protocol):
    """Where many runs are done."""

    def each(
        self, run: Callable[[Item], Result], items: Sequence[Item], ended: Ended
    ) -> list[Result]:
        """Return ``run(item)`` for each item, in their order.

        Raises what the first run raises that is seen to fail; the others are given up then, as
        they are where the caller is interrupted.
        """


@dataclass(frozen=True, slots=True)
class Processes:
    """So many processes of this host; one: this one."""

    count: int = 1

    def each(
        self, run: Callable[[Item], Result], items: Sequence[Item], ended: Ended
    ) -> list[Result]:
        """Return ``run(item)`` for each item, as :meth:`Sweep.each` says."""
        count = min(self.count, len(items))
        if count <= 1:
            return [_told(run(item), done, ended) for done, item in enumerate(items, 1)]
        # Started anew, not forked: the same everywhere, and as in a job array.
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            others = set(active_children())
            try:
                with _interrupts_held():
                    tasks = [pool.submit(run, item) for item in items]
                for done, task in enumerate(as_completed(tasks), 1):
                    _told(task.result(), done, ended)
            except BaseException:
                # The pool itself would wait for the runs that have begun, however long they are.
                for worker in set(active_children()) - others:
                    worker.terminate()
                raise
        return [task.result() for task in tasks]


HERE = Processes()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let processes begin that no Ctrl-C reaches; one of this time is heard right after it.

    They take over which signals are held: what interrupts all of a terminal's processes is for
    the first one to hear, which ends the others.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _told(result: Result, done: int, ended: Ended) -> Result:
    ended(done)
    return result
