"""What jobs have in common: equal needs and equal profiles are one object each.

Fifty thousand jobs of one kind are one profile: what follows from a request is worked out once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pliant.model import Job, Kind, Shape, Snapshot
from pliant.placement.needs import Need, NeedKey, find, need_key
from pliant.placement.scopes import Scope, Scopes
from pliant.placement.states import NodeKind

Option = tuple[Shape, Need]


@dataclass(frozen=True, eq=False, slots=True)
class Ladder:
    """Shapes of which only the number of GPUs matters: ``amounts`` ascend, each with its shape.

    ``even``: each amount is one GPU more than the one before.
    """

    amounts: tuple[int, ...]
    shapes: tuple[Shape, ...]
    even: bool


@dataclass(frozen=True, eq=False, slots=True)
class Profile:
    """What can be placed alike.

    ``options`` are the shapes that the nodes could hold when empty, with their needs, in the
    job's order, without those that the batch system refused. ``ladder``: the same where only the
    number of GPUs matters (see :mod:`.crowd`); None: more does.
    """

    scopes: tuple[Scope, ...]
    options: tuple[Option, ...]
    shapes: tuple[Shape, ...]  # of the options
    kinds: frozenset[NodeKind]  # of the nodes that could hold one of the options
    ladder: Ladder | None = None


class Profiles:
    """The needs and profiles of one snapshot's jobs.

    They are found by the identity of what a job consists of, which readers share between equal
    jobs, and only then by value. The objects are kept beside what follows from them, so that no
    identity is used twice.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.scopes = Scopes(snapshot)
        self.size = Counter(kind for kind in self.scopes.kinds if kind is not None)
        self._needs: dict[NeedKey, Need] = {}
        self._need_by_id: dict[tuple[int, int, int], tuple[object, Need]] = {}
        self._profiles: dict[object, Profile] = {}
        self._profile_by_id: dict[object, tuple[object, Profile]] = {}

    @property
    def known(self) -> int:
        """How many kinds of jobs are remembered."""
        return len(self._profile_by_id) + len(self._need_by_id)

    def forget(self) -> None:
        """Remember no job: those that come again get other needs and profiles, that are equal."""
        for known in (self._needs, self._need_by_id, self._profiles, self._profile_by_id):
            known.clear()

    def need(self, job: Job, shape: Shape) -> Need:
        """Return what ``shape`` takes on each node for this job."""
        ids = (id(shape), id(job.footprint), id(job.spec))
        known = self._need_by_id.get(ids)
        if known is None:
            key = need_key(job, shape)
            need = self._needs.get(key)
            if need is None:
                need = self._needs[key] = Need(*key)
            known = self._need_by_id[ids] = ((shape, job.footprint, job.spec), need)
        return known[1]

    def of(self, job: Job) -> Profile:
        """Return what this job has in common with others."""
        ids = (
            id(job.shapes) if job.shapes else id(job.shape),
            id(job.footprint),
            id(job.spec),
            job.time_limit_s,
            job.partitions,
            job.features,
            job.reservation,
            job.nodes_required,
            job.nodes_excluded,
            job.nodes_kept,
            job.refused,
            job.frozen,
        )
        known = self._profile_by_id.get(ids)
        if known is None:
            kept = (job.shapes, job.shape, job.footprint, job.spec)
            known = self._profile_by_id[ids] = (kept, self._of(job))
        return known[1]

    def _of(self, job: Job) -> Profile:
        scopes = self.scopes.of(job)
        shapes = job.shapes or (job.shape,)
        options = tuple(
            (shape, self.need(job, shape)) for shape in shapes if shape not in job.refused
        )
        key = (scopes, options)
        profile = self._profiles.get(key)
        if profile is None:
            profile = self._profiles[key] = self._build(scopes, options)
        return profile

    def _build(self, scopes: tuple[Scope, ...], options: tuple[Option, ...]) -> Profile:
        possible: list[Option] = []
        kinds: set[NodeKind] = set()
        for shape, need in options:
            holders = {
                kind
                for scope in scopes
                if self.could_hold(scope, need, shape.nodes)
                for kind in holding(scope, need)
            }
            if holders:
                possible.append((shape, need))
                kinds |= holders
        possible_shapes = tuple(shape for shape, _ in possible)
        ladder = _ladder(scopes, possible, kinds)
        return Profile(scopes, tuple(possible), possible_shapes, frozenset(kinds), ladder)

    def could_hold(self, scope: Scope, need: Need, nodes: int) -> bool:
        """Whether so many nodes of a scope could hold ``need`` when empty."""
        if not scope.allows(nodes, need.cpus) or len(scope.required) > nodes:
            return False
        kinds = holding(scope, need)
        barred = sum(self.scopes.kinds[place] in kinds for place in scope.excluded)
        return (
            all(self.scopes.kinds[place] in kinds for place in scope.required)
            and sum(self.size[kind] for kind in kinds) - barred >= nodes
        )


def holding(scope: Scope, need: Need) -> list[NodeKind]:
    """Return the kinds of node in a scope that could hold ``need`` when empty."""
    return [kind for kind in scope.kinds if find(kind, kind.empty, need) is not None]


def within_part(kind: NodeKind, need: Need) -> bool:
    """Whether a need is whole GPUs, with no more cores and memory than their part of the node's.

    ``kind`` has one pool of GPUs.
    """
    total = kind.pools[0].total
    return (
        need.gpus > 0
        and need.share == 1
        and not need.gpu_type
        and 0 <= need.cpus * total <= need.gpus * kind.cpus
        and (not kind.mem_mib or need.mem_mib * total <= need.gpus * kind.mem_mib)
    )


def _ladder(
    scopes: tuple[Scope, ...], options: Sequence[Option], kinds: set[NodeKind]
) -> Ladder | None:
    """The ladder of a profile: all of its options are whole GPUs of one node of one kind."""
    if len(scopes) != 1 or len(kinds) != 1:
        return None
    (scope,), (kind,) = scopes, kinds
    if scope.required or scope.excluded or scope.kept:
        return None
    if len(kind.pools) != 1 or kind.pools[0].shards:
        return None
    for shape, need in options:
        if shape.nodes != 1 or shape.kind is not Kind.GPU or not within_part(kind, need):
            return None
    shapes = sorted((shape for shape, _ in options), key=lambda shape: shape.gpus)
    amounts = tuple(shape.gpus for shape in shapes)
    if len(set(amounts)) < len(amounts):
        return None
    even = amounts == tuple(range(amounts[0], amounts[-1] + 1))
    return Ladder(amounts, tuple(shapes), even)
