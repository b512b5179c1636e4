"""Kuchumov & Korkhov's strategies (paper 002) on pairs that were measured: Gavel's.

The tables are those of Narayanan et al. (OSDI 2020): see :mod:`pliant.simulator.workloads.gavel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from pliant.cosched import paired_instance
from pliant.cosched.instances import VOLUMES
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Table
from pliant.simulator.reproduce.cosched_search import (
    EXACT,
    STRATEGIES,
    Ratios,
    lowest,
    means_of,
    ratios_of,
)
from pliant.simulator.workloads.gavel import models, read_pairs

GAVEL = Path("gpu", "gavel")
TABLES = [
    (name, gpu)
    for name in ("oracle", "physical_cluster", "simulation")
    for gpu in ("v100", "p100", "k80")
]


class Chunk(NamedTuple):
    """Some instances of the pairs of one table."""

    path: Path
    gpu: str
    seeds: range


@dataclass(frozen=True, slots=True)
class Pairs:
    """What came out on one table of so many programs and pairs: each instance's ratios."""

    name: str
    programs: int
    pairs: int
    found: tuple[Ratios, ...]

    @property
    def worst(self) -> float:
        """How far FCS was from the optimum at most."""
        return max(ratios["fcs"] for ratios in self.found)


def paired(chunk: Chunk) -> Pairs:
    """Run the strategies on tasks that are programs of a table, two at once at most.

    Raises BadInput where the table is none.
    """
    pairs = read_pairs(chunk.path, chunk.gpu)
    names, found = models(pairs), []
    strategies = {name: STRATEGIES[name] for name in ("fcs", "pi", "ei", "ucb")}
    for seed in chunk.seeds:
        random = Random(f"{chunk.path.name} {chunk.gpu} {seed}")  # noqa: S311  # no secret
        some = random.choices(names, k=random.randint(4, 10))
        volumes = [random.uniform(*VOLUMES) for _ in some]
        found.append(ratios_of(paired_instance(pairs, some, volumes), strategies))
    name = chunk.path.name.partition("_throughputs")[0].replace("_", " ")
    return Pairs(f"{name}, {chunk.gpu.upper()}", len(names), len(pairs), tuple(found))


def run_pairs(asked: Asked, count: int) -> list[Pairs]:
    """Run instances of all tables that are there."""
    where = (asked.data or Path()) / GAVEL
    chunks = [
        Chunk(path, gpu, asked.seeds(count))
        for name, gpu in TABLES
        if asked.data and (path := where / f"{name}_throughputs.json.gz").is_file()
    ]
    return asked.spread("measured pairs", paired, chunks) if chunks else []


def on_pairs(asked: Asked, tables: Sequence[Pairs]) -> list[Claim]:
    """Return what is claimed of any tasks, on measured ones."""
    bound, lower = (
        "FCS takes at most twice the optimum, on measured pairs of programs",
        "PI is lower than EI and UCB on measured pairs of programs",
    )
    if not tables:
        lacking = (
            f"{asked.data / GAVEL}/*_throughputs.json.gz: no such file" if asked.data else "--data"
        )
        why = f"needs Gavel's tables of throughputs: {lacking}"
        return [
            Claim(bound, "not testable", "≤ 2", why=why),
            Claim(lower, "not testable", "lower", why=why),
        ]
    worst = max(tables, key=lambda table: table.worst)
    means = [means_of(table.found) for table in tables]
    return [
        Claim(
            bound,
            "predicted",
            "≤ 2",
            f"{worst.worst:.3f} at most ({worst.name})",
            worst.worst <= 2 + EXACT,
            "by the bound above it cannot be above 1 + ln 2 = 1.693, as two run at once at most",
        ),
        lowest(lower, means),
    ]


def pair_table(tables: Sequence[Pairs]) -> Table:
    """Return what came out for each table."""
    names = ["sequential", "fcs", "pi", "ei", "ucb"]
    return Table(
        "Measured pairs (Gavel): makespan over the optimum's, in the mean",
        ["table", "programs", "pairs", "instances", *names, "fcs, worst"],
        [
            [
                table.name,
                f"{table.programs}",
                f"{table.pairs}",
                f"{len(table.found)}",
                *(f"{means_of(table.found)[name]:.3f}" for name in names),
                f"{table.worst:.3f}",
            ]
            for table in tables
        ],
        "Two programs at once at most, as only pairs were measured; faster than alone counts as 1.",
    )
