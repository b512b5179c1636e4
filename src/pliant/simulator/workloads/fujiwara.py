"""Fujiwara's GPU workload: tasks that may share a GPU, have one, or have several.

The tasks are those of :mod:`~pliant.simulator.workloads.fujiwara_trace`, each submitted when it was
seen to start. A rigid task has one GPU; (p_min, p_max) = (1/4, 4), but (1, 4) for those that take
over 90 % of a GPU's memory: they may not share one. A task's work is its volume, its run time over
its concurrency. How fast it runs on another amount of GPUs follows a sublinear,
non-decreasing curve of its program; figure 1, which has the paper's, is not printed as numbers.

Each GPU is a node: a snapshot says on which nodes a job is, and so on which GPU a share is. On
nodes of several GPUs that is not known, and policies leave alone what runs on a share.

Source: paper 000, sections II, III and V-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from pliant.errors import BadInput
from pliant.model import Job, Malleable, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.fujiwara_trace import (
    GPU_MIB,
    GPUS,
    TASKS,
    Choices,
    Observed,
    observed,
)
from pliant.simulator.workloads.rows import Rows

SHARES = (4, 3, 2)
MOST = 4
SHAPES = (*(Shape(1, 1, share=n) for n in SHARES), *(Shape(n, 1) for n in range(1, MOST + 1)))
WHOLE = SHAPES[len(SHARES) :]
"""Of a task that may not share a GPU."""
OWN = WHOLE[0]
_SHARDS = 12  # of one GPU: divides by all that may share it
_ROUND_MIB = 64  # jobs of about the same memory have one specification
_ALL = ("all",)


@dataclass(frozen=True, slots=True)
class Curve:
    """A program's speed, relative to one GPU alone.

    (1/n)^``share`` beside n - 1 others on a GPU, n^``many`` on n GPUs: 1 is linear, 0 no change.
    """

    share: float
    many: float

    def __post_init__(self) -> None:
        """Refuse what is not sublinear, or falls: raises BadInput."""
        if not (0 <= self.share <= 1 and 0 <= self.many <= 1):
            raise BadInput(f"{self}: exponents from 0 to 1 are expected")

    def __call__(self, shape: Shape) -> float:
        """Return the speed as a shape."""
        if shape.share > 1:
            return float((1 / shape.share) ** self.share)
        return float((shape.nodes * shape.gpus) ** self.many)


@dataclass(frozen=True, slots=True)
class Curves:
    """What figure 1 would say: small networks that leave GPUs idle, and large ones that do not."""

    mcnn: Curve = Curve(share=0.7, many=0.8)
    opennmt: Curve = Curve(share=1.0, many=0.7)


SENSITIVITY = (
    Curves(),
    Curves(Curve(0.9, 0.8), Curve(1.0, 0.7)),
    Curves(Curve(0.5, 0.8), Curve(1.0, 0.7)),
    Curves(Curve(0.7, 0.95), Curve(1.0, 0.95)),
    Curves(Curve(0.7, 0.5), Curve(1.0, 0.5)),
)
"""The curves chosen, then such that gain less or more by sharing, more or less by several GPUs."""


def fujiwara(
    seed: int,
    gpus: int = GPUS,
    *,
    tasks: int = TASKS,
    curves: Curves | None = None,
    overhead_s: float = 0.0,
    told: bool = False,
    choices: Choices | None = None,
) -> Workload:
    """Return the tasks of one seed on so many GPUs.

    ``overhead_s``: what each preemption adds to a task's run. ``told``: policies know the volume,
    as the paper's clairvoyant ones do. Raises BadInput without a GPU, and for fewer than 100 tasks.
    """
    if gpus < 1:
        raise BadInput(f"{gpus} GPUs: at least one is needed")
    chosen, speeds = choices or Choices(), curves or Curves()
    found = observed(seed, tasks, chosen)
    pool = Pool("", 1, 1, shards_per_gpu=_SHARDS, mem_mib=GPU_MIB, counts_mem=True)
    names = tuple(f"gpu{number:0{len(str(gpus - 1))}}" for number in range(gpus))
    cores = max(SHARES)  # one for each task that could run at once
    return Workload(
        name=f"Fujiwara's GPU workload, seed {seed}, {tasks} tasks on {gpus} GPUs",
        nodes=tuple(Node(name, cores, cores, 0, 0, (pool,)) for name in names),
        partitions=(Partition("all", names, default=True),),
        arrivals=Rows(len(found), _Build(found, speeds, overhead_s, told)),
        choices=(
            "a synthetic trace in place of theirs: printed are its counts, its time, concurrency"
            f" and memory; chosen: {_words(chosen)}",
            "as many tasks of a job run at once as let the trace fit on the 42 GPUs of theirs",
            "the k-th user has 1/k as many jobs as the first, as far as all find time for theirs",
            "its volume is that of six GPUs for all its time, for six are printed to be saturated",
            f"speed beside n - 1 others on a GPU is n^-{speeds.mcnn.share} (MCNN), on n GPUs"
            f" n^{speeds.mcnn.many} (MCNN) or n^{speeds.opennmt.many} (OpenNMT)",
            "tasks that take over 90 % of a GPU's memory, and so share it with nobody, have no 1/n:"
            " it would leave the rest of the GPU to nobody",
            "each GPU is a node: how a task's GPUs lie costs nothing",
        ),
    )


def _shapes(whole: bool) -> tuple[Shape, ...]:
    return WHOLE if whole else SHAPES


def _words(choices: Choices) -> str:
    return ", ".join(f"{one.name} {getattr(choices, one.name)}" for one in fields(choices))


class _Build:
    """Makes each job where it is read; equal parts of jobs are one object."""

    def __init__(
        self, tasks: Sequence[Observed], curves: Curves, overhead_s: float, told: bool
    ) -> None:
        self._tasks, self._overhead_s, self._told = tasks, overhead_s, told
        self._digits = len(str(len(tasks) - 1))
        self._programs = (("mcnn", curves.mcnn), ("opennmt", curves.opennmt))
        self._specs: dict[tuple[bool, int], Spec] = {}
        self._users: dict[int, str] = {}

    def __call__(self, row: int) -> Arrival:
        task = self._tasks[row]
        program, curve = self._programs[task.whole]
        spec = self._spec(task.whole, -(-task.mem_mib // _ROUND_MIB) * _ROUND_MIB)
        job = Job(
            id=f"{row:0{self._digits}}",
            user=self._users.setdefault(task.user, f"user{task.user:02}"),
            partitions=_ALL,
            submit_s=task.start_s,
            shape=OWN,
            shapes=_shapes(task.whole),
            spec=spec,
            name=program,
            volume_s=task.volume_s if self._told else 0.0,
            restart_s=self._overhead_s,
        )
        return Arrival(job, task.volume_s, curve, restart_s=self._overhead_s)

    def _spec(self, whole: bool, mem_mib: int) -> Spec:
        """What a program with so much memory asks, at one step a second on one GPU."""
        known = self._specs.get((whole, mem_mib))
        if known is None:
            curve = self._programs[whole][1]
            request = Request(
                gpus=tuple(shape.amount for shape in _shapes(whole)),
                gpu_mem_mib=mem_mib,
                malleable=Malleable(),
                throughput=tuple((shape, curve(shape)) for shape in _shapes(whole)),
            )
            known = self._specs[(whole, mem_mib)] = Spec(request, own=OWN)
        return known
