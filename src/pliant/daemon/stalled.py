"""Programs that hang since they were asked for a checkpoint, as their heartbeats tell.

A program of several ranks may wait for ever where each rank sees the request at another step. Once
the grace period is over, and as long again, a program that has told steps before and none since is
taken to hang: that is logged, and stands in `pliant why` and `pliant history`. Its owner may have
said ``stalled=requeue``: then it goes back into the queue at the shape that it has, the way of
every hand-over, and goes on from its last checkpoint. No job that hung so is asked again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pliant.daemon.handing import LATE, HandOvers, Wanted
from pliant.daemon.journal import about_job
from pliant.daemon.runs import Beat, Runs
from pliant.handover import Outcome
from pliant.model import Job, shape_text
from pliant.store import Decision, HandOverRow, Store
from pliant.wire.runs import WATCH_S

log = logging.getLogger("pliant.stalled")

QUIET_S = 60.0
"""How long a program must be silent beyond its grace period, at least."""
USUAL_STEPS = 10
"""... and for as long as it usually takes for so many steps."""
WHAT = "stalled"
"""How what is decided of such a job is called in its history."""


class Stalled:
    """Which programs hang; used from the cycle's thread."""

    def __init__(
        self, store: Store, overs: HandOvers, runs: Runs, clock: Callable[[], float]
    ) -> None:
        """``clock`` counts seconds since the epoch."""
        self._store, self._overs, self._runs, self._clock = store, overs, runs, clock
        self._rows: dict[str, tuple[HandOverRow, ...]] = {}  # what came of each wish, by job

    def looked(self, jobs: Iterable[Job], may_requeue: Callable[[Job], bool]) -> None:
        """After each look: say who hangs now, and requeue who is to be.

        ``jobs``: those that run, may change and are not in a hand-over.
        """
        for job in jobs:
            row = next(reversed(self._of(job.id)), None)
            beat = self._runs.beat(job)
            if row is None or beat is None or row.run != job.restarts:
                continue
            if row.outcome in LATE and _hangs(row, beat, self._runs.rate(job)):
                self._say(job, row, Outcome.STALLED, self._why(job, row, beat))
            elif row.outcome == Outcome.STALLED and beat.at_s > row.until_s:
                words = "its heartbeats have come again: it goes on"
                self._say(job, row, Outcome.NOT_SAVED, words)
            elif row.outcome != Outcome.STALLED:
                continue
            if self.hangs(job) and _is_to_return(job) and may_requeue(job):
                self._requeue(job)

    def _why(self, job: Job, row: HandOverRow, beat: Beat) -> str:
        since = "the checkpoint was requested"
        if beat.at_s > row.at_s + 1:
            since = f"{beat.at_s - row.at_s:.0f} s after {since}"
        ago = f"{self._clock() - row.at_s:.0f} s ago"
        then = "it is left as it is (stalled=leave)"
        if _is_to_return(job):
            then = "it is requeued from its last checkpoint"
        return (
            f"no heartbeat since {since} {ago}: it is at step {beat.step}; the program hangs, "
            f"probably by that; {then}"
        )

    def _say(self, job: Job, row: HandOverRow, outcome: Outcome, words: str) -> None:
        log.warning("job %s: %s", job.id, words, extra=about_job(job))
        self._store.handed_over(row.id, row.done_s, outcome)
        now_s = self._clock()
        self._store.decide([Decision(now_s, job.id, WHAT, shape_text(job.shape), words)])
        self._rows.pop(job.id, None)

    def _requeue(self, job: Job) -> None:
        words = "it hangs since a checkpoint was requested, and says stalled=requeue"
        wanted = Wanted(job.shape, job.nodes)
        self._overs.begin(job, wanted, self._clock(), words, listens=False)
        self._rows.pop(job.id, None)

    def hangs(self, job: Job) -> bool:
        """Whether the program of this run does."""
        row = next(reversed(self._of(job.id)), None)
        return row is not None and row.run == job.restarts and row.outcome == Outcome.STALLED

    def has_hung(self, job: Job) -> bool:
        """Whether a run of this job did: it is not asked again."""
        return any(row.outcome == Outcome.STALLED for row in self._of(job.id))

    def _of(self, job_id: str) -> tuple[HandOverRow, ...]:
        if job_id not in self._rows:
            self._rows[job_id] = self._store.handovers(job_id)
        return self._rows[job_id]

    def ended(self, job_id: str) -> None:
        """Note that something has come of a wish."""
        self._rows.pop(job_id, None)

    def forget(self, there: frozenset[str]) -> None:
        """Forget all other jobs."""
        self._rows = {job: rows for job, rows in self._rows.items() if job in there}


def _hangs(row: HandOverRow, beat: Beat, rate: float) -> bool:
    """Whether heartbeats have stopped for good since a wish; ``rate``: steps per second, 0 unknown.

    A report may be as old as a watch is long.
    """
    quiet_s = max(QUIET_S, row.until_s - row.at_s)
    usual_s = USUAL_STEPS / rate if rate else 0.0
    over = beat.heard_s >= row.until_s + quiet_s + WATCH_S
    silent_s = beat.heard_s - beat.at_s
    return over and beat.at_s < row.until_s and silent_s >= max(quiet_s, usual_s) + WATCH_S


def _is_to_return(job: Job) -> bool:
    malleable = job.spec.request.malleable if job.spec is not None else None
    return malleable is not None and malleable.requeues_stalled
