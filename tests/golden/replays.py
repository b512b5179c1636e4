"""Workloads to replay, as tables, and what a policy decides in each replay, decision by decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

from golden.saved import Golden, lines_of
from pliant.grammar import parse, parse_shape
from pliant.grammar import shapes as request_shapes
from pliant.model import (
    Company,
    Footprint,
    Job,
    Node,
    Partition,
    Pool,
    Shape,
    Snapshot,
    Spec,
    Together,
)
from pliant.plan import Plan, Policy
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Arrival, Neighbour, Workload

JOBS = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One job of a table; ``exponent``: it runs at amount ** exponent."""

    job: str
    user: str
    submit_s: float
    work_s: float
    limit_s: int
    own: str
    allows: str
    exponent: float
    save_s: float
    launch_s: float
    tasks: int
    cores: int

    def arrival(self) -> Arrival:
        """The job as it arrives."""
        own, request = parse_shape(self.own), parse(self.allows) if self.allows else None
        job = Job(
            self.job,
            user=self.user,
            partitions=("gpu",),
            submit_s=self.submit_s,
            shape=own,
            shapes=request_shapes(request, own) if request is not None else (own,),
            footprint=Footprint(cpus_per_task=self.cores),
            spec=Spec(request, own) if request is not None else None,
            time_limit_s=self.limit_s,
            tasks_waiting=self.tasks,
            grace_s=self.save_s,
            restart_s=self.save_s + self.launch_s,
        )
        speed = _Speed(own, self.exponent)
        return Arrival(job, self.work_s, speed, self.save_s, self.launch_s)


@dataclass(frozen=True, slots=True)
class _Speed:
    own: Shape
    exponent: float

    def __call__(self, shape: Shape) -> float:
        return self._of(shape) / self._of(self.own)

    def _of(self, shape: Shape) -> float:
        return float(max(float(shape.amount), 0.1) ** self.exponent)


CLUSTERS: Mapping[str, tuple[Node, ...]] = {
    "one node": (Node("n0", 64, 64, 0, 0, (Pool("", 12, 12),)),),
    "two nodes": tuple(Node(f"n{at}", 32, 32, 0, 0, (Pool("", 6, 6),)) for at in range(2)),
    "classes": tuple(Node(f"n{at}", 32, 32, 0, 0, (Pool("", 4, 4),)) for at in range(3)),
    "many nodes": tuple(Node(f"n{at}", 16, 16, 0, 0, (Pool("", 2, 2),)) for at in range(6)),
    "parts": tuple(Node(f"n{at}", 16, 16, 0, 0, (Pool("", 4, 4, 4),)) for at in range(2)),
    "beside": tuple(Node(f"n{at}", 32, 32, 0, 0, (Pool("", 4, 4),)) for at in range(3)),
}
ALLOWS: Mapping[str, Sequence[str]] = {
    "one node": ("gpus=1-4", "gpus=1-12;malleable", "gpus=2-8;malleable", ""),
    "two nodes": ("gpus=1-4;malleable", "gpus=1-2", "gpus=1:2:4;malleable", ""),
    "classes": ("job-class=trial", *["job-class=best-effort"] * 3),
    "many nodes": ("gpus=1:2:4:8,nodes=1-4", "gpus=2:4,nodes=1-2;malleable", "gpus=1-2", ""),
    "parts": ("gpus=1/4-2", "gpus=1/2:1", "gpus=1-4,type=gpu:cpu,cores=4", ""),
    "beside": ("colocate;job-class=best-effort", "colocate", "gpus=1-2", ""),
}


CROWDED = ("classes", "beside")


