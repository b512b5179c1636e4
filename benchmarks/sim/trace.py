"""HPC2N's trace as both simulators read it: one plain file, so that they are given the same."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from pliant.errors import BadInput
from pliant.simulator.reproduce.fujiwara_cpus import TRACE
from pliant.simulator.traces import Record, read_swf

NAME = TRACE
"""Where it lies in a folder of data."""


def found(data: Path) -> Path:
    """Return the trace in a folder of data. Raises BadInput where it is not there."""
    path = data / NAME
    if not path.is_file():
        raise BadInput(f"{path}: no such file: HPC2N's trace is expected there (--data, DATA=)")
    return path


def written(trace: Path, to: Path, jobs: int | None = None) -> Path:
    """Write the first ``jobs`` jobs that ran as both simulators are to have them."""
    lines = map(line, islice(read_swf(trace), jobs))
    to.parent.mkdir(parents=True, exist_ok=True)
    new = to.with_suffix(".new")
    with new.open("w") as file:
        file.writelines(lines)
    new.replace(to)
    return to


def line(record: Record) -> str:
    """Write a job as a line of SWF, with a time limit that does not end it early; no memory."""
    limit_s = max(record.limit_s, record.run_s)
    times = (f"{seconds:.0f}" for seconds in (record.submit_s, record.wait_s, record.run_s))
    ran = (record.id, *times, f"{record.width}", "-1", "-1")
    asked = (f"{record.asked}", f"{limit_s:.0f}", "-1", "1")
    who = (record.user or "-1", record.group or "-1", "-1", record.queue or "-1")
    return " ".join((*ran, *asked, *who, "-1", "-1", "-1")) + "\n"
