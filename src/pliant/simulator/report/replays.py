"""Pictures of several replays of the same jobs, for all pages that compare some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pliant.figures import close_duration, number, percent
from pliant.pages.model import Changes, Distributions, OverTime, Picture
from pliant.simulator.curves import Curves
from pliant.simulator.users import SAME

SHOWN = 12
"""How many users a picture shows of each side."""


def pictures_of(curves: Mapping[str, Curves], gpus: int) -> Iterator[Picture]:
    """Yield the pictures of replays, by what they are called."""
    if not curves:
        return
    flows = {name: of.flow_s for name, of in curves.items()}
    slowdowns = {name: of.slowdown for name, of in curves.items()}
    yield Distributions(
        "flow-time",
        "Flow time, from submission to the last end: further left is better.",
        f"Cumulative distribution of flow time. {_medians(flows, close_duration)}",
        flows,
        "flow time",
        times=True,
    )
    yield Distributions(
        "slowdown",
        "Slowdown, 1 for a job that never waits: further left is better.",
        f"Cumulative distribution of slowdown. {_medians(slowdowns, number)}",
        slowdowns,
        "slowdown",
        times=False,
    )
    yield OverTime(
        "gpus-held",
        f"GPUs held over time, of {gpus}.",
        f"GPUs held over time, of {gpus}. {_means(curves)}",
        {name: (of.begin_s, of.step_s, of.busy) for name, of in curves.items()},
        float(max(1, gpus)),
    )


def picture_of_users(policy: str, changes: Sequence[tuple[str, float]], name: str) -> Picture:
    """Return the picture of users' changes under a policy; the worst hit stand first."""
    shown = [*changes[:SHOWN], *changes[max(SHOWN, len(changes) - SHOWN) :]]
    (worst, most), (best, least) = changes[0], changes[-1]
    left = len(changes) - len(shown)
    rest = f" {left} users between them are not shown." if left else ""
    return Changes(
        name,
        f"{policy}: change of each user's mean flow time; less is better.{rest}",
        f"Change of mean flow time by user, from {worst}, {percent(most)}, to {best},"
        f" {percent(least)}.",
        shown,
        SAME,
    )


def _medians(lines: Mapping[str, Sequence[float]], write: Callable[[float], str]) -> str:
    words = [f"{name} {write(of[len(of) // 2])}" for name, of in lines.items()]
    return f"Medians: {', '.join(words)}."


def _means(curves: Mapping[str, Curves]) -> str:
    words = [f"{name} {number(sum(of.busy) / len(of.busy))}" for name, of in curves.items()]
    return f"On average: {', '.join(words)}."
