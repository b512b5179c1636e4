"""Jobs of which two may share a GPU, as fast as Gavel measured them beside each other.

Every job is one of the models that Gavel's tables have on one GPU, and asks for
half of one: alone there it is as fast as on a whole GPU, beside another as fast as was measured.
Policies that pair jobs are told so; to those that choose between half and a whole GPU, half is as
fast as the model is on average beside others. The tables say nothing of how long jobs run and when
they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, combinations
from math import log
from pathlib import Path
from random import Random
from statistics import fmean

from pliant.errors import BadInput
from pliant.model import Company, Job, Node, Partition, Pool, Request, Shape, Spec, Together
from pliant.simulator.workload import Arrival, Neighbour, Workload
from pliant.simulator.workloads.gavel import read_pairs

HALF, WHOLE = Shape(1, 1, share=2), Shape(1, 1)
NODES, JOBS, LOAD = 8, 100, 1.2
SHORTEST, LONGEST = 1.5, 3.0
"""Jobs run for 10^x minutes, x drawn between these."""
_MEAN_S = 60 * (10**LONGEST - 10**SHORTEST) / (log(10) * (LONGEST - SHORTEST))

Pairs = Mapping[tuple[str, str], float]
"""How fast the first of two models runs beside the second, relative to itself alone."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Models by name, and how fast they are in pairs; those that did not fit are not in it."""

    models: tuple[str, ...]
    pairs: Pairs

    def __call__(self, job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
        """Return a job's speed beside its neighbours, by the names of their models.

        Two that did not fit on a GPU take turns there.
        """
        del shape
        others = [one.job.name for one in neighbours if one.on_gpu]
        return min((self.pairs.get((job.name, other), 0.5) for other in others), default=1.0)

    def company(self, jobs: Sequence[Job]) -> Company:
        """Return what is known of jobs, two by two."""
        return Company(
            tuple(
                Together(((one.id, self.pairs[pair]), (other.id, self.pairs[pair[::-1]])))
                for one, other in combinations(jobs, 2)
                if (pair := (one.name, other.name)) in self.pairs
            )
        )

    def beside_others(self, model: str) -> float:
        """How fast a model is on average beside another, where they fit."""
        found = [speed for (one, _), speed in self.pairs.items() if one == model]
        return min(1.0, fmean(found)) if found else 0.5


def measured(path: Path, gpu_type: str) -> Measured:
    """Return the models on one GPU of a type. Raises BadInput."""
    both = read_pairs(path, gpu_type)
    if not both:
        raise BadInput(f"{path}: {gpu_type}: no two models on one GPU were measured")
    found: dict[tuple[str, str], list[float]] = {}
    for (one, other), (mine, its) in both.items():  # mostly in both orders, and not always alike
        found.setdefault((one, other), []).append(mine)
        found.setdefault((other, one), []).append(its)
    pairs = {pair: fmean(speeds) for pair, speeds in found.items()}
    return Measured(tuple(sorted({one for one, _ in pairs})), pairs)


def colocated(
    path: Path,
    seed: int,
    *,
    jobs: int = JOBS,
    nodes: int = NODES,
    gpu_type: str = "v100",
    load: float = LOAD,
    told: bool = False,
) -> Workload:
    """Draw ``jobs`` jobs on ``nodes`` nodes of one GPU each.

    ``load``: how many GPUs they would use, each alone on one, over those that there are. ``told``:
    policies know how long jobs run. Raises BadInput.
    """
    if not load > 0:
        raise BadInput(f"workload gavel: load: {load}: a number above 0 is expected")
    speeds = measured(path, gpu_type)
    random = Random(f"gavel {gpu_type} {seed}")  # noqa: S311  # a seeded draw is no secret
    gap_s = _MEAN_S / (nodes * load)
    gaps_s = [random.expovariate(1 / gap_s) for _ in range(jobs - 1)]
    arrivals = tuple(
        _arrival(number, at_s, random, speeds, told)
        for number, at_s in enumerate(accumulate(gaps_s, initial=0.0))
    )
    names = tuple(f"n{number:02}" for number in range(1, nodes + 1))
    return Workload(
        name=f"Gavel's models on {gpu_type}, seed {seed}, {jobs} jobs on {nodes} GPUs",
        nodes=tuple(Node(one, 2, 2, 0, 0, (Pool("", 1, 1, shards_per_gpu=2),)) for one in names),
        partitions=(Partition("all", names, default=True),),
        arrivals=arrivals,
        choices=(
            "every model as likely as any other; run times of 10^x minutes, x even from"
            f" {SHORTEST} to {LONGEST}; exponential times between jobs, so that the load is {load}",
            "two models that did not fit on one GPU, or were not measured, run at half speed there",
            "measured in both orders, a pair is as fast as on average; one GPU a node",
        ),
        beside=speeds,
        company=speeds.company,
    )


def _arrival(number: int, at_s: float, random: Random, speeds: Measured, told: bool) -> Arrival:
    model = random.choice(speeds.models)
    work_s = 60 * 10 ** random.uniform(SHORTEST, LONGEST)
    request = Request(
        gpus=(Fraction(1, 2), Fraction(1)),
        colocate=True,
        throughput=((HALF, speeds.beside_others(model)), (WHOLE, 1.0)),
    )
    job = Job(
        id=f"{number:04}",
        user=f"user{number % 10}",
        name=model,
        partitions=("all",),
        submit_s=at_s,
        shape=HALF,
        shapes=(HALF, WHOLE),
        spec=Spec(request, HALF),
        volume_s=work_s if told else 0.0,
    )
    return Arrival(job, work_s)
