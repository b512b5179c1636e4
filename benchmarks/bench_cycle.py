"""How long one cycle takes, and in how much memory: every policy, at two sizes.

``python -m benchmarks.bench_cycle`` prints the table alone. Each case runs in a process of its
own, so that its peak memory is its own.
"""

from __future__ import annotations

import gc
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.section import Section, verdict
from pliant.cycle import cycle
from pliant.grammar import parse, shapes
from pliant.model import (
    Footprint,
    Job,
    JobState,
    Node,
    Partition,
    Pool,
    Shape,
    Snapshot,
    Spec,
)
from pliant.policies import by_name, live_names

GPUS, CORES, MEM_MIB = 8, 64, 512_000
NOW_S = 1_000_000.0
SIZES = ((1_000, 5_000, 0.050), (10_000, 50_000, 1.0))
"""Nodes, waiting jobs, and the goal in seconds."""

SETTINGS = (
    ("5 % of the GPUs free", 0.05, 0),
    ("half of the GPUs free", 0.5, 0),
    ("5 % free, and Slurm keeps nodes for 500 of the jobs", 0.05, 500),
)
"""In words, the part of the GPUs that is free, and for how many waiting jobs nodes are kept."""

REQUESTS = (
    ("gpus=1-4", "4"),
    ("gpus=1-8", "8"),
    ("gpus=1:2:4:8", "4"),
    ("gpus=2-8", "8"),
    ("gpus=1-4", "2"),
    ("gpus=8:16,nodes=1-2", "2x8"),
    ("gpus=1/4-2", "1"),
    ("gpus=1,type=gpu:cpu,cores=8", "1"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement."""

    nodes: int
    jobs: int
    free: float
    kept: int
    policy: str
    repeats: int


def snapshot(nodes: int, jobs: int, free: float, seed: int = 1) -> Snapshot:
    """Draw a cluster whose GPUs are busy but for a part, with moldable jobs waiting."""
    draw = random.Random(seed)
    ids = (str(number) for number in count(1))
    names_ = [f"n{number:05}" for number in range(nodes)]
    running = _running(names_, draw, free, ids)
    used = Counter(dict.fromkeys(names_, 0))
    for job in running:
        used[job.nodes[0]] += job.shape.gpus
    rows = tuple(_node(name, used[name]) for name in names_)
    waiting = tuple(_waiting(next(ids), draw) for _ in range(jobs))
    partition = Partition("gpu", tuple(names_), default=True)
    return Snapshot(NOW_S, rows, (partition,), waiting, tuple(running))


def _running(nodes: list[str], draw: random.Random, free: float, ids: Iterator[str]) -> list[Job]:
    """Fill all nodes with jobs, then end some at random until so much is free."""
    jobs = [job for name in nodes for job in _filling(name, draw, ids)]
    draw.shuffle(jobs)
    ended = 0
    while jobs and ended < free * GPUS * len(nodes):
        ended += jobs.pop().shape.gpus
    return jobs


def _filling(name: str, draw: random.Random, ids: Iterator[str]) -> Iterator[Job]:
    left = GPUS
    while left:
        size = min(left, draw.choice((1, 1, 1, 2, 2, 4, 8)))
        left -= size
        yield Job(
            next(ids),
            state=JobState.RUNNING,
            partitions=("gpu",),
            shape=_shape(1, size),
            footprint=FOOTPRINT,
            time_limit_s=draw.choice(LIMITS_S),
            start_s=NOW_S - draw.uniform(0, 3600),
            nodes=(name,),
        )


def _node(name: str, used: int) -> Node:
    pool = Pool("a100", GPUS, GPUS - used, shards_per_gpu=4, mem_mib=80_000)
    free_mem_mib = MEM_MIB - 32_000 * used
    return Node(name, CORES, CORES - 4 * used, MEM_MIB, free_mem_mib, (pool,))


FOOTPRINT = Footprint(cpus_per_gpu=4, mem_per_gpu_mib=32_000)
LIMITS_S = tuple(600 * step for step in range(1, 145, 6))


@lru_cache
def _shape(nodes: int, gpus: int) -> Shape:
    return Shape(nodes, gpus)


@lru_cache
def _asked(text: str, own: str) -> tuple[Spec, tuple[Shape, ...]]:
    """What a reader shares between jobs with the same token."""
    request = parse(f"moldable={text}")
    nodes, _, gpus = own.rpartition("x")
    shape = _shape(int(nodes or 1), int(gpus))
    return Spec(request, shape, footprint=FOOTPRINT), shapes(request, shape)


def _waiting(id_: str, draw: random.Random) -> Job:
    spec, allowed = _asked(*draw.choice(REQUESTS))
    assert spec.own is not None
    return Job(
        id_,
        user=f"u{draw.randrange(50)}",
        partitions=("gpu",),
        reason="Priority",
        shape=spec.own,
        shapes=allowed,
        footprint=FOOTPRINT,
        spec=spec,
        time_limit_s=draw.choice(LIMITS_S),
    )


def keeping(seen: Snapshot, count_: int, seed: int = 2) -> Snapshot:
    """Let the batch system expect to start some of the waiting jobs, each within a day."""
    draw = random.Random(seed)
    names_ = [node.name for node in seen.nodes]
    some = set(draw.sample(range(len(seen.waiting)), count_))
    waiting = tuple(
        replace(
            job,
            expected_s=NOW_S + draw.uniform(0, 86_400),
            expected_nodes=tuple(draw.sample(names_, job.shape.nodes)),
        )
        if place in some
        else job
        for place, job in enumerate(seen.waiting)
    )
    return replace(seen, waiting=waiting)


def apart(seen: Snapshot) -> Snapshot:
    """The same snapshot with no object shared between two jobs."""
    return replace(seen, waiting=tuple(_copy(job) for job in seen.waiting))


def _copy(job: Job) -> Job:
    spec = job.spec
    assert spec is not None
    assert spec.own is not None
    request = replace(spec.request)
    copied = tuple(replace(shape) for shape in job.shapes)
    return replace(
        job,
        spec=replace(spec, request=request, own=replace(spec.own)),
        shapes=copied,
        shape=replace(job.shape),
        footprint=replace(job.footprint),
    )


def run(case: Case) -> dict[str, Any]:
    """Measure one case in this process."""
    seen = keeping(snapshot(case.nodes, case.jobs, case.free), case.kept)
    policy = by_name(case.policy)
    base_mib = _rss_mib()
    times, plan = [], None
    for _ in range(case.repeats):
        gc.collect()
        begin = time.process_time()
        plan = cycle(seen, policy)
        times.append(time.process_time() - begin)
    peak_mib = _rss_mib()
    assert plan is not None
    separate = apart(seen)
    begin = time.process_time()
    cycle(separate, policy)
    return {
        "times": times,
        "apart": time.process_time() - begin,
        "starts": len(plan.starts),
        "base_mib": base_mib,
        "peak_mib": peak_mib,
    }


def _rss_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rows(quick: bool = False) -> list[tuple[Case, dict[str, Any]]]:
    """Measure all cases, each in a process of its own."""
    found = []
    for nodes, jobs, _ in SIZES[: 1 if quick else None]:
        repeats = 3 if quick else (20 if nodes <= 1_000 else 5)
        for _, free, kept in SETTINGS:
            for policy in live_names():
                case = Case(nodes, jobs, free, kept, policy, repeats)
                found.append((case, _in_child(case)))
    return found


def _in_child(case: Case) -> dict[str, Any]:
    argument = json.dumps(astuple(case))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_cycle", argument],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        cwd=Path(__file__).parents[1],
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(quick: bool) -> list[Section]:
    """Return the section on the cycle."""
    found = rows(quick)
    return [
        Section(
            "One cycle",
            "Nodes with 8 GPUs, 64 cores and four shards to a GPU; the GPUs are busy but for a "
            "part, with jobs of 1 to 8 GPUs. All waiting jobs are moldable, of eight kinds of "
            "request with 24 time limits; for some, Slurm's backfill says which nodes it keeps. A "
            "cycle is everything from the snapshot to the plan "
            "with its changes; parsing apart. Times are CPU times, which other load on the machine "
            "changes little. Memory is the process's peak with all repetitions, "
            "and what of it came on top of the snapshot. Last: the same where no two jobs share "
            "an object, as no reader does.",
            (
                "nodes × 8 GPUs, waiting jobs, free, kept for",
                "policy",
                "starts",
                "median s",
                "slowest s",
                "peak MiB",
                "on top MiB",
                "nothing shared s",
            ),
            [_row(case, answer) for case, answer in found],
            _result(found),
        )
    ]


def _row(case: Case, answer: dict[str, Any]) -> tuple[str, ...]:
    times = answer["times"]
    return (
        f"{case.nodes}, {case.jobs}, {100 * case.free:.0f} %, {case.kept}",
        case.policy,
        str(answer["starts"]),
        f"{median(times):.3f}",
        f"{max(times):.3f}",
        f"{answer['peak_mib']:.0f}",
        f"{answer['peak_mib'] - answer['base_mib']:.0f}",
        f"{answer['apart']:.3f}",
    )


def _result(found: list[tuple[Case, dict[str, Any]]]) -> str:
    words = []
    for nodes, jobs, goal in SIZES:
        times = {
            label: [
                median(answer["times"])
                for case, answer in found
                if (case.nodes, case.free, case.kept) == (nodes, free, kept)
            ]
            for label, free, kept in SETTINGS
        }
        for label, measured in times.items():
            if measured:
                slowest = max(measured)
                words.append(
                    f"{nodes} nodes, {jobs} jobs, {label}: slowest policy {slowest:.3f} s, goal "
                    f"{goal} s: {verdict(slowest <= goal)}."
                )
    return " ".join(words)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("["):
        print(json.dumps(run(Case(*json.loads(sys.argv[1])))))
    else:
        for section in measure("--quick" in sys.argv):
            print("\n".join(section.markdown()))
