"""What the monitor tells after each look: per job its speed and what it uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.monitor.gpu_use import GpuUse
from pliant.monitor.gpus import Gpu, GpuReading
from pliant.monitor.sample import CountedBy, Pressure, Sample
from pliant.monitor.speed import Speed, Stalled, speed, stalled


@dataclass(frozen=True, slots=True)
class Look:
    """All jobs of a node at one moment. ``at_s``: monotonic; ``clock_s``: since the epoch.

    ``gpus``: None where nobody asked for them.
    """

    at_s: float
    clock_s: float
    jobs: Mapping[str, Sample]
    pressure: Pressure | None = None
    gpus: GpuReading | None = None


@dataclass(frozen=True, slots=True)
class JobReading:
    """A job: what it uses now, and its speed since the look before; None: not known yet.

    ``cpu_s``: CPU seconds until now, of its living steps where ``cpu_by`` is processes. ``gpus``:
    those that its processes are on.
    """

    job: str
    cpu_s: float
    cpu_by: CountedBy
    memory_bytes: int
    memory_by: CountedBy
    processes: int
    threads: int
    speed: Speed | None
    stalled: Stalled | None
    alarms: tuple[str, ...]
    gpus: tuple[GpuUse, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeReading:
    """A node at ``at_s`` (seconds since the epoch) and in the ``window_s`` seconds before.

    ``gpus``: all of the node's, and ``unread`` in words what could not be read of them.
    """

    node: str
    at_s: float
    window_s: float
    stalled: Stalled | None
    alarms: tuple[str, ...]
    jobs: tuple[JobReading, ...]
    gpus: tuple[Gpu, ...] = ()
    unread: tuple[str, ...] = ()


def reading(node: str, before: Look, after: Look) -> NodeReading:
    """Return what two looks at a node say, its jobs by number."""
    window_s = after.at_s - before.at_s
    node_stalled = stalled(before.pressure, after.pressure, window_s)
    return NodeReading(
        node=node,
        at_s=after.clock_s,
        window_s=window_s,
        stalled=node_stalled,
        alarms=node_stalled.alarms() if node_stalled else (),
        jobs=tuple(
            _job(before.jobs.get(job), after.jobs[job]) for job in sorted(after.jobs, key=int)
        ),
        gpus=after.gpus.gpus if after.gpus else (),
        unread=after.gpus.unread if after.gpus else (),
    )


def _job(before: Sample | None, after: Sample) -> JobReading:
    waited = stalled(before.pressure, after.pressure, after.at_s - before.at_s) if before else None
    return JobReading(
        job=after.job,
        cpu_s=sum(after.cpu_s.values()),
        cpu_by=after.cpu_by,
        memory_bytes=after.memory_bytes,
        memory_by=after.memory_by,
        processes=after.processes,
        threads=len(after.threads),
        speed=speed(before, after) if before else None,
        stalled=waited,
        alarms=waited.alarms() if waited else (),
        gpus=after.gpus,
    )
