"""Jobs as policies see them: from one row of squeue to one Job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.details import Allocation
from pliant.batch.slurm.gres import GPU, SHARD, gres_list
from pliant.batch.slurm.job_rows import JobRow, count
from pliant.batch.slurm.lent import owed
from pliant.batch.slurm.nodes import Use
from pliant.batch.slurm.request import Asked, asked, least_cpus
from pliant.batch.slurm.requested import as_expected, partitions_of, requested, spec_of
from pliant.batch.slurm.values import NOTHING, duration_s, host_list, instant_s, tasks_in, whole
from pliant.errors import BadAnswer
from pliant.grammar import UNANSWERED, noted
from pliant.model import Job, JobState

USER_TOP = (
    "with SchedulerParameters=enable_user_top its owner could give another job the place that is "
    "kept for it"
)
LONGEST_NAME = 256
"""Jobs whose names differ only beyond it are taken for jobs of one name."""
SKEW_S = 30.0
"""How far slurmctld's clock may be before ours."""
_ENDING = frozenset(("COMPLETING",))
HELD, SUSPENDED = "it is held, and would not start again", "it is suspended"
FOR_NOW = frozenset((HELD, SUSPENDED))
"""Why one is left as it is that may be changed once its owner, or who else, lets it go on."""
EXCLUSIVE = "NO"
"""OverSubscribe of a job that shares its nodes with none: all on them is allocated to it."""
SHARES = "YES"
"""OverSubscribe of a job that may share its CPUs with others marked so."""


def running_job(row: JobRow, cluster: Cluster, allocation: Allocation | None = None) -> Job:
    """Return a job that has an allocation; one that cannot be understood has frozen words."""
    try:
        return _running(row, cluster, allocation)
    except BadAnswer as error:
        return _not_understood(row, str(error))


def waiting_job(row: JobRow, cluster: Cluster, now_s: float) -> Job:
    """Return a waiting job, or all tasks of an array's record; unread ones are left alone."""
    try:
        return _waiting(row, cluster, now_s)
    except BadAnswer as error:
        return _not_understood(row, str(error))


def _not_understood(row: JobRow, words: str) -> Job:
    state = JobState.WAITING if row.waits else JobState.RUNNING
    job = Job(row.key, row.user, partitions=partitions_of(row.partition), state=state)
    restarts = int(row.restarts) if row.restarts.isdecimal() else 0
    job = replace(job, restarts=restarts, number=_number(row))  # its wrapper goes by them
    return replace(job, frozen=words, eligible=False, shapes=(job.shape,))


def _number(row: JobRow) -> str:
    """Return a task's own number; "" where a job goes by it."""
    return row.job_id if row.job_id != row.key else ""


def _waiting(row: JobRow, cluster: Cluster, now_s: float) -> Job:
    wants = requested(row, cluster)
    partitions = partitions_of(row.partition)
    priority = whole(row.priority)
    expected = host_list(row.nodes_expected)
    job = Job(
        id=row.key,
        user=row.user,
        name=_name(row.name),
        account=_said(row.account),
        qos=_said(row.qos).lower(),
        partitions=partitions,
        state=JobState.WAITING,
        reason=_said(row.reason),
        priority=priority,
        submit_s=instant_s(row.submit),
        eligible=priority > 0 and 0 < instant_s(row.eligible) <= now_s + SKEW_S,
        shape=wants.shape,
        shapes=wants.shapes,
        footprint=wants.footprint,
        spec=wants.spec,
        time_limit_s=duration_s(row.time_limit) or cluster.max_time_s(partitions),
        time_min_s=duration_s(row.time_min),
        answered=not noted(row.admin_comment, UNANSWERED),
        owed=owed(row),
        tasks_waiting=tasks_in(row.tasks) if row.is_array_record else 1,
        array_tasks=row.tasks if row.is_array_record else "",
        features=wants.features,
        nodes_required=wants.nodes_required,
        nodes_excluded=wants.nodes_excluded,
        expected_s=instant_s(row.start) if expected else 0.0,
        expected_nodes=expected,
        reservation=_said(row.reservation),
        licenses=_said(row.licenses),
        frozen=wants.frozen,
        shares=row.oversubscribe == SHARES,
        restarts=count(row.restarts),
        requeues=_requeues(row),
    )
    return job.but(ordinary=wants.unplaced) if wants.unplaced and job.is_trial else job


def _name(text: str) -> str:
    """A job's name as text: its user may have put any bytes into it."""
    return text[:LONGEST_NAME].encode("utf-8", "backslashreplace").decode()


