"""Medians and quantiles with confidence intervals by bootstrap: no assumption about shapes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

_RESAMPLES = 2000
_LEVEL = 0.95

Statistic = Callable[[Sequence[float]], float]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the interval that holds 95 % of its bootstrap."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """Write ``1.23 (1.20 to 1.31)``."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def quantile(part: float) -> Statistic:
    """Return the function that takes a quantile, interpolating between neighbours."""

    def take(values: Sequence[float]) -> float:
        ordered = sorted(values)
        place = part * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return take


def estimate(values: Sequence[float], statistic: Statistic = median) -> Estimate:
    """Return the statistic of the values with its interval; the resampling is seeded."""
    return interval(values, statistic)


def interval(items: Sequence[Item], statistic: Callable[[Sequence[Item]], float]) -> Estimate:
    """Return a statistic of anything that was drawn, with its interval; as :func:`estimate`."""
    draw = random.Random(0)
    found = [statistic(draw.choices(items, k=len(items))) for _ in range(_RESAMPLES)]
    return _estimate(statistic(items), found)


def difference(more: Sequence[float], less: Sequence[float]) -> Estimate:
    """Return how much the median of ``more`` is above that of ``less``, with its interval."""
    draw = random.Random(0)
    found = [
        median(draw.choices(more, k=len(more))) - median(draw.choices(less, k=len(less)))
        for _ in range(_RESAMPLES)
    ]
    return _estimate(median(more) - median(less), found)


def _estimate(value: float, resampled: Sequence[float]) -> Estimate:
    tail = (1 - _LEVEL) / 2
    return Estimate(value, quantile(tail)(resampled), quantile(1 - tail)(resampled))
