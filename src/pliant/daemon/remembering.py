"""Remembers each job that says something to Pliant, from its first sight to its end and after.

What the filter set at submission is read from the job's token when it is first seen. Where a job is
gone the batch system is asked once for those that have ended (Slurm remembers them for MinJobAge);
so it is at the start and every :data:`REGULARLY_S`, for jobs that came and went between two looks.
All that a look has shown is written in one transaction, and nothing where nothing has changed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pliant.batch import Ended
from pliant.daemon.counting import Counting
from pliant.daemon.idling import gpu_use
from pliant.daemon.journal import about
from pliant.daemon.records import (
    SKEW_S,
    array_of,
    as_ended,
    as_gone,
    as_seen,
    end_of_run,
    ends_run,
    first_record,
    is_another,
    run_row,
    starts_run,
    submitted,
)
from pliant.daemon.seen import Seen
from pliant.daemon.usual import Usual
from pliant.errors import PliantError
from pliant.model import Job, Mode, shape_text
from pliant.store import ENDED, Decision, JobRecord, RunRow, Store

log = logging.getLogger("pliant.remembering")

REGULARLY_S = 30.0
"""How often the batch system is asked for jobs that have ended, whether one is missed or not."""
SHARE = 30.0
"""The pause after that, in times that it took, where the time before took no less."""
LEAST_S = 1.0
MOST_LOOKED = 100
"""So many of a job's decisions are looked through for one."""
MOST_REFUSED = 100_000
"""Between two looks."""
FLUSH_S = 60.0
"""How long counts alone wait to be written."""


