"""Vnodes as nodes that policies see.

The vnodes of one host (and queue, and partition) are one node: PBS may break a chunk over them, as
where each GPU is a vnode of its own. A vnode with a GPU in shares is a node of its own: PBS breaks
no part of a GPU, so a job with one has its cores and memory from the same vnode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pliant.batch.pbs.node_rows import NodeRow
from pliant.batch.pbs.values import number, real, size_mib
from pliant.model import ALL_CORES, Demand, Node, Pool

SHARDS = 5040
"""Into how many parts a GPU in shares is divided here: by all numbers up to 10, and many others."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the site's own resources are called; "": there is none.

    ``gpu_type``: of nodes and chunks, the type of their GPUs. ``share``: a float, of which each GPU
    in shares has 1. ``gpu_mem``: of vnodes, the memory of their GPU.
    """

    gpu_type: str = ""
    share: str = ""
    gpu_mem: str = ""


NO_NAMES = Names()
NOWHERE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Capacity:
    """What nodes that are alike have when nothing runs."""

    queue: str
    partition: str
    gpus: tuple[tuple[str, int], ...]
    cpus: int
    mem_mib: int
    in_shares: bool = False

    def holds(self, demand: Demand) -> bool:
        """Whether one of them has what ``demand`` takes."""
        enough = self.cpus >= demand.cpus and self.mem_mib >= demand.mem_mib
        return enough and self.has_gpus(demand)

    def has_gpus(self, demand: Demand) -> bool:
        """Whether one of them has a demand's GPUs."""
        some = [many for kind, many in self.gpus if demand.gpu_type in ("", kind)]
        return sum(some) >= demand.gpus and self.in_shares is (demand.share > 1)


