"""All nodes and running jobs at one moment, with what monitors see of them. Pure.

How many steps per second a job makes its program tells pliantd, and no monitor.

What the asker may not see is left out here (slurm.conf(5), PrivateData), as in :mod:`private`:

===========  =====================================================================================
PrivateData  what is left out for a user who is no administrator
===========  =====================================================================================
jobs         others' jobs; of those beside an own one there is the number
nodes        the nodes, and what runs on their GPUs; an own job says on which it runs, as squeue
===========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pliant.daemon.beats import Steps
from pliant.daemon.held import gpus_of
from pliant.daemon.named import parts
from pliant.daemon.rights import Asker
from pliant.daemon.watched import (
    TIERS,
    MonitorRow,
    NodeRow,
    RunningRow,
    SpeedRow,
    TierSpeed,
    TopAnswer,
)
from pliant.model import Job, Kind, Node, Snapshot, shape_text
from pliant.model.footprints import ALL_CORES
from pliant.wire.monitor import UNITS

FRESH_S = 180.0
"""What was said longer ago is not told as if it were so now: a monitor reports once a minute."""

_Tiers = dict[str, TierSpeed]
"""How fast one job is, by tier: speeds of different tiers are never mixed."""


def overview(
    snapshot: Snapshot,
    heard: Mapping[str, MonitorRow],
    beats: Mapping[str, Steps],
    asker: Asker,
    now_s: float,
    *,
    most: int,
) -> TopAnswer:
    """Return the nodes and running jobs as their asker may see them, ``most`` of each.

    ``heard``: what monitors said last, by node. ``beats``: each job's last window of its own steps.
    """
    fresh = {name: row for name, row in heard.items() if now_s - row.heard_s <= FRESH_S}
    speeds = _speeds_by_job(snapshot, fresh, now_s)
    running = sorted((job for job in snapshot.running if asker.may_see(job)), key=_order)
    beside = _beside(snapshot.running)
    cpus = {node.name: node.cpus for node in snapshot.nodes}
    seen = {job.id for job in running}
    nodes = sorted(snapshot.nodes, key=lambda node: node.name) if asker.sees_nodes else ()
    return TopAnswer(
        now_s=now_s,
        observed_s=snapshot.now_s,
        policy="",
        paused=False,
        waiting=len(snapshot.waiting),
        running=len(snapshot.running),
        monitored=len(fresh),
        nodes=tuple(_node_row(node, heard.get(node.name), fresh) for node in nodes[:most]),
        jobs=tuple(
            _job_row(
                job,
                speeds.get(job.id, ()),
                _steps(job, beats.get(job.id), now_s),
                others=beside[job.id],
                seen=seen,
                cpus=cpus,
            )
            for job in running[:most]
        ),
        more=max(0, len(nodes) - most) + max(0, len(running) - most),
    )


def _order(job: Job) -> tuple[int, str]:
    number, _ = parts(job.id)
    return int(number) if number.isdecimal() else 0, job.id


def _speeds_by_job(
    snapshot: Snapshot, fresh: Mapping[str, MonitorRow], now_s: float
) -> Mapping[str, Sequence[SpeedRow]]:
    """Return by a job's id what its nodes say of it; they know it by its number."""
    ids = {job.number or job.id: job.id for job in snapshot.running}
    found: dict[str, list[SpeedRow]] = {}
    for row in fresh.values():
        for speed in row.speeds:
            if speed.job in ids and now_s - speed.end_s <= FRESH_S:
                found.setdefault(ids[speed.job], []).append(speed)
    return found


def _steps(job: Job, last: Steps | None, now_s: float) -> _Tiers:
    """Return what the program of this run of a job said of late; it speaks for all its nodes."""
    if last is None:
        return {}
    _, end_s, rate = last
    fresh = now_s - end_s <= FRESH_S and end_s > job.start_s
    tier = "heartbeat"
    return {tier: TierSpeed(tier, rate, UNITS[tier], len(job.nodes))} if fresh else {}


def _beside(running: Iterable[Job]) -> Mapping[str, set[str]]:
    """Return for each job those that run on one of its nodes."""
    running = tuple(running)
    there: dict[str, list[str]] = {}
    for job in running:
        for node in job.nodes:
            there.setdefault(node, []).append(job.id)
    return {job.id: {o for node in job.nodes for o in there[node]} - {job.id} for job in running}


def _node_row(node: Node, heard: MonitorRow | None, fresh: Mapping[str, MonitorRow]) -> NodeRow:
    monitor = fresh.get(node.name)
    return NodeRow(
        name=node.name,
        up=node.up,
        cpus=node.cpus,
        cpus_free=node.free_cpus,
        gpus=gpus_of(node),
        gpus_free=sum(pool.free for pool in node.pools),
        heard_s=heard.heard_s if heard else 0.0,
        seen_s=monitor.seen_s if monitor else 0.0,
        seen=monitor.gpus if monitor else (),
    )


def _job_row(
    job: Job,
    speeds: Sequence[SpeedRow],
    steps: _Tiers,
    *,
    others: set[str],
    seen: set[str],
    cpus: Mapping[str, int],
) -> RunningRow:
    uses = [use for speed in speeds for use in speed.gpus]
    busy = [use.busy for use in uses if use.busy is not None]
    memory = [use.memory_mib for use in uses if use.memory_mib is not None]
    told = [speed.cpu for speed in speeds if speed.cpu is not None]
    return RunningRow(
        id=job.id,
        user=job.user,
        name=job.name,
        state=job.state,
        shape=shape_text(job.shape),
        nodes=job.nodes,
        started_s=job.start_s,
        cpus=_cpus(job, cpus),
        gpus=job.shape.whole_gpus if job.shape.kind is not Kind.CPU else 0,
        speeds=_in_order(_by_tier(speeds) | steps),
        cpu=sum(told) if told else None,
        memory_mib=sum(speed.memory_mib for speed in speeds) if speeds else None,
        gpus_used=len(uses) if speeds else None,
        gpu_busy=sum(busy) / len(busy) if busy else None,
        gpu_memory_mib=sum(memory) if memory and len(memory) == len(uses) else None,
        idle_since_s=tuple(sorted(since for speed in speeds for since in speed.idle_since_s)),
        beside=tuple(sorted(others & seen)),
        hidden=len(others - seen),
    )


def _by_tier(speeds: Sequence[SpeedRow]) -> _Tiers:
    """Add up the speeds on a job's nodes, each tier for itself."""
    found: dict[str, list[float]] = {}
    for speed in speeds:
        found.setdefault(speed.tier, []).append(speed.value)
    return {
        tier: TierSpeed(tier, sum(values), UNITS[tier], len(values))
        for tier, values in found.items()
    }


def _in_order(speeds: _Tiers) -> tuple[TierSpeed, ...]:
    """Return the speeds, of tier 1 first."""
    return tuple(speeds[tier] for tier in TIERS if tier in speeds)


def _cpus(job: Job, cpus: Mapping[str, int]) -> int:
    """Return how many CPUs a job holds; 0: not known."""
    each = job.demand(job.shape).cpus
    if job.whole_nodes or each == ALL_CORES:
        return sum(cpus.get(node, 0) for node in job.nodes)
    return each * len(job.nodes)
