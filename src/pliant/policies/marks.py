"""Who shares a node with whom on a real cluster: by marks, which let jobs share, and by parting.

A node is shared by two jobs of which each asks for all of its CPUs. The batch system pairs by
itself any two that are marked, and a mark that a job has when it starts cannot be taken back. So a
mark is a standing permission, also once nobody looks any more, and it is given only so that

- any two that are marked and could come together are a pair that is right: of owners who let their
  jobs share (``--colocate``), of one account, of one size, and together faster than ``least``, as
  far as was measured; where nothing is known of them together, only a strategy that learns pairs
  them, and only if both are measured alone by counters or heartbeats, which see interference;
- a job that is right beside all that it could meet is marked wherever it starts; one that is right
  only beside the job that has a node alone now is marked for that node, where it can start now, and
  could not start without company (``starting``: who could);
- nobody shares a node whose memory the batch system does not count;
- no more wait with a mark than there are nodes, and any that should not have one loses it.

Who is parted, says :mod:`.parting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pliant.cosched import Knowledge, Strategy
from pliant.model import (
    ALL_CORES,
    ANYWHERE,
    UNMARKED,
    Combination,
    Job,
    JobState,
    Mode,
    Node,
    Snapshot,
)
from pliant.placement import limit_s
from pliant.plan import Mark
from pliant.policies.parting import PAIR, stays, told, total

WINDOW = 10
"""Of how many waiting jobs that could share is looked for partners."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When two may share: ``strategy`` chooses among pairs, ``name`` is that of its policy."""

    name: str
    strategy: Strategy
    least: float
    across_accounts: bool


@dataclass(frozen=True, slots=True)
class _Sharer:
    """A job that is marked, or could be, and the nodes where it is or could come to."""

    job: Job
    nodes: frozenset[str]

    @property
    def runs(self) -> bool:
        return self.job.state is not JobState.WAITING


