"""Hand-overs on Slurm: its fake behind the adapter that ships, and what is Slurm's alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any, cast

from pliant.batch import FENCE, HELD_FOR_SHAPE
from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.jobs import running_job
from pliant.batch.slurm.snapshot import snapshot_of
from pliant.daemon.handing import ONCE_MORE_S
from pliant.grammar import find_token, put_token
from pliant.grammar.token import PRIORITY
from pliant.handover import (
    BLOCKED_S,
    FENCE_S,
    FRESH_S,
    OURS,
    PINNED,
    PUT_BACK_S,
    REFUSED_S,
    RENEW_S,
    RETURNS,
    SETTLE_S,
    SOON_S,
    HandOver,
    Outcome,
)
from pliant.model import Job, Snapshot
from pliant.node import words
from pliant.node.core import SILENT_S
from pliant.node.words import CHECKPOINTED, Stage
from prove.changed import changed
from prove.fake_slurm import (
    BY_OWNER,
    HELD,
    KILLED,
    KILLS_S,
    LIMIT_MIN,
    LISTED_S,
    REQUEUE_S,
    FakeSlurm,
    Jobs,
    Record,
    held_for_shape,
)
from prove.moves import JUST_S, Move, acts_alone, as_found
from prove.once import QueriesOnce
from prove.world import (
    BEGAN_S,
    CPUS_A_GPU,
    GROWS,
    GUEST,
    JOB,
    MAKES_ROOM,
    RIVAL,
    SHRINKS,
    SPREADS,
    TRIAL,
    Machine,
    Rejected,
    Said,
    SameBy,
    Seen,
    World,
)

MORE_MIN = 2 * LIMIT_MIN
TO_START_S = 2.0
"""How soon after its run was last seen to run the next one starts at once."""
LATER_S = 300.0  # another than Slurm lets each job wait for that it requeues
STORES_S = 10.0
"""How soon slurmctld has stored what it was told, also where much is to be stored."""
IDLE_S = BLOCKED_S + REFUSED_S + PUT_BACK_S + SETTLE_S
"""For how long a fence may stand around what a job may have, and does not take."""
MOST_REQUEUES = "JobHoldMaxRequeue"
"""Why Slurm holds a job that it has sent back too often."""
FAILS = "1:0"
"""The exit code of a program that fails by itself, or is not launched for an old credential."""
_CHANGED = attrgetter(
    *("number", "state", "gpus", "nodes", "held", "cpus", "min_cpus", "priority", "run"),
    "limit_min",
    *("bf_priority", "reason", "comment", "dependency", "code", "final", "requeues"),
    *("written_back", "unfit", "unseen"),
)
_BY_ITS_OWNER = frozenset((Outcome.HELD, Outcome.CHANGED))
"""After which what becomes of a job is its owner's: pliantd requeues it no more."""
_OF_GUESTS = frozenset(("Priority", "AdminComment"))
_CHANGES = frozenset(("update", "create", "delete", "requeue", "release"))


