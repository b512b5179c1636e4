"""A hand-over's steps on a real Slurm: what is seen of it, and one command for each step.

Measured on 22.05.8 and 24.11.5; each line is a trap:

- The fence is not named by the job: a job of a reservation is killed at its end.
- `update Nodes=` puts it around other nodes in one call, and starts a pass of the scheduler as its
  deletion does (22.05: within 0.4 to 1 s).
- Without OVERLAP a second fence on a node is refused, and that of a node in another reservation.
- An update while the job is COMPLETING keeps a begin time only where that is later than Slurm's
  own; one that is PENDING again keeps any.
- A begin time before its own now is read by scontrol as now: with a clock that is ahead no job
  begins earlier than that.
- Slurm's clients read and print times here as UTC (see commands.py), in whole seconds.
- A time limit below TimeMin is refused; both in one call are taken, and TimeMin is only to be
  changed on a job that waits. With TimeMin left below, backfill starts the job with no more (22.05:
  10 of 29 minutes); with TimeMin = TimeLimit its owner could not lower the limit once it runs. So a
  job has no TimeMin from its requeue to its start.
- A time limit is in whole minutes; EndTime= of a running job is taken to the second, and stays with
  that run: once it runs again a job is given the end that it had, else each resize would cost time.
- Of a call that is refused nothing may be applied, or a part (22.05: nothing of one that names
  gres= first): the begin time of a job that goes on as it was is a call of its own.
- Where no node can ever hold what a job asks for, Slurm holds it (BadConstraints): ``Priority=`` is
  refused, and the request that it had does not end that; ``release`` does (22.05).
- ``Priority=`` is refused on a job that its user holds, also while it runs, and ``release`` would
  end that hold: both are for jobs that are not held.
"""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from pliant.batch import FENCE, HELD_FOR_SHAPE
from pliant.batch.slurm.clocks import Clocks
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer, Runs
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.jobs import running_job, waiting_job
from pliant.batch.slurm.lent import (
    giving_back,
    is_anothers,
    lending,
    owed,
    own_priority,
    pinning,
    released,
)
from pliant.batch.slurm.marking import UNMARK, left_marks
from pliant.batch.slurm.partition_rows import parse_reservations
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.records import records
from pliant.batch.slurm.refusals import blocked, in_words, is_closed, is_for_good
from pliant.batch.slurm.request import asked
from pliant.batch.slurm.requested import as_expected, spec_of
from pliant.batch.slurm.snapshot import with_excluded
from pliant.batch.slurm.standing import begins_by_others, left_min, stands
from pliant.batch.slurm.update import (
    job_words,
    shortfall,
    token_words,
    update_words,
    wanted,
)
from pliant.batch.slurm.values import NOTHING, duration_s, instant_s, task_runs, wait_status, whole
from pliant.errors import BadAnswer, Closed, Infeasible, PliantError, Refused, TooLate, Unavailable
from pliant.handover import (
    BEGINS,
    FENCE_S,
    GUEST,
    OURS,
    PINNED,
    RETURNS,
    SETTLE_S,
    SOON_S,
    START_S,
    Do,
    HandOver,
    Scene,
    Sight,
    Step,
)
from pliant.model import UNMARKED, Job, JobState, Kind, Reservation, Shape, asks_otherwise
from pliant.program import CHECKPOINTED

log = logging.getLogger("pliant.handing")

_FAILED = "RestartCnt:|,StartTime:|,SubmitTime:|,EndTime:|,exit_code:|"
_STOPPED = frozenset(("SUSPENDED", "STOPPED"))
_KILLS = (signal.SIGTERM, signal.SIGKILL)
_TERMINATED = frozenset((*_KILLS, *((128 + kill) << 8 for kill in _KILLS)))
"""The exit codes of a batch script that was killed, or in which a program was: as wait(2) says."""
_SAVED = CHECKPOINTED << 8
"""The same of one that ends once its program has saved."""
_SECOND_S = 1.0  # Slurm says instants in whole seconds
MINUTE_S = 60
KILL_WAIT_S = 30.0
"""How long a run may take to end once it is requeued: KillWait where the site says nothing."""
ASIDE_S = START_S + 5.0
"""How long a fence stands at most around what is kept for others: backfill plans them behind it."""
LATE_S = 20.0
"""By how much later than its fence was made a job may be requeued behind it."""
SKEW_S = 60.0
"""How long before it is made a fence begins: we know slurmctld's clock to some seconds."""
NOT_LAUNCHED = "launch failed requeued held"
"""Why a job waits whose prolog or credential failed: Slurm holds it, and drains the node."""
HELD_BY_ADMIN = "JobHeldAdmin"
"""Why a job waits that somebody else than its owner holds: squeue(1), JOB REASON CODES."""
MOST_FRESH = 1000
"""Of how many jobs it is remembered how fresh the slurmds of their nodes are."""
_FENCE = re.compile(rf"{FENCE}[0-9]+(?:_[0-9]+)?")


