"""What a job's request says: the shape it carries, and the footprint where nobody noted one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pliant.batch.slurm.gres import GPU, NO_GPU, SHARD, Gres, gres_list, tres
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.values import host_list, size_mib
from pliant.errors import BadAnswer
from pliant.grammar import quoted
from pliant.model import Demand, Footprint, Kind, Shape

_TYPE = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a job asks on each node, or has. ``gpus`` and ``shards`` count; ``mem_mib`` is memory.

    ``per_cpu``: memory was asked for each CPU. ``odd``: why this form cannot be changed, "" if it
    can. What was asked for each GPU stands last.
    """

    nodes: int
    gpu_type: str
    gpus: int
    shards: int
    tasks: int
    cpus: int
    cpus_per_task: int
    mem_mib: int
    per_cpu: bool
    odd: str = ""
    tasks_per_gpu: int = 0
    cpus_per_gpu: int = 0
    mem_per_gpu_mib: int = 0

    def shape(self, shards_per_gpu: int) -> Shape:
        """Return the shape; shards that are no whole part of a GPU count as the next larger one."""
        if self.shards:
            share = max(1, shards_per_gpu // self.shards)
            return Shape(self.nodes, 1, share, gpu_type=self.gpu_type)
        if self.gpus:
            return Shape(self.nodes, self.gpus, gpu_type=self.gpu_type)
        return Shape(self.nodes, 0, kind=Kind.CPU)

    def footprint(self) -> Footprint:
        """Return the footprint of a job about which nothing was noted: per node, or by GPU."""
        per_cpu = self.mem_mib // self.cpus if self.per_cpu and self.cpus else 0
        return Footprint(
            tasks_per_node=1 if self.tasks_per_gpu else self.tasks,
            tasks_per_gpu=self.tasks_per_gpu,
            cpus_per_task=1 if self.cpus_per_gpu else -(-self.cpus // self.tasks),
            cpus_per_gpu=self.cpus_per_gpu,
            mem_per_node_mib=0 if per_cpu or self.mem_per_gpu_mib else self.mem_mib,
            mem_per_cpu_mib=per_cpu,
            mem_per_gpu_mib=self.mem_per_gpu_mib,
        ).by_gpu(self.gpus)

    @property
    def uneven(self) -> str:
        """Why no footprint can say what is asked, in words; "" where one can."""
        divides = self.cpus % self.tasks == 0
        words = f"its {self.cpus} CPUs a node do not divide over its {self.tasks} tasks there"
        return "" if divides else words

    def differs(self, demand: Demand) -> str:
        """Return what differs from ``demand``, in a word; "" where nothing does."""
        if self.tasks != demand.tasks:
            return f"{self.tasks} tasks a node instead of {demand.tasks}"
        if demand.cpus > 0 and self.cpus != demand.cpus:
            return f"{self.cpus} CPUs a node instead of {demand.cpus}"
        if demand.mem_mib and self.mem_mib != demand.mem_mib:
            return f"{self.mem_mib} MiB a node instead of {demand.mem_mib}"
        return ""


def asked(row: JobRow, noted: Footprint | None = None, default_per_cpu_mib: int = 0) -> Asked:
    """Read a row's request, or a running job's allocation.

    ``noted`` is what its token says; ``default_per_cpu_mib`` is the site's DefMemPerCPU.

    Raises BadAnswer.
    """
    nodes = _nodes(row)
    gpu_type, gpus, shards, odd = _gpus(row, nodes)
    tasks = max(1, -(-count(row.num_tasks) // nodes))
    per_task = max(1, count(row.cpus_per_task))
    cpus = max(tasks, -(-count(row.num_cpus) // nodes))
    if row.waits:
        cpus = max(cpus, tasks * per_task, count(row.min_cpus), _per_gpu(row.cpus_per_tres) * gpus)
    mem, per_cpu = _memory(row, (nodes, cpus), noted, default_per_cpu_mib)
    each = _mem_of_gpu(row, nodes, gpus, noted, default_per_cpu_mib)
    if each:
        mem, per_cpu = each * gpus, False
    by_gpu = (_per_gpu(row.tres_per_task), _per_gpu(row.cpus_per_tres), each)
    return Asked(nodes, gpu_type, gpus, shards, tasks, cpus, per_task, mem, per_cpu, odd, *by_gpu)


def least_cpus(row: JobRow) -> tuple[int, int]:
    """Return the least CPUs of a task and of a node, as asked, of one that runs too.

    The number of all CPUs is what a running job has: of whole cores, that is more.
    """
    return count(row.cpus_per_task), count(row.min_cpus)


def _nodes(row: JobRow) -> int:
    """The nodes; squeue's own count of waiting jobs is sometimes one too large."""
    if not row.waits:
        return max(1, len(host_list(row.nodes)))
    told, each = tres(row.tres).get("node", ""), count(row.tasks_per_node)
    if told.isdecimal() and int(told):  # but not of those that --ntasks-per-node makes it need
        return max(int(told), -(-count(row.num_tasks) // each) if each else 1)
    least, most = count(row.num_nodes), count(row.max_nodes)
    return max(1, min(least, most) if most else least)


def _gpus(row: JobRow, nodes: int) -> tuple[str, int, int, str]:
    """GPU type, whole GPUs and shards on each node, and what is odd about the form."""
    per_node, in_total = gres_list(row.tres_per_node), gres_list(row.tres_per_job)
    per_task, per_socket = gres_list(row.tres_per_task), gres_list(row.tres_per_socket)
    every = (*per_node, *in_total, *per_task, *per_socket)
    wanted = [g for g in every if g.name in (GPU, SHARD)]
    if not all(_TYPE.fullmatch(g.type) for g in wanted):  # to Slurm any text of a user's
        raise BadAnswer(f"the GPU type {quoted(wanted[0].type)} is no name")
    total = _total(in_total, GPU) or _total(per_task, GPU) * count(row.num_tasks)
    gpus = max(_total(per_node, GPU), -(-total // nodes), _total(per_socket, GPU))
    return (
        wanted[0].type if wanted else "",
        gpus,
        _total(per_node, SHARD),
        _odd(row, every, wanted, (total, nodes)),
    )


_CANNOT = "which cannot be changed while a job waits"
_INSTEAD = {
    "it asks for several GPUs per task": f" (--gpus-per-task), {_CANNOT}: --gres=gpu:N can",
    "it asks for GPUs per task and in another way": f", {_CANNOT}: --gres=gpu:N alone can",
    "it asks for GPUs per socket": f" (--gpus-per-socket), {_CANNOT}: --gres=gpu:N can",
}
"""The option that keeps a job as it is, and what its owner could write instead."""


def _odd(row: JobRow, every: tuple[Gres, ...], wanted: list[Gres], size: tuple[int, int]) -> str:
    """``size``: GPUs asked in total, nodes."""
    total, nodes, tasks = *size, count(row.num_tasks)
    others = sorted({g.name for g in every} - {GPU, SHARD, NO_GPU})
    per_task = _per_gpu(row.tres_per_task)
    checks = (
        (per_task > 1, "it asks for several GPUs per task"),
        (per_task > 0 and len(wanted) > 1, "it asks for GPUs per task and in another way"),
        (_per_gpu(row.tres_per_socket) > 0, "it asks for GPUs per socket"),
        (bool(others), f"it asks for {', '.join(others)} too"),
        (len({(g.name, g.type) for g in wanted}) > 1, "it asks for several kinds of GPUs"),
        (any(g.count == 0 for g in wanted), "it asks for 0 GPUs, which Slurm does not honour"),
        (total % nodes > 0, "its GPUs do not divide over its nodes"),
        (tasks > nodes and tasks % nodes > 0, "its tasks do not divide over its nodes"),
    )
    words = next((words for holds, words in checks if holds), "")
    return words + _INSTEAD.get(words, "")


def _total(every: tuple[Gres, ...], name: str) -> int:
    return sum(gres.count for gres in every if gres.name == name)


def _per_gpu(text: str) -> int:
    return _total(gres_list(text), GPU)


def _mem_of_gpu(
    row: JobRow, nodes: int, gpus: int, noted: Footprint | None, default_per_cpu_mib: int
) -> int:
    """The MiB that were asked for each GPU of a node; 0 where memory was asked in another way.

    Slurm shows DefMemPerGPU also where another way goes before it. 24.11, which says ``gres/gpu``,
    shows it as the job's least memory where it counts; 22.05 shows DefMemPerCPU there: then the
    total tells, where it is of nothing else, until the job is changed. For a job that asks for none
    24.11 takes DefMemPerGPU, and leaves the total of DefMemPerCPU.
    """
    each, least = _mem_per_gpu(row.mem_per_tres), size_mib(row.min_memory)
    if not least or "gres/" in row.mem_per_tres:
        return each if least in (0, each) else 0
    if noted is not None and noted.mem_per_gpu_mib == each:
        return each if least != each * gpus else 0  # that was set for the node
    total = size_mib(tres(row.tres).get("mem", ""))
    if least == each and 0 < total == default_per_cpu_mib * count(row.num_cpus):
        return each
    others = (least * nodes, least * count(row.num_cpus))
    return each if total == each * nodes * gpus and total not in others else 0


def _mem_per_gpu(text: str) -> int:
    """``gres:gpu:1024``, in MiB, or with a unit."""
    items = (item.rpartition(":")[2].rpartition("=")[2] for item in text.split(",") if GPU in item)
    return sum(size_mib(item) for item in items)


def only_in_total(row: JobRow) -> bool:
    """Whether its GPUs per task become a total alone: 22.05, which writes ``gres:gpu``."""
    return _per_gpu(row.tres_per_task) > 0 and "gres:" in row.tres_per_task


def _memory(
    row: JobRow, size: tuple[int, int], noted: Footprint | None, default_per_cpu_mib: int
) -> tuple[int, bool]:
    """Memory on each node, and whether it follows the CPUs; ``size`` is nodes, CPUs of each.

    squeue's MinMemory does not tell per node from per CPU; the memory in a waiting job's TRES is
    the total, but not always brought up to date.
    """
    nodes, cpus = size
    total, least = size_mib(tres(row.tres).get("mem", "")), size_mib(row.min_memory)
    if not row.waits or not least:
        return (-(-total // nodes), False)
    if noted is not None and (noted.mem_per_cpu_mib or noted.mem_per_node_mib):
        per_cpu = noted.mem_per_cpu_mib == least
    else:
        scaled = total == least * count(row.num_cpus) != least * nodes
        per_cpu = scaled or least == default_per_cpu_mib
    return (least * cpus, True) if per_cpu else (least, False)


def lacking(some: frozenset[str], nodes: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the nodes that have none of ``some`` features."""
    return frozenset(name for name, features in nodes.items() if some.isdisjoint(features))
