"""Where running jobs could start again: what only one of several conditions tells apart."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import job as waiting
from build import node, running, snapshot

from pliant.cycle import view
from pliant.daemon.handing import Wanted
from pliant.daemon.places import Places, _in_its_turn
from pliant.handover import PINNED
from pliant.model import Job, JobState, Shape, Snapshot
from pliant.plan import Plan
from pliant.policies.easy import EasyBackfill

NOW_S = 1000.0
JOB = Job("7", state=JobState.RUNNING, shape=Shape(1, 1), nodes=("n1",), shares=True)
OTHER = replace(JOB, id="8")


def places(*running: Job) -> Places:
    """As the last cycle saw these jobs."""
    found = Places(lambda: NOW_S, dict, dict)
    found.decided(Snapshot(NOW_S, (), (), running=running), Plan())
    return found


@pytest.mark.parametrize(
    ("job", "other", "shares"),
    [
        (JOB, OTHER, True),
        (replace(JOB, shares=False), OTHER, False),
        (JOB, replace(OTHER, shares=False), False),
        (JOB, replace(OTHER, nodes=("n2",)), False),
        (JOB, JOB, False),
    ],
)
def test_jobs_share_where_both_do_on_a_node_of_both(job: Job, other: Job, *, shares: bool) -> None:
    assert places(job, other)._shares(job) is shares


@pytest.mark.parametrize(("end_s", "limit_s"), [(NOW_S + 90, 90), (NOW_S + 0.5, 1), (NOW_S - 9, 1)])
def test_who_has_no_time_left_has_a_second(end_s: float, limit_s: int) -> None:
    """A limit of none would be no limit."""
    wanted = Wanted(JOB.shape, end_s=end_s)
    assert places()._limited(JOB, wanted).time_limit_s == limit_s


TWO = Shape(1, 2)
SHARES = running(7, "2", "n1", 3600.0)


@pytest.mark.parametrize("decided", [True, False])
@pytest.mark.parametrize(
    ("wanted", "shares", "has_place"),
    [
        (Wanted(TWO), True, False),  # whom it was to leave is gone
        (Wanted(TWO), False, True),
        (Wanted(Shape(1, 1)), True, True),
        (Wanted(TWO, guest="9"), True, True),
        (Wanted(Shape(2, 1)), False, False),  # no more than it has, but nothing is free on n2
    ],
)
def test_who_has_saved_has_a_place_for_what_it_has_or_less_where_it_is(
    wanted: Wanted, *, shares: bool, has_place: bool, decided: bool
) -> None:
    """All have while no cycle has decided yet."""
    job = replace(SHARES, shares=shares)
    found = Places(lambda: 0.0, dict, dict)
    if decided:
        found.decided(snapshot([node("n1"), node("n2", free=0)], [], [job]), Plan())
    assert found.has_place(job, wanted) is (has_place or not decided)


@pytest.mark.parametrize(
    ("nodes", "beside", "has_place"),
    [((), False, True), (("n2",), False, False), ((), True, False)],
)
def test_its_own_place_is_nobody_elses_unless_it_leaves_or_shares_it(
    nodes: tuple[str, ...], *, beside: bool, has_place: bool
) -> None:
    """Where who is next waits for all of that, and nothing is free elsewhere."""
    job = replace(SHARES, shares=beside)
    others = [replace(job, id="8", shape=Shape(1, 1))] if beside else []
    first = waiting(9, "4", expected_nodes=("n1",), expected_s=60.0)
    seen = snapshot([node("n1"), node("n2", free=0)], [first], [job, *others])
    found = Places(lambda: 0.0, dict, dict)
    found.decided(seen, EasyBackfill()(view(seen)))
    assert found.has_place(job, Wanted(TWO, nodes)) is has_place


@pytest.mark.parametrize("is_there", [True, False])
def test_nobody_is_asked_to_leave_who_has_begun_since_with_what_its_guest_needs(
    *, is_there: bool
) -> None:
    found, guest = Places(lambda: 0.0, dict, dict), waiting(9, "5")
    jobs = [SHARES] if is_there else []
    found.decided(snapshot([node("n1")], [guest], jobs), Plan())
    assert found._does_for(Wanted(TWO, guest="9"), SHARES) is not is_there


def test_a_guest_that_has_no_pin_yet_has_its_turn_already() -> None:
    guest, other = waiting(9, "1", priority=5), waiting(10, "1", priority=9)
    pinned = waiting(11, "1", priority=PINNED)
    seen = snapshot([node("n1")], [guest, other, pinned], [])
    assert _in_its_turn(seen, guest) is seen
    seen = snapshot([node("n1")], [replace(guest, priority=PINNED), other], [])
    assert [one.id for one in _in_its_turn(seen, guest).waiting] == ["10", "9"]
