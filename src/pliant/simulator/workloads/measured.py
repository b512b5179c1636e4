"""Jobs of programs whose speeds were measured, as they are: neither monotone nor concave.

Each job runs one program, drawn among all of them, and may be any shape that was measured of it.
All are malleable; every other one is a best-effort job, and every fourth a trial job, for the
policies that know classes.

Sources: :func:`pliant.simulator.workloads.curves.read_sia` (placements on several nodes) and
:func:`pliant.simulator.workloads.gavel.read_gavel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple

from pliant.errors import BadInput
from pliant.model import (
    Footprint,
    Job,
    JobClass,
    Malleable,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Spec,
)
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.curves import Measured, Table, read_sia
from pliant.simulator.workloads.gavel import read_gavel

NODES, GPUS_PER_NODE = 4, 8
CPUS_PER_GPU, USERS = 4, 5
RUN_S = 1800.0
"""As its smallest shape, in the mean."""
LOAD = 1.5
"""What arrives, as smallest shapes, over what all GPUs could do."""
LIMIT = 2
"""A job's time limit is so many times its run time as its slowest shape."""
_ALL = ("all",)
_GAVEL = ("_throughputs.json", "_throughputs.json.gz")
_CLASSES = (None, JobClass.BEST_EFFORT, JobClass.TRIAL, JobClass.BEST_EFFORT)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a change costs a job: the seconds to save, and those to launch at every start."""

    save_s: float = 15.0
    launch_s: float = 20.0


COST, FREE = Cost(), Cost(0.0, 0.0)


def tables_in(path: Path) -> list[Table]:
    """Return all curves of a file, or of a folder's files: Sia's are CSV, Gavel's JSON.

    Of a folder, those of all folders in it too; what is neither is passed over there. Raises
    BadInput for a file that cannot be right, and where there is no curve.
    """
    if not path.exists():
        raise BadInput(f"{path}: no such file or folder: measured curves are expected")
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [table for file in files for table in _tables(file)]
    if not found:
        raise BadInput(f"{path}: no curve: Sia's *.csv or Gavel's *_throughputs.json is expected")
    return found


def _tables(path: Path) -> Iterator[Table]:
    if path.name.endswith(_GAVEL):
        for alone in read_gavel(path).alone.values():
            yield from alone.values()
    elif path.suffix == ".csv":
        yield read_sia(path)


def measured(
    tables: Sequence[Table],
    seed: int,
    *,
    jobs: int = 200,
    nodes: int = NODES,
    gpus: int = GPUS_PER_NODE,
    cost: Cost = COST,
) -> Workload:
    """Return jobs of these programs on so many nodes with so many GPUs each.

    Raises BadInput where no program was measured as a shape that fits there.
    """
    fitting = [table for one in tables if (table := one.within(gpus, nodes)).rates]
    if not fitting:
        raise BadInput(f"{nodes} nodes of {gpus} GPUs: none of the curves has a shape that fits")
    names = tuple(f"n{number:02}" for number in range(1, nodes + 1))
    cpus = CPUS_PER_GPU * gpus
    arrivals = _arrivals(fitting, Random(seed), jobs, nodes * gpus, cost)  # noqa: S311  # no secret
    return Workload(
        name=f"{jobs} jobs with {len(fitting)} measured curves on {nodes} x {gpus} GPUs",
        nodes=tuple(Node(name, cpus, cpus, 0, 0, (Pool("", gpus, gpus),)) for name in names),
        partitions=(Partition("all", names, default=True),),
        arrivals=tuple(arrivals),
        choices=(
            "which program a job runs, when it comes (exponentially), how long it runs as its"
            f" smallest shape (exponentially, {RUN_S:g} s in the mean), and which shape it asks for"
            f" are drawn; the load is {LOAD:g}, by smallest shapes",
            f"{cost.save_s:g} s to save and {cost.launch_s:g} s to launch",
        ),
    )


class _Drawn(NamedTuple):
    """What is drawn of a job: it runs for ``run_s`` as the smallest of its shapes."""

    number: int
    table: Table
    own: Shape
    submit_s: float
    run_s: float


def _arrivals(
    tables: Sequence[Table], random: Random, jobs: int, gpus: int, cost: Cost
) -> Iterator[Arrival]:
    submit_s = 0.0
    for number in range(jobs):
        table = random.choice(tables)
        run_s = 60.0 + random.expovariate(1 / RUN_S)
        drawn = _Drawn(number, table, random.choice(table.shapes), submit_s, run_s)
        yield _arrival(drawn, cost)
        smallest = float(table.shapes[0].amount)
        submit_s += random.expovariate(LOAD * gpus / (RUN_S * smallest))


def _arrival(drawn: _Drawn, cost: Cost) -> Arrival:
    number, table, own, submit_s, run_s = drawn
    steps = ceil(run_s * table.rate(table.shapes[0]))
    slowest_s = steps / min(rate for _, rate in table.rates)
    request = Request(
        gpus=tuple(sorted({shape.amount for shape in table.shapes})),
        nodes=tuple(sorted({shape.nodes for shape in table.shapes})),
        malleable=Malleable(),
        job_class=_CLASSES[number % len(_CLASSES)],
        throughput=table.rates,
        steps=steps,
    )
    job = Job(
        id=f"{number:05}",
        user=f"user{number % USERS}",
        partitions=_ALL,
        submit_s=submit_s,
        shape=own,
        shapes=table.shapes,
        footprint=Footprint(cpus_per_gpu=CPUS_PER_GPU),
        spec=Spec(request, own=own),
        time_limit_s=ceil(cost.launch_s + LIMIT * slowest_s),
        name=table.name,
        grace_s=cost.save_s,
        restart_s=cost.save_s + cost.launch_s,
    )
    speed = Measured(table, own)
    return Arrival(job, steps / table.rate(own), speed, save_s=cost.save_s, launch_s=cost.launch_s)
