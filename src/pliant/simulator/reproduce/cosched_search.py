"""Kuchumov & Korkhov (paper 002), figure 1: PI, EI and UCB over the range of speed-up rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from statistics import fmean
from typing import NamedTuple

from pliant.cosched import (
    EI,
    PI,
    Fastest,
    Instance,
    Strategy,
    makespan,
    optimum,
    random_instance,
    run,
    ucb,
)
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Table, percent

EXACT = 1e-6
"""What two ways of adding up the same time may differ by, in parts of it."""

RATES = ((0.0, 0.05), (0.0, 0.1), (0.0, 0.2), (0.1, 0.2), (0.1, 0.3), (0.2, 0.5), (0.0, 0.5))
"""Ranges of how much slower a task is for each further one: those of figure 1 are not legible."""

MOSTLY = 0.8
"""So much of the range is "almost all problem input ranges"."""
SAME = 0.0005
"""Mean ratios that differ by less are the same."""

STRATEGIES: dict[str, Strategy] = {
    "fcs": Fastest(),
    "pi": PI,
    "ei": EI,
    "ucb": ucb(),
    "pi assumed": replace(PI, ends=False),
    "ei assumed": replace(EI, ends=False),
    "ucb assumed": replace(ucb(), ends=False),
}
"""``assumed``: the far end is not measured first but assumed (see :mod:`pliant.cosched.belief`)."""
Ratios = dict[str, float]


class Search(NamedTuple):
    """So many random instances of so many tasks, whose speeds take so long to measure."""

    tasks: int
    interval_s: float
    instances: int


class Point(NamedTuple):
    """One instance of figure 1."""

    search: Search
    rate: tuple[float, float]
    seed: int


@dataclass(frozen=True, slots=True)
class Row:
    """One range of speed-up rates: the mean ratios to the optimum, and how many instances."""

    search: Search
    rate: tuple[float, float]
    means: Ratios

    @property
    def rate_text(self) -> str:
        """The range, in words."""
        return f"{self.rate[0]:g}–{self.rate[1]:g}"


def searched(point: Point) -> Ratios:
    """Run all strategies on a random instance; return each makespan over the optimum's."""
    tasks, interval_s, _ = point.search
    random = Random(f"figure 1 {tasks} {point.rate} {point.seed}")  # noqa: S311  # no secret
    return ratios_of(random_instance(tasks, point.rate, random), STRATEGIES, interval_s)


def ratios_of(
    instance: Instance, strategies: Mapping[str, Strategy], interval_s: float = 1.0
) -> Ratios:
    """Return each strategy's makespan over the optimum's, and that of one task after the other."""
    best_s = makespan(optimum(instance.volumes, instance.table))
    times = {name: run(instance, one, interval_s).makespan_s for name, one in strategies.items()}
    times["sequential"] = sum(instance.volumes.values())
    return {name: time_s / best_s for name, time_s in times.items()}


def means_of(found: Sequence[Ratios]) -> Ratios:
    """Return the mean of each strategy's ratios."""
    return {name: fmean(ratios[name] for ratios in found) for name in found[0]}


def run_searches(asked: Asked, searches: Sequence[Search]) -> list[Row]:
    """Run all instances of all ranges of speed-up rates."""
    points = [
        Point(search, rate, seed)
        for search in searches
        for rate in RATES
        for seed in asked.seeds(search.instances)
    ]
    # The longest first, so that no process is left alone with them.
    found = dict(
        zip(reversed(points), asked.spread("figure 1", searched, points[::-1]), strict=True)
    )
    rows = groupby(points, key=lambda point: point[:2])
    return [
        Row(search, rate, means_of([found[one] for one in some])) for (search, rate), some in rows
    ]


def figure_1(rows: Sequence[Row]) -> list[Claim]:
    """Return what the figure claims."""
    means = [row.means for row in rows]
    return [
        lowest(
            "PI is lower than EI and UCB over almost the whole range of speed-up rates", means, ""
        ),
        lowest("the same, where searches do not begin with all tasks at once", means, " assumed"),
        Claim(
            "the ratios of figure 1 themselves",
            "not testable",
            "a figure without numbers",
            why="neither its numbers nor its ranges of speed-up rates are legible",
        ),
    ]


def lowest(text: str, means: Sequence[Ratios], variant: str = "") -> Claim:
    """Claim that PI's mean is below those of EI and UCB in most rows."""
    count = Count.of(means, variant)
    rest = count.lower + count.higher
    holds = rest > 0 and count.lower >= MOSTLY * rest
    why = f"to hold, lower in {percent(MOSTLY)} of the rows that are not equal"
    ours = (
        f"PI lower in {count.lower} of {len(means)} rows, equal in {count.equal}, higher in"
        f" {count.higher}"
    )
    return Claim(text, "predicted", "lower", ours, holds, why if holds else f"{why}; {_TOO_SOON}")


class Count(NamedTuple):
    """In how many rows PI's mean is lower than those of EI and UCB, the same as the lower of these,
    or higher."""

    lower: int
    equal: int
    higher: int

    @classmethod
    def of(cls, means: Sequence[Ratios], variant: str = "") -> Count:
        """Count rows; ``variant``: of which strategies."""
        apart = [
            min(mean["ei" + variant], mean["ucb" + variant]) - mean["pi" + variant]
            for mean in means
        ]
        lower, higher = sum(one > SAME for one in apart), sum(one < -SAME for one in apart)
        return cls(lower, len(apart) - lower - higher, higher)


_TOO_SOON = (
    "PI ends its search where nothing is expected to be better than the best that was measured, EI"
    " and UCB where nothing may be: that saves measurements, which pays most with many tasks whose"
    " speeds fall fast, and misses the best where many at once are fast"
)


def summary_table(rows: Sequence[Row]) -> Table:
    """Return how often PI is lowest, by what a search costs."""
    found = []
    for search, some in groupby(rows, key=lambda row: row.search):
        means = [row.means for row in some]
        both = (Count.of(means), Count.of(means, " assumed"))
        found.append(
            [
                f"{search.tasks} tasks, {search.interval_s:g} s",
                *(f"{number}" for count in both for number in count),
            ]
        )
    columns = ("lower", "equal", "higher")
    return Table(
        "PI against the better of EI and UCB, by what a search costs: ranges of speed-up rates",
        ["tasks, to measure", *columns, *(f"assumed: {column}" for column in columns)],
        found,
    )


def search_table(rows: Sequence[Row]) -> Table:
    """Return figure 1 as numbers."""
    names = ["sequential", *STRATEGIES]
    return Table(
        "Figure 1 as numbers: makespan over the optimum's, in the mean",
        ["speed-up rates", "tasks", "s to measure", "instances", *names],
        [
            [
                row.rate_text,
                f"{row.search.tasks}",
                f"{row.search.interval_s:g}",
                f"{row.search.instances}",
                *(f"{row.means[name]:.3f}" for name in names),
            ]
            for row in rows
        ],
        "fcs knows all speeds, the others learn them. They measure all tasks at once first; with"
        ' "assumed" they take it that all at once run as if they took turns.',
    )
