"""PBS's words: what its JSON guessed to be numbers as text again, times, sizes, lists."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

from pliant.batch.pbs.mending import mended
from pliant.errors import BadAnswer
from pliant.filter.fields import Fixed
from pliant.filter.pbs.select import read_chunk, read_mem_mib

_DURATION = re.compile(r"(?:([0-9]{1,9}):)?(?:([0-9]{1,9}):)?([0-9]{1,12})(?:\.[0-9]+)?", re.ASCII)
_ID = re.compile(r"([0-9]{1,12}(?:\[[0-9]*\])?)(?:\..*)?", re.ASCII)

Table = Mapping[str, Any]


def table(text: str, key: str, *, repeats: bool = False) -> dict[str, Table]:
    """Return the objects by name that ``-F json`` printed under ``key``; none where it is absent.

    What is no JSON is mended, and what cannot be left out (see :mod:`.mending`). ``repeats``: PBS
    prints a limit once for each of those that it is for. Raises BadAnswer.
    """
    pairs = _joined if repeats else None
    try:  # a job's name may hold any letters
        found = json.loads(text, strict=False, object_pairs_hook=pairs).get(key, {})
    except json.JSONDecodeError:
        found = mended(text, key)
    except (ValueError, AttributeError, RecursionError) as wrong:
        raise BadAnswer(f"PBS's JSON is not understood: {type(wrong).__name__}") from None
    try:
        return {name: one for name, one in found.items() if isinstance(one, dict)}
    except AttributeError as wrong:
        raise BadAnswer(f"PBS's JSON is not understood: {type(wrong).__name__}") from None


def _joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table in which a name stands for all texts that it stood before."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        both = isinstance(value, str) and isinstance(found.get(name), str)
        found[name] = f"{found[name]},{value}" if both else value
    return found


def text(value: Any) -> str:
    """Return a value as text; a number that was text (``007``, ``1e5``) cannot be told any more."""
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value)


def texts(values: Any) -> dict[str, str]:
    """Return a table of values as text; none where it is no table."""
    if not isinstance(values, dict):
        return {}
    return {str(name): text(value) for name, value in values.items()}


def number(value: Any) -> int:
    """Return a whole number; 0 for what is none."""
    try:
        return int(float(text(value) or 0))
    except (ValueError, OverflowError):
        return 0


def real(value: Any) -> float:
    """Return a number; 0.0 for what is none."""
    with suppress(ValueError):
        found = float(text(value) or 0)
        return found if isfinite(found) else 0.0
    return 0.0


def true(value: Any) -> bool:
    """Whether a value says True."""
    return text(value).lower() == "true"


def job_id(name: str) -> str:
    """Return a job's id without its server: ``7``, ``7[]``, ``7[3]``; "" for anything else."""
    found = _ID.fullmatch(name)
    return found[1] if found else ""


def duration_s(value: Any) -> int:
    """Return ``hh:mm:ss``, ``mm:ss`` or seconds in seconds; 0 for none."""
    found = _DURATION.fullmatch(text(value))
    if not found:
        return 0
    first, second, last = found.groups()
    hours, minutes = (first, second) if second is not None else ("0", first or "0")
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(last)


@lru_cache(maxsize=16_384)
def instant_s(value: str) -> float:
    """Return ``Mon Nov 23 06:22:17 2026``, as the clients print it in UTC; 0.0 for none."""
    with suppress(ValueError):
        return datetime.strptime(value, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
    return 0.0


def size_mib(value: Any) -> int:
    """Return a size in MiB, rounded up; 0 for none."""
    with suppress(Fixed):
        return read_mem_mib(text(value)) if text(value) else 0
    return 0


def chunk_of(select: str) -> dict[str, str]:
    """Return the resources of a select's one sort of chunk; none where it is not understood."""
    with suppress(Fixed):
        return dict(read_chunk(select).resources) if select else {}
    return {}


def tasks_in(indices: str) -> int:
    """Return how many subjobs ``1-5,8,10-20:5`` are; 0 for what is no such list."""
    return sum(map(len, _runs(indices)))


def has_index(indices: str, index: str) -> bool:
    """Whether a subjob is one of ``1-5,8,10-20:5``."""
    return index.isdecimal() and any(int(index) in run for run in _runs(indices))


def _runs(indices: str) -> list[range]:
    runs = []
    for part in indices.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        if not first.isdecimal():
            return []
        runs.append(range(number(first), number(last or first) + 1, max(1, number(step or 1))))
    return runs


def lowered(values: object) -> dict[str, str]:
    """Return a table with its names in small letters, by which PBS does not tell them."""
    return {name.lower(): value for name, value in texts(values).items()}