class OnSlurm(Machine):
    """Does moves on Slurm."""

    name = "Slurm"
    kinds = (SHRINKS, GROWS, SPREADS, MAKES_ROOM)
    saves_s = 5.0
    temporary = "slurm_update error: Requested operation is presently disabled"
    halves = (
        frozenset(("AdminComment",)),
        frozenset(("Gres", "AdminComment")),
        frozenset(("NumCPUs", "MinCPUsNode", "NumNodes")),
    )
    for_good = (
        "slurm_update error: Job violates accounting/QOS policy (job submit limit,"
        " user's size and/or time limits)"
    )

    def __init__(self, same_by: SameBy) -> None:
        self.slurm = Slurm(cast("Any", self), self._clock, monotonic=self._clock)
        self.cluster = self.slurm._cluster = Cluster((22, 5), {}, {})
        fake = FakeSlurm(Jobs({}, {}), BEGAN_S)
        queries = QueriesOnce(self, self._clock, fake)
        self.slurm._queries = cast("Any", self.slurm)._handing._queries = queries
        super().__init__(same_by, fake, self.slurm)

    def jobs(self) -> Jobs:
        """A job that is alone, and a rival that waits for all that there is."""
        self.fake.nodes = self.kind.nodes
        began_s, had, spec = BEGAN_S - 600, self.kind.had, self.kind.spec
        running = Record(JOB, "RUNNING", submit_s=began_s, begin_s=began_s, start_s=began_s + 100)
        cpus = had.gpus * CPUS_A_GPU
        running = changed(running, gpus=had.gpus, cpus=cpus, min_cpus=cpus)
        rival = Record(RIVAL, priority=1000, own_priority=1000, submit_s=began_s + 300)
        jobs = [
            changed(running, comment=put_token("", spec)),
            changed(rival, nodes=len(self.kind.nodes)),
        ]
        if self.kind.guest:
            trial = Record(GUEST, priority=500, own_priority=500, submit_s=began_s + 400)
            jobs.append(changed(trial, comment=put_token("", TRIAL)))
        return Jobs({job.number: job for job in jobs}, {})

    # --- the adapter -----------------------------------------------------------------------

    def _rows(self) -> list[Any]:
        return self.slurm._queries.jobs()

    def asked(self) -> Job:
        (row,) = (one for one in self._rows() if one.key == str(JOB))
        return running_job(row, self.cluster)

    def sees(self, since: Any = None) -> Snapshot:
        seen = snapshot_of(self._since(since, self._rows), self.cluster, {}, self.fake.now_s)
        reservations = self._since(since, self.slurm._queries.reservations)
        return replace(seen, reservations=reservations)

    def remember(self, _memory: Any) -> None:
        cast("Any", self.slurm)._handing._fresh_s.cache_clear()

    def memory(self) -> None:
        return None

    def known(self, batch: Jobs, seen: Seen) -> object:
        ends = batch.fences.items()
        fences = tuple([(name, seen(end_s), batch.fenced[name]) for name, end_s in ends])
        return (fences, len(batch.bars), *[_asked_of(job, seen) for job in batch.jobs.values()])

    def seen_to_run(self, over: HandOver, world: World, seen: Seen) -> object:
        """Whether its next run has started at once, or would."""
        if not over.ran_s:
            return None
        ended_s = max(over.saved_s, over.ran_s)
        if world.job.has_failed:
            return bool(world.job.start_s <= ended_s + TO_START_S)
        return seen(ended_s, TO_START_S)

    def changes(self, argv: Sequence[str]) -> bool:
        return argv[0] == "scontrol" and argv[1] in _CHANGES

    def may_not(self, argv: Sequence[str]) -> str:
        if argv[0] == "squeue" or "show" in argv:
            return ""
        jobs = self.fake.state.jobs
        match argv[1:]:
            case ("create" | "delete", *_):
                return ""
            case ("requeue", number):
                return self._may_not_requeue(jobs[int(number)])
            case ("release", number):
                return self._may_not_raise(jobs[int(number)])
            case ("update", what, *words):
                _, number = what.split("=")
                return self._may_not_update(jobs[int(number)], words) if number.isdigit() else ""
        return "it never says that"

    def _may_not_requeue(self, job: Record) -> str:
        if "CANCELLED" in (job.state, job.final):
            return "its owner has cancelled it"
        over = self.overs.of(str(job.number))
        known = over is not None and over.ran_s > 0
        by_itself = job.has_failed and job.code == FAILS and not _began_at_once(job, known=known)
        return "it has failed by itself" if by_itself else self.may_not_end(job)

    def _may_not_update(self, job: Record, words: Sequence[str]) -> str:
        names = {word.partition("=")[0] for word in words}
        if "Priority=0" in words:
            return "it holds a job"
        if job.number == RIVAL or (job.number == GUEST and not names <= _OF_GUESTS):
            return "it is another's job"
        return self._may_not_raise(job) if "Priority" in names else ""

    def _may_not_raise(self, job: Record) -> str:
        return "its owner holds it" if job.reason == BY_OWNER and not job.priority else ""

    def may_be_requeued(self, job: Record) -> bool:
        return job.requeues

    def does_half(self, argv: Sequence[str], words: frozenset[str]) -> None:
        some = [word for word in argv[3:] if word.partition("=")[0] in words]
        if argv[1] == "update" and some:
            self.fake.told(("update", argv[2], *some))

    # --- what may happen, and what is left -------------------------------------------------

    def instants(self, world: World) -> Iterator[float]:
        if world.job.runs:
            yield from (world.job.start_s + 1.0, world.job.start_s + SETTLE_S)
        if world.job.waits:
            waits_s, *_ = (*world.waited_s, 0.0)
            yield int(max(world.job.submit_s, waits_s)) + SOON_S
        for job in world.batch.jobs.values():
            if job.is_between_runs:
                yield job.begin_s if job.waits else job.cleaned_s
        for end_s in world.batch.fences.values():
            yield from (end_s, end_s - RENEW_S + JUST_S, end_s + LISTED_S)

    def idles(self, world: World) -> str:
        job, fences = world.job, world.batch.standing(world.now_s)
        over = world.over
        tried_s = (over.hindered_s, over.refused_s, over.back_s, *world.waited_s) if over else ()
        waited_s = world.now_s - max(job.begin_s, job.killed_s, *tried_s)
        is_seen = world.pliantd is not None and world.pliantd.resumed
        if not (is_seen and job.waits and waited_s > IDLE_S):
            return ""
        if fences:
            return f"its fence stands: {job}"
        guest = world.batch.jobs.get(GUEST)
        idle = guest is not None and guest.waits and guest.priority in OURS
        return f"its guest has not started, and keeps its pin: {guest}" if idle else ""

    def is_crowded(self, world: World) -> bool:
        return any(world.batch.free(node) < 0 for node in self.fake.nodes)

    def wrong(self, before: World, after: World) -> str:
        had, guest = (world.batch.jobs.get(GUEST) for world in (before, after))
        starts = guest is not None and guest.runs and not had.runs
        larger = starts and guest.limit_min > LIMIT_MIN
        if larger and self.is_left_so(before, _has_pinned_guest):
            return f"its guest starts before all others, and asks for more: {guest}"
        comes = before.job.waits and (after.job.waits or after.job.runs)
        if comes and _falls(before, after) and _asks_more(after):
            return f"it goes before all others, and asks for more: {after.job}"
        return self._strays(before, after)

    def _strays(self, before: World, after: World) -> str:
        """Who starts on what is kept for others, but a victim that waits: that is before all."""
        for number in (JOB, GUEST):
            had, has = (world.batch.jobs.get(number) for world in (before, after))
            starts = has is not None and has.runs and not had.runs
            is_victim = number == JOB and self.kind.guest
            is_ours = starts and not is_victim and had.priority in OURS
            # pliantd is dead for so long, or may be slow, where Slurm lets it begin at once
            job, at_once = before.job, before.job.begin_s <= before.job.killed_s
            is_late = at_once or before.now_s >= job.killed_s + REQUEUE_S
            is_ours = is_ours and not after.free and not is_late
            if is_ours and not self.kind.kept.isdisjoint(has.on):
                return f"it starts on what is kept for others: {has}"
        return ""

    def left(self, world: World) -> str:
        return next(self._left(world), "")

    def has_ours(self, world: World) -> bool:
        job, standing = world.job, world.batch.standing(world.now_s)
        return f"{FENCE}{JOB}" in standing or (not job.is_over and job.priority in OURS)

    def is_lost_behind(self, world: World, *, looks: bool) -> bool:  # noqa: ARG002  # PBS asks
        """One that waits is pinned; one whose start was revoked nobody requeues."""
        return bool(world.job.has_failed)

    def is_fenced(self, world: World, at_s: float) -> bool:
        return bool(world.batch.standing(at_s))

    def _left(self, world: World) -> Iterator[str]:
        job, guest = world.job, world.batch.jobs.get(GUEST)
        if world.batch.standing(world.now_s):
            yield f"a reservation is left: {world.batch.fences}"
        if job.waits and _begins_by_nobody(world):
            yield f"it begins later, and nobody wants that: {job}"
        if job.has_failed and job.run and job.requeues and job.code == KILLED:
            yield f"it has failed by a kill of its run before: {job}"
        if job.waits and _goes_before_all(world):
            yield f"it waits before others, of whose place it has none: {job}"
        last = world.store[-1]
        is_late = world.now_s >= last.saved_s + ONCE_MORE_S
        may_stay = is_late or last.outcome in _BY_ITS_OWNER
        if world.lost and not (may_stay or self.hurries(world)):
            yield f"its requeue is forgotten, and nobody does it once more: {job}"
        if guest is not None and guest.priority in OURS and not guest.is_over:
            yield f"its guest is pinned: {guest}"
        if job.runs and (job.priority in OURS or "pliant-" in job.comment):
            yield f"it runs with what is ours: {job}"

    def moves(self, world: World) -> Iterator[Move]:
        job = world.job
        if job.waits and not job.priority and job.reason != HELD_FOR_SHAPE:  # held again at once
            yield "owner releases", partial(self.tells, world, "release", str(JOB))
        if self.hurries(world):
            yield "its next run is heard", partial(self._heard_of, world)

    def hurries(self, world: World) -> bool:
        """Whether the run that slurmctld has forgotten says that it is there, and that helps."""
        hears = world.lost and world.pliantd is not None and world.pliantd.resumed
        return hears and self.same_by(self._heard_of(world)) != self.same_by(world)

    def _heard_of(self, world: World) -> World:
        """What it has done since counts for nothing once it is to go back once more.

        So it is with one whose hand-over is under way yet.
        """
        goes_back = world.has_saved and world.over is not None
        self._take(world)
        goes_back |= self.overs.forgotten(self.asked()) and self.overs.of(str(JOB)) is not None
        return changed(self._given(world), has_saved=goes_back)

    def exits(self, world: World, code: int) -> World:
        state = "FAILED" if code else "COMPLETED"
        return self.does(world, lambda slurm: slurm.end(JOB, state, f"{code}:0"))

    def requeues(self, world: World) -> World:
        return self.tells(world, "requeue", str(JOB))

    def goes_unmanaged(self, world: World, code: int) -> World:
        if code == CHECKPOINTED:
            return changed(world, has_saved=True, alone_s=world.now_s + SILENT_S)
        return self.exits(world, code)

    def requeues_alone(self, world: World) -> World:
        """Where that is refused, `pliant run` begins anew in its place."""
        try:
            if self.answers_nobody:
                raise Rejected("no answer")
            return self.requeues(changed(world, alone_s=0.0))
        except Rejected:
            return changed(world, wrapper=self.wrapper(), has_saved=False, alone_s=0.0)

    # --- what may go wrong -----------------------------------------------------------------

    def faults(self, world: World) -> Iterator[Move]:
        earlier, job = world.earlier, world.job
        if earlier is not None:
            then = earlier.jobs[JOB]
            if (then.state, then.run) == (job.state, job.run):
                yield "slurmctld forgets", partial(self._forgets, world)
        for whose, number in (("its", JOB), ("its guest's", GUEST)):
            one = world.batch.jobs.get(number)
            if one is not None and one.waits and one.priority and one.bf_priority:
                begun = changed(one, priority=one.bf_priority, bf_priority=0, written_back=True)
                yield (
                    f"backfill writes {whose} priority back",
                    partial(changed, world, batch=world.batch.with_job(begun)),
                )
        yield from self._of_its_start(world)
        may_start = job.waits and job.priority and job.run and job.begin_s <= world.now_s
        if may_start and self._is_reshaped(job):
            batch = world.batch.with_job(held_for_shape(job))
            yield "Slurm holds it for its shape", partial(changed, world, free=True, batch=batch)
        wrapper = world.wrapper
        if (
            wrapper is not None
            and wrapper.stage is Stage.HANDING
            and world.now_s >= wrapper.until_s
        ):
            ends = partial(self.happens, world, words.Ticked(world.now_s))
            yield "slurmctld does not answer its wrapper", partial(self._answers_nobody, ends)
        if acts_alone(world):
            requeues = partial(self.requeues_alone, world)
            yield "slurmctld does not answer its guardian", partial(self._answers_nobody, requeues)
        if job.runs:
            unkept = changed(world, free=_is_free(world))
            yield "its node fails", partial(self.does, unkept, _node_fails)
            held = changed(world, free=True)
            yield "its node fails once too often", partial(self.does, held, _fails_too_often)
            if job.run and world.now_s < job.submit_s + STORES_S:
                yield from self._of_its_requeue(world)
            if job.run and world.now_s < min(job.start_s + SETTLE_S, job.submit_s + KILLS_S):
                free = changed(world, free=True)
                yield "a kill of before ends it", partial(self.does, free, _is_killed)
        # It is back within the second. Where nothing keeps its place, Slurm itself starts it in that
        # second, and its start fails, with Pliant as without.
        if job.state == "COMPLETING" and not job.final and world.batch.standing(world.now_s):
            yield "its node goes down as it ends", partial(self.does, world, _loses_its_node)
        yield from self._of_what_it_is_to_have(world)
        guest = world.batch.jobs.get(GUEST)
        if guest is not None and guest.waits:
            yield from self._of_its_guest(world, guest)

    def _of_its_requeue(self, world: World) -> Iterator[Move]:
        """Slurmctld is killed, and has not stored the requeue, nor perhaps what came before.

        A hand-over that is under way needs no word of the run's to do its requeue once more.
        """
        first = self.jobs()
        job = first.jobs[JOB]
        pin = PINNED if self.kind.guest else RETURNS
        noted = f"{PRIORITY}{job.own_priority} {job.comment}"
        pinned = first.with_job(changed(job, priority=pin, comment=noted))
        fence = {f"{FENCE}{JOB}": float(int(world.now_s)) + FENCE_S}
        fenced = pinned.with_fences(fence, dict.fromkeys(fence, self.kind.nodes))
        lost = changed(world, lost=True, earlier=None, said=(), has_saved=world.over is not None)
        for besides, batch in (("", fenced), (" and fence", pinned), (", fence and pin", first)):
            yield f"slurmctld forgets its requeue{besides}", partial(changed, lost, batch=batch)

    def _of_what_it_is_to_have(self, world: World) -> Iterator[Move]:
        over = world.over
        if over is not None and not over.hindered_s and not world.batch.fences:
            yield "a fence of before is listed yet", partial(self.does, world, _lists_a_fence)
        if self.kind.wants.gpus > self.kind.had.gpus and not world.batch.bars:
            yield "a limit is lowered below what it is to have", partial(self.does, world, _lowered)

    def _of_its_guest(self, world: World, guest: Record) -> Iterator[Move]:
        for does in ("hold", "cancel"):
            yield f"the guest's owner {does}s it", partial(self.tells, world, does, str(GUEST))
        free = changed(world, free=True)
        for name, word in (
            ("asks three GPUs for", "Gres=gpu:3"),
            ("lets later begin", _begin(world)[1]),
            ("asks more time for", f"TimeLimit={MORE_MIN}"),
        ):
            words = ("update", f"jobid={GUEST}", word)
            yield f"the guest's owner {name} it", partial(self.tells, free, *words)
        with suppress(Rejected):
            after = self.acts(free, between=partial(_tells, words=words))
            name = "the guest's owner asks more time for it, between pliantd's look and its step"
            yield name, partial(as_found, after)
        if not guest.lacks:  # another has a CPU of the node that it is to have alone, say
            lacks = world.batch.with_job(changed(guest, lacks=True))
            yield "its room does not do for its guest", partial(changed, free, batch=lacks)
        if guest.priority:
            held = changed(free, batch=world.batch.with_job(held_for_shape(guest)))
            yield "Slurm holds its guest for its shape", partial(as_found, held)

    def _answers_nobody(self, move: Callable[[], World]) -> World:
        self.answers_nobody = True
        try:
            return move()
        finally:
            self.answers_nobody = False

    def _forgets(self, world: World) -> World:
        """Slurmctld is killed before it has stored what it was told, by pliantd or by an owner.

        What a job had before the reshape that is forgotten is no owner's word any more. Where it
        remembers half of a reshape that it had refused halfway, and pliantd has noted that
        the whole was made since, that looks as if the job's owner had set the rest back: nobody
        can tell, and the job loses its place.
        """
        before = FakeSlurm(world.earlier, world.now_s)
        before.pass_to(world.now_s)
        job = before.state.jobs[JOB]
        told, had = self._is_reshaped(job), ("gpus", self.kind.had.gpus)
        said = [one for one in world.said if told or one != had]
        return changed(
            world,
            batch=before.state,
            earlier=None,
            said=tuple(one for one in said if getattr(job, one[0]) == one[1]),
            free=world.free or (told and not self._has_all(job) and world.store[-1].made),
        )

    def _is_reshaped(self, job: Record) -> bool:
        """Whether its token says that it has its new shape."""
        spec = find_token(job.comment)
        return spec is not None and spec.set == self.kind.wants

    def _has_all(self, job: Record) -> bool:
        """Whether it asks for all of its new shape."""
        new = self.kind.wants
        cpus = new.gpus * CPUS_A_GPU
        asked = (job.nodes, job.gpus, job.cpus, job.min_cpus)
        return asked == (new.nodes, new.gpus, new.nodes * cpus, cpus)

    def has_lost_its_place(self, world: World) -> bool:
        """Whether backfill has written the priority back that it had, while pliantd is dead."""
        return world.pliantd is None and bool(world.job.written_back)

    def _of_its_start(self, world: World) -> Iterator[Move]:
        """Its next start fails, which may come with what pliantd does, or with the scheduler's pass.

        A kill that was meant for its run before comes within seconds (measured).
        """
        free, ways = changed(world, free=True), [("refused by its node", HELD)]
        if world.now_s < world.job.submit_s + KILLS_S:
            ways.append(("killed by a kill of before", KILLED))
        for name, how in ways:
            for move in (self.acts, self.schedules):
                after = move(free, start_fails=how)
                if after.job.has_failed or after.job.reason == HELD:
                    yield f"its start is {name}", partial(as_found, after)

    def owners(self, world: World) -> Sequence[tuple[str, tuple[str, ...], Said]]:
        begin_s, begin = _begin(world)
        update, had = ("update", f"jobid={JOB}"), self.kind.had.gpus
        # One whose next start is killed stays FAILED, as its owner wants it: not tried here.
        forbids = (("forbids requeues", (*update, "Requeue=0"), ()),) if world.job.runs else ()
        return (
            *forbids,
            ("holds it", ("hold", str(JOB)), ()),
            ("requeues it", ("requeue", str(JOB)), ()),
            ("cancels it", ("cancel", str(JOB)), ()),
            ("asks three GPUs", (*update, "Gres=gpu:3"), (("gpus", 3),)),
            ("asks what it had", (*update, f"Gres=gpu:{had}"), (("gpus", had),)),
            ("lets it begin later", (*update, begin), (("begin_s", begin_s),)),
            ("gives it less time", (*update, "TimeLimit=7"), (("limit_min", 7),)),
        )


