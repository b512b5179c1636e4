"""What the owner wrote without Pliant: the own shape and the footprint, or why it must stay.

Slurm's fields are those of job_submit/lua. Generic resources are written ``gres:gpu:2`` (22.05) or
``gres/gpu:2`` and ``gres/gpu=2`` (23.11 and later), by node, job, task or socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.filter.view import View
from pliant.grammar import quoted
from pliant.model import Footprint, Shape

NO_VAL16: Final = 0xFFFE
NO_VAL: Final = 0xFFFFFFFE
"""Slurm's "not set"; one more is "no limit" (slurm.h)."""
MAX_NODES: Final = 4096
"""The most nodes over which a total is spread here."""
_BITS16: Final = frozenset(
    (
        "cpus_per_task",
        "ntasks_per_node",
        "ntasks_per_tres",
        "ntasks_per_socket",
        "pn_min_cpus",
        "shared",
    )
)
_GRES = re.compile(r"gres[:/]", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


class Fixed(Exception):  # never leaves the filter
    """The job's shape must stay as it was written; says why, in words for the owner."""


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource: ``gpu:a100:2``."""

    name: str
    gpu_type: str
    count: int


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
    """A job without Pliant. ``own`` None: it asks for no GPU. ``nodes`` 0: not said."""

    own: Shape | None
    nodes: int
    footprint: Footprint
    spread: Spread = Spread()


def number(submission: Mapping[str, str], name: str) -> int | None:
    """Return a numeric field, None where it is not set."""
    text = submission.get(name, "")
    if not _COUNT.fullmatch(text):
        return None
    value = int(text)
    return None if value >= (NO_VAL16 if name in _BITS16 else NO_VAL) else value


def read_gres(text: str) -> tuple[Gres, ...]:
    """Read a list of generic resources.

    Raises Fixed where one is written in a way that is not known here.
    """
    found = []
    for item in text.split(",") if text else ():
        name, *rest = _GRES.sub("", item, count=1).replace("=", ":").split(":")
        count = rest.pop() if rest and _COUNT.fullmatch(rest[-1]) else "1"
        # A type is any text to Slurm; it must not get into a token or a message.
        if len(rest) > 1 or not all(map(_NAME.fullmatch, (name, *rest))):
            raise Fixed(f"{quoted(item)} is not a form of GRES that Pliant changes")
        found.append(Gres(name, rest[0] if rest else "", int(count)))
    return tuple(found)


def read_written(submission: Mapping[str, str], view: View) -> Written:
    """Return what the owner wrote.

    Raises Fixed in words where its shape must stay.
    """
    _check_movable(submission)
    gpus = _Gpus.of(submission)
    tasks = _Tasks.of(submission, gpus)
    if gpus.shards:
        share = _share(gpus, submission, view)
        return Written(share, tasks.nodes, tasks.footprint(1))
    total = gpus.total or gpus.per_task * tasks.count
    if not total and not gpus.per_node:
        return Written(None, tasks.nodes, tasks.footprint(max(1, tasks.nodes)))
    names = submission.get("partition", "")
    spread = _spread(gpus, tasks, total)
    for nodes in _node_counts(tasks, total, spread):
        if total % nodes:
            raise Fixed(f"{total} GPUs do not divide over {nodes} nodes: the shape stays")
        own = Shape(nodes, gpus.per_node or total // nodes, gpu_type=gpus.gpu_type)
        footprint = tasks.footprint(nodes)
        if tasks.nodes or view.ever(names, footprint.demand(own), nodes):
            footprint = footprint.by_gpu(own.gpus)
            if spread.tasks == spread.total > 1:  # one to a GPU, even with one GPU on a node
                footprint = replace(footprint, tasks_per_node=1, tasks_per_gpu=1)
            return Written(own, tasks.nodes, footprint, spread)
    raise Fixed("no node could hold the job as it was written: the shape stays")


def _spread(gpus: _Gpus, tasks: _Tasks, total: int) -> Spread:
    """A total of GPUs may go to several nodes, unless there is one task or ``-N`` says how many."""
    if gpus.per_node or (tasks.nodes and tasks.most <= tasks.nodes) or tasks.count == 1:
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


def _share(gpus: _Gpus, submission: Mapping[str, str], view: View) -> Shape:
    per_gpu = view.shards(submission.get("partition", ""), gpus.gpu_type)
    if not per_gpu or per_gpu % gpus.shards:
        raise Fixed(f"--gres=shard:{gpus.shards} is no whole part of one GPU here: the shape stays")
    share = per_gpu // gpus.shards
    return Shape(1, 1, share, gpu_type=gpus.gpu_type)


def _check_movable(submission: Mapping[str, str]) -> None:
    if number(submission, "het_job_offset") is not None:
        raise Fixed("a component of a heterogeneous job keeps its shape")
    if number(submission, "shared") == 0:
        raise Fixed("--exclusive: a job that has its nodes alone keeps its shape")
    if submission.get("reservation"):
        raise Fixed("--reservation: a job in a reservation keeps its shape")
    if submission.get("clusters", "").count(","):
        raise Fixed("--clusters: a job of several clusters keeps its shape")
    if submission.get("batch") == "0":
        raise Fixed("only jobs of sbatch can change their shape")
    if (number(submission, "pn_min_cpus") or 0) > (number(submission, "cpus_per_task") or 1):
        # sbatch itself sets it to --cpus-per-task
        raise Fixed("--mincpus: say -c or --cpus-per-gpu instead to let the shape change")
    if submission.get("tres_per_socket"):
        raise Fixed("--gpus-per-socket: ask per node (--gres=gpu:N) to let the shape change")


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
    def of(cls, submission: Mapping[str, str], gpus: _Gpus) -> _Tasks:
        count = number(submission, "num_tasks") or 0
        per_node = number(submission, "ntasks_per_node") or 0
        nodes, most = number(submission, "min_nodes") or 0, number(submission, "max_nodes") or 0
        if not nodes and count and per_node:
            nodes = -(-count // per_node)
        if gpus.per_task and not count:
            count = gpus.total or gpus.per_node * max(1, nodes) or max(1, nodes * per_node)
        proportions = Footprint(
            tasks_per_gpu=number(submission, "ntasks_per_tres") or gpus.per_task,
            cpus_per_task=number(submission, "cpus_per_task") or 1,
            cpus_per_gpu=_per_gpu(submission, "cpus_per_tres"),
            mem_per_node_mib=number(submission, "min_mem_per_node") or 0,
            mem_per_cpu_mib=number(submission, "min_mem_per_cpu") or 0,
            mem_per_gpu_mib=_per_gpu(submission, "mem_per_tres"),
        )
        return cls(count, per_node, nodes, most, proportions)

    def footprint(self, nodes: int) -> Footprint:
        """Return the footprint of the job on so many nodes.

        Raises Fixed.
        """
        if self.proportions.tasks_per_gpu or not (self.count or self.per_node):
            return self.proportions
        if not self.per_node and self.count % nodes:
            raise Fixed(f"{self.count} tasks do not divide over {nodes} nodes: the shape stays")
        return replace(self.proportions, tasks_per_node=self.per_node or self.count // nodes)


def _per_gpu(submission: Mapping[str, str], field: str) -> int:
    return sum(gres.count for gres in read_gres(submission.get(field, "")) if gres.name == "gpu")
