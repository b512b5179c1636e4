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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.model import Combination

HALF_LIFE_S = 1800.0
"""After so many seconds a window counts half as much."""
OF_ONE = "#"
"""With this begins the name of a program of one job alone, of which no other is known to be."""
LEAST_S = 5.0
"""What was measured for less than this, all windows together, is not known yet."""


class Program(NamedTuple):
    """Jobs of one user and name, as one shape."""

    user: str
    name: str
    shape: str


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


class _Key(NamedTuple):
    """Whose speed, in which tier, beside whom: jobs by their ids, or programs."""

    who: str | Program
    tier: str
    others: tuple[str, ...] | tuple[Program, ...] = ()


@dataclass(slots=True)
class SpeedTable:
    """What was measured so far, of jobs and of their programs."""

    _programs: dict[str, Program] = field(default_factory=dict)  # of jobs that are there
    _means: dict[_Key, Mean] = field(default_factory=dict)

    def runs(self, job: str, program: Program) -> None:
        """A job runs, as a shape; what was measured of it as another shape is its program's."""
        if self._programs.get(job) != program:
            if job in self._programs:
                self._drop({job}, set())
            self._programs[job] = program

    def add(self, window: Window) -> None:
        """Count a window of a job that runs; others beside it must be known too."""
        for key in self._keys(window.job, window.tier, window.others):
            mean = self._means.setdefault(key, Mean())
            mean.add(window.speed, window.window_s, window.end_s)

    def _keys(self, job: str, tier: str, others: Combination) -> Iterator[_Key]:
        """Where a job's speed stands: its own first, then its program's."""
        yield _Key(job, tier, tuple(sorted(others)))
        programs = self._programs
        if job in programs and others <= programs.keys():
            beside = tuple(sorted(programs[other] for other in others))
            yield _Key(programs[job], tier, beside)

    def alone(self, job: str, tier: str) -> float | None:
        """Return a job's speed alone; None: not known in this tier."""
        return next(self._known(job, tier, frozenset()), None)

    def relative(self, job: str, tier: str, others: Combination) -> float | None:
        """Return a_{i,S}: how fast a job is beside others, relative to alone; None: not known."""
        alone = self.alone(job, tier)
        beside = next(self._known(job, tier, others), None)
        return beside / alone if alone is not None and beside is not None else None

    def _known(self, job: str, tier: str, others: Combination) -> Iterator[float]:
        for key in self._keys(job, tier, others):
            value = self._means[key].value if key in self._means else None
            if value is not None:
                yield value

    def forget(self, there: Iterable[str]) -> None:
        """Forget jobs that are gone; their programs stay. ``there``: all that are not.

        A program that is named by its job (:data:`OF_ONE`) is nobody else's and goes with it.
        """
        gone = self._programs.keys() - set(there)
        if gone:
            programs = {self._programs.pop(job) for job in gone}
            self._drop(gone, {one for one in programs if one.name.startswith(OF_ONE)})

    def _drop(self, jobs: Set[str], programs: Set[Program]) -> None:
        """Forget what was measured of these, and beside them."""
        left: dict[_Key, Mean] = {}
        for key, mean in self._means.items():
            of: Set[object] = programs if isinstance(key.who, Program) else jobs
            if key.who not in of and of.isdisjoint(key.others):
                left[key] = mean
        self._means = left
