"""Seo's four jobs (paper 003) with measured curves: Gavel's, of other programs than the thesis's.

Each program counts as fast on one GPU as the thesis's model in whose place it stands; how much
faster it is on more is what was measured (on 1, 2, 4 and 8 GPUs of one node).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pliant.model import Shape
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim
from pliant.simulator.reproduce.claims import Table as Numbers
from pliant.simulator.reproduce.fsched_runs import NAMES, F, run
from pliant.simulator.workloads.curves import Table
from pliant.simulator.workloads.gavel import read_gavel
from pliant.simulator.workloads.seo import GPUS, OWN, fitted

FILE = Path("gpu", "gavel", "simulation_throughputs.json.gz")
GPU_TYPES = ("v100", "p100", "k80")
FIRST = "ResNet-50"
OTHERS = ("ResNet-18", "Transformer", "LM")
"""Of several batch sizes each; of the other programs only one GPU was measured."""
_SHAPES = tuple(Shape(1, gpus) for gpus in (1, 2, 4, 8))
PRINTED = ("F", "n=3", "n=1", "n=2", "n=6")
"""Table 2, quickest first."""
MUCH = 4.0
"""Six GPUs are as fast as so many or more: there a job of six GPUs at a time loses little."""


class Pair(NamedTuple):
    """The curves of the first and third job, and of the others."""

    gpu_type: str
    first: Table
    second: Table


@dataclass(frozen=True, slots=True)
class Timed:
    """How long each scheduler took with two curves; ``gain``: of six GPUs over one, the mean."""

    gpu_type: str
    gain: float
    total_s: Mapping[str, float]

    @property
    def order(self) -> tuple[str, ...]:
        """The schedulers, quickest first."""
        return tuple(sorted(NAMES, key=self.total_s.__getitem__))


def pairs_of(path: Path, most: int | None = None) -> list[Pair]:
    """Return all pairs of a file; ``most``: only so many batch sizes of each program.

    Raises BadInput for what is no such file.
    """
    alone = read_gavel(path).alone
    return [
        Pair(gpu_type, _as_fast(one, "ResNet-50"), _as_fast(other, "InceptionV3"))
        for gpu_type in GPU_TYPES
        for one in _some(alone.get(gpu_type, {}), FIRST, most)
        for name in OTHERS
        for other in _some(alone.get(gpu_type, {}), name, most)
    ]


def _some(tables: Mapping[str, Table], name: str, most: int | None) -> list[Table]:
    """The curves of a program that are complete, one for each batch size."""
    found = [
        table
        for known, table in tables.items()
        if known.startswith(name) and set(_SHAPES) <= set(table.shapes)
    ]
    return found[:most]


def _as_fast(table: Table, model: str) -> Table:
    """Return a curve of a program that is as fast as a model on one GPU."""
    factor = fitted(model).rate(OWN) / table.rate(OWN)
    return Table(table.name, tuple((shape, factor * rate) for shape, rate in table.rates))


def timed(pair: Pair) -> Timed:
    """Run all schedulers with a pair of curves."""
    tables = (pair.first, pair.second)
    gain = sum(one.rate(Shape(1, GPUS)) / one.rate(OWN) for one in tables) / 2
    return Timed(pair.gpu_type, gain, {name: run(name, tables).total_s for name in NAMES})


def run_curves(asked: Asked) -> list[Timed]:
    """Run what is there.

    Raises BadInput for a file that is none.
    """
    path = (asked.data or Path()) / FILE
    if asked.data is None or not path.is_file():
        return []
    return asked.spread("measured curves", timed, pairs_of(path, 1 if asked.quick else None))


def curve_claims(asked: Asked, found: Sequence[Timed]) -> list[Claim]:
    """Return what table 2 says, with measured curves."""
    first, order = (
        "with measured curves F-scheduling is done before every static partition",
        "with measured curves the order is that of table 2",
    )
    if not found:
        lacking = f"{asked.data / FILE}: no such file" if asked.data else "--data"
        why = f"needs Gavel's table of throughputs: {lacking}"
        return [
            Claim(first, "not testable", "first", why=why),
            Claim(order, "not testable", " < ".join(PRINTED), why=why),
        ]
    wins = [one for one in found if one.order[0] == F]
    same = [one for one in found if one.order == PRINTED]
    return [
        Claim(
            first,
            "predicted",
            "first",
            f"with {len(wins)} of {len(found)} pairs of curves",
            len(wins) == len(found),
            "" if len(wins) == len(found) else _why_not(found),
        ),
        Claim(
            order,
            "predicted",
            " < ".join(PRINTED),
            f"with {len(same)} of {len(found)} pairs",
            len(same) == len(found),
            "" if len(same) == len(found) else _other_orders(found),
        ),
    ]


def _why_not(found: Sequence[Timed]) -> str:
    parts = []
    for text, some in (
        (f"below {MUCH:g} times", [one for one in found if one.gain < MUCH]),
        (f"{MUCH:g} times or more", [one for one in found if one.gain >= MUCH]),
    ):
        wins = sum(one.order[0] == F for one in some)
        parts.append(f"{text}: {wins} of {len(some)}")
    return (
        "it depends on how much six GPUs are faster than one, in the mean of the two curves"
        f" ({'; '.join(parts)}): where they are much faster one job after the other on all six"
        " wastes little, and never has to save; the fitted curves gain 2.3 times"
    )


def _other_orders(found: Sequence[Timed]) -> str:
    counts: dict[tuple[str, ...], int] = {}
    for one in found:
        counts[one.order] = counts.get(one.order, 0) + 1
    often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]
    return "most often: " + "; ".join(f"{' < '.join(order)} ({n})" for order, n in often)


def curve_table(found: Sequence[Timed]) -> Numbers:
    """Return what came out by type of GPU."""
    rows = []
    for gpu_type in GPU_TYPES:
        some = [one for one in found if one.gpu_type == gpu_type]
        if some:
            rows.append(
                [
                    gpu_type.upper(),
                    f"{len(some)}",
                    f"{median(one.gain for one in some):.2f}",
                    *(f"{median(one.total_s[name] for one in some):.0f}" for name in NAMES),
                    *(f"{sum(one.order[0] == name for one in some)}" for name in NAMES),
                ]
            )
    return Numbers(
        "Measured curves (Gavel): seconds until all are done, medians, and who is first how often",
        [
            "GPU",
            "pairs",
            "six over one",
            *(f"{n}, s" for n in NAMES),
            *(f"{n} first" for n in NAMES),
        ],
        rows,
    )
