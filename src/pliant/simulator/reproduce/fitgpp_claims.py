"""What Yabuuchi et al. (paper 001) say of FitGpp, held against what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pliant.simulator.reproduce.claims import NOTHING, Claim, Table, percent
from pliant.simulator.reproduce.fitgpp_runs import (
    BE_P50,
    BE_P95,
    FIFO,
    FIGURES,
    FITGPP,
    GONE_P50,
    GONE_P95,
    LRTP,
    PREEMPTED,
    PREEMPTIONS,
    RAND,
    TE_P95,
    TOLD_P50,
    TOLD_P95,
    Runs,
)
from pliant.simulator.seeds import Estimate

NEEDED = 1 / (1 - 0.966)
"""FIFO's p95 for -96.6 % to be possible: no slowdown is below 1."""
HALF = 0.5 * 1.25 - 1
""""Almost half": up to a quarter more than that."""


@dataclass(frozen=True, slots=True)
class Said:
    """That a figure of FitGpp's differs from another policy's by ``most`` or less."""

    text: str
    figure: str
    base: str
    printed: str
    most: float


_READINGS = {"it is told to make room": (TOLD_P50, TOLD_P95), "it is gone": (GONE_P50, GONE_P95)}
_SHORTER = {LRTP: ("-20 %", -0.20), RAND: ("-33 %", -0.33)}


def _intervals() -> Iterator[Said]:
    for reading, (median, p95) in _READINGS.items():
        since = f"from when {reading} until a job runs again"
        for base, (printed, most) in _SHORTER.items():
            against = f"against {base.upper()}"
            half = f"the median interval {since} is almost halved {against}"
            yield Said(half, median, base, "almost -50 %", HALF)
            yield Said(
                f"the p95 of the intervals {since} falls {against}", p95, base, printed, most
            )


SAID = (
    Said("the p95 of TE jobs' slowdowns falls against FIFO", TE_P95, FIFO, "-96.6 %", -0.966),
    Said("the median of BE jobs' slowdowns rises but little", BE_P50, FIFO, "+18.0 %", 0.18),
    Said("the p95 of BE jobs' slowdowns rises but little", BE_P95, FIFO, "+23.9 %", 0.239),
    *_intervals(),
    *(
        Said(
            f"less than 7.0 % as many jobs are preempted as under {base.upper()}",
            PREEMPTED,
            base,
            "< -93.0 %",
            -0.93,
        )
        for base in (LRTP, RAND)
    ),
)
SUPERIOR = {
    "the p95 of TE jobs' slowdowns": (TE_P95,),
    "median and p95 of BE jobs' slowdowns": (BE_P50, BE_P95),
}
Why = Callable[[Runs, Said], str]


def claims_on(runs: Runs, why: Why, prefix: str = "") -> list[Claim]:
    """Return what the paper says, on one setting; ``why`` says why something does not hold."""
    return [
        *(_claim(runs, said, why, prefix) for said in SAID),
        *(_superior(runs, what, figures, prefix) for what, figures in SUPERIOR.items()),
    ]


def _claim(runs: Runs, said: Said, why: Why, prefix: str) -> Claim:
    text, found = prefix + said.text, runs.change(said.figure, base=said.base)
    if said.base != FIFO and not min(runs.mean(one, PREEMPTIONS) for one in (FITGPP, said.base)):
        return Claim(text, "not testable", said.printed, why="no job made room in so few runs")
    ours = f"{by(found)} ({_of(runs, said.base, said.figure)})"
    if found is None:
        return Claim(text, "predicted", said.printed, ours, False, _AT_ONCE)
    holds = found.mean < said.most if said.printed[0] == "<" else found.mean <= said.most
    return Claim(text, "predicted", said.printed, ours, holds, "" if holds else why(runs, said))


_AT_ONCE = (
    "under both most jobs run again at once: while the first of the queue waits for a node with"
    " room for it, others have room for what is smaller, and who made room comes before it"
)


def _of(runs: Runs, base: str, figure: str) -> str:
    """Say from what to what a figure goes."""
    return f"{runs.mean(base, figure):.4g} to {runs.mean(FITGPP, figure):.4g}"


def _superior(runs: Runs, what: str, figures: Sequence[str], prefix: str) -> Claim:
    """Claim that no figure is higher under FitGpp than under others: figure 1 prints none."""
    found = {
        f"{base.upper()}, {figure.split()[1]}": change
        for base in (LRTP, RAND)
        for figure in figures
        if (change := runs.change(figure, base=base)) is not None
    }
    higher = [name for name, change in found.items() if change.mean > 0]
    return Claim(
        f"{prefix}{what} are no higher than under LRTP and RAND (figure 1)",
        "predicted",
        '"superiority"',
        "; ".join(f"{name}: {by(change)}" for name, change in found.items()),
        not higher,
        f"higher than {', '.join(higher)}" if higher else "",
    )


def by(change: Estimate | None) -> str:
    """Return a change in per cent, with its sign, and how far the true one may be from it."""
    if change is None:
        return NOTHING
    within = "" if change.within is None else f" ± {100 * change.within:.1f}"
    return f"{100 * change.mean:+.1f}{within} %"


def figure_table(title: str, some: Sequence[Runs], note: str = "") -> Table:
    """Return all figures of one setting by policy."""
    rows = [
        [policy, *(_number(runs.estimate(policy, figure)) for figure in FIGURES)]
        for runs in some
        for policy in runs.of
    ]
    return Table(title, ["policy", *FIGURES], rows, note)


def _number(found: Estimate) -> str:
    within = "" if found.within is None else f" ± {found.within:.2g}"
    return f"{found.mean:.4g}{within}"


def change_table(title: str, some: Mapping[str, Runs], note: str = "") -> Table:
    """Return what the claims are about, setting by setting."""
    header = ["setting", "seeds", "TE p95, FIFO", *(f"{s.figure}, {s.base}" for s in SAID)]
    rows = [
        [
            name,
            f"{runs.seeds}",
            f"{runs.mean(FIFO, TE_P95):.1f}",
            *(_change(runs, said) for said in SAID),
        ]
        for name, runs in some.items()
    ]
    return Table(title, header, rows, note)


def _change(runs: Runs, said: Said) -> str:
    found = runs.change(said.figure, base=said.base) if said.base in runs.of else None
    return NOTHING if found is None else f"{100 * found.mean:+.1f}"


def ranged(some: Mapping[str, Runs], said: Said) -> str:
    """Say between what a change lies over settings."""
    found = {
        name: change.mean
        for name, runs in some.items()
        if said.base in runs.of and (change := runs.change(said.figure, base=said.base)) is not None
    }
    if not found:
        return "no other choice was looked at"
    low, high = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    return (
        f"over the other choices it is from {percent(found[low], 1)} ({low}) to"
        f" {percent(found[high], 1)} ({high})"
    )
