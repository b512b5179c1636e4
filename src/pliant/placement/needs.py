"""What a shape needs on one node, and whether a node's state has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pliant.model import ALL_CORES, Job, Shape
from pliant.placement.states import Gpus, NodeKind, PoolKind, Receipt, State, singly, whole_in


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
Found = tuple[tuple[int, int, tuple[tuple[int, int, int], ...]], ...]
"""The GPUs of a receipt."""


def need_key(job: Job, shape: Shape) -> NeedKey:
    """What makes two needs equal: the arguments of Need."""
    demand = job.demand(shape)
    gpu_mem = job.spec.request.gpu_mem_mib if job.spec and shape.is_share else 0
    return (demand.gpus, demand.share, demand.gpu_type, demand.cpus, demand.mem_mib, gpu_mem)


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
) -> Found | None:
    left = need.gpus
    taken: list[tuple[int, int, tuple[tuple[int, int, int], ...]]] = []
    for index, (pool, gpus) in enumerate(zip(kind.pools, state[2], strict=True)):
        if need.gpu_type and pool.gpu_type != need.gpu_type:
            continue
        count = min(left, whole_in(pool, gpus))
        if count and isinstance(gpus, int):
            taken.append((index, count, ()))
        elif count and not isinstance(gpus, int):
            free = [place for place, shards in enumerate(gpus) if shards == pool.shards]
            if now is not None:
                free.sort(key=singly(now[index]).__getitem__)
            shards, mem_mib = pool.shards, pool.mem_mib if pool.counts_mem else 0
            taken.append((index, 0, tuple([(place, shards, mem_mib) for place in free[:count]])))
        left -= count
        if not left:
            return tuple(taken)
    return None


def share_shards(pool: PoolKind, need: Need) -> int:
    """Return how many shards of one GPU of this pool ``need`` takes; 0 where it cannot be.

    Where it is not counted what others take of its memory, a share has as large a part of that as
    of the GPU.
    """
    if not pool.shards or pool.shards % need.share:
        return 0
    if need.gpu_type and pool.gpu_type != need.gpu_type:
        return 0
    least = need.gpu_mem_mib * (1 if pool.counts_mem else need.share)
    if pool.mem_mib and least > pool.mem_mib:
        return 0
    return pool.shards // need.share


def _find_share(
    kind: NodeKind, state: State, need: Need, now: tuple[Gpus, ...] | None
) -> Found | None:
    """The fullest GPU that still has the share: whole GPUs stay whole as long as possible."""
    best: tuple[int, int, int, int, int] | None = None
    best_now = 0
    for index, (pool, gpus) in enumerate(zip(kind.pools, state[2], strict=True)):
        shards = share_shards(pool, need)
        if not shards or isinstance(gpus, int):
            continue
        mem_mib = need.gpu_mem_mib if pool.counts_mem else 0
        for place, free in enumerate(gpus):
            if free < shards or (best is not None and free > best[0]):
                continue
            if mem_mib and state[3][index][place] < mem_mib:
                continue
            free_now = singly(now[index])[place] if now is not None else 0
            if best is None or free < best[0] or free_now < best_now:
                best, best_now = (free, index, place, shards, mem_mib), free_now
    return None if best is None else ((best[1], 0, (best[2:],)),)


def freed(kind: NodeKind, state: State, need: Need) -> State:
    """Return the state after a running job gave back ``need``.

    Which single GPUs it had is not in a snapshot. The fullest of its type are taken for its own;
    what they cannot have lent goes to others, so that in the end all is free again.
    """
    cpus = kind.cpus if need.cpus == ALL_CORES else state[0] + need.cpus
    mem = min(kind.mem_mib, state[1] + need.mem_mib)
    pools, memory = list(state[2]), list(state[3])
    left = need.gpus if need.share == 1 else Fraction(need.gpus, need.share)
    if left:
        for index in _likely(kind, need):
            pool, gpus = kind.pools[index], pools[index]
            if isinstance(gpus, int):
                back = min(int(left), pool.total - gpus)
                pools[index], left = gpus + back, left - back
            elif memory:
                refilled = _refilled(pool, gpus, left, (memory[index], need.gpu_mem_mib))
                pools[index], left, memory[index] = refilled
            else:
                pools[index], left, _ = _refilled(pool, gpus, left, ((), 0))
            if not left:
                break
    return (min(kind.cpus, cpus), mem, tuple(pools), tuple(memory))


def _likely(kind: NodeKind, need: Need) -> Sequence[int]:
    """The pools by how likely a job had its GPUs there: those of its type first."""
    if len(kind.pools) == 1:
        return (0,)
    return sorted(
        range(len(kind.pools)),
        key=lambda index: need.gpu_type not in ("", kind.pools[index].gpu_type),
    )


def _refilled(
    pool: PoolKind,
    gpus: tuple[int, ...],
    left: int | Fraction,
    memory: tuple[tuple[int, ...], int],
) -> tuple[tuple[int, ...], int | Fraction, tuple[int, ...]]:
    """Give as much of ``left`` GPUs back to a pool as it can have lent; and what is left then.

    ``memory``: what is free of each GPU's, and what a share gives back of it.
    """
    shards, full = int(left * pool.shards), pool.shards
    free, mem, each = list(gpus), list(memory[0]), memory[1]

    def unlikely(place: int) -> tuple[bool, int]:
        """A share lies on one GPU: those that have lent so much come first, the fullest of them."""
        lent_mem = pool.mem_mib - mem[place] if mem else each
        return (full - free[place] < shards or lent_mem < each, free[place])

    for place in sorted(range(len(free)), key=unlikely):
        part = min(shards, full - free[place])
        free[place] += part
        shards -= part
        if mem and part:
            back = min(pool.mem_mib, mem[place] + each)
            mem[place] = pool.mem_mib if free[place] == full else back
    return tuple(free), Fraction(shards, full), tuple(mem)
