"""What an owner asked, and what was noted of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pliant.model.footprints import Footprint
from pliant.model.shapes import Kind, Shape


class JobClass(StrEnum):
    """FitGpp's two classes (paper 001)."""

    TRIAL = "trial"
    BEST_EFFORT = "best-effort"


@dataclass(frozen=True, slots=True)
class Malleable:
    """May be checkpointed and requeued at another shape."""

    grace_s: int = 0  # 0: the site's default
    signal: str = ""  # "": the site's default
    requeues_stalled: bool = False  # from its last checkpoint, where a request for one hung it
    # what its owner leaves to policies; `pliant resize` is not bound by it
    max_resizes: int | None = None  # how often it may be resized or make room; None: no limit
    min_run_s: int = 0  # how long a run must work before the next time, once it was restarted
    checkpoint: str = ""  # a file or directory that a checkpoint must have changed; "": any


@dataclass(frozen=True, slots=True)
class Request:
    """What an owner said about a job's shapes, by any door.

    ``gpus`` are allowed totals in ascending order, empty when the owner named none;
    ``nodes`` likewise. ``cores`` (per node) is for CPU shapes: 0 as asked, ALL_CORES for all.
    ``throughput`` is f: steps per second by shape (paper 003); ``steps`` makes it a run time.
    """

    gpus: tuple[Fraction, ...] = ()
    nodes: tuple[int, ...] = ()
    kinds: tuple[Kind, ...] = ()
    cores: int = 0
    gpu_types: tuple[str, ...] = ()
    gpu_mem_mib: int = 0
    malleable: Malleable | None = None
    job_class: JobClass | None = None
    throughput: tuple[tuple[Shape, float], ...] = ()
    steps: int = 0
    colocate: bool | None = None

    @property
    def is_moldable(self) -> bool:
        """Whether more than the own shape may be allowed."""
        return bool(self.gpus or self.nodes or self.kinds or self.gpu_types)

    @property
    def is_elastic(self) -> bool:
        """Whether its owner lets the job be requeued while it runs, to resize or to make room."""
        return self.malleable is not None or self.job_class is JobClass.BEST_EFFORT


ANYWHERE = "*"
"""A mark that lets a job share whichever node it comes to."""
UNMARKED = "-"
"""A mark of Pliant's that was taken back."""


@dataclass(frozen=True, slots=True)
class Spec:
    """All that a job's token says: the request, and what the filter noted about the job.

    ``own`` is the shape the owner wrote without Pliant; ``set`` the shape Pliant set last (a job
    that carries another was changed by someone else); None where it is not known. ``pinned``: the
    owner asked Pliant to leave the job as it is. ``renewed``: the owner gave the request while the
    job waited; it is the last word, also over ``own``. ``mark``: Pliant's own permission to share
    CPUs with other jobs: on the node that it names, :data:`ANYWHERE`, or :data:`UNMARKED` since it
    was taken back; "" where Pliant never gave one.
    """

    request: Request
    own: Shape | None = None
    set: Shape | None = None
    footprint: Footprint | None = None
    pinned: bool = False
    renewed: bool = False
    mark: str = ""
