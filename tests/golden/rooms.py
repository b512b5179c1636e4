"""What is free on a node while jobs are put on it one by one: the generator's own bookkeeping.

It asks none of the code that decides, so that what is drawn does not change with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby

from pliant.model import ALL_CORES, Demand, Node, Pool


@dataclass(slots=True)
class Gpu:
    """One GPU: how much of it is free, and of how many jobs the rest is."""

    pool: int
    shards: int
    mem_mib: int
    jobs: int = 0


@dataclass(slots=True)
class Taken:
    """What one job has of a node: of each GPU the shards and the memory."""

    cpus: int
    mem_mib: int
    gpus: list[tuple[Gpu, int, int]]


@dataclass(slots=True)
class Room:
    """One node, empty at first (``node`` is as it is then)."""

    node: Node
    cpus: int = field(init=False)
    mem_mib: int = field(init=False)
    gpus: list[Gpu] = field(init=False)

    def __post_init__(self) -> None:
        self.cpus, self.mem_mib = self.node.cpus, self.node.mem_mib
        self.gpus = [
            Gpu(at, _shards(pool), pool.mem_mib)
            for at, pool in enumerate(self.node.pools)
            for _ in range(pool.total)
        ]

    def take(self, demand: Demand, gpu_mem_mib: int = 0) -> Taken | None:
        """Take what a job needs here; None where that is not free."""
        cores = self.node.cpus if demand.cpus == ALL_CORES else demand.cpus
        mem_mib = demand.mem_mib if self.node.mem_mib else 0
        chosen = self._gpus(demand, gpu_mem_mib)
        if cores > self.cpus or mem_mib > self.mem_mib or len(chosen) < demand.gpus:
            return None
        gpus = [(gpu, *self._part(gpu, demand, gpu_mem_mib)) for gpu in chosen]
        return self._change(Taken(cores, mem_mib, gpus), -1)

    def give(self, taken: Taken) -> None:
        """Give back what was taken."""
        self._change(taken, 1)

    def _change(self, taken: Taken, sign: int) -> Taken:
        self.cpus += sign * taken.cpus
        self.mem_mib += sign * taken.mem_mib
        for gpu, part, mem_mib in taken.gpus:
            gpu.shards += sign * part
            gpu.mem_mib += sign * mem_mib
            gpu.jobs -= sign
        return taken

    def _gpus(self, demand: Demand, gpu_mem_mib: int) -> list[Gpu]:
        """The GPUs that a job gets: whole ones of one type, or the fullest that has its part."""
        fit = [gpu for gpu in self.gpus if self._has(gpu, demand, gpu_mem_mib)]
        if demand.share > 1:
            return sorted(fit, key=lambda gpu: gpu.shards)[:1]
        types = [list(of) for _, of in groupby(fit, key=lambda gpu: gpu.pool)]
        enough = [of for of in types if len(of) >= demand.gpus]
        return enough[0][: demand.gpus] if enough else []

    def _has(self, gpu: Gpu, demand: Demand, gpu_mem_mib: int) -> bool:
        pool = self.node.pools[gpu.pool]
        if demand.gpu_type not in ("", pool.gpu_type):
            return False
        if demand.share > 1 and (not pool.shards_per_gpu or pool.shards_per_gpu % demand.share):
            return False
        part, mem = self._part(gpu, demand, gpu_mem_mib)
        return part <= gpu.shards and (not pool.counts_mem or mem <= gpu.mem_mib)

    def _part(self, gpu: Gpu, demand: Demand, gpu_mem_mib: int) -> tuple[int, int]:
        pool = self.node.pools[gpu.pool]
        return (_shards(pool) // demand.share, gpu_mem_mib if demand.share > 1 else pool.mem_mib)

    def as_node(self) -> Node:
        """The node as a batch system shows it now."""
        pools = [self._pool(at, pool) for at, pool in enumerate(self.node.pools)]
        return replace(
            self.node, free_cpus=self.cpus, free_mem_mib=self.mem_mib, pools=tuple(pools)
        )

    def _pool(self, at: int, pool: Pool) -> Pool:
        used = [gpu for gpu in self.gpus if gpu.pool == at and gpu.jobs]
        if not pool.shards_per_gpu:
            return replace(pool, free=pool.total - len(used))
        used.sort(key=lambda gpu: (gpu.shards, gpu.jobs, gpu.mem_mib), reverse=True)
        parts = [gpu for gpu in used if gpu.shards]
        return replace(
            pool,
            free=pool.total - len(used),
            parts=tuple(gpu.shards for gpu in parts),
            sharers=tuple(gpu.jobs for gpu in parts),
            parts_mem_mib=tuple(gpu.mem_mib for gpu in used) if pool.counts_mem else (),
        )


def _shards(pool: Pool) -> int:
    return pool.shards_per_gpu or 1


def placed(
    rooms: Iterable[Room], count: int, demand: Demand, gpu_mem_mib: int = 0
) -> list[tuple[Room, Taken]]:
    """Take what a job needs on so many nodes, the first where it is free; [] where it is not."""
    found: list[tuple[Room, Taken]] = []
    for room in rooms:
        taken = room.take(demand, gpu_mem_mib)
        if taken is not None:
            found.append((room, taken))
            if len(found) == count:
                return found
    for room, taken in found:
        room.give(taken)
    return []
