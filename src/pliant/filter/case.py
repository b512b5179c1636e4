"""One moldable submission, and the shapes that this site could ever give it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod

from pliant.filter.answer import Answer
from pliant.filter.fields import Fixed
from pliant.filter.inventory import Inventory
from pliant.filter.spread import waits_as_written, with_nodes
from pliant.filter.written import Written
from pliant.grammar import shapes
from pliant.model import ALL_CORES, Demand, Footprint, Kind, Partition, Request, Shape, Spec

MAX_ALLOWED = 256
"""The most totals, and the most shapes, that are looked at while slurmctld waits."""


class TooMany(Exception):  # never leaves the filter
    """A request allows more shapes here than can be looked at while slurmctld waits."""


@dataclass(frozen=True)  # no slots: what follows is kept
class Case:
    """A submission whose shape is to be chosen, apart from what is free now.

    ``own``: what its owner wrote, or would have meant, None where that is not known; ``allowed``
    by the owner, and ``possible`` here. ``all_said``: the owner named the nodes too, or one number
    of them is all there is. ``as_written``: it waits in the form that its owner gave it, which
    starts where none of its shapes would. ``split``: those allowed whose tasks would share cores.
    ``small``: those that have less of a GPU's memory than was asked, as far as is known.
    ``answers``: those that were given, by what was chosen. ``requeue``: the fields that let it be
    requeued, and ``remarks`` on that.
    """

    submission: Mapping[str, str]
    inventory: Inventory
    request: Request
    written: Written
    own: Shape | None
    allowed: tuple[Shape, ...]
    possible: tuple[Shape, ...]
    spec: Spec
    all_said: bool
    as_written: bool
    split: frozenset[Shape]
    small: frozenset[Shape]
    answers: dict[object, Answer] = field(default_factory=dict, repr=False)
    requeue: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, submission: Mapping[str, str], inventory: Inventory, said: Request, written: Written
    ) -> Case:
        """Return the case of a submission whose owner ``said`` this.

        Raises Fixed, TooMany.
        """
        names = submission.get("partition", "")
        _check_size(said)
        request = with_nodes(submission, inventory, said, written)
        meant = written.own or unwritten(request, written)
        allowed = shapes(_within(request, meant, inventory.most_gpus(names)), meant)
        if len(allowed) > MAX_ALLOWED:
            raise TooMany
        split = _split(inventory, names, written, request, allowed)
        small = _small(inventory, names, request, allowed) - {meant}
        possible = tuple(
            shape
            for shape in allowed
            if shape not in split | small
            and inventory.ever(
                names,
                _demand(inventory, names, written.taken, shape, request.cores),
                shape.nodes,
            )
            and (not shape.is_share or _whole_share(inventory, names, shape))
        )
        own = written.own
        if own is None and (has_cpu(allowed) or not _has_gpu(allowed)):
            own = Shape(max(1, written.nodes), 0, kind=Kind.CPU)
        all_said = request == said
        return cls(
            submission,
            inventory,
            request,
            written,
            own,
            allowed,
            possible,
            Spec(request),
            all_said,
            as_written=not said.nodes and waits_as_written(request, written),
            split=split,
            small=small,
        )

    @cached_property
    def best_first(self) -> list[Shape]:
        """The possible ones, by the speed that the owner said, GPUs, fewer nodes, the own type."""
        return sorted(self.possible, key=_worth(self.request, self.own), reverse=True)

    @cached_property
    def without_memory(self) -> Footprint:
        """What its shapes take of a node but for its memory."""
        taken = self.written.taken
        return replace(taken, mem_per_node_mib=0, mem_per_cpu_mib=0, mem_per_gpu_mib=0)

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """Those that it may start in."""
        return self.inventory.partitions(self.submission.get("partition", ""))

    @property
    def _qos(self) -> str:
        return self.submission.get("qos") or self.submission.get("default_qos", "")

    @cached_property
    def may_be_limited(self) -> bool:
        """Whether more than its owner wrote may be beyond a limit."""
        return self.inventory.abilities.may_be_limited(self._qos, self.partitions)

    @cached_property
    def may_be_too_small(self) -> bool:
        """Whether less than its owner wrote may be too little."""
        return self.inventory.abilities.may_be_too_small(self._qos, self.partitions)

    @cached_property
    def preempts(self) -> bool:
        """Whether Slurm would end other jobs to start it as its owner wrote it."""
        return any(partition.preempts for partition in self.partitions)

    @property
    def is_choosy(self) -> bool:
        """Whether it names nodes or features."""
        return any(self.submission.get(name) for name in ("req_nodes", "exc_nodes", "features"))

    @cached_property
    def wants_gpu(self) -> bool:
        """Whether one of the shapes that its owner allows has GPUs."""
        return _has_gpu(self.allowed)


def _check_size(said: Request) -> None:
    """Raise TooMany where making the shapes would take too long already.

    How many there are at last is not known yet: most totals divide over few numbers of nodes.
    """
    ways = prod(max(1, len(some)) for some in (said.nodes, said.gpu_types, said.kinds))
    if max(ways, len(said.gpus)) > MAX_ALLOWED:
        raise TooMany


def _demand(inventory: Inventory, names: str, taken: Footprint, shape: Shape, cores: int) -> Demand:
    """What a shape takes on each node, memory by the CPU also where it is all of them."""
    demand = taken.demand(shape, cores)
    if demand.cpus == ALL_CORES and taken.mem_per_cpu_mib:
        return taken.demand(shape, inventory.all_cores(names, demand))
    return demand


def _split(
    inventory: Inventory,
    names: str,
    written: Written,
    request: Request,
    allowed: tuple[Shape, ...],
) -> frozenset[Shape]:
    """Return the shapes whose tasks would share cores: Slurm may refuse the form they are set in.

    CPU shapes without any GRES are spared. Raises Fixed where none is left, or where the own one is
    among them: as it was written it runs.
    """

    def splits(shape: Shape) -> bool:
        bare = shape.kind is Kind.CPU and not inventory.abilities.gpu_to_cpu
        demand = written.footprint.demand(shape, request.cores)
        return not bare and inventory.splits_cores(names, demand)

    found = frozenset(filter(splits, allowed))
    is_own = splits(written.own) if written.own else has_cpu(found)
    if is_own or (found and len(found) == len(allowed)):
        raise Fixed("its tasks would have CPUs that are no whole cores here: the shape stays")
    return found


def _within(request: Request, own: Shape, most: int) -> Request:
    """Leave out the totals that are beyond all that a site has: there may be thousands."""
    nodes = max(request.nodes or (own.nodes,))
    kept = tuple(total for total in request.gpus if total <= nodes * most)
    return replace(request, gpus=kept or request.gpus[:1])


def unwritten(request: Request, written: Written) -> Shape:
    """The own shape of a job that asks for no GPU, as far as it is known."""
    nodes = max(1, written.nodes)
    if request.gpus or request.gpu_types or {Kind.GPU, Kind.BOTH} & set(request.kinds):
        return Shape(nodes, 1)
    return Shape(nodes, 0, kind=Kind.CPU)


def _whole_share(inventory: Inventory, names: str, shape: Shape) -> bool:
    shards = inventory.shards(names, shape.gpu_type)
    return bool(shards) and shards % shape.share == 0


def _small(
    inventory: Inventory, names: str, request: Request, allowed: tuple[Shape, ...]
) -> frozenset[Shape]:
    """Return the shares with too little memory in a GPU that Slurm could choose, or nobody knows.

    The own one is not spared here.
    """
    shares = [shape for shape in allowed if shape.is_share and request.gpu_mem_mib]
    return frozenset(
        shape
        for shape in shares
        if request.gpu_mem_mib * shape.share > inventory.least_gpu_mib(names, shape.gpu_type)
    )


def has_cpu(some: Iterable[Shape]) -> bool:
    """Whether one of them is a CPU shape."""
    return any(shape.kind is Kind.CPU for shape in some)


def _has_gpu(some: tuple[Shape, ...]) -> bool:
    return any(shape.kind is not Kind.CPU for shape in some)


def _worth(
    request: Request, own: Shape | None
) -> Callable[[Shape], tuple[float, Fraction, int, bool, Shape]]:
    speed = dict(request.throughput)

    def worth(shape: Shape) -> tuple[float, Fraction, int, bool, Shape]:
        nodes = shape.nodes if shape.kind is Kind.CPU else -shape.nodes
        own_type = own is not None and shape.gpu_type == own.gpu_type
        return (speed.get(shape, 0.0), shape.amount, nodes, own_type, shape)

    return worth
