"""The speed table: how fast jobs run in each other's company, relative to themselves alone.

a_{i,S} of Kuchumov & Korkhov (paper 002, section 2): the speed of task i in combination S, 1 being
its speed alone. Here it comes from windows in which a job's speed was measured, each with the jobs
that shared its nodes or GPUs meanwhile:

- A speed is a number of one tier (instructions per second, steps per second, CPU seconds per
  second), and only numbers of one tier are ever divided by each other.
- Alone-speed is that of the job itself where it ran alone, else that of jobs of its program.
- A program is what an owner runs again and again: jobs of one user and name, as one shape.
- What was seen of the very jobs counts before what was seen of their programs.
- Older windows count less: each ``HALF_LIFE_S`` half as much, as programs have phases.
- What was measured of jobs goes with them; of what was measured of programs the latest
  ``MOST_KNOWN`` stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.model import Combination

HALF_LIFE_S = 1800.0
"""After so many seconds a window counts half as much."""
OF_ONE = "#"
"""With this begins the name of a program of one job alone, of which no other is known to be."""
LEAST_S = 5.0
"""What was measured for less than this, all windows together, is not known yet."""
MOST_KNOWN = 10_000
"""Of so many programs, each alone or beside another, it is known at most how fast they are."""

Row = tuple[str, float, float, float]
"""What was measured of a program, to be written down: see :meth:`SpeedTable.fresh`."""


class Program(NamedTuple):
    """Jobs of one user and name, as one shape."""

    user: str
    name: str
    shape: str

    @property
    def is_of_one(self) -> bool:
        """Whether it is that of one job alone."""
        return self.name.startswith(OF_ONE)


class Window(NamedTuple):
    """How fast a job ran for ``window_s`` seconds until ``end_s``, and beside which others."""

    job: str
    tier: str
    speed: float
    window_s: float
    end_s: float
    others: Combination = frozenset()


@dataclass(slots=True)
class Mean:
    """A mean of speeds over time, of which the older part fades."""

    weight_s: float = 0.0
    total: float = 0.0  # speeds times seconds
    end_s: float = 0.0

    def add(self, speed: float, window_s: float, end_s: float) -> None:
        """Count a window; one that ends before the last is faded by its own age."""
        ahead_s = end_s - self.end_s
        old, new = (_faded(ahead_s), 1.0) if ahead_s >= 0 else (1.0, _faded(-ahead_s))
        self.weight_s = self.weight_s * old + window_s * new
        self.total = self.total * old + speed * window_s * new
        self.end_s = max(self.end_s, end_s)

    @property
    def value(self) -> float | None:
        """The mean; None where too little was measured, or nothing was done at all."""
        return self.total / self.weight_s if self.weight_s >= LEAST_S and self.total > 0 else None


def _faded(age_s: float) -> float:
    return float(0.5 ** (age_s / HALF_LIFE_S))


class _Of(NamedTuple):
    """Whose speed, in which tier, beside whom: jobs by their ids."""

    job: str
    tier: str
    others: tuple[str, ...] = ()


class _OfProgram(NamedTuple):
    """The same of programs."""

    program: Program
    tier: str
    others: tuple[Program, ...] = ()


@dataclass(slots=True)
class SpeedTable:
    """What was measured so far, of jobs and of their programs."""

    most_known: int = MOST_KNOWN
    _programs: dict[str, Program] = field(default_factory=dict)  # of jobs that are there
    _means: dict[_Of, Mean] = field(default_factory=dict)
    _known: dict[_OfProgram, Mean] = field(default_factory=dict)  # those measured last come last
    _fresh: set[_OfProgram] = field(default_factory=set)

    def runs(self, job: str, program: Program) -> None:
        """A job runs, as a shape; what was measured of it as another shape is its program's."""
        if self._programs.get(job) != program:
            if job in self._programs:
                self._drop({job}, set())
            self._programs[job] = program

    def add(self, window: Window) -> None:
        """Count a window of a job that runs; others beside it must be known too."""
        counted = (window.speed, window.window_s, window.end_s)
        own = _Of(window.job, window.tier, tuple(sorted(window.others)))
        self._means.setdefault(own, Mean()).add(*counted)
        known = self._of_program(own)
        if known is not None:
            mean = self._known.pop(known, None) or Mean()
            mean.add(*counted)
            self._know(known, mean)
            if not any(one.is_of_one for one in (known.program, *known.others)):
                self._fresh.add(known)

    def _know(self, key: _OfProgram, mean: Mean) -> None:
        self._known[key] = mean
        if len(self._known) > self.most_known:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._fresh.discard(oldest)

    def _of_program(self, of: _Of) -> _OfProgram | None:
        """Where a job's speed stands as its program's; None where one of them is not known."""
        programs = self._programs
        if of.job not in programs or not all(other in programs for other in of.others):
            return None
        others = tuple(sorted([programs[other] for other in of.others]))
        return _OfProgram(programs[of.job], of.tier, others)

    # What is known

    def alone(self, job: str, tier: str) -> float | None:
        """Return a job's speed alone; None: not known in this tier."""
        return self._speed(_Of(job, tier))

    def relative(self, job: str, tier: str, others: Combination) -> float | None:
        """Return a_{i,S}: how fast a job is beside others, relative to alone; None: not known."""
        beside = self.beside(job, tier, others)
        alone = self.alone(job, tier) if beside is not None else None
        return beside / alone if alone is not None and beside is not None else None

    def beside(self, job: str, tier: str, others: Combination) -> float | None:
        """Return a job's speed beside others; None: not known in this tier."""
        return self._speed(_Of(job, tier, tuple(sorted(others))))

    def _speed(self, of: _Of) -> float | None:
        own = self._means.get(of)
        value = own.value if own is not None else None
        if value is None and (key := self._of_program(of)) is not None:
            mean = self._known.get(key)
            value = mean.value if mean is not None else None
        return value

    # What is kept, and what is not

    def fresh(self) -> list[Row]:
        """Return what was measured of programs since it was last asked, to be written down."""
        rows = [(_text(key), *_values(self._known[key])) for key in self._fresh]
        self._fresh.clear()
        return rows

    def recall(self, rows: Iterable[Row]) -> None:
        """Take in what was written down, that measured last coming last; the rest is skipped."""
        for text, *values in rows:
            with suppress(ValueError, TypeError):
                self._know(_read(text), Mean(*map(float, values)))

    def forget(self, there: Iterable[str]) -> None:
        """Forget jobs that are gone; their programs stay. ``there``: all that are not.

        A program that is named by its job (:data:`OF_ONE`) is nobody else's and goes with it.
        """
        gone = self._programs.keys() - set(there)
        if gone:
            programs = {self._programs.pop(job) for job in gone}
            self._drop(gone, {one for one in programs if one.is_of_one})

    def _drop(self, jobs: Set[str], programs: Set[Program]) -> None:
        """Forget what was measured of these, and beside them."""
        for of in [one for one in self._means if _is_among(jobs, one.job, one.others)]:
            del self._means[of]
        if programs:
            for key in [o for o in self._known if _is_among(programs, o.program, o.others)]:
                del self._known[key]


def _is_among(gone: Set[object], one: object, others: tuple[object, ...]) -> bool:
    return one in gone or not gone.isdisjoint(others)


def _values(mean: Mean) -> tuple[float, float, float]:
    return (mean.weight_s, mean.total, mean.end_s)


def _text(key: _OfProgram) -> str:
    """Return a key as one text of ASCII, whatever users call their jobs."""
    return json.dumps(key)


def _read(text: str) -> _OfProgram:
    """Raises ValueError, TypeError."""
    program, tier, others = json.loads(text)
    return _OfProgram(Program(*program), str(tier), tuple(Program(*one) for one in others))
