"""All rows of one look as a snapshot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.details import Allocation
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import lent_shards, may_change, queue_order, running_job, waiting_job
from pliant.batch.slurm.node_rows import NodeRow
from pliant.batch.slurm.nodes import node_of
from pliant.batch.slurm.requested import partitions_of
from pliant.batch.slurm.values import NOTHING, host_list
from pliant.handover import OURS
from pliant.model import ARRAY_LIMIT, EVERYBODY, Job, Node, Snapshot, within_array

Places = Mapping[str, Allocation | None]
"""Where running jobs sit, by JobID; None: it was asked and is not known."""
SINGLETON = "a singleton of its name waits that was submitted before it, and would start meanwhile"
_AFTER = re.compile(r"\bafter:(\w+)")
STOPS = "{}: while it waits for its next run, nobody behind it in its partition would start"
ENDS = "between its two runs Slurm could end jobs of others for it: {} may preempt (PreemptType)"
STARTS_LATER = "job {} starts so long after it (--dependency=after), and would wait for that anew"
NEXT_TASK = "the next task of its array would start in its place: only so many may run at once"


def with_excluded(rows: list[JobRow], excluded: Mapping[str, str]) -> list[JobRow]:
    """Add the excluded nodes that were asked on their own, by JobID."""
    if not excluded:
        return rows
    return [
        replace(row, nodes_excluded=excluded[row.job_id]) if row.job_id in excluded else row
        for row in rows
    ]


def snapshot_of(
    rows: Sequence[JobRow],
    cluster: Cluster,
    places: Places,
    now_s: float,
) -> Snapshot:
    """Return the jobs and partitions of one look; nodes and reservations are added to it."""
    running = [row for row in rows if not row.waits]
    preempting = _preempting(running, cluster)
    waiting = _waiting(rows, cluster, now_s)
    if preempting:
        waiting = [_at_least_own(job, preempting) for job in waiting]
    return Snapshot(
        now_s=now_s,
        nodes=(),
        partitions=tuple(
            replace(one, preempts=True) if name in preempting else one
            for name, one in cluster.partitions.items()
        ),
        waiting=tuple(waiting),
        running=_running(running, rows, cluster, places),
        abilities=replace(
            cluster.abilities, federated=any(row.origin not in NOTHING for row in rows)
        ),
    )


def _waiting(rows: Sequence[JobRow], cluster: Cluster, now_s: float) -> list[Job]:
    """Return the waiting jobs in Slurm's order, of each array the tasks that may start."""
    limits = {row.array_id: row.at_once for row in rows if row.waits and row.at_once}
    begun = Counter(row.array_id for row in rows if not row.waits)
    found = [(waiting_job(row, cluster, now_s), row) for row in rows if row.waits]
    found.sort(key=lambda pair: queue_order(pair[0], cluster))
    return [
        _of_array(job, limits[row.array_id], row.array_id, begun) if row.array_id in limits else job
        for job, row in found
    ]


def _of_array(job: Job, limit: int, array: str, begun: Counter[str]) -> Job:
    """Return tasks of an array of which no more than ``limit`` may run; count those of each."""
    if not job.eligible:
        return replace(job, tasks_waiting=min(limit, job.tasks_waiting))
    job = within_array(job, limit - begun[array])
    if job.is_trial or job.priority in OURS:  # room is kept for them, or may be made
        begun[array] += job.tasks_waiting
    return job


