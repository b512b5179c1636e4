"""Waiting tasks of an array that have a record of their own, where squeue hides that.

A task that its owner changed or holds, or that was requeued, has a record of its own, which is not
the array's to change. 22.05 can show it on a line of its own; 24.11 and 26.05 write it into the
array's line, also where its request is another one, and its Reason beside the array's:
``Resources,JobHeldUser``. Only ``squeue -r`` tells there whose task it is, and why the others wait:
it prints a line for each task with the JobID of its record, but not how many may run at once. So
both are asked, and then for the records that the first did not show.

How many may run at once (``--array=1-9%2``) no squeue prints for a task that stands alone, be it
the array's last one. ``scontrol show job`` does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from pliant.batch.slurm.job_rows import NO_TASKS, JobRow
from pliant.batch.slurm.requested import spec_of
from pliant.errors import BadAnswer
from pliant.model import JobClass

FORMAT = "JobID:|,ArrayTaskID:|,Reason:|"


@dataclass(slots=True)
class Tasks:
    """The tasks of one record, and the Reason for which they wait."""

    numbers: list[int] = field(default_factory=list)
    reason: str = ""


def parse_tasks(text: str) -> dict[str, Tasks]:
    """Read ``squeue -r`` in FORMAT: the tasks of each record by its JobID.

    Raises BadAnswer.
    """
    found: dict[str, Tasks] = defaultdict(Tasks)
    for line in text.splitlines():
        job_id, task, reason = [*line.removesuffix("|").split("|", 2), "", ""][:3]
        if task.isascii() and task.isdecimal():
            found[job_id].numbers.append(int(task))
            found[job_id].reason = reason
        elif task != "N/A":
            raise BadAnswer(f"squeue's task of an array is no number: {line[:80]!r}")
    return found


def apart(rows: Iterable[JobRow], tasks: Mapping[str, Tasks]) -> list[JobRow]:
    """Take out of each array's record the tasks that have one of their own."""
    return [_apart(row, tasks.get(row.job_id)) for row in rows]


def of_unknown_limit(rows: Iterable[JobRow]) -> list[str]:
    """Return a JobID of each array whose limit a waiting trial job may have to wait for.

    No room is to be made for it meanwhile. Nothing else is decided by that limit alone.
    """
    arrays: dict[str, list[JobRow]] = defaultdict(list)
    for row in rows:
        if row.array_tasks not in NO_TASKS:
            arrays[row.array_id].append(row)
    return [
        tasks[0].job_id
        for tasks in arrays.values()
        if len(tasks) > 1
        and not any(row.at_once for row in tasks)
        and any(row.waits and _is_trial(row) for row in tasks)
    ]


def with_limits(rows: Iterable[JobRow], limits: Mapping[str, int]) -> list[JobRow]:
    """Write the limits of arrays, by the JobID of a task, at their waiting tasks, as squeue does.

    Also that which it writes at some tasks of an array alone.
    """
    rows = list(rows)
    of = {row.array_id: limits[row.job_id] for row in rows if row.job_id in limits}
    of |= {row.array_id: row.at_once for row in rows if row.at_once}
    return [
        replace(row, array_tasks=f"{row.tasks}%{of[row.array_id]}")
        if row.waits and row.array_id in of and row.array_tasks not in NO_TASKS
        else row
        for row in rows
    ]


def _is_trial(row: JobRow) -> bool:
    spec = spec_of(row.admin_comment)
    return spec is not None and spec.request.job_class is JobClass.TRIAL


def _apart(row: JobRow, own: Tasks | None) -> JobRow:
    if not row.is_array_record or not own:  # not asked for, or all have started meanwhile
        return row
    limit = f"%{row.at_once}" if row.at_once else ""
    return replace(row, array_tasks=ranges(own.numbers) + limit, reason=own.reason)


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers as Slurm does: ``0-1,3``."""
    runs = groupby(enumerate(sorted(set(numbers))), key=lambda pair: pair[1] - pair[0])
    ends = [[number for _, number in run] for _, run in runs]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in ends)
