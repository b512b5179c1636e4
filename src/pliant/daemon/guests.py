"""Guests, for whom room is made: one job each. Of an array it is one task, as a job of its own.

Slurm gives that a record of its own once it is pinned; PBS never does while it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from pliant.batch.slurm.values import task_runs
from pliant.daemon.named import parts
from pliant.errors import BadAnswer
from pliant.model import ONE_OF_ARRAY, Job, Snapshot, within_array


def first_task(job: Job) -> Job:
    """Return who is to have the room that is made for a waiting job: of an array its first task."""
    number, task = parts(job.id)
    tasks = _runs(job)
    return _task(job, _name(job, number, tasks[0][0])) if tasks and not task else job


def apart(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Take tasks of these names out of their arrays, where they wait in them."""
    for name in names:
        snapshot = _apart(snapshot, name)
    return snapshot


def _apart(snapshot: Snapshot, name: str) -> Snapshot:
    number, task = parts(name)
    waiting = {job.id: job for job in snapshot.waiting}
    array = waiting.get(number) or waiting.get(f"{number}[]")
    if not task.isdecimal() or name in waiting or array is None:
        return snapshot
    runs = _runs(array)
    if not any(int(task) in run for run in runs):
        return snapshot
    left = ",".join(map(_text, _without(runs, int(task))))
    rest = within_array(replace(array, array_tasks=left), array.tasks_waiting - 1)
    both = (_task(array, name), *((rest,) if left else ()))
    every = (both if job is array else (job,) for job in snapshot.waiting)
    return replace(snapshot, waiting=tuple(chain.from_iterable(every)))


def _task(array: Job, name: str) -> Job:
    return replace(
        array,
        id=name,
        tasks_waiting=1,
        array_tasks="",
        shapes=(array.shape,),
        frozen=array.frozen or ONE_OF_ARRAY,
    )


def _name(array: Job, number: str, task: int) -> str:
    return f"{number}[{task}]" if array.id.endswith("[]") else f"{number}_{task}"


def _runs(array: Job) -> list[range]:
    """The tasks of an array; none where they are not known."""
    with suppress(BadAnswer):
        return task_runs(array.array_tasks)
    return []


def _without(runs: Iterable[range], task: int) -> Iterator[range]:
    for run in runs:
        at = run.index(task) if task in run else len(run)
        yield from filter(None, (run[:at], run[at + 1 :]))


def _text(run: range) -> str:
    step = f":{run.step}" if run.step > 1 else ""
    return f"{run[0]}-{run[-1]}{step}" if len(run) > 1 else f"{run[0]}"
