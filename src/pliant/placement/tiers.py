"""Who starts before all others, whatever their priority: jobs of a partition of a higher tier.

Slurm looks at the PriorityTier of a partition before it looks at priorities (slurm.conf(5)), and no
priority of ours reaches above it. So between two runs of a job such a one may have its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from pliant.model import ALL_CORES, Demand, Job, Node, Shape, Snapshot


class Tiers:
    """The tiers of a snapshot's jobs; where there is but one, as in most clusters, none matters."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known = {one.name: one for one in snapshot.partitions}
        self._matter = len({one.tier for one in snapshot.partitions}) > 1

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
        tier = own = self.of(job)
        for one in self._snapshot.waiting:
            if one.id == guest:
                tier = min(own, self.of(one))
        if tier < own:
            return f"its partition has a higher PriorityTier than those of job {guest}"
        nodes = [node for node in self._snapshot.nodes if node.name in job.nodes]
        before = [one for one in self._before(job, tier, nodes) if one.id != guest]
        if not before or all(_has_room(before, node, job, shape) for node in nodes):
            return ""
        return (
            f"job {before[0].id}, of a partition of a higher PriorityTier, could start in its place"
        )

    def _before(self, job: Job, tier: int, nodes: Iterable[Node]) -> Iterator[Job]:
        """Yield who waits in a higher tier, and could start where the job runs."""
        has = job.demand(job.shape)
        for one in self._snapshot.waiting:
            higher = [self._known[p] for p in one.partitions if p in self._known]
            theirs = {name for p in higher if p.tier > tier for name in p.nodes}
            if one.eligible and any(_fits(one, n, has) for n in nodes if n.name in theirs):
                yield one


def _fits(one: Job, node: Node, has: Demand) -> bool:
    """Whether a job could be on a node in place of one that has so much of it."""
    need, in_part = one.demand(one.shape), sum(len(pool.parts) for pool in node.pools)
    cpus = node.cpus if has.cpus == ALL_CORES else node.free_cpus + has.cpus
    return _gpus(need) <= _free_gpus(node) + in_part + _gpus(has) and need.cpus <= cpus


def _has_room(jobs: Iterable[Job], node: Node, job: Job, shape: Shape) -> bool:
    """Whether they all have room beside a job that comes back so, should they be on one node.

    None is reckoned with where it may lie otherwise on its nodes.
    """
    needs = [(one.demand(one.shape), one.tasks_waiting) for one in jobs]
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
