"""Which nodes a job may use at all: partition, node state, features, reservations, node lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pliant.model import Job, Node, Partition, Reservation, Snapshot
from pliant.placement.states import NodeKind, pool_kind

NO_LIMIT_S = 365 * 24 * 3600
"""A job without a time limit counts as running for a year, as Slurm's backfill has it."""


def limit_s(job: Job) -> float:
    """Return the job's time limit, or a year."""
    return job.time_limit_s or NO_LIMIT_S


@dataclass(frozen=True, eq=False, slots=True)
class Scope:
    """The nodes of one partition that a job may use, and how many of them; limits 0: none.

    ``max_cpus``: on one node. ``kept``: nodes on which it cannot start now, but later.
    """

    partition: str
    kinds: frozenset[NodeKind]
    max_nodes: int
    min_nodes: int = 0
    max_cpus: int = 0
    required: tuple[int, ...] = ()
    excluded: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()

    def allows(self, nodes: int, cpus: int = 0) -> bool:
        """Whether a shape of so many nodes and CPUs on each may run in this partition."""
        if self.max_cpus and cpus > self.max_cpus:
            return False
        return self.min_nodes <= nodes <= (self.max_nodes or nodes)

    def admits(self, place: int, kind: NodeKind) -> bool:
        """Whether one task on one node may lie on this one now."""
        return self.may_lie(place, kind) and len(self.required) < 2

    def may_lie(self, place: int, kind: NodeKind) -> bool:
        """Whether one of several tasks may lie on this node now."""
        if kind not in self.kinds or place in self.excluded or place in self.kept:
            return False
        return not self.required or place in self.required


class Scopes:
    """All scopes of one snapshot; equal ones are one object."""

    def __init__(self, snapshot: Snapshot, later_s: float = 0.0) -> None:
        """``later_s``: by how much later than now jobs may start, or at any time until then."""
        self._now_s, self._last_s = snapshot.now_s, snapshot.now_s + later_s
        self._partitions = snapshot.partition_by_name
        self._defaults = tuple(p.name for p in snapshot.partitions if p.default)
        self._reservations = {r.name: r for r in snapshot.reservations if r.end_s > snapshot.now_s}
        self._index = {node.name: index for index, node in enumerate(snapshot.nodes)}
        self.kinds: list[NodeKind | None] = _kinds(snapshot, self._reservations)
        self._all_kinds = tuple(dict.fromkeys(kind for kind in self.kinds if kind))
        self._scopes: dict[object, Scope | None] = {}
        self._closed: dict[tuple[float, str], frozenset[str] | None] = {}

    def of(self, job: Job) -> tuple[Scope, ...]:
        """Return one scope for each partition that ``job`` could start in."""
        names = job.partitions or self._defaults
        found = (self._scope(job, name) for name in names)
        return tuple(scope for scope in found if scope is not None and scope.kinds)

    def _scope(self, job: Job, name: str) -> Scope | None:
        partition = self._partitions.get(name)
        if partition is None or not partition.up:
            return None
        if partition.max_time_s and limit_s(job) > partition.max_time_s and job.time_limit_s:
            return None
        closed = self._closed_to(job)
        if closed is None:
            return None
        key = (name, closed, _is_free(job), *_wishes(job))
        if key not in self._scopes:
            self._scopes[key] = self._build(job, partition, closed)
        return self._scopes[key]

    def _closed_to(self, job: Job) -> frozenset[str] | None:
        """The reservations that ``job`` must not run into; None: its own is not usable now."""
        key = (limit_s(job) if self._reservations else 0.0, job.reservation)
        if key not in self._closed:
            self._closed[key] = self._overlapping(limit_s(job), job.reservation)
        return self._closed[key]

    def _overlapping(self, limit: float, own: str) -> frozenset[str] | None:
        end_s = self._last_s + limit
        if own:
            mine = self._reservations.get(own)
            if mine is None or mine.start_s > self._now_s or mine.end_s < end_s:
                return None
        return frozenset(
            name for name, r in self._reservations.items() if name != own and r.start_s < end_s
        )

    def _build(self, job: Job, partition: Partition, closed: frozenset[str]) -> Scope | None:
        required = tuple(self._index.get(name, -1) for name in sorted(job.nodes_required))
        kinds = frozenset(
            kind
            for kind in self._all_kinds
            if partition.name in kind.partitions
            and job.features <= kind.features
            and not kind.reservations & closed
            and (not job.reservation or job.reservation in kind.reservations)
        )
        if any(place < 0 or self.kinds[place] not in kinds for place in required):
            return None
        excluded, kept = self._numbers(job.nodes_excluded), self._numbers(job.nodes_kept)
        # A job that keeps its shape was let in with it: Slurm raises its nodes to MinNodes, and
        # spreads its tasks. To take it for one that can never start would cost it its claim.
        bounds = (partition.min_nodes, partition.max_cpus_per_node) if _is_free(job) else (0, 0)
        return Scope(partition.name, kinds, partition.max_nodes, *bounds, required, excluded, kept)

    def _numbers(self, names: frozenset[str]) -> frozenset[int]:
        return frozenset(self._index[name] for name in names if name in self._index)


def is_open(snapshot: Snapshot, job: Job, nodes: Iterable[str], later_s: float = 0.0) -> bool:
    """Return whether a job could start on these nodes now, were all that is on them free.

    They are up, no reservation comes before the end of its time limit, its partition is up. And at
    any time until ``later_s``, as far as reservations are known.
    """
    scopes, places = (
        Scopes(snapshot, later_s),
        {node.name: n for n, node in enumerate(snapshot.nodes)},
    )
    kinds = [scopes.kinds[places[name]] if name in places else None for name in nodes]
    return any(all(kind in scope.kinds for kind in kinds) for scope in scopes.of(job))


def _is_free(job: Job) -> bool:
    """Whether its shape may be chosen here."""
    return job.spec is not None and not job.frozen


def _wishes(job: Job) -> tuple[object, ...]:
    nodes = (job.nodes_required, job.nodes_excluded, job.nodes_kept)
    return (job.features, job.reservation, *nodes)


def _kinds(snapshot: Snapshot, reservations: dict[str, Reservation]) -> list[NodeKind | None]:
    """Return each node's kind, equal ones being one object; None: nothing starts there now."""
    member: dict[str, list[str]] = {node.name: [] for node in snapshot.nodes}
    for partition in snapshot.partitions:
        for name in partition.nodes:
            if name in member:
                member[name].append(partition.name)
    reserved: dict[str, list[str]] = {}
    for reservation in reservations.values():
        for name in reservation.nodes:
            reserved.setdefault(name, []).append(reservation.name)
    known: dict[object, NodeKind] = {}
    return [
        _kind(node, tuple(member[node.name]), tuple(reserved.get(node.name, ())), known)
        if node.up
        else None
        for node in snapshot.nodes
    ]


def _kind(
    node: Node,
    partitions: tuple[str, ...],
    reserved: tuple[str, ...],
    known: dict[object, NodeKind],
) -> NodeKind:
    pools = tuple(pool_kind(pool) for pool in node.pools)
    key = (node.cpus, node.mem_mib, pools, partitions, node.features, reserved)
    if key not in known:
        known[key] = NodeKind(
            node.cpus,
            node.mem_mib,
            pools,
            frozenset(partitions),
            node.features,
            frozenset(reserved),
        )
    return known[key]
