"""A real PBS by its commands: one batched look a cycle, one qalter for each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pliant.batch import HELD_FOR_SHAPE, Change, Ended
from pliant.batch.clients import Runs
from pliant.batch.pbs.ended import History
from pliant.batch.pbs.fences import Fences
from pliant.batch.pbs.handing import Handing
from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.jobs import HELD, LATER, job_of
from pliant.batch.pbs.queries import Queries
from pliant.batch.pbs.server_rows import ServerRow
from pliant.batch.pbs.site import Site
from pliant.batch.pbs.snapshot import snapshot_of
from pliant.batch.pbs.update import Words, carries, shape_words, token_words, unchanged
from pliant.batch.pbs.vnodes import NO_NAMES, Names
from pliant.cycle import kept_within_limits
from pliant.errors import BadAnswer, BatchError, Refused, TooLate, Unavailable
from pliant.filter.pbs.fences import number_of
from pliant.filter.pbs.said import NO_COLOCATE
from pliant.handover import HandOver, Scene, Step
from pliant.model import Job, JobState, Snapshot, Spec
from pliant.plan import Mark

STAYS_SO = (
    "PBS lets nobody change what a job says that runs; `qalter -r n {}` keeps Pliant from changing"
    " it, and PBS from requeueing it"
)


NOT_AGAIN = "its owner lets PBS not requeue it (qalter -r n)"


class Pbs:
    """The batch system of a PBS server; safe to call from several threads."""

    def __init__(
        self,
        commands: Runs,
        clock: Callable[[], float] = time.time,
        names: Names = NO_NAMES,
        *,
        fences: Path | None = None,
    ) -> None:
        """``clock`` counts seconds since the epoch.

        ``names``: those of the site's resources.
        ``fences``: the file by which the hooks are told of them; None: nobody is.
        """
        self._commands, self._clock = commands, clock
        self._queries = Queries(commands, clock, names)
        self._handing = Handing(commands, self._queries, clock, Fences(fences, clock))
        self._history = History(commands)
        self._rows: Mapping[str, JobRow] = {}  # of the last look
        self._site: Site | None = None
        self._lock = threading.Lock()

    # --- look ------------------------------------------------------------------------------

    def server(self) -> ServerRow:
        """Return what the server says.

        Raises Unavailable, BadAnswer.
        """
        return self._queries.server()

    def forget_site(self) -> None:
        """Read queues and server again in the next look."""
        self._queries.forget_site()

    def observe(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises Unavailable, BadAnswer.
        """
        try:
            now_s = self._clock()
            rows, site = self._queries.look()
        except (Unavailable, BadAnswer):
            self._queries.forget_site()
            raise
        with self._lock:
            self._rows, self._site = {row.id: row for row in rows}, site
        self._handing.release(rows)
        self._handing.tend()
        return kept_within_limits(snapshot_of(rows, site, now_s))

    def ended(self) -> list[Ended]:
        """Return the flagged jobs that have ended since this was asked last.

        Raises Unavailable; BadAnswer where the server itself is not understood.
        """
        return self._history.ended(self._known_site(), self._clock())

    # --- change ----------------------------------------------------------------------------

    def change(self, changes: Sequence[Change]) -> list[BatchError | None]:
        """Make several changes with one look before and one after; return what went wrong.

        Raises Unavailable where PBS is away.
        """
        site, seen = self._known_site(), self._rows
        before = self._again()
        errors: list[BatchError | None] = []
        for one in changes:
            now = before.get(one.job.id)
            errors.append(self._change(one, seen.get(one.job.id), now, site))
        sent = [one for one, error in zip(changes, errors, strict=True) if error is None]
        if not sent:
            return errors
        after = self._again()
        for at, one in enumerate(changes):
            row = after.get(one.job.id)
            taken = row is None or carries(row, one.shape, one.spec, site)
            if errors[at] is None and not taken:
                words = "PBS took the change and did not make it"
                kind: type[Refused] = Refused
                if row is not None and not row.waits:
                    words, kind = "it started meanwhile as it was", TooLate
                errors[at] = _refused(one, words, kind)
        self._queries.kick()
        return errors

    def _change(
        self, one: Change, seen: JobRow | None, now: JobRow | None, site: Site
    ) -> BatchError | None:
        if now is None or not now.waits:
            return _refused(one, "it does not wait any more", TooLate)
        if seen is None or not unchanged(seen, now):
            return _refused(one, "it was changed since it was last looked at; its owner wins")
        try:
            self._qalter(now.id, shape_words(now, one.job, one.shape, one.spec, site))
        except Refused as error:
            return _refused(one, str(error))
        return None

    def annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        """Let a job, as it is now, say what ``says`` returns, and change nothing else.

        Return it as it is with that. Raises Refused.
        """
        site, row = self._known_site(), self._again().get(job.id)
        waits = job.state is JobState.WAITING
        if row is None or row.waits is not waits:
            raise Refused(f"job {job.id}: it does not {'wait' if waits else 'run'} any more")
        now = job_of(row, site)
        spec = says(now)
        colocate = spec.request.colocate
        if colocate is not None and not (now.spec and now.spec.request.colocate is colocate):
            raise Refused(f"job {job.id}: {NO_COLOCATE}")
        try:
            words = token_words(spec)
            self._qalter(row.id, words)
        except Refused as error:
            words = str(error) if waits else STAYS_SO.format(number_of(job.id))
            raise Refused(f"job {job.id}: {words}") from None
        name, _, token = words[1].partition("=")
        return job_of(replace(row, resources={**row.resources, name: token}), site)

    def mark(self, marks: Sequence[Mark]) -> list[BatchError | None]:
        """Refuse all: PBS's jobs share a node without being marked."""
        return [Refused(f"job {mark.job.id}: PBS has no such mark") for mark in marks]

    def unmark(self) -> dict[str, str]:
        """Return what came of each job's mark: none has one."""
        return {}

    def release(self) -> dict[str, str]:
        """Return what came of each job's place: none is given one, and fences end by themselves."""
        return {}

    def rescue(self, job: Job) -> None:
        """Give a job its own shape back that can never run as the one that we set.

        Raises Refused.
        """
        spec = job.spec
        if job.reason != HELD_FOR_SHAPE or spec is None or spec.own is None or spec.set is None:
            raise Refused(f"job {job.id}: it does not wait for a shape that Pliant set")
        site, row = self._known_site(), self._again().get(job.id)
        if row is None or not row.waits:
            raise Refused(f"job {job.id}: it does not wait any more")
        back = replace(spec, set=None)
        job = replace(job, footprint=spec.footprint or job.footprint)
        try:
            self._qalter(row.id, shape_words(row, job, spec.own, back, site))
        except Refused as error:
            raise Refused(f"job {job.id}: {error}") from None
        self._queries.kick()

    # --- hand over -------------------------------------------------------------------------

    def scene(self, over: HandOver, job: Job) -> Scene:
        """Return what is seen of a hand-over now.

        Raises Unavailable, BadAnswer.
        """
        return self._handing.scene(over, job, self._known_site())

    def step(self, step: Step, over: HandOver, job: Job) -> None:
        """Do one step of it.

        Raises Refused, Unavailable.
        """
        self._handing.do(step, over, job, self._known_site())

    def must_go_back(self, job: Job) -> None:
        """Raise Refused where a job that has saved would not come back, or not start again.

        Or where others could not be kept out of its place.
        """
        try:
            row = self._again().get(job.id)
            stopped = self._queries.why_none_starts(job.partitions[0])
        except (Unavailable, BadAnswer) as error:
            raise Refused(
                f"job {job.id}: PBS does not say whether it would start: {error}"
            ) from None
        if row is not None and (row.begin_s or row.holds or not row.rerunable):
            later = HELD if row.holds else LATER
            raise Refused(f"job {job.id}: {later if row.rerunable else NOT_AGAIN}")
        why = self._queries.no_way_back() or stopped
        if why:
            self._queries.forget_site()  # so that policies know of it, and of its end
            raise Refused(why)
        self._handing.must_keep_out()

    def trouble(self) -> str:
        """Return what is wrong with PBS's own part in hand-overs; "" for nothing."""
        return self._queries.stranded

    def before_end(self, over: HandOver, job: Job) -> None:
        """Keep others out of what a job is about to give up.

        Raises Unavailable, BadAnswer.
        """
        self._handing.before_end(over, job, self._known_site())

    def fences(self) -> Mapping[str, float]:
        """Return when each fence ends that stands now, by job."""
        return self._handing.fences()

    def _qalter(self, job_id: str, words: Words) -> None:
        answer = self._commands.run(("qalter", *words, job_id))
        if answer.status:
            raise Refused(answer.words)

    def _again(self) -> Mapping[str, JobRow]:
        return {row.id: row for row in self._queries.jobs()}

    def _known_site(self) -> Site:
        with self._lock:
            if self._site is not None:
                return self._site
        self.observe()
        assert self._site is not None  # noqa: S101 - as it has just been read
        return self._site


def _refused(one: Change, words: str, kind: type[Refused] = Refused) -> Refused:
    return kind(f"job {one.job.id} to {one.shape}: {words}")
