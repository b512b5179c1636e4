"""A hand-over: a running job that has been checkpointed gets another shape, step by step.

``next_step`` says what to do next, from what was intended and what is seen of the job now. It has
no memory of the steps before: a pliantd that was killed after any of them looks, and goes on.

::

    asked ──its program saves──▶ saved ─▶ pin ─▶ fence ─▶ requeue ─▶ (it ends) ─▶ reshape
                                   └─ out of time, or its run is over: give up
    reshape ─▶ unfence, in the second in which it may start ─▶ (it starts) ─▶ release ─▶ end
       │                                           └─ not startable so ─┐
       └─ refused for good, or for 10 s ─▶ turn back ◀──────────────────┘
    turn back ─▶ put back ─▶ unfence ─▶ (it starts as it was) ─▶ release ─▶ end

    pin, fence or requeue refused for good, or for 10 s
                                   ├─ it runs yet ─▶ its program goes on where it is
                                   └─ it waits already ─▶ go on without pin and fence

What each step is for:

- *pin*: a priority above all others, which survives the requeue, so that it starts first; before
  victims that wait, too, and before guests.
- *fence*: a reservation of its nodes that keeps all others out while it holds nothing; it ends by
  itself should nobody end it.
- *reshape*: the new request and the begin time in one call. It begins in the second after it went
  back into the queue: slurmd refuses a launch whose credential is as old as the kill.
- *turn back*: notes that the batch system does not give it that shape, and in which words. A job
  that was requeued cannot be requeued as it was, so what it asked before is put back.
- *put back*: the request as it was, should a part of the new one have been taken, and then the
  begin time in a call of its own, which no request can spoil. Whatever is refused now, the fence
  falls in time: its nodes stand idle for 15 s at most.
- *unfence*: ends the reservation, and by that starts a pass of the scheduler. Not before the job
  may begin, or another would be first.
- *aside*: pinned a job is before all others, and which of the nodes that have room for it it starts
  on is the batch system's choice. So before it is told when to begin, and before its guest is
  pinned, its fence is put around those nodes, too, that are kept for others, and from its unfence
  to its start around these alone: anew, where it waits for another's fence to fall. Who is not to
  start any more loses its pin before that falls.
- *lower*: a job that waits with none of its own place left to return to waits as a victim does.
- *release*: gives it the priority back that the batch system computes.
- *settle*: sees it run for a moment. A slurmd that was started again while the run before ended is
  told to end it twice. So the next one begins later there; should it be ended all the same, it is
  requeued, however late that is seen; so is one that is left to the queue and starts within these
  seconds, a victim or one that its owner has changed. One that is suspended before its requeue is
  looked at so, too.

- *give back*: no part of a hand-over; what a job lent to one, its owner's --time-min and --nice, it
  has again as soon as it may, outside of any.

A preemption is the same with a guest: the job that room is made for is pinned above the victim just
before the fence falls, as that holds on every node, and released as soon as it runs, or as the
victim does: it may not start. One job makes room for one guest. A guest that does not start in its
room is released, too, once that has been there for as long as a job may take to start: what keeps
it from there is nothing that room can mend. So is one that asks for more by now, or elsewhere: it
has its turn as all others have. Where its pin is refused for good, or for 10 s, the fence falls for
its victim. Of an array a task is a guest.

A job that waits at the end, a victim or one whose place was taken while pliantd was dead, keeps
a pin, that of a victim: it is the next to start, for as long as it asks for no more than it had,
and nowhere else. Whoever sees it run, or ask otherwise, releases it.

Nothing is done against an owner: a job that is held, cancelled or requeued by its owner meanwhile
is only cleaned up after. One that is held while it runs is asked for nothing; where its program has
saved and ended already it goes back into the queue, without a pin, and stays held there. One that
was given another request, time to begin or place meanwhile keeps that, and loses its pin: it could
ask for more than it had, before all others. And no run is ended that may not be the one that saved.

Source: measured on Slurm 22.05 and 24.11; the lifecycle is that of Seo (paper 003), the guest that
of Yabuuchi et al. (paper 001, FitGpp).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pliant.model import Job, JobState, Shape

PINNED = 4_294_967_000
"""The priority of a victim, and of a job whose place was taken: the next to start.

Above those of priority/basic too, which begin at 4,294,901,760; Slurm's largest is 4,294,967,293.
"""
GUEST = PINNED + 1
"""That of a guest: it starts before its victim."""
RETURNS = PINNED + 2
"""That of a job that returns to its own place, where what it gave up is nobody else's.