def drawn_rows(cluster: str, seed: int) -> list[Row]:
    """Draw the jobs that arrive on one of the clusters."""
    rng = Random(f"{cluster} {seed}")
    found, at_s = [], 0.0
    most_s = 30.0 if cluster in CROWDED else 300.0
    for number in range(1, JOBS + 1):
        at_s += rng.choice([0.0, 5.0, 30.0, most_s])
        allows = rng.choice(ALLOWS[cluster])
        work_s = rng.choice([40.0, 600.0, 2000.0, 6000.0])
        found.append(
            Row(
                *(str(number), rng.choice("ab"), at_s, work_s),
                rng.choice([0, 0, 3600, 7200, 36_000]),
                *(_own(rng, cluster, allows), allows, rng.choice([1.0, 0.8, 0.5, 0.0])),
                *(rng.choice([0.0, 10.0]), rng.choice([0.0, 5.0, 20.0])),
                *(rng.choice([1, 1, 1, 3]), rng.choice([1, 2])),
            )
        )
    return found


def _own(rng: Random, cluster: str, allows: str) -> str:
    if not allows or not parse(allows).gpus:
        return rng.choice(["1", "2", "1", "4"] if cluster != "many nodes" else ["1", "2", "2x2"])
    return str(rng.choice(request_shapes(parse(allows), Shape(1, 1))))


def table(rows: Iterable[Row]) -> str:
    """Write rows as a table, tabs between."""
    names = [one.name for one in fields(Row)]
    lines = ["\t".join(names)]
    lines += ["\t".join(str(getattr(row, name)) for name in names) for row in rows]
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> list[Row]:
    """Read what :func:`table` wrote."""
    kinds = {"float": float, "int": int, "str": str}
    types = [kinds[str(one.type)] for one in fields(Row)]
    return [
        Row(*[kind(word) for kind, word in zip(types, line.split("\t"), strict=True)])
        for line in text.splitlines()[1:]
    ]


def workload(cluster: str, rows: Iterable[Row]) -> Workload:
    """Return the jobs of a table on one of the clusters."""
    nodes = CLUSTERS[cluster]
    partition = Partition("gpu", tuple(node.name for node in nodes), default=True)
    together = cluster == "beside"
    return Workload(
        cluster,
        nodes,
        (partition,),
        [row.arrival() for row in rows],
        beside=_beside if together else None,
        company=_company if together else None,
    )


def _beside(job: Job, _shape: Shape, others: Sequence[Neighbour]) -> float:
    """Some jobs slow each other more than others."""
    return round(0.95 ** (1 + sum(int(one.job.id) * int(job.id) % 7 for one in others)), 6)


def _company(jobs: Sequence[Job]) -> Company:
    some = [job for job in jobs if job.spec is not None and job.spec.request.colocate]
    pairs = [(one, two) for at, one in enumerate(some) for two in some[at + 1 :]]
    known = [Together(((job.id, 1.0),)) for job in some]
    for one, two in pairs[:200]:
        speed = round(0.95 ** (1 + int(one.id) * int(two.id) % 7), 6)
        known.append(Together(((one.id, speed), (two.id, speed))))
    return Company(tuple(known))


@dataclass(frozen=True)
class _Noted:
    """A policy whose plans are written down."""

    policy: Policy
    plans: dict[str, Golden] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def __call__(self, snapshot: Snapshot) -> Plan:
        plan = self.policy(snapshot)
        self.plans[f"{len(self.plans)} at {snapshot.now_s}"] = Golden(lines_of(plan))
        return plan


def decisions(of: Workload, policy: Policy) -> dict[str, Golden]:
    """Return all decisions of a replay in their order, and last when each job ended."""
    noted = _Noted(policy)
    ended = [f"{task.id}: {task.spans[-1].end_s}" for task in Replay(of, noted).run()]
    return {**noted.plans, "ends": Golden(tuple(ended))}


def decisions_of(name: str, text: str, policy: Policy) -> dict[str, Golden]:
    """Return all decisions about a table, of which the name begins with its cluster's."""
    cluster, _, _ = name.rpartition(" ")
    return decisions(workload(cluster, rows_of(text)), policy)