class Vnodes:
    """All vnodes, and which node each belongs to."""

    def __init__(
        self,
        rows: Iterable[NodeRow] = (),
        names: Names = NO_NAMES,
        partitions: Mapping[str, str] = NOWHERE,
    ) -> None:
        """``partitions``: those of queues; PBS starts a queue's jobs on vnodes of its own alone."""
        groups: dict[tuple[str, str, str, str], list[NodeRow]] = {}
        for row in rows:
            own = row.name if _in_shares(row, names) else ""
            host = row.has.get("host", row.name)
            groups.setdefault((host, row.queue, row.partition, own), []).append(row)
        self._names, self._partitions = names, partitions
        self.of: Mapping[str, Sequence[NodeRow]] = {
            _name(host, group): group for (host, *_), group in groups.items()
        }
        self._place = {row.name: name for name, group in self.of.items() for row in group}
        self._in_shares = {name for name, group in self.of.items() if _in_shares(group[0], names)}
        self._in_one_set: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._capacities = Counter(map(self._capacity, self.of.values()))

    def places(self, vnodes: Iterable[str]) -> tuple[str, ...]:
        """Return the nodes of some vnodes, each once.

        Where a job has whole GPUs too, what it has of a vnode with shares is cores alone.
        """
        found = self.owners(vnodes)
        return tuple(name for name in found if name not in self._in_shares) or found

    def owners(self, vnodes: Iterable[str]) -> tuple[str, ...]:
        """Return the nodes to which some vnodes belong, each once."""
        return tuple(dict.fromkeys(self._place.get(name, name) for name in vnodes))

    def serves(self, nodes: NodeRow | Capacity, queue: str) -> bool:
        """Whether jobs of a queue may run there."""
        of_queue = nodes.queue in ("", queue)
        return of_queue and nodes.partition == self._partitions.get(queue, "")

    def of_queue(self, queue: str) -> tuple[str, ...]:
        """Return the nodes where jobs of a queue may run."""
        return tuple(name for name, group in self.of.items() if self.serves(group[0], queue))

    def in_one_set(self, queue: str, keys: Iterable[str]) -> bool:
        """Whether all nodes of a queue lie in one of the placement sets that some resources make.

        A vnode with several values lies in several sets; one that says nothing, in none for sure.
        """
        asked = (queue, tuple(keys))
        if asked not in self._in_one_set:  # once a look, and not for each job
            serving = (group for group in self.of.values() if self.serves(group[0], queue))
            rows = [row for group in serving for row in group]
            self._in_one_set[asked] = any(_shared_values(rows, key) for key in asked[1])
        return self._in_one_set[asked]

    def holding(self, queue: str, demand: Demand) -> int:
        """Return how many nodes of a queue have what ``demand`` takes when they are empty."""
        return sum(
            many
            for one, many in self._capacities.items()
            if self.serves(one, queue) and one.holds(demand)
        )

    def cores(self, queue: str, demand: Demand) -> int:
        """Return a demand's cores; for ALL_CORES those of the smallest node with its GPUs."""
        if demand.cpus != ALL_CORES:
            return demand.cpus
        found = (
            one.cpus
            for one in self._capacities
            if self.serves(one, queue) and one.cpus and one.has_gpus(demand)
        )
        return min(found, default=1)

    def nodes(self) -> tuple[Node, ...]:
        """Return them as they are now."""
        return tuple(self._node(name, group) for name, group in self.of.items())

    def _node(self, name: str, group: Sequence[NodeRow]) -> Node:
        up = [row for row in group if row.up]
        some = up or group
        mem = [row.mem_mib for row in some]
        shared = _in_shares(group[0], self._names)
        return Node(
            name=name,
            cpus=sum(number(row.has.get("ncpus")) for row in some),
            free_cpus=sum(row.left("ncpus") for row in some),
            mem_mib=sum(total for total, _ in mem),
            free_mem_mib=sum(free for _, free in mem),
            pools=(self._shared(group[0]),) if shared else self._pools(some),
            up=bool(up),
        )

    def _pools(self, rows: Sequence[NodeRow]) -> tuple[Pool, ...]:
        total, free = Counter[str](), Counter[str]()
        for row in rows:
            kind = self._type(row)
            total[kind] += number(row.has.get("ngpus"))
            free[kind] += row.left("ngpus")
        return tuple(Pool(kind, many, free[kind]) for kind, many in total.items() if many)

    def _shared(self, row: NodeRow) -> Pool:
        left = int(min(1.0, row.part_left(self._names.share)) * SHARDS + 1e-6)
        parts = (left,) if left > 0 else ()
        mem_mib = size_mib(row.has.get(self._names.gpu_mem))
        kind = self._type(row)
        return Pool(kind, 1, 0, SHARDS, parts, told_mib=mem_mib, in_parts_alone=True)

    def _capacity(self, rows: Sequence[NodeRow]) -> Capacity:
        pools = self._pools(rows)
        shared = _in_shares(rows[0], self._names)
        return Capacity(
            rows[0].queue,
            rows[0].partition,
            ((self._type(rows[0]), 1),) if shared else tuple((p.gpu_type, p.total) for p in pools),
            sum(number(row.has.get("ncpus")) for row in rows),
            sum(row.mem_mib[0] for row in rows),
            shared,
        )

    def _type(self, row: NodeRow) -> str:
        return row.has.get(self._names.gpu_type, "").partition(",")[0]


def _shared_values(rows: Sequence[NodeRow], key: str) -> set[str]:
    """Return the values of a resource that all of some vnodes have."""
    values = ({*row.has.get(key, "").split(",")} - {""} for row in rows)
    return set.intersection(*values) if rows else set()


def _in_shares(row: NodeRow, names: Names) -> bool:
    return names.share != "" and real(row.has.get(names.share)) > 0.0


def _name(host: str, group: Sequence[NodeRow]) -> str:
    """Return how a node is called: like its host's own vnode, if that is of it."""
    names = [row.name for row in group]
    return next((name for name in names if name.partition(".")[0] == host), names[0])
