"""A malleable job, who waits for its GPUs, its wrapper and pliantd: all as it is at one moment.

Pliantd's hand-overs, its adapter of a batch system and the wrapper's decisions are those that ship.
What they remember is taken out after each move and put back before the next, so that one set of
objects serves all moments. What is of one batch system alone stands in a module of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, cast

from pliant.batch.clients import Answer
from pliant.daemon.elastic import Elastic
from pliant.daemon.handing import Wanted, _Active, name_of
from pliant.errors import Unavailable
from pliant.grammar import parse
from pliant.handover import (
    BLOCKED_S,
    FRESH_S,
    GIVE_UP_S,
    PUT_BACK_S,
    REFUSED_S,
    SETTLE_S,
    START_S,
    HandOver,
)
from pliant.model import Footprint, Job, Shape, Snapshot, Spec
from pliant.node import core, words
from pliant.store import HandOverRow
from prove.changed import changed
from prove.fake_store import FakeStore

JOB, RIVAL, GUEST = 7, 8, 9
BEGAN_S = 20_000.0
ASKED_S = 1.0
"""How long before its checkpoint may be a hand-over is begun."""
GRACE_S = 60.0
OLD, NEW = Shape(1, 4), Shape(1, 2)
CPUS_A_GPU = 2
_TAKES = Footprint(cpus_per_gpu=CPUS_A_GPU)
SPEC = Spec(parse("gpus=1-4;malleable"), OLD, OLD, _TAKES)
BEST_EFFORT = Spec(parse("job-class=best-effort;malleable"), OLD, OLD, _TAKES)
TRIAL = Spec(parse("job-class=trial"), OLD, OLD, _TAKES)


@dataclass(frozen=True)
class Kind:
    """What a hand-over is for: another shape of its job, or room for a guest.

    ``spec``: of the job, with the shape that it has; ``wants``: that which it is to have then, and
    ``on`` which of the ``nodes`` that there are: the batch system takes the first that does.
    ``kept``: which are for the rival.
    """

    name: str
    spec: Spec
    wants: Shape
    on: tuple[str, ...] = ("n1",)
    nodes: tuple[str, ...] = ("n1",)
    guest: bool = False
    kept: frozenset[str] = frozenset()

    @property
    def had(self) -> Shape:
        """What the job has when it is asked."""
        return self.spec.own or OLD


def _grows(request: str, had: Shape) -> Spec:
    return Spec(parse(request), had, had, _TAKES)


BOTH = ("n1", "n2")
RUNS = (words.Stage.RUNNING, words.Stage.ASKED)
"""Where a wrapper's program runs."""


def is_given_away(had: Any, has: Any) -> bool:
    """Whether what a job's program runs on may be another's now, by a change of its job."""
    runs_on = had.runs and has.runs and had.run == has.run
    return bool(runs_on and had.taken != has.taken)


_KEPT: Mapping[str, Any] = {"nodes": ("n2", "n1"), "kept": frozenset({"n2"})}
SHRINKS = Kind("resize", SPEC, NEW, **_KEPT)
MAKES_ROOM = Kind("preemption", BEST_EFFORT, OLD, guest=True, **_KEPT)
GROWS = Kind("growth", _grows("gpus=1-4;malleable", Shape(1, 2)), Shape(1, 4))
_NODES = _grows("gpus=2-4,nodes=1-2;malleable", NEW)
SPREADS = Kind("growth onto another node", _NODES, Shape(2, 2), BOTH, BOTH)
"""Where a batch system's fake has several nodes; a rival waits for all of these."""
LOOKS_S = 1.0
"""How often a pliantd looks at a hand-over at least that has nothing to do."""
FORGOTTEN_S = 700.0
"""What is longer ago makes no difference: a hand-over is given up before."""
LATELY_S = BLOCKED_S + FRESH_S + PUT_BACK_S + REFUSED_S + SETTLE_S + START_S
"""All that is asked of a job, and of what was refused to it, is whether it is longer ago than one
of these."""
Seen = Callable[..., float]
"""How far away an instant is; beyond a second argument, LATELY_S where none is given, no more than
that it is over."""
SameBy = Callable[["Machine", "World"], object]
Between = Callable[[Any], object]
"""What somebody does to a batch system."""
Said = tuple[tuple[str, float | str], ...]
"""Fields of a job, and what its owner wants of them."""


