"""Slurm's own accounting, as ``sacct --parsable2 --duplicates`` prints it (sacct(1)).

The first line names the columns; :data:`COLUMNS` must be among them, in any order, and what users
write (JobName, Comment) may stand last alone, for it may hold the separator. Instants that no
change of the clock disturbs are printed with ``SLURM_TIME_FORMAT=%s``; others are read as they are,
with their offset from UTC where they have one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pliant.grammar import quoted
from pliant.simulator.traces.lines import MOST, Record, trace_lines, wrong

COLUMNS = ("JobID", "User", "Submit", "Start", "End", "State", "TimelimitRaw", "AllocTRES")
MORE = ("Account", "Partition", "NNodes", "JobName")
FORMAT = ",".join((*COLUMNS, *MORE))
"""What to ask sacct for."""
MONTH = ",".join((*COLUMNS, "Account", "Partition"))
"""The same without what users write, which may hold anything."""
_TYPED = "gres/gpu:"
_NEVER = frozenset(("", "Unknown", "None", "N/A"))
_DIGITS = 12  # of a number at most
_NUMBERS = re.compile("[0-9]{1,18}")
_WRITTEN = frozenset(
    ("JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine", "WorkDir")
)
"""Columns that may hold the separator: last, they have all that is left of the line."""
_NO_LIMIT = frozenset(("", "UNLIMITED", "Partition_Limit"))
_FAILED = ("FAILED", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


def read_sacct(path: Path) -> Iterator[Record]:
    """Yield the jobs that ran and have ended, in the order of their first submission.

    A job that was requeued is one: submitted when it first was, running as long as its last run.
    Raises BadInput for a line that is cut off or contradicts itself.
    """
    return jobs_of(_runs(path))


def _runs(path: Path) -> Iterator[Record]:
    names: list[str] = []
    for number, line in trace_lines(path):
        if not names:
            names = _columns(line, path, number)
        elif line.strip():
            record = run_of(_fields(line, names, path, number), path, number)
            if record is not None:
                yield record


def jobs_of(runs: Iterable[Record]) -> Iterator[Record]:
    """Yield one record for all runs of a job, in the order of their first submission."""
    jobs: dict[str, Record] = {}
    for run in runs:
        jobs[run.id] = _again(jobs.get(run.id), run)
    yield from sorted(jobs.values(), key=_turn)


def left_out(path: Path, jobs: Iterable[Record]) -> int:
    """Return how many jobs of a file :func:`read_sacct` left out: they did not run, or still do."""
    lines = trace_lines(path)
    names = next((line.strip().split("|") for _, line in lines), [])
    place = names.index("JobID") if "JobID" in names else 0
    ids = {line.split("|", place + 1)[place] for _, line in lines if line.count("|") > place}
    read = {job.id for job in jobs}
    return sum("." not in one and one not in read for one in ids)


def _turn(job: Record) -> tuple[float, list[int]]:
    """First submitted first; in the same second by number, as Slurm gave them."""
    return (job.submit_s, [int(number) for number in _NUMBERS.findall(job.id)])


def _columns(line: str, path: Path, number: int) -> list[str]:
    names = line.strip().split("|")
    lacking = [name for name in COLUMNS if name not in names]
    if lacking:
        ask = f"sacct --parsable2 --duplicates --format={FORMAT}"
        raise wrong(path, number, f"no column {lacking[0]}: {ask} prints all")
    return names


def _fields(line: str, names: list[str], path: Path, number: int) -> Mapping[str, str]:
    texts = line.split("|", len(names) - 1 if names[-1] in _WRITTEN else -1)
    if len(texts) != len(names):
        raise wrong(path, number, f"{len(texts)} fields: {len(names)} are expected")
    return dict(zip(names, texts, strict=True))


def run_of(said: Mapping[str, str], path: Path, number: int) -> Record | None:
    """Read one run from its columns; None for steps, and for jobs that did not run or still do."""
    if "." in said["JobID"] or said["Start"] in _NEVER or said["End"] in _NEVER:
        return None
    submit_s, start_s, end_s = (
        _instant_s(said[what], what, path, number) for what in ("Submit", "Start", "End")
    )
    if end_s < start_s:
        raise wrong(path, number, f"End {said['End']} is before Start {said['Start']}")
    tres = _tres(said["AllocTRES"], path, number)
    cpus, gpus = tres.get("cpu", 0), _gpus(tres)
    if end_s == start_s or not (cpus or gpus):
        return None
    return Record(
        id=said["JobID"],
        submit_s=submit_s,
        run_s=end_s - start_s,
        width=cpus,
        asked=cpus,
        limit_s=60.0 * _minutes(said["TimelimitRaw"], path, number),
        wait_s=max(0.0, start_s - submit_s),
        user=said["User"],
        group=said.get("Account", ""),
        program=said.get("JobName", ""),
        queue=said.get("Partition", ""),
        failed=said["State"].startswith(_FAILED),
        gpus=gpus,
        nodes=tres.get("node", 0),
    )


def _again(known: Record | None, run: Record) -> Record:
    """What is known of a job with one more run of it, in whatever order they stand."""
    if known is None:
        return run
    last = max(run, known, key=_start_s)
    submit_s = min(known.submit_s, run.submit_s)
    wait_s, requeues = _start_s(last) - submit_s, known.requeues + 1
    return replace(last, submit_s=submit_s, wait_s=wait_s, requeues=requeues)


def _start_s(run: Record) -> float:
    return run.submit_s + run.wait_s


def _instant_s(text: str, what: str, path: Path, number: int) -> float:
    try:
        value = float(text) if _is_whole(text) else _iso_s(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST:
        raise wrong(path, number, f"{what}: {quoted(text)}: a time is expected")
    return value


def _iso_s(text: str) -> float:
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def _tres(text: str, path: Path, number: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in filter(None, text.split(",")):
        name, equals, count = word.partition("=")
        if not equals:
            raise wrong(path, number, f"AllocTRES: {quoted(text)}: NAME=COUNT,… is expected")
        if name in ("cpu", "node", "gres/gpu") or name.startswith(_TYPED):
            found[name] = _whole(count, f"AllocTRES: {name}", path, number)
    return found


def _gpus(tres: Mapping[str, int]) -> int:
    typed = sum(count for name, count in tres.items() if name.startswith(_TYPED))
    return tres.get("gres/gpu", typed)


def _minutes(text: str, path: Path, number: int) -> int:
    """TimelimitRaw is in minutes; empty, UNLIMITED or Partition_Limit where there is none."""
    return 0 if text in _NO_LIMIT else _whole(text, "TimelimitRaw", path, number)


def _whole(text: str, what: str, path: Path, number: int) -> int:
    if not _is_whole(text) or len(text) > _DIGITS:
        raise wrong(path, number, f"{what}: {quoted(text)}: a whole number is expected")
    return int(text)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal()
