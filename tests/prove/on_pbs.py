"""Hand-overs on PBS: its fake behind the adapter and the hooks that ship, and what is PBS's alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from pliant.batch.pbs import Pbs
from pliant.batch.pbs.fences import Kept
from pliant.batch.pbs.handing import ENDS_S, FALSE_START_S
from pliant.batch.pbs.jobs import job_of
from pliant.batch.pbs.snapshot import snapshot_of
from pliant.batch.pbs.standing import AHEAD_S
from pliant.filter.pbs.fences import Fence, fences_text, read_fences
from pliant.filter.pbs.state import MAX_AGE_S
from pliant.grammar import request_text, token_text
from pliant.handover import RENEW_S, SETTLE_S, START_S
from pliant.model import Job, Snapshot, Spec
from pliant.node import core, words
from pliant.node.core import SILENT_S
from pliant.node.words import CHECKPOINTED
from prove.changed import changed
from prove.fake_pbs import SILENT, UNREACHED, UNTAKEN, WALLTIME_S, FakePbs, Jobs, Record
from prove.moves import JUST_S, Move, as_found, next_instant
from prove.once import PbsQueriesOnce
from prove.world import (
    BEGAN_S,
    CPUS_A_GPU,
    GROWS,
    GUEST,
    JOB,
    MAKES_ROOM,
    OLD,
    RIVAL,
    RUNS,
    SHRINKS,
    TRIAL,
    Kind,
    Machine,
    Rejected,
    Said,
    SameBy,
    Seen,
    World,
)

LATER_S = 100.0
SLOW_S = 200.0
"""How long a hook on a node takes that is slow: its alarm is at 300 s."""
OTHER = "other"
"""Another queue."""
CHANGES = frozenset(("qalter", "qrerun"))


@dataclass(frozen=True, slots=True)
class Remembered:
    """A fence as pliantd remembers it; ``stood``: when it was looked last who may start."""

    job: str
    until_s: float
    vnodes: tuple[str, ...]
    lets: tuple[str, ...]
    queues: tuple[str, ...]
    opened: bool
    stood: bool


class OnPbs(Machine):
    """Does moves on PBS."""

    name = "PBS"
    kinds = (SHRINKS, GROWS, MAKES_ROOM)
    temporary = "qalter: Request rejected by a hook of the site's"
    for_good = temporary  # PBS has no words by which one could tell

    def __init__(self, same_by: SameBy) -> None:
        memory = Path("/dev/shm")  # a directory that is nobody else's, in memory
        within = memory if memory.is_dir() else None
        self._directory = tempfile.TemporaryDirectory(prefix="pliant-prove-", dir=within)
        self._path = Path(self._directory.name) / "pbs_fences.json"
        self._full = self._path.with_name("f" * 250)  # no room for the name of another beside it
        self.pbs = Pbs(cast("Any", self), self._clock, fences=self._path)
        fake = FakePbs(_jobs([]), BEGAN_S)
        super().__init__(same_by, fake, self.pbs)
        self._handing, self._queries = self.pbs._handing, PbsQueriesOnce(self, self._clock, fake)
        self.pbs._queries = self._handing._queries = self._queries
        self._fences = self._handing._fences
        _, self._site = self._queries.look()
        self.pbs._site = self._site
        self._fixed: Any = self._queries._fixed
        self._taken: Any = None

    def begin(self, kind: Kind) -> World:
        """Begin with a fence in memory that has ended: it was handed over before."""
        world = super().begin(kind)
        assert world.pliantd is not None
        asked, *kept = world.pliantd.memory
        fence = Fence(str(JOB), BEGAN_S - START_S, ("n1", "n2"), (str(JOB), str(GUEST)), ("workq",))
        ended = _remembered(Kept(fence, opened=True), set())
        return changed(world, pliantd=changed(world.pliantd, memory=(asked, *kept, ended)))

    def jobs(self) -> Jobs:
        running = _record(JOB, self.kind.spec)
        running = changed(running, state="R", run_count=1, start_s=BEGAN_S - 5000)
        jobs = [running, Record(RIVAL)]
        if self.kind.guest:
            jobs.append(_record(GUEST, TRIAL))
        return _jobs(jobs)

    def wrapper(self) -> words.State:
        return words.State(returns=True)

    def happens(self, world: World, event: words.Event) -> World:
        """Let its wrapper see first whether PBS would learn how its script ends."""
        state = world.wrapper
        if state is not None and world.job.adopted and state.stage not in RUNS:
            parted, _ = core.step(state, words.Parted(world.now_s))
            world = changed(world, wrapper=parted)
        return super().happens(world, event)

    # --- the adapter -----------------------------------------------------------------------

    def asked(self) -> Job:
        (row,) = (one for one in self._queries.jobs() if one.id == str(JOB))
        return job_of(row, self._site)

    def sees(self, since: Any = None) -> Snapshot:
        rows = self._since(since, self._queries.jobs)
        self._handing.release(rows)
        self._handing.tend()
        return snapshot_of(rows, self._site, self.fake.now_s)

    def remember(self, memory: Any) -> None:
        fences = cast("Any", self._fences)
        if memory is None:  # it begins, and reads what another has left
            self._path.write_text(fences_text(self.fake.state.fences.values()))
            fences.__init__(self._path, self._clock)
        else:
            fences._asked, *kept = memory
            fences._kept = {one.job: _kept(one) for one in kept}
            fences._stood = {one.job for one in kept if one.stood}
        is_full = self.fake.state.flags["full"]
        fences._path = self._full if is_full else self._path
        self._taken = fences._kept
        self._queries._fixed = (self.fake.now_s, *self._fixed[1:])

    def memory(self) -> Any:
        fences = cast("Any", self._fences)
        kept = (_remembered(one, fences._stood) for one in fences._kept.values())
        return (fences._asked, *kept)

    def _given(self, world: World) -> World:
        fences = cast("Any", self._fences)
        if fences._kept is not self._taken:
            text = self._path.read_text() if self._path.exists() else ""
            told = read_fences(text) if text else ()
            if self.fake.state.flags["full"]:  # what could not be written is not noted either
                told = tuple(one.fence for one in fences._kept.values())
            shown = {one.job: one for one in told if one.stands(self.fake.now_s)}
            self.fake.state = changed(self.fake.state, fences=shown)
        self.fake.settle()
        return super()._given(world)

    def recalled(self, memory: Any, seen: Seen) -> object:
        asked, *kept = memory or (False,)
        return (asked, *[(one.opened, one.stood, one.lets, seen(one.until_s)) for one in kept])

    def known(self, batch: Jobs, seen: Seen) -> object:
        return (
            *[(fence.lets, fence.vnodes, seen(fence.until_s)) for fence in batch.fences.values()],
            seen(batch.since[SILENT]),
            tuple(batch.flags.values()),
            *[_asked_of(job, seen) for job in batch.jobs.values()],
        )

    def acts(self, world: World, **how: Any) -> World:
        return changed(super().acts(world, **how), earlier=None)  # PBS forgets no command

    def changes(self, argv: Sequence[str]) -> bool:
        return argv[0] in CHANGES or (argv[0] == "qmgr" and argv[2].startswith("set"))

    def may_not(self, argv: Sequence[str]) -> str:
        match argv:
            case ("qstat" | "pbsnodes" | "qmgr", *_):
                return ""
            case ("qalter", *_, number):
                return "" if number == str(JOB) else "it is another's job"
            case ("qrerun", number):
                job = self.fake.state.jobs[int(number)]
                return "its owner has deleted it" if job.deleted else self.may_not_end(job)
        return "it never says that"

    def may_be_requeued(self, job: Record) -> bool:
        return job.rerunable

    def does_half(self, argv: Sequence[str], words: frozenset[str]) -> None:
        """Do nothing: PBS takes a qalter whole or not at all."""

    # --- pliantd's life --------------------------------------------------------------------

    def killed(self, world: World) -> World:
        batch = changed(world.batch, since={SILENT: world.now_s})
        return super().killed(changed(world, batch=batch))

    def started(self, world: World) -> World:
        batch = changed(world.batch, since={SILENT: 0.0})
        return super().started(changed(world, batch=batch))

    def passes(self, world: World, now_s: float, *, looks: bool = True) -> World:
        after = super().passes(world, now_s, looks=looks)
        silent_s = after.batch.since[SILENT]
        return changed(after, free=after.free or 0 < silent_s < now_s - MAX_AGE_S)

    def _is_slow(self, world: World, at_s: float) -> World:
        """Its scheduler makes no cycle until then: whoever may start first has but START_S for it."""
        after = self.passes(world, at_s)
        lapses = self.is_fenced(world, world.now_s) and not self.is_fenced(world, at_s)
        return changed(after, free=after.free or lapses)

    def is_lost_behind(self, world: World, *, looks: bool) -> bool:
        """There is no pin; and a cycle of the scheduler may have been forgotten."""
        return world.pliantd is None or not looks or bool(world.batch.flags["missed"])

    def is_fenced(self, world: World, at_s: float) -> bool:
        return any(one.stands(at_s) for one in world.batch.fences.values())

    # --- what may happen, and what is left -------------------------------------------------

    def instants(self, world: World) -> Iterator[float]:
        for job in world.batch.jobs.values():
            yield from (job.begin_s, job.ends_s)
            if job.state == "W":
                yield job.begin_s - AHEAD_S
            if job.falsely:
                yield job.start_s + FALSE_START_S
        if world.job.runs:
            yield world.job.start_s + SETTLE_S
        for fence in world.batch.fences.values():
            yield from (fence.until_s, fence.until_s - RENEW_S + JUST_S)
        silent_s = world.batch.since[SILENT]
        if silent_s and world.batch.fences:
            yield silent_s + MAX_AGE_S + JUST_S
        if world.over is not None and world.over.saved_s:
            yield world.over.saved_s + (ENDS_S if world.job.runs else SETTLE_S)

    def stands(self, world: World, name: str, value: float | str) -> bool:
        if name == "begin_s" and float(value) <= world.now_s:  # PBS forgets it then
            return True
        return super().stands(world, name, value)

    def hurries(self, world: World) -> bool:
        return bool(world.batch.flags["due"])

    def has_ours(self, world: World) -> bool:
        until_s = max((one.until_s for one in world.batch.fences.values()), default=0.0)
        return until_s > world.now_s + START_S  # one that is open ends by itself

    def left(self, world: World) -> str:
        self.fake.state, self.fake.now_s = world.batch, world.now_s
        if self.has_ours(world):
            return f"a fence is left: {world.batch.fences}"
        self.fake.state = world.batch.flagged(due=True)
        is_told = world.batch.flags["due"] or world.batch.flags["missed"]
        starts = [] if is_told else self.fake.starts()
        return f"nobody looks who could start: {starts}" if starts else ""

    def moves(self, world: World) -> Iterator[Move]:
        if world.job.is_held and world.job.waits:
            told = changed(world, said=())
            yield "owner releases", partial(self.tells, told, "qrls", "-h", "u", str(JOB))

    def exits(self, world: World, code: int) -> World:
        """End its script: where pliantd has not heard of the checkpoint, nobody keeps its place."""
        over, run = world.over, world.job.run
        heard = over is not None and over.saved_s > 0 and over.run == run
        if code == CHECKPOINTED and not heard:  # nor does anybody ask what its owner says of that
            free = world.free or not world.batch.fences
            said = tuple(one for one in world.said if one[0] != "begin_s")
            has_saved = world.has_saved and world.job.rerunable
            world = changed(world, free=free, said=said, has_saved=has_saved)
        return self.does(world, lambda pbs: pbs.end(JOB, code))

    def requeues(self, _world: World) -> World:
        raise Rejected("PBS lets no job requeue itself")

    def requeues_alone(self, world: World) -> World:
        """Its guardian has waited for pliantd: `pliant run` begins anew in its place."""
        return changed(world, wrapper=self.wrapper(), has_saved=False, alone_s=0.0)

    def goes_unmanaged(self, world: World, code: int) -> World:
        """Its guardian ends as its wrapper does, at once, where PBS sees that."""
        has_saved = world.has_saved or code == CHECKPOINTED
        world = changed(world, has_saved=has_saved)
        if code == CHECKPOINTED and world.job.adopted:
            return changed(world, alone_s=world.now_s + SILENT_S)
        return self.exits(world, code)

    # --- what may go wrong -----------------------------------------------------------------

    def faults(self, world: World) -> Iterator[Move]:
        if world.over is not None and not world.batch.flags["deaf"]:
            deaf = world.batch.flagged(deaf=True)
            yield "a site's hook refuses its shape", lambda: changed(world, batch=deaf)
        if world.over is not None and not world.batch.flags["full"]:
            batch = world.batch.flagged(full=True)
            full = changed(world, batch=batch, free=world.free or world.over.saved_s > 0)
            yield "nothing can be written for its hooks", lambda: full
        at_s = next_instant(self, world)
        if at_s and self.hurries(world):
            yield "PBS's scheduler is slow", partial(self._is_slow, world, at_s)
        if world.job.ends_s:
            slow = changed(world.job, ends_s=world.job.ends_s + SLOW_S)
            batch = world.batch.with_job(slow)
            yield "a hook on its node is slow", lambda: changed(world, batch=batch)
        free = changed(world, free=True)
        if world.job.runs:
            yield "its node fails", partial(self.does, free, _node_fails)
        if world.job.runs and not world.job.adopted:
            batch = world.batch.with_job(changed(world.job, adopted=True))
            yield "its pbs_mom is started again, with -p", lambda: changed(world, batch=batch)
        after = self.schedules(free, start_fails=UNREACHED)
        if after.job.run_count > world.job.run_count and not after.job.has_gpus:
            yield "its node is not reached", partial(as_found, after)
            yield "its node does not take it", partial(self.schedules, free, start_fails=UNTAKEN)
        yield "pbs_server is started anew", partial(self.does, world, FakePbs.restart)
        yield from self._of_the_guest(world)

    def _of_the_guest(self, world: World) -> Iterator[Move]:
        guest = world.batch.jobs.get(GUEST)
        if guest is not None and guest.waits:
            for name, words in (("holds", ("qhold", "-h", "u")), ("deletes", ("qdel",))):
                if not (guest.holds and name == "holds"):
                    move = partial(self.tells, world, *words, str(GUEST), by_owner=True)
                    yield f"the guest's owner {name} it", move
            free, (_, begin) = changed(world, free=True), _begin(world)
            for name, change in (
                ("asks three GPUs for", ("-l", "select=1:ncpus=6:ngpus=3")),
                ("lets later begin", ("-a", begin)),
                ("asks more time for", ("-l", "walltime=2:00:00")),
            ):
                move = partial(self.tells, free, "qalter", *change, str(GUEST), by_owner=True)
                yield f"the guest's owner {name} it", move

    def is_crowded(self, world: World) -> bool:
        return bool(world.batch.free() < 0)

    def wrong(self, before: World, after: World) -> str:
        repeats = after.job.repeats and not before.job.repeats
        if repeats:
            return f"it has ended, and comes back: {after.job}"
        had, guest = (world.batch.jobs.get(GUEST) for world in (before, after))
        starts = guest is not None and guest.has_gpus and not had.has_gpus
        larger = starts and guest.walltime_s > WALLTIME_S
        larger = larger and not before.batch.flags["full"]  # else no fence lets it in no more
        if larger and self.is_left_so(before, _lets_guest_in):
            return f"its guest starts behind a fence, and asks for more: {guest}"
        over = before.over
        starts = after.job.has_gpus and not before.job.has_gpus and not before.free
        if not starts or over is None or over.run >= after.job.run:
            return ""
        if guest is not None and guest.waits and over.guest and not guest.is_held:
            return f"it starts again before its guest: {guest}"
        given_up = over.back_s or over.stuck or before.batch.flags["deaf"] or before.said
        if after.job.gpus != over.shape.gpus and not given_up:
            return f"it starts as it was, which nobody has refused it: {before.job}"
        return ""

    def owners(self, world: World) -> Sequence[tuple[str, tuple[str, ...], Said]]:
        if world.job.over:  # what its owner says of its next run while its epilogue runs is lost
            return ()
        begin_s, begin = _begin(world)
        job, three = str(JOB), "select=1:ncpus=6:ngpus=3"
        gpus = self.kind.had.gpus
        had = f"select=1:ncpus={gpus * CPUS_A_GPU}:ngpus={gpus}"
        said: tuple[tuple[str, tuple[str, ...], Said], ...] = (
            ("holds it", ("qhold", "-h", "u", job), (("is_held", True),)),
            ("deletes it", ("qdel", job), ()),
            ("asks three GPUs", ("qalter", "-l", three, job), (("gpus", 3),)),
            ("asks what it had", ("qalter", "-l", had, job), (("gpus", gpus),)),
            ("lets it begin later", ("qalter", "-a", begin, job), (("begin_s", begin_s),)),
            ("gives it less time", ("qalter", "-l", "walltime=7:00", job), (("walltime_s", 420),)),
            ("moves it", ("qmove", OTHER, job), (("queue", OTHER),)),
            ("forbids requeues", ("qalter", "-r", "n", job), ()),
        )
        return said


def _begin(world: World) -> tuple[float, str]:
    """When an owner lets a job begin later, and in which word."""
    begin_s = float(int(world.now_s + LATER_S))
    return begin_s, f"{datetime.fromtimestamp(begin_s, UTC):%Y%m%d%H%M.%S}"


def _lets_guest_in(world: World) -> bool:
    fences = world.batch.fences.values()
    return any(str(GUEST) in one.lets and one.stands(world.now_s) for one in fences)


def _node_fails(pbs: FakePbs) -> None:
    """Send it back to the queue, as PBS does where a node has not answered for long."""
    pbs._ends(pbs.state.jobs[JOB], "Q")


def _jobs(jobs: Sequence[Record]) -> Jobs:
    flags = dict.fromkeys(("due", "deaf", "missed", "full"), False)
    return Jobs({job.number: job for job in jobs}, {}, {SILENT: 0.0}, flags)


def _record(number: int, spec: Spec) -> Record:
    said = dict(part.partition("=")[::2] for part in request_text(spec.request).split(";"))
    asks = tuple((name.replace("-", "_"), text or "yes") for name, text in said.items())
    returns = str(CHECKPOINTED) if spec.request.is_elastic else ""
    had = spec.own or OLD
    size = Record(number, gpus=had.gpus, cpus=had.gpus * CPUS_A_GPU)
    return changed(size, token=token_text(spec), asks=asks, returns=returns)


_CHANGED = attrgetter(
    *("state", "gpus", "cpus", "walltime_s", "queue", "token", "asks", "holds", "run", "run_count"),
    *("returns", "restarts", "back_runs", "back_times", "marked", "falsely", "over", "rerunable"),
    *("untaken", "code", "then", "adopted", "deleted"),
)


def _asked_of(job: Record, seen: Seen) -> object:
    """Since when a job waits or runs nobody asks but of the malleable one."""
    if job.number != JOB:
        begins, ends = seen(job.begin_s), seen(job.ends_s)
        return (job.state, job.gpus, job.walltime_s, job.holds, begins, ends)
    by_hook = job.back_begins_s == job.begin_s
    instants = [seen(at_s) for at_s in (job.begin_s, job.ends_s, job.etime_s)]
    return (_CHANGED(job), by_hook, *instants, seen(job.start_s, FALSE_START_S + JUST_S))


def _kept(one: Remembered) -> Kept:
    return Kept(Fence(one.job, one.until_s, one.vnodes, one.lets, one.queues), one.opened)


def _remembered(one: Kept, stood: set[str]) -> Remembered:
    fence = one.fence
    return Remembered(
        *(fence.job, fence.until_s, fence.vnodes, fence.lets, fence.queues),
        *(one.opened, fence.job in stood),
    )
