"""A malleable job, who waits for its GPUs, its wrapper and pliantd: all as it is at one moment.

Pliantd's hand-overs, its adapter of Slurm and the wrapper's decisions are those that ship. What
they remember is taken out after each move and put back before the next, so that one set of objects
serves all moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.jobs import running_job
from pliant.batch.slurm.snapshot import snapshot_of
from pliant.daemon.elastic import Elastic
from pliant.daemon.handing import Wanted, _Active, name_of
from pliant.grammar import parse, put_token
from pliant.handover import HandOver
from pliant.model import Footprint, Shape, Spec
from pliant.node import core, words
from pliant.store import HandOverRow
from prove.fake_slurm import FakeSlurm, Jobs, Record, Rejected
from prove.fake_store import FakeStore

JOB, RIVAL, GUEST = 7, 8, 9
BEGAN_S = 10_000.0
GRACE_S = 60.0
OLD, NEW = Shape(1, 4), Shape(1, 2)
SPEC = Spec(parse("gpus=1-4;malleable"), OLD, OLD, Footprint(cpus_per_gpu=2))
BEST_EFFORT = Spec(parse("job-class=best-effort;malleable"), OLD, OLD, Footprint(cpus_per_gpu=2))
TRIAL = Spec(parse("job-class=trial"), OLD, OLD, Footprint(cpus_per_gpu=2))


@dataclass(frozen=True, slots=True)
class Pliantd:
    """What a running pliantd remembers of the hand-over; ``unwanted``: nobody needs it any more."""

    active: tuple[Any, ...] = ()
    resumed: bool = False
    unwanted: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """One moment. ``faults``: how many more may come; ``free``: nobody keeps the job's place.

    ``said``: what its owner has said last of what it asks, by field. ``earlier``: what slurmctld
    knew before pliantd's last command. ``guarded``: its wrapper was killed, and its guardian waits
    for its program.
    """

    now_s: float
    slurm: Jobs
    store: tuple[HandOverRow, ...]
    pliantd: Pliantd | None
    wrapper: words.State | None
    has_saved: bool = False
    faults: int = 1
    free: bool = False
    said: tuple[tuple[str, float], ...] = ()
    earlier: Jobs | None = None
    guarded: bool = False

    @property
    def job(self) -> Record:
        """The malleable job."""
        return self.slurm.jobs[JOB]

    @property
    def over(self) -> HandOver | None:
        """The hand-over that pliantd has under way."""
        active = self.pliantd.active if self.pliantd else ()
        return active[0][1] if active else None

    @property
    def is_settled(self) -> bool:
        """Whether pliantd runs, and has no hand-over under way."""
        return self.pliantd is not None and self.pliantd.resumed and not self.pliantd.active


class Died(BaseException):
    """Pliantd was killed just now."""


class Machine:
    """Does moves: takes one world in, and gives the next one out."""

    def __init__(self, same_by: Callable[[World], object]) -> None:
        """``same_by``: what all worlds have in common that are the same."""
        self.same_by = same_by
        self.fake = FakeSlurm(Jobs({}, {}), BEGAN_S)
        self.store = FakeStore()
        self.slurm = Slurm(cast("Any", self), self._clock)
        self.cluster = self.slurm._cluster = Cluster((22, 5), {}, {})
        made = Elastic(cast("Any", self.slurm), cast("Any", self.store), self._clock, self._clock)
        self.elastic, self.overs = made, made.overs
        self.refuse = ""  # what Slurm answers to the next command that changes something
        self.half = False  # whether it is refused halfway
        self.dies = ""  # "before" or "after" the next one

    def _clock(self) -> float:
        return self.fake.now_s

    def run(self, argv: Any, **rest: Any) -> Any:
        """Run a command of pliantd's, unless it is to fail."""
        changes = argv[0] == "scontrol" and argv[1] in _CHANGES
        if changes and self.dies == "before":
            raise Died
        if changes and self.refuse:
            return self._refused(argv)
        answer = self.fake.run(argv, **rest)
        if changes and self.dies == "after":
            raise Died
        return answer

    def _refused(self, argv: Any) -> Any:
        words, self.refuse = self.refuse, ""
        some = [word for word in argv if word.startswith("AdminComment=")]
        if self.half and argv[1] == "update" and some:
            self.fake.told(("update", argv[2], *some))
        return Answer("", f"slurm_update error: {words}\n", 1)

    # --- one world in, the next one out ----------------------------------------------------

    def begin(self, *, guest: bool = False) -> World:
        """A job of four GPUs that is asked to become one of two, or to make room for a guest."""
        began_s = BEGAN_S - 600
        spec = BEST_EFFORT if guest else SPEC
        running = Record(JOB, "RUNNING", submit_s=began_s, begin_s=began_s, start_s=began_s + 100)
        jobs = [
            replace(running, comment=put_token("", spec)),
            Record(RIVAL, priority=1000, own_priority=1000, submit_s=began_s + 300),
        ]
        if guest:
            trial = Record(GUEST, priority=500, own_priority=500, submit_s=began_s + 400)
            jobs.append(replace(trial, comment=put_token("", TRIAL)))
        slurm = Jobs({job.number: job for job in jobs}, {})
        world = World(BEGAN_S, slurm, (), Pliantd(resumed=True), words.State())
        self._take(world)
        now = running_job(self._rows()[0], self.cluster)
        wanted = Wanted(OLD if guest else NEW, ("n1",), str(GUEST) if guest else "")
        assert self.overs.begin(now, wanted, BEGAN_S + GRACE_S, "explored")
        return self._given(world)

    def _take(self, world: World) -> None:
        self.fake.state, self.fake.now_s = world.slurm, world.now_s
        self.store.rows = world.store
        self.refuse, self.half, self.dies = "", False, ""
        self.fake.start_fails = {}
        pliantd = world.pliantd or Pliantd()
        overs = cast("Any", self.overs)
        overs._active = {one[1].job: _Active(*one) for one in pliantd.active}
        for name in ("_gone", "_rests", "_refused"):
            vars(overs)[name] = {}
        elastic = cast("Any", self.elastic)
        elastic._resumed, elastic._outgrown._had = pliantd.resumed, {}
        elastic._unwanted = lambda _job, _guest: pliantd.unwanted
        cast("Any", self.slurm)._handing._fresh = {}

    def _given(self, world: World) -> World:
        active = [*cast("Any", self.overs)._active.values()]
        elastic = cast("Any", self.elastic)
        pliantd = world.pliantd and Pliantd(
            tuple(tuple(getattr(one, name) for name in _NAMES) for one in active),
            elastic._resumed,
            elastic._unwanted(str(JOB), active[0].over.guest if active else ""),
        )
        job, wrapper, has_saved = self.fake.state.jobs[JOB], world.wrapper, world.has_saved
        guarded = world.guarded and job.state == "RUNNING"
        if job.state != "RUNNING":
            wrapper = None
        elif job.run != world.job.run or world.job.state != "RUNNING":
            wrapper, has_saved, guarded = words.State(), False, False
        return replace(
            world,
            now_s=self.fake.now_s,
            slurm=self.fake.state,
            store=self.store.rows,
            pliantd=pliantd,
            wrapper=wrapper,
            has_saved=has_saved,
            guarded=guarded,
        )

    def _rows(self) -> list[Any]:
        return self.slurm._queries.jobs()

    # --- moves that need no fault ----------------------------------------------------------

    def acts(
        self,
        world: World,
        *,
        refuse: str = "",
        half: bool = False,
        dies: str = "",
        start_fails: str = "",
    ) -> World:
        """Pliantd looks at the hand-over, and does what is next."""
        self._take(world)
        self.refuse, self.half, self.dies = refuse, half, dies
        self.fake.start_fails = {JOB: start_fails} if start_fails else {}
        for active in cast("Any", self.overs)._active.values():
            active.next_s = 0.0
        try:
            self.overs.turn()
        except Died:
            return replace(self._given(world), pliantd=None)
        earlier = world.slurm if self.fake.state is not world.slurm else world.earlier
        return replace(self._given(world), earlier=earlier)

    def looks(self, world: World) -> World:
        """Pliantd's cycle looks at all jobs, and tidies up."""
        self._take(world)
        seen = snapshot_of(self._rows(), self.cluster, {}, self.fake.now_s)
        snapshot = replace(seen, reservations=self.slurm._queries.reservations())
        self.elastic.looked(snapshot, lambda _job: True)
        self.elastic.give_back(snapshot)
        return self._given(world)

    def schedules(self, world: World, *, start_fails: str = "") -> World:
        """Slurm makes a pass."""
        self._take(world)
        self.fake.start_fails = {JOB: start_fails} if start_fails else {}
        self.fake.schedule()
        return self._given(world)

    def passes(self, world: World, now_s: float) -> World:
        """Time goes on."""
        self._take(world)
        self.fake.pass_to(now_s)
        return self._given(world)

    def does(self, world: World, what: Callable[[FakeSlurm], object]) -> World:
        """Somebody else does something to Slurm."""
        self._take(world)
        what(self.fake)
        return self._given(world)

    def tells(self, world: World, *words: str, by_owner: bool = False) -> World:
        """Somebody else tells scontrol something. Raises Rejected."""
        return self.does(world, lambda slurm: slurm.told(words, by_owner=by_owner))

    def withdraws(self, world: World) -> World:
        """Pliantd learns that the job's wrapper is gone."""
        if world.pliantd is None:
            return world
        self._take(world)
        self.overs.withdraw(str(JOB))
        return self._given(world)

    # --- the wrapper -----------------------------------------------------------------------

    def happens(self, world: World, event: words.Event) -> World:
        """Something happens to the wrapper, which does what follows."""
        assert world.wrapper is not None
        state, effects = core.step(world.wrapper, event)
        world = replace(world, wrapper=state)
        for effect in effects:
            world = self._effect(world, effect)
        return world

    def _effect(self, world: World, effect: words.Effect) -> World:
        match effect:
            case words.ReportSaved(wish):
                return self.reports(replace(world, has_saved=True), wish)
            case words.ReportFailed(wish):
                return self._fails(world, wish.id)
            case words.ReportEnd():
                return self._fails(world, "")
            case words.Requeue():  # pliantd is silent: nobody keeps its place
                return self._requeues(replace(world, free=True))
            case words.Exit(code):
                return self._exits(world, code)
            case _:
                return world

    def reports(self, world: World, wish: words.Wish) -> World:
        """Tell pliantd that it has saved; where that is dead, it is said again until it lives."""
        if world.pliantd is None or not world.pliantd.resumed or world.wrapper is None:
            return world
        self._take(world)
        run = world.job.run
        known = self.overs.saved(str(JOB), run, wish.id)
        if not known:
            (row,) = (one for one in self._rows() if one.key == str(JOB))
            known = self.overs.saved_late(running_job(row, self.cluster), run, wish.id)
        world = self._given(world)
        if self.overs.stays(str(JOB), run, wish.id):
            return self.happens(
                replace(world, has_saved=False), words.Requeued(world.now_s, "stays")
            )
        return self.happens(world, words.Answered(world.now_s)) if known else world

    def _fails(self, world: World, wish: str) -> World:
        if world.pliantd is None:
            return world
        self._take(world)
        over = self.overs.of(str(JOB))
        if over is not None:
            self.overs.failed(str(JOB), world.job.run, wish or name_of(over))
        return self._given(world)

    def _requeues(self, world: World) -> World:
        try:
            return self.tells(world, "requeue", str(JOB))
        except Rejected as error:
            return self.happens(world, words.Requeued(world.now_s, str(error)))

    def _exits(self, world: World, code: int) -> World:
        ended = replace(world, wrapper=None)
        if world.job.state != "RUNNING":
            return ended
        state = "FAILED" if code else "COMPLETED"
        return self.does(ended, lambda slurm: slurm.end(JOB, state))


_NAMES = tuple(one.name for one in fields(_Active))
_CHANGES = frozenset(("update", "create", "delete", "requeue", "release"))
