"""What the jobs' reader and writer must know of the cluster: releases, nodes, partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.batch.slurm.gres import GPU, NO_GPU
from pliant.batch.slurm.node_rows import NodeRow
from pliant.batch.slurm.nodes import shards_per_gpu
from pliant.batch.slurm.partition_rows import PartitionRow
from pliant.model import ALL_CORES, Abilities, Demand

TELLS_SHARDS = (23, 11)
"""From here on a node says how many shards of each GPU are used, and shard -> gpu works."""
EMPTY_LIST_WORKS = (22, 5)
"""The release that removes a waiting job's GPUs for an empty TresPerNode."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One look at the cluster's fixed side."""

    version: tuple[int, int]
    nodes: Mapping[str, NodeRow]
    partitions: Mapping[str, PartitionRow]
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by node
    default_per_cpu_mib: int = 0  # DefMemPerCPU
    _shards: dict[tuple[tuple[str, ...], str], int] = field(default_factory=dict)
    _cores: dict[tuple[tuple[str, ...], int, str], int] = field(default_factory=dict)

    @property
    def needs_details(self) -> bool:
        """Whether only the jobs say where shards lie."""
        return self.version < TELLS_SHARDS

    @property
    def empties(self) -> bool:
        """Whether an empty ``TresPerNode=`` removes a waiting job's GRES (24.11 ignores it)."""
        return self.version[0] == EMPTY_LIST_WORKS[0]

    def abilities(self) -> Abilities:
        """Return what can be changed on a waiting job here (measured, see docs)."""
        return Abilities(
            share_to_whole=self.version >= (24, 11),
            whole_to_share=False,
            # 22.05 keeps a count of no GPUs: such a job starts only where a GPU is free.
            gpu_to_cpu=self.has_no_gpu and not self.empties,
            cpu_to_gpu=True,
        )

    @property
    def has_no_gpu(self) -> bool:
        """Whether every node with GPUs has the dummy GRES."""
        with_gpus = [row for row in self.nodes.values() if any(g.name == GPU for g in row.gres)]
        return bool(with_gpus) and all(
            any(gres.name == NO_GPU for gres in row.gres) for row in self.nodes.values()
        )

    def rows(self, partitions: tuple[str, ...]) -> list[NodeRow]:
        """Return the nodes of some partitions."""
        names = dict.fromkeys(
            node
            for name in partitions
            if name in self.partitions
            for node in self.partitions[name].partition.nodes
        )
        return [self.nodes[name] for name in names if name in self.nodes]

    def shards(self, partitions: tuple[str, ...], gpu_type: str) -> int:
        """Return the shards of one GPU in these partitions; 0 where none, or not one number."""
        key = (partitions, gpu_type)
        if key not in self._shards:
            found = {
                shards_per_gpu(row, gpu.type)
                for row in self.rows(partitions)
                for gpu in row.gres
                if gpu.name == GPU and gpu_type in ("", gpu.type)
            } - {0}
            self._shards[key] = found.pop() if len(found) == 1 else 0
        return self._shards[key]

    def cores(self, partitions: tuple[str, ...], demand: Demand) -> int:
        """Return a demand's cores; for ALL_CORES those of the smallest node with its GPUs."""
        if demand.cpus != ALL_CORES:
            return demand.cpus
        key = (partitions, demand.gpus, demand.gpu_type)
        if key not in self._cores:
            found = [row.cpus for row in self.rows(partitions) if _has(row, demand) and row.cpus]
            self._cores[key] = min(found, default=1)
        return self._cores[key]

    def tier(self, partitions: tuple[str, ...]) -> int:
        """Return the highest PriorityTier of some partitions."""
        known = (self.partitions[name].tier for name in partitions if name in self.partitions)
        return max(known, default=0)

    def max_time_s(self, partitions: tuple[str, ...]) -> int:
        """Return the longest time limit that one of these partitions allows; 0: no limit."""
        known = [
            self.partitions[n].partition.max_time_s for n in partitions if n in self.partitions
        ]
        return 0 if not known or 0 in known else max(known)

    def is_mixed(self, node: str) -> bool:
        """Whether a node has GPUs of several types."""
        row = self.nodes.get(node)
        return row is not None and len({g.type for g in row.gres if g.name == GPU}) > 1


def _has(row: NodeRow, demand: Demand) -> bool:
    gpus = (g for g in row.gres if g.name == GPU and demand.gpu_type in ("", g.type))
    return sum(gpu.count for gpu in gpus) >= demand.gpus
