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


class EndedJobs:
    """Reads each job that has ended once, though Slurm tells of it for minutes (MinJobAge)."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, Ended | None]] = {}  # by JobID, and as what it was read

    def of(self, rows: Iterable[JobRow], cluster: Cluster) -> list[Ended]:
        """Return what became of the flagged ones; one that cannot be understood is left out."""
        before, self._read = self._read, {}
        for row in rows:
            if spec_of(row.admin_comment) is None:
                continue
            stamp = f"{row.restarts} {row.state} {row.end} {row.array_tasks}"
            known = before.get(row.job_id)
            if known is None or known[0] != stamp:
                known = stamp, _ended_or_none(row, cluster)
            self._read[row.job_id] = known
        return [ended for _, ended in self._read.values() if ended is not None]


def _ended_or_none(row: JobRow, cluster: Cluster) -> Ended | None:
    with suppress(BadAnswer):
        ended = _ended_job(row, cluster)
        return ended if ended.job.spec is not None else None
    return None


def _ended_job(row: JobRow, cluster: Cluster) -> Ended:
    """Return what became of a job; waiting tasks of an array that were cancelled are one."""
    job, end_s = running_job(row, cluster), instant_s(row.end)
    if row.nodes in NOTHING:  # Slurm notes when it was cancelled as its start too
        job = replace(job, start_s=0.0, nodes=())
    if row.array_tasks not in ("N/A", "") and not row.array_tasks.isdecimal():
        tasks = row.array_tasks.partition("%")[0]
        job = replace(job, id=row.array_id, tasks_waiting=tasks_in(tasks), array_tasks=tasks)
    return Ended(job, row.state.partition(" ")[0], end_s)
