"""Why a job gets what it gets, in words for the user who asks."""

from __future__ import annotations

SMALLEST = "more is asked than there is: each job gets its smallest shape"
MORE = f"{SMALLEST}, and what is left over makes this one larger"
NOT_SMALLER = "more is asked than there is, and nothing smaller of it fits now"
LARGEST = "there is enough for all: each job gets its largest shape"
NOT_LARGER = "there is enough for all, but nothing larger of it fits now"
SPREAD = "one GPU to each job, the rest by D'Hondt"
ALIKE = "so that all jobs would be done at the same time"
CPU = "no GPU is free, and on CPUs it is done before it could be on a GPU"
SHARED = "more jobs than free GPUs: they share"
FIRST = "first in the queue: it keeps the earliest opening"
LEFT_OVER = "it is free, and nobody else can use it"


def why(reason: str, level: int, last: int, *, raised: bool) -> str:
    """Return what was decided for all, as far as it is true of a job.

    It has the ``level``-th of its amounts of GPUs, the ``last``-th being the largest;
    ``raised``: by what was left over.
    """
    if reason == SMALLEST and level > 0:
        return MORE if raised else NOT_SMALLER
    if reason == LARGEST and level < last:
        return NOT_LARGER
    return reason
