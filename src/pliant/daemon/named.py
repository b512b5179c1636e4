"""Which job a question means: a number as squeue shows it, 4711 or of an array 4711_3."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.batch.slurm.values import task_runs
from pliant.daemon.rights import Asker
from pliant.grammar import quoted
from pliant.model import Job, Snapshot

MOST_NAMED = 3
"""How many tasks of an array are named to whoever asked for the array."""


def find(snapshot: Snapshot, asker: Asker, name: str) -> Job | None:
    """Return the job of this number; for a waiting task of an array the array's waiting record.

    None where there is none that the asker may see.
    """
    visible = _visible(snapshot, asker)
    number, _, task = name.partition("_")
    array = visible.get(number)
    return visible.get(name) or (array if array and _waits_in(array, task) else None)


def unknown(snapshot: Snapshot, asker: Asker, name: str) -> str:
    """Return in one line that a job was not found."""
    visible = _visible(snapshot, asker)
    number, _, task = name.partition("_")
    tasks = [id_ for id_ in visible if id_.startswith(f"{number}_")]
    if not task and tasks:
        words = f"an array, whose tasks are asked for one by one: {', '.join(tasks[:MOST_NAMED])}"
        return f"{quoted(name)}: {words}" + (" ..." if tasks[MOST_NAMED:] else "")
    if task and number in visible and not tasks and not visible[number].array_tasks:
        return f"{quoted(name)}: job {number} is not an array: ask for {number}"
    return f"{quoted(name)}: no waiting or running job of this number is known"


def _visible(snapshot: Snapshot, asker: Asker) -> Mapping[str, Job]:
    everyone = (*snapshot.waiting, *snapshot.running)
    return {job.id: job for job in everyone if asker.may_see(job)}


def _waits_in(array: Job, task: str) -> bool:
    """Whether a task is among those that an array's waiting record stands for."""
    is_number = task.isascii() and task.isdigit() and len(task) < 10
    return is_number and any(int(task) in run for run in task_runs(array.array_tasks))
