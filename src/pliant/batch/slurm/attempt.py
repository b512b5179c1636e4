"""One change under way: what was seen, what is sent, what came of it. Nothing is run here."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.batch import Change
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.request import Asked, asked
from pliant.batch.slurm.update import (
    Words,
    as_started,
    by_another,
    shortfall,
    unchanged,
    update_words,
    wanted,
)
from pliant.errors import BatchError, NotNow, Refused, TooLate

NO_INDEX = "the DB index is being set"
"""In what Slurm says of a job that slurmdbd has not taken note of yet, because it is away."""


class Attempt:
    """One change under way: checked, called, sent by others, judged by what was read back."""

    def __init__(self, change: Change, seen: JobRow | None, cluster: Cluster) -> None:
        self.change, self.seen, self.cluster = change, seen, cluster
        self.id = change.job.id
        self.error: BatchError | None = None
        self.words = ""  # Slurm's complaint
        self.sent = False
        self.half_applied = False
        self._now: JobRow | None = None
        self._then: Asked | None = None

    @property
    def now(self) -> JobRow:
        """The job's row just before the update."""
        assert self._now is not None  # noqa: S101 - callers see to it
        return self._now

    @property
    def asked_before(self) -> Asked:
        """What it asked for then."""
        return self._asks(self.now)

    def _asks(self, row: JobRow) -> Asked:
        return asked(row, self.change.job.footprint, self.cluster.default_per_cpu_mib)

    def check(self, before: Mapping[str, JobRow]) -> None:
        """Refuse where the job is not any more as it was observed: its owner wins."""
        now = self._now = before.get(self.id)
        if now is None or not now.waits:
            self._refuse("it does not wait any more", TooLate)
        elif self.seen is None or not unchanged(self.seen, now):
            self._refuse("it was changed since it was last looked at; its owner wins")

    def call(self) -> Words | None:
        """Return the update to make; None where the change is refused already."""
        if self.error is not None:
            return None
        job, shape, spec = self.change.job, self.change.shape, self.change.spec
        try:
            self._then = wanted(job, shape, spec, self.cluster)
            return update_words(self.now, self.asked_before, self._then, spec)
        except BatchError as error:
            self._refuse(str(error))
            return None

    def judge(self, after: JobRow | None) -> None:
        """Compare what was read back with what was wanted."""
        assert self._then is not None  # noqa: S101 - callers see to it
        if after is None:
            self._refuse(self.words or "it is gone", TooLate)
            return
        found = self._asks(after)
        if not after.waits:
            if not as_started(found, self._then):
                words = f"it started meanwhile as it was ({self.words or 'no change'})"
                self._refuse(words, TooLate)
            return
        wrong = shortfall(found, self._then)
        if not wrong and not self.words:
            return
        if by_another(found, (self.asked_before, self._then)):
            self._refuse("it was changed at the same time; its owner wins")
            return
        self._refuse(self.words or f"Slurm took the change and did not make it: {wrong}")
        self.half_applied = not unchanged(self.now, after)

    def judge_restored(self, back: JobRow | None) -> None:
        """Say so where the job could not be brought back to what it was."""
        if back is None or not back.waits:
            return
        left = shortfall(self._asks(back), self.asked_before)
        if left:
            self._refuse(f"{self.words or 'refused'}; it could not be put back: {left}")

    def _refuse(self, words: str, kind: type[Refused] = Refused) -> None:
        kind = NotNow if NO_INDEX in words else kind
        self.error = kind(f"job {self.id} to {self.change.shape}: {words}")
