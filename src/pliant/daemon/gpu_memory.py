"""How much memory GPUs have, which the batch system does not know: for shares of GPUs.

Where a node's monitor reads its GPUs it says so; else pliant.toml may, by the GPUs' type::

    [gpu_memory]                             # of one GPU
    a100 = "40G"
    default = "16G"                          # of all other types

A job that needs so much of a GPU's memory (``gpu-mem=``) becomes a share of one only where that
much is in such a share of every GPU that it could come to: the batch system chooses which. Where
that is not known it does not become one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pliant.errors import BadConfig, BadSpec
from pliant.grammar import quoted
from pliant.grammar.values import read_size_mib
from pliant.model import Job, Node, Shape, Snapshot

DEFAULT = "default"


def read_gpu_memory(name: str, values: Mapping[str, Any]) -> dict[str, int]:
    """Read [gpu_memory]: MiB by type; ``name`` of the file stands in messages.

    Raises BadConfig in one line: the key, the value, what would be right.
    """
    found = {}
    for key, value in values.items():
        try:
            found[key] = read_size_mib(key, value if isinstance(value, str) else "")
        except BadSpec:
            right = 'a size like "40G" is expected'
            raise BadConfig(f"{name}: [gpu_memory] {key}: {quoted(str(value))}: {right}") from None
    return found


@dataclass(slots=True)
class GpuMemory:
    """Adds it to what was seen; ``seen``: MiB of a GPU by node, as monitors read them."""

    said: Mapping[str, int]
    seen: Callable[[], Mapping[str, int]]

    def known(self, snapshot: Snapshot) -> Snapshot:
        """Return what was seen with it; jobs without the shares that are too small for them."""
        read = self.seen()
        if self.said or read:
            nodes = tuple(self._node(node, read.get(node.name, 0)) for node in snapshot.nodes)
            snapshot = replace(snapshot, nodes=nodes)
        needing = [j for j in (*snapshot.waiting, *snapshot.running) if _needs_mib(j)]
        if not needing:
            return snapshot
        least = _Least(snapshot)
        fitted = {job.id: least.fitted(job) for job in needing}
        return replace(
            snapshot,
            waiting=tuple(fitted.get(job.id, job) for job in snapshot.waiting),
            running=tuple(fitted.get(job.id, job) for job in snapshot.running),
        )

    def _node(self, node: Node, read_mib: int) -> Node:
        """``read_mib``: of the smallest GPU of the node, of whatever type it is."""
        pools = tuple(
            replace(pool, told_mib=mib)
            if (mib := pool.told_mib or read_mib or self._said(pool.gpu_type)) != pool.told_mib
            else pool
            for pool in node.pools
        )
        return node if pools == node.pools else replace(node, pools=pools)

    def _said(self, gpu_type: str) -> int:
        return self.said.get(gpu_type, self.said.get(DEFAULT, 0))


class _Least:
    """The least memory of the GPUs in shares that jobs could come to, worked out once a look."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._partitions = snapshot.partition_by_name
        self._known: dict[tuple[tuple[str, ...], str], int] = {}

    def fitted(self, job: Job) -> Job:
        """Return a job without the shares that are too small for it; never without its own."""
        own = (job.shape, job.spec.own if job.spec is not None else None)
        shapes = tuple(s for s in job.shapes if s in own or self._holds(job, s))
        return job if shapes == job.shapes else replace(job, shapes=shapes)

    def _holds(self, job: Job, shape: Shape) -> bool:
        if not shape.is_share:
            return True
        demand = job.demand(shape)
        key = (job.partitions, demand.gpu_type)
        if key not in self._known:
            self._known[key] = min(self._mib(*key), default=0)
        return self._known[key] >= _needs_mib(job) * demand.share

    def _mib(self, partitions: Iterable[str], gpu_type: str) -> Iterable[int]:
        for name in partitions:
            partition = self._partitions.get(name)
            for node in partition.nodes if partition is not None else ():
                known = self._nodes.get(node)
                for pool in known.pools if known is not None else ():
                    if pool.shards_per_gpu and gpu_type in ("", pool.gpu_type):
                        yield pool.told_mib


def _needs_mib(job: Job) -> int:
    return job.spec.request.gpu_mem_mib if job.spec is not None else 0
