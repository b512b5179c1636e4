"""Several policies on the same workloads: their figures over seeds, and against the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pliant.simulator.metrics import worst_of
from pliant.simulator.seeds import Estimate, change, estimate
from pliant.simulator.tally import Figures, Spreads

Pick = Callable[[Figures], float | None]


def of_tasks(pick: Callable[[Spreads], float]) -> Pick:
    """Return what a figure of all tasks is; None where none ended."""
    return lambda figures: pick(figures.tasks) if figures.tasks else None


_PICKS: dict[str, Pick] = {
    "flow time, mean (s)": of_tasks(lambda tasks: tasks.flow_s.mean),
    "flow time, p95 (s)": of_tasks(lambda tasks: tasks.flow_s.p95),
    "stretch, mean": of_tasks(lambda tasks: tasks.stretch.mean),
    "slowdown, mean": of_tasks(lambda tasks: tasks.slowdown.mean),
    "slowdown, p95": of_tasks(lambda tasks: tasks.slowdown.p95),
    "wait, mean (s)": of_tasks(lambda tasks: tasks.wait_s.mean),
    "wait, p95 (s)": of_tasks(lambda tasks: tasks.wait_s.p95),
    "bags' flow time, mean (s)": lambda figures: figures.bags.flow_s.mean if figures.bags else None,
    "bags' stretch, mean": lambda figures: figures.bags.stretch.mean if figures.bags else None,
    "makespan (s)": lambda figures: figures.makespan_s,
    "utilisation": lambda figures: figures.utilisation,
    "idle GPU time (part)": lambda figures: part_of(figures.idle_gpu_s, figures),
    "avoidably idle (part)": lambda figures: part_of(figures.avoidable_gpu_s, figures),
    "lost GPU time (part)": lambda figures: part_of(figures.lost_gpu_s, figures),
    "preemptions": lambda figures: figures.preemptions,
    "restarts": lambda figures: figures.restarts,
    "re-scheduled after, median (s)": lambda figures: (
        figures.away_s.median if figures.away_s else None
    ),
    "never started": lambda figures: figures.never,
}
"""What is compared."""


def part_of(gpu_s: float | None, figures: Figures) -> float | None:
    """Return what part of all GPU time it is."""
    return None if gpu_s is None else gpu_s / (figures.capacity_gpu_s or 1.0)


def picks(first: Figures) -> dict[str, Pick]:
    """Return what is compared, by its title: by class too where jobs have classes."""
    found = dict(_PICKS)
    for name in first.classes:
        for title, part in (("mean", "mean"), ("median", "median"), ("p95", "p95")):
            found[f"{name} slowdown, {title}"] = _of_class(name, part)
    return found


def _of_class(name: str, part: str) -> Pick:
    def pick(figures: Figures) -> float | None:
        of = figures.classes.get(name)
        return None if of is None else float(getattr(of.slowdown, part))

    return pick


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of one policy over all seeds; ``change`` is relative to the first policy's."""

    figure: str
    policy: str
    values: tuple[float, ...]  # one for each seed
    mean: Estimate
    change: Estimate | None


@dataclass(frozen=True, slots=True)
class WorstHit:
    """The user whose mean flow time grew most against the first policy, on one seed."""

    policy: str
    seed: int
    user: str
    ratio: float


def compare(
    results: Mapping[str, Sequence[Figures]], of: Mapping[str, Pick] | None = None
) -> list[Compared]:
    """Return all figures of policies, each with one result for every seed in the same order.

    A figure that one of them does not have on some seed is left out. ``of``: others than usual, by
    their titles.
    """
    rows: list[Compared] = []
    everything = [*results.values()]
    for title, pick in (of or picks(everything[0][0])).items():
        columns = [_present([pick(figures) for figures in of]) for of in everything]
        if any(column is None for column in columns) or not any(map(any, filter(None, columns))):
            continue  # not measured, or nothing but zeros
        first = columns[0] or []
        for place, (policy, column) in enumerate(zip(results, columns, strict=True)):
            values = column or []
            against = change(values, first) if place else None
            rows.append(Compared(title, policy, tuple(values), estimate(values), against))
    return rows


def _present(values: Sequence[float | None]) -> list[float] | None:
    found = [float(value) for value in values if value is not None]
    return found if len(found) == len(values) else None


def worst_hit(results: Mapping[str, Sequence[Figures]], seeds: Sequence[int]) -> list[WorstHit]:
    """Return for each policy but the first whom it hits worst, on any of the seeds."""
    first, *others = results.items()
    found: list[WorstHit] = []
    for policy, figures in others:
        of_seeds = [
            WorstHit(policy, seed, *worst_of(_flows(now), _flows(before)))
            for seed, now, before in zip(seeds, figures, first[1], strict=True)
            if now.users.keys() & before.users.keys()
        ]
        if of_seeds:
            found.append(max(of_seeds, key=lambda hit: hit.ratio))
    return found


def _flows(figures: Figures) -> dict[str, float]:
    return {name: user.flow_s for name, user in figures.users.items()}
