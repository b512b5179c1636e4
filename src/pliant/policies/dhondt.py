"""D'Hondt's method over sizes: each further GPU to the bidder with the most votes per GPU held.

Bidders hold amounts of a list of their own, and grow from one to the next. A bid is the votes over
the amount that its bidder would then hold; equal bids go in the bidders' order. What the next
amount takes beyond what is left is passed over.

Source: D'Hondt (1882); Fujiwara et al. (paper 000), section IV-A, for its use here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace


@dataclass(frozen=True, slots=True)
class Bidder:
    """``amounts`` ascend; it holds that at ``level``, ``times`` times over, with ``votes``."""

    amounts: Sequence[float]
    level: int
    votes: float
    times: int = 1


def divided(bidders: Sequence[Bidder], left: float) -> list[int]:
    """Return the level that each bidder comes to, where ``left`` is to be given away."""
    levels, left = _quotas(bidders, left)
    heap = [
        (-one.votes / one.amounts[level + 1], at, level + 1)
        for at, (one, level) in enumerate(zip(bidders, levels, strict=True))
        if level + 1 < len(one.amounts)
    ]
    heapify(heap)
    while heap and left > 0:
        _, at, level = heap[0]
        one = bidders[at]
        more = (one.amounts[level] - one.amounts[levels[at]]) * one.times
        if more <= left:
            left -= more
            levels[at] = level
        if level + 1 < len(one.amounts):
            heapreplace(heap, (-one.votes / one.amounts[level + 1], at, level + 1))
        else:
            heappop(heap)
    return levels


def divided_alike(amounts: Sequence[int], count: int, left: int) -> tuple[int, int]:
    """Return the level that ``count`` equal bidders come to, and how many of them one more.

    They hold the first of ``amounts``, each of which is one more than the one before.
    """
    each = min(amounts[-1], amounts[0] + left // count)
    more = left - (each - amounts[0]) * count
    return each - amounts[0], more if each < amounts[-1] else 0


def _quotas(bidders: Sequence[Bidder], left: float) -> tuple[list[int], float]:
    """Return levels that everybody surely comes to, and what is left then.

    With all that is held and left divided by the votes, no bid of at least that many votes per GPU
    is refused: together they are no more than there is.
    """
    there = left + sum(one.amounts[one.level] * one.times for one in bidders)
    votes = sum(one.votes * one.times for one in bidders)
    levels = []
    for one in bidders:
        quota = one.votes * there / votes if votes > 0 else 0.0
        level = max(one.level, bisect_right(one.amounts, quota) - 1)
        left -= (one.amounts[level] - one.amounts[one.level]) * one.times
        levels.append(level)
    if left < 0:  # some hold more than their quota already: nothing is sure
        return _as_they_are(bidders, left, levels)
    return levels, left


def _as_they_are(
    bidders: Sequence[Bidder], left: float, levels: Sequence[int]
) -> tuple[list[int], float]:
    back = sum(
        (one.amounts[level] - one.amounts[one.level]) * one.times
        for one, level in zip(bidders, levels, strict=True)
    )
    return [one.level for one in bidders], left + back
