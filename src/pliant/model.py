"""The nouns: what a job may run as, what it asks, what the cluster is at one moment.

Everything here is immutable and compares by value. Units stand in the names: ``_s`` are seconds
(instants are seconds since the epoch, or since the start of a simulation), ``_mib`` are MiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

ALL_CORES = -1
"""As a number of cores: every core of a node."""


class Kind(StrEnum):
    """What a shape computes on."""

    GPU = "gpu"
    CPU = "cpu"
    BOTH = "both"


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """What a job may run as: ``nodes`` × ``gpus`` whole GPUs, or 1/``share`` of one, or CPU cores.

    ``gpus`` counts on each node. A share is ``Shape(1, 1, share=4)``; a CPU shape has ``gpus=0``.
    """

    nodes: int = 1
    gpus: int = 0
    share: int = 1
    kind: Kind = Kind.GPU
    gpu_type: str = ""

    @property
    def amount(self) -> Fraction:
        """The GPUs of all nodes together: 8 for 2x4, 1/4 for a quarter, 0 for a CPU shape."""
        return Fraction(self.nodes * self.gpus, self.share)

    @property
    def whole_gpus(self) -> int:
        """The whole GPUs of all nodes together: 0 for shares and CPU shapes."""
        return self.nodes * self.gpus if self.share == 1 else 0

    @property
    def is_share(self) -> bool:
        """Whether this is a part of one GPU."""
        return self.share > 1

    def __str__(self) -> str:
        return shape_text(self)


def shape_text(shape: Shape) -> str:
    """Write a shape as users do: ``4``, ``2x4``, ``1/4``, ``1x0@cpu``, ``2@a100``."""
    if shape.kind is Kind.CPU:
        return f"{shape.nodes}x0@cpu"
    gpus = f"1/{shape.share}" if shape.is_share else str(shape.gpus)
    nodes = f"{shape.nodes}x" if shape.nodes > 1 else ""
    tail = ":".join(
        word for word in (shape.gpu_type, "both" if shape.kind is Kind.BOTH else "") if word
    )
    return f"{nodes}{gpus}" + (f"@{tail}" if tail else "")


class JobClass(StrEnum):
    """FitGpp's two classes (paper 001)."""

    TRIAL = "trial"
    BEST_EFFORT = "best-effort"


@dataclass(frozen=True, slots=True)
class Malleable:
    """May be checkpointed and requeued at another shape."""

    grace_s: int = 0  # 0: the site's default
    signal: str = ""  # "": the site's default


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


@dataclass(frozen=True, slots=True)
class Demand:
    """What a shape takes on each of its nodes."""

    gpus: int = 0
    share: int = 1
    gpu_type: str = ""
    cpus: int = 1  # ALL_CORES: every core
    mem_mib: int = 0
    tasks: int = 1


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


@dataclass(frozen=True, slots=True)
class Spec:
    """All that a job's token says: the request, and what the filter noted about the job.

    ``own`` is the shape the owner wrote without Pliant; ``set`` the shape Pliant set last (a job
    that carries another was changed by someone else); None where it is not known. ``pinned``: the
    owner asked Pliant to leave the job as it is. ``renewed``: the owner gave the request while the
    job waited; it is the last word, also over ``own``.
    """

    request: Request
    own: Shape | None = None
    set: Shape | None = None
    footprint: Footprint | None = None
    pinned: bool = False
    renewed: bool = False


class Mode(StrEnum):
    """What Pliant may do in a partition."""

    OFF = "off"
    OBSERVE = "observe"  # decide, record, explain
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True)
class Pool:
    """The GPUs of one type on one node.

    ``free`` counts whole free GPUs. ``parts`` holds, for each GPU that is partly used as shards,
    how many of its ``shards_per_gpu`` are free (descending).
    """

    gpu_type: str
    total: int
    free: int
    shards_per_gpu: int = 0  # 0: this pool cannot be shared
    parts: tuple[int, ...] = ()
    mem_mib: int = 0  # of one GPU; 0: not known
    sharers: tuple[int, ...] = ()  # jobs on each GPU of ``parts``; (): not known


@dataclass(frozen=True, slots=True)
class Node:
    """One node as it is now. ``up``: the batch system would start a job there."""

    name: str
    cpus: int
    free_cpus: int
    mem_mib: int
    free_mem_mib: int
    pools: tuple[Pool, ...] = ()
    features: frozenset[str] = frozenset()
    up: bool = True
    threads_per_core: int = 1