def _begin(world: World) -> tuple[float, str]:
    """When an owner lets a job begin later, and in which words."""
    begin_s = float(int(world.now_s + LATER_S))
    return begin_s, f"StartTime={datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%S}"


def _falls(before: World, after: World) -> bool:
    """Whether some of its place is fenced no more just now, and that has not ended by itself.

    The fence may stand on, around what others have waited for.
    """
    fell = _fenced(before) - _fenced(after)
    return bool(fell) and before.now_s == after.now_s


def _fenced(world: World) -> frozenset[str]:
    """What the fence of its hand-over is around."""
    name, batch = f"{FENCE}{JOB}", world.batch
    return frozenset(batch.fenced[name]) if name in batch.standing(world.now_s) else frozenset()


def _asks_more(world: World) -> bool:
    """Whether it has a pin of ours, and its owner wants more than a hand-over gives it."""
    job, over, asks = world.job, world.over, dict(world.said).get("gpus")
    pinned = job.priority in OURS
    return pinned and over is not None and job.gpus == asks and job.gpus > over.goal.gpus


def _lists_a_fence(slurm: FakeSlurm) -> None:
    """Of an earlier hand-over of the job, which has just ended by itself."""
    fences = {f"{FENCE}{JOB}": float(int(slurm.now_s))}
    slurm.state = slurm.state.with_fences(fences, {f"{FENCE}{JOB}": ("n1",)})


