"""Slurm's words for times, sizes, node lists and GRES, from text to numbers.

Every reader raises BadAnswer on what it does not know; none looks at anything but its argument.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator
from functools import lru_cache

from pliant.errors import BadAnswer
from pliant.grammar import quoted

NOTHING = frozenset(("", "(null)", "N/A", "NA", "None", "none", "Unknown", "NONE"))
"""What Slurm writes where there is no value."""
UNLIMITED = frozenset(("UNLIMITED", "INFINITE", "NOT_SET", "INVALID", "Partition_Limit"))
MAX_NODES = 200_000
"""More nodes than this in one list is not a cluster but a mistake."""

_DURATION = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{2})", re.ASCII)
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})", re.ASCII)
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)[nc]?", re.ASCII)
_MIB_PER = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
_COUNT = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?([KMGTP]?)", re.ASCII)
_PER = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4, "P": 1024**5}
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_LIST_ITEM = re.compile(r"[^\[\],\s]*(?:\[[0-9,\-]+\][^\[\],\s]*)*")
_PART = re.compile(r"\[([0-9,\-]+)\]|([^\[\]]+)")


def _bad(what: str, text: str) -> BadAnswer:
    return BadAnswer(f"Slurm's {what}: {quoted(text)} is not known to this version of Pliant")


def whole(text: str) -> int:
    """Read a count; ``2K`` is 2048, as Slurm shortens counts. Nothing is 0."""
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return int(text)
    if text in NOTHING:
        return 0
    match = _COUNT.fullmatch(text)
    if not match:
        raise _bad("number", text)
    return round(float(f"{match[1]}.{match[2] or 0}") * _PER[match[3]])


def wait_status(text: str) -> int:
    """Read how a job ended, as wait(2) gives it; from 24.11 on squeue writes ``CODE:SIGNAL``."""
    code, colon, number = text.partition(":")
    return whole(code) << 8 | whole(number) if colon else whole(code)


@lru_cache(maxsize=4096)
def duration_s(text: str) -> int:
    """Read ``1-02:03:04``, ``02:03:04``, ``3:04`` or ``2-03`` in seconds; 0: no limit, not set."""
    if text in UNLIMITED or text in NOTHING:
        return 0
    match = _DURATION.fullmatch(text)
    if match:
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    match = _DAYS.fullmatch(text)
    if match:
        return (int(match[1]) * 24 + int(match[2])) * 3600
    raise _bad("time", text)


@lru_cache(maxsize=4096)
def instant_s(text: str) -> float:
    """Read an instant, in seconds since the epoch or as UTC; 0.0: none."""
    if text.isascii() and text.isdecimal() and len(text) < 16:
        return float(text)
    if text in NOTHING:
        return 0.0
    match = _INSTANT.fullmatch(text)
    if not match:
        raise _bad("date", text)
    return float(timegm((*(int(part) for part in match.groups()), 0, 0, 0)))


@lru_cache(maxsize=4096)
def size_mib(text: str) -> int:
    """Read ``100M``, ``62.50G``, ``32000`` (MiB) in MiB, rounded up; 0: none or no limit."""
    if text in NOTHING or text in UNLIMITED:
        return 0
    match = _SIZE.fullmatch(text)
    if not match:
        raise _bad("size", text)
    return -int(-float(f"{match[1]}.{match[2] or 0}") * _MIB_PER[match[3]] // 1)


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of ``1-4,07-09`` with their leading zeros."""
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        if not match:
            raise _bad("list", text)
        low, high = match[1], match[2] or match[1]
        if int(high) - int(low) >= MAX_NODES:
            raise _bad("list", text)
        for number in range(int(low), int(high) + 1):
            yield str(number).zfill(len(low))


def _expand(item: str) -> list[str]:
    names = [""]
    for match in _PART.finditer(item):
        tails = list(_numbers(match[1])) if match[1] else [match[2]]
        if len(names) * len(tails) > MAX_NODES:
            raise _bad("node list", item)
        names = [name + tail for name in names for tail in tails]
    return names


@lru_cache(maxsize=8192)
def host_list(text: str) -> tuple[str, ...]:
    """Expand ``n[1-4,07-09]-ib,m3`` in the order written.

    Raises BadAnswer on an unbalanced bracket or a range that no cluster has.
    """
    if text in NOTHING:
        return ()
    if _NAME.fullmatch(text):
        return (text,)
    names: list[str] = []
    place = 0
    while place <= len(text):
        match = _LIST_ITEM.match(text, place)
        if not match or not match[0] or text[match.end() : match.end() + 1] not in ("", ","):
            raise _bad("node list", text)
        names += _expand(match[0])
        if len(names) > MAX_NODES:
            raise _bad("node list", text)
        place = match.end() + 1
    return tuple(dict.fromkeys(names))


def tasks_in(text: str) -> int:
    """Count an array's task ids in ``3-9,12,20-30:5%2``."""
    return sum(map(len, task_runs(text)))


def task_runs(text: str) -> list[range]:
    """Read an array's task ids, ``3-9,12,20-30:5%2``, as runs; none in an empty text."""
    runs = []
    for item in text.partition("%")[0].split(",") if text else ():
        span, _, step = item.partition(":")
        match = _RANGE.fullmatch(span)
        if not match or (step and not (step.isascii() and step.isdecimal() and int(step))):
            raise _bad("array", text)
        runs.append(range(int(match[1]), int(match[2] or match[1]) + 1, int(step or 1)))
    return runs


def split_outside(text: str) -> list[str]:
    """Split at commas that stand in no parentheses: ``gpu:2(IDX:0,2),shard:1(1/4,0/4)``."""
    items, start, depth = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            items.append(text[start:place])
            start = place + 1
    return [*items, text[start:]]


def indexes(text: str) -> tuple[int, ...]:
    """Read ``0-2,5`` as GPU indexes; ``N/A`` is none."""
    if text in NOTHING:
        return ()
    return tuple(int(number) for number in _numbers(text))
