"""What an owner leaves to policies of a running job: how often, and how soon again.

``--malleable=max-resizes=N``: once it was resized, or has made room, N times, no policy asks that
of it any more. ``min-run=TIME``: nor before a run that is not its first has worked for so long.
What its owner does by `pliant resize` is bound by neither.
"""

from __future__ import annotations

from math import inf

from pliant.model.jobs import Job
from pliant.model.requests import Malleable


def rests_until_s(
    malleable: Malleable | None, changes: int, restarts: int, works_s: float
) -> float:
    """Return until when no policy may resize or preempt a run; inf: for good, -inf: it may now.

    ``changes``: how often it was resized or has made room; ``works_s``: since when this run works.
    """
    if malleable is None:
        return -inf
    if malleable.max_resizes is not None and changes >= malleable.max_resizes:
        return inf
    return works_s + malleable.min_run_s if malleable.min_run_s and restarts else -inf


def job_rests_until_s(job: Job) -> float:
    """Return the same of a running job as pliantd knows it."""
    return rests_until_s(_malleable(job), job.changes, job.restarts, _works_s(job))


def why_rests(job: Job, now_s: float) -> str:
    """Return why no policy changes a running job at ``now_s``, by its owner's words; or ""."""
    malleable = _malleable(job)
    if malleable is None or job_rests_until_s(job) <= now_s:
        return ""
    if malleable.max_resizes is not None and job.changes >= malleable.max_resizes:
        done = "once" if job.changes == 1 else f"{job.changes} times"
        has = (
            f"it has been resized or made room {done}"
            if job.changes
            else "only `pliant resize` does"
        )
        return f"its owner's max-resizes={malleable.max_resizes}: {has}"
    worked = round(max(0.0, now_s - _works_s(job)) / 60)
    return (
        f"its owner's min-run={_time_text(malleable.min_run_s)}: this run has worked {worked} min"
    )


def _malleable(job: Job) -> Malleable | None:
    return job.spec.request.malleable if job.spec is not None else None


def _works_s(job: Job) -> float:
    return job.works_s or job.start_s


def _time_text(seconds: int) -> str:
    """Write a time as the grammar has it."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
