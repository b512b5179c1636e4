"""Pictures as shapes: where each bar and each line lies, in percent of its picture.

A picture is stretched to the window; what is to be read beside it is text, which stays as large as
it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import count
from math import log

from pliant.figures import percent
from pliant.pages import scales
from pliant.pages.model import (
    Changes,
    Distributions,
    Lengths,
    Mark,
    OverSizes,
    OverTime,
    Picture,
    Stacks,
)

GAP = 0.12
"""Between two bars, as a part of one."""
COLOURS = 7
"""How many lines can be told apart."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """One rectangle, and what it says to who points at it."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A line, or with ``filled`` the area below it."""

    kind: str
    points: Sequence[Point]
    filled: bool = False

    @property
    def path(self) -> str:
        """The points as SVG has them."""
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in self.points)


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid, and what is written at its end."""

    place: float
    words: str

    @property
    def side(self) -> str:
        """On which side of the tick there is room for its words."""
        return "first" if self.place < 4 else "last" if self.place > 96 else ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the fields of a picture, which lie one below the other."""

    title: str
    shapes: Sequence[Rect | Curve]
    ticks: Sequence[Tick]


@dataclass(frozen=True, slots=True)
class Row:
    """One bar that lies: from where, how long, what is written beside it."""

    name: str
    kind: str
    start: float
    width: float
    says: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture: panels above one axis with a legend, or rows."""

    title: str
    text: str
    panels: Sequence[Panel] = ()
    ticks: Sequence[Tick] = ()
    axis: str = ""
    legend: Sequence[tuple[str, str]] = ()
    rows: Sequence[Row] = ()

    @property
    def gutter(self) -> int:
        """How many letters stand at most beside a panel."""
        return max((len(tick.words) for one in self.panels for tick in one.ticks), default=0)


@singledispatch
def drawn(picture: Picture) -> Drawn:
    """Return a picture as shapes."""
    raise TypeError(f"{type(picture).__name__} is no picture that is drawn")


@drawn.register
def _(picture: Distributions) -> Drawn:
    least, most, ticks = scales.of_distributions(picture.lines.values(), times=picture.times)
    across = _logarithmic(0.9 * least, 1.1 * most)
    curves = []
    for kind, values in zip(_kinds(), picture.lines.values(), strict=False):
        last = len(values) - 1
        points = [
            (across(min(max(value, 1.0), most)), 100 - 100 * place / last)
            for place, value in enumerate(values)
        ]
        curves.append(Curve(kind, [*_stairs(points)]))
    parts = [Tick(100 - part, f"{part} %") for part in (0, 25, 50, 75, 100)]
    places = [Tick(across(at), words) for at, words in ticks]
    axis = f"{picture.what}; upwards: the part of the jobs with at most so much"
    panel = Panel("", curves, parts)
    return Drawn(picture.title, picture.text, [panel], places, axis, _legend(picture.lines))


@drawn.register
def _(picture: OverTime) -> Drawn:
    lines = picture.lines
    first_s = min(begin_s for begin_s, _, _ in lines.values())
    last_s = max(begin_s + step_s * len(of) for begin_s, step_s, of in lines.values())
    length_s = last_s - first_s or 1.0
    panels = []
    for kind, (name, (begin_s, step_s, of)) in zip(_kinds(), lines.items(), strict=False):
        steps = [
            (100 * (begin_s - first_s + step_s * place) / length_s, 100 - 100 * held / picture.most)
            for place, held in enumerate([*of, 0.0])
        ]
        start, end = (steps[0][0], 100.0), (steps[-1][0], 100.0)
        area = Curve(kind, [start, *_stairs(steps), end], filled=True)
        ends = [Tick(0.0, scales.short(picture.most)), Tick(100.0, "0")]
        panels.append(Panel(name, [area], ends))
    places = [Tick(100 * at / length_s, words) for at, words in scales.of_time(length_s)]
    return Drawn(picture.title, picture.text, panels, places, "since the first submission")


@drawn.register
def _(picture: OverSizes) -> Drawn:
    places = [100 * (place + 0.5) / len(picture.sizes) for place in range(len(picture.sizes))]
    panels = []
    for measure, lines in picture.panels.items():
        is_log, ticks = scales.of_values([value for of in lines.values() for value in of])
        least = min(value for of in lines.values() for value in of)
        most = max(value for of in lines.values() for value in of)
        up = _logarithmic(0.9 * least, 1.1 * most) if is_log else _linear(1.05 * most or 1.0)
        curves = [
            Curve(kind, [*zip(places, (100 - up(value) for value in of), strict=True)])
            for kind, of in zip(_kinds(), lines.values(), strict=False)
        ]
        panels.append(Panel(measure, curves, [Tick(100 - up(at), words) for at, words in ticks]))
    sizes = [Tick(at, f"{size:,}") for at, size in zip(places, picture.sizes, strict=True)]
    legend = _legend(next(iter(picture.panels.values())))
    return Drawn(picture.title, picture.text, panels, sizes, picture.what, legend)


@drawn.register
def _(picture: Changes) -> Drawn:
    parts = [part for _, part in picture.changes]
    low, high = min(0.0, *parts), max(0.0, *parts)
    span = high - low or 1.0
    rows = []
    for name, part in picture.changes:
        kind: Mark = "" if abs(part) <= picture.same else "worse" if part > 0 else "better"
        start = 100 * (min(part, 0.0) - low) / span
        width = 100 * abs(part) / span
        rows.append(Row(name, kind or "other", start, width, percent(part), kind))
    return Drawn(picture.title, picture.text, rows=rows)


@drawn.register
def _(picture: Lengths) -> Drawn:
    longest = max(length for _, _, length, _ in picture.lines) or 1.0
    rows = [
        Row(name, kind, 0.0, 100 * of / longest, says) for name, kind, of, says in picture.lines
    ]
    return Drawn(picture.title, picture.text, rows=rows)


@drawn.register
def _(picture: Stacks) -> Drawn:
    tallest = max(sum(value for value, _ in of) for _, of in picture.bars)
    bars = []
    for place, of in picture.bars:
        top, left = 100.0, 100 * (place + GAP / 2) / picture.steps
        for (kind, _), (value, says) in zip(picture.kinds, of, strict=True):
            height = 100 * value / tallest
            top -= height
            if height:
                bars.append(Rect(kind, left, top, 100 * (1 - GAP) / picture.steps, height, says))
    legend = [(kind, words) for kind, words in picture.kinds if any(b.kind == kind for b in bars)]
    panel = Panel("", bars, [Tick(0.0, picture.most), Tick(100.0, "0")])
    ends = [Tick(0.0, picture.first), Tick(100.0, picture.last)]
    return Drawn(picture.title, picture.text, [panel], ends, legend=legend)


def _logarithmic(low: float, high: float) -> Callable[[float], float]:
    return lambda value: 100 * log(value / low) / log(high / low)


def _linear(high: float) -> Callable[[float], float]:
    return lambda value: 100 * value / high


def _kinds() -> Iterator[str]:
    return (f"line-{place % COLOURS}" for place in count())


def _legend(names: Iterable[str]) -> list[tuple[str, str]]:
    return [*zip(_kinds(), names, strict=False)]


def _stairs(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the corners of a line that goes across first, then up or down."""
    shown: Point | None = None
    for point in points:
        if shown is not None:
            if point == shown:
                continue
            if point[0] != shown[0] and point[1] != shown[1]:
                yield point[0], shown[1]
        yield point
        shown = point