@dataclass(slots=True)
class _Changes:
    """What one look has shown."""

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    begun: list[RunRow] = field(default_factory=list)
    ended: list[tuple[float, str, int]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


class Remembering:
    """Used from the cycle's thread."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        mode: Callable[[Job], Mode],
        ended: Callable[[], Sequence[Ended]] | None = None,
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly.

        ``mode``: what Pliant may do with a job. ``ended``: asks the batch system for the flagged
        jobs that have ended and raises PliantError; None: it cannot tell.
        """
        self._store, self._clock, self._monotonic = store, clock, monotonic
        self._mode, self._ask = mode, ended
        self.counting = Counting()
        self.refused: deque[str] = deque(maxlen=MOST_REFUSED)
        """By partition, submissions that the filter refused; filled from its own thread."""
        self._known: dict[str, JobRecord] | None = None  # jobs that are there, by id
        self._dirty: set[str] = set()  # changed since the last look
        self._told: frozenset[tuple[str, int]] = frozenset()  # ended runs of the last answer
        self._asked_s = self._ask_from_s = self._flushed_s = float("-inf")  # monotonic
        self._answer = Usual()

    # --- what happens ----------------------------------------------------------------------

    def looked(self, seen: Seen, acts_on: Callable[[Job], bool]) -> None:
        """Remember what a look has shown, and what was decided of it."""
        changes, snapshot = _Changes(), seen.snapshot
        known = self._live()
        there = set()
        for jobs in (snapshot.waiting, snapshot.running):
            for job in jobs:
                there.add(job.id)
                if job.spec is not None or (job.id in known and not job.frozen):
                    self._follow(job, changes)
        self._note_would(seen, acts_on, changes)
        self._end(there, changes)
        for job_id in self._dirty & known.keys():
            changes.jobs.setdefault(job_id, known[job_id])
        self._dirty.clear()
        while self.refused:
            self.counting.add(snapshot.now_s, self.refused.popleft(), refused=1)
        self.counting.looked(snapshot.now_s, gpu_use(snapshot, seen.shadow))
        self._keep(changes)

    def changed(self, job: Job, *, refused: bool) -> None:
        """Count a change of a waiting job; note when it would have started as it was."""
        partition = _partition(job)
        self.counting.add(self._clock(), partition, **{"failures" if refused else "updates": 1})
        record = self._live().get(job.id)
        if not refused and record is not None and job.expected_s and not record.expected_s:
            self._live()[job.id] = replace(record, expected_s=job.expected_s)
            self._dirty.add(job.id)

    def flush(self) -> None:
        """Write what is only counted yet."""
        self._store.jobs.keep(tallies=self.counting.taken())

    # --- jobs that are there ---------------------------------------------------------------

    def _live(self) -> dict[str, JobRecord]:
        if self._known is None:
            self._known = {record.job: record for record in self._store.jobs.live()}
        return self._known

    def _stored(self, job_id: str, changes: _Changes) -> JobRecord | None:
        """Return what is stored of a job, or about to be."""
        return changes.jobs.get(job_id) or self._store.jobs.job(job_id)

    def _follow(self, job: Job, changes: _Changes) -> JobRecord:
        known = self._live()
        before, now_s = known.get(job.id), self._clock()
        if before is None or is_another(before, job):
            before = self._meet(job, changes)
        if ends_run(before, job):
            changes.ended.append((end_of_run(before, job, now_s), job.id, before.run))
        record = as_seen(before, job, now_s)
        if starts_run(before, record):
            changes.begun.append(run_row(job, record))
            if not before.start_s:
                self._tell_molded(record, changes)
                partition = _partition(job)
                molded = 1 if record.molded else 0
                self.counting.add(self._clock(), partition, starts=1, molded=molded)
        if record is not before or job.id not in known:
            known[job.id] = changes.jobs[job.id] = record
        return record

    def _meet(self, job: Job, changes: _Changes) -> JobRecord:
        """Return the record of a job that was not there before; its submission is counted once."""
        stored = self._stored(job.id, changes)
        if stored is not None and not is_another(stored, job):
            return replace(stored, end_s=0.0, exit="", state="")  # requeued after its end, say
        if stored is not None:  # of another job, which had this number
            self._store.forget_before([(job.id, job.submit_s - SKEW_S)])
        record = first_record(job, str(self._mode(job)), self._clock())
        array = array_of(job)
        if array and self._knows_array(array, record, changes):
            return record
        self._tell(record, changes)
        what = "answered" if job.answered else "unanswered"
        self.counting.add(self._clock(), _partition(job), **{what: 1})
        return record

    def _tell(self, record: JobRecord, changes: _Changes) -> None:
        """Tell what the filter did with a submission."""
        for what, shape, words in submitted(record):
            changes.decisions.append(Decision(record.seen_s, record.job, what, shape, words))
            change = {"before": record.own, "after": shape} if record.filtered else {}
            fields = about(record.job, user=record.user, partition=record.partition, **change)
            log.info("job %s: %s %s: %s", record.job, what, shape, words, extra=fields)

    def _tell_molded(self, record: JobRecord, changes: _Changes) -> None:
        """Tell of a change that was made when pliantd ended, before it could be noted."""
        if not record.molded or record.shape == record.filtered:
            return
        job, shape = record.job, record.shape
        if any(
            made.shape == shape
            for made in self._store.decisions(job, MOST_LOOKED)
            if made.what == "mold"
        ):
            return
        why = self._store.intended(job, shape) or "it is not known why"
        words = f"{why} (pliantd ended before it was noted)"
        changes.decisions.append(Decision(record.start_s, job, "mold", shape, words))

    def _knows_array(self, array: str, task: JobRecord, changes: _Changes) -> bool:
        """Whether a task's array is known, which it is from here on."""
        parent = self._live().get(array) or self._stored(array, changes)
        if parent is not None and parent.array:
            return True
        changes.jobs[array] = replace(
            task, job=array, tasks=0, array=True, state=ENDED, end_s=self._clock(), shape=task.own
        )
        return False

    def _note_would(self, seen: Seen, acts_on: Callable[[Job], bool], changes: _Changes) -> None:
        """Note as what jobs would have started where Pliant only observes."""
        if seen.shadow is seen.plan:
            return
        known = self._live()
        for start in seen.shadow.starts:
            job = start.job
            record = known.get(job.id)
            if record is None or record.would or start.shape == job.shape or acts_on(job):
                continue
            now = replace(record, would=shape_text(start.shape), would_s=seen.snapshot.now_s)
            known[job.id] = changes.jobs[job.id] = now

    # --- jobs that are gone ----------------------------------------------------------------

    def _end(self, there: set[str], changes: _Changes) -> None:
        gone = self._live().keys() - there
        if self._ask is None:
            told: Sequence[Ended] | None = ()
        elif gone or self._monotonic() - self._asked_s >= REGULARLY_S:
            told = self._ended_now()
        else:
            return
        if told is None:
            return
        ends = {ended.job.id: ended for ended in told}
        for job_id, ended in ends.items():
            is_told = (job_id, ended.job.restarts) in self._told
            if job_id not in there and (job_id in gone or not is_told):
                self._note_end(ended, changes)
        for job_id in gone - ends.keys():
            self._close(as_gone(self._live()[job_id], self._clock()), changes)
        self._told = frozenset((ended.job.id, ended.job.restarts) for ended in told)

    def _ended_now(self) -> Sequence[Ended] | None:
        """Ask the batch system, but not for more than a small part of the time; None: not now."""
        began_s = self._monotonic()
        if self._ask is None or began_s < self._ask_from_s:
            return None
        try:
            found = self._ask()
        except PliantError as error:
            log.debug("jobs that have ended: %s", error)
            found = None
        self._asked_s = self._monotonic()
        self._answer.took(self._asked_s - began_s)
        self._ask_from_s = self._asked_s + max(LEAST_S, SHARE * self._answer.takes_s)
        return found

    def _note_end(self, ended: Ended, changes: _Changes) -> None:
        job, known = ended.job, self._live()
        record = known.get(job.id)
        if record is None:
            stored = self._stored(job.id, changes)
            if stored is not None and _has_ended(stored, job):
                if not stored.exit and ended.exit:
                    changes.jobs[job.id] = as_ended(stored, ended, self._clock())
                return
        if job.start_s or (record is not None and job.restarts != record.run):
            record = self._follow(job, changes)
        elif record is None:
            record = self._meet(job, changes)
        self._close(as_ended(record, ended, self._clock()), changes)

    def _close(self, record: JobRecord, changes: _Changes) -> None:
        before = self._live().pop(record.job, None)
        if before is not None and before.run_s:
            changes.ended.append((record.end_s, record.job, before.run))
        changes.jobs[record.job] = record

    def _keep(self, changes: _Changes) -> None:
        now_s = self._monotonic()
        if not changes.jobs and now_s - self._flushed_s < FLUSH_S:
            return
        self._flushed_s = now_s
        tallies = self.counting.taken()
        self._store.jobs.keep(
            *(changes.jobs.values(), changes.begun, changes.ended, tallies, changes.decisions)
        )


def _has_ended(stored: JobRecord, job: Job) -> bool:
    """Whether this end of a job is known; one that failed may have been requeued since."""
    known = not is_another(stored, job) and job.restarts <= stored.run
    return stored.state == ENDED and known


def _partition(job: Job) -> str:
    return job.partitions[0] if job.partitions else ""
