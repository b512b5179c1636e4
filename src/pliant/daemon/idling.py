"""Whose the GPUs are at one moment, partition by partition. Pure.

A GPU of which a part is lent counts by its parts. *Avoidable* is what stands free although the last
decision has a waiting flagged job for it; where Pliant acts, that is so for the moment until the
batch system has started the job, and where it only observes, for as long as the job waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pliant.model import Node, Pool, Shape, Snapshot
from pliant.plan import Plan

ALL = ""
"""In place of a partition: all nodes, each counted once."""


@dataclass(slots=True)
class Use:
    """How many GPUs are whose: of flagged jobs, of others, free, free for no good reason, down."""

    flagged: float = 0.0
    other: float = 0.0
    idle: float = 0.0
    avoidable: float = 0.0
    down: float = 0.0

    def add(self, other: Use) -> None:
        """Add the GPUs of another node."""
        self.flagged += other.flagged
        self.other += other.other
        self.idle += other.idle
        self.avoidable += other.avoidable
        self.down += other.down


def gpu_use(snapshot: Snapshot, decided: Plan) -> Mapping[str, Use]:
    """Return whose the GPUs are, by partition; a node in two partitions counts in both.

    ``decided``: what would be done if every partition were enforced.
    """
    flagged = _by_node((job.shape, [job.nodes]) for job in snapshot.running if job.spec is not None)
    wanted = _by_node((s.shape, s.all_nodes) for s in decided.starts if s.job.spec is not None)
    nodes = {
        node.name: _use(node, flagged.get(node.name, 0.0), wanted.get(node.name, 0.0))
        for node in snapshot.nodes
        if node.pools
    }
    found = {ALL: _sum(nodes.values())}
    for partition in snapshot.partitions:
        found[partition.name] = _sum(nodes[name] for name in partition.nodes if name in nodes)
    return found


def _by_node(places: Iterable[tuple[Shape, Iterable[Iterable[str]]]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for node, gpus in _each(places):
        found[node] = found.get(node, 0.0) + gpus
    return found


def _each(
    places: Iterable[tuple[Shape, Iterable[Iterable[str]]]],
) -> Iterator[tuple[str, float]]:
    for shape, tasks in places:
        if shape.gpus:
            each = shape.gpus / shape.share
            yield from ((node, each) for nodes in tasks for node in nodes)


def _use(node: Node, flagged: float, wanted: float) -> Use:
    total = float(sum(pool.total for pool in node.pools))
    free = sum(map(_free, node.pools))
    taken = total - free
    of_flagged = min(flagged, taken)
    if not node.up:
        return Use(of_flagged, taken - of_flagged, down=free)
    avoidable = min(wanted, free)
    return Use(of_flagged, taken - of_flagged, free - avoidable, avoidable)


def _free(pool: Pool) -> float:
    shards = pool.shards_per_gpu
    return pool.free + (sum(pool.parts) / shards if shards else 0.0)


def _sum(nodes: Iterable[Use]) -> Use:
    found = Use()
    for use in nodes:
        found.add(use)
    return found
