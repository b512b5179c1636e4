"""Axes: where ticks stand, and what is written at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf

from pliant.figures import duration

_TIMES = {
    count * unit_s: f"{count} {unit}"
    for unit, unit_s, counts in (
        ("s", 1.0, (1, 2, 5, 10, 20)),
        ("min", 60.0, (1, 2, 5, 10, 20)),
        ("h", 3600.0, (1, 2, 5, 10)),
        ("d", 86_400.0, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    )
    for count in counts
}
_NUMBERS = {
    count * 10.0**power: f"{count * 10**power:,}" for power in range(13) for count in (1, 2, 5)
}
_ROUND = [count * 10.0**power for power in range(-6, 13) for count in (1, 2, 5)]
_TICKS = 8
"""No more of them stand side by side."""
Ticks = Sequence[tuple[float, str]]


def of_distributions(
    lines: Iterable[Sequence[float]], *, times: bool
) -> tuple[float, float, Ticks]:
    """Return the ends of a logarithmic axis from 1 on, and its ticks; ``times``: seconds.

    A job that was ended before it made progress has an endless slowdown: no axis shows it.
    """
    every = [*lines]
    most = max([1.0, *(value for of in every for value in of if value < inf)])
    least = min(most / 2, *(max(1.0, of[0]) for of in every))
    named = _TIMES if times else _NUMBERS
    return least, most, _thinned([(at, named[at]) for at in named if _is_within(at, least, most)])


def of_values(values: Sequence[float]) -> tuple[bool, Ticks]:
    """Return whether an axis is logarithmic, as where values are tenfold apart, and its ticks."""
    least, most = min(values), max(values)
    if 0 < 10 * least < most:
        return True, _thinned([(at, short(at)) for at in _ROUND if _is_within(at, least, most)])
    step = next((one for one in _ROUND if most <= 5 * one), most or 1.0)
    return False, [(step * place, short(step * place)) for place in range(int(most / step) + 1)]


def of_time(length_s: float) -> Ticks:
    """Return the ticks of a time that begins at 0."""
    step_s = next((one for one in _TIMES if length_s <= 7 * one), max(_TIMES))
    places = range(1, int(length_s / step_s) + 1)
    return [(0.0, "0"), *((step_s * place, duration(step_s * place)) for place in places)]


def short(value: float) -> str:
    """Write the number at a tick."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _is_within(at: float, least: float, most: float) -> bool:
    return 0.9 * least <= at <= 1.1 * most


def _thinned(ticks: Ticks) -> Ticks:
    return ticks[:: ceil(len(ticks) / _TICKS)] if ticks else ticks
