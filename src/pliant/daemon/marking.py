"""Gives and takes the marks by which the batch system lets jobs share a node.

Who is to have which is decided in policies/marks.py.

One that was refused rests before it is tried again, each time for twice as long: a look comes
every second while jobs wait, and the batch system is not asked in each for what it does not do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence

from pliant.daemon.acting import Acting
from pliant.daemon.patience import Rests
from pliant.daemon.seen import Counts
from pliant.model import UNMARKED, Job, Shape, Snapshot
from pliant.plan import Mark, Plan

log = logging.getLogger("pliant.cycle")

Note = Callable[[Job, str, Shape, str], None]
"""Records what was done of a job: what, as which shape, and why."""


class Marking:
    """Marks; used from the cycle's thread."""

    def __init__(
        self, acting: Acting, note: Note, counts: Counts, monotonic: Callable[[], float]
    ) -> None:
        """``note``: records what was done."""
        self._acting, self._note, self._counts = acting, note, counts
        self._monotonic = monotonic
        self._rests = Rests()

    def mark(
        self,
        snapshot: Snapshot,
        plan: Plan,
        acts_on: Callable[[Job], bool],
        under_way: Container[str],
    ) -> None:
        """Let jobs share, or no longer: none where we do not act, a pause included.

        A job in a hand-over has one writer: it loses its mark as it is reshaped. Who is to share
        was chosen as if all that are to lose their marks had lost them: none is given before.
        ``under_way``: the jobs in a hand-over. Raises PliantError where the batch system is away.
        """
        marks = [mark for mark in plan.marks if acts_on(mark.job)]
        marks += [
            Mark(job, UNMARKED, "Pliant does not act here now")
            for job in snapshot.waiting
            if job.mark and not acts_on(job)
        ]
        self._rests.keep((mark.job.id, mark.mark) for mark in marks)
        takes = [mark for mark in marks if mark.mark == UNMARKED]
        gives = [mark for mark in marks if mark.mark != UNMARKED]
        ours = [mark for mark in takes if mark.job.id not in under_way]
        if self._marked(ours) == len(takes):
            self._marked([mark for mark in gives if mark.job.id not in under_way])

    def _marked(self, marks: Sequence[Mark]) -> int:
        """Give or take marks; return how many it could."""
        done, now_s = 0, self._monotonic()
        due = [mark for mark in marks if not self._rests.rests((mark.job.id, mark.mark), now_s)]
        for mark, words in self._acting.mark(due):
            if words:
                rest_s = self._rests.refused((mark.job.id, mark.mark), now_s)
                self._counts.failures += 1
                log.info("%s; it is tried again in %.0f s", words, rest_s)
                continue
            done += 1
            self._counts.marks += mark.mark != UNMARKED
            what = "unmark" if mark.mark == UNMARKED else "mark"
            self._note(mark.job, what, mark.job.shape, mark.reason)
        return done
