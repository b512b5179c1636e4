"""The Standard Workload Format of the Parallel Workloads Archive: one job a line, 18 numbers.

Fields as in its definition (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html); -1 means
that a value is not known. Lines that begin with ``;`` are the header.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant.simulator.traces.lines import MOST, Record, number_in, trace_lines, wrong

FIELDS = (
    *("job number", "submit time", "wait time", "run time", "allocated processors"),
    *("average CPU time", "used memory", "requested processors", "requested time"),
    *("requested memory", "status", "user", "group", "executable", "queue", "partition"),
    *("preceding job", "think time"),
)
_WHOLE = (0, 4, 7)
"""The fields that count, or number, what cannot be divided."""
_FAILED = (0, 5)
"""Status: 0 failed, 5 cancelled (after it had started where it has a run time)."""
_PARTS = (2, 3, 4)
"""Status: a run of several between checkpoints, of a job that has a line of its own too."""


def read_swf(path: Path) -> Iterator[Record]:
    """Yield the jobs that ran, in the order of the file.

    Jobs without a run time or without processors never ran, and are left out; so are lines that are
    a part of a job, which has a line of its own. A job whose number is not known is named after its
    line: ``line7``. Raises BadInput for a line that is cut off, that holds no number where one
    belongs, or that contradicts itself or another.
    """
    before_s, seen = 0.0, set[str]()
    for number, line in trace_lines(path):
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        record = _record(text, path, number)
        if record is None:
            continue
        if record.submit_s < before_s:
            words = f"submit time {record.submit_s:.0f} is before that of the line above"
            raise wrong(path, number, f"{words} ({before_s:.0f}): sort the trace by it")
        if record.id in seen:
            raise wrong(path, number, f"job number {record.id} stands twice")
        before_s = record.submit_s
        seen.add(record.id)
        yield record


def _record(text: str, path: Path, number: int) -> Record | None:
    said = _numbers(text.split(), path, number)
    job, submit_s, wait_s, run_s, width, _, _, asked, limit_s, _, status, user, group, program = (
        said[:14]
    )
    if status in _PARTS:
        return None
    if width < -1 or asked < -1 or run_s < -1:
        raise wrong(path, number, "a negative number of processors or seconds (-1: not known)")
    if submit_s < 0:
        raise wrong(path, number, f"submit time {submit_s:.0f} is not known")
    if not (job.is_integer() and width.is_integer() and asked.is_integer()):
        which = next(at for at in _WHOLE if not said[at].is_integer())
        raise wrong(path, number, f"{FIELDS[which]}: {said[which]}: a whole number is expected")
    width, asked = (width if width > 0 else asked), (asked if asked > 0 else width)
    if run_s <= 0 or width <= 0:
        return None
    return Record(
        *(
            _name(job) or f"line{number}",
            submit_s,
            run_s,
            int(width),
            int(asked),
            max(0.0, limit_s),
            max(0.0, wait_s),
        ),
        *(_name(user), _name(group), _name(program), _name(said[14])),
        status in _FAILED,
    )


def _numbers(words: list[str], path: Path, number: int) -> list[float]:
    """Read a line's numbers; which of them is none is found out where one is."""
    if len(words) != len(FIELDS):
        raise wrong(path, number, f"{len(words)} fields: {len(FIELDS)} are expected")
    try:
        said = [float(word) for word in words]
    except ValueError:
        said = [float("nan")]
    if sum(map(abs, said)) <= MOST:
        return said
    return [number_in(word, what, path, number) for what, word in zip(FIELDS, words, strict=True)]


def _name(number: float) -> str:
    return str(int(number)) if number >= 0 else ""
