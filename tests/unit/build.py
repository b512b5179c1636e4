"""Clusters and jobs for examples, in the words of users."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pliant.grammar import parse, parse_shape, shapes
from pliant.model import Footprint, Job, JobState, Kind, Node, Partition, Pool, Snapshot, Spec
from pliant.plan import Plan

HOUR_S = 3600


_POOL = {"parts", "sharers", "mem_mib", "counts_mem", "parts_mem_mib"}


def node(name: str, gpus: int = 4, free: int | None = None, **fields: Any) -> Node:
    """A node with 16 cores; ``shards``: of each GPU; ``parts``: GPUs in use by shares."""
    pool_fields = {key: fields.pop(key) for key in _POOL & fields.keys()}
    gpu_type, shards = fields.pop("gpu_type", ""), fields.pop("shards", 0)
    left = gpus - len(pool_fields.get("parts", ())) if free is None else free
    pool = Pool(gpu_type, gpus, left, shards, **pool_fields)
    cpus = fields.pop("cpus", 16)
    free_cpus = fields.pop("free_cpus", cpus)
    return Node(name, cpus, free_cpus, 0, 0, (pool,) if gpus else (), **fields)


def snapshot(nodes: list[Node], waiting: list[Job], running: list[Job] | None = None) -> Snapshot:
    """One partition, gpu, with all nodes; GPUs and cores of running jobs are taken from them."""
    busy = running or []
    rows = tuple(_without(row, busy) for row in nodes)
    partition = Partition("gpu", tuple(row.name for row in nodes), default=True)
    return Snapshot(0.0, rows, (partition,), tuple(waiting), tuple(busy))


def _without(row: Node, running: list[Job]) -> Node:
    for job in running:
        if row.name in job.nodes:
            demand = job.demand(job.shape)
            pool = replace(row.pools[0], free=row.pools[0].free - demand.gpus)
            row = replace(row, free_cpus=row.free_cpus - demand.cpus, pools=(pool,))
    return row


def job(number: int, own: str = "1", allows: str = "", **fields: Any) -> Job:
    """A waiting job of one hour: what it asks, and what else its owner allows."""
    shape = parse_shape(own)
    request = parse(allows) if allows else None
    fields.setdefault("reason", "Priority")
    fields.setdefault("time_limit_s", HOUR_S)
    fields.setdefault("partitions", ("gpu",))
    found = Job(
        str(number),
        shape=shape,
        shapes=shapes(request, shape) if request else (shape,),
        spec=Spec(request, shape) if request else None,
    )
    return replace(found, **fields)


def running(number: int, own: str, nodes: str, end_s: float) -> Job:
    """A running job and when its time limit ends it."""
    found = job(number, own, time_limit_s=int(end_s) + 100)
    state = JobState.RUNNING
    return replace(found, state=state, start_s=-100.0, nodes=tuple(nodes.split()))


def starts(plan: Plan) -> dict[str, str]:
    """Job → shape and nodes, as "4 on n1"; an array with its tasks."""
    return {
        start.job.id: f"{start.shape} on " + ", ".join("+".join(nodes) for nodes in start.all_nodes)
        for start in plan.starts
    }


def got(plan: Plan) -> dict[str, str]:
    """Job → shape, or how many times that for an array."""
    return {
        start.job.id: f"{start.tasks} times {start.shape}" if start.tasks > 1 else str(start.shape)
        for start in plan.starts
    }


def claims(plan: Plan) -> dict[str, str]:
    """Job → shape, nodes and time of its claim, as "4 on n1 at 600"."""
    return {
        claim.job.id: f"{claim.shape} on {'+'.join(claim.nodes)} at {claim.at_s:g}"
        for claim in plan.claims
    }


def changes(plan: Plan) -> dict[str, str]:
    """Job → the shape that it is changed to."""
    return {action.job.id: str(action.shape) for action in plan.actions}


PER_GPU = Footprint(cpus_per_gpu=4)
CPU = Kind.CPU
