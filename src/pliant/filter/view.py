"""What the filter knows of the cluster: the latest snapshot, and what is left of the hole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from pliant.model import (
    ALL_CORES,
    Abilities,
    Demand,
    Job,
    Mode,
    Node,
    Partition,
    Shape,
    Snapshot,
)


class FreeLike(Protocol):
    """What no job of the last plan takes; :class:`pliant.placement.Free` is one."""

    def fit(self, job: Job, shape: Shape) -> tuple[str, ...] | None:
        """Return the nodes that ``job`` could start on now as ``shape``."""
        ...

    def take(self, job: Job, shape: Shape, nodes: Iterable[str]) -> object:
        """Give them to ``job``, so that the next submission sees less."""
        ...


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What nodes are when nothing runs on them. ``pools``: (type, GPUs, shards a GPU, MiB)."""

    cpus: int
    mem_mib: int
    pools: tuple[tuple[str, int, int, int], ...]

    def holds(self, demand: Demand, gpu_mem_mib: int = 0) -> bool:
        """Whether such a node could ever provide ``demand``."""
        if demand.cpus > self.cpus or (self.mem_mib and demand.mem_mib > self.mem_mib):
            return False
        pools = [p for p in self.pools if demand.gpu_type in ("", p[0])]
        if demand.share > 1:
            return any(
                shards and shards % demand.share == 0 and (not mem or mem >= gpu_mem_mib * share)
                for _, gpus, shards, mem in pools
                if gpus and (share := demand.share)
            )
        return sum(gpus for _, gpus, _, _ in pools) >= demand.gpus

    def cores(self, demand: Demand) -> int:
        """Return the cores that ``demand`` takes here."""
        return self.cpus if demand.cpus == ALL_CORES else demand.cpus


@dataclass(frozen=True, slots=True)
class View:
    """What is known when a job is submitted; pliantd makes a new one after each cycle.

    ``free`` None: nothing is known to be free. ``molds``: whether the policy chooses shapes; one
    that does not leaves every job at the shape its owner wrote.
    """

    snapshot: Snapshot
    free: FreeLike | None = None
    molds: bool = True
    _kinds: dict[str, dict[NodeKind, int]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def abilities(self) -> Abilities:
        """What can be changed on a waiting job here."""
        return self.snapshot.abilities

    def partitions(self, names: str) -> tuple[Partition, ...]:
        """Return the known ones of ``a,b``; the default partition where none is named."""
        wanted = [name for name in names.split(",") if name]
        if not wanted:
            return tuple(p for p in self.snapshot.partitions if p.default)[:1]
        return tuple(p for p in self.snapshot.partitions if p.name in wanted)

    def mode(self, names: str) -> Mode:
        """Return the most cautious mode of the partitions; off where none is known."""
        modes = {partition.mode for partition in self.partitions(names)}
        for mode in (Mode.OFF, Mode.OBSERVE, Mode.ENFORCE):
            if mode in modes:
                return mode
        return Mode.OFF

    def kinds(self, partition: Partition) -> dict[NodeKind, int]:
        """Return the kinds of a partition's nodes and how many there are of each."""
        known = self._kinds.get(partition.name)
        if known is None:
            names = frozenset(partition.nodes)
            counts = Counter(_static(n) for n in self.snapshot.nodes if n.name in names)
            known = self._kinds[partition.name] = {
                NodeKind(cpus, mem_mib, pools): count
                for (cpus, mem_mib, pools), count in counts.items()
            }
        return known

    def ever(self, names: str, demand: Demand, nodes: int, gpu_mem_mib: int = 0) -> bool:
        """Whether one of the partitions could provide ``demand`` on ``nodes`` nodes when empty."""
        known = self.partitions(names)
        bounding = known if self.abilities.limits_of_all else ()
        if not all(partition.allows(demand, nodes) for partition in bounding):
            return False
        for partition in known:
            if not partition.allows(demand, nodes):
                continue
            kinds = self.kinds(partition).items()
            if sum(n for kind, n in kinds if kind.holds(demand, gpu_mem_mib)) >= nodes:
                return True
        return False

    def most_gpus(self, names: str) -> int:
        """Return the most GPUs that one node of these partitions has."""
        return max(
            (
                sum(gpus for _, gpus, _, _ in kind.pools)
                for partition in self.partitions(names)
                for kind in self.kinds(partition)
            ),
            default=0,
        )

    def shards(self, names: str, gpu_type: str) -> int:
        """Return the shards of one GPU in these partitions; 0 where none, or not one number."""
        found = {
            shards
            for partition in self.partitions(names)
            for kind in self.kinds(partition)
            for name, _, shards, _ in kind.pools
            if shards and gpu_type in ("", name)
        }
        return found.pop() if len(found) == 1 else 0

    def all_cores(self, names: str, demand: Demand) -> int:
        """Return the cores of the smallest node that has the GPUs of ``demand``."""
        found = [
            kind.cpus
            for partition in self.partitions(names)
            for kind in self.kinds(partition)
            if kind.holds(demand)
        ]
        limits = [partition.max_cpus_per_node for partition in self.partitions(names)]
        return min([*found, *filter(None, limits)], default=1)


def _static(node: Node) -> tuple[int, int, tuple[tuple[str, int, int, int], ...]]:
    pools = [(p.gpu_type, p.total, p.shards_per_gpu, p.mem_mib) for p in node.pools]
    return (node.cpus, node.mem_mib, tuple(pools))
