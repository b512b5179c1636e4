"""What the second door can be asked, one function for each verb.

Each takes the asker and the request's fields and returns an answer of :mod:`answers`, or raises
PliantError in one line. They run in threads of their own: they may wait for the batch system.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pliant import __version__
from pliant.cycle import explain
from pliant.daemon import answers as a
from pliant.daemon import rows
from pliant.daemon.cannot import beyond_reach, cannot_rows
from pliant.daemon.cycling import Cycling
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.history import cost_of, ended_answer, history_of
from pliant.daemon.monitors import Monitors
from pliant.daemon.named import find, ids_of, is_all_of, unknown
from pliant.daemon.overview import overview
from pliant.daemon.private import without_private
from pliant.daemon.renewal import renewed
from pliant.daemon.reporting import ReportAnswer, report_answer
from pliant.daemon.rights import Asker
from pliant.daemon.seen import Seen
from pliant.daemon.stalled import WHAT as STALLED
from pliant.daemon.under_way import resize_rows
from pliant.daemon.watched import MonitorsRow, TopAnswer
from pliant.errors import BadInput, Refused, Unavailable
from pliant.grammar import parse, parse_shape, quoted, request_text
from pliant.model import Job, JobState, Mode, Spec, shape_text

MOST_ROWS = 10_000
"""Of each kind in one answer; what was left out is counted in ``more``."""

MOST_QUEUED = 100
"""Of waiting jobs in an overview: each costs a look into the history."""

NEW_LOOK_S = 4.0
"""How long a question waits for a look that may show a job submitted just now."""

OLD_LOOK_S = 10.0
"""A look that is older may not show a job, which is said."""

_T = TypeVar("_T")
Verb = Callable[["Verbs", Asker, Mapping[str, str]], object]


@dataclass(slots=True)
class Verbs:
    """The second door's verbs over what the last cycle saw."""

    cycling: Cycling
    wake: Callable[[], None]
    clock: Callable[[], float]
    troubles: Callable[[], tuple[str, ...]]
    submissions: Callable[[], int]
    started_s: float
    stands_by: Callable[[], str] = str  # which other host acts, in words; "" for none
    monitors: Monitors | None = None
    refused_credentials: Callable[[], Mapping[str, int]] = dict  # by kind
    cluster: Callable[[], str] = str  # its name, "" where it is not known

    def answer(self, verb: str, fields: Mapping[str, str], asker: Asker) -> object:
        """Answer one request, with what the asker may see.

        Raises PliantError.
        """
        if verb not in _VERBS:
            raise BadInput(f"{quoted(verb)}: one of {', '.join(_VERBS)} is expected")
        answer = _VERBS[verb](self, asker, fields)
        seen = self.cycling.seen
        return without_private(answer, asker, seen.snapshot if seen else None)

    # What everybody may ask

    def status(self, asker: Asker, _fields: Mapping[str, str]) -> a.StatusAnswer:
        """How the daemon is."""
        cycling, seen = self.cycling, self.cycling.seen
        bare = a.StatusAnswer(
            version=__version__,
            host=socket.gethostname(),
            policy=cycling.policy.name,
            started_s=self.started_s,
            now_s=self.clock(),
            paused=cycling.store.paused,
            cycles=cycling.counts.cycles,
            submissions=self.submissions(),
            unanswered=cycling.remembering.counting.total().unanswered,
            updates=cycling.counts.updates,
            failures=cycling.counts.failures,
            troubles=self.troubles(),
            stands_by=self.stands_by(),
            monitors=self._monitors(asker),
            refused_credentials=self.refused_credentials(),
        )
        if seen is None:
            return bare
        snapshot = seen.snapshot
        return replace(
            bare,
            observed_s=snapshot.now_s,
            observe_took_s=seen.observe_s,
            cycle_took_s=seen.decide_s,
            deferred=seen.plan.deferred,
            waiting=len(snapshot.waiting),
            waiting_flagged=sum(job.spec is not None for job in snapshot.waiting),
            running=len(snapshot.running),
            running_flagged=sum(job.spec is not None for job in snapshot.running),
            partitions=tuple(rows.partition_rows(snapshot)),
        )

    def counts(self, asker: Asker, _fields: Mapping[str, str]) -> a.CountsAnswer:
        """What was counted since the start."""
        counting = self.cycling.remembering.counting
        tallies = [tally for tally in [*counting.since_start.values()] if tally.partition]
        shown = tuple(tallies) if asker.sees_partitions else ()
        return a.CountsAnswer(counting.total(), shown, *counting.resizes())

    def jobs(self, asker: Asker, _fields: Mapping[str, str]) -> a.JobsAnswer:
        """The flagged jobs."""
        seen = self._seen()
        found = [job for job in rows.flagged(seen.snapshot) if asker.may_see(job)]
        shown, more = _most(found)
        jobs = self._rows(shown, seen, self._under_way(seen))
        return a.JobsAnswer(seen.snapshot.now_s, jobs, more)

    def top(self, asker: Asker, _fields: Mapping[str, str]) -> TopAnswer:
        """The nodes, what runs there how fast, what is to change, and the queue."""
        seen = self._seen()
        under_way = self._under_way(seen)
        queue = [j for j in seen.snapshot.waiting if j.spec is not None and asker.may_see(j)]
        may_see = {job.id for job in rows.flagged(seen.snapshot) if asker.may_see(job)}
        heard = self.monitors.nodes() if self.monitors is not None else {}
        sharing = self.cycling.sharing
        beats = sharing.beats.last() if sharing is not None else {}
        return replace(
            overview(seen.snapshot, heard, beats, asker, self.clock(), most=MOST_ROWS),
            policy=seen.policy.name,
            paused=self.cycling.store.paused,
            troubles=self.troubles(),
            stands_by=self.stands_by(),
            queue=self._rows(queue[:MOST_QUEUED], seen, under_way),
            queued=len(queue),
            resizes=tuple(row for job, row in under_way.items() if job in may_see),
        )

    def plan(self, asker: Asker, _fields: Mapping[str, str]) -> a.PlanAnswer:
        """The last decision."""
        seen, paused = self._seen(), self.cycling.store.paused
        parts = [p for p in rows.parts(seen, self.cycling) if asker.may_see(p.of.job)]
        starts, more_starts = _most([p for p in parts if p.start])
        claims, more_claims = _most([p.claim for p in parts if p.claim])
        changes, more_changes = _most([p for p in parts if p.mold])
        return a.PlanAnswer(
            observed_s=seen.snapshot.now_s,
            policy=seen.policy.name,
            paused=paused,
            starts=tuple(rows.start_row(p.start, p.acting) for p in starts if p.start),
            claims=tuple(rows.claim_row(claim) for claim in claims),
            changes=tuple(rows.change_row(p.mold, p.acting) for p in changes if p.mold),
            deferred=seen.plan.deferred,
            more=more_starts + more_claims + more_changes,
        )

    def why(self, asker: Asker, fields: Mapping[str, str]) -> a.WhyAnswer:
        """Why a job waits, or runs as it does, or what became of it."""
        ended = self._ended(asker, fields)
        if ended is not None:
            return ended
        seen, job = self._job(asker, fields)
        decisions = rows.decision_rows(self.cycling.store.decisions(job.id, 10))
        found = explain(seen.snapshot, seen.policy, job.id)
        visible = [claim for claim in found.before if asker.may_see(claim.job)]
        return a.WhyAnswer(
            observed_s=seen.snapshot.now_s,
            job=rows.job_row(job, self.cycling, rows.kept(seen, self.cycling)),
            text=_stalled(job, decisions) or found.says,
            left=rows.why_left(job, self.cycling, found.left),
            shapes=tuple(rows.shape_row(tried) for tried in found.tried),
            before=tuple(rows.claim_row(claim) for claim in visible),
            decisions=decisions,
            cannot=cannot_rows(job, seen.snapshot.abilities, seen.snapshot.partitions),
            cost=cost_of(self.cycling.store, job.id),
        )

    def _ended(self, asker: Asker, fields: Mapping[str, str]) -> a.WhyAnswer | None:
        """Return what became of a job that the last look did not show; None where none is known."""
        name = _field(fields, "job")
        seen = self.cycling.seen
        if seen is None or find(seen.snapshot, asker, name) is not None:
            return None
        return ended_answer(self.cycling.store, asker, ids_of(name))

    def history(self, asker: Asker, fields: Mapping[str, str]) -> a.HistoryAnswer:
        """What became of a job, also of one that has ended."""
        store, name = self.cycling.store, _field(fields, "job")
        job = find(self._seen().snapshot, asker, name)
        ids = (job.id,) if job else ids_of(name)
        every = (history_of(store, asker, job_id, job) for job_id in ids)
        found = next((one for one in every if one is not None), None)
        if found is None:
            _, job = self._job(asker, fields)
            found = history_of(store, asker, job.id, job)
        if found is None:
            raise BadInput(f"{quoted(name)}: nothing is known of this job")
        return found

    def report(self, asker: Asker, fields: Mapping[str, str]) -> ReportAnswer:
        """Tell an administrator what Pliant did, and would have done, over a time."""
        asker.must_be_admin()
        since = _field(fields, "since")
        return report_answer(self.cycling, self.cluster(), since, self.clock())

    # What an owner may do

    def set(self, asker: Asker, fields: Mapping[str, str]) -> a.DoneAnswer:
        """Give a waiting job another request."""
        request = parse(_field(fields, "spec"))
        job = self._own_waiting(asker, fields)
        now = self._annotate(job, lambda now: renewed(now, request))
        says = f"job {job.id} now says {request_text(request)}{_all(job, fields)}"
        unpinned = "; it is no longer pinned" if job.spec is not None and job.spec.pinned else ""
        return a.DoneAnswer(says + unpinned + self._not_applied(now))

    def pin(self, asker: Asker, fields: Mapping[str, str]) -> a.DoneAnswer:
        """Leave a job as it is, one that runs too."""
        job = self._own(asker, fields)
        if job.spec is None:
            return a.DoneAnswer(f"job {job.id} says nothing to Pliant: it is left alone anyway")
        self._annotate(job, _pinned(job.spec, True))
        return a.DoneAnswer(f"job {job.id} stays as it is{_all(job, fields)}")

    def unpin(self, asker: Asker, fields: Mapping[str, str]) -> a.DoneAnswer:
        """Take a pin back."""
        job = self._own(asker, fields)
        if job.spec is None or not job.spec.pinned:
            return a.DoneAnswer(f"job {job.id} is not pinned")
        self._annotate(job, _pinned(job.spec, False))
        return a.DoneAnswer(f"job {job.id} may change again{_all(job, fields)}")

    def resize(self, asker: Asker, fields: Mapping[str, str]) -> a.DoneAnswer:
        """Ask a running malleable job for another shape."""
        shape = parse_shape(_field(fields, "shape"))
        job = self._own(asker, fields)
        if job.state is not JobState.RUNNING:
            raise BadInput(f"job {job.id} does not run: it is {job.state}")
        if self.cycling.elastic is None or not self.cycling.acts_on(job):
            why = "is paused" if self.cycling.store.paused else "does not act in its partition"
            raise Refused(f"job {job.id}: Pliant {why}")
        self.cycling.elastic.resize(job, shape, asker.name)
        return a.DoneAnswer(
            f"job {job.id} is asked for a checkpoint, to go on as {shape_text(shape)}: "
            f"pliant history {job.id} tells what comes of it"
        )

    # What an administrator may do

    def pause(self, asker: Asker, _fields: Mapping[str, str]) -> a.DoneAnswer:
        """Change no job until resumed."""
        return self._pause(asker, True, "paused: no job is changed until `pliant resume`")

    def resume(self, asker: Asker, _fields: Mapping[str, str]) -> a.DoneAnswer:
        """Change jobs again."""
        return self._pause(asker, False, "resumed")

    def forget(self, asker: Asker, fields: Mapping[str, str]) -> a.DoneAnswer:
        """Forget a user's jobs that have ended."""
        asker.must_be_admin()
        user = _field(fields, "user")
        jobs = self.cycling.store.jobs.forget_user(user)
        return a.DoneAnswer(f"{jobs} jobs of {user} that have ended are forgotten")

    def _pause(self, asker: Asker, paused: bool, message: str) -> a.DoneAnswer:
        asker.must_be_admin()
        trouble = self.cycling.store.pause(paused)
        self.wake()
        warning = f"; a restart would forget it ({trouble})" if trouble else ""
        return a.DoneAnswer(message + warning)

    # Helpers

    def _rows(
        self, jobs: Sequence[Job], seen: Seen, under_way: Mapping[str, ResizeRow]
    ) -> tuple[JobRow, ...]:
        kept = rows.kept(seen, self.cycling)
        return tuple(rows.job_row(job, self.cycling, kept, under_way) for job in jobs)

    def _under_way(self, seen: Seen) -> Mapping[str, ResizeRow]:
        return resize_rows(self.cycling.store.handovers(), seen.snapshot)

    def _monitors(self, asker: Asker) -> MonitorsRow:
        monitors = self.monitors
        return monitors.row(with_nodes=asker.admin) if monitors is not None else MonitorsRow()

    def _seen(self) -> Seen:
        if self.cycling.seen is None:
            why = self.stands_by() or "; ".join(self.troubles())
            raise Unavailable(why or "the first look is not done yet")
        return self.cycling.seen

    def _job(self, asker: Asker, fields: Mapping[str, str]) -> tuple[Seen, Job]:
        """Find the job named, in a new look if need be; one that may not be seen is not there.

        Raises BadInput.
        """
        name = _field(fields, "job")
        known = seen = self._seen()
        job = find(seen.snapshot, asker, name)
        if job is None:
            self.wake()
            seen = self.cycling.wait_for_look(seen, NEW_LOOK_S) or seen
            job = find(seen.snapshot, asker, name)
        if job is None:
            since_s = self.clock() - seen.snapshot.now_s if seen is known else 0.0
            old = f"; the last look was {since_s:.0f} s ago" if since_s >= OLD_LOOK_S else ""
            raise BadInput(unknown(seen.snapshot, asker, name) + old)
        return seen, job

    def _own(self, asker: Asker, fields: Mapping[str, str]) -> Job:
        _, job = self._job(asker, fields)
        asker.must_rule(job)
        return job

    def _own_waiting(self, asker: Asker, fields: Mapping[str, str]) -> Job:
        job = self._own(asker, fields)
        if job.state is not JobState.WAITING:
            raise BadInput(f"job {job.id} does not wait any more: it is {job.state}")
        return job

    def _not_applied(self, job: Job) -> str:
        """Say that what was set changes nothing yet, and why."""
        snapshot = self._seen().snapshot
        why = job.frozen or beyond_reach(job, snapshot.abilities, snapshot.partitions)
        if why:
            return f"; it is not applied: {why}"
        if self.cycling.store.paused:
            return "; Pliant is paused: it is not applied before `pliant resume`"
        acts_not = [p for p in job.partitions if self.cycling.config.mode(p) is not Mode.ENFORCE]
        if not acts_not:
            return ""
        modes = ", ".join(f"{name} ({self.cycling.config.mode(name)})" for name in acts_not)
        return f"; it is not applied in partition {modes}"

    def _annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        now = self.cycling.acting.annotate(job, says)
        self.wake()
        return now


