"""What is remembered of one job, from what a look shows of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from sys import intern

from pliant.batch import Ended
from pliant.batch.slurm.values import tasks_in
from pliant.daemon.named import parts
from pliant.errors import BadAnswer
from pliant.grammar import request_text
from pliant.model import Job, JobState, Shape, shape_text
from pliant.store import ENDED, JobRecord, RunRow

FILTER, UNANSWERED = "filter", "unanswered"
"""What is decided of a job at its submission."""
SKEW_S = 60.0
"""By no more than that do two readings of one submission differ."""


def first_record(job: Job, mode: str, now_s: float) -> JobRecord:
    """Return what is known of a flagged job at first sight."""
    spec = job.spec
    assert spec is not None  # noqa: S101  # callers see to it
    own = spec.own or (job.shape if spec.set is None else None)
    return JobRecord(
        job=job.id,
        user=job.user,
        account=job.account,
        partition=_joined(job.partitions),
        mode=mode,
        request=intern(request_text(spec.request)),
        own=_text(own),
        filtered=_text(spec.set) if job.answered else "",
        answered=job.answered,
        seen_s=now_s,
        submit_s=job.submit_s,
        state="",
        tasks=tasks_of(job),
        shape=_text(job.shape),
        array=job.array_tasks != "",
        own_gpus=_gpus(own or job.shape),
    )


def submitted(record: JobRecord) -> Iterator[tuple[str, str, str]]:
    """Yield what the filter did at a job's submission: what, the shape, and words."""
    if record.filtered:
        yield FILTER, record.filtered, f"at its submission, in place of {record.own}"
    if not record.answered:
        yield UNANSWERED, record.shape or record.own, "no answer came in time at its submission"


def as_seen(before: JobRecord, job: Job, now_s: float) -> JobRecord:
    """Return the record of a job after a look; ``before`` itself where nothing has changed.

    Of a run that ends for a requeue Slurm shows the next one's number, the nodes that have not
    ended yet, and no start, or that of the look. What is not known yet comes with the end.
    """
    if _is_forgotten(before, job):
        return before
    if job.state is JobState.ENDING:
        state = job.state.value
        return before if before.state == state else replace(before, state=state)
    shape, tasks, run = _text(job.shape), tasks_of(job), _run_of(before, job)
    waits = job.state is JobState.WAITING
    same = before.shape == shape and before.state == job.state and before.tasks == tasks
    if same and before.run == run and (waits or before.run_s == job.start_s):
        return before
    record = replace(before, state=job.state.value, shape=shape, tasks=tasks)
    if ends_run(before, job):
        record = _run_over(record, end_of_run(before, job, now_s))
    if waits or not job.start_s:
        return replace(record, run=run)
    record = replace(record, run=run, run_s=job.start_s, gpus=_gpus(job.shape))
    if before.start_s:
        return record
    own = job.spec.own if job.spec is not None else None
    molded = _molded(own, job.shape) if own is not None else ""
    return replace(record, start_s=job.start_s, molded=molded, partition=_joined(job.partitions))


def ends_run(before: JobRecord, job: Job) -> bool:
    """Whether a job that ran does so no longer, or not in the same run."""
    if _is_forgotten(before, job):
        return False
    waits = job.state is JobState.WAITING
    return bool(before.run_s) and (waits or _run_of(before, job) != before.run)


def _is_forgotten(before: JobRecord, job: Job) -> bool:
    """Whether a slurmctld that was killed knows nothing of a job's last run, which goes on."""
    earlier = job.restarts < before.run and 0 < job.start_s < before.run_s
    return job.state is JobState.RUNNING and earlier


def _run_of(before: JobRecord, job: Job) -> int:
    """Return which run a job is in, was in, or waits for.

    Slurm counts the next one from the requeue on: a job that is cancelled before that has ended has
    its number, too.
    """
    same = job.state is JobState.ENDING or job.start_s == before.run_s > 0
    return before.run if same and job.state is not JobState.WAITING else job.restarts


def end_of_run(before: JobRecord, job: Job, now_s: float) -> float:
    """Return when a run ended after which its job was requeued: Slurm notes that as SubmitTime."""
    if job.submit_s > before.run_s:
        return job.submit_s
    return job.start_s or now_s


def is_another(before: JobRecord, job: Job) -> bool:
    """Whether a job has only the number of one that was known: numbers come again."""
    return job.restarts == 0 and abs(job.submit_s - before.submit_s) > SKEW_S


def starts_run(before: JobRecord, now: JobRecord) -> bool:
    """Whether another run of a job has begun."""
    return bool(now.run_s) and (not before.run_s or now.run != before.run)


def as_ended(record: JobRecord, ended: Ended, now_s: float) -> JobRecord:
    """Return the record of a job of which the batch system says how it ended."""
    end_s = ended.end_s or now_s
    tasks = tasks_of(ended.job) if record.array else record.tasks
    record = _run_over(record, end_s)
    return replace(record, state=ENDED, exit=ended.exit, end_s=end_s, tasks=tasks)


def as_gone(record: JobRecord, now_s: float) -> JobRecord:
    """Return the record of a job that is gone, nobody knows how; an array's tasks have started."""
    tasks = 0 if record.array else record.tasks
    return replace(_run_over(record, now_s), state=ENDED, end_s=now_s, tasks=tasks)


def run_row(job: Job, record: JobRecord) -> RunRow:
    """Return the run that has begun."""
    return RunRow(
        *(job.id, record.run, record.user, record.account, record.shape, ",".join(job.nodes)),
        *(record.submit_s, record.run_s, 0.0),
        name=job.name,
        gpus=record.gpus,
    )


def array_of(job: Job) -> str:
    """Return the id of the array that a job is a task of; "" for none."""
    number, task = parts(job.id)
    if not task:
        return ""
    return f"{number}[]" if "[" in job.id else number


def tasks_of(job: Job) -> int:
    """Return how many jobs it stands for: all waiting tasks of an array."""
    try:
        return tasks_in(job.array_tasks) if job.array_tasks else job.tasks_waiting
    except BadAnswer:
        return job.tasks_waiting


def _run_over(record: JobRecord, end_s: float) -> JobRecord:
    if not record.run_s:
        return record
    ran_s = max(0.0, end_s - record.run_s)
    return replace(
        record,
        run_s=0.0,
        gpu_s=record.gpu_s + record.gpus * ran_s,
        own_gpu_s=record.own_gpu_s + record.own_gpus * ran_s,
    )


def _molded(own: Shape, shape: Shape) -> str:
    if shape == own:
        return ""
    if shape.amount == own.amount:
        return "other"
    return "smaller" if shape.amount < own.amount else "larger"


# There is a record for each flagged job: what is alike in them is the same object.


@lru_cache(maxsize=4096)
def _gpus(shape: Shape | None) -> float:
    return float(shape.amount) if shape is not None else 0.0


@lru_cache(maxsize=4096)
def _text(shape: Shape | None) -> str:
    return shape_text(shape) if shape is not None else ""


@lru_cache(maxsize=4096)
def _joined(names: tuple[str, ...]) -> str:
    return ",".join(names)