class Handing:
    """Sees and does what a hand-over needs; every call asks or tells slurmctld once or twice."""

    def __init__(
        self,
        commands: Runs,
        queries: Queries,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` counts seconds since the epoch, as slurmctld's host does or about so.

        ``monotonic`` counts from anywhere, evenly.
        """
        self._commands, self._queries, self._clock = commands, queries, clock
        self._clocks = Clocks(commands, clock, monotonic)
        self._fresh_s = lru_cache(MOST_FRESH)(self._ask_fresh_s)

    # --- see -------------------------------------------------------------------------------

    def scene(self, over: HandOver, job: Job, cluster: Cluster) -> Scene:
        """Return what is seen now.

        Raises Unavailable, BadAnswer.
        """
        since_s = self._clock()  # the look may take long: by what is seen it is no later than that
        ids = [over.job, *([over.guest] if over.guest else ())]
        rows = self._queries.again(ids)
        fences = self._standing()
        own = next((one for one in fences if one.name == _name(over.job)), None)
        end_s = own.end_s if own is not None else 0.0
        aside_end_s = end_s if own is not None and _is_aside(own, job) else 0.0
        row = rows.get(over.job)
        sight = self._sight(row)
        if row is not None:
            sight = self._of_job(row, sight, over, job, cluster)
        if sight.state is None and over.saved_s:
            sight = replace(sight, killed=self._was_killed(over))
        if sight.state is JobState.WAITING and over.saved_s:
            sight = replace(sight, fresh_s=self._fresh_s(job.id, job.nodes, sight.queued_s))
        ahead_s = self._clocks.ahead_s() if over.saved_s else 0.0
        guest = self._guest(over, rows, ahead_s, cluster)
        now_s, least_s = since_s - ahead_s, self._fence_s() - LATE_S
        others = {node for one in fences if one.name != _name(over.job) for node in one.nodes}
        behind_s = 0.0 if others.isdisjoint(_places(job)) else now_s
        fence_end_s = end_s - aside_end_s
        seen = Scene(now_s, sight, guest, fence_end_s, max(0.0, ahead_s), least_s, behind_s)
        return replace(seen, aside_end_s=aside_end_s, late_s=cluster.late_s)

    def _ask_fresh_s(self, _job: str, nodes: Sequence[str], queued_s: float) -> float:
        """When the youngest slurmd of a job's nodes started, by that node's clock.

        Asked once for each time that it was put back into the queue; where there is no answer, it
        may have been just now.
        """
        if not nodes:
            return 0.0
        answer = self._commands.run(("scontrol", "-o", "show", "node", ",".join(nodes)))
        if answer.status:
            return queued_s
        rows = records(answer.out, "NodeName", ("SlurmdStartTime",))
        starts = (row.get("SlurmdStartTime", "None") for row in rows)
        with suppress(BadAnswer):
            return max(map(instant_s, starts), default=0.0)
        return 0.0  # as if they had run for long

    def _guest(
        self, over: HandOver, rows: Mapping[str, JobRow], ahead_s: float, cluster: Cluster
    ) -> Sight:
        """What is seen of the guest.

        One that is no guest any more is as good as held.
        """
        row = _guest_row(rows, over.guest)
        sight = self._sight(row)
        if row is not None and not _waits_next(row):
            return replace(sight, state=JobState.RUNNING)
        # No node can ever hold what it asks for, or its owner lets it begin later.
        later = sight.begins_s > self._clock() - ahead_s + SOON_S
        depends = row is not None and row.dependency not in NOTHING
        other = row is not None and self._has_outgrown(row, over, cluster)
        is_none = later or depends or other or not sight.priority
        return replace(sight, held=True) if is_none else sight

    def _has_outgrown(self, row: JobRow, over: HandOver, cluster: Cluster) -> bool:
        """Whether a guest that waits asks for more than when room was decided on for it.

        Its own time to begin, or a hold, is told apart: it may be gone at the next look.
        """
        if over.asks is None or not row.waits:
            return False
        (row,) = with_excluded([row], self._queries.excluded([row.array_id]))
        one = replace(row, array_tasks="N/A")  # a task may have a record of its own by now
        job = waiting_job(one, cluster, self._clock())
        return asks_otherwise(replace(job, eligible=True), over.asks)

    def _was_killed(self, over: HandOver) -> bool:
        """Whether it failed without a fault of its own, after its checkpoint.

        A later run did so in the second in which the job went back into the queue, or by a kill at
        its very start; the run that saved, where its wrapper was killed before the requeue. One
        whose program ran again, and failed by itself, has another exit code.
        """
        answer = self._commands.run(
            ("squeue", "-h", "-a", "--local", "-t", "FAILED", "-j", over.job, "-O", _FAILED)
        )
        restarts, start, submit, end, code, *_ = [*answer.out.strip().split("|"), *[""] * 5]
        if not restarts.isdecimal() or int(restarts) < over.run:
            return False
        how = wait_status(code)
        if int(restarts) == over.run:
            return how == _SAVED or how in _TERMINATED
        if instant_s(start) <= instant_s(submit):
            return True
        ran_s = instant_s(end) - instant_s(start)
        if ran_s <= SETTLE_S and how in _TERMINATED:
            return True
        return ran_s <= _SECOND_S and self._began_at_once(over, instant_s(submit), instant_s(start))

    def _began_at_once(self, over: HandOver, submit_s: float, start_s: float) -> bool:
        """Whether it began, on another node, in about the second in which its own went down.

        That was as its run ended: Slurm notes no new SubmitTime then (measured on 22.05). A victim
        asks for the same before it is told when to begin. One that waited already when its
        hand-over was begun, as that was forgotten, had no run that could end. When its run ended
        a pliantd that was dead then cannot know: such a job is started once more, be it in vain.
        """
        if over.saved_s <= over.asked_s:
            return False
        ahead_s = self._clocks.ahead_s()
        is_reshaped = over.made and over.shape != over.before and start_s >= over.told_s
        is_as_before = submit_s < over.asked_s - ahead_s - _SECOND_S and not is_reshaped
        ended_s = max(over.saved_s - ahead_s, over.ran_s)
        return is_as_before and (not over.ran_s or start_s <= ended_s + 2 * _SECOND_S)

    def fences(self) -> dict[str, float]:
        """Return when each fence ends that stands now, by job."""
        return {one.name.removeprefix(FENCE): one.end_s for one in self._standing()}

    def _standing(self) -> list[Reservation]:
        listed = self._listed()
        now_s = self._theirs_s() if listed else 0.0
        return [one for one in listed if one.end_s > now_s]

    def _listed(self) -> list[Reservation]:
        """The fences, also those that have ended: Slurm lists them for up to half a minute more."""
        answer = self._commands.run(("scontrol", "-o", "show", "reservation"))
        if answer.status:
            raise Unavailable(f"scontrol show reservation: {answer.words}")
        return [one for one in parse_reservations(answer.out) if _FENCE.fullmatch(one.name)]

    def _sight(self, row: JobRow | None) -> Sight:
        if row is None:
            return Sight(None)
        priority = whole(row.priority)
        return Sight(
            state=_state(row),
            run=count(row.restarts),
            priority=priority,
            held=priority == 0 and row.reason != HELD_FOR_SHAPE,
            queued_s=instant_s(row.submit),
            begins_s=instant_s(row.eligible),
            started_s=instant_s(row.start),
            blocked=in_words(blocked(row.reason)),
            not_launched=row.reason.replace("_", " ") == NOT_LAUNCHED,
            held_by_admin=row.reason == HELD_BY_ADMIN,
            suspended=row.state in _STOPPED,
        )

    def _of_job(
        self, row: JobRow, sight: Sight, over: HandOver, job: Job, cluster: Cluster
    ) -> Sight:
        """Add what is seen of the job itself, not of a guest."""
        if row.waits:
            changed = not self._stands(row, over, job, cluster)
            return replace(sight, carries=_carries(row, over, job, cluster), changed=changed)
        if sight.run > over.run:  # its nodes may boot yet
            return replace(sight, carries=running_job(row, cluster).shape)
        if row.state != "RUNNING":
            return sight
        limit_s = duration_s(row.time_limit)
        return replace(
            sight, limit_s=limit_s or float("inf"), ends_s=instant_s(row.end) if limit_s else 0.0
        )

    def _stands(self, row: JobRow, over: HandOver, job: Job, cluster: Cluster) -> bool:
        now_s = self._clock() - min(0.0, self._clocks.ahead_s())
        delay_s = self._queries.site().requeue_delay_s
        (row,) = with_excluded([row], self._queries.excluded([row.array_id]))
        is_other = begins_by_others(row, over, delay_s, now_s)
        return stands(row, job, over, cluster) and not is_other

    def release(self, rows: Iterable[JobRow], cluster: Cluster) -> dict[str, str]:
        """Take back what jobs have of hand-overs; return each with Slurm's words, "" for done.

        A fence goes first: the pin keeps the job before all others until it is open to all.
        """
        steps = [(job, Do.UNFENCE) for job in self.fences()]
        steps += [(row.key, do) for row in rows if (do := _left(row)) is not None]
        told: dict[str, str] = {}
        for job, do in steps:
            told[job] = told.get(job) or self._taken_back(job, do, cluster)
        return told

    def _taken_back(self, job_id: str, do: Do, cluster: Cluster) -> str:
        job = Job(job_id)
        try:
            over = HandOver(job_id, 0, job.shape, 0.0, 0.0, before=job.shape)
            self.do(Step(do), over, job, cluster)
        except Refused as error:
            return str(error)
        return ""

    # --- do --------------------------------------------------------------------------------

    def do(self, step: Step, over: HandOver, job: Job, cluster: Cluster) -> None:
        """Do one step.

        Raises Refused in Slurm's words, Unavailable.
        """
        if step.do in BEGINS and step.aside:
            self._fence_around(step, over, (*_places(job), *sorted(step.aside)))
        if step.do is Do.PUT_BACK:
            self._put_back(step, over, job, cluster)
            return
        if step.do in (Do.RELEASE, Do.RELEASE_GUEST):
            self._release(self._unheld(step, over), step, over, job)
            return
        if step.do is Do.GIVE_BACK:
            self._give_back(step, over, job)
            return
        if step.do is Do.FENCE:
            self._forget_fence(step, over, job)
        if step.do is Do.UNFENCE:
            self._unpin_changed(over, job, cluster)
            end = f"EndTime={_text(self._theirs_s() + ASIDE_S)}"
            if step.aside and self._fence_around(step, over, sorted(step.aside), end):
                return
        if step.do is Do.REQUEUE:
            self._check_not_ended(over)
        self._tell(step, over, self._words(step, over, job, cluster))

    def _tell(self, step: Step, over: HandOver, words: Sequence[str]) -> None:
        answer = self._commands.run(("scontrol", *words))
        if answer.status:
            raise _error(answer)(f"job {over.job}: {step.do}: {answer.words}")

    def _try(self, step: Step, over: HandOver, words: Sequence[str]) -> bool:
        """The same; return whether that was not refused: what is, is said and left."""
        try:
            self._tell(step, over, words)
        except Refused as error:
            log.warning("%s", error)
            return False
        return True

    def _words(self, step: Step, over: HandOver, job: Job, cluster: Cluster) -> Sequence[str]:
        fence = f"ReservationName={_name(over.job)}"
        if step.do is Do.RESHAPE:
            return ("update", f"jobid={over.job}", *self._reshape(step, over, job, cluster))
        if step.do in (Do.PIN, Do.PIN_GUEST, Do.LOWER):
            return self._pin(step, over)
        words: dict[Do, Sequence[str]] = {
            Do.FENCE: ("create", "reservation", fence, *self._fence_words(job)),
            Do.RENEW: ("update", fence, f"EndTime={self._fence_end()}"),
            Do.REQUEUE: ("requeue", over.job),
            Do.UNFENCE: ("delete", fence),
        }
        return words[step.do]

    def _pin(self, step: Step, over: HandOver) -> Sequence[str]:
        row = self._unheld(step, over)
        if step.do is Do.LOWER and whole(row.priority) != RETURNS:
            raise TooLate(f"job {row.key}: it is not pinned so any more")
        nice = 0 if self._queries.site().basic_priority else self._queries.nice(row)
        own = PINNED if over.guest else RETURNS
        pin = {Do.PIN: own, Do.PIN_GUEST: GUEST, Do.LOWER: PINNED}[step.do]
        name = over.guest if step.do is Do.PIN_GUEST else job_words(row)
        return ("update", f"jobid={name}", f"Priority={pin}", *pinning(row, nice))

    def _release(self, row: JobRow, step: Step, over: HandOver, job: Job) -> None:
        """With basic priorities a release puts a job behind all others: it gets its own back."""
        if step.do is Do.RELEASE_GUEST and whole(row.priority) not in OURS:
            raise TooLate(f"job {row.key}: it is not pinned any more")
        name = job_words(row)
        if step.do is Do.RELEASE and _ends_early(row, over.end_s):  # first: that is tried once
            self._try(step, over, ("update", f"jobid={name}", f"EndTime={_text(over.end_s)}"))
        before = own_priority(row) or (job.priority if step.do is Do.RELEASE else 0)
        lent = giving_back(released(row), 0)
        if self._queries.site().basic_priority and before and before not in OURS:
            self._tell(step, over, ("update", f"jobid={name}", f"Priority={before}", *lent))
        else:
            self._tell(step, over, ("release", name))
            if lent:
                self._tell(step, over, ("update", f"jobid={name}", *lent))

    def _check_not_ended(self, over: HandOver) -> None:
        """Raise TooLate where the run has been ended or stopped since the last look, or is another.

        By its owner, say: Slurm requeues a job that ends by a cancel, and lets it come back; one
        that is suspended it would hold. And pliantd may have stood still since, and the job have
        gone back by itself: nothing of what its next run did is saved.
        """
        row = self._queries.again([over.job]).get(over.job)
        runs = _state(row) is JobState.RUNNING if row else self._was_killed(over)
        if not runs or (row and (row.state in _STOPPED or count(row.restarts) > over.run)):
            raise TooLate(f"job {over.job}: it does not run any more")

    def _forget_fence(self, step: Step, over: HandOver, job: Job) -> None:
        """Delete one that has ended and is listed yet, or is aside: no other may have its name."""
        now_s = self._theirs_s()
        for one in self._listed():
            stands = one.end_s > now_s and not _is_aside(one, job)
            if one.name == _name(over.job) and not stands:
                self._tell(step, over, ("delete", f"ReservationName={one.name}"))

    def _fence_around(self, step: Step, over: HandOver, nodes: Iterable[str], *more: str) -> bool:
        """Put its fence around other nodes; return whether that was not refused."""
        words = (f"ReservationName={_name(over.job)}", f"Nodes={','.join(dict.fromkeys(nodes))}")
        return self._try(step, over, ("update", *words, *more))

    def _unpin_changed(self, over: HandOver, job: Job, cluster: Cluster) -> None:
        """Take the pins from whom was changed since the last look, before the fence falls.

        It would start at once, before all others, with what its owner asks now. What was noted
        stays: by that the next look tells that it was changed.
        """
        if not over.saved_s:
            return
        rows = self._queries.again([over.job, *([over.guest] if over.guest else ())])
        row, guest = rows.get(over.job), _guest_row(rows, over.guest)
        changed = []
        if row is not None and row.waits and not self._stands(row, over, job, cluster):
            changed.append(row)
        if guest is not None and self._has_outgrown(guest, over, cluster):
            changed.append(guest)
        for one in changed:
            if whole(one.priority) in OURS:
                self._try(Step(Do.RELEASE), over, ("release", job_words(one)))

    def _who(self, step: Step, over: HandOver) -> JobRow:
        """Whom a step is for, the job or its guest.

        An array is named by its tasks: by its number alone, those that are held would go too.
        """
        is_guest = step.do in (Do.PIN_GUEST, Do.RELEASE_GUEST)
        job_id = over.guest if is_guest else over.job
        rows = self._queries.again([job_id])
        row = _guest_row(rows, job_id) if step.do is Do.PIN_GUEST else rows.get(job_id)
        if row is None:
            raise TooLate(f"job {job_id}: it has ended")
        return row

    def _unheld(self, step: Step, over: HandOver) -> JobRow:
        """The same, where nobody holds it: either step would end that.

        Raises TooLate where somebody does, which the next look shows, and Refused where Slurm
        holds it for its shape.
        """
        row = self._who(step, over)
        if not whole(row.priority):
            kind = Refused if row.reason == HELD_FOR_SHAPE else TooLate
            raise kind(f"job {row.key}: it is held")
        return row

    def _give_back(self, step: Step, over: HandOver, job: Job) -> None:
        """What was lent first, and then the comment: Slurm notes that of a job that has started."""
        row = self._who(step, over)
        if is_anothers(row):
            self._release(row, step, over, job)
            return
        *words, comment = giving_back(row, self._queries.nice(row)) or ("",)
        if not comment:
            raise Refused(f"job {over.job}: it has all that was its own")
        for some in (words, [comment]):
            if some:
                self._tell(step, over, ("update", f"jobid={job_words(row)}", *some))

    def _fence_words(self, job: Job) -> Sequence[str]:
        return (
            f"StartTime={_text(self._theirs_s() - SKEW_S)}",
            f"EndTime={self._fence_end()}",
            "Users=root",
            f"Nodes={','.join(dict.fromkeys(_places(job)))}",
            "Flags=IGNORE_JOBS,OVERLAP",
        )

    def _fence_end(self) -> str:
        return _text(self._theirs_s() + self._fence_s())

    def _theirs_s(self) -> float:
        """The time by slurmctld's clock, by which a fence stands."""
        return self._clock() - self._clocks.ahead_s()

    def _fence_s(self) -> float:
        """How long a fence stands: pliantd may be killed as soon as it has requeued the job."""
        return max(FENCE_S, self._queries.site().requeue_delay_s + KILL_WAIT_S)

    def _waiting(self, over: HandOver, job: Job, cluster: Cluster) -> JobRow:
        """Return the row of a job that waits as it is to. Raises TooLate where it does not."""
        row = self._queries.again([over.job]).get(over.job)
        if row is None or not row.waits:
            raise TooLate(f"job {over.job}: it does not wait any more")
        if not self._stands(row, over, job, cluster):
            raise TooLate(f"job {over.job}: it was changed since it was asked; its owner wins")
        return row

    def _reshape(self, step: Step, over: HandOver, job: Job, cluster: Cluster) -> Sequence[str]:
        row = self._waiting(over, job, cluster)
        now = asked(row, job.footprint, cluster.default_per_cpu_mib)
        marked = bool(left_marks([row]))
        spec = job.noted(over.shape)
        spec = replace(spec, mark=UNMARKED) if marked else spec
        least, row = lending(row)
        words = (*least, f"StartTime={_text(step.begin_s)}", *((UNMARK,) if marked else ()))
        if marked and row.nodes_required == job.mark:
            words = (*words, "ReqNodeList=")
        if over.shape.kind is Kind.CPU and now.shape(0) == over.shape:  # there is nothing to take
            shape = token_words(row, spec)
        else:
            shape = update_words(row, now, wanted(job, over.shape, spec, cluster), spec)
        return (*shape, *words, *limit_words(over, row, step.begin_s))

    def _put_back(self, step: Step, over: HandOver, job: Job, cluster: Cluster) -> None:
        """Put back what is half applied, part by part; what is refused is said, and left.

        Then the begin time, which nothing may keep from being set.
        """
        row = self._waiting(over, job, cluster)
        update = ("update", f"jobid={over.job}")
        limit, (least, row) = limit_words(over, row, step.begin_s), lending(row)
        if least:
            limit = (*least, *limit, f"AdminComment={row.admin_comment}")
        for words in (limit, self._as_before(row, over, job, cluster)):
            if words:
                self._try(step, over, (*update, *words))
        if self._waiting(over, job, cluster).reason == HELD_FOR_SHAPE:  # not by its owner since
            self._tell(step, over, ("release", over.job))
        self._tell(step, over, (*update, f"StartTime={_text(step.begin_s)}"))

    def _as_before(self, row: JobRow, over: HandOver, job: Job, cluster: Cluster) -> Sequence[str]:
        """The request that a job had when it was asked; nothing where it has it."""
        now = asked(row, job.footprint, cluster.default_per_cpu_mib)
        then = wanted(job, over.before, job.flag, cluster)
        if shortfall(now, then) or now.mem_mib != then.mem_mib:
            return update_words(row, now, then, job.flag)
        return () if spec_of(row.admin_comment) == job.flag else token_words(row, job.flag)


def _error(answer: Answer) -> type[PliantError]:
    if answer.controller_is_away:
        return Unavailable
    if is_closed(answer.words):
        return Closed
    return Infeasible if is_for_good(answer.words) else Refused


def _name(job: str) -> str:
    """How the reservation of a job's hand-over is called."""
    return f"{FENCE}{job}"


def _places(job: Job) -> Sequence[str]:
    """The nodes that a fence of its hand-over is around: what it has, and what it is to have."""
    return (*job.nodes, *job.next_nodes)


def _is_aside(fence: Reservation, job: Job) -> bool:
    """Whether a fence of its hand-over is around other nodes by now."""
    return not {*_places(job)} <= {*fence.nodes}


def _waits_next(row: JobRow) -> bool:
    """Whether it waits, or will once the run ends that was requeued: it shows as its start now."""
    return row.waits or (row.state == "COMPLETING" and count(row.restarts) > 0)


def _guest_row(rows: Mapping[str, JobRow], guest: str) -> JobRow | None:
    """Return a guest's row: of a task that has none of its own yet that of its array.

    An array as a whole is none: it was for 0.1.0, which pinned all its tasks.
    """
    array, _, task = guest.partition("_")
    row = rows.get(guest) or rows.get(array)
    if row is None or not row.is_array_record:
        return row
    holds = task.isdecimal() and any(int(task) in run for run in task_runs(row.tasks))
    return row if holds else None


def limit_words(over: HandOver, row: JobRow, begin_s: float) -> Sequence[str]:
    """Return a job's time limit from its requeue on, in whole minutes.

    What is left of it, where it does not begin anew. One that is less already is its owner's.
    """
    limit_s, left = duration_s(row.time_limit), left_min(over, begin_s) if over.end_s else 0
    lowers = left > 0 and not 0 < limit_s <= left * 60
    return (f"TimeLimit={left}",) if lowers else ()


def _ends_early(row: JobRow, end_s: float) -> bool:
    """Whether a job that runs again ends before its time is over: its limit is in whole minutes.

    Not where somebody has changed its end since.
    """
    ends_s, limit_s = instant_s(row.end), duration_s(row.time_limit)
    by_limit = row.state == "RUNNING" and ends_s == instant_s(row.start) + limit_s
    return by_limit and 0 < int(end_s) - ends_s < MINUTE_S


def _carries(row: JobRow, over: HandOver, job: Job, cluster: Cluster) -> Shape | None:
    """Return what a waiting job asks for; None for what is no shape, or is not to stay so.

    What is half made of the shape that it is to have, its CPUs not, say, is not that shape yet.
    """
    if left_marks([row]):  # it is not to start beside others: its reshaping takes the mark away
        return None
    with suppress(BadAnswer, Refused):
        asks = asked(row, job.footprint, cluster.default_per_cpu_mib)
        shape = asks.shape(cluster.shards(job.partitions, asks.gpu_type))
        shape = as_expected(shape, spec_of(row.admin_comment))
        is_new = shape == over.shape != over.before
        half = is_new and shortfall(asks, wanted(job, shape, job.noted(shape), cluster))
        return None if half else shape
    return None


def _state(row: JobRow) -> JobState | None:
    if row.waits:
        return JobState.WAITING
    return JobState.ENDING if row.state == "COMPLETING" else JobState.RUNNING


def _text(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _left(row: JobRow) -> Do | None:
    """What takes back what a job has left of a hand-over; None where that is nothing."""
    if whole(row.priority) in OURS:
        return Do.RELEASE
    return Do.GIVE_BACK if owed(row) else None
