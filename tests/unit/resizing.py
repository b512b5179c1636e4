"""What becomes of a snapshot when plans are carried out at once: every start, reshape and preempt.

Everything is instantaneous and no time passes. Jobs that start are in phase running at once, and
may be changed again where they are malleable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from build import HOUR_S, job, snapshot

from pliant.cycle import cycle
from pliant.grammar import parse, parse_shape, shapes
from pliant.model import Job, JobState, Node, Shape, Snapshot
from pliant.plan import Plan, Policy

MALLEABLE = "malleable"


def elastic(number: int, own: str = "1", allows: str = "gpus=1-4", **fields: Any) -> Job:
    """A waiting malleable job of one hour; ``throughput``: steps per second on 1, 2 … GPUs."""
    speeds = fields.pop("throughput", ())
    steps, job_class = fields.pop("steps", 0), fields.pop("job_class", None)
    found = job(number, own, allows, **fields)
    assert found.spec is not None
    table = tuple((Shape(1, n), f) for n, f in enumerate(speeds, start=1))
    request = replace(
        found.spec.request,
        malleable=parse("malleable").malleable,
        throughput=table,
        steps=steps,
        job_class=job_class,
    )
    return replace(found, spec=replace(found.spec, request=request))


def runs(found: Job, shape: str, nodes: str, **fields: Any) -> Job:
    """The same job, running as a shape on nodes."""
    fields.setdefault("start_s", -100.0)
    return replace(
        found,
        state=JobState.RUNNING,
        shape=parse_shape(shape),
        nodes=tuple(nodes.split()),
        reason="",
        **fields,
    )


def reshapes(plan: Plan) -> dict[str, str]:
    """Job → what it becomes, as "2 on n1"."""
    return {r.job.id: f"{r.shape} on {'+'.join(r.nodes)}" for r in plan.reshapes}


def carried_out(view: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot once all that a plan says is done; whole GPUs and cores only."""
    gone = {r.job.id for r in plan.reshapes} | {p.job.id for p in plan.preempts}
    running = [job for job in view.running if job.id not in gone]
    running += [
        replace(r.job, shape=r.shape, nodes=r.nodes, start_s=view.now_s) for r in plan.reshapes
    ]
    started: dict[str, int] = {}
    for start in plan.starts:
        started[start.job.id] = start.tasks
        for task, nodes in enumerate(start.all_nodes):
            name = start.job.id if start.job.tasks_waiting == 1 else f"{start.job.id}_{task}"
            running.append(_begun(replace(start.job, id=name), start.shape, nodes, view.now_s))
    waiting = [
        replace(job, tasks_waiting=job.tasks_waiting - started.get(job.id, 0))
        for job in view.waiting
        if job.tasks_waiting > started.get(job.id, 0)
    ]
    back = [
        replace(
            p.job,
            state=JobState.WAITING,
            reason="Priority",
            nodes=(),
            preempted=p.job.preempted + 1,
            preemptible=False,
            room_for=p.room_for,
        )
        for p in plan.preempts
    ]
    left = tuple(_refilled(node, view.running, running) for node in view.nodes)
    return replace(view, nodes=left, waiting=(*back, *waiting), running=tuple(running))


def _begun(found: Job, shape: Shape, nodes: tuple[str, ...], now_s: float) -> Job:
    return replace(
        found,
        state=JobState.RUNNING,
        shape=shape,
        nodes=nodes,
        start_s=now_s,
        tasks_waiting=1,
        preemptible=_is_best_effort(found),
    )


def _is_best_effort(found: Job) -> bool:
    return found.spec is not None and found.spec.request.job_class == "best-effort"


def _refilled(node: Node, before: Sequence[Job], after: list[Job]) -> Node:
    gpus, cpus, mem = (a - b for a, b in zip(_used(node, before), _used(node, after), strict=True))
    pools = tuple(
        replace(pool, free=pool.free + (gpus if at == 0 else 0))
        for at, pool in enumerate(node.pools)
    )
    assert all(0 <= pool.free <= pool.total for pool in pools), f"{node.name}: {pools}"
    assert node.free_cpus + cpus >= 0, f"{node.name}: {node.free_cpus + cpus} cores"
    return replace(
        node, pools=pools, free_cpus=node.free_cpus + cpus, free_mem_mib=node.free_mem_mib + mem
    )


def _used(node: Node, running: Sequence[Job]) -> tuple[int, int, int]:
    demands = [job.demand(job.shape) for job in running if node.name in job.nodes]
    return (
        sum(d.gpus for d in demands),
        sum(d.cpus for d in demands),
        sum(d.mem_mib for d in demands),
    )


def fixpoint(view: Snapshot, policy: Policy, within: int = 10) -> tuple[Snapshot, list[Plan]]:
    """Carry out one plan after the other until nothing is left to do; the plans that did something.

    Fails where that takes more than ``within`` cycles.
    """
    plans: list[Plan] = []
    for _ in range(within + 1):
        plan = cycle(view, policy, limit=1000)
        if not (plan.starts or plan.changes_running):
            return view, plans
        plans.append(plan)
        view = carried_out(view, plan)
    raise AssertionError(f"no end after {within} cycles: {[reshapes(p) for p in plans]}")


def holds(view: Snapshot) -> dict[str, str]:
    """Running job → shape."""
    return {job.id: str(job.shape) for job in sorted(view.running, key=lambda job: job.id)}


def amounts(view: Snapshot) -> dict[str, Fraction]:
    """Running job → GPUs."""
    return {job.id: job.shape.amount for job in view.running}


__all__ = [
    "HOUR_S",
    "amounts",
    "carried_out",
    "elastic",
    "fixpoint",
    "holds",
    "reshapes",
    "runs",
    "shapes",
    "snapshot",
]
