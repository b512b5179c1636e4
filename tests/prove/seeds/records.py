"""What happened to each job, and whether the history that pliantd has stored says the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from pliant.grammar import parse_shape
from pliant.handover import SETTLE_S, Outcome
from prove.fake_slurm import Record, array_task, called


@dataclass(slots=True)
class Ran:
    """A run of a job; ``was_forgotten``: Slurm took it for the one before until it ended."""

    run: int
    gpus: int
    start_s: float
    end_s: float = 0.0
    was_forgotten: bool = False


@dataclass(slots=True)
class Known:
    """What happened to one job; an array as a whole has no runs."""

    says: str
    submit_s: float
    is_array: bool = False
    state: str = ""
    run: int = 0
    told: int = 0  # the run by which Slurm calls the last one: it may have forgotten that
    runs: list[Ran] = field(default_factory=list)


class Records:
    """What happened, by what users call a job: a task of an array by its own name."""

    def __init__(self) -> None:
        self.jobs: dict[str, Known] = {}

    def submitted(self, job: Record, says: str) -> None:
        array, _, _ = array_task(job)
        self.jobs[array or called(job)] = Known(says, job.submit_s, is_array=array != "")

    def _known(self, job: Record) -> Known | None:
        array, tasks, _ = array_task(job)
        if tasks.isdecimal() and array in self.jobs:
            whole = self.jobs[array]
            return self.jobs.setdefault(called(job), Known(whole.says, whole.submit_s))
        return None if array else self.jobs.get(called(job))

    def changed(self, before: Record | None, job: Record) -> None:
        """Follow a job."""
        known = self._known(job)
        if known is None or before is None:
            return
        if before.state == job.state:
            if job.state == "RUNNING" and job.run < before.run:
                known.runs[-1].was_forgotten = True
            return
        # One that ends for good as it goes back to the queue has the number of its next run.
        ends = job.is_over and before.state == "COMPLETING" and known.runs
        known.state = job.state if job.is_over else ""
        known.run, known.told = known.runs[-1].run if ends else job.run, job.run
        if job.state == "RUNNING":
            if known.runs and known.runs[-1].run == job.run:  # slurmctld had forgotten that
                del known.runs[-1]
            known.runs.append(Ran(job.run, job.gpus * job.nodes, job.start_s))
        elif job.state == "FAILED" and before.waits:  # it was killed at its start
            known.runs.append(Ran(job.run, job.gpus * job.nodes, job.start_s, job.end_s))
        elif known.runs and not known.runs[-1].end_s and not job.has_gpus:
            known.runs[-1].end_s = job.submit_s if job.waits else job.end_s

    def differences(
        self,
        file: Path,
        requeued: Collection[tuple[int, int]],
        undisturbed: Collection[tuple[int, int]],
        stood: Collection[tuple[float, float]],
    ) -> Iterator[str]:
        """Yield what the history says otherwise; ``requeued``: the runs that pliantd has ended.

        ``undisturbed``: those of which what was asked must have been made. ``stood``: from when to
        when pliantd stood still.
        """
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        try:
            yield from self._of_jobs(db)
            yield from self._of_runs(db, stood)
            yield from self._of_hand_overs(db, undisturbed, stood)
            yield from _of_requeued(db, requeued)
            yield from self._of_counts(db)
        finally:
            db.close()

    def _flagged(self) -> dict[str, Known]:
        some = self.jobs.items()
        return {job: known for job, known in some if known.says and not known.is_array}

    def _of_jobs(self, db: sqlite3.Connection) -> Iterator[str]:
        rows = {
            job: (state, exit_, run)
            for job, state, exit_, run in db.execute("SELECT job, state, exit, run FROM jobs")
            if job not in self.jobs or not self.jobs[job].is_array
        }
        for number, known in self._flagged().items():
            expected = ("ended", known.state, known.run)
            found = rows.pop(number, ("nothing", "", 0))
            # of one that is cancelled as it goes back Slurm says the number of its next run, and
            # who has seen nothing of it before cannot tell
            runs = (known.run, min(known.run, known.told), known.run + (known.state == "CANCELLED"))
            if found[:2] != expected[:2] or (known.runs and found[2] not in runs):
                yield f"job {number}: history says {found}, not {expected}"
        for number in rows:
            yield f"job {number}: history has it, and it says nothing to Pliant"

    def _of_runs(
        self, db: sqlite3.Connection, stood: Collection[tuple[float, float]]
    ) -> Iterator[str]:
        rows = {
            (job, run): (gpus, start_s, end_s)
            for job, run, gpus, start_s, end_s in db.execute(
                "SELECT job, run, gpus, start_s, end_s FROM runs"
            )
        }
        for number, known in self._flagged().items():
            for ran in known.runs:
                found = rows.pop((number, ran.run), None)
                if found is None:
                    seen = ran.end_s - ran.start_s > UNSEEN_S and not _was_unseen(ran, stood)
                    if seen and not ran.was_forgotten:
                        yield f"job {number}: history knows nothing of {ran}"
                elif (found[0], found[1]) != (ran.gpus, ran.start_s) or not found[2]:
                    yield f"job {number}: history says {found} of {ran}"
        # wrappers speak of jobs that say nothing in a partition that is off
        for (number, run), (_, start_s, _) in rows.items():
            if all(ran.run != run and ran.start_s != start_s for ran in self.jobs[number].runs):
                yield f"job {number}: history has a run {run}, which there was not"

    def _of_hand_overs(
        self,
        db: sqlite3.Connection,
        undisturbed: Collection[tuple[int, int]],
        stood: Collection[tuple[float, float]],
    ) -> Iterator[str]:
        """What was done is what happened; what was begun has ended, and was made undisturbed.

        A run may be over before pliantd has seen it, and may have been asked in vain before. One
        that came and went while it stood still is to it a start that has failed.
        """
        said = "SELECT job, run, after, done_s, outcome FROM handovers ORDER BY id"
        every = db.execute(said).fetchall()
        last = {(job, run): number for number, (job, run, *_) in enumerate(every)}
        for number, (job, run, after, done_s, outcome) in enumerate(every):
            if not done_s:
                yield f"job {job}: a hand-over of run {run} has no end"
            later = [one for one in self.jobs[job].runs if one.run > run]
            runs = [one for one in later if not _was_unseen(one, stood)]
            must_be = (int(job), run) in undisturbed and last[job, run] == number
            if must_be and outcome not in (Outcome.DONE.value, Outcome.GONE.value):
                yield f"job {job}: nothing went wrong, and run {run} did not become {after}: {outcome}"
            if (must_be or outcome == Outcome.DONE.value) and runs:
                became = next(filter(_has_settled, runs), runs[-1]).gpus
                if became != parse_shape(after).amount:
                    yield f"job {job}: it became {became} after run {run}, not {after}"

    def _of_counts(self, db: sqlite3.Connection) -> Iterator[str]:
        told = db.execute("SELECT sum(answered + unanswered) FROM hours").fetchone()[0]
        submitted = sum("_" not in job and known.says != "" for job, known in self.jobs.items())
        if told != submitted:
            yield f"history counts {told} submissions, not {submitted}"


def _was_unseen(ran: Ran, stood: Collection[tuple[float, float]]) -> bool:
    return any(from_s <= ran.start_s and 0 < ran.end_s <= until_s for from_s, until_s in stood)


def _has_settled(ran: Ran) -> bool:
    """Whether a run was more than a start that something has ended."""
    return not ran.end_s or ran.end_s - ran.start_s > SETTLE_S


def made(file: Path) -> int:
    """Return of how many hand-overs the history says that all was done."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        done = db.execute("SELECT count(*) FROM handovers WHERE outcome = ?", (Outcome.DONE.value,))
        return int(done.fetchone()[0])


def _of_requeued(db: sqlite3.Connection, requeued: Collection[tuple[int, int]]) -> Iterator[str]:
    """Whether each run that pliantd has ended is in the history as one that had saved."""
    rows = db.execute("SELECT job, run FROM handovers WHERE saved_s > 0")
    for number, run in sorted(set(requeued) - {(int(job), run) for job, run in rows}):
        yield f"job {number}: history does not say why its run {run} was ended"


UNSEEN_S = 75.0
"""A shorter run may have come and gone between two looks, or while the head node was away."""
