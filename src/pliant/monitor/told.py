"""A reading in the words of a report to pliantd. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.monitor.gpu_use import GpuUse
from pliant.monitor.gpus import Gpu
from pliant.monitor.reading import JobReading, NodeReading
from pliant.monitor.speed import Speed
from pliant.monitor.tier import Tier
from pliant.wire import monitor as wire

_MIB = 2**20
_TIERS = {Tier.COUNTERS: "counters", Tier.CPU: "cpu"}


def windows(reading: NodeReading) -> Iterator[wire.Window]:
    """Yield the windows of a reading, of jobs whose speed is known."""
    all_known = _all_known(reading)
    for job in reading.jobs:
        if job.speed is not None and job.speed.tier in _TIERS:
            yield _window(reading.at_s, job, job.speed, all_known)


def node_gpus(reading: NodeReading) -> tuple[wire.NodeGpu, ...]:
    """Return the node's GPUs and instances of MIG."""
    return tuple(map(_node_gpu, reading.gpus))


def _all_known(reading: NodeReading) -> bool:
    """Whether each process on each GPU is known: then a job is on no more of them than it seems."""
    return bool(reading.gpus) and all(
        gpu.processes is not None and all(one.known for one in gpu.processes)
        for gpu in reading.gpus
    )


def _window(end_s: float, job: JobReading, speed: Speed, all_known: bool) -> wire.Window:
    tier = _TIERS[speed.tier]
    ran = speed.parts.run_share
    return wire.Window(
        job=job.job,
        begin_s=max(0.0, end_s - speed.window_s),
        end_s=end_s,
        tier=tier,  # type: ignore[arg-type]  # mypy does not know the words of _TIERS
        value=speed.value,
        unit=wire.UNITS[tier],  # type: ignore[arg-type]  # nor the units
        window_s=speed.window_s,
        cpu=speed.parts.cpu,
        cpu_s=job.cpu_s,
        memory_mib=job.memory_bytes / _MIB,
        threads=job.threads,
        waited=None if ran is None else min(1.0, max(0.0, 1 - ran)),
        gpus=tuple(map(_use, job.gpus[: wire.MOST_GPUS])),
        all_gpus=all_known and len(job.gpus) <= wire.MOST_GPUS,
    )


def _use(use: GpuUse) -> wire.GpuUse:
    return wire.GpuUse(use.uuid, use.mem_mib, _part(use.sm_pct))


def _node_gpu(gpu: Gpu) -> wire.NodeGpu:
    return wire.NodeGpu(
        gpu=gpu.uuid,
        minor=gpu.minor,
        busy=_part(gpu.util_pct),
        memory_mib=gpu.mem_used_mib,
        total_mib=gpu.mem_total_mib,
        processes=None if gpu.processes is None else len(gpu.processes),
    )


def _part(percent: int | None) -> float | None:
    return None if percent is None else min(1.0, percent / 100)