class Rejected(Exception):
    """What a batch system's command complains of."""


@dataclass(frozen=True)
class Pliantd:
    """What a running pliantd remembers of the hand-over.

    ``unwanted``: whether its job is to stay, and whether its guest needs no room, by the last look.

    ``memory``: what its adapter does. ``gone``: the job's last run that it has handed over.
    ``ended``: whose hand-over has ended since its look began, while that is under way. ``left``:
    whether it looks for fences that are left.
    """

    active: tuple[Any, ...] = ()
    resumed: bool = False
    unwanted: tuple[bool, bool] = (False, False)
    memory: Any = None
    gone: int = -1
    ended: frozenset[str] = frozenset()
    left: bool = False


@dataclass(frozen=True)
class World:
    """One moment. ``faults``: how many more may come; ``free``: nobody keeps the job's place.

    ``batch``: all that the batch system knows. ``said``: what its owner has said last of what it
    asks, by field. ``earlier``: what the batch system knew before pliantd's last command.
    ``guarded``: its wrapper was killed, and its guardian waits for its program, which was "asked"
    or "runs"; ``alone_s``: until when it waits for pliantd, once that has saved. ``failing``: for
    which wish its wrapper has yet to say that there is no checkpoint. ``look``: what the batch
    system knew when pliantd began a look that takes long, None where none is under way. ``lost``:
    the batch system takes the run before for running, as it has forgotten its requeue.
    """

    now_s: float
    batch: Any
    store: tuple[HandOverRow, ...]
    pliantd: Pliantd | None
    wrapper: words.State | None
    has_saved: bool = False
    faults: int = 1
    free: bool = False
    said: Said = ()
    earlier: Any = None
    guarded: str = ""
    alone_s: float = 0.0
    failing: str = ""
    look: Any = None
    lost: bool = False

    @property
    def job(self) -> Any:
        """The malleable job."""
        return self.batch.jobs[JOB]

    @property
    def over(self) -> HandOver | None:
        """The hand-over that pliantd has under way."""
        active = self.pliantd.active if self.pliantd else ()
        return active[0][1] if active else None

    @property
    def waited_s(self) -> Sequence[float]:
        """Since when pliantd has seen what it waits with: Slurm says nothing of it."""
        active = self.pliantd.active if self.pliantd else ()
        names = ("waits_s", "room_s") if active else ()
        return [float(active[0][OF_ACTIVE.index(name)]) for name in names]

    @property
    def is_settled(self) -> bool:
        """Whether pliantd runs, and has no hand-over under way, nor a look."""
        runs = self.pliantd is not None and self.pliantd.resumed and not self.pliantd.active
        return runs and self.look is None


_NO_WISH = words.Wish("")


class Died(BaseException):
    """Pliantd was killed just now."""


class Wrong(BaseException):
    """Something is so that may never be; pliantd itself catches none of it."""


def all_of(what: Any, seen: Callable[[float], float]) -> object:
    """Return all that something holds: instants, whose names end with ``_s``, as they are seen."""
    if isinstance(what, Mapping):
        return tuple(
            (key, seen(value) if isinstance(value, float) else all_of(value, seen))
            for key, value in what.items()
        )
    if not is_dataclass(what):
        return what
    return tuple(
        seen(value) if name.endswith("_s") else all_of(value, seen)
        for name in _names_of(what.__class__)
        for value in (getattr(what, name),)
    )


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


