"""Which job a question means: a number as squeue or qstat shows it.

Of an array that is ``4711_3``, or on PBS ``4711[3]`` and, for all of it, ``4711[]``. Either way of
writing is taken for either system: one never has a job that the other's way would name besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pliant.batch.slurm.values import task_runs
from pliant.daemon.rights import Asker
from pliant.grammar import quoted
from pliant.model import Job, Snapshot

MOST_NAMED = 3
"""How many tasks of an array are named to whoever asked for the array."""
_NAME = re.compile(r"([^_\[]*)(?:_(.+)|\[(.*)\])?", re.DOTALL)


def ids_of(name: str) -> tuple[str, ...]:
    """Return the ids that a job of this name may have, one by either system."""
    number, task = parts(name)
    if task:
        return f"{number}_{task}", f"{number}[{task}]"
    return number, f"{number}[]"


def find(snapshot: Snapshot, asker: Asker, name: str) -> Job | None:
    """Return the job of this number; for a waiting task of an array the array's waiting record.

    None where there is none that the asker may see.
    """
    visible = _visible(snapshot, asker)
    number, task = parts(name)
    array = _first(visible, number)
    return _first(visible, name) or (array if array and _waits_in(array, task) else None)


def is_all_of(job: Job, name: str) -> bool:
    """Whether a name stands for the whole of a job, and not for one task of an array."""
    return job.id in ids_of(name)


def unknown(snapshot: Snapshot, asker: Asker, name: str) -> str:
    """Return in one line that a job was not found."""
    visible = _visible(snapshot, asker)
    number, task = parts(name)
    tasks = [id_ for id_ in visible if parts(id_)[0] == number and parts(id_)[1]]
    if not task and tasks:
        words = f"an array, whose tasks are asked for one by one: {', '.join(tasks[:MOST_NAMED])}"
        return f"{quoted(name)}: {words}" + (" ..." if tasks[MOST_NAMED:] else "")
    if task and number in visible and not tasks and not visible[number].array_tasks:
        return f"{quoted(name)}: job {number} is not an array: ask for {number}"
    return f"{quoted(name)}: no waiting or running job of this number is known"


def parts(name: str) -> tuple[str, str]:
    """Return a job's number, and which task of that array is meant; "": none."""
    found = _NAME.fullmatch(name)
    return (found[1], found[2] or found[3] or "") if found else (name, "")


def _first(visible: Mapping[str, Job], name: str) -> Job | None:
    return next((visible[id_] for id_ in ids_of(name) if id_ in visible), None)


def _visible(snapshot: Snapshot, asker: Asker) -> Mapping[str, Job]:
    everyone = (*snapshot.waiting, *snapshot.running)
    return {job.id: job for job in everyone if asker.may_see(job)}


def _waits_in(array: Job, task: str) -> bool:
    """Whether a task is among those that an array's waiting record stands for."""
    is_number = task.isascii() and task.isdecimal() and len(task) < 10
    return is_number and any(int(task) in run for run in task_runs(array.array_tasks))
