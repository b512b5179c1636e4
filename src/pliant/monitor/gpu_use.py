"""What a job's processes use of the node's GPUs. Pure.

A process counts where it is known to be the one of that number here (:mod:`pliant.monitor.gpus`).
A GPU that a job holds and none of its processes is on cannot be told from a node's own files, since
v2's device filter is a program that cannot be read: :mod:`pliant.daemon.held` is told it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pliant.monitor.gpus import Gpu, GpuReading


@dataclass(frozen=True, slots=True)
class GpuUse:
    """A job on a GPU or MIG instance.

    ``mem_mib``: of all its processes there; None where one's is not told. ``sm_pct``: percent of
    the time since the last reading in which its kernels ran; None where none of them was sampled.
    """

    uuid: str
    minor: int | None
    processes: int
    mem_mib: int | None
    sm_pct: int | None


def gpu_use(reading: GpuReading, pids: Collection[int]) -> tuple[GpuUse, ...]:
    """Return the GPUs that these processes are on."""
    found = (_on(gpu, pids) for gpu in reading.gpus)
    return tuple(use for use in found if use)


def _on(gpu: Gpu, pids: Collection[int]) -> GpuUse | None:
    own = [one for one in gpu.processes or () if one.known and one.pid in pids]
    if not own:
        return None
    memory = [one.mem_mib for one in own]
    sampled = [one.sm_pct for one in own if one.sm_pct is not None]
    return GpuUse(
        uuid=gpu.uuid,
        minor=gpu.minor,
        processes=len(own),
        mem_mib=None if None in memory else sum(one or 0 for one in memory),
        sm_pct=min(100, sum(sampled)) if sampled else None,
    )
