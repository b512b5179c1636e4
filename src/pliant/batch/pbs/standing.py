"""Whether a job in a hand-over is still what it was asked as; else its owner wins. Pure."""

from __future__ import annotations

from pliant.batch.pbs.rows import JobRow
from pliant.handover import GIVE_UP_S, HandOver
from pliant.model import Job


def is_later_run(row: JobRow, over: HandOver) -> bool:
    """Whether a job that runs has started since its checkpoint, whatever its record counts."""
    return over.saved_s > 0 and row.start_s > over.saved_s


def is_same_run(row: JobRow, now: Job, job: Job, over: HandOver) -> bool:
    """Whether this is certainly the run that saved: by its start, its count and its shape.

    ``job``: as it was asked; ``now``: as ``row`` says.
    """
    started = 0 < row.start_s <= over.saved_s
    return started and row.restarts == over.run and now.shape == job.shape


def begins_by_us(row: JobRow, over: HandOver) -> bool:
    """Whether a time to begin may be ours: we never let a job begin later than we wait for it."""
    return 0 < row.begin_s <= over.saved_s + GIVE_UP_S


def stands(row: JobRow, now: Job, job: Job, over: HandOver) -> bool:
    """Whether a job that is back says what it said when it was asked, or what we made of it.

    One that was moved to another queue does not, nor one that somebody else lets begin later.
    """
    if job.spec is None or now.partitions != job.partitions or over.shape not in now.shapes:
        return False
    if row.begin_s and not begins_by_us(row, over):
        return False
    if now.shape == over.shape and now.spec == job.noted(over.shape):
        return True
    # only then do we write a time limit: PBS itself gives one to jobs that ask for a range
    limits = not over.end_s or now.time_limit_s == job.time_limit_s
    return limits and (now.shape, now.spec) == (job.shape, job.spec)
