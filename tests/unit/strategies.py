"""Small clusters with jobs on them and in the queue, drawn by hypothesis.

The sizes are small and awkward on purpose: few cores, GPUs in parts, two overlapping partitions,
speeds that fall with more GPUs, jobs that do not fit anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from batch_in_memory import SimulatedCluster
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

from pliant.cycle import allowed_shapes
from pliant.grammar import shapes as request_shapes
from pliant.model import (
    ALL_CORES,
    Abilities,
    Footprint,
    Job,
    JobClass,
    Kind,
    Malleable,
    Mode,
    Node,
    Partition,
    Pool,
    Request,
    Reservation,
    Shape,
    Spec,
)
from pliant.placement import Free
from pliant.simulator.workload import Arrival, Workload

AMOUNTS = tuple(
    Fraction(*pair) for pair in ((1, 4), (1, 2), (1, 1), (2, 1), (3, 1), (4, 1), (6, 1))
)
REASONS = ("None", "JobHeldUser", "QOSMaxGRESPerUser")
OUTSIDE = (Shape(1, 5), Shape(1, 2), Shape(1, 1, 4), Shape(2, 1), Shape(1, 0, kind=Kind.CPU))
LIMITS_S = (0, 60, 600, 600, 3600, 7200)


def rarely(*values: Any) -> st.SearchStrategy[Any]:
    """Mostly the first value, in one case of six one of the others."""
    return st.sampled_from([values[0]] * 5 * (len(values) - 1) + list(values[1:]))


class Cluster(SimulatedCluster):
    """A simulated cluster that hypothesis shows in few lines."""

    def _repr_pretty_(self, printer: RepresentationPrinter, _cycle: bool) -> None:
        printer.text("\n" + repr(self))


@st.composite
def pools(draw: st.DrawFn) -> tuple[Pool, ...]:
    types = draw(rarely(("",), (), ("a100",), ("a100", "v100")))
    shards = draw(st.sampled_from([0, 4]))
    return tuple(
        Pool(name, total, total, shards, mem_mib=draw(rarely(0, 16_000)))
        for name in types
        if (total := draw(st.sampled_from([4, 2, 1, 3])))
    )


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Node:
    cpus = draw(rarely(16, 2, 4))
    mem_mib = draw(rarely(0, 8_000, 64_000))
    features = draw(st.sampled_from([frozenset({"ib"}), frozenset()]))
    found = Node(f"n{number}", cpus, cpus, mem_mib, mem_mib, draw(pools()), features=features)
    return replace(found, up=draw(rarely(True, False)))


@st.composite
def partitions(draw: st.DrawFn, names: tuple[str, ...]) -> tuple[Partition, ...]:
    first = Partition(
        "gpu",
        names,
        default=True,
        max_nodes=draw(rarely(0, 1)),
        max_time_s=draw(rarely(0, 3600)),
        mode=draw(rarely(Mode.ENFORCE, Mode.OBSERVE, Mode.OFF)),
    )
    return (first, Partition("short", names[: max(1, len(names) // 2)]))


@st.composite
def requests(draw: st.DrawFn) -> tuple[Request, Shape]:
    """What an owner allows, and the shape written without Pliant: rigid in one case of five."""
    kinds = draw(rarely((), (Kind.CPU, Kind.GPU), tuple(Kind)))
    lists = st.lists(st.sampled_from(AMOUNTS), min_size=1, max_size=4, unique=True)
    amounts = draw(st.one_of(st.sampled_from([AMOUNTS[:6], AMOUNTS[2:6]]), lists))
    request = Request(
        gpus=tuple(sorted(amounts)),
        nodes=draw(rarely((), (1, 2), (2,))),
        kinds=kinds,
        cores=draw(st.sampled_from([0, 2, ALL_CORES])) if kinds else 0,
        gpu_mem_mib=draw(rarely(0, 6_000)),
        gpu_types=draw(rarely((), ("a100", "v100"))),
    )
    own = draw(st.sampled_from(request_shapes(request, Shape(1, 1))))
    request = draw(throughputs(request, own))
    return (request, own) if draw(st.integers(0, 4)) else (Request(), own)


@st.composite
def throughputs(draw: st.DrawFn, request: Request, own: Shape) -> Request:
    """No speeds, or any at all for some of the shapes."""
    some = draw(st.lists(st.sampled_from(request_shapes(request, own)), max_size=3, unique=True))
    speeds = st.sampled_from([0.0, 0.5, 1.0, 1.9, 2.5, 8.0])
    table = tuple(sorted((shape, draw(speeds)) for shape in some))
    steps = draw(st.sampled_from([0, 1000]))
    return replace(request, throughput=table, steps=steps if table else 0)


@st.composite
def jobs(draw: st.DrawFn, number: int, abilities: Abilities) -> Job:
    request, own = draw(requests())
    possible = request_shapes(request, own)
    carried = draw(rarely(own, *possible))
    outside = draw(rarely(None, *OUTSIDE)) if request.is_moldable else None
    if outside is not None:  # its owner has given it another request since
        own, carried = draw(st.sampled_from([own, outside])), outside
    found = Job(
        str(number),
        partitions=draw(rarely(("gpu",), ("short",), ("short", "gpu"))),
        reason="Priority",
        priority=draw(st.integers(0, 3)),
        shape=carried,
        shapes=allowed_shapes(request, own, carried, abilities),
        footprint=draw(footprints()),
        spec=Spec(request, own, set=carried, renewed=outside is not None)
        if request.is_moldable
        else None,
        time_limit_s=draw(st.sampled_from(LIMITS_S)),
        tasks_waiting=draw(rarely(1, 3)),
    )
    quirk: dict[str, Any] = {
        "reason": draw(st.sampled_from(REASONS)),
        "features": frozenset({"ib"}),
        "nodes_required": ("n1",),
        "nodes_excluded": frozenset({"n0"}),
        "frozen": "heterogeneous",
        "refused": frozenset(possible[:1]),
    }
    which: str = draw(rarely("", *quirk))
    return replace(found, **{which: quirk[which]}) if which else found


def footprints() -> st.SearchStrategy[Footprint]:
    return rarely(
        Footprint(),
        Footprint(cpus_per_gpu=2, mem_per_gpu_mib=4_000),
        Footprint(tasks_per_node=2),
        Footprint(mem_per_node_mib=6_000),
    )


@st.composite
def elastic_jobs(draw: st.DrawFn, number: int, abilities: Abilities) -> Job:
    """Mostly malleable jobs of several sizes and long enough, some of them of a class."""
    found = draw(jobs(number, abilities))
    if found.frozen or draw(st.integers(0, 9)) == 9:
        return found
    amounts = draw(st.sampled_from([AMOUNTS[2:6], AMOUNTS[2:], AMOUNTS, AMOUNTS[3:4]]))
    request = replace(
        found.spec.request if found.spec else Request(),
        gpus=amounts,
        kinds=(),
        malleable=Malleable(max_resizes=draw(rarely(None, 0, 1)), min_run_s=draw(rarely(0, 600))),
        job_class=draw(st.sampled_from([None, *JobClass])),
    )
    own = Shape(1, int(draw(st.sampled_from(amounts)))) if amounts[0] >= 1 else Shape(1, 1)
    shapes = request_shapes(request, own)
    own = own if own in shapes else shapes[0]
    return replace(
        found,
        reason="Priority",
        tasks_waiting=1,
        restart_s=draw(rarely(0.0, 100.0)),
        grace_s=draw(rarely(60.0, 0.0, 600.0)),
        preempted=draw(rarely(0, 1)),
        restarts=draw(rarely(0, 1)),
        changes=draw(rarely(0, 1)),
        time_limit_s=draw(st.sampled_from([3600, 7200, 0, 600])),
        shape=own,
        shapes=shapes,
        spec=Spec(request, own, set=own),
    )


@st.composite
def clusters(draw: st.DrawFn, *, shares: bool = True, elastic: bool = False) -> Cluster:
    """A cluster in the middle of its work; without ``shares``, all GPUs are whole.

    ``elastic``: running jobs can mostly be changed.
    """
    now_s = 10_000.0
    found = tuple(draw(nodes(n)) for n in range(draw(st.integers(2 if elastic else 1, 4))))
    if not shares:
        found = tuple(_whole(node) for node in found)
    names = tuple(node.name for node in found)
    abilities = draw(st.builds(Abilities, *[st.booleans()] * 5))
    parts = draw(partitions(names))
    if elastic:
        parts = tuple(replace(part, mode=Mode.ENFORCE) for part in parts)
    cluster = Cluster(found, parts, now_s - 30.0, abilities)
    cluster.reservations = draw(reservations(names, now_s))
    kind = elastic_jobs if elastic else jobs
    for number in range(
        100, 100 + (draw(st.integers(3, 6)) if elastic else draw(st.integers(0, 5)))
    ):
        job = draw(kind(number, abilities))
        if elastic:
            shape = draw(st.sampled_from(job.shapes[::-1]))
            job = replace(job, shape=shape, spec=job.spec and replace(job.spec, set=shape))
        where = draw(st.permutations(names))[: job.shape.nodes]
        cluster.submit(replace(job, tasks_waiting=1), draw(st.sampled_from([40.0, 600.0])))
        fits = Free(cluster.snapshot()).fit(job, job.shape) if elastic else None
        if cluster.start(job.id, fits or where) is None:
            cluster.withdraw(job.id)
    cluster.advance(now_s)
    for number in range(draw(st.integers(0 if elastic else 1, 8))):
        either = st.one_of(kind(number, abilities), jobs(number, abilities))
        waits = draw(either if elastic else jobs(number, abilities))
        cluster.submit(waits, draw(st.sampled_from([40.0, 600.0])))
    return cluster


def _whole(node: Node) -> Node:
    return replace(node, pools=tuple(replace(pool, shards_per_gpu=0) for pool in node.pools))


@st.composite
def reservations(draw: st.DrawFn, names: tuple[str, ...], now_s: float) -> tuple[Reservation, ...]:
    if draw(rarely(False, True)) is False:
        return ()
    start_s = now_s + draw(st.sampled_from([-100.0, 300.0, 5000.0]))
    return (Reservation("maintenance", names[-1:], start_s, start_s + 1000.0),)


@dataclass(frozen=True)
class Speeds:
    """How fast a job runs by its GPUs: any exponent, and shares slower or faster than that."""

    own: Shape
    exponent: float
    shared: float

    def __call__(self, shape: Shape) -> float:
        return self._of(shape) / self._of(self.own)

    def _of(self, shape: Shape) -> float:
        of = max(float(shape.amount), 0.1)
        return float(of**self.exponent) * (self.shared if shape.is_share else 1.0)


@st.composite
def arrivals(draw: st.DrawFn, number: int) -> Arrival:
    """A job of any kind that arrives, of which only what an owner says is known."""
    kind = draw(st.sampled_from([elastic_jobs, elastic_jobs, jobs]))
    found = draw(kind(number, Abilities(gpu_to_cpu=True)))
    costs = draw(rarely((0.0, 0.0, 0.0), (10.0, 5.0, 20.0), (0.0, 5.0, 0.0), (30.0, 0.0, 0.0)))
    exponent = draw(st.sampled_from([1.0, 0.5, 0.0, -0.5]))
    job = replace(
        found,
        user=draw(st.sampled_from("ab")),
        reason="",
        frozen="",
        refused=frozenset(),
        shapes=found.shapes or (found.shape,),
        grace_s=costs[0],
        restart_s=sum(costs),
        preempted=0,
    )
    work_s = draw(st.sampled_from([600.0, 40.0, 1.0, 2000.0]))
    arrival = Arrival(job, work_s, Speeds(job.shape, exponent, draw(rarely(1.0, 0.5))), *costs)
    told = draw(st.booleans())
    return replace(arrival, job=replace(job, volume_s=arrival.volume_s if told else 0.0))


@st.composite
def workloads(draw: st.DrawFn, *, shares: bool = True) -> Workload:
    """A few awkward nodes, all alike or not, and jobs of few kinds that arrive there."""
    found = tuple(draw(nodes(n)) for n in range(draw(st.integers(1, 4))))
    if draw(st.booleans()):
        found = tuple(replace(found[0], name=node.name) for node in found)
    if not shares:
        found = tuple(_whole(node) for node in found)
    parts = draw(partitions(tuple(node.name for node in found)))
    kinds = [draw(arrivals(number)) for number in range(draw(st.integers(1, 5)))]
    at_s = 0.0
    arrived = []
    for number in range(draw(st.integers(1, 12))):
        at_s += draw(st.sampled_from([0.0, 0.0, 7.0, 300.0]))
        kind = draw(st.sampled_from(kinds))
        job = replace(kind.job, id=str(number), submit_s=at_s)
        arrived.append(replace(kind, job=job))
    return Workload("drawn", found, parts, tuple(arrived))