def _said(text: str) -> str:
    return "" if text in NOTHING else text


# --- running -------------------------------------------------------------------------------


def _running(row: JobRow, cluster: Cluster, allocation: Allocation | None) -> Job:
    partitions, spec = partitions_of(row.partition), spec_of(row.admin_comment)
    has = _allocated(asked(row), allocation) if allocation else asked(row)
    shape = as_expected(has.shape(cluster.shards(partitions, has.gpu_type)), spec)
    start_s = instant_s(row.start)
    priority, suspended = whole(row.priority), row.state in ("SUSPENDED", "STOPPED")
    held = "" if priority else HELD
    job = Job(
        id=row.key,
        user=row.user,
        name=_name(row.name),
        account=_said(row.account),
        qos=_said(row.qos).lower(),
        partitions=partitions,
        state=JobState.ENDING if row.state in _ENDING else JobState.RUNNING,
        reason=_said(row.reason),
        priority=priority,
        submit_s=instant_s(row.submit),
        shape=shape,
        shapes=(shape,),
        footprint=has.footprint(),
        spec=spec,
        time_limit_s=0 if suspended else _limit_s(row, start_s),
        limit_shown_s=duration_s(row.time_limit),
        time_min_s=duration_s(row.time_min),
        reservation=_said(row.reservation),
        frozen=SUSPENDED if suspended else held,
        number=_number(row),
        start_s=start_s,
        nodes=host_list(row.nodes),
        whole_nodes=row.oversubscribe == EXCLUSIVE,
        shares=row.oversubscribe == SHARES,
        restarts=count(row.restarts),
        requeues=_requeues(row),
        answered=not noted(row.admin_comment, UNANSWERED),
        owed=owed(row),
    )
    return _elastic(job, row, cluster) if _is_elastic(job) else job


def may_change(job: Job) -> bool:
    """Whether a running job's owner lets it be requeued, and nobody holds it."""
    return _is_elastic(job) and not job.frozen


def _is_elastic(job: Job) -> bool:
    return job.spec is not None and job.spec.request.is_elastic


def _elastic(job: Job, row: JobRow, cluster: Cluster) -> Job:
    """Add what a running job may become: what it might if it waited with the same request.

    A task of an array that is requeued keeps a record of its own, as any job has.
    """
    wants = requested(replace(row, state="PENDING", array_tasks="N/A"), cluster)
    may = not job.frozen and job.shape in wants.shapes
    return replace(
        job,
        spec=wants.spec,
        shapes=wants.shapes if may else (job.shape,),
        footprint=wants.footprint,
        cpus_asked=least_cpus(row),
        frozen=job.frozen or wants.frozen or _kept(row) or (USER_TOP if cluster.user_top else ""),
        features=wants.features,
        nodes_required=wants.nodes_required,
        nodes_excluded=wants.nodes_excluded,
    )


def _kept(row: JobRow) -> str:
    """Why a running job is better not requeued; "" where nothing speaks against it."""
    if instant_s(row.deadline):
        return "it has a deadline: its time limit would begin anew, and Slurm could end it for that"
    held = row.licenses not in NOTHING
    return "it holds licences, which another job could take meanwhile" if held else ""


def _requeues(row: JobRow) -> bool:
    """Whether Slurm would requeue it: jobs of sbatch alone, and none with --no-requeue."""
    return row.batch != "0" and row.requeue == "1"


def _limit_s(row: JobRow, start_s: float) -> int:
    """Seconds from its start to its end as Slurm has it; 0 without a limit."""
    end_s = instant_s(row.end)
    limited = duration_s(row.time_limit) > 0 and end_s > start_s
    return max(1, round(end_s - start_s)) if limited else 0


def _allocated(has: Asked, allocation: Allocation) -> Asked:
    gpus = [[g for g in gres if g.name == GPU and g.count] for gres in allocation.values()]
    most = max(gpus, key=lambda some: sum(g.count for g in some), default=[])
    if not most:
        return has
    types = {g.type for g in most}
    kind = types.pop() if len(types) == 1 else ""
    return replace(has, gpus=sum(g.count for g in most), gpu_type=kind)


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


def queue_order(job: Job, cluster: Cluster) -> tuple[int, int, float, int, str]:
    """Return Slurm's order: PriorityTier, priority, then the earlier submitted, the lower id."""
    number = job.id.partition("_")[0]
    return (
        -cluster.tier(job.partitions),
        -job.priority,
        job.submit_s,
        int(number) if number.isdecimal() else 0,
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
