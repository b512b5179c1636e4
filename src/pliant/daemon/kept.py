"""Who is to stay as it is, and who has outgrown the place that is kept for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from pliant.daemon.guests import apart, first_task
from pliant.handover import OURS
from pliant.model import ARRAY_LIMIT, Job, Snapshot, asks_otherwise


class Unwanted(Protocol):
    """Says whether a job is to stay as it is, or its guest has no need of its room."""

    def __call__(self, job_id: str, guest: str = "", asks: Job | None = None, /) -> bool:
        """``asks``: the guest as it waited when room was decided on for it; None: not known."""


def unwanted(snapshot: Snapshot, acts_on: Callable[[Job], bool]) -> Unwanted:
    """Return what says so by a look."""

    def has_need(guest: str, asks: Job | None) -> bool:
        job = next((one for one in apart(snapshot, (guest,)).waiting if one.id == guest), None)
        if job is None or not job.eligible or job.reason == ARRAY_LIMIT:
            return False
        if first_task(job) is not job:  # a whole array, which 0.1.0 made room for, is none
            return False
        return job.is_trial and not asks_otherwise(job, asks or job)

    stay = {job.id for job in snapshot.running if _is_to_stay(job) or not acts_on(job)}

    def is_unwanted(job_id: str, guest: str = "", asks: Job | None = None, /) -> bool:
        return job_id in stay or (guest != "" and not has_need(guest, asks))

    return is_unwanted


def _is_to_stay(job: Job) -> bool:
    """Whether its owner has said so since, or lets it go no more, or it would not come back."""
    lets = job.spec is not None and job.spec.request.is_elastic and not job.spec.pinned
    return bool(job.frozen) or not lets or not job.requeues


class Outgrown:
    """Knows what those had that wait with a pin of ours, and who asks for something else now.

    A pin is before all other jobs. So it is kept for what a job had, where it had it: whoever wants
    more than that, something elsewhere, or to begin later, has the place in the queue that is its
    own.
    """

    def __init__(self, asked: Callable[[str], Job | None]) -> None:
        """``asked``: a job as it ran when it was last asked, by its id; None: not known."""
        self._asked = asked
        self._had: dict[str, Job] = {}  # what waits, as it was before it was pinned

    def looked(self, snapshot: Snapshot) -> Iterator[Job]:
        """After each look: yield who waits with a pin of ours, and asks for something else."""
        flagged = [job for job in snapshot.waiting if job.spec or _is_pinned(job)]
        self._had = {job.id: self._before(job) if _is_pinned(job) else job for job in flagged}
        for job in flagged:
            if _is_pinned(job) and asks_otherwise(job, self._had[job.id]):
                yield job

    def within(self, job: Job) -> Job:
        """Return a waiting job with no shape that is more than it is pinned for."""
        if not _is_pinned(job):
            return job
        most = self._before(job).shape.amount
        kept = tuple(shape for shape in job.shapes if shape.amount <= most)
        return replace(job, shapes=kept or (job.shape,))

    def _before(self, job: Job) -> Job:
        """What a pinned job had. While it ran one of its partitions was shown, now all are."""
        known = self._had.get(job.id)
        if known is not None:
            return known
        asked = self._asked(job.id)
        if asked is None or not set(asked.partitions) <= set(job.partitions):
            return asked or job
        return replace(asked, partitions=job.partitions)


def _is_pinned(job: Job) -> bool:
    return job.priority in OURS
