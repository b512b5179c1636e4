"""How many tasks of an array may start. Pure."""

from __future__ import annotations

from dataclasses import replace

from pliant.model.jobs import Job

ARRAY_LIMIT = "JobArrayTaskLimit"
"""Why tasks wait until others of their array have ended: squeue(1), "JOB REASON CODES"."""


def is_task_of(name: str, array: Job) -> bool:
    """Whether a job of this id is a task of an array: 8_1 of 8, on PBS 8[1] of 8[]."""
    number = array.id.removesuffix("[]")
    return array.array_tasks != "" and name.startswith((f"{number}_", f"{number}["))


def within_array(job: Job, left: int) -> Job:
    """Return the waiting tasks of an array where so many more of them may run now.

    The batch system says that none may only when it next tries to start jobs.
    """
    if left <= 0:
        return replace(job, reason=ARRAY_LIMIT, tasks_waiting=1)
    return replace(job, tasks_waiting=min(left, job.tasks_waiting))
