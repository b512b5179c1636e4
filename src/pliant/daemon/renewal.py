"""What a job's token says once its owner has given the job another request.

What the owner changed by hand meanwhile is the owner's own from here on, and nothing else is: what
Pliant set stays Pliant's, and what was noted of the rest holds.
"""

from __future__ import annotations

from dataclasses import replace

from pliant.model import Footprint, Job, Kind, Request, Shape, Spec


def renewed(job: Job, request: Request) -> Spec:
    """Return what a waiting job, as it is now, says with another request of its owner's."""
    spec = job.spec or Spec(request)
    own, left = _shapes(job.shape, spec)
    footprint = spec.footprint and _footprint(job, spec.footprint, request)
    if footprint is None and (own, left) != (spec.own, spec.set):
        footprint = job.footprint
    return Spec(request, own, left, footprint, mark=spec.mark, renewed=True)


def _shapes(carried: Shape, spec: Spec) -> tuple[Shape, Shape | None]:
    """The own shape, and the one that Pliant set or is to take for its own.

    The owner names the nodes and what each of them gives apart from each other (``NumNodes=``,
    ``Gres=``).
    """
    left = spec.set or spec.own
    if spec.own is None or left is None:
        return carried, None
    if carried == left:
        return spec.own, spec.set
    per_node = replace(carried, nodes=left.nodes)
    own = replace(
        spec.own if per_node == left else carried,
        nodes=spec.own.nodes if carried.nodes == left.nodes else carried.nodes,
    )
    return own, None if own == carried else carried


def _footprint(job: Job, noted: Footprint, request: Request) -> Footprint:
    """What was noted, but for tasks, CPUs and memory of which the job carries another number.

    No memory was noted where none was asked: what there is is the batch system's.
    """
    now, shape, found = job.footprint, job.shape, noted
    carries = now.demand(shape)
    if carries.tasks != found.demand(shape).tasks:
        found = replace(found, tasks_per_node=now.tasks_per_node, tasks_per_gpu=now.tasks_per_gpu)
    # What a CPU form has is what cores= says, whatever is noted.
    by_cores = shape.kind is not Kind.GPU and request.cores
    if not by_cores and carries.cpus != found.demand(shape).cpus:
        found = replace(found, cpus_per_task=now.cpus_per_task, cpus_per_gpu=now.cpus_per_gpu)
    if _asks_memory(noted) and carries.mem_mib != found.demand(shape, request.cores).mem_mib:
        found = replace(
            found,
            mem_per_node_mib=now.mem_per_node_mib,
            mem_per_cpu_mib=now.mem_per_cpu_mib,
            mem_per_gpu_mib=now.mem_per_gpu_mib,
        )
    return found


def _asks_memory(noted: Footprint) -> bool:
    return bool(noted.mem_per_node_mib or noted.mem_per_cpu_mib or noted.mem_per_gpu_mib)
