"""A real Slurm, by commands or natively: one batched look a cycle, one update for each change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace

from pliant.batch import HELD_FOR_SHAPE, Change, Ended
from pliant.batch.slurm import marking
from pliant.batch.slurm.attempt import Attempt
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer, Runs
from pliant.batch.slurm.ended import EndedJobs
from pliant.batch.slurm.handing import Handing
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import running_job, waiting_job
from pliant.batch.slurm.native import Native, NativeQueries
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.request import asked
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.snapshot import nodes_of, snapshot_of, with_excluded
from pliant.batch.slurm.standby import stands_by
from pliant.batch.slurm.update import (
    Words,
    check_accounts,
    job_words,
    restoring,
    token_words,
    unchanged,
    update_words,
    wanted,
)
from pliant.cycle import kept_within_limits
from pliant.errors import BadAnswer, BatchError, Refused, StandsBy, TooLate, Unavailable
from pliant.grammar import put_token
from pliant.handover import HandOver, Scene, Step
from pliant.model import UNMARKED, Job, JobState, Snapshot, Spec
from pliant.plan import Mark


class Slurm:
    """The batch system of a Slurm cluster; safe to call from several threads."""

    def __init__(
        self,
        commands: Runs,
        clock: Callable[[], float] = time.time,
        here: str = "",
        native: Native | None = None,
        threads: Callable[[int], Executor] = ThreadPoolExecutor,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly.

        ``threads``: makes so many, for one look.

        ``native``: asks by the C library where it can (see native/); None: all by commands.

        ``here``: the name of this host, where nothing is to be seen while slurmctld runs on
        another one (see standby.py); "" looks whatever the host.
        """
        self._commands, self._clock, self._here = commands, clock, here
        self._native, self._threads = native, threads
        self._queries = (
            NativeQueries(native, commands, clock) if native else Queries(commands, clock)
        )
        self._handing = Handing(commands, self._queries, clock, monotonic)
        self._rows: Mapping[str, JobRow] = {}  # of the last look
        self._ended = EndedJobs()
        self._cluster: Cluster | None = None
        self._lock = threading.Lock()

    # --- look ------------------------------------------------------------------------------

    def site(self) -> Site:
        """Return what the site's configuration says; see :meth:`Queries.site`."""
        return self._queries.site()

    def forget_site(self) -> None:
        """Read the site's configuration and limits again in the next look."""
        self._queries.forget_site()

    def trouble(self) -> str:
        """Return what keeps jobs from being changed as they could be, in words; "" for nothing."""
        return self._queries.trouble

    def observe(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises Unavailable (StandsBy where another host's pliantd acts), BadAnswer.
        """
        try:
            site = self.site()
            self._check_acting(site)
            return self._observe(site)
        except (Unavailable, BadAnswer):
            self._queries.doubt_site()
            raise

    def _check_acting(self, site: Site) -> None:
        if not self._here or len(site.controllers) < 2:
            return
        other = stands_by(site.controllers, self._queries.ping(), self._here)
        if other:
            raise StandsBy(f"{self._here} stands by: slurmctld runs on {other}")

    def _observe(self, site: Site) -> Snapshot:
        ask = self._queries
        with self._threads(5) as pool:
            jobs, excluded = pool.submit(ask.jobs), pool.submit(ask.excluded)
            nodes, partitions = pool.submit(ask.nodes), pool.submit(ask.partitions)
            reservations = pool.submit(ask.reservations)
            now_s = self._clock()
            rows = ask.with_limits(with_excluded(jobs.result(), excluded.result()))
            cluster = Cluster(
                site.version,
                nodes.result(),
                partitions.result(),
                site.default_per_cpu_mib,
                site.preempts,
                site.user_top,
                site.stops_behind,
                site.ending_qos,
                site.late_s,
            ).as_before(self._cluster)
        places = ask.places(rows, cluster)
        with self._lock:
            self._rows = {row.key: row for row in rows}
            self._cluster = cluster
        snapshot = snapshot_of(rows, cluster, places, now_s)
        whole = replace(
            snapshot,
            abilities=replace(
                snapshot.abilities,
                limits_deny=site.limits.deny,
                limited_qos=site.limits.qos,
                least_qos=site.least_qos,
                pools=site.limits.pools,
                timed_qos=site.limits.timed_qos,
                timed_accounts=site.limits.timed_accounts,
                limits_of_all=site.limits_of_all,
                most=site.limits.most,
                caps=site.limits.caps,
                any_time_qos=site.limits.any_time_qos,
                above=site.above,
                qos_of=site.qos_of,
                waived=site.limits.waived,
                preempts=site.no_room,
            ),
            nodes=nodes_of(nodes.result().values(), rows, places, counts_memory=site.counts_memory),
            reservations=reservations.result(),
        )
        return kept_within_limits(whole)

    def ended(self) -> list[Ended]:
        """Return the flagged jobs that have ended and that slurmctld remembers yet.

        Raises Unavailable, BadAnswer.
        """
        return self._ended.of(self._queries.ended(), self._known_cluster())

    # --- change ----------------------------------------------------------------------------

    def change(self, changes: Sequence[Change]) -> list[BatchError | None]:
        """Make several changes with one look before and one after; return what went wrong.

        Raises Unavailable where Slurm is away.
        """
        cluster = self._known_cluster()
        ids = [change.job.id for change in changes]
        before = self._queries.again(ids)
        tries = [Attempt(change, self._rows.get(change.job.id), cluster) for change in changes]
        for one in tries:
            one.check(before)
        for one in tries:
            self._apply(one)
        after = self._queries.again([one.id for one in tries if one.sent])
        for one in tries:
            if one.sent:
                self._verify(one, after)
        return [one.error for one in tries]

    def annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        """Let a job, as it is now, say what ``says`` returns, and change nothing else.

        Return it as it is with that. Raises Refused; also where it has started or was requeued
        meanwhile, for what an owner says is meant for the job as that owner saw it.
        """
        row = self._queries.again([job.id]).get(job.id)
        waits = job.state is JobState.WAITING
        if row is None or row.waits is not waits:
            raise Refused(f"job {job.id}: it does not {'wait' if waits else 'run'} any more")
        cluster, now_s = self._known_cluster(), self._clock()

        def read(row: JobRow) -> Job:
            return waiting_job(row, cluster, now_s) if waits else running_job(row, cluster, None)

        now = read(row)
        spec = says(now)
        noted = replace(row, admin_comment=put_token(row.admin_comment, spec))
        then = read(noted)
        check_accounts(now, then)
        answer = self._update(row, token_words(row, spec))
        if answer.status:
            raise Refused(f"job {job.id}: {answer.words}")
        return then

    def mark(self, marks: Sequence[Mark]) -> list[BatchError | None]:
        """Let waiting jobs share their CPUs, or no longer; see marking.py.

        Raises Unavailable where Slurm is away.
        """
        before = self._queries.again([mark.job.id for mark in marks])
        errors = [self._mark(mark, before.get(mark.job.id)) for mark in marks]
        sent = [m.job.id for m, error in zip(marks, errors, strict=True) if error is None]
        after = self._queries.again(sent)
        for at, mark in enumerate(marks):
            row = after.get(mark.job.id)
            if errors[at] is None and row is not None and not marking.is_marked(row, mark.mark):
                errors[at] = Refused(f"job {mark.job.id}: its mark: it was not set")
        return errors

    def _mark(self, mark: Mark, now: JobRow | None) -> BatchError | None:
        try:
            row = marking.check(self._rows.get(mark.job.id), now)
            answer = self._update(row, marking.mark_words(row, mark.mark))
        except Refused as error:
            return Refused(f"job {mark.job.id}: its mark: {error}")
        return Refused(f"job {mark.job.id}: its mark: {answer.words}") if answer.status else None

    def unmark(self) -> Mapping[str, str]:
        """Take every mark of ours from the jobs that wait: Pliant is ending.

        Whoever gave it: it is found by the job's token. Return each job with what Slurm said, "" of
        those of which it could be taken. Raises Unavailable (StandsBy where another host's pliantd
        acts), BadAnswer.
        """
        self._check_acting(self.site())
        return {row.key: self._unmark(row) for row in marking.left_marks(self._queries.jobs())}

    def _unmark(self, row: JobRow) -> str:
        try:
            answer = self._update(row, marking.mark_words(row, UNMARKED))
        except Refused as error:
            return str(error)
        return answer.words if answer.status else ""

    def release(self) -> Mapping[str, str]:
        """Take back all that a hand-over would have taken back: pins, fences, and what was lent.

        For when no pliantd is to go on with them. Return each job with what Slurm said, "" of those
        of which it could be taken. Raises as :meth:`unmark`.
        """
        self._check_acting(self.site())
        left = self._handing.release(self._queries.jobs(), self._known_cluster())
        return {**left, **self.unmark()}

    def rescue(self, job: Job) -> None:
        """Give a job its own shape back, and its place, that Slurm holds for one we set.

        Where no node can ever hold a request, Slurm sets its Reason to BadConstraints and its
        priority to 0; it would wait for ever. Raises Refused.
        """
        spec = job.spec
        if job.reason != HELD_FOR_SHAPE or spec is None or spec.own is None or spec.set is None:
            raise Refused(f"job {job.id}: it is not held for a shape that Pliant set")
        row, seen = self._held_for_shape(job), self._rows.get(job.id)
        if row is None or seen is None or not unchanged(seen, row):
            raise TooLate(f"job {job.id}: it was changed since the last look; its owner wins")
        cluster = self._known_cluster()
        spec = replace(spec, set=None)
        job = replace(job, footprint=spec.footprint or job.footprint)  # that of its own shape
        now = asked(row, job.footprint, cluster.default_per_cpu_mib)
        then = wanted(job, spec.own or job.shape, spec, cluster)
        words = ("update", f"jobid={job_words(row)}", *update_words(row, now, then, spec))
        self._told(job, words)
        if held := self._held_for_shape(job):  # 22.05 frees it by the update
            self._told(job, ("release", job_words(held)))

    def _held_for_shape(self, job: Job) -> JobRow | None:
        """The row of a job that Slurm holds for its shape yet: what its owner holds is let be."""
        row = self._queries.again([job.id]).get(job.id)
        return row if row and row.waits and row.reason == HELD_FOR_SHAPE else None

    def _told(self, job: Job, words: Sequence[str]) -> None:
        answer = self._commands.run(("scontrol", *words))
        if answer.status:
            raise Refused(f"job {job.id}: {answer.words}")

    # --- hand over -------------------------------------------------------------------------

    def scene(self, over: HandOver, job: Job) -> Scene:
        """Return what is seen of a hand-over now.

        Raises Unavailable, BadAnswer.
        """
        return self._handing.scene(over, job, self._known_cluster())

    def step(self, step: Step, over: HandOver, job: Job) -> None:
        """Do one step of it.

        Raises Refused, Unavailable.
        """
        self._handing.do(step, over, job, self._known_cluster())

    def must_go_back(self, _job: Job) -> None:
        """Do nothing: Slurm itself requeues a job."""

    def before_end(self, _over: HandOver, _job: Job) -> None:
        """Do nothing: the job keeps its nodes until it is requeued, behind its fence."""

    def fences(self) -> Mapping[str, float]:
        """Return when each fence ends that stands now, by job.

        Raises Unavailable.
        """
        return self._handing.fences()

    def _known_cluster(self) -> Cluster:
        with self._lock:
            if self._cluster is not None:
                return self._cluster
        self.observe()
        assert self._cluster is not None  # noqa: S101 - callers see to it
        return self._cluster

    def _update(self, row: JobRow, words: Words) -> Answer:
        told = self._native.update(self.site(), row, words) if self._native else None
        if told is not None:
            return told
        return self._commands.run(("scontrol", "update", f"jobid={job_words(row)}", *words))

    def _apply(self, one: Attempt) -> None:
        words = one.call()
        if words is None:
            return
        try:
            answer = self._update(one.now, words)
        except Refused as error:
            one.error = error
            return
        one.sent = True
        one.words = answer.words if answer.status else ""

    def _verify(self, one: Attempt, after: Mapping[str, JobRow]) -> None:
        one.judge(after.get(one.id))
        if one.half_applied:
            self._update(one.now, restoring(one.now, one.asked_before))
            back = self._queries.again([one.id]).get(one.id)
            one.judge_restored(back)
