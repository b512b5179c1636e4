"""What stands at a site whatever runs there: partitions, their nodes' hardware, abilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from pliant.model import ALL_CORES, Abilities, Demand, Mode, Node, Partition, Snapshot


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What nodes are when nothing runs on them. ``pools``: (type, GPUs, shards a GPU, MiB).

    ``threads``: of a core.
    """

    cpus: int
    mem_mib: int
    pools: tuple[tuple[str, int, int, int], ...]
    threads: int = 1

    def holds(self, demand: Demand) -> bool:
        """Whether such a node could ever provide ``demand``."""
        if demand.cpus > self.cpus or (self.mem_mib and demand.mem_mib > self.mem_mib):
            return False
        pools = [p for p in self.pools if demand.gpu_type in ("", p[0])]
        if demand.share > 1:
            return any(
                gpus and shards and shards % demand.share == 0 for _, gpus, shards, _ in pools
            )
        return sum(gpus for _, gpus, _, _ in pools) >= demand.gpus


@dataclass(frozen=True, slots=True)
class Inventory:
    """What changes only when an administrator changes it.

    ``kinds``: how many nodes of each kind a partition has, by its name. ``known``: what was worked
    out of it (see decide.py); it stands as long as the rest does.
    """

    all_partitions: tuple[Partition, ...]
    abilities: Abilities
    kinds: Mapping[str, Mapping[NodeKind, int]]
    known: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Inventory:
        """Return what a snapshot has of it."""
        known: dict[object, NodeKind] = {}
        kind_of = {node.name: _kind(node, known) for node in snapshot.nodes}
        kinds = {partition.name: _counted(partition, kind_of) for partition in snapshot.partitions}
        return cls(snapshot.partitions, snapshot.abilities, kinds)

    def observing(self) -> Inventory:
        """Return the same with nothing enforced."""
        partitions = tuple(
            replace(p, mode=Mode.OBSERVE) if p.mode is Mode.ENFORCE else p
            for p in self.all_partitions
        )
        return Inventory(partitions, self.abilities, self.kinds)

    def at_most(self, allowed: Callable[[str], Mode]) -> Inventory:
        """Return the same with no partition in a bolder mode than it is ``allowed``, by name."""
        modes = list(Mode)  # the most cautious first
        partitions = tuple(
            replace(p, mode=min(p.mode, allowed(p.name), key=modes.index))
            for p in self.all_partitions
        )
        if partitions == self.all_partitions:
            return self
        return Inventory(partitions, self.abilities, self.kinds)

    def partitions(self, names: str) -> tuple[Partition, ...]:
        """Return the known ones of ``a,b``; the default partition where none is named."""
        wanted = {name for name in names.split(",") if name}
        if not wanted:
            return tuple(p for p in self.all_partitions if p.default)[:1]
        return tuple(p for p in self.all_partitions if p.name in wanted)

    def mode(self, names: str) -> Mode:
        """Return the most cautious mode of the partitions; off where none is known."""
        modes = {partition.mode for partition in self.partitions(names)}
        for mode in (Mode.OFF, Mode.OBSERVE, Mode.ENFORCE):
            if mode in modes:
                return mode
        return Mode.OFF

    def ever(self, names: str, demand: Demand, nodes: int) -> bool:
        """Whether one of the partitions could provide ``demand`` on ``nodes`` nodes when empty."""
        known = self.partitions(names)
        bounding = known if self.abilities.limits_of_all else ()
        if not all(partition.allows(demand, nodes) for partition in bounding):
            return False
        for partition in known:
            if not partition.allows(demand, nodes):
                continue
            kinds = self.kinds[partition.name].items()
            if sum(n for kind, n in kinds if kind.holds(demand)) >= nodes:
                return True
        return False

    def unnoticed_mib(self, names: str) -> int:
        """Return up to how much memory on a node decides nothing in these partitions.

        Each of their nodes has so much, and no limit speaks of so little; 0: not known.
        """
        known = self.partitions(names)
        nodes = [kind.mem_mib for p in known for kind in self.kinds[p.name]]
        limits = [most for p in known for most in (p.max_mem_per_node_mib, p.max_mem_per_cpu_mib)]
        return min([*nodes, *filter(None, limits)], default=0)

    def most_cpus(self, names: str) -> int:
        """Return the most CPUs that one node of these partitions has."""
        known = self.partitions(names)
        return max((kind.cpus for p in known for kind in self.kinds[p.name]), default=0)

    def least_gpu_mib(self, names: str, gpu_type: str) -> int:
        """Return the least memory of the GPUs in shares that a job may come to; 0: not known."""
        kinds = chain.from_iterable(self.kinds[known.name] for known in self.partitions(names))
        pools = (pool for kind in kinds for pool in kind.pools if gpu_type in ("", pool[0]))
        return min((mem for _, _, shards, mem in pools if shards), default=0)

    def splits_cores(self, names: str, demand: Demand) -> bool:
        """Whether tasks would share cores here, in a form that Slurm may refuse."""
        if demand.cpus == ALL_CORES:
            demand = replace(demand, cpus=self.all_cores(names, demand))
        return any(demand.splits_cores(threads) for threads in self.threads(names))

    def threads(self, names: str) -> frozenset[int]:
        """Return the numbers of threads that a core of these partitions has."""
        return frozenset(
            kind.threads for p in self.partitions(names) for kind in self.kinds[p.name]
        )

    def most_gpus(self, names: str) -> int:
        """Return the most GPUs that one node of these partitions has."""
        return max(
            (
                sum(gpus for _, gpus, _, _ in kind.pools)
                for partition in self.partitions(names)
                for kind in self.kinds[partition.name]
            ),
            default=0,
        )

    def shards(self, names: str, gpu_type: str) -> int:
        """Return the shards of one GPU in these partitions; 0 where none, or not one number."""
        found = {
            shards
            for partition in self.partitions(names)
            for kind in self.kinds[partition.name]
            for name, _, shards, _ in kind.pools
            if shards and gpu_type in ("", name)
        }
        return found.pop() if len(found) == 1 else 0

    def all_cores(self, names: str, demand: Demand) -> int:
        """Return the cores of the smallest node that has the GPUs of ``demand``."""
        found = [
            kind.cpus
            for partition in self.partitions(names)
            for kind in self.kinds[partition.name]
            if kind.holds(demand)
        ]
        limits = [partition.max_cpus_per_node for partition in self.partitions(names)]
        return min([*found, *filter(None, limits)], default=1)


def _kind(node: Node, known: dict[object, NodeKind]) -> NodeKind:
    """Return a node's kind, equal ones being one object."""
    pools = tuple([(p.gpu_type, p.total, p.shards_per_gpu, p.told_mib) for p in node.pools])
    key = (node.cpus, node.mem_mib, pools, node.threads_per_core)
    if key not in known:
        known[key] = NodeKind(*key)
    return known[key]


def _counted(partition: Partition, kind_of: Mapping[str, NodeKind]) -> Mapping[NodeKind, int]:
    found = [kind_of[name] for name in partition.nodes if name in kind_of]
    by_id = {id(kind): kind for kind in found}
    return {by_id[id_]: count for id_, count in Counter(map(id, found)).items()}