def _asked_of(job: Record, seen: Seen) -> object:
    """Since when a job waits or runs nobody asks but of the malleable one."""
    is_it = job.number == JOB
    match job.state:
        case "PENDING":
            return (_CHANGED(job), seen(job.begin_s), is_it and seen(job.submit_s))
        case "RUNNING":
            return (_CHANGED(job), is_it and seen(job.start_s))
        case "COMPLETING":
            return (_CHANGED(job), seen(job.cleaned_s), seen(job.begin_s))
        case _:
            how = (job.start_s <= job.submit_s, job.end_s - job.start_s <= SETTLE_S)
            return (_CHANGED(job), is_it and how)


def _begins_by_nobody(world: World) -> bool:
    """Whether it may begin at a time that neither its owner nor Slurm's requeue has set."""
    job = world.job
    is_soon = job.begin_s <= world.now_s + FRESH_S
    by_slurm = job.begin_s == job.submit_s + REQUEUE_S
    return not (is_soon or by_slurm or ("begin_s", job.begin_s) in world.said)


def _began_at_once(job: Record, *, known: bool) -> bool:
    """Whether it may have had an old credential: in the second of its requeue, or about that.

    Where its node went down Slurm does not say when that was; ``known``: whether pliantd saw it.
    """
    if job.submit_s < job.killed_s:
        return not known or job.start_s <= job.killed_s + 1.0
    return job.start_s <= job.submit_s


