"""Slurm's own accounting, as ``sacct --json --duplicates`` prints it, of any release from 22.05 on.

What differs between releases: a number is a number in 22.05, and an object with ``set``,
``infinite`` and ``number`` since (first the limits, later instants too); a state is a word in
22.05, and a list of words since. Steps are part of their job, and left out. Instants are seconds
since the epoch, which no change of the clock disturbs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pliant.decoding import Decoder
from pliant.simulator.traces.json_file import numbered, read_json
from pliant.simulator.traces.lines import Record, wrong
from pliant.simulator.traces.sacct import jobs_of, run_of


class _Number(msgspec.Struct):
    set: bool = True
    infinite: bool = False
    number: float = 0


_Count = int | float | str | _Number | None


class _State(msgspec.Struct):
    current: str | list[str] = ""


class _Time(msgspec.Struct):
    submission: _Count = None
    start: _Count = None
    end: _Count = None
    limit: _Count = None


class _Tres(msgspec.Struct):
    type: str = ""
    name: str | None = None
    count: _Count = 0


class _AllTres(msgspec.Struct):
    allocated: list[_Tres] = []


class _Array(msgspec.Struct):
    job_id: _Count = None
    task_id: _Count = None


class _Het(msgspec.Struct):
    job_id: _Count = None
    job_offset: _Count = None


class _Job(msgspec.Struct):
    job_id: int
    state: _State
    time: _Time
    tres: _AllTres
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    name: str | None = None
    array: _Array = msgspec.field(default_factory=_Array)
    het: _Het = msgspec.field(default_factory=_Het)


class _Answer(msgspec.Struct):
    jobs: list[msgspec.Raw]


_JOB = Decoder(_Job)


def read_sacct_json(path: Path) -> Iterator[Record]:
    """Yield the jobs that ran and have ended, in the order of their first submission.

    A job that was requeued is one, as in :func:`~pliant.simulator.traces.read_sacct`. Raises
    BadInput, with the line where a job begins that cannot be right.
    """
    return jobs_of(_runs(path))


def _runs(path: Path) -> Iterator[Record]:
    answer, data = read_json(path, _Answer)
    for number, raw in numbered(data, answer.jobs):
        try:
            job = _JOB.json(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise wrong(path, number, f"{error}") from error
        record = run_of(_columns(job), path, number)
        if record is not None:
            yield record


def _columns(job: _Job) -> dict[str, str]:
    """What the text would say in its columns."""
    state = job.state.current
    tres = (f"{_name(tres)}={_text(tres.count)}" for tres in job.tres.allocated if tres.type)
    return {
        "JobID": _id(job),
        "User": job.user or "",
        "Submit": _text(job.time.submission),
        "Start": _instant(job.time.start),
        "End": _instant(job.time.end),
        "State": state if isinstance(state, str) else " ".join(state),
        "TimelimitRaw": _text(job.time.limit),
        "AllocTRES": ",".join(tres),
        "Account": job.account or "",
        "Partition": job.partition or "",
        "JobName": job.name or "",
    }


def _id(job: _Job) -> str:
    """As in text: ``27_4`` for a task of an array, ``27+1`` for a part of a heterogeneous job."""
    for first, sign, second in (
        (job.array.job_id, "_", job.array.task_id),
        (job.het.job_id, "+", job.het.job_offset),
    ):
        if _text(first) not in ("", "0") and _text(second):
            return f"{_text(first)}{sign}{_text(second)}"
    return str(job.job_id)


def _name(tres: _Tres) -> str:
    return f"{tres.type}/{tres.name}" if tres.name else tres.type


def _instant(value: _Count) -> str:
    """An instant; 0 is none."""
    text = _text(value)
    return "" if text == "0" else text


def _text(value: _Count) -> str:
    """A number as text; "" where it is not set, or has no end."""
    if isinstance(value, _Number):
        value = value.number if value.set and not value.infinite else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)
