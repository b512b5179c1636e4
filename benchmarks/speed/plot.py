"""The figure: speed relative to the job alone, measured over true, one panel for each measure."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from benchmarks.speed.points import MEASURES, Point
from pliant.simulator.report import plots

_MARKS = (("o", "#0072b2"), ("^", "#d55e00"))
"""Of Okabe and Ito's colours, which everybody can tell apart."""


def figure(points: Sequence[Point]) -> bytes:
    """Return the figure as PNG. Raises Unavailable: no matplotlib."""
    plots.check()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # an extra
    from matplotlib.figure import Figure  # noqa: PLC0415  # the same

    measures = [name for name in MEASURES if any(name in point.measured for point in points)]
    drawn = Figure(figsize=(4.2 * len(measures), 4.2), layout="compressed")
    FigureCanvasAgg(drawn)
    panels = drawn.subplots(1, len(measures), sharex=True, sharey=True, squeeze=False)[0]
    most = 1.05 * max(max(p.true, *p.measured.values()) for p in points)
    for axes, measure in zip(panels, measures, strict=True):
        axes.plot([0, most], [0, most], color="#c00000", linewidth=1)
        for setting, (mark, colour) in zip(
            sorted({p.setting for p in points}), _MARKS, strict=False
        ):
            here = [p for p in points if p.setting == setting and measure in p.measured]
            axes.scatter(
                [p.true for p in here],
                [p.measured[measure] for p in here],
                s=14,
                marker=mark,
                color=colour,
                alpha=0.6,
                linewidths=0,
                label=setting,
            )
        axes.set(title=measure, xlim=(0, most), ylim=(0, most), aspect="equal")
        axes.set_xlabel("true: work per second, of that alone")
    panels[0].set_ylabel("measured, of that alone")
    panels[0].legend(frameon=False)
    out = BytesIO()
    drawn.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return out.getvalue()
