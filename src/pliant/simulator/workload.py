"""What is replayed: a cluster, and jobs with what is true of them whatever anybody says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pliant.model import Company, Job, Node, Partition, Shape

Speed = Callable[[Shape], float]
"""How fast a job really runs as a shape, relative to its own shape; 0.0: it makes no progress."""


@lru_cache(maxsize=1024)
def _alone(gpu_type: str) -> Shape:
    """One GPU: asked for by every job."""
    return Shape(1, 1, gpu_type=gpu_type)


def alike(shape: Shape) -> float:
    """The speed of a job that runs no faster and no slower as any shape."""
    del shape
    return 1.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job as it stands in the queue from ``job.submit_s`` on.

    ``job.shape`` is the own shape, as its owner wrote it; ``job.shapes`` all that it may run as.
    What policies are told of its speed stands in ``job.spec``; ``speed`` is the truth.
    ``work_s``: how many seconds it would run as its own shape, alone and without a restart.
    ``save_s``: from being told to save until it holds nothing any more; ``launch_s``: from every
    start until it makes progress, and ``restart_s`` more at every start but its first.
    """

    job: Job
    work_s: float
    speed: Speed = alike
    save_s: float = 0.0
    launch_s: float = 0.0
    restart_s: float = 0.0

    @property
    def volume_s(self) -> float:
        """How many seconds it would run alone on one GPU: its volume (paper 000, section III).

        Where it cannot run so, the GPU seconds of its run as its own shape.
        """
        own = self.job.shape
        alone_s = self.run_s(_alone(own.gpu_type))
        return alone_s if alone_s < float("inf") else self.work_s * float(own.amount or 1)

    def run_s(self, shape: Shape) -> float:
        """How many seconds it would run as a shape; inf where it makes no progress."""
        speed = self.speed(shape)
        return self.work_s / speed if speed > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A job that holds something on a node of another. ``on_gpu``: of one of its GPUs, too."""

    job: Job
    shape: Shape
    on_gpu: bool


Beside = Callable[[Job, Shape, Sequence[Neighbour]], float]
"""How fast a job runs as a shape beside others, of which there is one at least, relative to how
fast it runs as that shape without them; 0.0: it makes no progress."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster, and the jobs that arrive there, in the order of their submission.

    Of jobs that are submitted at the same instant, the order is the queue's. ``arrivals`` may make
    each job anew where it is read, so that those that have ended take no memory.
    ``beside``: how jobs slow each other; None: not at all, whoever shares their GPUs and nodes.
    ``company``: what policies are told of that, of the jobs that wait and run; None: nothing.
    ``choices``: what the source leaves open and was chosen here, in words, to be shown beside
    every result.
    """

    name: str
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    arrivals: Sequence[Arrival]
    choices: tuple[str, ...] = field(default=())
    beside: Beside | None = None
    company: Callable[[Sequence[Job]], Company] | None = None
