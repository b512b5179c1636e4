"""Jobs that change while they run: what policies know of them, and what is done of what they say.

What a look shows of a running job is joined here with what its program said and with what is under
way. A job is asked for a checkpoint only where its owner called it malleable or best-effort, its
program listens, its protected time is over and Pliant acts in all of its partitions. A best-effort
job of which no program ever spoke has nothing to save: it is requeued as the batch system does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pliant.batch import FENCE
from pliant.daemon.beats import Beats
from pliant.daemon.changes import Changes
from pliant.daemon.guests import apart
from pliant.daemon.handing import HandOvers, Hands, Wanted
from pliant.daemon.kept import Outgrown, Unwanted, unwanted
from pliant.daemon.places import Places
from pliant.daemon.runs import Runs
from pliant.daemon.stalled import Stalled
from pliant.daemon.unserved import Unserved
from pliant.errors import PliantError, Refused
from pliant.grammar import shapes as request_shapes
from pliant.handover import GUEST, HANDED, OURS, RETURNS, Do, HandOver, Outcome, Step
from pliant.lifecycle import Phase
from pliant.model import (
    Job,
    JobClass,
    JobState,
    Request,
    Shape,
    Snapshot,
    job_rests_until_s,
    shape_text,
)
from pliant.placement.giving_up import arrived
from pliant.plan import Plan, Preempt
from pliant.speedup import Rates
from pliant.store import Decision, HandOverRow, Store

log = logging.getLogger("pliant.elastic")

MUTE_S = 120.0
"""A program that has not spoken for so long, while we could be reached, never will.

Longer than the longest silence of a `pliant run` that looks for us: a watch that is not answered,
the pause after it, and one more question (see :mod:`pliant.node.door`).
"""
LEFT = frozenset({Outcome.DONE, Outcome.SLOW, Outcome.CHANGED})
"""The ends of hand-overs in which a job has left its place to another one for a while."""
LEAST_LEFT_S = 120.0
"""A job that must end sooner is not resized at its owner's wish."""
SKEW_S = 60.0
"""How far the batch system's clock may be before ours."""

UNMANAGED = "it is unmanaged: a `pliant run` of it was lost, and its program runs on without"
"""Why nothing is asked of a job whose wrapper has died (see :mod:`pliant.node.guardian`)."""


