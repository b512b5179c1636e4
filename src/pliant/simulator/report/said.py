"""Figures as people read them: with their units, and which changes are for the worse."""

from __future__ import annotations

from pliant.figures import close_duration, gpu_hours, number, percent
from pliant.pages.model import Mark, Marked
from pliant.simulator.comparison import Compared
from pliant.simulator.seeds import Estimate
from pliant.simulator.users import SAME

_NEITHER = ("GPUs held (%)", "GPU time held (h)")
"""More of these is neither better nor worse."""
_MORE_IS_BETTER = ("utilisation",)


def name_of(figure: str) -> str:
    """Return what a figure is called, without its unit."""
    return figure.partition(" (")[0]


def said(figure: str, value: float) -> str:
    """Write a figure's value with its unit."""
    name, _, unit = figure.removesuffix(")").partition(" (")
    if name.startswith("GPU time"):
        return gpu_hours(3600 * value)
    if unit in ("s", "h"):
        return close_duration(3600 * value if unit == "h" else value)
    if unit == "%":
        return f"{value:.2f} %"
    return f"{100 * value:.2f} %" if unit == "part" or name == "utilisation" else number(value)


def mean(figure: str, of: Estimate) -> str:
    """Write a figure's mean, and how far the true one may be from it."""
    text = said(figure, of.mean)
    return text if of.within is None else f"{text} ± {said(figure, of.within)}"


def changed(of: Estimate | None) -> str:
    """Write a change of a figure, and how far the true one may be from it."""
    if of is None:
        return ""
    return percent(of.mean) + ("" if of.within is None else f" ± {100 * of.within:.1f} %")


def judged(row: Compared, before: Compared) -> Mark:
    """Return whether a figure is better or worse than before; "": the same, or neither."""
    if row.figure in _NEITHER:
        return ""
    if row.change is None:  # before it was 0
        more, enough = row.mean.mean - before.mean.mean, not before.mean.mean
    else:
        more = row.change.mean
        enough = abs(more) > max(SAME, row.change.within or 0.0)
    if not (more and enough):
        return ""
    return "better" if (more < 0) != (row.figure in _MORE_IS_BETTER) else "worse"


def compared(row: Compared, before: Compared) -> Marked:
    """Return a figure's cell: its value, its change, and whether that is for the worse."""
    mark = judged(row, before)
    more = changed(row.change) or ("more than 0" if mark else "")
    return Marked(mean(row.figure, row.mean), mark, more)
