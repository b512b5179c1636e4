"""One decision about one set of goals: what can be done about them now.

See :mod:`pliant.policies.steps` for the rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pliant.model import Job, Shape, Snapshot
from pliant.placement import Free, Option, Profile, Taken, limit_s
from pliant.placement.giving_up import settled, without
from pliant.placement.ground import as_read
from pliant.placement.pick import Places
from pliant.plan import Plan
from pliant.policies.desk import Desk
from pliant.policies.gain import Gain
from pliant.policies.goal import Goal, Goals, arrival
from pliant.policies.groups import sizes_of
from pliant.policies.reasons import LEFT_OVER


@dataclass(eq=False, slots=True)
class _Change:
    """A running job, and what it becomes; ``given`` is what it has when all is done.

    ``held``: what it has now.
    """

    goal: Goal
    held: Taken
    given: Taken
    option: Option | None = None
    places: Places = ()


@dataclass(eq=False)
class Step:
    """One decision; ``stuck`` and ``unpaid`` say what was not possible."""

    snapshot: Snapshot
    goals: Goals
    takers: list[Job]  # running ones that may have more than their goals
    pays: bool
    stuck: set[str] = field(default_factory=set)  # running jobs that cannot be changed so
    unpaid: set[str] = field(default_factory=set)  # those for which it would not pay

    def __post_init__(self) -> None:
        changing = [job for job in self.snapshot.running if job.id in self.goals]
        self._changing = sorted(changing, key=arrival)
        self._desk = Desk(self.snapshot)
        self._now = self._desk.free
        self._final = Free(as_read(without(settled(self.snapshot), changing)))
        self._under_way = any(job.next_shape for job in self.snapshot.running)
        self._shrinking: list[_Change] = []
        self._growing: list[_Change] = []
        self._later: set[str] = set()  # waiting jobs that are placed where nothing is free yet
        self._gain = Gain(self._desk)

    def run(self) -> Plan:
        """Return the first steps; they count only if nobody is stuck."""
        if self._hold():
            for job in self._desk.queue():
                self._serve(job)
            for change in self._growing:
                self._grow(change)
            self._use_up()
            self._shrink()
            self._grow_on_what_is_left()
        return self._desk.plan()

    # --- running jobs, before anything else -------------------------------------------------

    def _hold(self) -> bool:
        """Place those that shrink, and hold what those that grow have; say whether that fits."""
        for job in self._changing:
            if not self._final.fits_on(job, job.shape, job.nodes):
                self.stuck.update(self.goals)
                return False
            given = self._final.take(job, job.shape, job.nodes)
            given.end_s = max(self.snapshot.now_s, job.start_s + limit_s(job))
            goal = self.goals[job.id]
            change = _Change(goal, given, given)
            larger = goal.shapes[0].amount > job.shape.amount
            (self._growing if larger else self._shrinking).append(change)
        for change in self._shrinking:
            if not self._give_instead(change):
                self.stuck.add(change.goal.job.id)
        return not self.stuck

    def _give_instead(self, change: _Change) -> bool:
        """Give a job the first of its shapes that fits when all is done; say whether one does."""
        return any(self._given(change, shape) for shape in change.goal.shapes)

    def _given(self, change: _Change, shape: Shape) -> bool:
        job, final = change.goal.job, self._final
        option = (shape, final.need(job, shape))
        with final.supposing():
            final.release(change.given)
            places = final.room(job, option, (), first=self._own(job, shape))
            if places is None:
                final.retake(change.given)
                return False
            change.given = final.take_places(job, option, places)
        change.option, change.places = (shape, self._now.need(job, shape)), places
        return True

    def _own(self, job: Job, shape: Shape) -> Iterable[Places]:
        """Sets of as many nodes as a shape has, with as many as possible of the job's own."""
        own = sorted(self._now.held(job)[0])
        if shape.nodes <= len(own):
            yield from (
                tuple(own[at : at + shape.nodes]) for at in range(len(own) - shape.nodes + 1)
            )
        else:
            free = self._final.places_on(self._final.profile(job).kinds)
            others = [place for place in free if place not in own]
            yield tuple(sorted((*own, *others[: shape.nodes - len(own)])))

    # --- jobs that wait -----------------------------------------------------------------------

    def _serve(self, job: Job) -> None:
        goal = self.goals.get(job.id)
        given: list[Taken] = []
        placed = 0
        for shape in goal.shapes if goal else ():
            given, placed = self._place(job, shape, goal.tasks if goal else 1)
            if placed:
                break
        if goal and given:
            self._desk.start(job, given, goal.reason)
        if goal and placed > len(given):
            self._later.add(job.id)
            if self.pays:
                self._gain.awaits(job, goal.shapes[0], placed - len(given))
        if not goal and self._desk.may_keep(job):
            # An opening that is there now is not kept from those that grow, but taken.
            given = self._start_somehow(job)
            placed = len(given)
        if len(given) < job.tasks_waiting:
            shapes = (given[0].shape,) if given else self._now.profile(job).shapes
            if self._desk.keep(job, shapes) and not placed:
                self._final.claim(job, shapes)

    def _place(self, job: Job, shape: Shape, tasks: int) -> tuple[list[Taken], int]:
        """Place tasks, where it is free now if possible; return what starts, and how many fit."""
        now, final = self._now, self._final
        option, finally_ = (shape, now.need(job, shape)), (shape, final.need(job, shape))
        profiles, bounds = (
            (now.profile(job), final.profile(job)),
            (now.bound(job), final.bound(job)),
        )
        starts: list[Taken] = []
        placed = 0
        while placed < tasks:
            places = now.places(profiles[0], option, bounds[0])
            if places is None or not final.admits(profiles[1], finally_, places, bounds[1]):
                places = final.places(profiles[1], finally_, bounds[1])
                if places is None:
                    break
            if now.admits(profiles[0], option, places, bounds[0]):
                starts.append(now.take_places(job, option, places))
            final.take_places(job, finally_, places)
            placed += 1
        return starts, placed

    def _use_up(self) -> None:
        """Start on what is left over who has nothing yet."""
        started = {start.job.id for start in self._desk.plan().starts}
        busy = started.union((claim.job.id for claim in self._now.claims), self._later)
        tried: set[tuple[Profile, float]] = set()
        for job in self._desk.queue():
            key = (self._now.profile(job), self._now.bound(job))
            if job.id not in busy and key not in tried and not self._start_somehow(job):
                tried.add(key)

    def _start_somehow(self, job: Job) -> list[Taken]:
        of = sizes_of(self._now, self._now.profile(job))
        for _, option in of.from_level(of.first) if of.levels else ():
            given = self._fill(job, option)
            if given:
                self._desk.start(job, given, LEFT_OVER)
                return given
        return []

    def _fill(self, job: Job, option: Option) -> list[Taken]:
        """Take an option for as many tasks as it is free for, now and when all is done."""
        now, final = self._now, self._final
        finally_ = (option[0], final.need(job, option[0]))
        given: list[Taken] = []
        while len(given) < job.tasks_waiting:
            places = now.places(now.profile(job), option, now.bound(job))
            if places is None or not final.admits(
                final.profile(job), finally_, places, final.bound(job)
            ):
                break
            final.take_places(job, finally_, places)
            given.append(now.take_places(job, option, places))
        return given

    # --- running jobs that grow -------------------------------------------------------------

    def _grow(self, change: _Change) -> None:
        """Let a job grow now, or keep its room until somebody has left it."""
        job, pending = change.goal.job, bool(self._shrinking) or self._under_way
        for shape in change.goal.shapes:
            if not self._given(change, shape) or change.option is None:
                continue
            if self.pays and not self._gain.growth_pays(job, shape):
                self.unpaid.add(job.id)
                return
            if self._fits_now(change, frozenset()):
                self._desk.reshape(job, change.option, change.places, change.goal.reason)
                return
            if pending:
                self._gain.grows(job, shape)
                return
            self._stays(change)

    def _stays(self, change: _Change) -> None:
        """Leave a job what it has."""
        self._final.release(change.given)
        change.given, change.option = self._final.retake(change.held), None

    def _fits_now(self, change: _Change, beside: frozenset[str]) -> bool:
        assert change.option is not None  # noqa: S101  # for types
        job, first = change.goal.job, (change.places,)
        room = self._now.room(job, change.option, (job,), first=first, beside=beside)
        return room == change.places

    def _grow_on_what_is_left(self) -> None:
        """Let jobs that should stay, or cannot grow as they should, take what nobody else does."""
        changes = {change.goal.job.id: change for change in (*self._growing, *self._shrinking)}
        for job in self.takers:
            change = changes.get(job.id)
            if change is not None and change.option is not None:
                continue  # it changes, or its room is being left
            profile = self._now.profile(job)
            if not self._now.has_gpus(profile.kinds):
                continue
            for _, options in reversed(sizes_of(self._now, profile).levels):
                if options[0][0].amount <= job.shape.amount:
                    break
                if any(self._takes(job, option, change) for option in options):
                    break

    def _takes(self, job: Job, option: Option, change: _Change | None) -> bool:
        """Let a job have an option now if it is done earlier so; say whether that was possible."""
        if not self._gain.growth_pays(job, option[0]):
            return False
        if change is not None:
            return self._grows_beyond(change, option[0])
        own = self._own(job, option[0])
        places = self._now.room(job, option, (job,), first=own)
        finally_ = (option[0], self._final.need(job, option[0]))
        if places is None or self._final.room(job, finally_, (job,), first=(places,)) != places:
            return False
        self._final.trade(job, finally_, places, (job,))
        self._desk.reshape(job, option, places, LEFT_OVER)
        return True

    def _grows_beyond(self, change: _Change, shape: Shape) -> bool:
        if not self._given(change, shape) or change.option is None:
            return False
        if not self._fits_now(change, frozenset()):
            self._stays(change)
            return False
        self._desk.reshape(change.goal.job, change.option, change.places, LEFT_OVER)
        return True

    # --- running jobs that shrink -----------------------------------------------------------

    def _shrink(self) -> None:
        """Make those smaller whose GPUs somebody needs, if it pays."""
        needed = [change for change in reversed(self._shrinking) if not self._keeps(change)]
        for change in needed:
            self._gain.shrinks(change.goal.job, change.given.shape)
        if self.pays and needed and not self._gain.shrinking_pays():
            self.unpaid.update(change.goal.job.id for change in needed)
            return
        for change in reversed(needed):
            if change.option is None or not self._fits_now(change, frozenset(self._later)):
                self.stuck.add(change.goal.job.id)
                continue
            self._desk.reshape(change.goal.job, change.option, change.places, change.goal.reason)

    def _keeps(self, change: _Change) -> bool:
        """Let a job keep what it has where nobody needs it; say whether that is so."""
        job, final = change.goal.job, self._final
        with final.supposing():
            final.release(change.given)
            if final.fits_on(job, job.shape, job.nodes):
                change.given = change.held = final.take(job, job.shape, job.nodes)
                change.option = None
                return True
            final.retake(change.given)
        return False
