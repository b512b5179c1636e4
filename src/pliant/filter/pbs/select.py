"""What ``-l select=`` and ``-l place=`` say (pbs_resources(7B)), read and written.

``select=N:ncpus=C:ngpus=G:mem=M+...``: N chunks with so much each. Only jobs with one sort of chunk
change their shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pliant.filter.fields import Fixed
from pliant.grammar.values import quoted

MAX_CHUNKS = 4096
SPREAD = "scatter"
"""The place by which each chunk has a node of its own."""
_BYTES = re.compile(r"([0-9]{1,15})([kmgtp]?)([bw]?)", re.ASCII | re.IGNORECASE)
_PLAIN = re.compile(r"[0-9]{1,9}", re.ASCII)
_POWERS = " kmgtp"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """``count`` chunks with these resources each, as text."""

    count: int
    resources: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return ":".join([str(self.count), *(f"{name}={value}" for name, value in self.resources)])


def read_chunk(select: str) -> Chunk:
    """Read a select with one sort of chunk.

    Raises Fixed for any other.
    """
    if "+" in select or '"' in select or "'" in select:
        raise Fixed("several sorts of chunks, or quoted values, keep the shape")
    first, *rest = select.split(":")
    if "=" in first:
        first, rest = "1", [first, *rest]
    count = read_number("select", first)
    if not 1 <= count <= MAX_CHUNKS:
        raise Fixed(f"select={quoted(select)} keeps the shape")
    resources: dict[str, str] = {}
    for item in rest:
        name, equals, value = item.partition("=")
        if not equals or not name or name.lower() in resources:
            raise Fixed(f"select={quoted(select)} is not understood: the shape stays")
        resources[name.lower()] = value  # PBS does not tell them by case
    return Chunk(count, tuple(resources.items()))


def read_number(name: str, text: str) -> int:
    """Read a count.

    Raises Fixed.
    """
    if not _PLAIN.fullmatch(text):
        raise Fixed(f"{name}={quoted(text)} is no plain number: the shape stays")
    return int(text)


def read_mem_mib(text: str) -> int:
    """Read a size of PBS in MiB, rounded up: ``4gb``, ``512mb``, ``1000`` bytes, ``1gw`` words.

    Raises Fixed.
    """
    return -(-read_bytes(text) // MIB)


def read_bytes(text: str) -> int:
    """Read a size of PBS in bytes.

    Raises Fixed.
    """
    match = _BYTES.fullmatch(text)
    if not match:
        raise Fixed(f"mem={quoted(text)} is no size: the shape stays")
    word = 8 if match[3].lower() == "w" else 1
    size: int = int(match[1]) * word * 1024 ** _POWERS.index(match[2].lower() or " ")
    return size


def read_place(place: str) -> str:
    """Return how chunks are arranged: free, pack, scatter or vscatter.

    Raises Fixed for jobs that have nodes to themselves or are grouped.
    """
    words = place.lower().split(":") if place else ["free"]
    if set(words) - {"free", "pack", "scatter", "vscatter", "shared"}:
        raise Fixed(f"place={quoted(place)} keeps the shape")
    return next((word for word in words if word != "shared"), "free")
