"""What a shape takes of a node."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pliant.model.shapes import Kind, Shape

ALL_CORES = -1
"""As a number of cores: every core of a node."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a shape takes on each of its nodes."""

    gpus: int = 0
    share: int = 1
    gpu_type: str = ""
    cpus: int = 1  # ALL_CORES: every core
    mem_mib: int = 0
    tasks: int = 1

    def splits_cores(self, threads: int) -> bool:
        """Whether tasks with more than one CPU each would share cores of so many threads.

        Measured on 22.05: with GRES on one node, ``-n2 -c3`` is refused on such cores, or held with
        BadConstraints. One task may have any number of CPUs: Slurm gives it the other thread too.
        ``cpus`` is a number here, not ALL_CORES.
        """
        return threads > 1 and 1 < self.tasks < self.cpus and self.cpus % (self.tasks * threads) > 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """How tasks, CPUs and memory follow the GPUs, as the owner's own request had them.

    What was asked per GPU stays in proportion to the GPUs; what was asked per node, per task or
    in total stays per node. Zero means "not asked in this way".
    """

    tasks_per_node: int = 1
    tasks_per_gpu: int = 0
    cpus_per_task: int = 1
    cpus_per_gpu: int = 0
    mem_per_node_mib: int = 0
    mem_per_cpu_mib: int = 0
    mem_per_gpu_mib: int = 0

    def by_gpu(self, gpus: int) -> Footprint:
        """Return the footprint of a job with ``gpus`` on each node in its owner's own request.

        As many tasks as GPUs on a node, and more than one, are one task to a GPU (one MPI or NCCL
        rank to a device): they follow the GPUs, or two ranks would meet on one device.
        """
        if self.tasks_per_gpu or self.tasks_per_node != gpus or gpus == 1:
            return self
        return replace(self, tasks_per_node=1, tasks_per_gpu=1)

    def demand(self, shape: Shape, cores: int = 0) -> Demand:
        """Return what ``shape`` takes on each node; ``cores`` as in Request."""
        gpus = shape.gpus if shape.kind is not Kind.CPU else 0
        tasks = max(1, self.tasks_per_gpu * gpus or self.tasks_per_node)
        cpus = tasks * max(1, self.cpus_per_task)
        if self.cpus_per_gpu and gpus:
            cpus = max(tasks, self.cpus_per_gpu * gpus)
        if shape.kind is not Kind.GPU and cores:
            cpus = cores
        mem = self.mem_per_node_mib
        if self.mem_per_gpu_mib and gpus:
            mem = self.mem_per_gpu_mib * gpus
        elif self.mem_per_cpu_mib and cpus != ALL_CORES:
            mem = self.mem_per_cpu_mib * cpus
        return Demand(gpus, shape.share, shape.gpu_type, cpus, mem, tasks)
