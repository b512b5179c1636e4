"""Yabuuchi et al. (paper 001): FitGpp against FIFO, LRTP and RAND."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Section, percent
from pliant.simulator.reproduce.fitgpp_claims import (
    NEEDED,
    SAID,
    Said,
    change_table,
    claims_on,
    figure_table,
    ranged,
)
from pliant.simulator.reproduce.fitgpp_runs import (
    AT_ONCE,
    FIFO,
    FITGPP,
    HELPED,
    PAPERS,
    PREEMPTED,
    PREEMPTIONS,
    RAND_DRAWS,
    TE_P95,
    VARIANTS,
    Runs,
    Setting,
    run_settings,
)
from pliant.simulator.workloads.fitgpp import JOBS, LOAD, MIXES, fitgpp

BASE = next(iter(MIXES))
LOADS = (1.5, 3.0)
PHILLY = Path("gpu", "chronus", "trace_job_Philly_MIX1.csv.gz")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs and seeds; of the paper's setting, and of each other choice of what is open.

    ``draws``: of RAND. ``philly_every``: of Philly's jobs each so many-th, on as much fewer nodes.
    """

    jobs: int
    seeds: int
    draws: int
    varied_jobs: int
    varied_seeds: int
    mixes: tuple[str, ...]
    loads: tuple[float, ...]
    philly_every: int = 8
    philly_seeds: int = 2


FULL = Sizes(8_000, 3, RAND_DRAWS, 2_500, 2, tuple(MIXES), LOADS)
QUICK = Sizes(600, 2, 1, 300, 1, tuple(MIXES)[:3], (), philly_every=30, philly_seeds=1)


def reproduce(asked: Asked) -> Section:
    """Return the claims of section 3.

    Raises BadInput where a file is none.
    """
    sizes = QUICK if asked.quick else FULL
    base = Setting(BASE, LOAD, sizes.jobs)
    main, others = run_settings(
        asked,
        "FitGpp's mix",
        [(base, sizes.seeds, PAPERS, sizes.draws), (base, sizes.seeds, VARIANTS, 1)],
    )
    varied = _varied(asked, sizes)
    philly = _philly(asked, sizes)
    return Section(
        "Yabuuchi et al. (001): FitGpp",
        _sizes_text(asked, sizes),
        [
            *claims_on(main, partial(_why, varied)),
            *_philly_claims(asked, philly),
            *_UNTESTED,
        ],
        [
            figure_table("Figure 1 and the text below it, as numbers", [main, others], _FIGURES),
            change_table(
                "What is not printed, chosen in other ways", {"as above": main, **varied}, _CHANGES
            ),
            *(figure_table(f"Philly's mix: {name}", [runs]) for name, runs in philly.items()),
        ],
        [*fitgpp(asked.seed, jobs=1).choices, *_CHOICES],
    )


def _sizes_text(asked: Asked, sizes: Sizes) -> str:
    return (
        f"{sizes.jobs} jobs (the paper: {JOBS}) × {sizes.seeds} seeds, RAND {sizes.draws} times."
        f" Other choices: {sizes.varied_jobs} jobs × {sizes.varied_seeds} seeds each, RAND once."
        f" Philly's mix, where it is given: each {sizes.philly_every}th job, {sizes.philly_seeds}"
        f" seeds, RAND once. Seeds count up from {asked.seed}."
        " After ± stands half the width of the 95 % confidence interval."
    )


def _varied(asked: Asked, sizes: Sizes) -> dict[str, Runs]:
    """Run the other choices; and the first one at their size, which tells what that does."""
    jobs = sizes.varied_jobs
    settings = {
        f"as above, {jobs} jobs": Setting(BASE, LOAD, jobs),
        **{mix: Setting(mix, LOAD, jobs) for mix in sizes.mixes if mix != BASE},
        **{f"load {load:g}": Setting(BASE, load, jobs) for load in sizes.loads},
    }
    asks = [(setting, sizes.varied_seeds, PAPERS, 1) for setting in settings.values()]
    found = run_settings(asked, "other choices", asks)
    return dict(zip(settings, found, strict=True))


def _why(others: Mapping[str, Runs], runs: Runs, said: Said) -> str:
    """Say what a claim that does not hold is due to, as far as the runs tell."""
    reason, others_text = _reason(runs, said), ranged(others, said)
    return f"{reason}; {others_text}" if reason else others_text


