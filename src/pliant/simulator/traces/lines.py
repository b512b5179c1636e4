"""What all readers share: the record that they return, and a file's numbered lines."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from pliant.errors import BadInput
from pliant.grammar import quoted

LONGEST = 100_000
"""A line that is longer is no line of a trace."""
_CHUNK = 65536
MOST = 10**12
"""No number of a trace is larger: a time of 30,000 years, a cluster of a million million CPUs."""


@dataclass(frozen=True, slots=True)
class Record:
    """One job as a trace has it, whatever the trace. Instants in seconds from any beginning.

    ``width``: how many processors it had; ``asked``: how many it asked for, as many where that is
    not said; ``gpus`` and ``nodes``: 0 where that is not said. ``limit_s``: its time limit, 0 where
    it is not said. ``failed``: it ended with an error or was cancelled, after ``run_s`` of work.
    """

    id: str
    submit_s: float
    run_s: float
    width: int
    asked: int
    limit_s: float = 0.0
    wait_s: float = 0.0
    user: str = ""
    group: str = ""
    program: str = ""
    queue: str = ""
    failed: bool = False
    gpus: int = 0
    nodes: int = 0
    requeues: int = 0


def trace_lines(path: Path, *, ended: bool = False) -> Iterator[tuple[int, str]]:
    """Yield each line of a file with its number, without its end; a gzip file is unpacked.

    ``ended``: a last line without an end is left out, for who wrote it may not have finished it.
    Raises BadInput where the file cannot be read to its end, or holds no lines of text.
    """
    number, rest = 0, b""
    try:
        with opened(path) as file:
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    number += 1
                    yield number, _text(line if number > 1 else line.removeprefix(BOM_UTF8))
                if len(rest) > LONGEST:
                    raise wrong(path, number + 1, f"longer than {LONGEST} bytes")
        if rest and not ended:
            yield number + 1, _text(rest if number else rest.removeprefix(BOM_UTF8))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise wrong(path, number + 1, f"the file is cut off or damaged ({error})") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error


def opened(path: Path) -> BinaryIO:
    """Open a file for its bytes; a gzip file is unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def wrong(path: Path, number: int, why: str) -> BadInput:
    """Say what is wrong with a line."""
    return BadInput(f"{path}, line {number}: {why}")


def number_in(text: str, what: str, path: Path, line: int) -> float:
    """Read a number.

    Raises BadInput: none, not finite, or beyond all reason.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -MOST <= value <= MOST:
        raise wrong(path, line, f"{what}: {quoted(text)}: a number is expected")
    return value
