"""Who may share a node with whom on a real cluster, and whom a strategy would send to whom.

Two may where both owners let them share, of one account and of one size, and where they are faster
together than ``least`` as far as was measured. Two of which nothing is known together are worth a
try where the strategy learns and prefers the two to one alone, once both are measured alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from pliant.cosched import Knowledge, Strategy
from pliant.model import ALL_CORES, Combination, Job, Node, Snapshot
from pliant.policies.parting import PAIR, total

Programs = frozenset[tuple[str, str]]
"""What two jobs run, each by its user and name."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When two may share: ``strategy`` chooses among pairs, ``name`` is that of its policy."""

    name: str
    strategy: Strategy
    least: float
    across_accounts: bool


@dataclass(frozen=True, slots=True)
class Sharer:
    """A job that is marked, or could be, and the nodes where it is or could come to."""

    job: Job
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Look:
    """What must be equal of two that share: whose they are, and the GPUs that each has."""

    whose: str
    gpus: tuple[int, int, str]


class Companions:
    """Who may share with whom, worked out once for one decision."""

    def __init__(self, snapshot: Snapshot, rule: Rule) -> None:
        self._snapshot, self._rule = snapshot, rule
        self._nodes: Mapping[str, Node] = {node.name: node for node in snapshot.nodes}
        self._partitions = snapshot.partition_by_name
        self._table = snapshot.company.table
        self._right: dict[Combination, bool] = {}
        self._looks: dict[str, _Look | None] = {}
        self._reaches: dict[object, frozenset[str]] = {}
        self._filled: dict[tuple[int, frozenset[str]], bool] = {}

    def reach(self, job: Job) -> frozenset[str]:
        """Return the nodes that a waiting job could come to by its partitions and features."""
        key = (job.partitions, job.nodes_excluded, job.features)
        if key not in self._reaches:
            found = (self._partitions.get(name) for name in job.partitions)
            names = set(chain.from_iterable(p.nodes for p in found if p)) - job.nodes_excluded
            known = (self._nodes[name] for name in names if name in self._nodes)
            fit = frozenset(node.name for node in known if job.features <= node.features)
            self._reaches[key] = fit
        return self._reaches[key]

    def fills(self, one: Sharer) -> bool:
        """Whether a job takes all CPUs of the nodes where it is, or could come to."""
        key = (one.job.demand(one.job.shape).cpus, one.nodes)
        if key not in self._filled:
            known = (self._nodes[name] for name in one.nodes if name in self._nodes)
            self._filled[key] = all(key[0] in (ALL_CORES, node.cpus) for node in known)
        return self._filled[key]

    # Who may share with whom

    def are_right(self, one: Sharer, other: Sharer) -> bool:
        """Whether two may share a node, be it that they were chosen for each other or not."""
        pair = frozenset((one.job.id, other.job.id))
        known = self._right.get(pair)
        if known is None:
            known = self._right[pair] = self._agree(one, other) and self._is_fast(pair)
        return known

    def is_try(self, one: Job, other: Job) -> bool:
        """Whether nothing is known of two together."""
        return frozenset((one.id, other.id)) not in self._table

    def _agree(self, one: Sharer, other: Sharer) -> bool:
        """Whether both owners, the accounts, the sizes and the GPUs' memory allow it."""
        look = self._look(one)
        return look is not None and look == self._look(other) and self._has_memory(one, other)

    def _look(self, one: Sharer) -> _Look | None:
        """What counts of a job; None: it shares with nobody."""
        job = one.job
        if job.id not in self._looks:
            takes = job.demand(job.shape)
            whose = "" if self._rule.across_accounts else _account(job)
            look = _Look(whose, (takes.gpus, takes.share, takes.gpu_type))
            self._looks[job.id] = look if job.colocates and self.fills(one) else None
        return self._looks[job.id]

    def _has_memory(self, one: Sharer, other: Sharer) -> bool:
        """Whether one GPU has what both need of it, where they take shares.

        One that does not say what it needs may have as large a part of the memory as of the GPU.
        """
        jobs = (one.job, other.job)
        if not all(job.shape.is_share for job in jobs):
            return True
        gpu_mib = self._least_gpu_mib
        return sum(_gpu_mib(job) or gpu_mib // job.shape.share for job in jobs) <= gpu_mib

    @cached_property
    def _least_gpu_mib(self) -> int:
        """Of the smallest GPU in shares; 0: that of one is not known, and nobody counts on it."""
        pools = chain.from_iterable(node.pools for node in self._snapshot.nodes)
        return min((pool.told_mib for pool in pools if pool.shards_per_gpu), default=0)

    def _is_fast(self, pair: Combination) -> bool:
        """Whether two are faster together than ``least``, or are worth a try."""
        speeds = self._table.get(pair)
        if speeds is not None:
            return total(speeds) > self._rule.least
        return all(frozenset((job,)) in self._table for job in pair) and self._tries

    @cached_property
    def _tries(self) -> bool:
        """Whether the strategy tries two of which it is known only how fast each is alone.

        It has nothing else to go by: so it says the same of any two.
        """
        if self._rule.strategy.informed:
            return False
        knowledge = Knowledge(dict.fromkeys(("1", "2"), 1.0))
        return len(next(iter(self._rule.strategy.ranked(knowledge))).tasks) == PAIR

    # Whom a strategy would send to whom

    def partner(self, alone: str, others: Collection[str]) -> str | None:
        """Return the strategy's choice among jobs to run beside one that is alone, by id."""
        jobs = {alone, *others}

        def fits(tasks: Combination) -> bool:
            return len(tasks) < PAIR or (len(tasks) == PAIR and alone in tasks)

        known = {some: self._table[some] for some in _small(jobs) if some in self._table}
        knowledge = Knowledge(dict.fromkeys(sorted(jobs), 1.0), known, fits=fits)
        for stint in self._rule.strategy.ranked(knowledge) if others else ():
            if len(stint.tasks) == PAIR and alone in stint.tasks:
                return min(stint.tasks - {alone})
        return None


def _small(jobs: Iterable[str]) -> Iterable[Combination]:
    """The combinations of jobs of which something can be known: each, and each two."""
    ordered = sorted(jobs)
    yield from (frozenset((one,)) for one in ordered)
    yield from (frozenset((one, two)) for one in ordered for two in ordered if one < two)


def programs(one: Job, other: Job) -> Programs:
    """Return what two jobs run: where one such pair is tried, a second would tell nothing more."""
    return frozenset(((one.user, one.name), (other.user, other.name)))


def _gpu_mib(job: Job) -> int:
    return job.spec.request.gpu_mem_mib if job.spec is not None else 0


def _account(job: Job) -> str:
    """Whose job it is: without accounting there are no accounts, and a user is one."""
    return f"account {job.account}" if job.account else f"user {job.user}"
