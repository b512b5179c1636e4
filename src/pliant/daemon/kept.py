"""Who is to stay as it is, and who has outgrown the place that is kept for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pliant.handover import OURS
from pliant.model import Job, Snapshot


def unwanted(snapshot: Snapshot, acts_on: Callable[[Job], bool]) -> Callable[[str, str], bool]:
    """Return what says whether a job is to stay as it is, or its guest has no need of its room.

    It is asked with both their ids; "" where there is no guest.
    """
    ids = [job.id for job in snapshot.waiting if job.eligible and job.is_trial]
    guests = {"", *ids, *(name.partition("_")[0] for name in ids)}  # an array's last task
    stay = {job.id for job in snapshot.running if _is_to_stay(job) or not acts_on(job)}
    return lambda job_id, guest: job_id in stay or guest not in guests


def _is_to_stay(job: Job) -> bool:
    """Whether its owner has said so since, or it would not come back."""
    pinned = job.spec is not None and job.spec.pinned
    return bool(job.frozen) or pinned or not job.requeues


class Outgrown:
    """Remembers how long jobs may run, from their runs to the wait between two of them."""

    def __init__(self) -> None:
        """Nothing is known yet: of jobs that wait now only the size is looked at."""
        self._limits_s: dict[str, int] = {}

    def looked(self, snapshot: Snapshot) -> Iterator[Job]:
        """After each look: yield who waits with a pin of ours, and was made larger since."""
        limits_s = self._limits_s
        there = {job.id for job in snapshot.waiting}
        kept = {job_id: s for job_id, s in limits_s.items() if job_id in there}
        self._limits_s = kept | {job.id: job.time_limit_s for job in snapshot.running if job.spec}
        for job in snapshot.waiting:
            if job.priority in OURS and _is_more(job, limits_s.get(job.id, 0)):
                yield job


def _is_more(job: Job, limit_s: int) -> bool:
    """Whether a waiting job asks for more than it had, or than a trial job may have.

    ``limit_s``: the time limit of its last run, 0 where that is not known.
    """
    spec = job.spec
    expected = (spec.set or spec.own) if spec is not None else None
    larger = expected is not None and job.shape.amount > expected.amount
    return larger or job.ordinary != "" or (0 < limit_s < job.time_limit_s and not job.time_min_s)
