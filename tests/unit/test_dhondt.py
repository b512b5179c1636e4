"""D'Hondt's method over sizes: quick, and the same as one step at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pliant.policies.dhondt import Bidder, divided


def one_by_one(bidders: list[Bidder], left: float) -> list[int]:
    """The definition: always the highest bid that is open."""
    levels, offers = [one.level for one in bidders], [one.level + 1 for one in bidders]
    while left > 0:
        bids = [
            (-one.votes / one.amounts[offers[at]], at)
            for at, one in enumerate(bidders)
            if offers[at] < len(one.amounts)
        ]
        if not bids:
            break
        _, at = min(bids)
        one = bidders[at]
        more = (one.amounts[offers[at]] - one.amounts[levels[at]]) * one.times
        if more <= left:
            left -= more
            levels[at] = offers[at]
        offers[at] += 1
    return levels


@st.composite
def bidder(draw: st.DrawFn) -> Bidder:
    amounts = sorted(draw(st.sets(st.integers(1, 24), min_size=1, max_size=8)))
    level = draw(st.integers(0, len(amounts) - 1))
    votes = draw(st.sampled_from((1.0, float(amounts[-1]))))
    return Bidder([float(a) for a in amounts], level, votes, draw(st.integers(1, 3)))


@given(st.lists(bidder(), min_size=1, max_size=6), st.integers(0, 60))
def test_it_is_what_one_step_at_a_time_comes_to(bidders: list[Bidder], left: int) -> None:
    assert divided(bidders, float(left)) == one_by_one(bidders, float(left))


def test_each_gets_by_its_votes_what_is_there() -> None:
    """Of ten GPUs, with votes 5, 3 and 1: by hand 5/1 5/2 3/1 5/3 3/2 5/4 1/1 5/5 3/3 5/6."""
    three = [Bidder([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0, votes) for votes in (5.0, 3.0, 1.0)]
    assert [level + 1 for level in divided(three, 7.0)] == [6, 3, 1]
