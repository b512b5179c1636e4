"""What is free on a node, and what is taken from it.

A node's *state* is what is free on it: cores, memory, and for each of its pools either how many
whole GPUs are free, or (where GPUs can be shared) how many shards of each single GPU are, and how
much of its memory where that is counted. A *receipt* says exactly what was taken, so that it can be
given back: two shares on one GPU and two shares on two GPUs leave different holes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pliant.model import Node, Pool

Gpus = int | tuple[int, ...]
Memory = tuple[tuple[int, ...], ...]
"""Free memory of each single GPU in MiB, by pool; () where no pool of the node counts it."""
State = tuple[int, int, tuple[Gpus, ...], Memory]
"""Free cores, free memory in MiB, the free GPUs of each pool, and the GPUs' free memory."""
Receipt = tuple[int, int, tuple[tuple[int, int, tuple[tuple[int, int, int], ...]], ...]]
"""Cores, memory in MiB, and for each pool used (pool, whole GPUs, ((GPU, shards, MiB), ...))."""
NOTHING: Receipt = (0, 0, ())


@dataclass(frozen=True, slots=True)
class PoolKind:
    """What never changes about a pool."""

    gpu_type: str
    total: int
    shards: int  # of one GPU; 0: cannot be shared
    mem_mib: int
    counts_mem: bool = False  # what jobs that share a GPU take of its memory
    in_parts_alone: bool = False  # a GPU of it is lent to nobody whole


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
        return (self.cpus, self.mem_mib, tuple(pools), _memory(self.pools, [()] * len(self.pools)))


def pool_kind(pool: Pool) -> PoolKind:
    """The part of a pool that never changes."""
    counts = pool.counts_mem and pool.shards_per_gpu > 0
    return PoolKind(
        *(pool.gpu_type, pool.total, pool.shards_per_gpu, pool.mem_mib, counts),
        pool.in_parts_alone,
    )


def _gpus(total: int, shards: int, free: int, parts: tuple[int, ...]) -> Gpus:
    if not shards:
        return free
    busy = max(0, total - free - len(parts))
    return (shards,) * free + parts + (0,) * busy


def _memory(pools: Sequence[PoolKind], used: Sequence[tuple[int, ...]]) -> Memory:
    """``used``: what is free of the memory of those GPUs of each pool that are not wholly free."""
    if not any(pool.counts_mem for pool in pools):
        return ()
    return tuple(
        (pool.mem_mib,) * (pool.total - len(mem)) + mem if pool.counts_mem else ()
        for pool, mem in zip(pools, used, strict=True)
    )


def state_of(node: Node) -> State:
    """What is free on a node now."""
    pools = (_gpus(p.total, p.shards_per_gpu, p.free, p.parts) for p in node.pools)
    kinds, used = [pool_kind(p) for p in node.pools], [p.parts_mem_mib for p in node.pools]
    return (node.free_cpus, node.free_mem_mib, tuple(pools), _memory(kinds, used))


def node_in(node: Node, state: State, jobs_on: Callable[[int, int], int] | None = None) -> Node:
    """Return a node as it is in a state.

    ``jobs_on``: of how many jobs a GPU of a pool is. Without it that stays known only of pools in
    which nothing has changed.
    """
    cpus, mem_mib, gpus, memory = state
    left = tuple(
        [
            _pool_in(
                *(pool, gpus[index], memory[index] if memory else ()),
                None if jobs_on is None else partial(jobs_on, index),
            )
            for index, pool in enumerate(node.pools)
        ]
    )
    return replace(node, free_cpus=cpus, free_mem_mib=mem_mib, pools=left)


def _pool_in(
    pool: Pool, gpus: Gpus, memory: tuple[int, ...], jobs_on: Callable[[int], int] | None
) -> Pool:
    if isinstance(gpus, int):
        return replace(pool, free=gpus)
    full = pool.shards_per_gpu
    mem = memory or (0,) * len(gpus)
    lent = [n for n, free in enumerate(gpus) if free < full or pool.in_parts_alone]
    used = sorted([(gpus[n], jobs_on(n) if jobs_on else 0, mem[n]) for n in lent], reverse=True)
    parts = tuple([free for free, _, _ in used if free])
    known = tuple([jobs for free, jobs, _ in used if free])
    return replace(
        pool,
        free=len(gpus) - len(used),
        parts=parts,
        sharers=known if jobs_on else (pool.sharers if parts == pool.parts else ()),
        parts_mem_mib=tuple([left for _, _, left in used]) if memory else (),
    )