class Machine(ABC):
    """Does moves: takes one world in, and gives the next one out.

    There is one of each batch system: its fake, what ships for it, and what is its own alone.
    """

    name: str
    """The batch system."""
    kinds: Sequence[Kind] = (SHRINKS, MAKES_ROOM)
    """Of which hand-overs there are on it."""
    kind = SHRINKS
    """Of which the one is that is explored."""
    saves_s = float("inf")
    """How soon it has stored what it was told."""
    temporary: str
    for_good: str
    """In which words it refuses what it may take yet, and what it never does."""

    def __init__(self, same_by: SameBy, fake: Any, hands: Any) -> None:
        """``same_by``: what all worlds have in common that are the same.

        ``hands``: the adapter, which runs its commands here and has our clock.
        """
        self._same_by, self.fake, self.hands = same_by, fake, hands
        self.store = FakeStore()
        between = cast("Any", _Between(self, hands))
        made = Elastic(between, cast("Any", self.store), self._clock, self._clock)
        self.elastic, self.overs = made, made.overs
        cast("Any", self.overs)._kept = lambda _job, _wanted: self.kind.kept
        self.refuse = ""  # what is answered to the next command that changes something
        self.refused: Sequence[str] = ()  # the command to which that was
        self.half = frozenset[str]()  # of which words it is done all the same
        self.dies = ""  # "before" or "after" the next one; "unreached", "unheard": it has no answer
        self.between: Between | None = None  # what happens between pliantd's look and its step
        self.has_saved = False  # what runs
        self.answers_nobody = False  # but pliantd
        self.starts_program = True  # again, in place
        self.in_vain = False  # whether that was to be done, and could not
        self.guest: Job | None = None  # as it waited when room was decided on for it
        self.told = 0  # how many commands that change something it was given

    def _clock(self) -> float:
        return float(self.fake.now_s)

    def same_by(self, world: World) -> object:
        """Return what all worlds have in common that are the same."""
        return self._same_by(self, world)

    def run(self, argv: Any, **rest: Any) -> Any:
        """Run a command of pliantd's, unless it is to fail. Raises Wrong where none may be given."""
        words = self.may_not(argv)
        if words:
            raise Wrong(f"{words}: {' '.join(argv)}: {self.fake.state.jobs}")
        changes = self.changes(argv)
        self.told += changes
        if changes and self.dies == "before":
            raise Died
        if changes and self.dies == "unreached":
            self.dies = ""
            raise Unavailable(f"{argv[0]}: connection refused")
        if changes and self.refuse:
            words, self.refuse, self.refused = self.refuse, "", argv
            if self.half:
                self.does_half(argv, self.half)
            return Answer("", f"{words}\n", 1)
        answer = self.fake.run(argv, **rest)
        if changes and self.dies == "after":
            raise Died
        if changes and self.dies == "unheard":
            self.dies = ""
            raise Unavailable(f"{argv[0]}: no answer within 10 s")
        return answer

    # --- what is of one batch system -------------------------------------------------------

    @abstractmethod
    def jobs(self) -> Any:
        """Return what the batch system knows at first: a job, and who waits."""

    @abstractmethod
    def asked(self) -> Job:
        """Return the malleable job as the adapter sees it."""

    @abstractmethod
    def sees(self, since: Any = None) -> Snapshot:
        """Let pliantd's adapter look at everything.

        ``since``: what the batch system knew when it answered; None: what it knows now.
        """

    @abstractmethod
    def remember(self, memory: Any) -> None:
        """Let the adapter remember what it did once; None: nothing."""

    @abstractmethod
    def memory(self) -> Any:
        """Return what the adapter remembers."""

    def recalled(self, memory: Any, _seen: Seen) -> object:
        """Return what of that somebody asks for."""
        return memory

    def seen_to_run(self, _over: HandOver, _world: World, _seen: Seen) -> object:
        """Return what somebody asks for of when the run that saved was last seen to run."""
        return None

    def known(self, batch: Any, seen: Seen) -> object:
        """Return what of all that the batch system knows somebody asks for.

        ``seen``: as an instant is. All of it, where its own module knows no better.
        """
        return all_of(batch, lambda at_s: seen(at_s, FORGOTTEN_S))

    def has_lost_its_place(self, _world: World) -> bool:
        """Whether the batch system itself has taken it from the job, and nobody can mend that."""
        return False

    @abstractmethod
    def changes(self, argv: Sequence[str]) -> bool:
        """Whether a command changes something."""

    @abstractmethod
    def may_not(self, argv: Sequence[str]) -> str:
        """Return why pliantd may never give a command as things are, in words; "" where it may."""

    def may_not_end(self, job: Any) -> str:
        """Return why pliantd may not end the run of a job; "" where it may, or could not."""
        if not self.may_be_requeued(job):
            return ""
        is_its_own = job.number == JOB and (self.has_saved or not job.runs)
        return "" if is_its_own else "it ends a run that has not saved"

    @abstractmethod
    def may_be_requeued(self, job: Any) -> bool:
        """Whether a job's owner lets it be requeued."""

    halves: Sequence[frozenset[str]] = ()
    """Of which words of a command it may have done its part that it then refuses."""

    @abstractmethod
    def does_half(self, argv: Sequence[str], words: frozenset[str]) -> None:
        """Do that part of a command that is refused."""

    @abstractmethod
    def instants(self, world: World) -> Iterator[float]:
        """Yield when something of its jobs, or of what keeps others out, is otherwise than now."""

    def idles(self, _world: World) -> str:
        """Return what pliantd waits with though it may not, in words; "" for nothing."""
        return ""

    def keeps(self, world: World) -> bool:
        """Whether pliantd, which is there, has yet to take away what its job has no use for."""
        is_used = world.job.is_between_runs or (world.job.runs and world.has_saved)
        return not is_used and world.pliantd is not None and self.has_ours(world)

    @abstractmethod
    def has_ours(self, world: World) -> bool:
        """Whether there is a fence or a pin of ours for the job."""

    def is_left_so(self, world: World, is_so: Callable[[World], bool]) -> bool:
        """Whether something is so, and pliantd, which is there, leaves that once it acts."""
        pliantd = world.pliantd
        if pliantd is None or not pliantd.resumed or not is_so(world):
            return False
        return not pliantd.active or is_so(self.acts(world))

    @abstractmethod
    def is_lost_behind(self, world: World, *, looks: bool) -> bool:
        """Whether nobody keeps the job's place once its fence has ended by itself."""

    @abstractmethod
    def is_fenced(self, world: World, at_s: float) -> bool:
        """Whether a fence that there is by now stands at an instant."""

    @abstractmethod
    def left(self, world: World) -> str:
        """Return what of ours is left where pliantd has nothing to do, in words; "" for nothing."""

    @abstractmethod
    def moves(self, world: World) -> Iterator[tuple[str, Callable[[], World]]]:
        """Yield what may happen to a job of this batch system alone."""

    @abstractmethod
    def faults(self, world: World) -> Iterator[tuple[str, Callable[[], World]]]:
        """Yield what may go wrong of this batch system alone."""

    @abstractmethod
    def owners(self, world: World) -> Sequence[tuple[str, tuple[str, ...], Said]]:
        """Return what its owner may say: in words, as a command, and what it wants by it."""

    @abstractmethod
    def exits(self, world: World, code: int) -> World:
        """Let the job's script end."""

    @abstractmethod
    def requeues(self, world: World) -> World:
        """Let the wrapper requeue its job. Raises Rejected."""

    @abstractmethod
    def requeues_alone(self, world: World) -> World:
        """Let the guardian requeue the job whose wrapper was killed, and whose program has saved."""

    @abstractmethod
    def goes_unmanaged(self, world: World, code: int) -> World:
        """Let its program end whose wrapper was killed: its guardian does what is then to do."""

    # --- one world in, the next one out ----------------------------------------------------

    def begin(self, kind: Kind) -> World:
        """A job that is asked for a hand-over of a kind."""
        self.kind = kind
        batch = self.jobs()
        world = World(BEGAN_S, batch, (), Pliantd(resumed=True), self.wrapper())
        self._take(world)
        now = self.asked()
        guest = next((job for job in self.sees().waiting if job.id == str(GUEST)), None)
        self.guest = guest
        wanted = Wanted(kind.wants, kind.on, guest.id if guest else "", asks=guest)
        self.fake.now_s = BEGAN_S - ASKED_S
        assert self.overs.begin(now, wanted, BEGAN_S + GRACE_S, "explored")
        self.fake.now_s = BEGAN_S
        return self._given(world)

    def _take(self, world: World) -> None:
        self.fake.state, self.fake.now_s = world.batch, world.now_s
        self.store.rows = world.store
        self.refuse, self.half, self.dies, self.between = "", frozenset(), "", None
        self.refused = ()
        self.has_saved = world.has_saved
        self.fake.start_fails = {}
        pliantd = world.pliantd or Pliantd()
        overs = cast("Any", self.overs)
        overs._active = {one[1].job: _Active(*one) for one in pliantd.active}
        for name in ("_gone", "_rests", "_refused"):
            vars(overs)[name] = {}
        overs._ended_since = set(pliantd.ended)
        if pliantd.gone >= 0:
            overs._gone[str(JOB)] = pliantd.gone
        elastic = cast("Any", self.elastic)
        elastic._resumed, elastic._has_left = pliantd.resumed, pliantd.left
        elastic._outgrown._had = {}
        stays, none = pliantd.unwanted
        elastic._unwanted = lambda job, guest="", _asks=None: (
            (job != "" and stays) or (guest != "" and none)
        )
        self.remember(pliantd.memory)

    def _unwanted(self) -> tuple[bool, bool]:
        """What pliantd's last look has shown, also for a checkpoint that comes late."""
        says = cast("Any", self.elastic)._unwanted
        return says(str(JOB)), self.guest is not None and says("", self.guest.id, self.guest)

    def _given(self, world: World) -> World:
        active = [*cast("Any", self.overs)._active.values()]
        elastic = cast("Any", self.elastic)
        pliantd = world.pliantd and Pliantd(
            tuple([_ACTIVE(one) for one in active]),
            elastic._resumed,
            self._unwanted(),
            self.memory(),
            cast("Any", self.overs)._gone.get(str(JOB), -1),
            self.overs.ended_since() if world.look is not None else frozenset(),
            elastic._has_left,
        )
        job, wrapper, has_saved = self.fake.state.jobs[JOB], world.wrapper, world.has_saved
        guarded, alone_s, failing = world.guarded, world.alone_s, world.failing
        if not job.runs:
            wrapper, guarded, alone_s, failing = None, "", 0.0, ""
        elif job.run != world.job.run or not world.job.runs:
            wrapper, has_saved, guarded, alone_s, failing = self.wrapper(), False, "", 0.0, ""
        return changed(
            world,
            now_s=self.fake.now_s,
            batch=self.fake.state,
            store=self.store.rows,
            pliantd=pliantd,
            wrapper=wrapper,
            has_saved=has_saved,
            guarded=guarded,
            alone_s=alone_s,
            failing=failing,
            lost=world.lost and job.runs and job.run == world.job.run,
        )

    def wrapper(self) -> words.State:
        """Return a wrapper that begins."""
        return words.State()

    def stands(self, world: World, name: str, value: float | str) -> bool:
        """Whether it is so what its owner wants of a field of its job."""
        return bool(getattr(world.job, name) == value)

    def is_crowded(self, world: World) -> bool:
        """Whether jobs have more GPUs of a node than it has."""
        raise NotImplementedError

    def wrong(self, _before: World, _after: World) -> str:
        """Return what else may not come of a move, in words; "" for nothing."""
        return ""

    def hurries(self, _world: World) -> bool:
        """Whether the batch system does something at once."""
        return False

    def killed(self, world: World) -> World:
        """Pliantd is killed."""
        return changed(world, pliantd=None, look=None)

    def started(self, world: World) -> World:
        """Pliantd is started."""
        return changed(world, pliantd=Pliantd())

    # --- moves that need no fault ----------------------------------------------------------

    def acts(
        self,
        world: World,
        *,
        refuse: str = "",
        half: frozenset[str] = frozenset(),
        dies: str = "",
        start_fails: str = "",
        between: Between | None = None,
    ) -> World:
        """Pliantd looks at the hand-over, and does what is next.

        Raises Rejected where it does nothing, or what comes ``between`` is refused.
        """
        self._take(world)
        self.refuse, self.half, self.dies, self.between = refuse, half, dies, between
        self.fake.start_fails = {JOB: start_fails} if start_fails else {}
        for active in cast("Any", self.overs)._active.values():
            active.next_s = 0.0
        try:
            self.overs.turn()
        except Died:
            return self.killed(self._given(world))
        if self.between is not None:
            raise Rejected("it has nothing to do")
        earlier = world.batch if self.fake.state is not world.batch else world.earlier
        return changed(self._given(world), earlier=earlier)

    def interjects(self) -> None:
        """Let that happen now that comes between pliantd's look and its step."""
        if self.between is not None:
            with suppress(Rejected):
                self.between(self.fake)
                self.between = None

    def begins_to_look(self, world: World) -> World:
        """Pliantd's cycle begins a look that takes long."""
        self._take(world)
        self.elastic.looking()
        return self._given(changed(world, look=world.batch))

    def looks(self, world: World) -> World:
        """Pliantd's cycle looks at all jobs, or has looked, and tidies up."""
        self._take(world)
        if world.look is None:
            self.elastic.looking()
        snapshot = self.sees(world.look)
        self.elastic.looked(snapshot, lambda _job: True)
        self.elastic.give_back(snapshot)
        return self._given(changed(world, look=None))

    def _since(self, since: Any, query: Callable[[], Any]) -> Any:
        """Ask the batch system something, as if it had answered then."""
        now = self.fake.state
        self.fake.state = since or now
        try:
            return query()
        finally:
            self.fake.state = now

    def would_start(self, world: World) -> bool:
        """Whether a pass of the scheduler would start one."""
        self.fake.state, self.fake.now_s = world.batch, world.now_s
        return bool(self.fake.starts())

    def schedules(self, world: World, *, start_fails: str = "") -> World:
        """Its scheduler makes a pass."""
        self._take(world)
        self.fake.start_fails = {JOB: start_fails} if start_fails else {}
        self.fake.schedule()
        return self._given(world)

    def _looked_until(self, at_s: float) -> None:
        """Let pliantd have seen its run until then."""
        for active in cast("Any", self.overs)._active.values():
            if self.fake.state.jobs[JOB].run <= active.over.run:
                active.over = replace(active.over, ran_s=max(at_s, active.over.ran_s))

    def passes(self, world: World, now_s: float, *, looks: bool = True) -> World:
        """Time goes on, in which pliantd ``looks``, unless that is dead, and finds nothing to do.

        What its owner said is done once it may begin: a later run of it may begin when it likes.
        Its fence may end in that, and then nobody may keep its place any more; nor where a pliantd
        stands still until it is to give up.
        """
        self._take(world)
        self.fake.pass_to(now_s)
        if world.wrapper is not None and world.pliantd is not None and world.pliantd.resumed:
            self.overs.spoke(str(JOB))
        if looks and world.job.runs:
            self._looked_until(now_s - LOOKS_S)
        lapses = self.is_fenced(world, world.now_s) and not self.is_fenced(world, now_s)
        nobody = lapses and self.is_lost_behind(world, looks=looks)
        earlier = world.earlier if now_s - world.now_s < self.saves_s else None
        said = tuple(one for one in world.said if one[0] != "begin_s" or float(one[1]) > now_s)
        over = world.over
        gives_up = over is not None and 0 < over.saved_s < now_s - GIVE_UP_S and not looks
        free = world.free or nobody or gives_up
        return changed(self._given(world), earlier=earlier, said=said, free=free)

    def does(self, world: World, what: Callable[[Any], object]) -> World:
        """Somebody else does something to the batch system."""
        self._take(world)
        what(self.fake)
        return self._given(world)

    def tells(self, world: World, *words: str, by_owner: bool = False) -> World:
        """Somebody else tells the batch system something. Raises Rejected."""
        return self.does(world, lambda fake: fake.told(words, by_owner=by_owner))

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
        world = changed(world, wrapper=state)
        for effect in effects:
            world = self._effect(world, effect)
        return world

    def _effect(self, world: World, effect: words.Effect) -> World:
        match effect:
            case words.ReportSaved(wish):
                return self.reports(changed(world, has_saved=True, failing=""), wish)
            case words.ReportFailed() | words.ReportEnd():
                return self._fails(world, getattr(effect, "wish", _NO_WISH).id)
            case words.Requeue():  # pliantd is silent: nobody keeps its place
                return self._requeues(changed(world, free=True))
            case words.Start():
                return self._starts(world)
            case words.Exit(code):  # nor is the place kept of one that fails by itself
                free = world.free or code not in (0, words.CHECKPOINTED)
                return self._exits(changed(world, free=free), code)
            case _:
                return world

    def _starts(self, world: World) -> World:
        if self.starts_program:
            return self.happens(changed(world, has_saved=False), words.Started(world.now_s))
        self.in_vain = True
        after = self.happens(world, words.NotStarted(world.now_s, "it is gone", 127))
        if after.wrapper is not None and after.wrapper.stage in RUNS:
            raise Wrong(f"its wrapper takes a program for running that is none: {after.wrapper}")
        return after

    def starts_in_vain(self, move: Callable[[], World]) -> World:
        """Make a move, but for the program that it starts again in place, which cannot be.

        Raises Rejected where it starts none.
        """
        self.starts_program = self.in_vain = False
        try:
            after = move()
        finally:
            self.starts_program = True
        if not self.in_vain:
            raise Rejected("nothing is to be started")
        return after

    def reports(self, world: World, wish: words.Wish) -> World:
        """Tell pliantd that it has saved; where that is dead, it is said again until it lives."""
        if world.pliantd is None or not world.pliantd.resumed or world.wrapper is None:
            return world
        self._take(world)
        run = world.job.run
        known = self.overs.saved(str(JOB), run, wish.id)
        if not known:
            known = self.overs.saved_late(self.asked(), run, wish.id)
        world = self._given(world)
        if self.overs.stays(str(JOB), run, wish.id):
            return self.happens(world, words.Stays(world.now_s))
        return self.happens(world, words.Answered(world.now_s)) if known else world

    def fails(self, world: World) -> World:
        """Say that there is no checkpoint, until it is heard."""
        return changed(self._fails(world, world.failing), failing="")

    def _fails(self, world: World, wish: str) -> World:
        if world.pliantd is None or not world.pliantd.resumed:
            return changed(world, failing=wish)
        self._take(world)
        over = self.overs.of(str(JOB))
        if over is not None:
            self.overs.failed(str(JOB), world.job.run, wish or name_of(over))
        return self._given(world)

    def _requeues(self, world: World) -> World:
        try:
            if self.answers_nobody:
                raise Rejected("no answer")
            return self.requeues(world)
        except Rejected as error:
            return self.happens(world, words.Requeued(world.now_s, str(error)))

    def _exits(self, world: World, code: int) -> World:
        goes_back = code == words.CHECKPOINTED and not world.lost  # else that is its program's end
        has_saved = world.has_saved and goes_back
        ended = changed(world, wrapper=None, has_saved=has_saved)
        return self.exits(ended, code) if world.job.runs else ended


class _Between:
    """The adapter, behind which a job's owner may say something just before each step."""

    def __init__(self, machine: Machine, hands: Any) -> None:
        self._machine, self._hands = machine, hands

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hands, name)

    def step(self, *what: Any) -> None:
        """Do one step of a hand-over."""
        self._machine.interjects()
        self._hands.step(*what)


OF_ACTIVE = tuple(one.name for one in fields(_Active))
"""What a pliantd knows of a hand-over under way, in this order."""
_ACTIVE = attrgetter(*OF_ACTIVE)
