"""What a shape needs on one node, and whether a node's state has it.

A node's *state* is what is free on it: cores, memory, and for each of its pools either how many
whole GPUs are free, or (where GPUs can be shared) how many shards of each single GPU are. A
*receipt* says exactly what was taken, so that it can be given back: two shares on one GPU and two
shares on two GPUs leave different holes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from pliant.model import ALL_CORES, Job, Node, Pool, Shape

Gpus = int | tuple[int, ...]
State = tuple[int, int, tuple[Gpus, ...]]
"""Free cores, free memory in MiB, and the free GPUs of each pool."""
Receipt = tuple[int, int, tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]]
"""Cores, memory in MiB, and for each pool used (pool, whole GPUs, ((GPU, shards), ...))."""
NOTHING: Receipt = (0, 0, ())


@dataclass(frozen=True, eq=False, slots=True)
class Need:
    """What a shape takes on each of its nodes. Equal needs are one object within a Free."""

    gpus: int
    share: int
    gpu_type: str
    cpus: int  # ALL_CORES: every core of the node
    mem_mib: int
    gpu_mem_mib: int = 0  # of one GPU, for shares; 0: not known

    def is_more(self, other: Need) -> bool:
        """Whether whatever has room for this has room for the other."""
        return (
            self.gpus >= other.gpus
            and self.share == other.share
            and self.gpu_type == other.gpu_type
            and (self.cpus >= other.cpus >= 0 or self.cpus == other.cpus)
            and self.mem_mib >= other.mem_mib
            and self.gpu_mem_mib >= other.gpu_mem_mib
        )


def replaced(
    need: Need, *, gpus: int | None = None, cpus: int | None = None, mem_mib: int | None = None
) -> Need:
    """Return a need like ``need`` with other GPUs, cores or memory."""
    return replace(
        need,
        gpus=need.gpus if gpus is None else gpus,
        cpus=need.cpus if cpus is None else cpus,
        mem_mib=need.mem_mib if mem_mib is None else mem_mib,
    )


NeedKey = tuple[int, int, str, int, int, int]


def need_key(job: Job, shape: Shape) -> NeedKey:
    """What makes two needs equal: the arguments of Need."""
    demand = job.demand(shape)
    gpu_mem = job.spec.request.gpu_mem_mib if job.spec and shape.is_share else 0
    return (demand.gpus, demand.share, demand.gpu_type, demand.cpus, demand.mem_mib, gpu_mem)


@dataclass(frozen=True, slots=True)
class PoolKind:
    """What never changes about a pool."""

    gpu_type: str
    total: int
    shards: int  # of one GPU; 0: cannot be shared
    mem_mib: int


@dataclass(frozen=True, eq=False, slots=True)
class NodeKind:
    """What nodes have in common that are alike but for what is free on them.

    Equal kinds are one object within a Free.
    """

    cpus: int
    mem_mib: int  # 0: memory is not counted here
    pools: tuple[PoolKind, ...]
    partitions: frozenset[str]
    features: frozenset[str]
    reservations: frozenset[str]

    @property
    def empty(self) -> State:
        """The state of such a node when nothing runs on it."""
        pools = (_gpus(pool.total, pool.shards, pool.total, ()) for pool in self.pools)
        return (self.cpus, self.mem_mib, tuple(pools))


def pool_kind(pool: Pool) -> PoolKind:
    """The part of a pool that never changes."""
    return PoolKind(pool.gpu_type, pool.total, pool.shards_per_gpu, pool.mem_mib)


def _gpus(total: int, shards: int, free: int, parts: tuple[int, ...]) -> Gpus:
    if not shards:
        return free
    busy = max(0, total - free - len(parts))
    return (shards,) * free + parts + (0,) * busy


def state_of(node: Node) -> State:
    """What is free on a node now."""
    pools = (_gpus(p.total, p.shards_per_gpu, p.free, p.parts) for p in node.pools)
    return (node.free_cpus, node.free_mem_mib, tuple(pools))


def whole_gpus(kind: NodeKind, state: State) -> int:
    """How many whole GPUs are free; none where no core is left to drive them."""
    if state[0] < 1:
        return 0
    return sum(_whole(pool, gpus) for pool, gpus in zip(kind.pools, state[2], strict=True))


def most_gpus(kind: NodeKind, state: State, gpu_type: str) -> int:
    """Return how many whole GPUs of a type ("": of any) are free."""
    pools = zip(kind.pools, state[2], strict=True)
    return sum(_whole(pool, gpus) for pool, gpus in pools if gpu_type in ("", pool.gpu_type))


def _whole(pool: PoolKind, gpus: Gpus) -> int:
    return gpus if isinstance(gpus, int) else gpus.count(pool.shards)


def find(
    kind: NodeKind, state: State, need: Need, *, now: tuple[Gpus, ...] | None = None
) -> Receipt | None:
    """Return what ``need`` would take from a node in ``state``; None where it does not fit.

    ``now``: the GPUs that are free now, where ``state`` is a later one. A claim takes the others
    first: that leaves those to who can start now.
    """
    cpus = kind.cpus if need.cpus == ALL_CORES else need.cpus
    mem = need.mem_mib if kind.mem_mib else 0
    if cpus > state[0] or mem > state[1]:
        return None
    if not need.gpus:
        return (cpus, mem, ())
    if need.share > 1:
        found = _find_share(kind, state, need, now)
    else:
        found = _find_whole(kind, state, need, now)
    return None if found is None else (cpus, mem, found)


def _find_whole(
    kind: NodeKind, state: State, need: Need, now: tuple[Gpus, ...] | None
) -> tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...] | None:
    left = need.gpus
    taken: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for index, (pool, gpus) in enumerate(zip(kind.pools, state[2], strict=True)):
        if need.gpu_type and pool.gpu_type != need.gpu_type:
            continue
        count = min(left, _whole(pool, gpus))
        if count and isinstance(gpus, int):
            taken.append((index, count, ()))
        elif count and not isinstance(gpus, int):
            free = [place for place, shards in enumerate(gpus) if shards == pool.shards]
            if now is not None:
                free.sort(key=_singly(now[index]).__getitem__)
            taken.append((index, 0, tuple((place, pool.shards) for place in free[:count])))
        left -= count
        if not left:
            return tuple(taken)
    return None


def _singly(gpus: Gpus) -> tuple[int, ...]:
    assert not isinstance(gpus, int)  # noqa: S101  # for types: a pool that can be shared
    return gpus


def share_shards(pool: PoolKind, need: Need) -> int:
    """Return how many shards of one GPU of this pool ``need`` takes; 0 where it cannot be."""
    if not pool.shards or pool.shards % need.share:
        return 0
    if need.gpu_type and pool.gpu_type != need.gpu_type:
        return 0
    if pool.mem_mib and need.gpu_mem_mib * need.share > pool.mem_mib:
        return 0
    return pool.shards // need.share


def _find_share(
    kind: NodeKind, state: State, need: Need, now: tuple[Gpus, ...] | None
) -> tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...] | None:
    """The fullest GPU that still has the share: whole GPUs stay whole as long as possible."""
    best: tuple[int, int, int, int] | None = None
    best_now = 0
    for index, (pool, gpus) in enumerate(zip(kind.pools, state[2], strict=True)):
        shards = share_shards(pool, need)
        if not shards or isinstance(gpus, int):
            continue
        for place, free in enumerate(gpus):
            if free < shards or (best is not None and free > best[0]):
                continue
            free_now = _singly(now[index])[place] if now is not None else 0
            if best is None or free < best[0] or free_now < best_now:
                best, best_now = (free, index, place, shards), free_now
    return None if best is None else ((best[1], 0, ((best[2], best[3]),)),)


def has(state: State, receipt: Receipt) -> bool:
    """Whether all of a receipt of whole GPUs that are not shared is free."""
    cpus, mem, gpus = receipt
    if cpus > state[0] or mem > state[1]:
        return False
    for index, count, _ in gpus:
        free = state[2][index]
        if not isinstance(free, int) or count > free:
            return False
    return True


def taken(state: State, receipt: Receipt) -> State:
    """Return the state after ``receipt`` was taken."""
    return _applied(state, receipt, -1)


def returned(state: State, receipt: Receipt) -> State:
    """Return the state after ``receipt`` was given back."""
    return _applied(state, receipt, 1)


def _applied(state: State, receipt: Receipt, sign: int) -> State:
    cpus, mem, gpus = receipt
    pools = state[2]
    if gpus:
        changed = list(pools)
        for index, count, places in gpus:
            old = changed[index]
            if isinstance(old, int):
                changed[index] = old + sign * count
            else:
                single = list(old)
                for place, shards in places:
                    single[place] += sign * shards
                changed[index] = tuple(single)
        pools = tuple(changed)
    return (state[0] + sign * cpus, state[1] + sign * mem, pools)


def beyond(receipt: Receipt, other: Receipt) -> Receipt:
    """Return what a receipt takes of a node that another one of the same node does not."""
    had = {index: (count, dict(singly)) for index, count, singly in other[2]}
    more = []
    for index, count, singly in receipt[2]:
        had_count, had_singly = had.get(index, (0, {}))
        left = tuple(
            (gpu, shards - had_singly.get(gpu, 0))
            for gpu, shards in singly
            if shards > had_singly.get(gpu, 0)
        )
        if count > had_count or left:
            more.append((index, max(0, count - had_count), left))
    cpus, mem_mib = max(0, receipt[0] - other[0]), max(0, receipt[1] - other[1])
    return (cpus, mem_mib, tuple(more))


def lesser(one: State, other: State) -> State:
    """Return what is free in both of two states of one node."""
    pools = tuple(
        min(a, b)
        if isinstance(a, int) or isinstance(b, int)
        else tuple(min(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(one[2], other[2], strict=True)
    )
    return (min(one[0], other[0]), min(one[1], other[1]), pools)


def nothing_of(state: State) -> State:
    """Return the state of the same node with nothing free."""
    pools = (0 if isinstance(gpus, int) else (0,) * len(gpus) for gpus in state[2])
    return (0, 0, tuple(pools))


def reduced(state: State, receipt: Receipt) -> State:
    """Return the state after ``receipt`` was taken, nothing below zero."""
    cpus, mem, pools = taken(state, receipt)
    gpus = (
        max(0, pool) if isinstance(pool, int) else tuple(max(0, free) for free in pool)
        for pool in pools
    )
    return (max(0, cpus), max(0, mem), tuple(gpus))


def freed(kind: NodeKind, state: State, need: Need) -> State:
    """Return the state after a running job gave back ``need``.

    Which single GPUs it had is not in a snapshot. The fullest of its type are taken for its own;
    what they cannot have lent goes to others, so that in the end all is free again.
    """
    cpus = kind.cpus if need.cpus == ALL_CORES else state[0] + need.cpus
    mem = min(kind.mem_mib, state[1] + need.mem_mib)
    pools = list(state[2])
    left = need.gpus if need.share == 1 else Fraction(need.gpus, need.share)
    if left:
        for index in _likely(kind, need):
            pools[index], left = _refilled(kind.pools[index], pools[index], left)
            if not left:
                break
    return (min(kind.cpus, cpus), mem, tuple(pools))


def _likely(kind: NodeKind, need: Need) -> list[int]:
    """The pools by how likely a job had its GPUs there: those of its type first."""
    return sorted(
        range(len(kind.pools)),
        key=lambda index: need.gpu_type not in ("", kind.pools[index].gpu_type),
    )


def _refilled(pool: PoolKind, gpus: Gpus, left: int | Fraction) -> tuple[Gpus, int | Fraction]:
    """Give as much of ``left`` GPUs back to a pool as it can have lent; and what is left then."""
    if isinstance(gpus, int):
        back = min(int(left), pool.total - gpus)
        return gpus + back, left - back
    shards = int(left * pool.shards)
    free = list(gpus)
    # A share lies on one GPU: those that have lent so much come first, the fullest of them.
    for place in sorted(range(len(free)), key=lambda p: (pool.shards - free[p] < shards, free[p])):
        part = min(shards, pool.shards - free[place])
        free[place] += part
        shards -= part
    return tuple(free), Fraction(shards, pool.shards)
