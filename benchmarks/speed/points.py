"""From what was seen alone and in pairs: points of the figure, and how well they agree. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, mean

from benchmarks.stats import Estimate, interval
from pliant.monitor.speed import Speed
from pliant.monitor.tier import Tier

CPU = "tier 3: CPU time"
MEASURES: Mapping[str, Callable[[Speed], float | None]] = {
    "tier 1: instructions/s": lambda s: s.value if s.tier is Tier.COUNTERS else None,
    "tier 1: IPC × CPU-time fraction": lambda s: s.parts.ipc_cpu,
    CPU: lambda s: s.parts.cpu,
    "run ÷ (run + wait)": lambda s: s.parts.run_share,
}
"""What the monitor tells of a job, of which two make a ratio; None where it cannot tell."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a program did in one window: its units per second, and what the monitor made of it."""

    name: str
    units_per_s: float
    speed: Speed


@dataclass(frozen=True, slots=True)
class Point:
    """A program beside another: speeds as parts of its speed alone, true and by each measure."""

    setting: str
    name: str
    beside: str
    true: float
    measured: Mapping[str, float]


def point(setting: str, seen: Seen, beside: str, alone: Sequence[Seen]) -> Point:
    """Return the point of a program that was seen beside another, and before or after alone."""
    ratios = {}
    for name, measure in MEASURES.items():
        together, before = measure(seen.speed), [measure(each.speed) for each in alone]
        known = [value for value in before if value is not None]
        if together is not None and len(known) == len(before) and mean(known) > 0:
            ratios[name] = together / mean(known)
    true = seen.units_per_s / mean(each.units_per_s for each in alone)
    return Point(setting, seen.name, beside, true, ratios)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a measure tells the true ratio, over so many points."""

    points: int
    r: Estimate
    error: Estimate  # mean, absolute
    bias: Estimate  # mean; above 0: it is told too fast
    worst: float


def agreement(pairs: Sequence[Sequence[Point]], measure: str) -> Agreement | None:
    """Return the agreement over these pairs; None where fewer than two points were measured.

    A bootstrap draws pairs, not points: the two programs of a pair were measured together.
    """
    both = [
        [(p.true, p.measured[measure]) for p in pair if measure in p.measured] for pair in pairs
    ]
    known = [pair for pair in both if pair]
    if sum(map(len, known)) < 2:
        return None
    errors = [abs(told - true) for pair in known for true, told in pair]
    return Agreement(
        len(errors),
        interval(known, _r),
        interval(known, lambda drawn: mean(abs(b - a) for pair in drawn for a, b in pair)),
        interval(known, lambda drawn: mean(b - a for pair in drawn for a, b in pair)),
        max(errors),
    )


def _r(pairs: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return Pearson's correlation; 0 where one of both does not vary."""
    true, told = zip(*(each for pair in pairs for each in pair), strict=True)
    try:
        return correlation(true, told)
    except StatisticsError:
        return 0.0
