"""What the jobs' reader and writer must know of the cluster: releases, nodes, partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pliant.batch.slurm.gres import GPU, NO_GPU
from pliant.batch.slurm.node_rows import NodeRow
from pliant.batch.slurm.nodes import shards_per_gpu
from pliant.batch.slurm.recent import Recent
from pliant.model import ALL_CORES, Abilities, Demand, Partition

TELLS_SHARDS = (23, 11)
"""From here on a node says how many shards of each GPU are used."""
MODERN = (24, 11)
"""From here on shards become GPUs, and the dummy GRES takes the place of GPUs."""


@dataclass(frozen=True)
class Cluster:
    """One look at the cluster's fixed side, and what was read of jobs with it.

    Of the nodes only what does not change from look to look counts here.
    """

    version: tuple[int, int]
    nodes: Mapping[str, NodeRow]
    partitions: Mapping[str, Partition]
    default_per_cpu_mib: int = 0  # DefMemPerCPU
    preempts: bool = False  # by the partitions' tiers
    user_top: bool = False  # users may give a job's priority to another one of theirs
    stops_behind: str = ""  # why who waits first may stop all behind it
    ending_qos: frozenset[str] = frozenset()  # whose jobs may end those of others
    late_s: int = 0  # for how long nobody may be started though GPUs are free
    read: Recent[object, Any] = field(default_factory=Recent, compare=False)
    _shards: dict[tuple[tuple[str, ...], str], int] = field(default_factory=dict, compare=False)
    _cores: dict[tuple[tuple[str, ...], int, str], int] = field(default_factory=dict, compare=False)
    _threads: dict[tuple[str, ...], frozenset[int]] = field(default_factory=dict, compare=False)
    _holding: Recent[tuple[str, Demand], int] = field(default_factory=Recent, compare=False)
    _alike: dict[str, Counter[NodeRow]] = field(default_factory=dict, compare=False)

    @cached_property
    def fixed(self) -> tuple[object, ...]:
        """All that jobs are read with: clusters that are equal in it read them alike."""
        nodes = (
            (row.name, row.gres, row.cpus, row.threads, row.features) for row in self.nodes.values()
        )
        partitions = tuple(self.partitions.items())
        said = (self.default_per_cpu_mib, self.preempts, self.user_top, self.stops_behind)
        return (self.version, tuple(nodes), partitions, said, self.ending_qos, self.late_s)

    def as_before(self, before: Cluster | None) -> Cluster:
        """Return ``before``, with what was read with it, where nothing fixed has changed."""
        if before is None or before.fixed != self.fixed:
            return self
        before.read.turn()
        before._holding.turn()
        return before

    @cached_property
    def features(self) -> Mapping[str, frozenset[str]]:
        """Features by node."""
        return {row.name: row.features for row in self.nodes.values()}

    @property
    def needs_details(self) -> bool:
        """Whether only the jobs say where shards lie."""
        return self.version < TELLS_SHARDS

    @cached_property
    def ending(self) -> frozenset[str]:
        """The partitions for whose jobs Slurm may end others: of a lower tier, on its nodes."""
        if not self.preempts:
            return frozenset()
        lowest: dict[str, int] = {}
        for one in self.partitions.values():
            lowest |= {node: min(one.tier, lowest.get(node, one.tier)) for node in one.nodes}
        return frozenset(
            name
            for name, one in self.partitions.items()
            if any(lowest[node] < one.tier for node in one.nodes)
        )

    @cached_property
    def abilities(self) -> Abilities:
        """What can be changed on a waiting job here, as measured."""
        return Abilities(
            share_to_whole=self.version >= MODERN,
            whole_to_share=False,
            # 22.05 keeps a count of no GPUs: such a job starts only where a GPU is free.
            gpu_to_cpu=self.version >= MODERN and self.has_no_gpu,
            cpu_to_gpu=True,
            # sched/backfill keeps whole nodes for a job that it plans a start for.
            claims_whole_nodes=True,
        )

    @cached_property
    def has_no_gpu(self) -> bool:
        """Whether every node has the dummy GRES."""
        with_gpus = any(gres.name == GPU for row in self.nodes.values() for gres in row.gres)
        return with_gpus and all(
            any(gres.name == NO_GPU for gres in row.gres) for row in self.nodes.values()
        )

    def rows(self, partitions: tuple[str, ...]) -> list[NodeRow]:
        """Return the nodes of some partitions."""
        names = dict.fromkeys(
            node
            for name in partitions
            if name in self.partitions
            for node in self.partitions[name].nodes
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

    def could_hold(self, partitions: tuple[str, ...], demand: Demand, nodes: int) -> bool:
        """Whether enough nodes of one of the partitions have what ``demand`` takes when empty."""
        return any(
            self.partitions[name].allows(demand, nodes)
            and self._number_holding(name, demand) >= nodes
            for name in partitions
            if name in self.partitions
        )

    def _number_holding(self, partition: str, demand: Demand) -> int:
        kinds = self._kinds(partition).items()
        return self._holding.get(
            (partition, demand),
            lambda: sum(number for row, number in kinds if _holds(row, demand)),
        )

    def _kinds(self, partition: str) -> Mapping[NodeRow, int]:
        """Return how many nodes are alike, by what they have when empty."""
        if partition not in self._alike:
            self._alike[partition] = Counter(
                NodeRow("", row.cpus, 0, row.mem_mib, 0, row.gres, (), frozenset(), up=True)
                for row in self.rows((partition,))
            )
        return self._alike[partition]

    def cores(self, partitions: tuple[str, ...], demand: Demand) -> int:
        """Return a demand's cores; for ALL_CORES those of the smallest node with its GPUs."""
        if demand.cpus != ALL_CORES:
            return demand.cpus
        key = (partitions, demand.gpus, demand.gpu_type)
        if key not in self._cores:
            found = [row.cpus for row in self.rows(partitions) if _has(row, demand) and row.cpus]
            limits = [
                self.partitions[name].max_cpus_per_node
                for name in partitions
                if name in self.partitions
            ]
            self._cores[key] = min([*found, *filter(None, limits)], default=1)
        return self._cores[key]

    def splits_cores(self, partitions: tuple[str, ...], demand: Demand) -> bool:
        """Whether tasks would share cores here, in a form that Slurm may refuse."""
        if partitions not in self._threads:
            self._threads[partitions] = frozenset(row.threads for row in self.rows(partitions))
        whole = replace(demand, cpus=self.cores(partitions, demand))
        return any(whole.splits_cores(threads) for threads in self._threads[partitions])

    def tier(self, partitions: tuple[str, ...]) -> int:
        """Return the highest PriorityTier of some partitions."""
        known = (self.partitions[name].tier for name in partitions if name in self.partitions)
        return max(known, default=0)

    def max_time_s(self, partitions: tuple[str, ...]) -> int:
        """Return the longest time limit that one of these partitions allows; 0: no limit."""
        known = [self.partitions[n].max_time_s for n in partitions if n in self.partitions]
        return 0 if not known or 0 in known else max(known)

    def is_mixed(self, node: str) -> bool:
        """Whether a node has GPUs of several types."""
        row = self.nodes.get(node)
        return row is not None and len({g.type for g in row.gres if g.name == GPU}) > 1


def _has(row: NodeRow, demand: Demand) -> bool:
    gpus = (g for g in row.gres if g.name == GPU and demand.gpu_type in ("", g.type))
    return sum(gpu.count for gpu in gpus) >= demand.gpus


def _holds(row: NodeRow, demand: Demand) -> bool:
    fits = demand.cpus <= row.cpus and demand.mem_mib <= row.mem_mib
    shared = demand.share == 1 or shards_per_gpu(row, demand.gpu_type) % demand.share == 0
    return fits and shared and _has(row, demand)
