"""What the second door answers of what monitors see, beside :mod:`pliant.daemon.answers`.

Its rules hold here too. A value that is None, or 0 where that says nothing, is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.wire.monitor import UNITS, GpuUse, NodeGpu

TIERS = tuple(UNITS)
"""How a speed is measured; tier 1 is the first of them."""


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """How fast a job ran on a node, in the window that ended at ``end_s``; None: not known.

    ``cpu``: CPU seconds per second. ``waited``: the part of the time in which its threads wanted to
    run that they waited. ``gpus``: those that its processes are on. ``idle_since_s``: since when
    each GPU that it holds there and does not use has been so.
    """

    job: str
    tier: str  # counters, heartbeat, cpu: only values of one tier say something together
    value: float
    unit: str
    end_s: float
    cpu: float | None = None
    memory_mib: float = 0.0
    waited: float | None = None
    gpus: tuple[GpuUse, ...] = ()
    idle_since_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorRow:
    """What a node's monitor last reported: how its GPUs were at ``seen_s``."""

    node: str
    heard_s: float
    speeds: tuple[SpeedRow, ...] = ()
    seen_s: float = 0.0
    gpus: tuple[NodeGpu, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorsRow:
    """What the nodes' monitors have reported since the start."""

    nodes: int = 0  # that were heard
    reports: int = 0
    repeated: int = 0  # reports that came again, and were not counted again
    missing: int = 0  # reports that never came
    windows: int = 0  # speeds of jobs
    refused: Mapping[str, int] = field(default_factory=dict)  # by kind
    last: tuple[MonitorRow, ...] = ()  # for administrators


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node: what is in use of it, and its GPUs as its monitor saw them at ``seen_s``."""

    name: str
    up: bool
    cpus: int
    cpus_free: int
    gpus: int  # as the batch system counts them
    gpus_free: int  # whole ones
    heard_s: float = 0.0  # when its monitor reported last; 0: never
    seen_s: float = 0.0
    seen: tuple[NodeGpu, ...] = ()


@dataclass(frozen=True, slots=True)
class TierSpeed:
    """How fast a job runs on so many of its nodes, which all measure in one tier."""

    tier: str
    value: float
    unit: str
    nodes: int


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A running job, what it uses on all its nodes, and with whom it shares one of them.

    ``cpu``: CPU seconds per second, of ``cpus`` that it holds. ``gpu_busy``: the part of the time
    in which its kernels ran, a mean over the GPUs that it is on where that is told.
    ``idle_since_s``: since when each GPU that it holds and is not on has been so, the earliest
    first.
    """

    id: str
    user: str
    name: str
    state: str  # running, ending
    shape: str
    nodes: tuple[str, ...]
    started_s: float
    cpus: int
    gpus: int  # whole ones that it holds
    speeds: tuple[TierSpeed, ...] = ()
    cpu: float | None = None
    memory_mib: float | None = None
    gpus_used: int | None = None
    gpu_busy: float | None = None
    gpu_memory_mib: float | None = None
    idle_since_s: tuple[float, ...] = ()
    beside: tuple[str, ...] = ()
    hidden: int = 0  # others beside it, which the asker may not see


@dataclass(frozen=True, slots=True)
class TopAnswer:
    """The nodes and jobs that the asker may see.

    ``queue``: the first of the waiting jobs that say something to Pliant, of ``queued`` in all;
    ``resizes``: what is under way with running ones.
    """

    now_s: float
    observed_s: float
    policy: str
    paused: bool
    waiting: int
    running: int
    monitored: int  # nodes whose monitor was heard of late
    nodes: tuple[NodeRow, ...] = ()
    jobs: tuple[RunningRow, ...] = ()
    more: int = 0  # rows that did not fit into one answer
    troubles: tuple[str, ...] = ()
    stands_by: str = ""
    queue: tuple[JobRow, ...] = ()
    queued: int = 0
    resizes: tuple[ResizeRow, ...] = ()
