"""Which jobs are trial jobs: those that say so, as far as the site lets their users.

Those that run come first, then those that wait, in the order of the queue. One that is beyond its
user's cap is an ordinary job as long as it is so: it keeps what its owner said, and may become a
trial job when others have ended, when its time limit is shortened, or when the site allows more.
It is worked out anew from each snapshot: what was known at its submission may be old.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from pliant.model import Job, JobState, Snapshot, TrialCaps


def capped(snapshot: Snapshot, caps: TrialCaps) -> Snapshot:
    """Return the snapshot with each job that is beyond its user's cap made an ordinary one."""
    if not any(job.is_trial for job in (*snapshot.running, *snapshot.waiting)):
        return snapshot
    held: Counter[str] = Counter()
    running = tuple([_judged(job, caps, held) for job in snapshot.running])
    waiting = tuple([_judged(job, caps, held) for job in snapshot.waiting])
    return replace(snapshot, running=running, waiting=waiting)


def trials_held(snapshot: Snapshot) -> Counter[str]:
    """Return how many trial jobs each user has, tasks of arrays counted one by one."""
    held: Counter[str] = Counter()
    for job in (*snapshot.running, *snapshot.waiting):
        tasks = _counts(job)
        if tasks:
            held[job.user] += tasks
    return held


def _judged(job: Job, caps: TrialCaps, held: Counter[str]) -> Job:
    tasks = _counts(job)
    if not tasks:
        return job
    cap = caps.of(job.user)
    why = cap.beyond(_most_gpus(job), job.time_limit_s) or cap.too_many(held[job.user], tasks)
    if why:
        return replace(job, ordinary=why)
    held[job.user] += tasks
    return job


def _counts(job: Job) -> int:
    """As how many trial jobs it counts; one whose run is over is none any more."""
    if not job.is_trial or job.state is JobState.ENDING:
        return 0
    return job.tasks_waiting if job.state is JobState.WAITING else 1


def _most_gpus(job: Job) -> Fraction:
    own = job.spec.own if job.spec is not None else None
    return max(shape.amount for shape in (job.shape, *job.shapes, own or job.shape))
