"""What a job's token says once its owner has given the job another request."""

from __future__ import annotations

from dataclasses import replace

from pliant.model import Footprint, Job, Request, Spec


def renewed(job: Job, request: Request) -> Spec:
    """Return what a waiting job, as it is now, says with another request of its owner's.

    Where it carries what Pliant left it with, all that was noted of it stays. Where another shape,
    or other CPUs, tasks or memory, all that it carries now is its owner's own from here on.
    """
    spec = job.spec
    if spec is None or _by_hand(job, spec):
        noted = spec.footprint if spec else None
        spec = Spec(request, job.shape, None, _footprint(job, noted))
    return replace(spec, request=request, pinned=False, renewed=True)


def _by_hand(job: Job, spec: Spec) -> bool:
    if spec.own is None or job.shape != (spec.set or spec.own):
        return True
    return spec.footprint is not None and _footprint(job, spec.footprint) != spec.footprint


def _footprint(job: Job, noted: Footprint | None) -> Footprint:
    """What a job carries; without memory where none was asked: that is the batch system's."""
    if noted is None or noted.mem_per_node_mib or noted.mem_per_cpu_mib or noted.mem_per_gpu_mib:
        return job.footprint
    return replace(job.footprint, mem_per_node_mib=0, mem_per_cpu_mib=0, mem_per_gpu_mib=0)
