"""Ravi et al. (paper 004): jobs for CPUs or GPUs, on one node each and on several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import ABOUT, Claim, Section, percent
from pliant.simulator.reproduce.ravi_multi import multi_claims, multi_tables, run_multi
from pliant.simulator.reproduce.ravi_single import run_single, single_claims, single_tables
from pliant.simulator.workloads.ravi import LOAD, MIXES, multi_node, single_node
from pliant.simulator.workloads.ravi_tables import ITERATIONS, PAGERANK_S


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many draws of each mix, and which other choices are looked at besides, on how many."""

    single: int
    multi: int
    varied: int
    iterations: tuple[int, ...]
    loads: tuple[tuple[float, float], ...]


FULL = Sizes(20, 20, 10, (3, 10, 100), ((1.0, 0.38), (2.0, 0.28), (8.0, 0.38), (28.0, 0.38)))
QUICK = Sizes(2, 2, 1, (10,), ((8.0, 0.38),))


def reproduce(asked: Asked) -> Section:
    """Return the claims of sections IV-C to IV-E.

    Raises BadInput where the solver is not installed.
    """
    sizes = QUICK if asked.quick else FULL
    one = run_single(
        asked, (ITERATIONS, sizes.single), [(it, sizes.varied) for it in sizes.iterations]
    )
    several = run_multi(
        asked, ((LOAD, PAGERANK_S[0]), sizes.multi), [(load, sizes.varied) for load in sizes.loads]
    )
    return Section(
        "Ravi et al. (004): CPU-GPU clusters",
        _sizes_text(asked, sizes),
        [*single_claims(one), *multi_claims(several), *_UNTESTED],
        [*single_tables(one), *multi_tables(several)],
        _choices(),
    )


def _sizes_text(asked: Asked, sizes: Sizes) -> str:
    return (
        f"Single node: 3 mixes × {sizes.single} draws of 24 jobs on 2 nodes. Several nodes:"
        f" {len(MIXES)} mixes × {sizes.multi} draws of 32 jobs on 16 nodes. Other choices:"
        f" {sizes.varied} of each mix. Seeds count up from {asked.seed}. A gain agrees with a"
        f' printed one of "about" or "up to" so much if it is within {percent(ABOUT)} of it.'
    )


_UNTESTED: Sequence[Claim] = (
    Claim(
        "a CPU-only and a GPU-only job on the same nodes slow each other by under 7 % (figure 8)",
        "not testable",
        "4.3, 6.8 and 2.4 %",
        why="a measurement of programs on a machine; the runs here are without it",
    ),
    Claim(
        "the bars of figures 3 to 7 themselves",
        "not testable",
        "figures without numbers",
        why="what the text says of them is above",
    ),
)


def _choices() -> list[str]:
    workloads = (single_node("uniform", 0), multi_node(next(iter(MIXES)), 0))
    return [
        *(f"{work.name.split()[1]}: {choice}" for work in workloads for choice in work.choices),
        "jobs on the CPUs and on the GPUs of the same nodes do not slow each other: figure 8's"
        " penalties, 6.8 % at most, are not in the runs",
        "TORQUE: strictly in the order of arrival; what it does where later jobs may overtake"
        " stands beside it",
    ]