def _reason(runs: Runs, said: Said) -> str:
    if said.figure == TE_P95:
        first = runs.mean(FIFO, TE_P95)
        needed = f"as no slowdown is below 1, FIFO's has to be {NEEDED:.1f} for that: it is"
        return "" if first >= NEEDED else f"{needed} {first:.1f}"
    if said.figure == PREEMPTED:
        each = {
            one: runs.mean(one, PREEMPTIONS) / max(1.0, runs.mean(one, HELPED))
            for one in (FITGPP, said.base)
        }
        again = runs.mean(said.base, PREEMPTIONS) / runs.mean(said.base, PREEMPTED)
        return (
            f"{said.base.upper()} tells {each[said.base]:.1f} jobs for each TE job that room is"
            f" made for, one and the same {again:.1f} times, and FitGpp {each[FITGPP]:.1f}, once:"
            f" for 7 % it would take {each[FITGPP] / 0.07:.0f} other jobs each time"
        )
    if said.base != FIFO:
        mine, its = (runs.mean(one, AT_ONCE) for one in (FITGPP, said.base))
        return (
            f"as soon as they are gone {percent(mine)} run again under FitGpp, {percent(its)} under"
            f" {said.base.upper()}, which tells several for one TE job"
        )
    return ""


# --- Philly's mix ---------------------------------------------------------------------------------


def _philly(asked: Asked, sizes: Sizes) -> dict[str, Runs]:
    path = _path(asked)
    if path is None or not path.is_file():
        return {}
    every = sizes.philly_every
    base = Setting("", path=path, nodes=120 // every, every=every)
    more = base._replace(nodes=160 // every)
    settings = {
        f"{base.nodes} nodes": base,
        f"{more.nodes} nodes": more,
        f"{more.nodes} nodes, jobs of one node": more._replace(one_node=True),
    }
    asks = [(setting, sizes.philly_seeds, PAPERS, 1) for setting in settings.values()]
    return dict(zip(settings, run_settings(asked, "Philly's mix", asks), strict=True))


def _path(asked: Asked) -> Path | None:
    return None if asked.data is None else asked.data / PHILLY


def _philly_claims(asked: Asked, philly: Mapping[str, Runs]) -> list[Claim]:
    """Return the same claims on a real mix, for which the paper does not make them."""
    if not philly:
        path = _path(asked)
        lacking = "--data" if path is None else f"{path}: no such file"
        why = f"needs Chronus's file of Philly's jobs: {lacking}"
        return [
            Claim(f"Philly's mix: {said.text}", "not testable", said.printed, why=why)
            for said in SAID
        ]
    name, runs = next(iter(philly.items()))
    others = {other: found for other, found in philly.items() if other != name}
    return claims_on(runs, partial(_why, others), f"Philly's mix, {name}: ")


_FIGURES = (
    "Slowdowns of TE and BE jobs; intervals from when a job is told to make room, and from when it"
    " is gone, until it runs again. told once: LRTP and RAND with P = 1 too; several: FitGpp takes"
    " the room of several jobs where none alone has enough."
)
_CHANGES = (
    "Per cent: FitGpp's figure against that of the policy named, in the mean over the seeds; –: the"
    " other figure is 0."
)
_UNTESTED: Sequence[Claim] = (
    Claim(
        "the bars of figure 1, and figure 2: the trace of the authors' cluster",
        "not testable",
        "figures without numbers",
        why="what the text says of them is above; the trace is not public",
    ),
)
_CHOICES = (
    "where no BE job satisfies equation 2 the TE job waits; TE jobs pass BE jobs that wait, but for"
    " the node that is kept for the first of these; under FIFO nobody passes",
    'an interval "between preemptions and re-scheduling" begins when a job is told to make room, or'
    " when it is gone: both are shown",
    "P = 1 is FitGpp's; LRTP and RAND tell a job any number of times; only LRTP is told how long"
    " jobs run",
    "the room that BE jobs make for a TE job is kept for it",
    "Philly's mix: 70 % of its jobs have a deadline and count as TE; its arrivals are its own, so"
    " that no load is kept; of each so many-th job on as much fewer nodes than Chronus's 120, these"
    " ask for 1.15 times the GPUs, so that the queue only grows; on a third more nodes for 0.86",
)
