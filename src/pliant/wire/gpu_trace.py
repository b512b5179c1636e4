"""The trace of processes on GPUs: the words of the file that a monitor writes and a replay reads.

CSV (RFC 4180, but lines end with a newline alone), whose first line names the columns. Each look at
a node is a line per process and GPU, and a line without a process for each GPU that has none: so a
GPU that nobody used is told from one that nobody looked at. An instance of MIG counts as a GPU.
What is not known is empty.
"""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

LONGEST = 4096
"""Bytes of a line at most."""


class NotSoError(ValueError):
    """A line that cannot be right; its words say why."""


class Row(NamedTuple):
    """One process on one GPU, or one GPU without a process, as a line has it: all is text.

    ``time``: of the look, the same for all its lines; seconds of Unix time. ``minor``: N of
    /dev/nvidiaN. ``started``: when the process began, seconds of Unix time; it tells it from
    another that has its number later, and is not known in another pid namespace than the monitor's,
    nor are ``user`` (a name, or a number without one) and ``job`` (Slurm's number). ``memory_mib``:
    the process's, of this GPU. ``process_pct`` and ``gpu_pct``: percent of the last sample period
    in which kernels of the process, or any, ran.
    """

    time: str
    node: str
    gpu: str
    minor: str
    pid: str = ""
    started: str = ""
    user: str = ""
    job: str = ""
    memory_mib: str = ""
    process_pct: str = ""
    gpu_pct: str = ""


COLUMNS = Row._fields
HEADER = ",".join(COLUMNS)
_WHOLE = ("minor", "pid", "job", "memory_mib", "process_pct", "gpu_pct")
_OF_A_PROCESS = ("started", "user", "job", "memory_mib", "process_pct")
_DIGITS = 12  # of a number at most
_INSTANT = r"[0-9]{1,12}(?:\.[0-9]{0,12})?"
_PERCENT = "(?:100|[0-9]{1,2})?"
_NAME = '[^,"]+'
_PLAIN = re.compile(
    f"{_INSTANT},{_NAME},{_NAME},[0-9]{{0,12}},[0-9]{{1,12}},(?:{_INSTANT})?,(?:{_NAME})?,"
    f"[0-9]{{0,12}},[0-9]{{0,12}},{_PERCENT},{_PERCENT}"
)
"""Almost every line: there are millions, and this is the quickest way to see that one is right."""


class _Line:
    """What csv writes to: it keeps the last line."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def to_line(row: Row) -> str:
    """Return a row as a line, with its end."""
    line = _Line()
    csv.writer(line, lineterminator="\n").writerow(row)
    return line.text


def to_row(line: str) -> Row:
    """Read a line without its end. Raises NotSoError."""
    if _PLAIN.fullmatch(line):
        return Row._make(line.split(","))
    texts = line.split(",") if '"' not in line else _quoted(line)
    if len(texts) != len(COLUMNS):
        raise NotSoError(f"{len(texts)} fields: {len(COLUMNS)} are expected")
    row = Row(*texts)
    _check(row)
    return row


def _quoted(line: str) -> list[str]:
    try:
        (texts,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise NotSoError(f"no CSV: {error}") from None
    return texts


def _check(row: Row) -> None:
    if not _is_instant(row.time):
        raise NotSoError(f"time: {row.time[:40]!r}: seconds of Unix time are expected")
    if row.started and not _is_instant(row.started):
        raise NotSoError(f"started: {row.started[:40]!r}: seconds of Unix time are expected")
    for name in _WHOLE:
        text: str = getattr(row, name)
        if text and not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
            raise NotSoError(f"{name}: {text[:40]!r}: a whole number is expected")
    for name in ("process_pct", "gpu_pct"):
        if int(getattr(row, name) or 0) > 100:
            raise NotSoError(f"{name}: {getattr(row, name)}: 0 to 100 is expected")
    if not (row.node and row.gpu):
        raise NotSoError("node and gpu are expected on each line")
    if not row.pid and any(getattr(row, name) for name in _OF_A_PROCESS):
        raise NotSoError("pid: it is empty, and the line tells of a process")


def _is_instant(text: str) -> bool:
    whole, _, part = text.partition(".")
    is_number = whole.isascii() and whole.isdecimal() and (not part or part.isdecimal())
    return is_number and len(whole) <= _DIGITS and part.isascii() and len(part) <= _DIGITS