@dataclass(frozen=True, slots=True)
class Partition:
    """A queue and the nodes it may use, and what it says of a job's shape; 0: no limit, not said.

    ``cpus_per_gpu`` and ``mem_per_gpu_mib`` go to jobs that say nothing of CPUs or memory, and
    where there is no memory per GPU, ``mem_per_cpu_mib`` or ``mem_per_node_mib``. ``qos``: the
    quality of service whose limits hold for all its jobs.
    ``alone``: its jobs share their nodes with nobody, or with no other user. ``preempts``: to start
    its jobs the batch system would end others that run now.
    """

    name: str
    nodes: tuple[str, ...]
    max_time_s: int = 0
    default: bool = False
    max_nodes: int = 0
    up: bool = True
    mode: Mode = Mode.ENFORCE
    min_nodes: int = 0
    max_cpus_per_node: int = 0
    max_mem_per_node_mib: int = 0
    max_mem_per_cpu_mib: int = 0
    cpus_per_gpu: int = 0
    mem_per_gpu_mib: int = 0
    mem_per_cpu_mib: int = 0
    mem_per_node_mib: int = 0
    qos: str = ""
    alone: bool = False
    preempts: bool = False

    def allows(self, demand: Demand, nodes: int) -> bool:
        """Whether its limits let a job take ``demand`` on each of ``nodes`` nodes."""
        return (
            self.min_nodes <= nodes <= (self.max_nodes or nodes)
            and demand.cpus <= (self.max_cpus_per_node or demand.cpus)
            and not self.exceeds_memory(demand)
        )

    def exceeds_memory(self, demand: Demand) -> bool:
        """Whether ``demand`` is more memory than it gives a node or a CPU of a job."""
        per_node, per_cpu = self.max_mem_per_node_mib, self.max_mem_per_cpu_mib
        counted = per_cpu and demand.cpus != ALL_CORES
        return (0 < per_node < demand.mem_mib) or bool(
            counted and demand.mem_mib > per_cpu * demand.cpus
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that only jobs of this reservation may use from ``start_s`` to ``end_s``."""

    name: str
    nodes: tuple[str, ...]
    start_s: float
    end_s: float


class JobState(StrEnum):
    """As far as scheduling cares."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDING = "ending"  # still holds its allocation (COMPLETING)


@dataclass(frozen=True, slots=True)
class Job:
    """One job, or the waiting tasks of one array (``tasks_waiting`` of them).

    ``shape`` is what it carries now (or runs as); ``shapes`` what it may run as now, by the table
    of reasons (cycle.gate): one element means that nothing may be changed. ``demand``: what the
    carried shape takes per node. ``frozen``: why Pliant leaves the job alone, in words; ""
    otherwise. ``refused``: shapes that the batch system did not start although they seemed to fit.
    """

    id: str
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    state: JobState = JobState.WAITING
    reason: str = ""
    priority: int = 0
    submit_s: float = 0.0
    eligible: bool = True  # waiting for resources only: it takes part in the queue
    limited: bool = False  # waits for a limit: it may start smaller, but keeps no claim
    shape: Shape = Shape(1, 0, kind=Kind.CPU)
    shapes: tuple[Shape, ...] = ()
    footprint: Footprint = Footprint()
    spec: Spec | None = None
    time_limit_s: int = 0  # 0: no limit
    time_min_s: int = 0
    tasks_waiting: int = 1
    array_tasks: str = ""  # which tasks of an array it stands for, like 3-9,12; "": no array
    features: frozenset[str] = frozenset()
    nodes_required: tuple[str, ...] = ()
    nodes_excluded: frozenset[str] = frozenset()
    reservation: str = ""
    frozen: str = ""
    refused: frozenset[Shape] = frozenset()
    # where and when the batch system expects to start it, as it is; 0.0: it does not say
    expected_s: float = 0.0
    expected_nodes: tuple[str, ...] = ()
    nodes_kept: frozenset[str] = frozenset()  # kept for jobs before it: it cannot start there now
    # running jobs
    start_s: float = 0.0
    nodes: tuple[str, ...] = ()
    whole_nodes: bool = False  # it has all that is on them, whatever its shape says
    restarts: int = 0

    @property
    def end_s(self) -> float:
        """When its time limit ends it at the latest, from its start; inf without a limit."""
        return self.start_s + self.time_limit_s if self.time_limit_s else float("inf")

    def demand(self, shape: Shape) -> Demand:
        """What ``shape`` takes on each node for this job."""
        return self.footprint.demand(shape, self.spec.request.cores if self.spec else 0)


EVERYBODY = "*"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What can be changed on a waiting job here (facts differ by release and site).

    ``limited_qos``: where a limit may bound how much a job gets: by QOS in small letters, "" being
    jobs that name none, and :data:`EVERYBODY`. ``least_qos``: where a job must have so much.
    """

    share_to_whole: bool = False  # shard -> gpu on a waiting job (Slurm 24.11+)
    whole_to_share: bool = False
    gpu_to_cpu: bool = False  # needs a dummy GRES on every node
    cpu_to_gpu: bool = True
    claims_whole_nodes: bool = False  # nobody starts on what a claim leaves free on its nodes
    limits_deny: bool = False  # a submission beyond a limit is refused, not left to wait
    limited_qos: frozenset[str] = frozenset()
    least_qos: frozenset[str] = frozenset()
    limits_of_all: bool = False  # so is one beyond a limit of any of the partitions that it names
    federated: bool = False  # jobs belong to several clusters, and keep their shapes

    def may_be_limited(self, qos: str, partitions: Iterable[Partition]) -> bool:
        """Whether more than its owner wrote may be more than a job of this QOS may have there.

        MaxCPUsPerNode counts for all of a partition's jobs on a node together.
        """
        known = tuple(partitions)
        return _is_of(self.limited_qos, qos, known) or any(p.max_cpus_per_node for p in known)

    def may_be_too_small(self, qos: str, partitions: Iterable[Partition]) -> bool:
        """Whether less than its owner wrote may be less than a job of this QOS must have there."""
        return _is_of(self.least_qos, qos, tuple(partitions))


def _is_of(some: frozenset[str], qos: str, partitions: tuple[Partition, ...]) -> bool:
    if not some.isdisjoint((EVERYBODY, qos.lower())):
        return True
    return any(p.qos and p.qos in some for p in partitions)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at ``now_s``, as one cycle sees it. ``waiting`` stands in queue order."""

    now_s: float
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    waiting: tuple[Job, ...] = ()
    running: tuple[Job, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    abilities: Abilities = field(default_factory=Abilities)

    @property
    def partition_by_name(self) -> Mapping[str, Partition]:
        """The partitions by name."""
        return {partition.name: partition for partition in self.partitions}
