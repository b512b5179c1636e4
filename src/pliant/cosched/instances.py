"""Instances to compare strategies on: random ones, measured pairs, and one against the bound of 2.

Free choices, as the paper prints none: how many tasks, their volumes (uniform between 50 and 150
times the second that a measurement takes by default), and how a random speed comes about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

from pliant.cosched.run import Instance
from pliant.cosched.tables import one_less
from pliant.model import Combination, Speeds

VOLUMES = (50.0, 150.0)


def random_instance(
    tasks: int,
    decrement: tuple[float, float],
    rng: Random,
    volumes: tuple[float, float] = VOLUMES,
) -> Instance:
    """Return tasks whose speeds fall by a random decrement with each further task.

    A task's speed in a combination is the least of its speeds with one of the others left out, less
    a decrement that is uniform between these bounds; 0 at least. So no task is faster in more
    company. The bounds are the range of speed-up rates of the paper's figure 1.
    """
    names = [f"t{number:02}" for number in range(tasks)]
    table: dict[Combination, Speeds] = {frozenset({name}): {name: 1.0} for name in names}
    for size in range(2, tasks + 1):
        for some in combinations(names, size):
            company = frozenset(some)
            parts = [table[part] for part in one_less(company)]
            table[company] = {
                name: max(0.0, min(p[name] for p in parts if name in p) - rng.uniform(*decrement))
                for name in some
            }
    return Instance({name: rng.uniform(*volumes) for name in names}, table)


Pairs = Mapping[tuple[str, str], tuple[float, float]]
"""Of two programs (the first, the second) on one GPU: the speed of each relative to alone."""


def paired_instance(pairs: Pairs, programs: Sequence[str], volumes: Sequence[float]) -> Instance:
    """Return tasks that run programs, of which two at most run at once, at measured speeds.

    What was measured faster than alone counts as 1. Two programs that were not measured together
    are not run together.
    """
    names = [f"t{number:02}" for number in range(len(programs))]
    table: dict[Combination, Speeds] = {frozenset({name}): {name: 1.0} for name in names}
    for (one, first), (other, second) in combinations(zip(names, programs, strict=True), 2):
        speeds = pairs.get((first, second))
        if speeds is not None:
            table[frozenset({one, other})] = {one: min(1.0, speeds[0]), other: min(1.0, speeds[1])}
    return Instance(dict(zip(names, volumes, strict=True)), table)


def layers(sizes: Sequence[int] = (7, 2, 1), loss: float = 0.001) -> Instance:
    """Return an instance on which FCS takes more than twice the optimum: 2.07 × with (7, 2, 1).

    The tasks lie in layers of these sizes. Each task of a deeper layer that runs too takes a little
    more than 1 (by ``loss``) off the sum of speeds of each layer above, shared evenly there; of
    their own layer and those above tasks notice nothing. So FCS runs layer after layer, each with
    nothing beside it. All layers at once lose little where each is much larger than those below it
    together; and they are done at the same time, for the volumes are these speeds.
    """
    layer_of = {
        f"t{layer}{number:02}": layer for layer, size in enumerate(sizes) for number in range(size)
    }

    def speed(name: str, some: Sequence[str]) -> float:
        own = layer_of[name]
        deeper = sum(layer_of[other] > own for other in some)
        return max(0.0, 1.0 - (1.0 + loss) * deeper / sizes[own])

    table = {
        frozenset(some): {name: speed(name, some) for name in some}
        for size in range(1, len(layer_of) + 1)
        for some in combinations(layer_of, size)
    }
    return Instance(dict(table[frozenset(layer_of)]), table)
