"""Jobs that have ended, from one row of squeue each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from pliant.batch import Ended
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import running_job
from pliant.batch.slurm.requested import spec_of
from pliant.batch.slurm.values import NOTHING, instant_s, tasks_in
from pliant.errors import BadAnswer


def ended_jobs(rows: Iterable[JobRow], cluster: Cluster) -> list[Ended]:
    """Return what became of the flagged ones; what cannot be understood of a job is left out."""
    found: list[Ended] = []
    for row in rows:
        if spec_of(row.admin_comment) is not None:
            with suppress(BadAnswer):
                found.append(_ended_job(row, cluster))
    return [ended for ended in found if ended.job.spec is not None]


def _ended_job(row: JobRow, cluster: Cluster) -> Ended:
    """Return what became of a job; waiting tasks of an array that were cancelled are one."""
    job, end_s = running_job(row, cluster), instant_s(row.end)
    if row.nodes in NOTHING:  # Slurm notes when it was cancelled as its start too
        job = replace(job, start_s=0.0, nodes=())
    if row.array_tasks not in ("N/A", "") and not row.array_tasks.isdecimal():
        tasks = row.array_tasks.partition("%")[0]
        job = replace(job, id=row.array_id, tasks_waiting=tasks_in(tasks), array_tasks=tasks)
    return Ended(job, row.state.partition(" ")[0], end_s)
