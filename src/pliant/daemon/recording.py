"""Records what was decided of each job, and which shapes are left out for a while."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from pliant.cycle import molded_from
from pliant.daemon.journal import about_job
from pliant.daemon.seen import Seen
from pliant.model import Job, Shape, shape_text
from pliant.store import Decision, Store

log = logging.getLogger("pliant.cycle")


class Recording:
    """Writes decisions to the store; used from the cycle's thread."""

    def __init__(
        self, store: Store, clock: Callable[[], float], acts_on: Callable[[Job], bool]
    ) -> None:
        """``clock`` counts seconds since the epoch; ``acts_on``: whether we may change a job."""
        self._store, self._clock, self._acts_on = store, clock, acts_on
        self._noted: dict[str, tuple[str, str]] = {}  # what was last recorded, by job

    def refuse(
        self, job: Job, shape: Shape, for_s: float, reason: str, *, longer: bool = True
    ) -> None:
        """Leave a shape out for a while, each time for ``longer``."""
        until_s = self._store.refuse(job.id, shape, self._clock(), for_s, longer=longer)
        pause_s = round(until_s - self._clock())
        self.note(job, "refused", shape, f"{reason}; left out for {pause_s} s")

    def note(self, job: Job, what: str, shape: Shape, reason: str) -> None:
        self._store.decide([Decision(self._clock(), job.id, what, shape_text(shape), reason)])
        self._noted.pop(job.id, None)
        before, after = shape_text(job.shape), shape_text(shape)
        fields = about_job(job, *(("", "") if before == after else (before, after)))
        log.info("job %s: %s %s: %s", job.id, what, after, reason, extra=fields)

    def record(self, seen: Seen) -> None:
        """Keep each flagged job's decision where it is not the one recorded last."""
        fresh = []
        there = {job.id for job in (*seen.snapshot.waiting, *seen.snapshot.running)}
        self._noted = {job: noted for job, noted in self._noted.items() if job in there}
        for decision in self._decisions(seen):
            if self._noted.get(decision.job) != (decision.what, decision.shape):
                self._noted[decision.job] = (decision.what, decision.shape)
                fresh.append(decision)
        self._store.decide(fresh)

    def _decisions(self, seen: Seen) -> Iterator[Decision]:
        now_s = seen.snapshot.now_s
        for plan, acting in ((seen.plan, True), (seen.shadow, False)):
            for start in plan.starts:
                job = start.job
                if job.spec and self._acts_on(job) is acting and start.shape == job.shape:
                    words = f"{start.reason}{molded_from(job)}"
                    yield Decision(now_s, job.id, "start", shape_text(job.shape), words)
            for claim in plan.claims:
                if claim.job.spec and self._acts_on(claim.job) is acting:
                    shape = shape_text(claim.shape)
                    yield Decision(now_s, claim.job.id, "keep", shape, claim.reason)
        for mold in seen.shadow.actions:
            if not self._acts_on(mold.job):
                yield Decision(now_s, mold.job.id, "would", shape_text(mold.shape), mold.reason)
        for reshape in seen.shadow.reshapes:
            if not self._acts_on(reshape.job):
                shape = shape_text(reshape.shape)
                yield Decision(now_s, reshape.job.id, "would", shape, reshape.reason)