def _pinned(seen: Spec, pinned: bool) -> Callable[[Job], Spec]:
    return lambda now: replace(now.spec or seen, pinned=pinned)


def _all(job: Job, fields: Mapping[str, str]) -> str:
    """Say that a task was named and its array is meant: waiting tasks are changed together."""
    named = _field(fields, "job")
    return "" if is_all_of(job, named) else f": all its waiting tasks, not {named} alone"


def _field(fields: Mapping[str, str], name: str) -> str:
    if not fields.get(name):
        raise BadInput(f"{name}= is missing")
    return fields[name]


def _most(items: list[_T]) -> tuple[list[_T], int]:
    return items[:MOST_ROWS], max(0, len(items) - MOST_ROWS)


_VERBS: dict[str, Verb] = {
    "status": Verbs.status,
    "counts": Verbs.counts,
    "jobs": Verbs.jobs,
    "top": Verbs.top,
    "plan": Verbs.plan,
    "why": Verbs.why,
    "history": Verbs.history,
    "report": Verbs.report,
    "set": Verbs.set,
    "pin": Verbs.pin,
    "unpin": Verbs.unpin,
    "resize": Verbs.resize,
    "pause": Verbs.pause,
    "resume": Verbs.resume,
    "forget": Verbs.forget,
}


def _stalled(job: Job, decisions: Sequence[a.DecisionRow]) -> str:
    """Return what was said last of a running job's heartbeats that stopped or came again; "" none.

    Not of one that has been asked or requeued since.
    """
    last = decisions[0] if decisions and job.state is JobState.RUNNING else None
    return last.reason if last is not None and last.what == STALLED else ""
