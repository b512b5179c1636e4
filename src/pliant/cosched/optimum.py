"""The optimal schedule, all being known in advance: a linear program.

    minimise Σ x_j  subject to  A x = b,  x ≥ 0

x_j is for how long the combination S_j runs, A the matrix of speeds a_{i,j}, b the volumes. It has
an optimum with at most n combinations; in which order they run does not matter. Of n tasks there
are 2^n - 1 combinations (the paper prints 2^(n-1)): where there are more than fifteen tasks, only
combinations of a few tasks are looked at.

HiGHS solves it, through scipy: the extra ``solvers``.

Source: Kuchumov & Korkhov (paper 002), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pliant.cosched.tables import Table, ordered
from pliant.errors import Unavailable
from pliant.model import Combination, Speeds

NOTHING = 1e-9
"""What is left of a volume, in parts of it, that counts as nothing: the solver rounds."""


@dataclass(frozen=True, slots=True)
class Stint:
    """A combination, and for how many seconds it runs at most."""

    tasks: Combination
    seconds: float = float("inf")


def optimum(volumes: Mapping[str, float], table: Table) -> tuple[Stint, ...]:
    """Return the stints of a schedule with the least makespan, over the combinations of a table.

    ``volumes``: seconds alone; each task stands in the table alone. The largest come first.
    Raises Unavailable where the solver is not installed.
    """
    some = sorted((tasks for tasks in table if tasks <= volumes.keys()), key=_place)
    if not some:
        return ()
    seconds = _solved([volumes[task] for task in volumes], _columns(some, table, list(volumes)))
    least = NOTHING * max(volumes.values(), default=0.0)
    return tuple(Stint(s, x) for s, x in zip(some, seconds, strict=True) if x > least)


def makespan(stints: Sequence[Stint]) -> float:
    """Return how long a schedule takes, in seconds."""
    return sum(stint.seconds for stint in stints)


def _place(tasks: Combination) -> tuple[int, tuple[str, ...]]:
    return (-len(tasks), ordered(tasks))


_Column = list[tuple[int, float]]


def _columns(some: list[Combination], table: Table, names: list[str]) -> list[_Column]:
    rows = {name: row for row, name in enumerate(names)}
    return [_column(table[tasks], rows) for tasks in some]


def _column(speeds: Speeds, rows: Mapping[str, int]) -> _Column:
    return sorted((rows[task], speed) for task, speed in speeds.items() if speed > 0)


def _solved(right: list[float], columns: list[_Column]) -> list[float]:
    """Minimise Σ x subject to A x = right, x ≥ 0."""
    try:
        from scipy.optimize import linprog  # noqa: PLC0415  # only who wants an optimum needs it
    except ImportError:
        words = "the optimum needs scipy's solver: pip install 'pliant[solvers]' is expected"
        raise Unavailable(words) from None
    rows = [[0.0] * len(columns) for _ in right]
    for place, column in enumerate(columns):
        for row, speed in column:
            rows[row][place] = speed
    found = linprog([1.0] * len(columns), A_eq=rows, b_eq=right, bounds=(0, None), method="highs")
    assert found.status == 0, found.message  # noqa: S101  # alone each task runs
    return [float(x) for x in found.x]