One that grows is before guests too, also where its further GPUs were taken meanwhile. Two that
return at once have no order: either may start where the other was.
"""
HANDED = frozenset({PINNED, RETURNS})
"""Those of a job that has been handed over."""
OURS = HANDED | {GUEST}
FENCE_S = 125.0
"""How long a fence stands at least that nobody ends."""
RENEW_S = 60.0
"""A fence that ends sooner than this is renewed while it is needed."""
START_S = 10.0
"""How long it may wait with its way cleared: something else is in it, and others are not kept."""
BLOCKED_S = 5.0
"""The same where the batch system says another reason than that others are in its way."""
REFUSED_S = 10.0
"""What is refused that may be taken yet is given up when it is refused again so long after."""
PUT_BACK_S = 3.0
"""How long it is tried at least to put a request back; then the job starts as far as it can."""
SETTLE_S = 5.0
"""How long after its start a kill may end it that was meant for its run before.

Such a kill comes within two seconds (measured); what it ends may take some more to be over.
"""
SOON_S = 1.0
"""How long after it was put back into the queue a job may begin: the next second."""
ASIDE_RENEW_S = 4.0
"""A fence that is aside and ends sooner than this is put there anew while its job is to start."""
ASIDE_MOST_S = 60.0
"""For how long after it may begin: those for whom that is kept cannot start there either."""
FRESH_S = 5.0
"""The same beside a slurmd that ran for no longer: it may yet be told something a second time."""
STARTS = 3
"""How often its start may fail before it is left to the queue, which waits longer between two."""
NOT_STARTED = "the batch system did not start it with that in time"
GIVE_UP_S = 600.0
"""How long a job may take from its checkpoint to its next start before it is left to the queue."""


class Do(StrEnum):
    """What to do next."""

    WAIT = "wait"
    PIN = "pin"
    FENCE = "fence"
    RENEW = "renew"
    REQUEUE = "requeue"
    RESHAPE = "reshape"
    TURN_BACK = "turn back"
    PUT_BACK = "put back"
    PIN_GUEST = "pin-guest"
    UNFENCE = "unfence"
    LOWER = "lower"
    RELEASE = "release"
    RELEASE_GUEST = "release-guest"
    SETTLE = "settle"
    GIVE_BACK = "give back"
    END = "end"


class Outcome(StrEnum):
    """How a hand-over ended."""

    DONE = "done"
    NOT_SAVED = "its checkpoint did not come in time, or was wanted no more"
    STALLED = "no heartbeat came since its checkpoint was requested: its program hangs"
    UNTOLD = "its program could not be told that a checkpoint is wanted: it goes on as it is"
    RUN_OVER = "its run ended before its checkpoint"
    GONE = "it has ended"
    HELD = "its owner holds it"
    HELD_BY_ADMIN = "an administrator holds it"
    NOT_LAUNCHED = "the batch system could not launch it"
    STAYS = "it was to stay, or could not have started so there any more: it goes on as it is"
    SLOW = "it did not start again in time and waits in the queue"
    AS_WAS = "it started again before it had that shape"
    REFUSED = "it goes on as it was, for the batch system does not give it that shape"
    CHANGED = "somebody else changed it or started it anew meanwhile: it goes on as it says now"


BEGINS = frozenset((Do.RESHAPE, Do.PUT_BACK, Do.PIN_GUEST))
"""What lets a job start that is pinned, or its guest, as soon as nothing else keeps it."""
BEFORE_RESHAPE = frozenset((Do.PIN, Do.FENCE, Do.RENEW, Do.REQUEUE))
"""Where one of these is refused the job stays as it runs; one that waits does without."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What is intended: ``run`` counts the job's restarts before it; ``guest`` is made room for.

    ``asks``: the guest as it waited when room was decided on for it, None where that is not known;
    who asks for more since is no guest any more.

    ``before``: what it had; ``shape``: what it is to carry next; ``until_s``: by when its
    checkpoint must be written; ``saved_s``: when it was, 0 before; ``end_s``: by when the job must
    end for good, 0 where its time limit begins anew.

    ``hindered_s``: since when a step of BEFORE_RESHAPE is refused, 0 where none is; ``barred``:
    that is given up as it waits, and it goes on without: its GPUs stand idle.

    ``made``: whether it was seen to ask for ``shape`` since it was last reshaped: what it asked
    before is then its owner's, and not what a refused reshape left. Stored with what is intended.
    ``told_s``: when it was told to begin last, taken or not; ``begin_s``: the same once that was
    seen to be taken, 0 before. ``ran_s``: when the run that is handed over was last known to run,
    by the batch system's clock: it was seen to, or to end, or told to go back.

    ``refused``: in the batch system's words why it does not get that shape, said first at
    ``refused_s`` of a reshape; ``for_good``: that is given up. ``back_s``: since when it turns
    back, 0 where it does not; ``stuck``: what was to be put back had its time.

    ``changed``: it waited and was seen to say something else, which stands though a time to begin
    comes that could be anybody's.

    None of it is given up by time alone: pliantd may have been stopped, and tried it but once.

    Instants are seconds since the epoch, by slurmctld's clock.
    """

    job: str
    run: int
    shape: Shape
    asked_s: float
    until_s: float
    saved_s: float = 0.0
    guest: str = ""
    end_s: float = 0.0
    before: Shape = field(kw_only=True)
    asks: Job | None = None
    made: bool = False
    refused: str = ""
    refused_s: float = 0.0
    for_good: bool = False
    back_s: float = 0.0
    stuck: bool = False
    hindered_s: float = 0.0
    barred: bool = False
    changed: bool = False
    told_s: float = 0.0
    begin_s: float = 0.0
    ran_s: float = 0.0

    @property
    def pins(self) -> frozenset[int]:
        """The priorities that do for it: a victim is not to start before its guest."""
        return frozenset({PINNED}) if self.guest else HANDED

    @property
    def goal(self) -> Shape:
        """The shape with which it is to start again."""
        return self.before if self.back_s else self.shape


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen of one job: ``state`` is None once it has ended.

    ``carries``: the shape it asks for, None where not told; ``queued_s``: since when it waits, in
    whole seconds; ``begins_s``: when it may begin; ``started_s``: when it started, in whole
    seconds; ``limit_s``: the time limit of the run that is asked, as its request says it, inf
    where it has none, 0 where that is not told; ``ends_s``: when that ends it, 0 without one;
    ``fresh_s``: when the youngest slurmd of its nodes started, 0 where there is none; ``killed``:
    it failed after its checkpoint, at the very start of a later run or before it was requeued;
    ``changed``: it says something else than when it was asked, or runs and may not be in the run
    that saved;
    ``blocked``: why it does not start, in the batch system's words, where that is not for others
    that have the room or are before it; ``not_launched``: it is held because its start failed;
    ``held_by_admin``: by somebody other than its owner; ``suspended``: it has its place, and stands
    still until whoever stopped it lets it go on.
    """

    state: JobState | None
    run: int = 0
    priority: int = 1
    held: bool = False
    killed: bool = False
    changed: bool = False
    carries: Shape | None = None
    queued_s: float = 0.0
    begins_s: float = 0.0
    started_s: float = 0.0
    fresh_s: float = 0.0
    blocked: str = ""
    limit_s: float = 0.0
    ends_s: float = 0.0
    not_launched: bool = False
    held_by_admin: bool = False
    suspended: bool = False

    @property
    def pinned(self) -> bool:
        """Whether its priority is one of ours."""
        return self.priority in OURS

    @property
    def is_waiting(self) -> bool:
        """Whether it waits, and nobody holds it."""
        return self.state is JobState.WAITING and not self.held


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is seen by a look that began at ``now_s``, by the batch system's clock.

    ``fence_end_s``: when the fence ends, 0 without one; ``fence_least_s``: how long it must stand
    yet for the job to be requeued behind it, should pliantd be killed then. ``ahead_s``: how far
    our clock is ahead of that: nothing can be made to begin before ours. ``behind_s``: when another
    job's fence was last seen around its nodes, 0 where none was: nothing starts there meanwhile.
    ``room_s``: when the room for its guest was last seen to be made yet. ``aside_end_s``: when the
    fence ends where that stands around nodes that are kept for others, and not the job's any more.
    ``late_s``: for how long nobody may be started though nothing is in the way.
    """

    now_s: float
    job: Sight
    guest: Sight = Sight(None)
    fence_end_s: float = 0.0
    ahead_s: float = 0.0
    fence_least_s: float = RENEW_S
    behind_s: float = 0.0
    room_s: float = 0.0
    aside_end_s: float = 0.0
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next.

    ``begin_s`` for RESHAPE and PUT_BACK, ``outcome`` for END, ``words`` for TURN_BACK. For UNFENCE
    ``opens``: the job is to start now, or its guest. ``aside`` for that and what is of BEGINS:
    nodes on which it is not to.
    """

    do: Do
    begin_s: float = 0.0
    outcome: Outcome | None = None
    words: str = ""
    opens: bool = False
    aside: frozenset[str] = frozenset()


