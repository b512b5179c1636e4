"""Fences: vnodes that are kept for a job in a hand-over, or for its guest, for some seconds.

pliantd writes them into a small file, and the runjob hook refuses the scheduler's start of any
other job there; the scheduler goes on with its next job, and tries again in its next cycle. So
nothing is ever started that PBS would not start, and nobody's place changes. A fence ends with its
time, and where pliantd is silent.

::

    {"pliant_fences": 1,
     "fences": [["12", until_s, ["gn1", ...], ["12", ...], ["workq", ...]], ...]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pliant.errors import BadInput

FORMAT = 1
LONGEST_S = 130.0
"""A fence that would stand longer is none of ours."""


@dataclass(frozen=True, slots=True)
class Fence:
    """What is kept because of ``job`` until ``until_s``: ``vnodes``, for ``lets`` alone.

    ``lets``: numbers of jobs, an array's lets its subjobs in; ``7[3]``: one of them. ``queues``:
    whose jobs are kept out; those of all others, of reservations and of express queues, are not.
    """

    job: str
    until_s: float
    vnodes: tuple[str, ...] = ()
    lets: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()

    def stands(self, now_s: float) -> bool:
        """Whether it keeps others out at ``now_s``."""
        return 0 < self.until_s - now_s <= LONGEST_S


def in_the_way(fences: Iterable[Fence], job_id: str, queue: str, vnode: str) -> Fence | None:
    """Return a fence for which a job of a queue may not start on a vnode now; None: it may.

    Where several stand, each is for a part of what the vnode has: who is let in by one of them may
    start, and takes no more than was planned for it. Of one that asks for more pliantd lets nobody
    in (see batch/pbs/handing.py).
    """
    around = [fence for fence in fences if vnode in fence.vnodes]
    names = {number_of(job_id), job_id.partition(".")[0]}
    if any(not names.isdisjoint(fence.lets) for fence in around):
        return None
    return next((fence for fence in around if queue in fence.queues), None)


def number_of(job_id: str) -> str:
    """Return a job's number: of ``7.head``, ``7[].head`` and ``7[3].head`` it is 7."""
    return job_id.partition(".")[0].partition("[")[0]


def fences_text(fences: Iterable[Fence]) -> str:
    """Write the file."""
    rows = [[f.job, f.until_s, list(f.vnodes), list(f.lets), list(f.queues)] for f in fences]
    return json.dumps({"pliant_fences": FORMAT, "fences": rows}, separators=(",", ":")) + "\n"


def read_fences(text: str) -> tuple[Fence, ...]:
    """Read the file.

    Raises BadInput where it is not one, or one of another version.
    """
    try:
        said = json.loads(text)
        if said["pliant_fences"] != FORMAT:
            raise BadInput("pliant_fences: another version")
        return tuple(
            Fence(str(job), float(until_s), _names(vnodes), _names(lets), _names(queues))
            for job, until_s, vnodes, lets, queues in said["fences"]
        )
    except (KeyError, TypeError, ValueError, RecursionError) as wrong:
        raise BadInput(f"the file of fences is damaged: {type(wrong).__name__}") from None


def _names(said: Any) -> tuple[str, ...]:
    if not isinstance(said, list):
        raise TypeError(said)
    return tuple(str(name) for name in said)
