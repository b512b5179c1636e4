"""Every order of events, until nothing new is found: states, moves, and what may never be."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prove.changed import changed
from prove.edges import noted
from prove.faults import single
from prove.moves import AT_ONCE, IN_VAIN, TIME, Move, moves
from prove.once import jobs_once
from prove.rules import check, check_settled, check_undisturbed
from prove.sameness import faults_by, same_by
from prove.world import SHRINKS, Kind, Machine, SameBy, World, Wrong

Faults = Callable[[Machine, World], Iterator[Move]]


@dataclass(frozen=True, slots=True)
class Took:
    """How long something takes: in seconds, and in turns of pliantd's."""

    s: float = 0.0
    turns: int = 0


@dataclass
class Explorer:
    """Finds all states from one on; ``faults`` says what may go wrong in each.

    First those that no fault leads to, then those that one leads to, and so on. So one that was
    known before all its faults came, for a fault that left no trace, is not gone on from again:
    all that may follow was found where more faults may come.

    ``wrong``: what may never be, and the moves that lead to it. ``cause``: of each state, from
    which one and by which move it was found first; ``nexts``: where moves without a fault lead, but
    those that may come for ever, as where a program cannot be started, and that is tried again;
    ``made``: how often each move was; ``edges``: what became of jobs by them (prove.edges).

    A state is known by a hash of 64 bits: of a million states two are taken for one with a chance
    of three in a hundred million.
    """

    machine: Machine
    faults: Faults
    moves: int = 0
    most_faults: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    cause: list[tuple[int, str]] = field(default_factory=list)
    nexts: list[list[int]] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    edges: set[str] = field(default_factory=set)
    _known: dict[int, int] = field(default_factory=dict)  # where more faults may come
    _spent: dict[int, int] = field(default_factory=dict)  # whether or not any may
    _settled: list[bool] = field(default_factory=list)
    _kept: set[int] = field(default_factory=set)
    _took: dict[tuple[int, int], Took] = field(default_factory=dict)

    def run(self, start: World, most: int, *, to_the_end: bool = True) -> None:
        """Go on until the frontier is empty, or else until something is wrong.

        Raises OverflowError where there are more than ``most`` states.
        """
        self.most_faults = start.faults
        level = [(self._number(start, -1, "begin"), start)]
        while level and (to_the_end or not self.wrong):
            frontier, level = deque(level), []
            while frontier and (to_the_end or not self.wrong):
                number, world = frontier.popleft()
                for there, after in self._found(number, world):
                    (frontier if after.faults == world.faults else level).append((there, after))
                if self.states > most:
                    raise OverflowError(f"more than {most} states")

    def _found(self, number: int, world: World) -> Iterator[tuple[int, World]]:
        """Make every move from here; yield what is new."""
        for name, after in self._moved(number, world):
            many = self.states
            try:
                there = self._number(after, number, name)
            except Wrong as error:
                self.wrong.append((str(error), self.path(number, name)))
                continue
            if after.faults == world.faults and there != number and name != IN_VAIN:
                self.nexts[number].append(there)
                if number in self._kept:
                    took_s, turns = after.now_s - world.now_s, name in AT_ONCE
                    before = self._took.get(
                        (number, there), Took()
                    )  # another move leads there, too
                    self._took[number, there] = _longest((before, Took(took_s, turns)))
            if there == many:
                yield there, after

    def _moved(self, number: int, world: World) -> Iterator[tuple[str, World]]:
        try:
            named = [*moves(self.machine, world, self.machine.same_by(world))]
            if world.faults:
                fewer = changed(world, faults=world.faults - 1)
                faults = [*self.faults(self.machine, fewer)]
        except Wrong as error:
            self.wrong.append((str(error), self.path(number, "pliantd acts")))
            return
        try:
            if any(name == TIME for name, _ in named) and (idle := self.machine.idles(world)):
                raise Wrong(idle)
            if world.is_settled and not any(name in AT_ONCE for name, _ in named):
                self._settled[number] = True
                check_settled(self.machine, world)
                if world.faults == self.most_faults:
                    check_undisturbed(world)
        except Wrong as error:
            self.wrong.append((str(error), self.path(number, "")))
        if world.faults:
            named += faults
        for name, move in named:
            self.moves += 1
            self.made[name] += 1
            try:
                after = move()
                check(self.machine, world, after)
            except Wrong as error:
                self.wrong.append((str(error), self.path(number, name)))
            else:
                yield name, after

    def _number(self, world: World, cause: int, name: str) -> int:
        many = self.states
        key = self.machine.same_by(world)
        spent = hash(key)
        number = self._spent.setdefault(spent, many)
        if world.faults:
            number = self._known.setdefault(hash((key, faults_by(self.machine, world))), many)
        if number == many:
            self.cause.append((cause, name))
            self.nexts.append([])
            self._settled.append(False)  # as long as it is not known whether pliantd would act
            if self.machine.keeps(world):
                self._kept.add(number)
        return number

    @property
    def states(self) -> int:
        """How many were found."""
        return len(self.cause)

    def path(self, number: int, last: str = "") -> str:
        """Which moves led to a state."""
        names = [last] if last else []
        while number >= 0:
            number, name = self.cause[number]
            names.append(name)
        return " > ".join(reversed(names))

    def restless(self) -> list[str]:
        """The ways to where pliantd may go on for ever, or is stuck, though nothing more comes."""
        left = {
            number: sum(not self._settled[there] for there in self.nexts[number])
            for number, is_settled in enumerate(self._settled)
            if not is_settled
        }
        into: dict[int, list[int]] = {}
        for number in left:
            for there in self.nexts[number]:
                into.setdefault(there, []).append(number)
        ends = [number for number in left if not left[number] and self.nexts[number]]
        done = set(ends)
        while ends:
            for before in into.get(ends.pop(), ()):
                left[before] -= 1
                if not left[before]:
                    done.add(before)
                    ends.append(before)
        return [self.path(number) for number in sorted(left.keys() - done)]

    def longest(self) -> Took:
        """For how long, in seconds and in pliantd's turns, something of ours outlasts its use.

        Once nothing more goes wrong; of what has no end see :meth:`restless`.
        """
        left = dict.fromkeys(self._kept, 0)
        into: dict[int, list[int]] = {}
        for number in self._kept:
            for there in self._kept.intersection(self.nexts[number]):
                left[number] += 1
                into.setdefault(there, []).append(number)
        lasts, ends = dict[int, Took](), [number for number, many in left.items() if not many]
        while ends:
            number = ends.pop()
            lasts[number] = self._lasts(number, lasts)
            for before in into.get(number, ()):
                left[before] -= 1
                if not left[before]:
                    ends.append(before)
        return _longest(lasts.values())

    def _lasts(self, number: int, lasts: Mapping[int, Took]) -> Took:
        ways = ((self._took[number, one], lasts.get(one, Took())) for one in self.nexts[number])
        return _longest(Took(now.s + then.s, now.turns + then.turns) for now, then in ways)


def explored(
    system: Callable[[SameBy], Machine],
    *,
    faults: int,
    kind: Kind = SHRINKS,
    most: int,
    to_the_end: bool = True,
) -> Explorer:
    """Explore a kind of hand-overs on a batch system."""
    machine = system(same_by)
    found = Explorer(machine, single)
    start = changed(machine.begin(kind), faults=faults)
    with jobs_once(), noted(found.edges):
        found.run(start, most, to_the_end=to_the_end)
    return found


def _longest(some: Iterable[Took]) -> Took:
    every = [*some]
    return Took(
        max((one.s for one in every), default=0.0), max((one.turns for one in every), default=0)
    )