_WAIT = Step(Do.WAIT)


def is_contradicted(over: HandOver, job: Job) -> bool:
    """Whether a stored hand-over is older than what the batch system has come to since.

    A disk may lose what was written last. A pin tells that the job's program has saved; and where
    that is said to be long ago, it was requeued for another checkpoint than this.
    """
    if job.priority not in HANDED or job.state is JobState.RUNNING:
        return False
    return not over.saved_s or job.submit_s > over.saved_s + GIVE_UP_S


def next_step(over: HandOver, scene: Scene) -> Step:
    """Return what to do next."""
    outcome = _outcome(over, scene)
    if outcome is not None:
        return _tidy(over, scene, outcome)
    if not over.saved_s:
        return _WAIT
    if scene.job.state is JobState.RUNNING:
        return _before_requeue(over, scene)
    if scene.job.killed:
        return Step(Do.REQUEUE)
    if scene.job.state is not JobState.WAITING:
        return _fenced(scene, scene.fence_least_s) or _WAIT
    return _before_start(over, scene)


def _outcome(over: HandOver, scene: Scene) -> Outcome | None:
    """How it ended; None while it goes on."""
    job, now_s = scene.job, scene.now_s
    if job.run > over.run and job.state is JobState.RUNNING:
        return _started(over, job)
    if job.held and not (over.saved_s and job.state is JobState.RUNNING):
        return _held(job)
    if over.saved_s:
        return _given_up(over, scene)
    if job.state is not JobState.RUNNING:
        return Outcome.RUN_OVER
    return Outcome.NOT_SAVED if now_s > over.until_s else None