def whole_gpus(kind: NodeKind, state: State) -> int:
    """How many whole GPUs are free; none where no core is left to drive them."""
    if state[0] < 1:
        return 0
    return sum(whole_in(pool, gpus) for pool, gpus in zip(kind.pools, state[2], strict=True))


def most_gpus(kind: NodeKind, state: State, gpu_type: str) -> int:
    """Return how many whole GPUs of a type ("": of any) are free."""
    pools = zip(kind.pools, state[2], strict=True)
    return sum(whole_in(pool, gpus) for pool, gpus in pools if gpu_type in ("", pool.gpu_type))


def whole_in(pool: PoolKind, gpus: Gpus) -> int:
    """Return how many GPUs of a pool are wholly free."""
    if isinstance(gpus, int):
        return gpus
    return 0 if pool.in_parts_alone else gpus.count(pool.shards)


def singly(gpus: Gpus) -> tuple[int, ...]:
    """Return the shards of each GPU of a pool that can be shared."""
    assert not isinstance(gpus, int)  # noqa: S101  # for types: a pool that can be shared
    return gpus


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
    pools, memory = state[2], state[3]
    if gpus:
        changed = list(pools)
        for index, count, places in gpus:
            old = changed[index]
            if isinstance(old, int):
                changed[index] = old + sign * count
            else:
                single = list(old)
                for place, shards, _ in places:
                    single[place] += sign * shards
                changed[index] = tuple(single)
        pools = tuple(changed)
        memory = _remembered(memory, receipt, sign) if memory else ()
    return (state[0] + sign * cpus, state[1] + sign * mem, pools, memory)


def _remembered(memory: Memory, receipt: Receipt, sign: int) -> Memory:
    """The GPUs' memory after ``receipt`` was taken (-1) or given back (1)."""
    changed = list(memory)
    for index, _, places in receipt[2]:
        single = list(changed[index])
        for place, _, mem_mib in places if single else ():
            single[place] += sign * mem_mib
        changed[index] = tuple(single)
    return tuple(changed)


def beyond(receipt: Receipt, other: Receipt) -> Receipt:
    """Return what a receipt takes of a node that another one of the same node does not."""
    had = {index: (count, _by_gpu(places)) for index, count, places in other[2]}
    more = []
    for index, count, places in receipt[2]:
        had_count, had_singly = had.get(index, (0, {}))
        differences = [_more(one, had_singly.get(one[0], (0, 0))) for one in places]
        left = tuple(one for one in differences if one[1] or one[2])
        if count > had_count or left:
            more.append((index, max(0, count - had_count), left))
    cpus, mem_mib = max(0, receipt[0] - other[0]), max(0, receipt[1] - other[1])
    return (cpus, mem_mib, tuple(more))


def _by_gpu(places: tuple[tuple[int, int, int], ...]) -> dict[int, tuple[int, int]]:
    return {gpu: (shards, mem_mib) for gpu, shards, mem_mib in places}


def _more(one: tuple[int, int, int], had: tuple[int, int]) -> tuple[int, int, int]:
    return (one[0], max(0, one[1] - had[0]), max(0, one[2] - had[1]))


def lesser(one: State, other: State) -> State:
    """Return what is free in both of two states of one node."""
    pools = tuple(
        min(a, b) if isinstance(a, int) or isinstance(b, int) else _least(a, b)
        for a, b in zip(one[2], other[2], strict=True)
    )
    memory = tuple([_least(a, b) for a, b in zip(one[3], other[3], strict=True)])
    return (min(one[0], other[0]), min(one[1], other[1]), pools, memory)


def _least(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([min(a, b) for a, b in zip(one, other, strict=True)])


def nothing_of(state: State) -> State:
    """Return the state of the same node with nothing free."""
    pools = (0 if isinstance(gpus, int) else (0,) * len(gpus) for gpus in state[2])
    return (0, 0, tuple(pools), tuple([(0,) * len(mem) for mem in state[3]]))


def reduced(state: State, receipt: Receipt) -> State:
    """Return the state after ``receipt`` was taken, nothing below zero."""
    cpus, mem, pools, memory = taken(state, receipt)
    gpus = (
        max(0, pool) if isinstance(pool, int) else tuple(max(0, free) for free in pool)
        for pool in pools
    )
    left = tuple([tuple([max(0, free) for free in of]) for of in memory])
    return (max(0, cpus), max(0, mem), tuple(gpus), left)
