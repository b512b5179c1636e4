"""What the owner wrote without Pliant: the own shape and the footprint, or why it must stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.filter.fields import Fixed, number, per_gpu, read_gres
from pliant.filter.inventory import Inventory
from pliant.filter.movable import (
    check_memory,
    check_movable,
    default_memory,
    defaults_per_gpu,
    least_nodes,
)
from pliant.grammar import quoted
from pliant.model import Footprint, Kind, Shape

MAX_NODES: Final = 4096
"""The most nodes over which a total is spread here."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What Slurm may spread over nodes by itself: ``total`` GPUs, 0 where nothing.

    ``most``: the most nodes that the owner allows, 0 where not said. ``tasks``: how many, 0 where
    they follow the nodes or the GPUs whatever their number.
    """

    total: int = 0
    most: int = 0
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """A job without Pliant. ``own`` None: it asks for no GPU. ``nodes`` 0: not said.

    ``uneven``: the GPUs, in all, that Slurm may give it as 3 + 1 over several nodes; 0 where none.
    ``is_open``: it has several tasks, and Slurm itself chooses over how many nodes they go, with so
    many GPUs on each. ``added``: the memory that Slurm gives by itself, by node and by CPU.
    """

    own: Shape | None
    nodes: int
    footprint: Footprint
    spread: Spread = Spread()
    uneven: int = 0
    is_open: bool = False
    added: tuple[int, int] = (0, 0)

    @property
    def taken(self) -> Footprint:
        """The footprint with the memory that Slurm adds: what a shape takes in truth."""
        per_node, per_cpu = self.added
        said = self.footprint
        if said.mem_per_gpu_mib or not any(self.added):
            return said
        return replace(said, mem_per_node_mib=per_node, mem_per_cpu_mib=per_cpu)


def read_written(submission: Mapping[str, str], inventory: Inventory) -> Written:
    """Return what the owner wrote.

    Raises Fixed in words where its shape must stay.
    """
    check_movable(submission, inventory)
    gpus = _Gpus.of(submission)
    added = defaults_per_gpu(submission, inventory)
    tasks = _Tasks.of(submission, gpus, added).at_least(least_nodes(submission, inventory))
    memory = default_memory(submission, inventory)
    written = replace(_read(submission, inventory, gpus, tasks), added=memory)
    if written.is_open:
        _check_open(submission, written, tasks)
    own = written.own or Shape(max(1, written.nodes), 0, kind=Kind.CPU)
    check_memory(submission, inventory, written.taken.demand(own))
    if gpus.shards and any(added):
        raise Fixed("a share of a GPU where the partition has DefCpuPerGPU or DefMemPerGPU stays")
    return written


def _read(
    submission: Mapping[str, str], inventory: Inventory, gpus: _Gpus, tasks: _Tasks
) -> Written:
    if gpus.shards:
        share = _share(gpus, submission, inventory)
        return Written(share, tasks.nodes, tasks.footprint(1))
    total = gpus.total or gpus.per_task * tasks.count
    if not total and not gpus.per_node:
        footprint = tasks.footprint(max(1, tasks.nodes))
        return Written(None, tasks.nodes, footprint, is_open=tasks.are_open)
    names = submission.get("partition", "")
    spread = _spread(gpus, tasks, total)
    for nodes in _node_counts(tasks, total, spread):
        if total % nodes:
            raise Fixed(f"{total} GPUs do not divide over {nodes} nodes: the shape stays")
        own = Shape(nodes, gpus.per_node or total // nodes, gpu_type=gpus.gpu_type)
        footprint = tasks.footprint(nodes)
        if tasks.nodes or inventory.ever(names, footprint.demand(own), nodes):
            footprint = footprint.by_gpu(own.gpus)
            if spread.tasks == spread.total > 1:  # one to a GPU, even with one GPU on a node
                footprint = replace(footprint, tasks_per_node=1, tasks_per_gpu=1)
            is_open = gpus.per_node > 0 and tasks.are_open
            only_even = gpus.per_node or tasks.on_one_node or tasks.nodes >= total
            uneven = 0 if only_even else total
            return Written(own, tasks.nodes, footprint, spread, uneven, is_open)
    check_memory(submission, inventory, tasks.footprint(1).demand(Shape(1, gpus.per_node or total)))
    raise Fixed("no node could hold the job as it was written: the shape stays")


def _check_open(submission: Mapping[str, str], written: Written, tasks: _Tasks) -> None:
    """Raise Fixed where its own shape could not be left as open as it was written."""
    nodes = written.own.nodes if written.own else 1
    if nodes > 1 or submission.get("array_inx"):
        raise Fixed(
            f"Slurm may spread its {tasks.count} tasks over nodes as it likes:"
            f" -N{nodes} would let the shape change"
        )


def _spread(gpus: _Gpus, tasks: _Tasks, total: int) -> Spread:
    """A total of GPUs may go to several nodes, unless there is one task or ``-N`` says how many."""
    if gpus.per_node or tasks.nodes_are_said or tasks.count == 1:
        return Spread()
    follows = tasks.proportions.tasks_per_gpu > 0 or tasks.per_node > 0
    return Spread(total, tasks.most, 0 if follows else tasks.count)


def _node_counts(tasks: _Tasks, total: int, spread: Spread) -> Sequence[int]:
    """The numbers of nodes that the own shape may have, the one to prefer first."""
    if not tasks.nodes:
        return _divisors(total or tasks.count or 1)
    within = [nodes for nodes in _divisors(spread.total) if tasks.nodes <= nodes <= tasks.most]
    return within or (tasks.nodes,)


def _divisors(number: int) -> list[int]:
    return [nodes for nodes in range(1, min(number, MAX_NODES) + 1) if number % nodes == 0]


def _share(gpus: _Gpus, submission: Mapping[str, str], inventory: Inventory) -> Shape:
    per_gpu = inventory.shards(submission.get("partition", ""), gpus.gpu_type)
    if not per_gpu or per_gpu % gpus.shards:
        raise Fixed(f"--gres=shard:{gpus.shards} is no whole part of one GPU here: the shape stays")
    share = per_gpu // gpus.shards
    return Shape(1, 1, share, gpu_type=gpus.gpu_type)


@dataclass(frozen=True, slots=True)
class _Gpus:
    """The GPUs asked for, in each of the ways there are."""

    gpu_type: str = ""
    per_node: int = 0
    total: int = 0
    per_task: int = 0
    shards: int = 0

    @classmethod
    def of(cls, submission: Mapping[str, str]) -> _Gpus:
        ways = {
            way: read_gres(submission.get(f"tres_per_{way}", "")) for way in ("node", "job", "task")
        }
        asked = [gres for way in ways.values() for gres in way if gres.name == "gpu"]
        shards = [gres for gres in ways["node"] if gres.name == "shard"]
        others = {g.name for way in ways.values() for g in way} - {"gpu", "shard", "cpu"}
        if others:
            raise Fixed(f"other GRES beside GPUs ({quoted(min(others))}) keep the shape")
        if len({gres.gpu_type for gres in asked}) > 1 or len(shards) > 1 or (shards and asked):
            raise Fixed("several kinds of GPUs in one job keep the shape")
        count = {
            way: sum(gres.count for gres in found if gres.name == "gpu")
            for way, found in ways.items()
        }
        if count["task"] > 1:
            raise Fixed("--gpus-per-task above 1 keeps the shape: ask per node (--gres=gpu:N)")
        kind = asked[0].gpu_type if asked else shards[0].gpu_type if shards else ""
        return cls(
            kind, count["node"], count["job"], count["task"], shards[0].count if shards else 0
        )


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The tasks asked for, and the nodes, from ``nodes`` to ``most``. Zero: not said."""

    count: int
    per_node: int
    nodes: int
    most: int
    proportions: Footprint  # all but the tasks per node

    @classmethod
    def of(cls, submission: Mapping[str, str], gpus: _Gpus, added: tuple[int, int]) -> _Tasks:
        count = number(submission, "num_tasks") or 0
        per_node = number(submission, "ntasks_per_node") or 0
        nodes, most = number(submission, "min_nodes") or 0, number(submission, "max_nodes") or 0
        if count and per_node:  # at most so many
            nodes = max(nodes, -(-count // per_node))
        if 0 < most < nodes:
            raise Fixed(
                f"{count} tasks, {per_node} on each node, need {nodes} nodes: say -N{nodes}"
            )
        if gpus.per_task and not count:
            count = gpus.total or gpus.per_node * max(1, nodes) or max(1, nodes * per_node)
        proportions = Footprint(
            tasks_per_gpu=number(submission, "ntasks_per_tres") or gpus.per_task,
            cpus_per_task=number(submission, "cpus_per_task") or 1,
            cpus_per_gpu=per_gpu(submission, "cpus_per_tres") or added[0],
            mem_per_node_mib=number(submission, "min_mem_per_node") or 0,
            mem_per_cpu_mib=number(submission, "min_mem_per_cpu") or 0,
            mem_per_gpu_mib=per_gpu(submission, "mem_per_tres") or added[1],
        )
        return cls(count, per_node, nodes, most, proportions)

    @property
    def are_open(self) -> bool:
        """Whether Slurm may put them on one node or on several."""
        return self.count > 1 and not self.per_node and not self.nodes_are_said

    @property
    def nodes_are_said(self) -> bool:
        """Whether there is one number of nodes that they can have."""
        return self.nodes > 0 and self.most <= self.nodes

    @property
    def on_one_node(self) -> bool:
        """Whether Slurm puts all on one node."""
        return self.count == 1 or (self.nodes == 1 and self.nodes_are_said)

    def at_least(self, nodes: int) -> _Tasks:
        """Return the same with the nodes that the partition gives at least, where it may."""
        if self.nodes >= nodes or 0 < self.most < nodes:
            return self
        return replace(self, nodes=nodes, most=self.most or MAX_NODES)

    def footprint(self, nodes: int) -> Footprint:
        """Return the footprint of the job on so many nodes.

        Raises Fixed.
        """
        if self.proportions.tasks_per_gpu or not (self.count or self.per_node):
            return self.proportions
        if self.count % nodes:
            raise Fixed(f"{self.count} tasks do not divide over {nodes} nodes: the shape stays")
        return replace(self.proportions, tasks_per_node=self.count // nodes or self.per_node)