def _started(over: HandOver, job: Sight) -> Outcome:
    """How it ended of one that runs again."""
    if job.carries in (None, over.shape):
        return Outcome.DONE
    if job.carries != over.before:
        return Outcome.CHANGED
    return Outcome.REFUSED if over.back_s else Outcome.AS_WAS


def _held(job: Sight) -> Outcome:
    """Who holds it."""
    if job.not_launched:
        return Outcome.NOT_LAUNCHED
    return Outcome.HELD_BY_ADMIN if job.held_by_admin else Outcome.HELD


def _given_up(over: HandOver, scene: Scene) -> Outcome | None:
    """Why one whose program has saved is not handed over; None while it may be."""
    job, now_s = scene.job, scene.now_s
    if job.state is None and not job.killed:
        return Outcome.GONE
    if job.changed or (over.changed and not job.killed):
        return Outcome.CHANGED
    ends_so = 0 < over.hindered_s < now_s - GIVE_UP_S  # nobody may requeue it
    if ends_so or job.run > over.run + STARTS:
        return Outcome.NOT_LAUNCHED
    since_s = max(job.begins_s, over.back_s, scene.behind_s, scene.room_s)
    late = _is_cleared(over, scene) and now_s > since_s + START_S + scene.late_s
    far = job.is_waiting and job.begins_s > now_s + GIVE_UP_S  # by a clock that was set back
    long = now_s > over.saved_s + GIVE_UP_S and not job.killed  # which nobody else starts again
    gives_up = far or long or (late and not _in_vain(over, scene))
    return Outcome.SLOW if gives_up else None


def _is_cleared(over: HandOver, scene: Scene) -> bool:
    """Whether nothing of ours keeps it from starting, or its guest where that waits."""
    job = scene.job
    asks = job.carries == over.goal or over.stuck
    waits = job.is_waiting and (not over.guest or scene.guest.is_waiting)
    return waits and asks and not scene.fence_end_s


def _in_vain(over: HandOver, scene: Scene) -> str:
    """Why it is not to be had in that shape, in words; "" where it may be, or turns back already.

    What is no more than it had, and has no room now, had none as it was either.
    """
    job, now_s = scene.job, scene.now_s
    if over.back_s:
        return ""
    if over.for_good:
        return over.refused
    if over.before == over.shape or not _is_cleared(over, scene):
        return ""
    since_s = max(job.begins_s, scene.behind_s)
    if job.blocked and now_s > since_s + BLOCKED_S:
        return job.blocked
    more = over.shape.amount > over.before.amount
    return NOT_STARTED if more and now_s > since_s + START_S + scene.late_s else ""


