"""The fields of a submission: numbers, and generic resources.

Slurm's fields are those of job_submit/lua. Generic resources are written ``gres:gpu:2`` (22.05) or
``gres/gpu:2`` and ``gres/gpu=2`` (23.11 and later), by node, job, task or socket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pliant.grammar import quoted

NO_VAL16: Final = 0xFFFE
NO_VAL: Final = 0xFFFFFFFE
"""Slurm's "not set"; one more is "no limit" (slurm.h)."""
_BITS16: Final = frozenset(
    (
        "cpus_per_task",
        "ntasks_per_node",
        "ntasks_per_tres",
        "ntasks_per_socket",
        "ntasks_per_core",
        "sockets_per_node",
        "cores_per_socket",
        "threads_per_core",
        "core_spec",
        "pn_min_cpus",
        "shared",
        "contiguous",
        "reboot",
        "requeue",
    )
)
_GRES = re.compile(r"gres[:/]", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,18}", re.ASCII)


class Fixed(Exception):  # never leaves the filter
    """The job's shape must stay as it was written; says why, in words for the owner."""


@dataclass(frozen=True, slots=True)
class Gres:
    """One generic resource: ``gpu:a100:2``."""

    name: str
    gpu_type: str
    count: int


def number(submission: Mapping[str, str], name: str) -> int | None:
    """Return a numeric field, None where it is not set."""
    text = submission.get(name, "")
    if not _COUNT.fullmatch(text):
        return None
    value = int(text)
    return None if value >= (NO_VAL16 if name in _BITS16 else NO_VAL) else value


def read_gres(text: str) -> tuple[Gres, ...]:
    """Read a list of generic resources.

    Raises Fixed where one is written in a way that is not known here.
    """
    found = []
    for item in text.split(",") if text else ():
        name, *rest = _GRES.sub("", item, count=1).replace("=", ":").split(":")
        count = rest.pop() if rest and _COUNT.fullmatch(rest[-1]) else "1"
        # A type is any text to Slurm; it must not get into a token or a message.
        if len(rest) > 1 or not all(map(_NAME.fullmatch, (name, *rest))):
            raise Fixed(f"{quoted(item)} is not a form of GRES that Pliant changes")
        found.append(Gres(name, rest[0] if rest else "", int(count)))
    return tuple(found)


def per_gpu(submission: Mapping[str, str], field: str) -> int:
    """Return what is asked for each GPU in a list like ``gres:gpu:2``.

    Raises Fixed.
    """
    return sum(gres.count for gres in read_gres(submission.get(field, "")) if gres.name == "gpu")
