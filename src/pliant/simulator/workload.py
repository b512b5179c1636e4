"""What is replayed: a cluster, and jobs with what is true of them whatever anybody says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pliant.model import Job, Node, Partition, Shape

Speed = Callable[[Shape], float]
"""How fast a job really runs as a shape, relative to its own shape; 0.0: it makes no progress."""


def alike(shape: Shape) -> float:
    """The speed of a job that runs no faster and no slower as any shape."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job as it stands in the queue from ``job.submit_s`` on.

    ``job.shape`` is the own shape, as its owner wrote it; ``job.shapes`` all that it may run as.
    What policies are told of its speed stands in ``job.spec``; ``speed`` is the truth.
    ``work_s``: how many seconds it would run as its own shape, alone and without a restart.
    """

    job: Job
    work_s: float
    speed: Speed = alike

    def run_s(self, shape: Shape) -> float:
        """How many seconds it would run as a shape; inf where it makes no progress."""
        speed = self.speed(shape)
        return self.work_s / speed if speed > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster, and the jobs that arrive there, in the order of their submission.

    ``choices``: what the source leaves open and was chosen here, in words, to be shown beside
    every result.
    """

    name: str
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    arrivals: tuple[Arrival, ...]
    choices: tuple[str, ...] = field(default=())
