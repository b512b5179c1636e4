"""Plots, as PNG: distributions, GPUs held over time, figures over sizes, changes by user.

matplotlib is imported here alone, without its pyplot: nothing is shown, no state is left. What
users are called may hold anything: it is drawn as it is, never as mathematics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from pliant.errors import Unavailable
from pliant.pages import scales
from pliant.pages.model import Changes, Distributions, OverSizes, OverTime, Picture

MISSING = "plots need matplotlib: pip install 'pliant[plots]' (Debian: python3-matplotlib)"
_COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, which everybody can tell apart; lines differ in their dashes besides."""
_DASHES = ("-", "-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), ":")
_LONGEST = 28
_LOOK = {
    "text.parse_math": False,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
}
Line = Sequence[float]


def is_there() -> bool:
    """Say whether plots can be drawn."""
    return find_spec("matplotlib") is not None


def check() -> None:
    """Raise Unavailable where plots cannot be drawn."""
    if not is_there():
        raise Unavailable(MISSING)


def png(picture: Picture) -> bytes:
    """Draw one of a page's pictures."""
    match picture:
        case Distributions():
            return _distributions(picture.lines, picture.what, times=picture.times)
        case OverTime():
            return _over_time(picture.lines, picture.most)
        case OverSizes():
            return _over_sizes(picture.sizes, picture.what, picture.panels)
        case Changes():
            return _bars(picture.changes)
    raise TypeError(f"{type(picture).__name__} is not drawn as PNG")


def _distributions(lines: Mapping[str, Line], what: str, *, times: bool) -> bytes:
    """Draw for each policy which part of the jobs had at most so much; below 1 is drawn as 1.

    A line holds figures at equal parts of the jobs, ascending. ``times``: they are seconds.
    """
    least, most, ticks = scales.of_distributions(lines.values(), times=times)

    def draw(all_axes: Any) -> None:
        (axes,) = all_axes
        for place, (name, values) in enumerate(lines.items()):
            parts = [100 * number / (len(values) - 1) for number in range(len(values))]
            shown = [min(max(value, 1.0), most) for value in values]
            axes.plot(shown, parts, label=_short(name), drawstyle="steps-post", **_style(place))
        axes.set_xscale("log")
        axes.set_xticks([at for at, _ in ticks], [words for _, words in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlim(left=0.9 * least)
        axes.set_ylim(0, 100)
        axes.set_xlabel(what)
        axes.set_ylabel("jobs with at most so much (%)")
        _legend(axes, len(lines))

    return _png(draw, 4.4)


def _over_time(lines: Mapping[str, tuple[float, float, Line]], most: float) -> bytes:
    """Draw how many GPUs were held when, each line below the other.

    A line: its begin and its steps in seconds, and its values.
    """
    first_s = min(begin_s for begin_s, _, _ in lines.values())
    last_s = max(begin_s + step_s * len(of) for begin_s, step_s, of in lines.values())
    unit, each_s = _unit(last_s - first_s)

    def draw(all_axes: Any) -> None:
        for place, (name, (begin_s, step_s, of)) in enumerate(lines.items()):
            axes = all_axes[place]
            at = [(begin_s - first_s + step_s * number) / each_s for number in range(len(of) + 1)]
            colour = _COLOURS[place % len(_COLOURS)]
            axes.fill_between(at, [*of, 0.0], step="post", color=colour, alpha=0.75, linewidth=0)
            axes.axhline(most, color="#888888", linewidth=1)
            axes.set_ylim(0, most * 1.05)
            axes.set_xlim(0, max(1e-9, (last_s - first_s) / each_s))
            axes.set_title(_short(name), loc="left", fontsize=11)
        all_axes[-1].set_xlabel(f"{unit} since the first submission")

    return _png(draw, 0.5 + 1.4 * len(lines), len(lines))


def _unit(length_s: float) -> tuple[str, float]:
    if length_s > 2 * 86400:
        return "days", 86400.0
    return ("hours", 3600.0) if length_s > 2 * 3600 else ("minutes", 60.0)


def _over_sizes(sizes: Sequence[int], what: str, panels: Mapping[str, Mapping[str, Line]]) -> bytes:
    """Draw lines over sizes, which stand equally far apart; each panel has its own scale.

    Where a panel's values are more than tenfold apart, its scale is logarithmic.
    """

    def draw(all_axes: Any) -> None:
        for axes, (measure, lines) in zip(all_axes, panels.items(), strict=True):
            for place, (name, values) in enumerate(lines.items()):
                axes.plot(
                    range(len(sizes)), values, label=_short(name), marker="o", **_style(place)
                )
            _scale(axes, [value for values in lines.values() for value in values])
            axes.set_ylabel(measure)
        _legend(all_axes[0], len(next(iter(panels.values()))))
        all_axes[-1].set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        all_axes[-1].set_xlabel(what)

    return _png(draw, 1.3 + 2.5 * len(panels), len(panels))


def _scale(axes: Any, values: Line) -> None:
    """Choose the vertical scale, with ticks in plain numbers."""
    is_log, ticks = scales.of_values(values)
    if is_log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.05 * max(values) or 1.0)
    axes.set_yticks([at for at, _ in ticks], [words for _, words in ticks])
    axes.set_yticks([], minor=True)


def _bars(changes: Sequence[tuple[str, float]]) -> bytes:
    """Draw by what part users' figures change, from the top: -0.1 is 10 % less."""

    def draw(all_axes: Any) -> None:
        (axes,) = all_axes
        places = range(len(changes), 0, -1)
        parts = [100 * part for _, part in changes]
        colours = [_COLOURS[2] if part > 0 else _COLOURS[1] for part in parts]
        axes.barh(list(places), parts, color=colours, height=0.7)
        axes.set_yticks(list(places), [_short(name) for name, _ in changes])
        axes.axvline(0, color="#000000", linewidth=1)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("change of the mean flow time (%): less is better")
        for place, part in zip(places, parts, strict=True):
            side = 3 if part >= 0 else -3
            axes.annotate(
                f"{part:+.0f}",
                (part, place),
                xytext=(side, 0),
                textcoords="offset points",
                va="center",
                ha="left" if part >= 0 else "right",
                fontsize=9,
            )
        axes.margins(x=0.12)
        axes.set_ylim(0.3, len(changes) + 0.7)

    return _png(draw, 1.6 + 0.3 * len(changes))


def _style(place: int) -> dict[str, Any]:
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _DASHES[place % len(_DASHES)],
        "linewidth": 1.0 if place == 0 else 1.8,
    }


def _short(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    shown = plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
    return f"\u200b{shown}" if shown.startswith("_") else shown  # else left out of a legend


def _legend(axes: Any, lines: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=min(lines, 2),
        frameon=False,
        borderaxespad=0.2,
    )


def _png(draw: Callable[[Any], None], height: float, panels: int = 1) -> bytes:
    """Return what was drawn on panels one below the other, 7 inches wide, so many high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # an extra
    from matplotlib.figure import Figure  # noqa: PLC0415  # the same

    with _look():
        figure = Figure(figsize=(7, height), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.subplots(panels, sharex=True, squeeze=False)[:, 0])
        found = BytesIO()
        figure.savefig(found, format="png", dpi=160, metadata={"Software": None})
    return found.getvalue()


@contextmanager
def _look() -> Iterator[None]:
    import matplotlib as mpl  # noqa: PLC0415  # an extra

    with mpl.rc_context(_LOOK), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a letter that the font does not have
        yield
