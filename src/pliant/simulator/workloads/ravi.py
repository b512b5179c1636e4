"""The jobs of Ravi et al.: for one node each on two nodes, for several nodes on sixteen.

Every node has two quad-core CPUs and one GPU. A job that runs on the CPUs alone takes all cores but
one; a GPU takes that one. Times are the paper's (:mod:`~pliant.simulator.workloads.ravi_tables`).
What it does not print stands in ``Workload.choices``, and in the constants of these two modules.

What a job is told to run at is what is true of it alone. With ``penalty`` it is slower in company,
by :func:`~pliant.simulator.workloads.ravi_tables.sharing_penalty`: that is for the simulator, no
policy knows of it.

Source: Ravi et al. (paper 004), sections IV-A to IV-E.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from random import Random
from typing import Literal

from pliant.model import Job, Kind, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.workload import Arrival, Neighbour, Workload
from pliant.simulator.workloads.ravi_tables import (
    ITERATIONS,
    KINDS,
    MULTI,
    PAGERANK_S,
    POOL,
    POOL_OF_18,
    SMALL_GPU,
    TRANSFER,
    Application,
    Asked,
    sharing_penalty,
)

CORES = 8
CPU_CORES = CORES - 1
"""What a job on CPUs takes: a GPU-only job has one core for each GPU."""
MARGIN = 1.1
"""Time limits are this much above the longest run: no sharing penalty ends a job."""

CPU_SHAPE, GPU_SHAPE = Shape(1, 0, kind=Kind.CPU), Shape(1, 1)
STEPS = 1_000_000

Bias = Literal["uniform", "cpu", "gpu"]
GPU_PART: dict[Bias, float] = {"uniform": 0.5, "cpu": 0.25, "gpu": 0.75}
"""The part of the jobs that is faster on a GPU (figures 3, 4, 5)."""

_SINGLE_CHOICES = (
    "20 of the 30 jobs have no published times: a small data set is 1/8 of the large one, on which"
    f" a GPU reaches {SMALL_GPU} of its speedup (so that 7 of 10 are faster on the cores, as"
    f" printed); many iterations are {ITERATIONS} times the run, of which {TRANSFER} of the GPU's"
    " time is paid once",
    "the number of iterations is fitted: with it the balanced mix takes about as long as the 705 s"
    " printed",
    "jobs are drawn with replacement (three quarters of 24 are more than half of the pool), and all"
    " are there from the start, in random order",
    f"a job on the cores takes {CPU_CORES} of {CORES}, and its time is that printed for all",
)


def single_node(
    bias: Bias,
    seed: int,
    jobs: int = 24,
    nodes: int = 2,
    pool: Sequence[Application] = POOL,
    *,
    penalty: bool = False,
) -> Workload:
    """Draw ``jobs`` jobs of a pool for one node each, all submitted at once (section IV-C).

    ``penalty``: on the cores and on the GPU of a node they slow each other, as figure 8 says.
    Sequential seconds are ``steps`` in thousandths, speedups are thousands of steps per second.
    """
    random = Random(f"ravi {bias} {seed}")  # noqa: S311  # a seeded draw is no secret
    on_gpu = round(jobs * GPU_PART[bias])
    sides = [[one for one in pool if one.prefers_gpu is gpu] for gpu in (False, True)]
    drawn = random.choices(sides[True], k=on_gpu) + random.choices(sides[False], k=jobs - on_gpu)
    random.shuffle(drawn)
    arrivals = tuple(_single(str(number), one) for number, one in enumerate(drawn))
    return _workload(f"ravi single-node {bias}", nodes, arrivals, _SINGLE_CHOICES, penalty)


def _single(job_id: str, one: Application) -> Arrival:
    # Sorted, as a request's table is.
    speeds = ((CPU_SHAPE, one.cores * 1000), (GPU_SHAPE, one.gpu * 1000))
    request = Request(
        gpus=(Fraction(1),),
        kinds=(Kind.GPU, Kind.CPU),
        cores=CPU_CORES,
        throughput=speeds,
        steps=max(1, round(one.sequential_s * 1000)),
    )
    return _arrival(job_id, one.name, request, (GPU_SHAPE, CPU_SHAPE))


@dataclass(frozen=True, slots=True)
class Mix:
    """So much of the jobs is from the first of two halves of the pool."""

    name: str
    by: Literal["length", "size"]
    first: float

    def halves(self) -> tuple[list[Asked], list[Asked]]:
        """Return the short and the long jobs, or those on few and on many nodes."""
        middle = sorted(asked.both_s for asked in POOL_OF_18)[len(POOL_OF_18) // 2]
        halves: tuple[list[Asked], list[Asked]] = ([], [])
        for asked in POOL_OF_18:
            second = asked.both_s >= middle if self.by == "length" else asked.nodes == 8
            halves[second].append(asked)
        return halves


MIXES = {
    mix.name: mix
    for mix in (
        Mix("25 SJ/75 LJ", "length", 0.25),
        Mix("50 SJ/50 LJ", "length", 0.5),
        Mix("75 SJ/25 LJ", "length", 0.75),
        Mix("25 SR/75 LR", "size", 0.25),
        Mix("50 SR/50 LR", "size", 0.5),
        Mix("75 SR/25 LR", "size", 0.75),
    )
}
"""Figures 6 and 7: short and long jobs; jobs on few and on many nodes."""

BATCH = 8
LOAD = 2.0
"""A batch comes, on average, twice as fast as 16 nodes work one off on all their CPUs and GPUs."""

_MULTI_CHOICES = (
    "the mixes' ratios stand in figures that are not legible: 25/75, 50/50 and 75/25 are taken",
    "short is the shorter half of the 18 jobs, by their time on CPUs and GPUs; many nodes are 8",
    "times on N/2 and N/4 nodes are printed down to 2: on fewer no job runs",
    f"the mean time between batches is not printed: it is such that the load is {LOAD}, unless said"
    " (node seconds of a batch on CPUs and GPUs, over 16 nodes and that time)",
    f"a job on the CPUs takes {CPU_CORES} of {CORES} cores, and its time is that printed for all",
)


def multi_node(
    mix: str,
    seed: int,
    *,
    jobs: int = 32,
    nodes: int = 16,
    load: float = LOAD,
    pagerank_s: float = PAGERANK_S[0],
    penalty: bool = False,
) -> Workload:
    """Draw ``jobs`` jobs in batches of 8 with exponential times between them (section IV-D).

    ``mix``: a name of :data:`MIXES`; ``pagerank_s``: one of :data:`PAGERANK_S`; ``penalty``: as in
    :func:`single_node`.
    """
    random = Random(f"ravi {mix} {seed}")  # noqa: S311  # a seeded draw is no secret
    halves = MIXES[mix].halves()
    first = round(jobs * MIXES[mix].first)
    drawn = random.choices(halves[0], k=first) + random.choices(halves[1], k=jobs - first)
    random.shuffle(drawn)
    mean_s = _node_s(drawn) / len(drawn) * BATCH / (nodes * load)
    instants = _instants(random, ceil(jobs / BATCH), mean_s)
    arrivals = tuple(
        _multi(str(number), asked, instants[number // BATCH], pagerank_s)
        for number, asked in enumerate(drawn)
    )
    choices = (*_MULTI_CHOICES, f"PageRank, 900 MB, 8 nodes, CPU+GPU: {pagerank_s} s")
    return _workload(f"ravi multi-node {mix}", nodes, arrivals, choices, penalty)


def _node_s(drawn: Iterable[Asked]) -> float:
    return sum(asked.both_s * asked.nodes for asked in drawn)


def _instants(random: Random, batches: int, mean_s: float) -> list[float]:
    """The first batch comes at 0."""
    instants = [0.0]
    while len(instants) < batches:
        instants.append(instants[-1] + random.expovariate(1 / mean_s))
    return instants


def _multi(job_id: str, asked: Asked, submit_s: float, pagerank_s: float) -> Arrival:
    times = dict(_times(asked, pagerank_s))
    request = Request(
        gpus=tuple(sorted({shape.amount for shape in times if shape.gpus})),
        nodes=tuple(sorted({shape.nodes for shape in times})),
        kinds=(Kind.GPU, Kind.CPU, Kind.BOTH),
        cores=CPU_CORES,
        throughput=tuple(sorted((shape, STEPS / time_s) for shape, time_s in times.items())),
        steps=STEPS,
    )
    return _arrival(job_id, f"{asked.application} {asked.data}", request, tuple(times), submit_s)


def _times(asked: Asked, pagerank_s: float) -> Iterator[tuple[Shape, float]]:
    """What it may run as: N, N/2 and N/4, as far as there are times, and seconds; both first."""
    table = MULTI[asked.application, asked.data]
    for nodes in (asked.nodes, asked.nodes // 2, asked.nodes // 4):
        for kind, time_s in sorted(zip(KINDS, table.get(nodes, ()), strict=False), key=_both_first):
            doubtful = (asked.application, asked.data, nodes, kind) == ("PR", "900 MB", 8, KINDS[2])
            shape = Shape(nodes, 0 if kind is Kind.CPU else 1, kind=kind)
            yield (shape, pagerank_s if doubtful else time_s)


def _both_first(column: tuple[Kind, float]) -> bool:
    return column[0] is not Kind.BOTH


def _arrival(
    job_id: str, name: str, request: Request, shapes: tuple[Shape, ...], submit_s: float = 0.0
) -> Arrival:
    """``shapes``: the own one first."""
    own = shapes[0]
    runs_s = {shape: request.steps / speed for shape, speed in request.throughput}
    job = Job(
        job_id,
        user=f"user{job_id}",
        name=name,
        partitions=("all",),
        submit_s=submit_s,
        shape=own,
        shapes=shapes,
        spec=Spec(request, own),
        time_limit_s=ceil(MARGIN * max(runs_s.values())) + 1,
    )
    own_s = runs_s[own]
    return Arrival(job, own_s, lambda shape: own_s / runs_s[shape] if shape in runs_s else 0.0)


def _workload(
    name: str,
    nodes: int,
    arrivals: tuple[Arrival, ...],
    choices: tuple[str, ...],
    penalty: bool,
) -> Workload:
    names = tuple(f"n{number:02}" for number in range(1, nodes + 1))
    rows = tuple(Node(one, CORES, CORES, 0, 0, (Pool("", 1, 1),)) for one in names)
    partitions = (Partition("all", names, default=True),)
    if not penalty:
        return Workload(name, rows, partitions, arrivals, choices)
    choices = (*choices, _PENALTY_CHOICE)
    return Workload(f"{name}, penalties", rows, partitions, arrivals, choices, slowed)


_PENALTY_CHOICE = (
    "a job on the cores and one on the GPU of a node both take longer, by figure 8, or the mean of"
    " its three for other pairs; on several nodes as on the worst of them"
)


def slowed(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
    """How fast a job on cores or GPUs is beside those on the other of the two, on any node."""
    match shape.kind:
        case Kind.CPU:
            pairs = [(job, one.job) for one in neighbours if one.shape.kind is Kind.GPU]
        case Kind.GPU:
            pairs = [(one.job, job) for one in neighbours if one.shape.kind is Kind.CPU]
        case Kind.BOTH:
            pairs = []
    worst = max((sharing_penalty(cpu.name, gpu.name) for cpu, gpu in pairs), default=0.0)
    return 1 / (1 + worst)
