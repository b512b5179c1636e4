"""Changes waiting jobs: intention, update, read-back, outcome; one writer, a few jobs at a time.

The cycle and the doors take turns: what an owner notes on a job through a door while a cycle runs
is never written over by that cycle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pliant.batch import Batch, Change
from pliant.errors import NotNow, PliantError, TooLate
from pliant.model import Job, Spec
from pliant.plan import Mark, Mold
from pliant.store import Store

AT_ONCE = 10
"""Jobs changed in one turn, with one look before and one after."""
ACT_FOR_S = 10.0
"""How long one cycle may change jobs: longer, and its snapshot is too old to act on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a change: ``words`` are the batch system's where it refused, else "".

    ``later``: it refused because it changes nothing of the job now, whatever is asked. ``missed``:
    the job did not wait any more.
    """

    mold: Mold
    words: str
    later: bool = False
    missed: bool = False


class Acting:
    """Makes changes; safe to use from the cycle's thread and the doors'."""

    def __init__(
        self,
        batch: Batch,
        store: Store,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly."""
        self._batch, self._store = batch, store
        self._clock, self._monotonic = clock, monotonic
        self._turn = threading.Lock()
        self._touched: set[str] = set()  # jobs noted on through a door since the last look
        self._stopping = False

    def stop(self) -> None:
        """Let the turn in flight finish and begin no further one."""
        self._stopping = True

    def looking(self) -> None:
        """Say that a look begins: what was noted before it will be seen."""
        with self._turn:
            self._touched.clear()

    def act(self, molds: Sequence[Mold]) -> Iterator[Outcome]:
        """Make changes until all are made or time is up; yield what came of each.

        Raises PliantError where the batch system is away.
        """
        end_s = self._monotonic() + ACT_FOR_S
        for first in range(0, len(molds), AT_ONCE):
            if self._stopping or self._monotonic() > end_s:
                return
            with self._turn:
                some = molds[first : first + AT_ONCE]
                outcomes = self._turn_of([m for m in some if m.job.id not in self._touched])
            yield from outcomes

    def _turn_of(self, molds: Sequence[Mold]) -> list[Outcome]:
        now_s, store = self._clock(), self._store
        intentions = [
            store.intend(now_s, mold.job.id, mold.job.shape, mold.shape, mold.reason)
            for mold in molds
        ]
        changes = [Change(mold.job, mold.shape, mold.job.noted(mold.shape)) for mold in molds]
        try:
            errors = self._batch.change(changes) if changes else ()
        except PliantError as away:
            for intention in intentions:
                store.done(intention, self._clock(), str(away))
            raise
        outcomes = []
        for intention, mold, error in zip(intentions, molds, errors, strict=True):
            words = "" if error is None else str(error)
            store.done(intention, self._clock(), words or "done")
            later, missed = isinstance(error, NotNow), isinstance(error, TooLate)
            outcomes.append(Outcome(mold, words, later, missed))
        return outcomes

    def mark(self, marks: Sequence[Mark]) -> Iterator[tuple[Mark, str]]:
        """Give and take marks until all are made; yield each with what was wrong, "" for nothing.

        Raises PliantError where the batch system is away.
        """
        for first in range(0, len(marks), AT_ONCE):
            if self._stopping:
                return
            with self._turn:
                some = marks[first : first + AT_ONCE]
                some = [mark for mark in some if mark.job.id not in self._touched]
                errors = self._batch.mark(some) if some else ()
            for mark, error in zip(some, errors, strict=True):
                yield mark, "" if error is None else str(error)

    def annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        """Note on a job, as it is now, what its owner ``says``; return it as it is then.

        The running cycle leaves the job alone. Raises PliantError.
        """
        with self._turn:
            self._touched.add(job.id)
            noted = self._batch.annotate(job, says)
            self._store.forget_refused(job.id)
            return noted

    def rescue(self, job: Job) -> None:
        """Give a job that is held for a shape of ours its own shape back.

        Raises Refused, Unavailable.
        """
        with self._turn:
            self._batch.rescue(job)
