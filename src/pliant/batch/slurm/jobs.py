"""Jobs as policies see them: from one row of squeue to one Job.

A flagged job is *frozen*, with words for its owner, wherever its shape must stay: heterogeneous,
federated or exclusive jobs, jobs of a reservation, single waiting tasks of an array, forms of
request that no update changes rightly, and requests that someone else has changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.details import Allocation
from pliant.batch.slurm.gres import GPU, SHARD, gres_list
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.nodes import Use
from pliant.batch.slurm.request import (
    Asked,
    asked,
    features_all,
    features_any,
    lacking,
)
from pliant.batch.slurm.values import (
    NOTHING,
    duration_s,
    host_list,
    instant_s,
    tasks_in,
    whole,
)
from pliant.cycle import allowed_shapes
from pliant.errors import BadAnswer
from pliant.grammar import find_token
from pliant.model import Footprint, Job, JobState, Kind, Request, Shape, Spec, shape_text

_ENDING = frozenset(("COMPLETING",))
_NOT_FEDERATED = NOTHING


@lru_cache(maxsize=100_000)
def spec_of(admin_comment: str) -> Spec | None:
    """Return what the token says; read once for each text."""
    return find_token(admin_comment) if "pliant=" in admin_comment else None


def job_of(
    row: JobRow, cluster: Cluster, now_s: float, allocation: Allocation | None = None
) -> Job:
    """Return one job; a row that cannot be understood is a job that Pliant leaves alone."""
    try:
        return _waiting(row, cluster, now_s) if row.waits else _running(row, cluster, allocation)
    except BadAnswer as error:
        job = _common(row, cluster)
        return replace(job, frozen=str(error), eligible=False, shapes=(job.shape,))


@lru_cache(maxsize=4096)
def partitions_of(text: str) -> tuple[str, ...]:
    """Return the partitions of a job that names several."""
    return tuple(name for name in text.split(",") if name)


def _common(row: JobRow, cluster: Cluster) -> Job:
    partitions = partitions_of(row.partition)
    limit_s = duration_s(row.time_limit) or cluster.max_time_s(partitions)
    return Job(
        id=row.key,
        user=row.user,
        account="" if row.account in NOTHING else row.account,
        partitions=partitions,
        state=_state(row),
        reason="" if row.reason in NOTHING else row.reason,
        priority=whole(row.priority),
        submit_s=instant_s(row.submit),
        time_limit_s=limit_s,
        time_min_s=duration_s(row.time_min),
        reservation="" if row.reservation in NOTHING else row.reservation,
        restarts=count(row.restarts),
    )


def _state(row: JobRow) -> JobState:
    if row.waits:
        return JobState.WAITING
    return JobState.ENDING if row.state in _ENDING else JobState.RUNNING


# --- running -------------------------------------------------------------------------------


def _asks_text(row: JobRow) -> str:
    return row.tres_per_node + row.tres_per_job + row.tres_per_task + row.tres_per_socket


def needs_detail(row: JobRow, cluster: Cluster) -> bool:
    """Whether only scontrol can say where a running job sits: shards in 22.05, or mixed types."""
    if row.waits or row.nodes in NOTHING or "gres" not in _asks_text(row):
        return False
    try:
        return _needs_detail(row, cluster)
    except BadAnswer:
        return False


def _needs_detail(row: JobRow, cluster: Cluster) -> bool:
    texts = (row.tres_per_node, row.tres_per_job, row.tres_per_task, row.tres_per_socket)
    asks = [gres for text in texts for gres in gres_list(text)]
    if cluster.needs_details and any(gres.name == SHARD for gres in asks):
        return True
    untyped = any(gres.name == GPU and not gres.type for gres in asks)
    return untyped and any(cluster.is_mixed(node) for node in host_list(row.nodes))


def _running(row: JobRow, cluster: Cluster, allocation: Allocation | None) -> Job:
    job = _common(row, cluster)
    spec = spec_of(row.admin_comment)
    has = asked(row)
    if allocation:
        has = _allocated(has, allocation)
    shape = has.shape(cluster.shards(job.partitions, has.gpu_type))
    shape = _as_expected(shape, spec)
    start_s, end_s = instant_s(row.start), instant_s(row.end)
    suspended = row.state in ("SUSPENDED", "STOPPED")
    limited = job.time_limit_s and not suspended
    return replace(
        job,
        shape=shape,
        shapes=(shape,),
        footprint=has.footprint(),
        spec=spec,
        time_limit_s=max(1, round(end_s - start_s)) if limited and end_s > start_s else 0,
        frozen="it is suspended" if suspended else "",
        start_s=start_s,
        nodes=host_list(row.nodes),
    )


def _allocated(has: Asked, allocation: Allocation) -> Asked:
    gpus = [[g for g in gres if g.name == GPU and g.count] for gres in allocation.values()]
    most = max(gpus, key=lambda some: sum(g.count for g in some), default=[])
    if not most:
        return has
    types = {g.type for g in most}
    kind = types.pop() if len(types) == 1 else ""
    return replace(has, gpus=sum(g.count for g in most), gpu_type=kind)


# --- waiting -------------------------------------------------------------------------------


def _waiting(row: JobRow, cluster: Cluster, now_s: float) -> Job:
    job = _common(row, cluster)
    spec = spec_of(row.admin_comment)
    wants = asked(row, spec.footprint if spec else None, cluster.default_per_cpu_mib)
    carried = wants.shape(cluster.shards(job.partitions, wants.gpu_type))
    features, excluded, odd_features = _constraint(row, cluster)
    job = replace(
        job,
        eligible=job.priority > 0 and 0 < instant_s(row.eligible) <= now_s,
        shape=carried,
        shapes=(carried,),
        footprint=wants.footprint(),
        tasks_waiting=tasks_in(row.array_tasks) if row.is_array_record else 1,
        features=features,
        nodes_required=host_list(row.nodes_required),
        nodes_excluded=excluded.union(host_list(row.nodes_excluded)),
    )
    if spec is None:
        return job
    job = replace(job, frozen=_left(row) or odd_features or wants.odd)
    return _flagged(row, job, spec, cluster, wants)


def _constraint(row: JobRow, cluster: Cluster) -> tuple[frozenset[str], frozenset[str], str]:
    """The features every node must have, the nodes that lack all of a choice, and what is odd."""
    every = features_all(row.features)
    if every is not None:
        return every, frozenset(), ""
    some = features_any(row.features)
    if some is not None:
        return frozenset(), lacking(some, cluster.features), ""
    return frozenset(), frozenset(), "its constraint is more than a list of features"


def _left(row: JobRow) -> str:
    """Why a waiting job is left alone whatever it asks."""
    checks = (
        (row.het_id not in ("0", *NOTHING), "it is a component of a heterogeneous job"),
        (row.origin not in _NOT_FEDERATED, "it belongs to a federation of clusters"),
        (row.oversubscribe in ("NO", "USER", "MCS", "TOPO"), "it has its nodes alone"),
        (row.reservation not in NOTHING, "it belongs to a reservation"),
        (row.contiguous not in ("0", "NO"), "it asks for contiguous nodes"),
        (_is_split_task(row), "it is a single waiting task of an array"),
        (row.state != "PENDING", "it was requeued and held"),
    )
    return next((words for holds, words in checks if holds), "")


def _is_split_task(row: JobRow) -> bool:
    return row.array_tasks not in ("N/A", "") and not row.is_array_record


def _flagged(row: JobRow, job: Job, spec: Spec, cluster: Cluster, wants: Asked) -> Job:
    """Add to a flagged job what it may become."""
    noted, footprint = spec, _footprint(spec.footprint, wants)
    own = noted.own or _own(noted.request, job.shape)
    spec = replace(noted, own=own, footprint=noted.footprint or footprint)
    shape = _as_expected(job.shape, spec)
    job = replace(job, spec=spec, shape=shape, shapes=(shape,), footprint=footprint)
    frozen = job.frozen or _unprepared(row, noted, wants) or _changed(job, noted, wants, cluster)
    if frozen or spec.pinned:
        return replace(job, frozen=frozen or "its owner pinned it")
    allowed = allowed_shapes(spec.request, own, shape, cluster.abilities())
    possible = tuple(s for s in allowed if _can_update(row, job, s, cluster))
    return replace(job, shapes=possible or (shape,))


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
        noted, mem_per_node_mib=now.mem_per_node_mib, mem_per_cpu_mib=now.mem_per_cpu_mib
    )


def _as_expected(carried: Shape, spec: Spec | None) -> Shape:
    """Name a carried GPU shape ``both`` where that is what was set: the GRES are the same."""
    expected = (spec.set or spec.own) if spec else None
    if expected and replace(expected, kind=Kind.GPU) == carried and expected.kind is Kind.BOTH:
        return expected
    return carried


def _unprepared(row: JobRow, noted: Spec, wants: Asked) -> str:
    """Why a job that the filter did not see cannot be taken over, in words."""
    if noted.footprint is None and row.is_array_record and wants.tasks > 1:
        return "an array of several tasks a node was submitted while pliantd was away"
    return ""


def _changed(job: Job, noted: Spec, wants: Asked, cluster: Cluster) -> str:
    """What someone else has changed since the token was written, in words."""
    expected = noted.set or noted.own
    if expected is None:
        return ""
    told = ""
    if job.shape != expected:
        told = f"it carries {shape_text(job.shape)} instead of {shape_text(expected)}"
    elif noted.footprint is not None:
        demand = job.demand(expected)
        told = wants.differs(replace(demand, cpus=cluster.cores(job.partitions, demand)))
    return f"its owner or another tool has changed it: {told}" if told else ""


def _can_update(row: JobRow, job: Job, shape: Shape, cluster: Cluster) -> bool:
    """Whether Slurm can change the job to this shape."""
    if shape == job.shape:
        return True
    if row.is_array_record and not row.is_last_task and shape.nodes != job.shape.nodes:
        return False  # "Job resizing not supported for job arrays"
    fixed = count(row.tasks_per_node)  # "Update of this parameter is not supported"
    if fixed and job.demand(shape).tasks != fixed:
        return False
    both_gpu = Kind.CPU not in (shape.kind, job.shape.kind)
    if both_gpu and shape.gpu_type != job.shape.gpu_type and not cluster.empties:
        return False  # a second type would be added beside the first
    if shape.is_share:
        shards = cluster.shards(job.partitions, shape.gpu_type)
        return shards > 0 and shards % shape.share == 0
    return True


def queue_order(job: Job, cluster: Cluster) -> tuple[int, int, float, int, str]:
    """Return Slurm's order: PriorityTier, priority, then the earlier submitted, the lower id."""
    number = job.id.partition("_")[0]
    return (
        -cluster.tier(job.partitions),
        -job.priority,
        job.submit_s,
        int(number) if number.isdigit() else 0,
        job.id,
    )


def lent_shards(allocations: Mapping[str, Allocation]) -> dict[str, dict[int, Use]]:
    """Return how many shards of each GPU of each node running jobs use, and how many jobs."""
    lent: dict[str, dict[int, Use]] = {}
    for allocation in allocations.values():
        for node, every in allocation.items():
            for gres in every:
                if gres.name == SHARD and len(gres.indexes) == 1:
                    of_node = lent.setdefault(node, {})
                    place = gres.indexes[0]
                    shards, jobs = of_node.get(place, (0, 0))
                    of_node[place] = (shards + gres.count, jobs + 1)
    return lent
