"""A snapshot as a JSON file: what `pliant plan --file` reads, and what a bug report can carry.

The keys are the fields of :class:`pliant.model.Snapshot`; what has a default may be left out. GPU
amounts are written as text ("1/4", "2").
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec

from pliant.decoding import Decoder
from pliant.errors import BadInput
from pliant.model import Job, Snapshot


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Write a snapshot as JSON."""
    return msgspec.json.format(msgspec.json.encode(snapshot, enc_hook=_write), indent=1)


def read_snapshot(text: bytes) -> Snapshot:
    """Read what :func:`write_snapshot` wrote.

    Raises BadInput, saying where in the file what is wrong.
    """
    try:
        return _hashable(Decoder(Snapshot, dec_hook=_read).json(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(
            f"not a snapshot: {error}; `pliant plan --live --save FILE` writes one"
        ) from error


def write_job(job: Job) -> str:
    """Write one job as JSON in one line."""
    return msgspec.json.encode(job, enc_hook=_write).decode()


def read_job(text: str) -> Job:
    """Read what :func:`write_job` wrote.

    Raises BadInput.
    """
    try:
        return _JOBS.json(text.encode())
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(f"not a job: {error}") from error


def _hashable(snapshot: Snapshot) -> Snapshot:
    """Sequences are read as lists: as tuples they compare as what was written."""
    waiting, running = tuple(snapshot.waiting), tuple(snapshot.running)
    return replace(snapshot, nodes=tuple(snapshot.nodes), waiting=waiting, running=running)


def _write(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(type(value))


def _read(kind: type, value: Any) -> Any:
    if kind is Fraction:
        try:
            return Fraction(value)
        except (TypeError, ValueError, ZeroDivisionError):
            raise ValueError(f"{value!r} is no amount of GPUs; write 4 or 1/4") from None
    raise NotImplementedError(kind)


_JOBS = Decoder(Job, dec_hook=_read)
