"""Files of JSON, packed or not: what is wrong in one is told with its line."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from pliant.decoding import Decoder
from pliant.errors import BadInput
from pliant.simulator.traces.lines import opened, wrong

T = TypeVar("T")
LARGEST = 2**31
"""A file with more bytes, unpacked, is refused before it fills the memory."""
_BYTE = re.compile(r"\(byte (\d+)\)")


def read_json(path: Path, into: type[T]) -> tuple[T, bytes]:
    """Return what a file says, and its bytes.

    Raises BadInput: it cannot be read to its end, is no JSON, or says something else.
    """
    try:
        with opened(path) as file:
            data = file.read(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(f"{path}: the file is cut off or damaged ({error})") from error
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise BadInput(f"{path}: larger than {LARGEST >> 30} GiB: cut it into shorter times")
    try:
        return Decoder(into).json(data), data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise wrong(path, _line(data, str(error)), f"{error}") from error


def _line(data: bytes, words: str) -> int:
    """The line that a message of msgspec speaks of: that of its byte, else the last."""
    found = _BYTE.search(words)
    return data.count(b"\n", 0, int(found[1]) if found else len(data)) + 1


def numbered(data: bytes, items: Sequence[msgspec.Raw]) -> Iterator[tuple[int, msgspec.Raw]]:
    """Yield parts of a file, in their order, each with the number of its first line."""
    line, at = 1, 0
    for item in items:
        begin = data.index(bytes(item), at)
        line += data.count(b"\n", at, begin)
        yield line, item
        line += data.count(b"\n", begin, begin + len(bytes(item)))
        at = begin + len(bytes(item))
