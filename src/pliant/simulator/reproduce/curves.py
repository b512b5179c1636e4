"""Measured curves, neither monotone nor concave: no policy fails, gives out too much, or loops.

This is no claim of a paper but Pliant's own, of all policies: on Sia's curves, which depend on the
placement, and on Gavel's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

from pliant.errors import Unavailable
from pliant.policies import by_name, names
from pliant.simulator.cluster import CHANGES, Cluster
from pliant.simulator.metrics import Span, Task
from pliant.simulator.replay import Replay
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Section, Table
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.measured import COST, FREE, Cost, measured, tables_in

WHERE = (("Sia", Path("gpu", "sia-models")), ("Gavel", Path("gpu", "gavel")))
MACHINES = ((4, 8), (16, 4), (1, 8))
"""Nodes, and GPUs on each."""


class Point(NamedTuple):
    """A policy on jobs with the curves of one source."""

    policy: str
    source: str
    path: Path
    nodes: int
    gpus: int
    cost: Cost
    jobs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Came:
    """What became of it.

    ``overfull``: the instants at which a node had more in use than it has, and the starts and
    changes that did not fit. ``loops``: the jobs that were changed at one instant until the replay
    stopped it; ``failed``: what was raised, "" where nothing was.
    """

    ended: int = 0
    cycles: int = 0
    changes: int = 0
    most: int = 0
    overfull: int = 0
    loops: int = 0
    failed: str = ""


class _Watch:
    """Adds up, at every instant, what runs on each node: a second opinion, without placement."""

    def __init__(self, workload: Workload) -> None:
        self._room = {
            node.name: (node.cpus, sum(pool.total for pool in node.pools))
            for node in workload.nodes
        }
        self.overfull = 0

    def __call__(self, now_s: float, cluster: Cluster) -> None:
        del now_s
        used = dict.fromkeys(self._room, (0, 0))
        for run in cluster.running.values():
            demand = run.job.demand(run.shape)
            for name in cluster.names(run.places):
                cpus, gpus = used[name]
                used[name] = (cpus + demand.cpus, gpus + demand.gpus)
        self.overfull += any(
            cpus > self._room[name][0] or gpus > self._room[name][1]
            for name, (cpus, gpus) in used.items()
        )


def run_point(point: Point) -> Came:
    """Replay one point; what a policy raises is told, but for a solver that is not here."""
    machine = {"nodes": point.nodes, "gpus": point.gpus}
    curves = _curves(point.path)
    workload = measured(curves, point.seed, jobs=point.jobs, cost=point.cost, **machine)
    watch = _Watch(workload)
    replay = Replay(workload, by_name(point.policy), watch)
    ended: list[Task] = []
    failed = ""
    try:
        ended.extend(replay.run())
    except Unavailable:
        raise
    except Exception as error:  # whatever it is, it is what is looked for
        failed = f"{type(error).__name__}: {error}"
    changes = [len(task.spans) - 1 for task in ended]
    return Came(
        len(ended),
        replay.cycles,
        sum(changes),
        max(changes, default=0),
        watch.overfull + replay.refused,
        sum(_loops(task.spans) for task in ended),
        failed,
    )


_curves = lru_cache(maxsize=1)(tables_in)  # one source after the other


def _loops(spans: Sequence[Span]) -> bool:
    """Whether a job was changed as often at one instant as a replay allows."""
    return any(
        sum(1 for _ in some) >= CHANGES for _, some in groupby(spans, lambda span: span.end_s)
    )


def reproduce(asked: Asked) -> Section:
    """Run every policy on every source of curves.

    Raises BadInput where a file of curves cannot be right, Unavailable without a solver.
    """
    points = list(_points(asked))
    found = asked.spread("measured curves", run_point, points) if points else []
    came = list(zip(points, found, strict=True))
    jobs, seeds, machines = _sizes(asked)
    lacking = [name for name, where in WHERE if not _there(asked, where)]
    return Section(
        "Measured curves (Sia, Gavel): all policies",
        f"{len(names())} policies; {jobs} jobs; seeds: {seeds}, from {asked.seed} on; on"
        f" {', '.join(f'{nodes} x {gpus}' for nodes, gpus in machines)} GPUs;"
        f" with {COST.save_s:g} s to save and {COST.launch_s:g} s to launch, and with none."
        + "".join(f" {name}: not run, as its curves are not there." for name in lacking),
        [*claims_of(came)],
        [_table(came)] if came else [],
        _choices(points),
    )


def _sizes(asked: Asked) -> tuple[int, int, Sequence[tuple[int, int]]]:
    """How many jobs, how many seeds, and on what."""
    return (30, 1, MACHINES[:1]) if asked.quick else (60, 3, MACHINES)


def _there(asked: Asked, where: Path) -> Path | None:
    path = asked.data / where if asked.data else None
    return path if path and path.is_dir() else None


def _points(asked: Asked) -> Iterator[Point]:
    jobs, seeds, machines = _sizes(asked)
    for source, where in WHERE:
        if path := _there(asked, where):
            for policy, (nodes, gpus), cost, seed in product(
                names(), machines, (COST, FREE), asked.seeds(seeds)
            ):
                yield Point(policy, source, path, nodes, gpus, cost, jobs, seed)


_Ran = Sequence[tuple[Point, Came]]
_SAID = (
    "no policy fails: every job comes to its end",
    "no policy gives out more than a node has",
    "no policy loops",
)
_OURS = "no paper: Pliant's own"


def claims_of(came: Sequence[tuple[Point, Came]]) -> Iterator[Claim]:
    """Yield what is claimed, and the replays in which it does not hold."""
    if not came:
        for text in _SAID:
            yield Claim(text, "not testable", _OURS, why="needs measured curves: --data")
        return
    wrong = (
        [(point, one.failed or f"{point.jobs - one.ended} jobs never ended") for point, one in came
         if one.failed or one.ended < point.jobs],
        [(point, f"{one.overfull} times") for point, one in came if one.overfull],
        [(point, f"{one.loops} jobs") for point, one in came if one.loops],
    )  # fmt: skip
    for text, some in zip(_SAID, wrong, strict=True):
        where = "; ".join(
            f"{point.policy} on {point.source}, {point.nodes} x {point.gpus} GPUs, seed"
            f" {point.seed}: {what}"
            for point, what in some[:3]
        )
        ours = f"{len(came) - len(some)} of {len(came)} replays"
        yield Claim(text, "predicted", _OURS, ours, not some, where)


def _table(came: _Ran) -> Table:
    rows = []
    for policy in names():
        some = [one for point, one in came if point.policy == policy]
        rows.append(
            [
                policy,
                *(
                    f"{number:,}"
                    for number in (
                        len(some),
                        sum(one.ended for one in some),
                        sum(one.cycles for one in some),
                        sum(one.changes for one in some),
                        max(one.most for one in some),
                        sum(one.overfull for one in some),
                        sum(one.loops for one in some),
                    )
                ),
            ]
        )
    return Table(
        "All policies on measured curves",
        ["policy", "replays", "jobs ended", "cycles", "changes", "most of one job", "overfull",
         "loops"],
        rows,
        "A change: a running job goes on as another shape, or makes room. Overfull: instants at"
        " which a node had more in use than it has, and what was decided and did not fit. Loops:"
        f" jobs that were changed {CHANGES} times at one instant, where the replay stops it.",
    )  # fmt: skip


def _choices(points: Sequence[Point]) -> Sequence[str]:
    if not points:
        return ()
    first = points[0]
    return measured(_curves(first.path), first.seed, jobs=1).choices[:1]
