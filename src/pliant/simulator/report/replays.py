"""What plots say of several replays of the same jobs, for all reports that compare some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pliant.simulator.curves import Curves
from pliant.simulator.report import plots
from pliant.simulator.report.page import Plot, number

SHOWN = 12
"""How many users a plot shows of each side."""


def plots_of(curves: Mapping[str, Curves], gpus: int) -> Iterator[Plot]:
    """Yield the plots of replays, by what they are called. Raises Unavailable: no matplotlib."""
    if not curves:
        return
    flows = {name: of.flow_s for name, of in curves.items()}
    slowdowns = {name: of.slowdown for name, of in curves.items()}
    yield Plot(
        "flow-time",
        "Flow time, from submission to the last end: further left is better.",
        f"Cumulative distribution of flow time. {_medians(flows, ' s')}",
        plots.distributions(flows, "flow time", times=True),
    )
    yield Plot(
        "slowdown",
        "Slowdown, 1 for a job that never waits: further left is better.",
        f"Cumulative distribution of slowdown. {_medians(slowdowns)}",
        plots.distributions(slowdowns, "slowdown", times=False),
    )
    busy = {name: (of.begin_s, of.step_s, of.busy) for name, of in curves.items()}
    yield Plot(
        "gpus-held",
        f"GPUs held over time, of {gpus}: the grey line.",
        f"GPUs held over time, of {gpus}. {_means(curves)}",
        plots.over_time(busy, float(max(1, gpus))),
    )


def plot_of_users(policy: str, changes: Sequence[tuple[str, float]], name: str) -> Plot:
    """Return the plot of users' changes under a policy; the worst hit stand first.

    Raises Unavailable where there is no matplotlib.
    """
    shown = [*changes[:SHOWN], *changes[max(SHOWN, len(changes) - SHOWN) :]]
    (worst, most), (best, least) = changes[0], changes[-1]
    left = len(changes) - len(shown)
    rest = f" {left} users between them are not shown." if left else ""
    return Plot(
        name,
        f"{policy}: change of each user's mean flow time; bars to the left are gains.{rest}",
        f"Change of mean flow time by user, from {worst}, {100 * most:+.1f} %,"
        f" to {best}, {100 * least:+.1f} %.",
        plots.bars(shown),
    )


def _medians(lines: Mapping[str, Sequence[float]], unit: str = "") -> str:
    words = [f"{name} {number(of[len(of) // 2])}{unit}" for name, of in lines.items()]
    return f"Medians: {', '.join(words)}."


def _means(curves: Mapping[str, Curves]) -> str:
    words = [f"{name} {number(sum(of.busy) / len(of.busy))}" for name, of in curves.items()]
    return f"On average: {', '.join(words)}."
