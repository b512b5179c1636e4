"""Fujiwara et al. (paper 000), section V: the runs on the synthetic GPU trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple, TypeVar

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim
from pliant.simulator.reproduce.fujiwara_figures import Came, Figure
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    Gpu,
    Point,
    Results,
    run_points,
)
from pliant.simulator.reproduce.fujiwara_said import Sizes
from pliant.simulator.workloads.fujiwara import SENSITIVITY
from pliant.simulator.workloads.fujiwara_trace import TRACES

FEW = 3
"""For figure 3: fewer GPUs than the six that are saturated."""
GPUS = (6, 12, 24, 48)
OVERHEADS_S = (0.0, 150.0, 300.0)
Said = TypeVar("Said", float, str)
"""A number, or words, of the paper."""


class Part(NamedTuple):
    """Policies that are run on so many tasks of each of so many seeds."""

    tasks: int
    seeds: int
    policies: tuple[str, ...]

    @property
    def text(self) -> str:
        """How much that is."""
        return f"{self.tasks:,} tasks of {self.seeds} seed" + "s" * (self.seeds > 1)


class Over(NamedTuple):
    """A policy's figure against that of another, on ``least`` GPUs and more."""

    policy: str
    figure: Figure
    base: str = FCFS
    least: int = GPUS[0]


class Choice(NamedTuple):
    """Which of :data:`SENSITIVITY` and :data:`TRACES`; the first of both are those chosen."""

    curves: int = 0
    trace: int = 0

    @property
    def text(self) -> str:
        """What differs from what was chosen."""
        words: list[str] = []
        if self.trace:
            chosen, usual = TRACES[self.trace], TRACES[0]
            for name in type(usual).__slots__:
                if getattr(chosen, name) != getattr(usual, name):
                    words.append(f"{name} {getattr(chosen, name)}")
        speeds, usually = SENSITIVITY[self.curves], SENSITIVITY[0]
        if speeds.mcnn.share != usually.mcnn.share:
            words.append(f"n^-{speeds.mcnn.share} beside others on a GPU")
        if speeds.mcnn.many != usually.mcnn.many:
            words.append(f"n^{speeds.mcnn.many} on n GPUs")
        return ", ".join(words) or "as chosen"


CHOICES = (
    *(Choice(curves, 0) for curves in range(len(SENSITIVITY))),
    *(Choice(0, trace) for trace in range(1, len(TRACES))),
)
"""One thing differs at a time, in the first none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Runs of some parts by one choice, and what came out. Figures are means over the seeds.

    ``only``: of all seeds, the one that is looked at.
    """

    results: Results
    parts: Sequence[Part]
    first_seed: int
    choice: Choice = CHOICES[0]
    only: int | None = None

    def points(self) -> Iterator[Gpu]:
        """Yield all runs that the claims need."""
        for part in self.parts:
            few = (FEW,) if part == self.all else ()
            for gpus in (*few, *GPUS):
                for policy in part.policies:
                    yield from self._seeds(policy, gpus, part)
        for gpus in GPUS:
            for overhead_s in OVERHEADS_S:
                yield from self._seeds(MALLEABLE, gpus, self.all, overhead_s)

    def _seeds(self, policy: str, gpus: int, part: Part, overhead_s: float = 0.0) -> Iterator[Gpu]:
        seeds = range(self.first_seed, self.first_seed + part.seeds)
        for seed in seeds if self.only is None else (self.only,):
            yield Gpu(policy, gpus, part.tasks, seed, overhead_s, *self.choice)

    def by_seed(self) -> list[Seen]:
        """Return the same for each of the seeds alone that all parts have."""
        common = min(part.seeds for part in self.parts)
        return [replace(self, only=self.first_seed + number) for number in range(common)]

    @property
    def all(self) -> Part:
        """The largest part in which all policies are."""
        return self.part(MALLEABLE, MALLEABLE_P)

    def part(self, *policies: str) -> Part:
        """The largest part in which some policies are."""
        return max(part for part in self.parts if {*policies} <= {*part.policies})

    def on(self, *policies: str) -> str:
        """Say what a claim's numbers are of."""
        return f"of {self.part(*policies).tasks:,} tasks"

    def on_all(self) -> str:
        """Say the same of all policies, each on the largest part that has it."""
        counts = sorted({self.part(one, FCFS).tasks for one in self.all.policies})
        return f"of {' to '.join(f'{count:,}' for count in counts)} tasks"

    def came(self, policy: str, gpus: int, part: Part, overhead_s: float = 0.0) -> list[Came]:
        """What came of a policy, seed by seed."""
        return [self.results[point] for point in self._seeds(policy, gpus, part, overhead_s)]

    def mean(self, policy: str, gpus: int, part: Part, figure: Figure) -> float:
        """Return a policy's mean figure."""
        return fmean(map(figure, self.came(policy, gpus, part)))

    def changes(
        self, policy: str, gpus: int, part: Part, figure: Figure, base: str = FCFS
    ) -> list[float]:
        """Return how much a figure is above that of another policy, seed by seed."""
        both = zip(self.came(policy, gpus, part), self.came(base, gpus, part), strict=True)
        return [figure(one) / figure(other) - 1 for one, other in both]

    def change(self, policy: str, gpus: int, figure: Figure, part: Part, base: str = FCFS) -> float:
        """Return the mean of :meth:`changes`."""
        return fmean(self.changes(policy, gpus, part, figure, base))

    def over_gpus(
        self, policy: str, figure: Figure, base: str = FCFS, least: int = GPUS[0]
    ) -> dict[int, float]:
        """Return :meth:`change` by GPUs, from ``least`` on, on the largest part that has both."""
        part = self.part(policy, base)
        return {
            gpus: self.change(policy, gpus, figure, part, base) for gpus in GPUS if gpus >= least
        }

    def claim(
        self,
        saying: Callable[[str, Said, Sizes, str, str], Claim],
        text: str,
        said: Said,
        over: Over,
        why: str,
    ) -> Claim:
        """Return what is said, in a way of saying things, of :meth:`over_gpus`."""
        return saying(text, said, self.over_gpus(*over), self.on(over.policy, over.base), why)

    def apart(
        self, pairs: Sequence[tuple[str, str]], figure: Figure, sizes: Sequence[int] = GPUS
    ) -> dict[int, float]:
        """Return by GPUs the change, of several policies each against another, that is largest.

        Each is taken on the largest part that has both.
        """

        def changes(gpus: int) -> Iterator[float]:
            for one, other in pairs:
                part = self.all if gpus == FEW else self.part(one, other)
                yield self.change(one, gpus, figure, part, other)

        return {gpus: max(changes(gpus), key=abs) for gpus in sizes}


class Gpus:
    """All runs: by what was chosen, and by other choices on fewer tasks."""

    def __init__(
        self, parts: Sequence[Part], varied: Part, choices: Sequence[Choice], first_seed: int
    ) -> None:
        self._results: dict[Point, Came] = {}
        self.chosen = Seen(self._results, parts, first_seed)
        self.varied = [Seen(self._results, [varied], first_seed, choice) for choice in choices]

    def run(self, asked: Asked) -> None:
        """Run all points."""
        points = [point for seen in (self.chosen, *self.varied) for point in seen.points()]
        self._results.update(run_points(asked, "GPU trace", points))
