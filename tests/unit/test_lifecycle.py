"""A malleable job's nine states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.lifecycle import BUSY, Event, Life, Phase, Seen, after, at, observed

WHOLE = [
    (Event.CONTACT, Phase.WAITING_FOR_INITIAL_RESOURCE),
    (Event.GRANT, Phase.STANDBY),
    (Event.CLEAR, Phase.LAUNCHING),
    (Event.LAUNCHED, Phase.RUNNING_PROTECTED),
    (Event.MATURE, Phase.RUNNING),
    (Event.RESHAPE, Phase.CHECKPOINTING),
    (Event.SAVED, Phase.STOPPING),
    (Event.STOPPED, Phase.STANDBY),
    (Event.CLEAR, Phase.LAUNCHING),
    (Event.LAUNCHED, Phase.RUNNING_PROTECTED),
    (Event.DONE, Phase.FINISHED),
]
"""Figure 1 of the paper, once round."""

EVENTS = st.lists(st.tuples(st.sampled_from(Event), st.floats(0, 100)))


def test_a_whole_life() -> None:
    life, seen = Life(), []
    for at_s, (event, _) in enumerate(WHOLE):
        life = after(life, event, float(at_s))
        seen.append(life.phase)
    assert seen == [phase for _, phase in WHOLE]
    assert life.since_s == len(WHOLE) - 1


def test_it_is_protected_for_three_times_its_last_launch() -> None:
    launching = Life(Phase.LAUNCHING, since_s=100.0, launch_s=1.0)
    life = after(launching, Event.LAUNCHED, 110.0)
    assert (life.launch_s, life.mature_s) == (10.0, 140.0)
    assert at(life, 139.9) == life
    assert at(life, 141.0) == Life(Phase.RUNNING, since_s=140.0, launch_s=10.0)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.RUNNING])
def test_only_a_running_job_is_told_to_checkpoint(phase: Phase) -> None:
    life = Life(phase)
    assert not life.may_reshape
    assert after(life, Event.RESHAPE, 1.0) == life


def test_a_failed_checkpoint_leaves_it_running() -> None:
    life = after(Life(Phase.CHECKPOINTING), Event.NOT_SAVED, 1.0)
    assert life.phase is Phase.RUNNING


@given(EVENTS)
def test_nothing_leads_out_of_the_end_and_time_never_goes_back(
    events: list[tuple[Event, float]],
) -> None:
    life, now_s = Life(), 0.0
    for event, passed_s in events:
        now_s += passed_s
        before, life = life, after(life, event, now_s)
        assert before.phase is not Phase.FINISHED or life == before
        assert before.since_s <= life.since_s <= now_s
        assert life.launch_s >= 0.0


@given(EVENTS, st.sampled_from(sorted(BUSY)))
def test_what_has_happened_twice_happened_once(
    events: list[tuple[Event, float]], phase: Phase
) -> None:
    life = Life(phase)
    for event, at_s in events:
        once = after(life, event, at_s)
        if event not in (Event.GRANT, Event.CLEAR, Event.LAUNCHED):
            assert after(once, event, at_s) == once
        life = once


@pytest.mark.parametrize(
    ("seen", "phase"),
    [
        (Seen(runs=False), Phase.WAITING_FOR_INITIAL_RESOURCE),
        (Seen(runs=True, start_s=100.0), Phase.LAUNCHING),
        (Seen(runs=True, start_s=100.0, launched_s=110.0), Phase.RUNNING_PROTECTED),
        (Seen(runs=True, start_s=100.0, launched_s=103.0), Phase.RUNNING),
        (Seen(runs=True, start_s=100.0, launched_s=103.0, asked=True), Phase.CHECKPOINTING),
        (
            Seen(runs=True, start_s=100.0, launched_s=103.0, asked=True, saved_s=118.0),
            Phase.STOPPING,
        ),
        (Seen(runs=False, asked=True, saved_s=118.0), Phase.STANDBY),
    ],
)
def test_where_a_job_is_shows_in_what_is_seen_now(seen: Seen, phase: Phase) -> None:
    assert observed(seen, 120.0).phase is phase


def test_what_is_seen_now_and_what_happened_agree() -> None:
    life = Life(Phase.STANDBY)
    life = after(after(life, Event.CLEAR, 100.0), Event.LAUNCHED, 110.0)
    assert observed(Seen(runs=True, start_s=100.0, launched_s=110.0), 139.0) == life
    assert observed(Seen(runs=True, start_s=100.0, launched_s=110.0), 141.0) == at(life, 141.0)
