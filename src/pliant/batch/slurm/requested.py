"""What a waiting job's request says and allows; read once for all jobs that ask alike.

A flagged job is *frozen*, with words for its owner, wherever its shape must stay: heterogeneous,
federated or exclusive jobs, jobs of a reservation, single waiting tasks of an array, forms of
request that no update changes rightly, and requests that someone else has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.gres import tres
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.request import Asked, asked, lacking, only_in_total
from pliant.batch.slurm.values import NOTHING, host_list, size_mib
from pliant.cycle import allowed_shapes
from pliant.filter.constraint import features_all, features_any
from pliant.grammar import find_token
from pliant.model import ONE_OF_ARRAY, Demand, Footprint, Kind, Request, Shape, Spec, shape_text


@dataclass(frozen=True, slots=True)
class Requested:
    """The fields of Job that follow from the request alone."""

    shape: Shape
    shapes: tuple[Shape, ...]
    footprint: Footprint
    spec: Spec | None
    frozen: str
    features: frozenset[str]
    nodes_required: tuple[str, ...]
    nodes_excluded: frozenset[str]
    unplaced: str = ""  # why it takes more to start it than room of its shape; "": it does not


def spec_of(admin_comment: str) -> Spec | None:
    """Return what the token says; read once for each text."""
    return _spec_of(admin_comment) if "pliant=" in admin_comment else None


_spec_of = lru_cache(maxsize=16_384)(find_token)


@lru_cache(maxsize=4096)
def partitions_of(text: str) -> tuple[str, ...]:
    """Return the partitions of a job that names several."""
    return tuple(name for name in text.split(",") if name)


_KEY = attrgetter(
    *("state", "num_nodes", "max_nodes", "num_tasks", "num_cpus", "cpus_per_task"),
    *("tasks_per_node", "min_cpus", "min_memory", "oversubscribe", "het_id", "contiguous", "batch"),
    *("is_array_record", "is_last_task", "is_split_task", "origin", "partition", "tres"),
    *("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "cpus_per_tres"),
    *("mem_per_tres", "features", "reservation", "nodes_required", "nodes_excluded"),
    "admin_comment",
)
"""All that :func:`requested` looks at: jobs that are equal in it are read once."""


ALONE = "it has its nodes alone"
CHANGED = "its owner or another tool has changed it: "
"""How the words begin that say what a job carries and its token does not account for."""


def requested(row: JobRow, cluster: Cluster) -> Requested:
    """Return what a waiting job's request says and allows.

    Raises BadAnswer.
    """
    found: Requested = cluster.read.get(_KEY(row), lambda: _read(row, cluster))
    return found


def _read(row: JobRow, cluster: Cluster) -> Requested:
    spec, partitions = spec_of(row.admin_comment), partitions_of(row.partition)
    wants = asked(row, spec.footprint if spec else None, cluster.default_per_cpu_mib)
    carried = wants.shape(cluster.shards(partitions, wants.gpu_type))
    features, excluded, odd_features = _constraint(row, cluster)
    said = Requested(
        carried,
        (carried,),
        wants.footprint(),
        spec,
        "",
        features,
        host_list(row.nodes_required),
        excluded.union(host_list(row.nodes_excluded)),
    )
    if spec is None:
        return said
    unplaced = _unplaced(row, spec) or odd_features
    frozen = unplaced or _left(row) or wants.odd
    alone = any(cluster.partitions[p].alone for p in partitions if p in cluster.partitions)
    said = replace(said, frozen=frozen, unplaced=unplaced or (ALONE if alone else ""))
    return _flagged(row, said, spec, cluster, wants)


def _constraint(row: JobRow, cluster: Cluster) -> tuple[frozenset[str], frozenset[str], str]:
    """The features every node must have, the nodes that lack all of a choice, and what is odd."""
    every = features_all(row.features)
    if every is not None:
        return every, frozenset(), ""
    some = features_any(row.features)
    if some is not None:
        return frozenset(), lacking(some, cluster.features), ""
    return frozenset(), frozenset(), "its constraint is more than a list of features"


def _unplaced(row: JobRow, spec: Spec) -> str:
    """Why a waiting job does not start wherever there is room for its shape."""
    unmarked = row.oversubscribe == "NO" and spec.mark != ""  # by us: see marking.py
    checks = (
        (row.het_id not in ("0", *NOTHING), "it is a component of a heterogeneous job"),
        (row.origin not in NOTHING, "it belongs to a federation of clusters"),
        (
            row.oversubscribe in ("NO", "USER", "MCS", "TOPO") and not unmarked,
            ALONE,
        ),
        (row.reservation not in NOTHING, "it belongs to a reservation"),
        (row.contiguous not in ("0", "NO"), "it asks for contiguous nodes"),
    )
    return next((words for holds, words in checks if holds), "")


def _left(row: JobRow) -> str:
    """Why a waiting job is left alone whatever it asks."""
    checks = (
        (row.is_split_task, ONE_OF_ARRAY),
        (row.batch == "0", "it was not submitted with sbatch"),
        (row.state != "PENDING", "it was requeued and held"),
    )
    return next((words for holds, words in checks if holds), "")


def _flagged(
    row: JobRow, said: Requested, noted: Spec, cluster: Cluster, wants: Asked
) -> Requested:
    """Add what a flagged job may become."""
    footprint = _footprint(noted.footprint, wants)
    own = noted.own or _own(noted.request, said.shape)
    spec = replace(noted, own=own, footprint=noted.footprint or footprint)
    shape = as_expected(said.shape, spec)
    said = replace(said, spec=spec, shape=shape, shapes=(shape,), footprint=footprint)
    unlike = _unlike(row, said, wants, cluster) if noted.footprint else ""
    if noted.footprint and unlike:
        said = replace(said, footprint=_carried(row, noted.footprint, wants, cluster))
        if noted.own is None:  # by pliant.lua alone: a default of the partition's came to it
            said = replace(said, spec=replace(spec, footprint=said.footprint))
    frozen = said.frozen or _unprepared(row, noted, wants) or _changed(said, noted, unlike)
    if frozen or spec.pinned:
        return replace(said, frozen=frozen or "its owner pinned it")
    allowed = allowed_shapes(spec.request, own, shape, cluster.abilities)
    possible = tuple(s for s in allowed if _can_update(row, said, s, cluster))
    if only_in_total(row) and set(possible) <= {shape} < set(allowed):
        return replace(said, frozen=IN_TOTAL)
    return replace(said, shapes=possible or (shape,))


IN_TOTAL = (
    "it asks for GPUs per task over several nodes (--gpus-per-task), which this release of Slurm"
    " does not change while a job waits: --gres=gpu:N with -N and -n can"
)


def _own(request: Request, carried: Shape) -> Shape:
    """The own shape of a job that the filter did not see: what it carries.

    A job that names GPUs only in its flags would run without one; then one on each node is meant.
    """
    wants_gpu = request.gpus or request.gpu_types or {Kind.GPU, Kind.BOTH} & set(request.kinds)
    if carried.kind is not Kind.CPU or not wants_gpu or Kind.CPU in request.kinds:
        return carried
    return Shape(carried.nodes, 1)


def _footprint(noted: Footprint | None, wants: Asked) -> Footprint:
    """What is noted; with the memory that Slurm gives by default where none was asked."""
    if noted is None:
        return wants.footprint()
    if noted.mem_per_node_mib or noted.mem_per_cpu_mib or noted.mem_per_gpu_mib:
        return noted
    now = wants.footprint()
    return replace(
        noted,
        mem_per_node_mib=now.mem_per_node_mib,
        mem_per_cpu_mib=now.mem_per_cpu_mib,
        mem_per_gpu_mib=now.mem_per_gpu_mib,
    )


def as_expected(carried: Shape, spec: Spec | None) -> Shape:
    """Name a carried GPU shape ``both`` where that is what was set: the GRES are the same."""
    expected = (spec.set or spec.own) if spec else None
    if expected and replace(expected, kind=Kind.GPU) == carried and expected.kind is Kind.BOTH:
        return expected
    return carried


def _unprepared(row: JobRow, noted: Spec, wants: Asked) -> str:
    """Why a job that the filter did not see cannot be taken over, in words."""
    several = noted.footprint is None and row.is_array_record and wants.tasks > 1
    if several and count(row.min_cpus) < wants.tasks * wants.cpus_per_task:
        return (
            "Slurm may spread its tasks over nodes as it likes, and changes no array's number of"
            f" nodes: -N{wants.nodes} --ntasks-per-node={wants.tasks} can be changed"
        )
    return ""


def _demand(said: Requested, shape: Shape) -> Demand:
    return said.footprint.demand(shape, said.spec.request.cores if said.spec else 0)


def _unlike(row: JobRow, said: Requested, wants: Asked, cluster: Cluster) -> str:
    """What a job asks beside its shape that what was noted does not account for, in words."""
    demand = _demand(said, said.shape)
    cpus = cluster.cores(partitions_of(row.partition), demand)
    told = wants.differs(replace(demand, cpus=cpus))
    return f"{told}; {wants.uneven}" if told and wants.uneven else told


def _carried(row: JobRow, noted: Footprint, wants: Asked, cluster: Cluster) -> Footprint:
    """The footprint of what a job carries, where what was noted does not account for it.

    Memory that is as it was noted is of the noted kind. Else the total tells: Slurm reckons it anew
    whenever the memory is changed, but not with the CPUs, so it need not be that of these CPUs.
    """
    least, total = size_mib(row.min_memory), size_mib(tres(row.tres).get("mem", ""))
    if not least or wants.mem_per_gpu_mib:
        return wants.footprint()
    if least in (noted.mem_per_cpu_mib, noted.mem_per_node_mib):
        per_cpu = least == noted.mem_per_cpu_mib
    else:
        per_cpu = total not in (0, least * wants.nodes) or least == cluster.default_per_cpu_mib
    mem_mib = least * wants.cpus if per_cpu else least
    return replace(wants, mem_mib=mem_mib, per_cpu=per_cpu).footprint()


def _changed(said: Requested, noted: Spec, unlike: str) -> str:
    """What someone else has changed since the token was written, in words."""
    expected = noted.set or noted.own
    if expected is None:
        return ""
    carries = f"it carries {shape_text(said.shape)} instead of {shape_text(expected)}"
    told = unlike if said.shape == expected else carries
    return f"{CHANGED}{told}" if told else ""


def _can_update(row: JobRow, said: Requested, shape: Shape, cluster: Cluster) -> bool:
    """Whether Slurm can change the job to this shape."""
    if shape == said.shape:
        return True
    is_cpu, was_cpu = shape.kind is Kind.CPU, said.shape.kind is Kind.CPU
    partitions, demand = partitions_of(row.partition), _demand(said, shape)
    shards = cluster.shards(partitions, shape.gpu_type)
    hindrances = (
        # "Job resizing not supported for job arrays"
        row.is_array_record and not row.is_last_task and shape.nodes != said.shape.nodes,
        # a total of GPUs could lie on the nodes as 3 + 1
        only_in_total(row) and shape.nodes > 1,
        # a second type is added beside the first, or refused
        not is_cpu and not was_cpu and shape.gpu_type != said.shape.gpu_type,
        # a call without GRES that comes too late could shrink a running job
        is_cpu and was_cpu,
        shape.is_share and (shards == 0 or shards % shape.share > 0),
        # "BadConstraints", and the job is held
        not cluster.could_hold(partitions, demand, shape.nodes),
        # the same, or refused, for tasks of 3 CPUs on cores of 2 threads
        cluster.splits_cores(partitions, demand),
    )
    return not any(hindrances)
