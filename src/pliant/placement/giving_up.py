"""What running jobs hold, given back: to see what could be had in its place.

Which single GPUs a job has is not in a snapshot. Whole GPUs are as good as each other; of shares
only what is certain is given back, where what is decided is to be feasible at once: see
:func:`is_certain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pliant.model import Job, JobState, Node, Shape, Snapshot
from pliant.placement.ground import as_read
from pliant.placement.needs import Need, find, freed, need_key, replaced
from pliant.placement.states import NodeKind, PoolKind, State, node_in, pool_kind, state_of, taken


def given_back(kind: NodeKind, state: State, need: Need) -> State:
    """Return a node's state once a job has given back what it surely has there.

    All of it, but for GPUs of which it is not certain what they leave (see :func:`is_certain`).
    """
    if not is_certain(kind.pools, state, need):
        need = replaced(need, gpus=0)
    return freed(kind, state, need)


def is_certain(pools: tuple[PoolKind, ...], state: State, need: Need) -> bool:
    """Whether it is known what is free when a job gives back ``need``, but for which GPUs are it.

    So it is for whole GPUs of one pool, and for a share if all GPUs that could have lent it have
    as much free.
    """
    if not need.gpus:
        return True
    lent = [
        (pool, gpus)
        for pool, gpus in zip(pools, state[2], strict=True)
        if need.gpu_type in ("", pool.gpu_type) and gpus not in (pool.total, _all(pool))
    ]
    if len(lent) != 1:
        return False
    pool, gpus = lent[0]
    if isinstance(gpus, int):
        return need.share == 1
    if need.share == 1:
        return gpus.count(0) >= need.gpus
    shards = pool.shards // need.share
    memory = state[3][pools.index(pool)] if pool.counts_mem else gpus
    lenders = {
        (free, left)
        for free, left in zip(gpus, memory, strict=True)
        if pool.shards - free >= shards
        and (not pool.counts_mem or pool.mem_mib - left >= need.gpu_mem_mib)
    }
    return len(lenders) == 1


def _all(pool: PoolKind) -> tuple[int, ...]:
    return (pool.shards,) * pool.total


def certain_holders(snapshot: Snapshot, jobs: Iterable[Job]) -> list[Job]:
    """Return those running jobs of which it is known what is free when they have given it back.

    All of their nodes are up.
    """
    nodes = {node.name: node for node in snapshot.nodes if node.up}
    return [job for job in jobs if _is_certain_of(nodes, job)]


def _is_certain_of(nodes: Mapping[str, Node], job: Job) -> bool:
    need = Need(*need_key(job, job.shape))
    return all(
        name in nodes
        and is_certain(
            tuple(pool_kind(pool) for pool in nodes[name].pools), state_of(nodes[name]), need
        )
        for name in job.nodes
    )


def without(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """Return the snapshot as it would be if these running jobs were gone.

    Where several jobs share GPUs, the fullest are taken for theirs.
    """
    given: dict[str, list[Need]] = {}
    gone: set[str] = set()
    for job in jobs:
        gone.add(job.id)
        for name in job.nodes:
            given.setdefault(name, []).append(Need(*need_key(job, job.shape)))
    if not gone:
        return snapshot
    return replace(
        as_read(snapshot),
        nodes=tuple(_emptied(node, given.get(node.name, ())) for node in snapshot.nodes),
        running=tuple(job for job in snapshot.running if job.id not in gone),
    )


def settled(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as it will be once all changes under way are done."""
    under_way = tuple(job for job in snapshot.running if job.next_shape is not None)
    if not under_way:
        return snapshot
    after = without(snapshot, under_way)
    nodes = {node.name: node for node in after.nodes}
    running = list(after.running)
    for job in under_way:
        shape = job.next_shape or job.shape
        new = _taken(nodes, job, shape, job.next_nodes)
        nodes |= new or _taken(nodes, job, job.shape, job.nodes)
        running.append(_changed(job, shape, snapshot.now_s) if new else job)
    return replace(after, nodes=tuple(nodes.values()), running=tuple(running))


def arrived(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    """Return the snapshot as it will be once waiting jobs run again that are between two runs.

    ``jobs``: as they will run, with their nodes. One that does not fit there waits on.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    running: dict[str, Job] = {}
    for job in jobs:
        new = _taken(nodes, job, job.shape, job.nodes)
        if new:
            nodes |= new
            running[job.id] = replace(job, state=JobState.RUNNING, start_s=snapshot.now_s)
    if not running:
        return snapshot
    return replace(
        snapshot,
        nodes=tuple(nodes.values()),
        running=(*snapshot.running, *running.values()),
        waiting=tuple(job for job in snapshot.waiting if job.id not in running),
    )


def _changed(job: Job, shape: Shape, now_s: float) -> Job:
    became = replace(job, shape=shape, shapes=(shape,), nodes=job.next_nodes, start_s=now_s)
    return replace(became, next_shape=None, next_nodes=())


def _taken(
    nodes: dict[str, Node], job: Job, shape: Shape, names: tuple[str, ...]
) -> dict[str, Node]:
    """The nodes as they are once a job has taken a shape; none where that does not fit."""
    need = Need(*need_key(job, shape))
    found: dict[str, Node] = {}
    for name in names:
        node = nodes.get(name)
        receipt = None if node is None else find(_kind(node), state_of(node), need)
        if node is None or receipt is None:
            return {}
        found[name] = node_in(node, taken(state_of(node), receipt))
    return found


def _emptied(node: Node, needs: Iterable[Need]) -> Node:
    kind, state = _kind(node), state_of(node)
    for need in needs:
        state = freed(kind, state, need)
    return node_in(node, state) if needs else node


def _kind(node: Node) -> NodeKind:
    pools = tuple(pool_kind(pool) for pool in node.pools)
    none: frozenset[str] = frozenset()
    return NodeKind(node.cpus, node.mem_mib, pools, none, none, none)