class Elastic:
    """Running jobs that may change; used from the cycle's thread, and by the second door."""

    def __init__(
        self,
        hands: Hands,
        store: Store,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        *,
        changed: Callable[[str], None] = lambda _job_id: None,
        wake: Callable[[], None] = lambda: None,
        beats: Beats | None = None,
    ) -> None:
        """``changed``: is told which job's program is to be told something; ``wake``: to look.

        ``beats``: is told how far programs are.
        """
        self._hands, self._store, self._clock, self._wake = hands, store, clock, wake
        self._monotonic = monotonic
        self.overs = HandOvers(
            *(hands, store, clock, monotonic),
            ended=self._ended,
            changed=changed,
            has_place=self._has_place,
            kept=self._kept,
        )
        self._places = Places(clock, self.overs.all, self.overs.fenced)
        self.runs = Runs(store, self.overs, clock, monotonic, beats)
        self._stalled = Stalled(store, self.overs, self.runs, clock)
        self._changes = Changes(store)
        self._resumed = False
        self._has_left = True  # fences of hand-overs that are not under way, or may have
        self._trouble = ""  # why one was not asked, as it was logged last
        self._hears_since_s = float("inf")  # by the monotonic clock
        self._met: frozenset[str] = frozenset()  # the jobs of the last look
        self._runs_since_s: dict[tuple[str, int], float] = {}  # by job and restarts, monotonic
        self._unserved = Unserved()
        self.count: Callable[[HandOverRow, Outcome], None] = lambda _row, _outcome: None
        """Is told of each hand-over that has ended, in the thread that made it."""
        self._outgrown = Outgrown(self.overs.as_asked)
        self._unwanted: Unwanted = lambda _job_id, _guest="", _asks=None: False

    # --- what is known ---------------------------------------------------------------------

    def known(self, snapshot: Snapshot) -> Snapshot:
        """Return what was seen, with what is known of jobs that change."""
        self._meet(snapshot)
        under_way = self.overs.all()
        running = tuple([self._running(job, under_way.get(job.id)) for job in snapshot.running])
        waiting = tuple([self._waiting(job, under_way.get(job.id)) for job in snapshot.waiting])
        return replace(snapshot, running=running, waiting=waiting)

    def _meet(self, snapshot: Snapshot) -> None:
        """Forget what was told of earlier jobs of the same numbers, which come again."""
        jobs, now_s = (*snapshot.waiting, *snapshot.running), self._monotonic()
        since_s, runs = self._runs_since_s, [(job.id, job.restarts) for job in _in_a_run(snapshot)]
        self._runs_since_s = {run: since_s.get(run, now_s) for run in runs}
        new = [job for job in jobs if job.id not in self._met and not job.restarts]
        self._store.forget_before((job.id, job.submit_s - SKEW_S) for job in new)
        self._met = frozenset(job.id for job in jobs)

    def _running(self, job: Job, wanted: Wanted | None) -> Job:
        request = elastic_request(job)
        if request is None:
            return job
        listens = self.runs.may_reshape(job) and not self._stalled.has_hung(job)
        resizes = request.malleable is not None and listens
        return replace(
            job,
            frozen=job.frozen or (UNMANAGED if self.runs.is_unmanaged(job) else ""),
            shapes=self._offered(job) if resizes else (job.shape,),
            progress=self.runs.progress(job, request.steps),
            grace_s=self.runs.grace_s(job) if listens else 0.0,
            restart_s=self.runs.restart_s(job),
            measured=self._measured(job),
            preemptible=request.job_class is JobClass.BEST_EFFORT
            and (listens or self._is_mute(job))
            and not self.overs.rests(job.id),
            preempted=self._changes.made_room(job.id),
            changes=self._changes.done(job.id),
            works_s=self.runs.launched_s(job),
            room_for=wanted.guest if wanted else "",
            next_shape=wanted.shape if wanted and not wanted.guest else None,
            next_nodes=wanted.nodes if wanted and not wanted.guest else (),
        )

    def _offered(self, job: Job) -> tuple[Shape, ...]:
        """What it may become, but for what the batch system did not give it before."""
        refused = self.overs.refused(job.id)
        return tuple(shape for shape in job.shapes if shape not in refused)

    def _waiting(self, job: Job, wanted: Wanted | None) -> Job:
        """A job in the middle of a hand-over is nobody else's to change."""
        measured = self._measured(job)
        if measured:
            job = replace(job, measured=measured)
        if wanted is None:
            ordinary = self._unserved.why(job, self._clock()) if job.is_trial else ""
            job = self._outgrown.within(job)
            return replace(job, ordinary=ordinary) if ordinary else job
        words = "it is on its way to another shape"
        return replace(job, frozen=job.frozen or words, shapes=(job.shape,), room_for=wanted.guest)

    def arriving(self, snapshot: Snapshot) -> Snapshot:
        """Return what was seen as if those between two runs were where they will run.

        The batch system says only that they wait, and expects them on nodes that are then kept
        whole; nobody else could be given what is beside them there. A job whose checkpoint came
        so late that it goes back to its own shape is left out: its nodes were chosen for the other.
        A task of an array for which room is made is a job of its own to all that is decided.
        What is kept from such a one for the second of its start is so from nobody else.
        """
        wanted = self.overs.all()
        snapshot = _fenced_alone(snapshot, self.overs.fenced())
        snapshot = apart(snapshot, {to.guest for to in wanted.values()})
        there = [(job, wanted[job.id]) for job in snapshot.waiting if job.id in wanted]
        return arrived(
            snapshot,
            [
                replace(job, shape=to.shape, shapes=(to.shape,), nodes=to.nodes)
                for job, to in there
                if not to.guest and len(to.nodes) == to.shape.nodes
            ],
        )

    def _measured(self, job: Job) -> Rates:
        """How fast it runs, as far as its owner leaves that to be found out."""
        spec = job.spec
        return self.runs.measured(job) if spec is not None and not spec.request.throughput else ()

    def _is_mute(self, job: Job) -> bool:
        """Whether there is nobody to ask: it runs without ``pliant run``."""
        runs_since_s = self._runs_since_s.get((job.id, job.restarts), float("inf"))
        silent_s = self._monotonic() - max(runs_since_s, self._hears_since_s)
        return silent_s > MUTE_S and not self.runs.speaks(job)

    def matures_s(self, snapshot: Snapshot) -> float:
        """Return when the next job's protected time is over, or its owner's min-run.

        Seconds since the epoch; inf: none.
        """
        elastic = [job for job in snapshot.running if elastic_request(job)]
        mature = [self.runs.life(job).mature_s for job in elastic]
        rest = [at_s for job in elastic if (at_s := job_rests_until_s(job)) > self._clock()]
        return min((*mature, *rest), default=float("inf"))

    # --- what is done ----------------------------------------------------------------------

    def looking(self) -> None:
        """Say that a look begins."""
        self.overs.looking()

    def looked(self, snapshot: Snapshot, acts_on: Callable[[Job], bool]) -> None:
        """After each look: go on with what was under way at the start, and tidy up.

        ``snapshot``: with the trial jobs that are beyond their user's cap as ordinary ones.
        """
        self._hears_since_s = min(self._hears_since_s, self._monotonic())
        jobs = (*snapshot.waiting, *snapshot.running)
        if not self._resumed:
            self._resumed = True
            self.overs.resume(jobs)
        if self._has_left or self._left_fences(snapshot):
            self._has_left = self._unfence({job.id: job for job in jobs}, acts_on)
        there = frozenset(job.id for job in jobs)
        self.runs.forget(jobs)
        self.overs.forget(there)
        self._stalled.forget(there)
        self._changes.forget(there)
        under_way = self.overs.all()
        guests = {wanted.guest for wanted in under_way.values()}
        snapshot = apart(snapshot, guests | self._unserved.expected)
        self._unserved.looked(snapshot, guests)
        self._unwanted = unwanted(snapshot, acts_on)
        for job in snapshot.running:
            wanted = under_way.get(job.id)
            if wanted is not None and self._unwanted(job.id, wanted.guest, wanted.asks):
                self.overs.withdraw(job.id)
        for job in self._left_to_itself(snapshot.running):
            if job.priority in OURS:
                self._do(Do.RELEASE, job)
        for job in self._left_to_itself(snapshot.waiting):
            if job.priority == RETURNS:
                self._do(Do.LOWER, job)
            elif job.id not in guests and job.priority == GUEST:
                self._do(Do.RELEASE_GUEST, job)
        self._stalled.looked(
            [j for j in _in_a_run(snapshot) if elastic_request(j) and j.id not in under_way],
            lambda job: not self._unwanted(job.id) and self._can_return(job),
        )
        for job in self._left_to_itself(self._outgrown.looked(snapshot)):
            self._do(Do.RELEASE, job)

    def _left_to_itself(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield those in no hand-over, and in none when the look began: that has tidied up."""
        others = self.overs.all().keys() | self.overs.ended_since()
        return (job for job in jobs if job.id not in others)

    def _has_place(self, job: Job, wanted: Wanted) -> bool:
        """Whether a job that has saved is to be requeued: also one whose wish was withdrawn."""
        unwanted_now = self._unwanted(job.id, wanted.guest, wanted.asks)
        if unwanted_now or not self._places.has_place(job, wanted):
            return False
        try:
            self._hands.must_go_back(job)
        except PliantError as error:
            log.warning("job %s: it has saved and goes on: %s", job.id, error)
            return False
        return True

    def _kept(self, job: Job, wanted: Wanted) -> frozenset[str]:
        return self._places.kept(job, wanted)

    def _can_return(self, job: Job) -> bool:
        """Whether a job whose program hangs may be requeued as it is: it would start again."""
        several = self.runs.are_several(job)
        return not several and self._places.is_open(job, Wanted(job.shape, job.nodes))

    def give_back(self, snapshot: Snapshot) -> None:
        """Give jobs back what a hand-over has taken, once all that was decided is done.

        Before, a change that was decided would find its job changed since the look.
        """
        for job in self._left_to_itself((*snapshot.waiting, *snapshot.running)):
            if job.owed:
                self._do(Do.GIVE_BACK, job)

    def stood_by(self) -> None:
        """Note that programs speak to another host's pliantd."""
        self._hears_since_s = float("inf")

    def _left_fences(self, snapshot: Snapshot) -> bool:
        """Whether a look shows a fence of a hand-over that is not under way."""
        names = (one.name for one in snapshot.reservations if one.name.startswith(FENCE))
        under_way = self.overs.all()
        return any(name.removeprefix(FENCE) not in under_way for name in names)

    def _unfence(self, known: Mapping[str, Job], acts_on: Callable[[Job], bool]) -> bool:
        """End the fences that are left; return whether there may be any after that.

        They are a pliantd's that is no more, or a batch system's that was killed and forgot its
        last seconds.

        Behind one a job may wait, or be about to, of which the store has forgotten what was meant:
        it starts as it is, and nobody before it. Not one whose hand-over has ended since the look
        began: that tells nothing of it any more.
        """
        try:
            fences = self._hands.fences()
        except PliantError as error:
            log.warning("%s", error)
            return True
        left, ended = sorted(fences.keys() - self.overs.all().keys()), self.overs.ended_since()
        for job_id in left:
            job = known.get(job_id, Job(job_id)) if job_id not in ended else Job(job_id)
            if job.state is not JobState.RUNNING and job.priority in HANDED and acts_on(job):
                before = replace(job, restarts=job.restarts - 1)
                words = "it was on its way to another shape, which is forgotten"
                self.overs.begin(before, Wanted(job.shape), self._clock(), words, listens=False)
            else:
                self._do(Do.UNFENCE, Job(job_id))
        return left != []

    def _do(self, what: Do, job: Job) -> None:
        shape, now_s = job.shape, self._clock()
        over = HandOver(job.id, job.restarts, shape, now_s, 0.0, guest=job.id, before=shape)
        try:
            self._hands.step(Step(what), over, job)
            log.info("job %s: %s: left from before", job.id, what)
        except PliantError as error:
            log.warning("%s", error)

    def begin(self, plan: Plan, acts_on: Callable[[Job], bool]) -> Iterator[Decision]:
        """Ask for what a plan says of running jobs; yield what was begun."""
        now_s = self._clock()
        for preempt in plan.preempts:
            yield from self._make_room(preempt, acts_on, now_s)
        for reshape in plan.reshapes:
            job = reshape.job
            if acts_on(job):
                wanted = Wanted(reshape.shape, reshape.nodes)
                if self._began(job, wanted, now_s, reshape.reason):
                    shape = shape_text(reshape.shape)
                    yield Decision(now_s, job.id, "reshape", shape, reshape.reason)

    def decided(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note what a cycle saw and decided: who asks after it is given no more than it leaves."""
        self._places.decided(snapshot, plan)

    def resize(self, job: Job, shape: Shape, who: str) -> None:
        """Ask a running job for another shape because ``who``, its owner or so, says so.

        It keeps what is left of its time limit: nobody who waits for its end waits longer for it.
        ``job``: as :meth:`known` returned it. Raises Refused.
        """
        if job.spec is None or job.spec.request.malleable is None:
            raise Refused(f"job {job.id}: it was not submitted with --malleable")
        now_s, end_s = self._clock(), job.end_s if job.time_limit_s else 0.0
        wanted = Wanted(shape, end_s=end_s)
        phase = self.runs.life(job).phase
        allowed = request_shapes(job.spec.request, job.spec.own or job.shape)
        refused, beyond = self.overs.refused(job.id), self._places.beyond(job, shape)
        overtaken = self._places.overtaken(job, wanted)
        checks = (
            (job.frozen != "", f"it is left alone: {job.frozen}"),
            (job.spec.pinned, "its owner pinned it"),
            (not job.requeues, "the batch system may not requeue it"),
            (shape not in allowed, f"it may be {', '.join(map(shape_text, allowed))}"),
            (shape == job.shape, "it has that shape"),
            (self._stalled.has_hung(job), "its program hung since a checkpoint was requested"),
            (not self.runs.may_reshape(job), f"nothing can be asked of it now: {_busy(phase)}"),
            (shape in refused, f"it was tried before, and refused: {refused.get(shape)}"),
            (beyond != "", beyond),
            (overtaken != "", overtaken),
            (shape not in job.shapes, "the batch system cannot change it so"),
            (0 < end_s < now_s + LEAST_LEFT_S, "less than two minutes of its time limit are left"),
            (
                not self._places.is_open(job, wanted),
                "it could not start again: a node of it is down, drained or reserved, or its "
                "partition is down",
            ),
            (
                not self._places.has_room(job, wanted),
                "there is no room for that now beside what runs and who is next",
            ),
        )
        for fails, words in checks:
            if fails:
                raise Refused(f"job {job.id}: {shape_text(shape)}: {words}")
        if not self._begin(job, wanted, now_s, f"{who} asked for it"):
            raise Refused(
                f"job {job.id}: it is on its way to another shape, or has just come to one or "
                "saved in vain"
            )

    def _make_room(
        self, preempt: Preempt, acts_on: Callable[[Job], bool], now_s: float
    ) -> Iterator[Decision]:
        job, reason = preempt.job, preempt.reason
        asks = self._places.guest(preempt.room_for)
        guest = asks.id if asks is not None else preempt.room_for
        if guest in self.overs.ended_since():  # it had its room before the look was over
            return
        if asks is not None:
            asks = replace(asks, next_shape=preempt.shape)
        wanted = Wanted(job.shape, job.nodes, guest, asks=asks)
        if acts_on(job) and self._began(job, wanted, now_s, reason):
            words = f"makes room for job {guest}: {reason}"
            yield Decision(now_s, job.id, "preempt", shape_text(job.shape), words)

    def _began(self, job: Job, wanted: Wanted, now_s: float, reason: str) -> bool:
        try:
            return self._begin(job, wanted, now_s, reason)
        except PliantError as error:
            words = f"job {job.id}: {error}"
            if words != self._trouble:  # it is chosen again in each cycle
                log.warning("%s", words)
            self._trouble = words
            return False

    def _begin(self, job: Job, wanted: Wanted, now_s: float, reason: str) -> bool:
        request = elastic_request(job)
        if request is None or job.state is not JobState.RUNNING:
            return False
        listens = self.runs.may_reshape(job)
        if (not listens and not self._is_mute(job)) or not self._places.is_open(job, wanted):
            return False
        if self._places.overtaken(job, wanted):
            return False
        if listens:
            self._hands.must_go_back(job)
        until_s = now_s + self.runs.grace_s(job)
        self._unserved.asked(wanted.guest)
        return self.overs.begin(job, wanted, until_s, reason, listens=listens)

    def _ended(self, job: Job, guest: str, outcome: Outcome, told: str) -> None:
        self._changes.ended(job.id)
        self._stalled.ended(job.id)
        if outcome in LEFT:
            self._unserved.made_room(guest, self._clock())
        elif outcome is Outcome.STAYS:
            self._unserved.had_none(guest, self._clock())
        rows = self._store.handovers(job.id)
        if rows:
            self.count(rows[-1], outcome)
        what = "handed over" if outcome is Outcome.DONE else "not handed over"
        shape = shape_text(job.shape)
        self._store.decide([Decision(self._clock(), job.id, what, shape, told)])
        self._wake()


def elastic_request(job: Job) -> Request | None:
    """Return the request of a job that may change while it runs; None for all others."""
    request = job.spec.request if job.spec is not None else None
    return request if request is not None and request.is_elastic else None


def _fenced_alone(snapshot: Snapshot, fenced: Mapping[str, tuple[str, ...]]) -> Snapshot:
    """What was seen with fences around nothing but where their jobs run or ran, and are to run."""
    kept = []
    for one in snapshot.reservations:
        places = fenced.get(one.name.removeprefix(FENCE)) if one.name.startswith(FENCE) else None
        nodes = one.nodes if not places else tuple(node for node in one.nodes if node in places)
        kept += [replace(one, nodes=nodes)] if nodes else []
    return replace(snapshot, reservations=tuple(kept))


def _busy(phase: Phase) -> str:
    """Say why a job's program is asked for nothing."""
    if phase is not Phase.RUNNING:
        return f"it is {phase}"
    return "it does not run under `pliant run`, or that is silent, or more than one speaks for it"


def _in_a_run(snapshot: Snapshot) -> list[Job]:
    """The jobs that run; one whose run ends may show the number of its next one."""
    return [job for job in snapshot.running if job.state is JobState.RUNNING]