def _settles(over: HandOver, scene: Scene) -> bool:
    """Whether a kill that was meant for its run before may meet the one that has begun, or may."""
    job, now_s = scene.job, scene.now_s
    if job.state is JobState.WAITING:
        kills = over.saved_s > 0 and job.fresh_s > 0
        return kills and 0 <= now_s - job.queued_s < FRESH_S
    return abs(now_s - job.started_s) < SETTLE_S


def _before_requeue(over: HandOver, scene: Scene) -> Step:
    if scene.job.suspended:  # requeued it would wait, held, and `scontrol resume` be refused
        return Step(Do.UNFENCE) if scene.fence_end_s else Step(Do.SETTLE)
    if scene.job.held:
        return Step(Do.REQUEUE)
    if scene.job.priority not in over.pins:
        return Step(Do.PIN)
    return _fenced(scene, scene.fence_least_s) or Step(Do.REQUEUE)


def _fenced(scene: Scene, least_s: float = RENEW_S) -> Step | None:
    """What keeps the fence standing, for ``least_s`` more; None where it does."""
    if not scene.fence_end_s:
        return Step(Do.FENCE)
    return Step(Do.RENEW) if scene.fence_end_s - scene.now_s < least_s else None


def _before_start(over: HandOver, scene: Scene) -> Step:
    """It waits: first what it asks for and when, then the way is cleared."""
    job = scene.job
    begin_s = job.queued_s + (FRESH_S if job.fresh_s > job.queued_s - FRESH_S else SOON_S)
    words = _in_vain(over, scene)
    if words:
        return Step(Do.TURN_BACK, words=words)
    stuck = over.stuck
    behind = max(job.begins_s, begin_s) > scene.now_s and not (stuck or over.barred)
    fence = _fenced(scene) if behind else None
    if fence is not None:  # it was requeued by somebody else, who made none
        return fence
    in_time = job.begins_s <= max(begin_s, scene.now_s + scene.ahead_s)
    if not stuck and not (in_time and job.carries == over.goal):
        return Step(Do.PUT_BACK if over.back_s else Do.RESHAPE, begin_s)
    soon = not stuck or job.begins_s <= scene.now_s + PUT_BACK_S
    return _cleared(over, scene, max(begin_s, job.begins_s) if soon else begin_s)


def _cleared(over: HandOver, scene: Scene, begin_s: float) -> Step:
    """Clear the way from ``begin_s`` on, for whom it is to be."""
    guest = scene.guest
    # A batch system that was killed forgets its last seconds.
    forgotten = scene.job.priority not in over.pins
    if forgotten and not over.barred:
        return Step(Do.PIN)
    if guest.pinned and guest.held:  # what it asks now is more than it was given room for
        return Step(Do.RELEASE_GUEST)
    may_fall = not scene.fence_end_s or scene.now_s >= begin_s
    if guest.is_waiting and not guest.pinned and may_fall:
        return Step(Do.PIN_GUEST)
    falls = scene.fence_end_s > 0 and may_fall
    ends = 0 < scene.aside_end_s < scene.now_s + ASIDE_RENEW_S
    if falls or (ends and scene.now_s < begin_s + ASIDE_MOST_S):
        return Step(Do.UNFENCE, opens=True)
    return _tidy(over, scene, Outcome.DONE) if over.guest and not scene.fence_end_s else _WAIT


def _tidy(over: HandOver, scene: Scene, outcome: Outcome) -> Step:
    """Take everything back that would outlast the hand-over; end it once no kill may meet it."""
    job, guest = scene.job, scene.guest
    changed = outcome is Outcome.CHANGED  # it may ask for more now than it gave up
    falls = scene.fence_end_s > 0 and not (job.pinned and changed)
    if falls:  # in the second in which it ended it is not to start
        soon, opens = 0 <= scene.now_s - job.queued_s < SOON_S, guest.pinned and guest.is_waiting
        return _WAIT if soon else Step(Do.UNFENCE, opens=opens)
    room = job.state is not JobState.RUNNING  # else it is the job's again
    if outcome is Outcome.DONE and guest.is_waiting and room:
        return _WAIT
    if guest.pinned or scene.aside_end_s:  # what lets it start is the fence's end
        return Step(Do.RELEASE_GUEST if guest.pinned else Do.UNFENCE)
    if job.pinned and (job.state is JobState.RUNNING or changed):
        return Step(Do.RELEASE)
    if job.priority == RETURNS:
        return Step(Do.LOWER)
    return Step(Do.SETTLE) if _settles(over, scene) else Step(Do.END, outcome=outcome)
