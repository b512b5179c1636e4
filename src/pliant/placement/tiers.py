"""Who starts before all others, whatever their priority: jobs of a partition of a higher tier.

Slurm looks at the PriorityTier of a partition before it looks at priorities (slurm.conf(5)), and no
priority of ours reaches above it. So between two runs of a job such a one may have its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from pliant.model import ALL_CORES, Demand, Job, Node, Shape, Snapshot


@dataclass(slots=True)
class _Alike:
    """Jobs that wait in the same partitions for as much of a node, in the order of the queue."""

    partitions: tuple[str, ...]
    demand: Demand
    tasks: dict[str, int] = field(default_factory=dict)  # by job
    total: int = 0

    def without(self, guest: str) -> _Alike:
        if guest not in self.tasks:
            return self
        tasks = {**self.tasks, guest: self.tasks[guest] - 1}  # one task of an array
        left = {job: number for job, number in tasks.items() if number}
        return _Alike(self.partitions, self.demand, left, self.total - 1)


class Tiers:
    """The tiers of a snapshot's jobs; where there is but one, as in most clusters, none matters."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known = snapshot.partition_by_name
        self._lowest = min((one.tier for one in snapshot.partitions), default=0)
        self._matter = any(one.tier > self._lowest for one in snapshot.partitions)
        self._theirs: dict[tuple[tuple[str, ...], int], frozenset[str]] = {}

    def of(self, job: Job) -> int:
        """Return the highest tier of its partitions."""
        return max((self._known[p].tier for p in job.partitions if p in self._known), default=0)

    def overtaken(self, job: Job, shape: Shape, guest: str = "") -> str:
        """Return who could have the place of a running job that comes back as ``shape``, in words.

        "" for nobody. What it gives up they may have, all of them. Where it makes room for a
        ``guest``, neither they are to have that nor it itself. Nothing is reckoned with that may
        end meanwhile.
        """
        if not self._matter:
            return ""
        own = self.of(job)
        tier = min(own, self.of(self._by_id[guest])) if guest in self._by_id else own
        if tier < own:
            return f"its partition has a higher PriorityTier than those of job {guest}"
        nodes = [self._nodes[name] for name in job.nodes if name in self._nodes]
        before = [*self._before(job, tier, nodes, guest)]
        if not before or all(_has_room(before, node, job, shape) for node in nodes):
            return ""
        first = next(iter(before[0].tasks))
        return f"job {first}, of a partition of a higher PriorityTier, could start in its place"

    @cached_property
    def _by_id(self) -> dict[str, Job]:
        return {one.id: one for one in self._snapshot.waiting}

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self._snapshot.nodes}

    @cached_property
    def _above(self) -> Sequence[_Alike]:
        """Who waits, and goes before somebody."""
        found: dict[tuple[tuple[str, ...], Demand], _Alike] = {}
        for job in self._snapshot.waiting:
            if job.eligible and self.of(job) > self._lowest:
                demand = job.demand(job.shape)
                alike = found.setdefault((job.partitions, demand), _Alike(job.partitions, demand))
                alike.tasks[job.id] = job.tasks_waiting
                alike.total += job.tasks_waiting
        return [*found.values()]

    def _before(self, job: Job, tier: int, nodes: Iterable[Node], guest: str) -> Iterator[_Alike]:
        """Yield who waits in a higher tier, and could start where the job runs."""
        has = job.demand(job.shape)
        for alike in self._above:
            theirs = self._of_higher(alike.partitions, tier)
            if any(_fits(alike.demand, n, has) for n in nodes if n.name in theirs):
                left = alike.without(guest)
                if left.total:
                    yield left

    def _of_higher(self, partitions: tuple[str, ...], tier: int) -> frozenset[str]:
        """The nodes of those partitions that are of a higher tier."""
        key = (partitions, tier)
        if key not in self._theirs:
            known = (self._known[name] for name in partitions if name in self._known)
            self._theirs[key] = frozenset(n for one in known if one.tier > tier for n in one.nodes)
        return self._theirs[key]


def _fits(need: Demand, node: Node, has: Demand) -> bool:
    """Whether a job could be on a node in place of one that has so much of it."""
    in_part = sum(len(pool.parts) for pool in node.pools)
    cpus = node.cpus if has.cpus == ALL_CORES else node.free_cpus + has.cpus
    return _gpus(need) <= _free_gpus(node) + in_part + _gpus(has) and need.cpus <= cpus


def _has_room(before: Sequence[_Alike], node: Node, job: Job, shape: Shape) -> bool:
    """Whether they all have room beside a job that comes back so, should they be on one node.

    None is reckoned with where it may lie otherwise on its nodes.
    """
    needs = [(alike.demand, alike.total) for alike in before]
    has, keeps = job.demand(job.shape), job.demand(shape)
    whole = ALL_CORES in (has.cpus, keeps.cpus, *[need.cpus for need, _ in needs])
    if shape.nodes != job.shape.nodes or whole:
        return False
    gpus = _free_gpus(node) + _gpus(has) - _gpus(keeps)
    cpus = node.free_cpus + has.cpus - keeps.cpus
    wanted = sum((_gpus(need) * tasks for need, tasks in needs), Fraction(0))
    return wanted <= gpus and sum(need.cpus * tasks for need, tasks in needs) <= cpus


def _free_gpus(node: Node) -> int:
    return sum(pool.free for pool in node.pools)


def _gpus(demand: Demand) -> Fraction:
    return Fraction(demand.gpus, demand.share)
