"""What the queuejob hook of PBS is told after each look: who may be changed, and what fits now.

The hook looks at nothing else of the cluster (see :mod:`pliant.filter.pbs.state`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pliant.batch.pbs import Names
from pliant.batch.pbs.shown import show
from pliant.daemon.config import Config
from pliant.daemon.seen import Seen
from pliant.filter.pbs.state import Ground, Room, State, state_text
from pliant.model import Demand, Mode, Node
from pliant.plan import Plan

log = logging.getLogger("pliant.publishing")

MOST_SORTS = 100
"""Of nodes of a queue, that the hook is told: it reads them all while PBS's server waits."""


class Publisher:
    """Writes the file; where that fails the hooks note requests and change nothing."""

    def __init__(self, path: Path, names: Names) -> None:
        self._path, self._names = path, names
        self._trouble = ""

    def publish(self, seen: Seen, config: Config, *, paused: bool) -> None:
        """Say what a cycle saw and left."""
        said = state_of(seen, config, paused=paused, names=self._names)
        try:
            show(self._path, state_text(said))
            self._trouble = ""
        except OSError as error:
            words = f"{self._path}: {error.strerror}: the hooks of PBS change nothing"
            if words != self._trouble:
                log.warning("%s", words)
            self._trouble = words

    def end(self) -> None:
        """Take the file away: from now on nobody writes it."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s: %s", self._path, error.strerror)


def state_of(seen: Seen, config: Config, *, paused: bool, names: Names) -> State:
    """Return what the hook is told."""
    snapshot = seen.snapshot
    modes = {p.name: config.mode(p.name) for p in snapshot.partitions}
    if paused:
        modes = {n: Mode.OBSERVE if m is Mode.ENFORCE else m for n, m in modes.items()}
    free = left(snapshot.nodes, seen.plan)
    until = _kept(seen)
    by_name = {node.name: node for node in snapshot.nodes}
    queues = tuple(
        (
            partition.name,
            Ground(
                kinds=_rooms((_empty(by_name[n]) for n in partition.nodes if n in by_name), {}),
                rooms=_rooms((free[n] for n in partition.nodes if n in free), until),
            ),
        )
        for partition in snapshot.partitions
        if not partition.keeps_shapes  # a queue that is not told of is one without shapes
    )
    return State(
        written_s=snapshot.now_s,
        mode=Mode.OBSERVE,
        modes=tuple(modes.items()),
        default_queue=next((p.name for p in snapshot.partitions if p.default), ""),
        type_resource=names.gpu_type,
        share_resource=names.share,
        molds=seen.policy.molds,
        queues=queues,
    )


def left(nodes: Iterable[Node], plan: Plan) -> dict[str, Node]:
    """Return the nodes that take jobs, with what the jobs that can start now leave of them."""
    free = {node.name: node for node in nodes if node.up}
    for start in plan.starts:
        demand = start.job.demand(start.shape)
        for name in (name for names in start.all_nodes for name in names):
            if name in free:
                free[name] = _without(free[name], demand)
    return free


def _without(node: Node, demand: Demand) -> Node:
    cpus = node.free_cpus if demand.cpus < 0 else demand.cpus
    gpus, pools = demand.gpus, []
    for pool in node.pools:
        taken = min(gpus, pool.free) if demand.gpu_type in ("", pool.gpu_type) else 0
        pools.append(replace(pool, free=pool.free - taken))
        gpus -= taken
    return replace(
        node,
        free_cpus=max(0, node.free_cpus - cpus),
        free_mem_mib=max(0, node.free_mem_mib - demand.mem_mib),
        pools=tuple(pools),
    )


def _empty(node: Node) -> Node:
    whole = (pool for pool in node.pools if not pool.in_parts_alone)
    pools = tuple(replace(pool, free=pool.total) for pool in whole)
    return replace(node, free_cpus=node.cpus, free_mem_mib=node.mem_mib, pools=pools)


def _kept(seen: Seen) -> Mapping[str, float]:
    """Return until when each node is free that is kept for a first waiting job, or reserved."""
    snapshot = seen.snapshot
    kept = [(claim.nodes, claim.at_s) for claim in seen.plan.claims]
    kept += [(r.nodes, r.start_s) for r in snapshot.reservations if r.end_s > snapshot.now_s]
    until: dict[str, float] = {}
    for names, at_s in kept:
        for name in names:
            until[name] = min(at_s, until.get(name, at_s))
    return until


def _rooms(nodes: Iterable[Node], until: Mapping[str, float]) -> tuple[Room, ...]:
    """Return nodes that are alike together; of each the pool with the most GPUs.

    Of many sorts those with the most GPUs: what the hook does not know it leaves to pliantd.
    """
    alike: Counter[Room] = Counter()
    for node in nodes:
        pool = max(node.pools, key=lambda pool: pool.free, default=None)
        gpus, kind = (pool.free, pool.gpu_type) if pool else (0, "")
        until_s = until.get(node.name, 0.0)
        alike[Room(1, gpus, node.free_cpus, node.free_mem_mib, kind, until_s)] += 1
    rooms = [replace(room, nodes=number) for room, number in alike.items()]
    most_first = sorted(rooms, key=lambda room: (room.nodes * room.gpus, room.cpus), reverse=True)
    return tuple(most_first[:MOST_SORTS])