def _goes_before_all(world: World) -> bool:
    """Whether it is pinned as one that returns, or asks for more than it had."""
    job = world.job
    return job.priority == RETURNS or (job.priority in OURS and ("gpus", 3) in world.said)


def _is_free(world: World) -> bool:
    """Whether nothing keeps its place where it is sent back now: it was to go on as it is, say."""
    stays = world.over is not None and not world.over.saved_s
    batch, places = world.batch, {*world.job.on}
    fenced = (batch.fenced[name] for name in batch.standing(world.now_s))  # or what is aside
    return world.free or stays or all(places.isdisjoint(nodes) for nodes in fenced)


def _has_pinned_guest(world: World) -> bool:
    return world.batch.jobs[GUEST].priority in OURS


def _tells(slurm: FakeSlurm, *, words: Sequence[str]) -> None:
    slurm.told(words, by_owner=True)


def _lowered(slurm: FakeSlurm) -> None:
    slurm.bar(GROWS.wants.gpus, why="QOSMaxGRESPerUser")


def _is_killed(slurm: FakeSlurm) -> None:
    job = slurm.state.jobs[JOB]
    slurm.state = slurm.state.with_job(
        changed(job, state="FAILED", code=KILLED, reason="", end_s=float(int(slurm.now_s)))
    )


def _node_fails(slurm: FakeSlurm) -> None:
    slurm.sends_back(slurm.state.jobs[JOB])


def _loses_its_node(slurm: FakeSlurm) -> None:
    slurm.loses_its_node(slurm.state.jobs[JOB])


def _fails_too_often(slurm: FakeSlurm) -> None:
    """It was requeued max_batch_requeue times: Slurm holds it from then on."""
    slurm.sends_back(changed(slurm.state.jobs[JOB], priority=0, reason=MOST_REQUEUES))
