"""Nodes as policies see them: free GPUs by type, and the shards of each GPU that is shared.

Slurm 22.05 does not say how many shards of a GPU are used, only which GPUs are shared; there the
running jobs say it (see details.py). Where a job's place is not known, no shard of the shared GPUs
of its node counts as free.

While a job is COMPLETING, scontrol shows its resources as free already, but Slurm starts nothing on
the node until it is gone: nothing counts as free there, and the ending job gives its part back. As
scontrol shows it the node is told beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.batch.slurm.gres import GPU, SHARD, Gres
from pliant.batch.slurm.node_rows import NodeRow
from pliant.model import Node, Pool

Use = tuple[int, int]
"""The shards of one GPU that are used, and by how many jobs."""
Lent = Mapping[int, Use]
"""By GPU index, as running jobs say it."""


def shards_per_gpu(row: NodeRow, gpu_type: str = "") -> int:
    """Return into how many shards a node's GPUs (of one type) are divided; 0: they are not."""
    gpus = sum(g.count for g in row.gres if g.name == GPU and gpu_type in ("", g.type))
    shards = [g for g in row.gres if g.name == SHARD and (gpu_type in ("", g.type) or not g.type)]
    if shards and not all(g.type for g in shards):
        gpus = sum(g.count for g in row.gres if g.name == GPU)
    return sum(g.count for g in shards) // gpus if gpus else 0


def node_of(row: NodeRow, lent: Lent | None) -> Node:
    """Return the node. ``lent`` None: where the shards of its jobs lie is not known."""
    pools: dict[str, Pool] = {}
    first = 0
    for gres in row.gres:
        if gres.name == GPU:
            places = range(first, first + gres.count)
            first += gres.count
            pool = _pool(row, gres, places, lent)
            same = pools.get(gres.type)
            pools[gres.type] = pool if same is None else _joined(same, pool)
    node = Node(
        row.name,
        row.cpus,
        row.free_cpus,
        row.mem_mib,
        row.free_mem_mib,
        tuple(pools[name] for name in sorted(pools)),
        row.features,
        row.up,
        row.threads,
    )
    return _closed(node) if row.completing else node


def _closed(node: Node) -> Node:
    """A node on which nothing starts before those are gone that are ending there."""
    pools = tuple(replace(pool, free=0, parts=(), sharers=()) for pool in node.pools)
    return replace(node, free_cpus=0, free_mem_mib=0, pools=pools, once_ended=node)


def _pool(row: NodeRow, gpus: Gres, places: range, lent: Lent | None) -> Pool:
    shards = shards_per_gpu(row, gpus.type)
    whole = sum(g.count for g in row.used if g.name == GPU and g.type == gpus.type)
    parts = sorted(_parts(row, gpus, places, shards, lent), reverse=True) if shards else []
    free = max(0, gpus.count - whole - len(parts))
    known = all(jobs for _, jobs in parts)
    return Pool(
        gpus.type,
        gpus.count,
        free,
        shards,
        tuple(left for left, _ in parts),
        sharers=tuple(jobs for _, jobs in parts) if known else (),
    )


def _parts(row: NodeRow, gpus: Gres, places: range, shards: int, lent: Lent | None) -> list[Use]:
    """The free shards of each shared GPU of one pool, and its jobs (0: not known)."""
    used = [g for g in row.used if g.name == SHARD and g.type in ("", gpus.type)]
    told = [pair for g in used for pair in g.lent]
    if told:
        if len(used) == 1 and not used[0].type:  # untyped shards: one pair for each GPU in order
            told = [told[place] for place in places if place < len(told)]
        return [(max(0, total - taken), 0) for taken, total in told if taken]
    shared = {place for g in used for place in g.indexes if place in places}
    if lent is None:
        return [(0, 0)] * len(shared)
    shared.update(place for place in places if place in lent)
    uses = (lent.get(place, (shards, 0)) for place in sorted(shared))
    return [(max(0, shards - taken), jobs) for taken, jobs in uses]


def _joined(one: Pool, other: Pool) -> Pool:
    return Pool(
        one.gpu_type,
        one.total + other.total,
        min(one.free + other.free, one.total + other.total),
        max(one.shards_per_gpu, other.shards_per_gpu),
        tuple(sorted((*one.parts, *other.parts), reverse=True)),
    )  # sharers: not told for pools that Slurm names in two pieces
