"""Whether a job in a hand-over is still what it was asked as; else its owner wins. Pure."""

from __future__ import annotations

from pliant.batch.pbs.job_rows import JobRow
from pliant.handover import HandOver
from pliant.model import Job

AHEAD_S = 2.0
"""How far ahead a time to begin is set: PBS counts in whole seconds."""


def is_later_run(row: JobRow, over: HandOver) -> bool:
    """Whether a job that runs has started since its checkpoint, whatever its record counts."""
    return over.saved_s > 0 and row.start_s > over.saved_s


def is_same_run(row: JobRow, now: Job, job: Job, over: HandOver) -> bool:
    """Whether this is certainly the run that saved: by its start, its count and its shape.

    ``job``: as it was asked; ``now``: as ``row`` says.
    """
    started = 0 < row.start_s <= over.saved_s
    return started and row.restarts == over.run and now.shape == job.shape


def begins_by_others(row: JobRow, now_s: float) -> bool:
    """Whether somebody else lets a job begin later: our hook notes its time, ours is at once."""
    return row.begin_s > now_s + AHEAD_S and not row.begins_by_hook


def stands(row: JobRow, now: Job, job: Job, over: HandOver, now_s: float) -> bool:
    """Whether a job that is back says what it said when it was asked, or what we made of it.

    One that was moved to another queue does not, nor one that somebody else lets begin later.
    """
    if job.spec is None or now.partitions != job.partitions or over.shape not in now.shapes:
        return False
    if begins_by_others(row, now_s):
        return False
    if over.back_s:  # as far as it could be put back
        return True
    if now.spec == job.noted(over.shape):
        return True
    # only then do we write a time limit: PBS itself gives one to jobs that ask for a range; less
    # than it had is its owner's to say, and stands
    limits = not over.end_s or 0 < now.time_limit_s <= job.time_limit_s
    return limits and (now.shape, now.spec) == (job.shape, job.spec)
