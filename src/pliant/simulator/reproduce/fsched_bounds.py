"""What a bound on the variance of slowdowns does to F-scheduling (Seo, paper 003)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from statistics import pvariance
from typing import NamedTuple

from pliant.model import Shape
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Table
from pliant.simulator.reproduce.fsched_runs import V_BOUND, F, Ran, run
from pliant.simulator.workloads.seo import GPUS, fitted

BOUNDS = (V_BOUND, 0.25, 0.02, 0.01, 0.005, 0.002, 0.001)
UNBOUND = 1.0
"""No variance of slowdowns is as large."""


class Bound(NamedTuple):
    """One bound on the variance of slowdowns, with a time to save."""

    v_bound: float
    save_s: float


def run_bounds(asked: Asked, save_s: float) -> dict[float, Ran]:
    """Run F-scheduling with each bound, and with none."""
    every = (*BOUNDS, UNBOUND)
    found = asked.spread("bounds", _bounded, [Bound(one, save_s) for one in every])
    return dict(zip(every, found, strict=True))


def _bounded(bound: Bound) -> Ran:
    return run(F, save_s=bound.save_s, v_bound=bound.v_bound)


def bound_claims(bounds: Mapping[float, Ran]) -> list[Claim]:
    """Return what is said of the variance of slowdowns."""
    free = bounds[UNBOUND]
    bind = [one for one in BOUNDS if bounds[one].stays != free.stays]
    return [
        Claim(
            f"v_bound = {V_BOUND} keeps the variance of slowdowns below it (section 5.1.3)",
            "fitted",
            f"< {V_BOUND}",
            f"{bounds[V_BOUND].most_variance:.4f} at most",
            bounds[V_BOUND].most_variance < V_BOUND,
            "it cannot but: slowdowns are between 0 and 1, so their variance is 0.25 at most; the"
            " run is the same without any bound, so table 2 is that of the most throughput alone"
            if V_BOUND not in bind
            else "",
        ),
        _binding(bounds, free, bind),
    ]


def _binding(bounds: Mapping[float, Ran], free: Ran, bind: list[float]) -> Claim:
    """Claim that a bound is kept to; say what it does."""
    text = "a bound that binds keeps the variance of slowdowns below it (sections 3.1 and 4.2)"
    if not bind:
        return Claim(text, "not testable", "< v_bound", why="none of those looked at binds")
    kept = [one for one in bind if bounds[one].most_variance < one]
    tight = bounds[min(bind)]
    listed = ", ".join(f"{one:g}" for one in bind)
    return Claim(
        text,
        "fitted",
        "< v_bound",
        f"{listed} bind: with the last the variance is {tight.most_variance:.4f} at most instead of"
        f" {free.most_variance:.4f}, all is done after {tight.total_s:.0f} s instead of"
        f" {free.total_s:.0f} s, and flow times sum to {sum(tight.states):.0f} s instead of"
        f" {sum(free.states):.0f} s",
        kept == bind,
        ""
        if kept == bind
        else f"listing 1 gives all {GPUS} GPUs away, and four jobs cannot have them with a variance"
        f" below {least_variance():.4f}: it then takes the way with the least",
    )


def least_variance() -> float:
    """Return the least variance of the slowdowns of the four jobs when all GPUs are theirs."""
    models = [fitted(model) for model in ("ResNet-50", "InceptionV3")] * 2
    whole = Shape(1, GPUS)
    return min(
        pvariance([f.rate(Shape(1, n)) / f.rate(whole) for f, n in zip(models, ns, strict=True)])
        for ns in product(range(1, GPUS + 1), repeat=len(models))
        if sum(ns) == GPUS
    )


def bound_table(bounds: Mapping[float, Ran]) -> Table:
    """Return what came out with each bound."""
    rows = []
    for v_bound, ran in bounds.items():
        name = "none" if v_bound == UNBOUND else f"{v_bound:g}"
        states = ran.states
        figures = (f"{ran.total_s:.1f}", f"{sum(states):.1f}", f"{ran.changes}")
        rows.append([name, f"{ran.most_variance:.4f}", *figures])
    return Table(
        "What v_bound does",
        ["v_bound", "variance at most", "until all are done, s", "sum of flow times, s", "changes"],
        rows,
        "The variance is that of the jobs that hold GPUs, each time that one starts.",
    )