def _running(
    running: Iterable[JobRow], rows: Sequence[JobRow], cluster: Cluster, places: Places
) -> tuple[Job, ...]:
    """Return the running jobs; those are left alone in whose stead another waits to run."""
    limited = {row.array_id for row in rows if row.waits and _is_held_by_its_array(row)}
    singletons = _singletons(rows)

    after = _after(rows)

    def alone(row: JobRow, job: Job) -> str:
        if cluster.stops_behind:
            return STOPS.format(cluster.stops_behind)
        if ends := _ends_others(job, cluster):
            return ENDS.format(ends)
        if row.key in after:
            return STARTS_LATER.format(after[row.key])
        if row.array_id in limited:
            return NEXT_TASK
        return SINGLETON if singletons.get((row.user, row.name), inf) < int(row.job_id) else ""

    jobs = [(running_job(row, cluster, places.get(row.job_id)), row) for row in running]
    return tuple(
        replace(job, frozen=why) if may_change(job) and (why := alone(row, job)) else job
        for job, row in jobs
    )


def _ends_others(job: Job, cluster: Cluster) -> str:
    """Who Slurm may end others for, to start it anywhere: it is pinned, and may start elsewhere."""
    above = next((name for name in job.partitions if name in cluster.ending), "")
    if above:
        return f"partition {above}"
    by_qos = not {job.qos, EVERYBODY}.isdisjoint(cluster.ending_qos)
    return f"QOS {job.qos or 'of default'}" if by_qos else ""


def _after(rows: Iterable[JobRow]) -> dict[str, str]:
    """Return who waits until some minutes after a job's start, by that job.

    Without minutes nobody waits for one that runs.
    """
    some = (row for row in rows if row.waits and "after:" in row.dependency)
    return {name: row.key for row in some for name in _AFTER.findall(row.dependency)}


def _singletons(rows: Iterable[JobRow]) -> dict[tuple[str, str], int]:
    """Return the first job of each user and name that waits until no other such one is there.

    Slurm looks for those with a smaller number, and of the later ones for those that run. One that
    is held starts in nobody's place.
    """
    may_start = (row for row in rows if row.waits and not row.reason.startswith("JobHeld"))
    named = [row for row in may_start if "singleton" in row.dependency]
    first: dict[tuple[str, str], int] = {}
    for row in named:
        key = (row.user, row.name)
        first[key] = min(int(row.job_id), first.get(key, int(row.job_id)))
    return first


def _is_held_by_its_array(row: JobRow) -> bool:
    """Whether no more than so many tasks of its array may run at once (``--array=1-9%2``)."""
    return row.at_once > 0 or row.reason == ARRAY_LIMIT


def _preempting(running: Sequence[JobRow], cluster: Cluster) -> frozenset[str]:
    """The partitions for whose jobs Slurm would end others that run on their nodes now."""
    if not cluster.preempts:
        return frozenset()
    lowest: dict[str, int] = {}
    for row in running:
        tier = cluster.tier(partitions_of(row.partition))
        for node in host_list(row.nodes):
            lowest[node] = min(tier, lowest.get(node, tier))
    return frozenset(
        name
        for name, one in cluster.partitions.items()
        if any(lowest.get(node, one.tier) < one.tier for node in one.nodes)
    )


def _at_least_own(job: Job, preempting: frozenset[str]) -> Job:
    """Leave out the shapes below the own one where Slurm would make room for that one."""
    own = job.spec.own if job.spec else None
    if own is None or len(job.shapes) < 2 or preempting.isdisjoint(job.partitions):
        return job
    kept = tuple(shape for shape in job.shapes if shape.amount >= own.amount)
    return replace(job, shapes=kept) if kept else job


def nodes_of(
    node_rows: Iterable[NodeRow],
    rows: Sequence[JobRow],
    places: Places,
    *,
    counts_memory: bool,
) -> tuple[Node, ...]:
    """Return the nodes of one look."""
    lent = lent_shards({job_id: place for job_id, place in places.items() if place})
    hidden = [row for row in rows if places.get(row.job_id, ()) is None]
    blind = {node for row in hidden for node in host_list(row.nodes)}
    if not counts_memory:
        node_rows = (replace(row, mem_mib=0, free_mem_mib=0) for row in node_rows)
    return tuple(
        node_of(row, None if row.name in blind else lent.get(row.name, {})) for row in node_rows
    )
