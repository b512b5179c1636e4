"""Which changes of running jobs are under way, and how far each is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from pliant.daemon.flagged import ResizeRow
from pliant.model import Job, JobState, Snapshot
from pliant.store import HandOverRow


def resize_rows(handovers: Iterable[HandOverRow], snapshot: Snapshot) -> dict[str, ResizeRow]:
    """Return what is under way, by job; jobs that are not there any more are left out."""
    jobs = {job.id: job for job in (*snapshot.waiting, *snapshot.running)}
    return {row.job: _row(row, jobs[row.job]) for row in handovers if row.job in jobs}


def _row(row: HandOverRow, job: Job) -> ResizeRow:
    return ResizeRow(
        id=job.id,
        user=job.user,
        before=row.before,
        after=row.after,
        guest=f"job {row.guest}" if row.guest else "",
        step=_step(row, job),
        since_s=row.at_s,
        until_s=row.until_s if not row.saved_s else 0.0,
        reason=row.reason,
    )


def _step(row: HandOverRow, job: Job) -> str:
    if not row.saved_s:
        return "saving"
    if job.state is not JobState.RUNNING:
        return "requeued"
    return "saved" if job.restarts <= row.run else "started"
