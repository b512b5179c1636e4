"""Speeds in company, and what is always true of them.

T = {T_1 … T_n} are the tasks; a combination S_j is a set of tasks that run at once on one machine;
a_{i,j} is the speed of T_i in it, relative to its speed alone. A task can only become slower when
others are added:

    a_{i,p} ≥ a_{i,q}  for all S_p ⊆ S_q that hold T_i

The paper prints this (equation 1) with the sign the other way round, against its own words; as
printed no bound on FCS would hold at all.

Source: Kuchumov & Korkhov (paper 002), section 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from pliant.model import Combination, Speeds

Table = Mapping[Combination, Speeds]
Fits = Callable[[Combination], bool]
"""Whether tasks may run at once at all; if so, any of them may."""


def anything(tasks: Combination) -> bool:
    """Whether these tasks may run at once, where all may."""
    del tasks
    return True


def total(speeds: Speeds) -> float:
    """Return the sum of speeds: how much work is done per second."""
    return sum(speeds.values())


def ordered(tasks: Combination) -> tuple[str, ...]:
    """Return a combination's tasks in an order that is always the same."""
    return tuple(sorted(tasks))


def is_antitone(table: Table) -> bool:
    """Whether no task is faster anywhere than in a part of the same company.

    It is enough to compare each combination with those of one task less, where all are there.
    """
    return all(
        table[part][task] >= speeds[task] - 1e-12
        for tasks, speeds in table.items()
        for part in one_less(tasks)
        if part in table
        for task in part
    )


def one_less(tasks: Combination) -> Iterator[Combination]:
    """Yield the combinations of all tasks but one."""
    return (frozenset(part) for part in combinations(ordered(tasks), len(tasks) - 1))