class Marks:
    """One decision on all that share."""

    def __init__(self, snapshot: Snapshot, rule: Rule, starting: frozenset[str]) -> None:
        self._snapshot, self._rule, self._starting = snapshot, rule, starting
        self._table = snapshot.company.table
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._shared = {
            p.name: p.nodes
            for p in snapshot.partitions
            if p.sharers == PAIR and p.mode is not Mode.OFF and p.up
        }
        self._right: dict[Combination, bool] = {}

    def marks(self) -> tuple[Mark, ...]:
        """Return the marks to give and to take, in the order of the queue."""
        wanted = self._wanted()
        found = []
        for job in self._snapshot.waiting:
            mark, reason = wanted.get(job.id, (UNMARKED, "it is not to start beside others now"))
            if mark != (job.mark or UNMARKED):
                found.append(Mark(job, mark, reason))
        return tuple(found)

    def _wanted(self) -> dict[str, tuple[str, str]]:
        if not self._shared:
            return {}
        could = [sharer for job in self._snapshot.waiting if (sharer := self._could(job))]
        ours = {sharer.job.id for sharer in could}
        could = could[:WINDOW]
        there = [_Sharer(job, frozenset(job.nodes)) for job in self._snapshot.running if job.shares]
        there += [
            _Sharer(job, self._reach(job))  # marked by its owner
            for job in self._snapshot.waiting
            if job.shares and not job.mark and job.id not in ours
        ]
        return self._choose(could, there)

    def _choose(self, could: list[_Sharer], there: list[_Sharer]) -> dict[str, tuple[str, str]]:
        """Choose partners for those that are alone on a node, then who may start anywhere."""
        wanted: dict[str, tuple[str, str]] = {}
        for alone, node in self._alone(there):
            taken = wanted.keys() | self._starting
            left = [one for one in could if one.job.id not in taken]
            partner = self._partner(alone, node, left, there)
            if partner is not None:
                anywhere = self._fits_all(partner, there)
                mark = ANYWHERE if anywhere else node.name
                there.append(partner if anywhere else _Sharer(partner.job, frozenset((node.name,))))
                wanted[partner.job.id] = (mark, self._words(partner.job, alone, node))
        most = len({name for nodes in self._shared.values() for name in nodes})
        for one in could:
            if len(wanted) < most and one.job.id not in wanted and self._fits_all(one, there):
                there.append(one)
                wanted[one.job.id] = (ANYWHERE, "it may share a node with any that is marked now")
        return wanted

    # Who could share

    def _could(self, job: Job) -> _Sharer | None:
        """A waiting job that could be marked, and where it could start."""
        said = job.spec
        mine = said is not None and (not job.shares or job.mark != "")
        whole = job.shape.nodes == 1 and job.tasks_waiting == 1 and not job.array_tasks
        free = job.eligible and not job.limited and not job.frozen and not job.reservation
        named = job.nodes_required not in ((), (job.mark,))
        if not (job.colocates and mine and whole and free) or named or job.room_for:
            return None
        if said is None or said.pinned or not self._shared.keys() >= {*job.partitions}:
            return None
        nodes = self._reach(job)
        counted = all(self._nodes[name].mem_mib for name in nodes)
        return _Sharer(job, nodes) if nodes and counted and self._fills(job) else None

    def _reach(self, job: Job) -> frozenset[str]:
        """The nodes that a waiting job could come to by its partitions and features."""
        partitions = self._snapshot.partition_by_name
        names = {n for p in job.partitions if p in partitions for n in partitions[p].nodes}
        known = (self._nodes[name] for name in names - job.nodes_excluded if name in self._nodes)
        return frozenset(node.name for node in known if job.features <= node.features)

    def _alone(self, there: list[_Sharer]) -> Iterator[tuple[Job, Node]]:
        """Jobs that share and have a node alone now, in the order of the nodes."""
        number = Counter(name for job in self._snapshot.running for name in job.nodes)
        marked = {name: one.job for one in there if one.runs for name in one.nodes}
        for node in self._snapshot.nodes:
            job = marked.get(node.name)
            if job is not None and number[node.name] == 1 and node.up and stays(job):
                yield job, node

    # Who may share with whom

    def _fits_all(self, one: _Sharer, there: list[_Sharer]) -> bool:
        """Whether a job is right beside all that it could meet."""
        others = (other for other in there if other.job.id != one.job.id)
        return all(
            self._is_right(one.job, other.job)
            for other in others
            if not one.nodes.isdisjoint(other.nodes)
        )

    def _is_right(self, one: Job, other: Job) -> bool:
        pair = frozenset((one.id, other.id))
        if pair not in self._right:
            self._right[pair] = self._agree(one, other) and self._is_fast(pair)
        return self._right[pair]

    def _agree(self, one: Job, other: Job) -> bool:
        """Whether both owners, the accounts and the sizes allow it."""
        agree = one.colocates and other.colocates
        known = self._rule.across_accounts or _account(one) == _account(other)
        return agree and known and self._are_alike(one, other) and self._has_memory(one, other)

    def _are_alike(self, one: Job, other: Job) -> bool:
        """Whether each takes all CPUs of its nodes, and as many GPUs as the other."""
        gpus = [
            (takes.gpus, takes.share, takes.gpu_type)
            for takes in (job.demand(job.shape) for job in (one, other))
        ]
        return gpus[0] == gpus[1] and self._fills(one) and self._fills(other)

    def _fills(self, job: Job) -> bool:
        """Whether a job takes all CPUs of the nodes where it is, or could come to."""
        cpus = job.demand(job.shape).cpus
        names = job.nodes or self._reach(job)
        return all(cpus in (ALL_CORES, self._nodes[n].cpus) for n in names if n in self._nodes)

    def _has_memory(self, one: Job, other: Job) -> bool:
        """Whether one GPU has what both say they need of it, where they take shares."""
        if not (one.shape.is_share and other.shape.is_share):
            return True
        needs = sum(j.spec.request.gpu_mem_mib for j in (one, other) if j.spec is not None)
        has = [pool.mem_mib for node in self._nodes.values() for pool in node.pools if pool.mem_mib]
        return not has or needs <= min(has)

    def _is_fast(self, pair: Combination) -> bool:
        """Whether two are faster together than ``least``, or are worth a try."""
        speeds = self._table.get(pair)
        if speeds is not None:
            return total(speeds) > self._rule.least
        alone = all(frozenset((job,)) in self._table for job in pair)
        if self._rule.strategy.informed or not alone:
            return False
        return next(self._ranked(pair), None) == pair

    def _ranked(self, jobs: Combination, beside: str = "") -> Iterator[Combination]:
        """Yield what the strategy would run of some jobs, the best first; two at most."""

        def fits(tasks: Combination) -> bool:
            return len(tasks) < PAIR or (len(tasks) == PAIR and beside in tasks | {""})

        known = {some: speeds for some, speeds in self._table.items() if some <= jobs}
        knowledge = Knowledge(dict.fromkeys(sorted(jobs), 1.0), known, fits=fits)
        yield from (stint.tasks for stint in self._rule.strategy.ranked(knowledge))

    def _partner(
        self, alone: Job, node: Node, could: list[_Sharer], there: list[_Sharer]
    ) -> _Sharer | None:
        """The strategy's choice for a job that has a node alone; None: nobody is right."""
        right = {one.job.id: one for one in could if self._can_join(one, alone, node, there)}
        if not right:
            return None
        for some in self._ranked(frozenset((alone.id, *right)), alone.id):
            if len(some) == PAIR and alone.id in some:
                return right[min(some - {alone.id})]
        return None

    def _can_join(self, one: _Sharer, alone: Job, node: Node, there: list[_Sharer]) -> bool:
        """Whether a waiting job could start on this node now, beside that job and no other."""
        if node.name not in one.nodes or node.name in one.job.nodes_kept:
            return False
        here = _Sharer(one.job, frozenset((node.name,)))
        if not self._fits_all(here, there) or not self._is_right(one.job, alone):
            return False
        return _has_room(one.job, node) and not self._delays(one.job, node.name)

    def _delays(self, job: Job, node: str) -> bool:
        """Whether it would still run when an earlier job is expected there."""
        end_s = self._snapshot.now_s + limit_s(job)
        for earlier in self._snapshot.waiting:
            if earlier.id == job.id:
                return False
            if earlier.eligible and node in earlier.expected_nodes and earlier.expected_s < end_s:
                return True
        return False

    def _words(self, job: Job, beside: Job, node: Node) -> str:
        speeds = self._table.get(frozenset((job.id, beside.id)))
        fast = "how fast they are together is to be measured" if speeds is None else told(speeds)
        return f"{self._rule.name} runs it with {beside.id} on {node.name}: {fast}"


def _account(job: Job) -> str:
    """Whose job it is: without accounting there are no accounts, and a user is one."""
    return f"account {job.account}" if job.account else f"user {job.user}"


def _has_room(job: Job, node: Node) -> bool:
    """Whether a node has the memory and the GPUs for one more, its CPUs being shared."""
    takes = job.demand(job.shape)
    if node.mem_mib and takes.mem_mib > node.free_mem_mib:
        return False
    pools = [pool for pool in node.pools if takes.gpu_type in ("", pool.gpu_type)]
    if not takes.gpus:
        return True
    if takes.share > 1:
        return any(
            pool.free or any(part * takes.share >= pool.shards_per_gpu for part in pool.parts)
            for pool in pools
        )
    return any(pool.free >= takes.gpus for pool in pools)
