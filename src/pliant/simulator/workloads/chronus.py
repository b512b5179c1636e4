"""A real mix of best-effort jobs and jobs with a deadline: Microsoft's Philly, as Chronus has it.

30,940 jobs in two weeks, 9,216 of them best-effort, on 120 nodes of 8 GPUs (of Chronus's own runs
with this file); the file counts in minutes. For FitGpp, a job with a deadline is a trial job.

Source: ChronusArtifact (MIT), trace_job_Philly_MIX1; Philly's data are Microsoft's (CC-BY-4.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from random import Random
from typing import NamedTuple

from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.model import Footprint, Job, JobClass, Kind, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.traces.lines import number_in, trace_lines, wrong
from pliant.simulator.workload import Arrival, Speed, Workload, alike
from pliant.simulator.workloads.fitgpp import Mix
from pliant.simulator.workloads.records import Linear

NODES = 120
GPUS = 8
CPUS_PER_GPU, GIB_PER_GPU = 4, 32
"""As FitGpp's nodes have them."""
_MEM_MIB = 1024 * GIB_PER_GPU
COLUMNS = ("job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "best_effort")
_MINUTE_S = 60.0
_ALL = ("all",)


def chronus(path: Path, nodes: int = NODES, *, seed: int = 1, told: bool = False) -> Workload:
    """Return the jobs of the file, on so many nodes.

    ``seed``: of the grace periods. ``told``: a job's time limit is its run time. Raises BadInput
    for a line that cannot be right, and where a job is too large for so many nodes.
    """
    rows = sorted(_rows(path), key=lambda row: row.submit_s)
    if not rows:
        raise BadInput(f"{path}: no job")
    widest = max(rows, key=lambda row: _shape(row.gpus).nodes)
    if (needed := _shape(widest.gpus).nodes) > nodes:
        raise BadInput(f"{path}: job {widest.id} needs {needed} nodes, and there are {nodes}")
    names = tuple(f"n{number:03}" for number in range(1, nodes + 1))
    return Workload(
        name=f"Philly's mix (Chronus), {len(rows)} jobs on {nodes} nodes",
        nodes=tuple(map(_node, names)),
        partitions=(Partition("all", names, default=True),),
        arrivals=tuple(_arrivals(rows, Random(seed), told)),  # noqa: S311  # no secret
        choices=(
            "jobs with a deadline (strict) are trial jobs, the others best-effort",
            f"a GPU comes with {CPUS_PER_GPU} CPUs and {GIB_PER_GPU} GiB, and a job that has no GPU"
            " gets as much: the file does not say",
            "a job of more than 8 GPUs has as many on each of the fewest nodes",
            "grace periods of best-effort jobs are drawn as FitGpp's",
        ),
    )


class _Row(NamedTuple):
    id: str
    user: str
    gpus: int
    submit_s: float
    model: str
    run_s: float
    best_effort: bool


def _rows(path: Path) -> Iterator[_Row]:
    names: list[str] = []
    seen: set[str] = set()
    for number, line in trace_lines(path):
        words = line.strip().split(",")
        if not names:
            names = words
            if lacking := [name for name in COLUMNS if name not in names]:
                raise wrong(path, number, f"no column {lacking[0]}")
        elif words != [""]:
            if len(words) != len(names):
                raise wrong(path, number, f"{len(words)} fields: {len(names)} are expected")
            row = _row(dict(zip(names, words, strict=True)), path, number)
            if row.id in seen:
                raise wrong(path, number, f"job_id: {quoted(row.id)} stands twice")
            seen.add(row.id)
            yield row


def _row(said: Mapping[str, str], path: Path, number: int) -> _Row:
    gpus, submit, run, best = (
        number_in(said[what], what, path, number)
        for what in ("num_gpu", "submit_time", "duration", "best_effort")
    )
    if not 0 <= gpus <= 10**6 or not gpus.is_integer():
        raise wrong(path, number, f"num_gpu: {quoted(said['num_gpu'])}: a whole number is expected")
    if submit < 0 or run <= 0:
        raise wrong(path, number, f"submitted at {submit}, runs {run} minutes")
    if best not in (0, 1):
        raise wrong(path, number, f"best_effort: {quoted(said['best_effort'])}: 0 or 1 is expected")
    times = (submit * _MINUTE_S, said["model_name"], run * _MINUTE_S)
    return _Row(said["job_id"], said["user"], int(gpus), *times, bool(best))


def _node(name: str) -> Node:
    cpus, mem_mib = CPUS_PER_GPU * GPUS, _MEM_MIB * GPUS
    return Node(name, cpus, cpus, mem_mib, mem_mib, (Pool("", GPUS, GPUS),))


_CPU = Shape(1, 0, kind=Kind.CPU)
_WITH_GPUS = Footprint(cpus_per_gpu=CPUS_PER_GPU, mem_per_gpu_mib=_MEM_MIB)
_WITHOUT = Footprint(cpus_per_task=CPUS_PER_GPU, mem_per_node_mib=_MEM_MIB)


def _shape(gpus: int) -> Shape:
    """So many GPUs, as many on each of the fewest nodes."""
    if not gpus:
        return _CPU
    nodes = next(n for n in range(ceil(gpus / GPUS), gpus + 1) if gpus % n == 0)
    return Shape(nodes, gpus // nodes)


def _arrivals(rows: list[_Row], random: Random, told: bool) -> Iterator[Arrival]:
    shapes: dict[int, Shape] = {}
    specs: dict[tuple[Shape, bool], Spec] = {}
    speeds: dict[int, Speed] = {0: alike}
    for row in rows:
        shape = shapes.setdefault(row.gpus, _shape(row.gpus))
        of = JobClass.BEST_EFFORT if row.best_effort else JobClass.TRIAL
        grace_s = Mix().grace_s.draw(random) if row.best_effort else 0.0
        key = (shape, row.best_effort)
        job = Job(
            id=row.id,
            user=row.user,
            partitions=_ALL,
            submit_s=row.submit_s,
            shape=shape,
            footprint=_WITH_GPUS if row.gpus else _WITHOUT,
            spec=specs.setdefault(key, Spec(Request(job_class=of), own=shape)),
            time_limit_s=ceil(row.run_s) if told else 0,
            name=row.model,
            grace_s=grace_s,
        )
        speed = speeds.setdefault(row.gpus, Linear(row.gpus))
        yield Arrival(job, row.run_s, speed, save_s=grace_s)
