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

Which pairs are right, says :mod:`.companions`; who is parted, :mod:`.parting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from pliant.model import ANYWHERE, UNMARKED, Job, JobState, Mode, Node, Snapshot
from pliant.placement import limit_s
from pliant.plan import Mark
from pliant.policies.companions import Companions, Programs, Rule, Sharer, programs
from pliant.policies.parting import PAIR, expected_nodes, stays, told

WINDOW = 10
"""Of how many waiting jobs that could share is looked for partners."""


class _There:
    """Those that are marked, or are to be, by the nodes where they are or could come to."""

    def __init__(self, sharers: Iterable[Sharer]) -> None:
        self._everybody: list[Sharer] = []
        self._at: dict[str, list[Sharer]] = {}
        for one in sharers:
            self.add(one)

    def add(self, one: Sharer) -> None:
        self._everybody.append(one)
        for name in one.nodes:
            self._at.setdefault(name, []).append(one)

    def met_by(self, one: Sharer) -> Iterator[Sharer]:
        """Yield all that a job could meet, some more than once."""
        few = len(one.nodes) < len(self._everybody)
        near = (other for name in one.nodes for other in self._at.get(name, ()))
        found = near if few else (o for o in self._everybody if not one.nodes.isdisjoint(o.nodes))
        return (other for other in found if other.job.id != one.job.id)

    def running(self) -> Iterator[tuple[str, Sharer]]:
        """Yield who runs where."""
        for one in self._everybody:
            if one.job.state is not JobState.WAITING:
                yield from ((name, one) for name in one.nodes)


class Marks:
    """One decision on all that share."""

    def __init__(self, snapshot: Snapshot, rule: Rule, starting: frozenset[str]) -> None:
        self._snapshot, self._rule, self._starting = snapshot, rule, starting
        self._companions = Companions(snapshot, rule)
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._shared = {
            p.name: p.nodes
            for p in snapshot.partitions
            if p.sharers == PAIR and p.mode is not Mode.OFF and p.up
        }
        self._tried = _tried(snapshot)
        self._counted: dict[frozenset[str], bool] = {}
        self._expected: dict[str, frozenset[str]] = {}

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
        waiting, running = self._snapshot.waiting, self._snapshot.running
        could = [*islice((one for job in waiting if (one := self._could(job))), WINDOW)]
        there = _There(Sharer(job, frozenset(job.nodes)) for job in running if job.shares)
        for job in waiting:
            if job.shares and not job.mark:  # by its owner
                there.add(Sharer(job, self._companions.reach(job)))
        return self._choose(could, there)

    def _choose(self, could: list[Sharer], there: _There) -> dict[str, tuple[str, str]]:
        """Choose partners for those that are alone on a node, then who may start anywhere."""
        wanted: dict[str, tuple[str, str]] = {}
        for alone, node in self._alone(there):
            taken = wanted.keys() | self._starting
            left = [one for one in could if one.job.id not in taken]
            partner = self._partner(alone, node, left, there)
            if partner is not None:
                anywhere = self._tries(partner, there) is not None
                mark = ANYWHERE if anywhere else node.name
                here = Sharer(partner.job, frozenset((node.name,)))
                self._add(partner if anywhere else here, there)
                wanted[partner.job.id] = (mark, self._words(partner.job, alone.job, node))
        most = len({name for nodes in self._shared.values() for name in nodes})
        for one in could:
            fits = one.job.id not in wanted and self._tries(one, there) is not None
            if len(wanted) < most and fits:
                self._add(one, there)
                wanted[one.job.id] = (ANYWHERE, "it may share a node with any that is marked now")
        return wanted

    # Who could share

    def _could(self, job: Job) -> Sharer | None:
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
        one = Sharer(job, self._companions.reach(job))
        return one if self._is_counted(one.nodes) and self._companions.fills(one) else None

    def _is_counted(self, names: frozenset[str]) -> bool:
        """Whether there are nodes at all, and the memory of each is counted."""
        if names not in self._counted:
            counted = all(self._nodes[name].mem_mib for name in names)
            self._counted[names] = bool(names) and counted
        return self._counted[names]

    def _alone(self, there: _There) -> Iterator[tuple[Sharer, Node]]:
        """Jobs that share and have a node alone now, in the order of the nodes."""
        number = Counter(name for job in self._snapshot.running for name in job.nodes)
        marked = dict(there.running())
        for node in self._snapshot.nodes:
            one = marked.get(node.name)
            if one is not None and number[node.name] == 1 and node.up and stays(one.job):
                yield one, node

    # Who is sent to whom

    def _tries(self, one: Sharer, there: _There) -> set[Programs] | None:
        """Which pairs are tried where a job is marked so; None: it is not right beside all."""
        found: set[Programs] = set()
        for other in there.met_by(one):
            if not self._companions.are_right(one, other):
                return None
            if self._companions.is_try(one.job, other.job):
                found.add(programs(one.job, other.job))
        return found if found.isdisjoint(self._tried) else None

    def _add(self, one: Sharer, there: _There) -> None:
        self._tried |= self._tries(one, there) or set()
        there.add(one)

    def _partner(
        self, alone: Sharer, node: Node, could: list[Sharer], there: _There
    ) -> Sharer | None:
        """The strategy's choice for a job that has a node alone; None: nobody is right."""
        right = {one.job.id: one for one in could if self._can_join(one, alone, node, there)}
        chosen = self._companions.partner(alone.job.id, right)
        return right[chosen] if chosen is not None else None

    def _can_join(self, one: Sharer, alone: Sharer, node: Node, there: _There) -> bool:
        """Whether a waiting job could start on this node now, beside that job and no other."""
        if node.name not in one.nodes or node.name in one.job.nodes_kept:
            return False
        here = Sharer(one.job, frozenset((node.name,)))
        if self._tries(here, there) is None or not self._companions.are_right(one, alone):
            return False
        return _has_room(one.job, node) and node.name not in self._expected_by_others(one.job)

    def _expected_by_others(self, job: Job) -> frozenset[str]:
        """The nodes where it would still run when an earlier job is expected there."""
        if job.id not in self._expected:
            end_s = self._snapshot.now_s + limit_s(job)
            before = takewhile(lambda other: other.id != job.id, self._snapshot.waiting)
            self._expected[job.id] = expected_nodes(before, end_s)
        return self._expected[job.id]

    def _words(self, job: Job, beside: Job, node: Node) -> str:
        speeds = self._snapshot.company.table.get(frozenset((job.id, beside.id)))
        fast = "how fast they are together is to be measured" if speeds is None else told(speeds)
        return f"{self._rule.name} runs it with job {beside.id} on {node.name}: {fast}"


def _tried(snapshot: Snapshot) -> set[Programs]:
    """Which pairs are there, of whatever jobs of these programs, that are not measured yet."""
    on: dict[str, list[Job]] = {}
    for job in snapshot.running:
        for name in job.nodes if job.shares else ():
            on.setdefault(name, []).append(job)
    table = snapshot.company.table
    pairs = (jobs for jobs in on.values() if len(jobs) == PAIR)
    return {programs(*jobs) for jobs in pairs if frozenset(job.id for job in jobs) not in table}


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
