"""The cluster of a what-if: as Slurm describes the site's own, or nodes that are all alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pliant.batch.slurm.gres import GPU
from pliant.batch.slurm.node_rows import NodeRow
from pliant.errors import BadInput
from pliant.model import Node, Partition, Pool

ALL = "all"
PLENTY = 1_000_000
"""CPUs of a node where none are counted."""


@dataclass(frozen=True, slots=True)
class SiteCluster:
    """Nodes and partitions, none of which sets a limit. ``by_cpu``: a CPU stands for a GPU.

    ``counts_cpus``: else nodes have as many as anybody asks for. ``name``: "" where it has none.
    """

    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    by_cpu: bool = False
    counts_cpus: bool = True
    name: str = ""

    @property
    def gpus(self) -> int:
        """All that stands for GPUs."""
        return sum(pool.total for node in self.nodes for pool in node.pools)

    @property
    def words(self) -> str:
        """The cluster in a few words: its nodes by what is on them."""
        kinds: dict[str, int] = {}
        for node in self.nodes:
            cpus = f"{node.cpus} CPUs" if self.counts_cpus else ""
            gpus = "" if self.by_cpu else " and ".join(f"{p.total} GPUs" for p in node.pools)
            kind = " and ".join(filter(None, (gpus, cpus)))
            kinds[kind] = kinds.get(kind, 0) + 1
        return ", ".join(_times(count, kind) for kind, count in kinds.items())


def _times(count: int, kind: str) -> str:
    return f"1 node with {kind}" if count == 1 else f"{count} nodes with {kind} each"


def alike(nodes: int, gpus: int, cpus: int) -> SiteCluster:
    """Return ``nodes`` equal nodes; ``cpus`` 0: they are not counted. Raises BadInput."""
    if nodes < 1 or not (gpus or cpus):
        raise BadInput("--nodes goes with --gpus-per-node or --cpus-per-node, or both")
    names = [f"n{number:0{len(str(nodes))}}" for number in range(1, nodes + 1)]
    made = _cluster([(name, gpus, cpus or PLENTY) for name in names], ())
    return replace(made, counts_cpus=bool(cpus))


def from_slurm(
    rows: Iterable[NodeRow], partitions: Sequence[Partition], name: str = ""
) -> SiteCluster:
    """Return the cluster that ``scontrol show node`` and ``show partition`` describe.

    Raises BadInput where it has no nodes that jobs could use.
    """
    sizes = [
        (row.name, sum(gres.count for gres in row.gres if gres.name == GPU), row.cpus)
        for row in rows
        if row.cpus
    ]
    if not sizes:
        raise BadInput("Slurm names no node that has CPUs: --nodes N --gpus-per-node G says others")
    return replace(_cluster(sizes, partitions), name=name)


def _cluster(sizes: Sequence[tuple[str, int, int]], partitions: Sequence[Partition]) -> SiteCluster:
    by_cpu = not any(gpus for _, gpus, _ in sizes)
    nodes = tuple(
        Node(name, cpus, cpus, 0, 0, _pools(cpus if by_cpu else gpus)) for name, gpus, cpus in sizes
    )
    names = {node.name for node in nodes}
    found = [
        Partition(one.name, tuple(n for n in one.nodes if n in names), default=one.default)
        for one in partitions
    ]
    found = [one for one in found if one.nodes]
    if not any(one.default for one in found):
        found.append(Partition(ALL, tuple(node.name for node in nodes), default=True))
    return SiteCluster(nodes, tuple(found), by_cpu)


def _pools(units: int) -> tuple[Pool, ...]:
    return (Pool("", units, units),) if units else ()
