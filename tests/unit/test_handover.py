"""A hand-over on the fake Slurm: killed at any step, disturbed by owners, never in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slurm_hands import NOW_S, Hands, begun

from pliant.handover import (
    FENCE_S,
    FRESH_S,
    GIVE_UP_S,
    OURS,
    PINNED,
    RETURNS,
    SETTLE_S,
    START_S,
    STARTS,
    Do,
    HandOver,
    Outcome,
    Scene,
    Sight,
    Step,
    is_contradicted,
    next_step,
)
from pliant.model import Job, JobState, Shape
from prove.fake_slurm import AGAIN, FakeSlurm, Record
from prove.world import GUEST, JOB, NEW, OLD

Pauses = Sequence[tuple[float, bool, bool]]
RUNNING, WAITING, ENDING = JobState.RUNNING, JobState.WAITING, JobState.ENDING
IDLE = (Do.WAIT, Do.SETTLE, Do.TURN_BACK)
ASKED = Hands(begun()).running()
"""The job as it was asked."""


@dataclass
class Drill:
    """Runs a hand-over on the fake to its end; ``job``: as it was asked."""

    slurm: FakeSlurm
    over: HandOver
    job: Job = ASKED
    outcome: Outcome | None = None
    hands: Hands = field(init=False)

    def __post_init__(self) -> None:
        self.hands = Hands(self.slurm)
        if self.over.guest:
            self.job = Hands(begun(guest=True)).running()

    @property
    def did(self) -> list[Do]:
        return [do for _, do in self.hands.did]

    def look(self) -> Step:
        """Do what is next."""
        step = next_step(self.over, self.hands.scene(self.over, self.job))
        if step.do is Do.END:
            self.outcome = step.outcome
        elif step.do not in IDLE:
            self.hands.step(step, self.over, self.job)
        return step

    def begin(self, turns: int, pause_s: float = 0.0) -> None:
        """Look so often, whatever there is to do."""
        for _ in range(turns):
            self.look()
            self.hands.pass_time(pause_s)

    def run(self, pauses: Pauses = ()) -> None:
        """Go on until it ends. Each pause: how long, whether Slurm schedules, whether pliantd is
        dead in it; after them it waits longer where there is nothing to do."""
        step = Step(Do.WAIT)
        for turn in range(4000):
            step = step if turn < len(pauses) and pauses[turn][2] else self.look()
            if step.do is Do.END:
                return
            then = (0.75 if step.do in IDLE else 0.25, True, False)
            pause_s, scheduler, _ = pauses[turn] if turn < len(pauses) else then
            self.hands.pass_time(pause_s, scheduler=scheduler)
        raise AssertionError(f"it does not end: {self.did[-5:]} {self.slurm.state}")

    def disturbed(self, pauses: Pauses) -> None:
        """Go on for these pauses and one more turn, whether or not it ends."""
        for pause_s, scheduler, dead in (*pauses, (0.25, True, False)):
            if not dead:
                self.look()
            self.hands.pass_time(pause_s, scheduler=scheduler)

    def told(self, *words: str) -> None:
        """Its owner says something to scontrol."""
        self.slurm.told(words, by_owner=True)

    @property
    def is_pinned(self) -> bool:
        return self.hands.job.priority in OURS

    def assert_tidy(self) -> None:
        job, guest = self.hands.job, self.slurm.state.jobs.get(GUEST)
        assert self.hands.fence_end_s == 0.0
        assert guest is None or guest.priority not in OURS or not (guest.waits or guest.has_gpus)
        assert not self.is_pinned or not job.has_gpus


def intended(guest: str = "", saved_s: float = NOW_S) -> HandOver:
    shape = OLD if guest else NEW
    return HandOver("7", 0, shape, NOW_S - 10, NOW_S + 100, saved_s, guest, before=OLD)


RESIZED = [Do.PIN, Do.FENCE, Do.REQUEUE, Do.RESHAPE, Do.UNFENCE, Do.RELEASE]
"""What is done of a resize in which nothing goes wrong."""


def test_a_resize_from_its_checkpoint_to_its_next_run() -> None:
    drill = Drill(begun(), intended())
    drill.run()
    assert (drill.outcome, drill.did) == (Outcome.DONE, RESIZED)
    job = drill.hands.job
    assert (job.state, job.gpus, job.run, drill.hands.rival) == ("RUNNING", 2, 1, "PENDING")
    drill.assert_tidy()


@pytest.mark.parametrize("priority", [PINNED, PINNED + 1])
def test_a_job_has_its_own_place_before_a_victim_that_waits_and_before_a_guest(
    priority: int,
) -> None:
    slurm = begun()
    other = Record(JOB - 1, priority=priority, run=1)
    slurm.state = replace(slurm.state, jobs={other.number: other, **slurm.state.jobs})
    drill = Drill(slurm, intended())
    drill.run()
    assert (drill.outcome, drill.hands.job.state) == (Outcome.DONE, "RUNNING")
    assert slurm.state.jobs[other.number].waits


@pytest.mark.parametrize("priority", [PINNED + 1, RETURNS])
def test_a_victim_does_not_start_before_its_guest_by_a_pin_of_before(priority: int) -> None:
    """A Slurm that was killed has forgotten that it was released from that."""
    drill = Drill(begun(guest=True), intended(guest=str(GUEST)))
    drill.hands.has(priority=priority)
    drill.run()
    assert (drill.outcome, drill.hands.guest.state) == (Outcome.DONE, "RUNNING")
    assert drill.hands.job.waits


@pytest.mark.parametrize("rival", [True, False])
def test_a_run_that_is_killed_in_place_of_the_one_before_is_requeued(rival: bool) -> None:
    drill = Drill(begun(rival=rival), intended())
    hands = drill.hands
    while hands.job.state != "RUNNING" or hands.job.run == 0 or drill.is_pinned:
        drill.begin(1, 0.25)
    hands.has(state="FAILED", code="0:15", end_s=hands.job.start_s + 1)
    drill.run()
    job = hands.job
    assert (job.run, job.gpus) == (2, 2)
    if rival:  # it started as soon as the job had failed
        assert (drill.outcome, job.state) == (Outcome.SLOW, "PENDING")
        assert job.priority == PINNED  # it is the next to start
    else:
        assert (drill.outcome, job.state) == (Outcome.DONE, "RUNNING")
        assert drill.slurm.now_s >= job.start_s + SETTLE_S
    drill.assert_tidy()


@pytest.mark.parametrize(("failing", "runs"), [(2, 3), (1000, STARTS + 1)])
def test_a_job_whose_starts_fail_again_and_again_is_left_to_the_queue(
    failing: int, runs: int
) -> None:
    """As measured on Slurm 22.05, where PrologSlurmctld failed: 26 starts in 25 s."""
    drill = Drill(begun(rival=False), intended())
    while drill.outcome is None:
        drill.slurm.start_fails = {JOB: AGAIN} if drill.hands.job.run <= failing else {}
        drill.begin(1, 0.25)
        assert drill.slurm.now_s < NOW_S + 2 * GIVE_UP_S, "it does not end"
    ends = Outcome.DONE if failing < STARTS else Outcome.NOT_LAUNCHED
    assert (drill.outcome, drill.hands.job.run) == (ends, runs)
    drill.assert_tidy()


@pytest.mark.parametrize("guest", [False, True])
@pytest.mark.parametrize("after", range(6))
def test_a_pin_that_was_forgotten_by_a_slurm_that_was_killed_is_set_again(
    after: int, guest: bool
) -> None:
    drill = Drill(begun(guest=guest), intended(guest=str(GUEST) if guest else ""))
    drill.begin(after, 1.0)
    drill.hands.has(priority=10)
    drill.run()
    assert (drill.outcome, drill.hands.rival) == (Outcome.DONE, "PENDING")
    assert drill.is_pinned is guest


def test_where_pliantds_clock_is_ahead_its_fence_stands_until_the_job_may_begin() -> None:
    drill = Drill(begun(), intended())
    drill.slurm.ahead_s = 30.0
    drill.run()
    assert (drill.outcome, drill.hands.rival) == (Outcome.DONE, "PENDING")
    assert drill.did == RESIZED


@pytest.mark.parametrize(("fresh_s", "later_s"), [(0.0, 1), (990.0, 1), (1001.0, 5), (1009.0, 5)])
def test_where_a_slurmd_has_just_started_the_job_begins_later(
    fresh_s: float, later_s: float
) -> None:
    drill = Drill(begun(), intended())
    drill.slurm.slurmd = f"{fresh_s:.0f}"
    drill.run()
    job = drill.hands.job
    assert (drill.outcome, drill.hands.rival) == (Outcome.DONE, "PENDING")
    assert job.start_s == job.submit_s + later_s
    assert drill.did.count(Do.RESHAPE) == 1


def test_nothing_is_done_before_the_checkpoint_is_reported() -> None:
    drill = Drill(begun(), intended(saved_s=0.0))
    drill.run()
    assert (drill.outcome, drill.hands.clients.told) == (Outcome.NOT_SAVED, [])
    assert drill.slurm.now_s > drill.over.until_s


@pytest.mark.parametrize(
    "job",
    [
        Sight(None),
        Sight(ENDING),
        Sight(WAITING, run=1),
        Sight(WAITING, run=1, queued_s=NOW_S - 1, fresh_s=100.0),  # its owner has requeued it
    ],
)
def test_a_run_that_ends_before_its_checkpoint_is_asked_no_more(job: Sight) -> None:
    step = next_step(intended(saved_s=0.0), Scene(NOW_S, job))
    assert step == Step(Do.END, outcome=Outcome.RUN_OVER)


PAUSES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 1.0, 40.0]), st.booleans(), st.booleans()), max_size=40
)


@settings(max_examples=300)
@given(PAUSES, st.floats(0, 0.999), st.sampled_from([0.1, 2.0, 30.0]))
@example([(0.0, True, False)] * 5 + [(200.0, True, True)], 0.5, 2.0)
def test_killed_at_any_step_for_any_time_it_ends_and_leaves_nothing_behind(
    pauses: Pauses, phase_s: float, cleaning_s: float
) -> None:
    drill = Drill(begun(now_s=NOW_S + phase_s), intended())
    drill.slurm.cleaning_s = cleaning_s
    drill.run(pauses)
    late = drill.outcome is Outcome.AS_WAS  # it came back by itself while pliantd was dead
    assert drill.outcome in (Outcome.DONE, Outcome.SLOW) or late
    assert not late or drill.hands.job.gpus == 4
    assert drill.hands.job.state in ("RUNNING", "PENDING")
    drill.assert_tidy()


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.booleans(), st.just(False))),
    st.floats(0, 0.999),
    st.sampled_from([0.1, 2.0, 90.0]),
)
def test_nobody_slips_in_while_pliantd_lives(
    pauses: Pauses, phase_s: float, cleaning_s: float
) -> None:
    drill = Drill(begun(now_s=NOW_S + phase_s), intended())
    drill.slurm.cleaning_s = cleaning_s
    drill.run(pauses)
    assert (drill.outcome, drill.hands.rival) == (Outcome.DONE, "PENDING")


def test_a_fence_is_renewed_for_as_long_as_the_run_before_takes_to_end() -> None:
    """A program that ignores TERM, or an epilogue, keeps a job COMPLETING for minutes."""
    drill = Drill(begun(), intended())
    drill.slurm.cleaning_s = 3 * FENCE_S
    drill.run()
    assert (drill.outcome, drill.hands.rival) == (Outcome.DONE, "PENDING")
    assert drill.did.count(Do.RENEW) >= 3


@pytest.mark.parametrize(("late_s", "cleaning_s"), [(0.0, 25.0), (18.0, 1.0), (60.0, 25.0)])
def test_nobody_slips_in_where_pliantd_dies_as_soon_as_it_has_requeued(
    late_s: float, cleaning_s: float
) -> None:
    """It may have been slow before."""
    drill = Drill(begun(), intended())
    drill.slurm.cleaning_s = cleaning_s
    drill.begin(2)
    drill.hands.pass_time(late_s)
    while Do.REQUEUE not in drill.did:
        drill.begin(1)
    for _ in range(200):
        drill.hands.pass_time(1.0)
    job = drill.hands.job
    assert (job.state, job.run, drill.hands.rival) == ("RUNNING", 1, "PENDING")


def test_a_job_whose_run_never_ends_is_left_to_the_queue_and_its_nodes_to_all() -> None:
    """Its node is down, or its epilogue hangs: no fence stands for ever."""
    drill = Drill(begun(), intended())
    drill.slurm.cleaning_s = 10 * GIVE_UP_S
    drill.run()
    assert (drill.outcome, drill.hands.job.state) == (Outcome.SLOW, "COMPLETING")
    assert drill.hands.fence_end_s == 0.0
    assert GIVE_UP_S < drill.slurm.now_s - drill.over.saved_s <= GIVE_UP_S + 1


FAILED = Sight(None, killed=True)


@pytest.mark.parametrize("now", [{}, {"back_s": NOW_S, "stuck": True}, {"changed": True}])
@pytest.mark.parametrize("after_s", [1.0, GIVE_UP_S + 60])
def test_one_that_was_killed_at_its_start_is_requeued_however_late_that_is_seen(
    after_s: float, now: dict[str, Any]
) -> None:
    over = replace(intended(), **now)
    assert next_step(over, Scene(NOW_S + after_s, FAILED)).do is Do.REQUEUE


@pytest.mark.parametrize(("ahead_s", "do"), [(1.0, Do.WAIT), (3.0, Do.WAIT), (3.5, Do.UNFENCE)])
def test_one_that_could_not_be_put_back_keeps_its_fence_for_as_long_as_it_begins_soon(
    ahead_s: float, do: Do
) -> None:
    over = replace(intended(), back_s=NOW_S + 2, stuck=True)
    begins_s = NOW_S + 10 + ahead_s
    job = Sight(WAITING, 1, PINNED, carries=OLD, queued_s=NOW_S + 1, begins_s=begins_s)
    assert next_step(over, Scene(NOW_S + 10, job, fence_end_s=NOW_S + 200)).do is do


@pytest.mark.parametrize("given_up", [{"barred": True}, {"back_s": NOW_S, "stuck": True}])
def test_no_fence_is_made_for_one_that_goes_without_however_late_it_begins(
    given_up: dict[str, Any],
) -> None:
    """It is refused, or the one that stood has just been taken away: others wait for the nodes."""
    over = replace(intended(), **given_up)
    job = Sight(WAITING, 1, PINNED, carries=over.goal, queued_s=NOW_S, begins_s=NOW_S + 60)
    assert next_step(over, Scene(NOW_S + 10, job, ahead_s=50.0)).do is Do.WAIT


@pytest.mark.parametrize("owner", ["asks", "holds"])
def test_one_that_its_owner_has_changed_is_looked_after_for_as_long_as_a_kill_may_meet_its_start(
    owner: str,
) -> None:
    drill = Drill(begun(rival=False), intended())
    while not drill.hands.job.waits:
        drill.begin(1, 0.25)
    changes = {"asks": ("update", f"jobid={JOB}", "Gres=gpu:3"), "holds": ("hold", str(JOB))}
    drill.told(*changes[owner])
    drill.begin(8, 0.25)
    assert drill.look().do is Do.SETTLE
    assert (drill.is_pinned, drill.hands.fence_end_s) == (False, 0.0)  # others need not wait
    now_s = drill.slurm.now_s
    drill.hands.has(state="FAILED", code="0:15", start_s=now_s, end_s=now_s)
    assert drill.look().do is Do.REQUEUE
    drill.run()
    assert drill.hands.job.run == 2


def test_one_that_is_to_begin_a_second_later_is_fenced_first() -> None:
    """Its fence has ended, and it could have begun: a request to begin later lets others go first."""
    over = intended()
    waits = Sight(WAITING, 1, PINNED, carries=OLD, queued_s=NOW_S, begins_s=NOW_S - 600)
    assert next_step(over, Scene(NOW_S, waits)) == Step(Do.FENCE)
    behind = replace(waits, queued_s=NOW_S - 10, begins_s=NOW_S + 110)  # by Slurm, as all requeued
    assert next_step(over, Scene(NOW_S, behind)) == Step(Do.FENCE)


@pytest.mark.parametrize(
    ("now_s", "do"), [(NOW_S + 0.9, Do.WAIT), (NOW_S + 1, Do.UNFENCE), (NOW_S - 900, Do.UNFENCE)]
)
def test_nobody_starts_in_the_second_in_which_its_run_ended(now_s: float, do: Do) -> None:
    """Slurm would start it on its node, which refuses that; nor is a clock that was set back."""
    held = Sight(WAITING, 1, PINNED, held=True, carries=OLD, queued_s=NOW_S, begins_s=NOW_S)
    assert next_step(intended(), Scene(now_s, held, fence_end_s=NOW_S + 100)).do is do


def test_one_whose_request_could_not_be_put_back_has_its_seconds_to_start_as_well() -> None:
    """Not until all is given up: others wait for those GPUs."""
    over = replace(intended(), back_s=NOW_S, stuck=True)
    waits = Sight(WAITING, run=1, carries=Shape(1, 3), queued_s=NOW_S, begins_s=NOW_S + 1)
    scenes = [Scene(at_s, replace(waits, priority=PINNED)) for at_s in (NOW_S + 9, NOW_S + 12)]
    assert [next_step(over, scene) for scene in scenes] == [
        Step(Do.WAIT),
        Step(Do.END, outcome=Outcome.SLOW),
    ]


@pytest.mark.parametrize(
    ("carries", "back_s", "outcome"),
    [
        (NEW, 0.0, Outcome.DONE),
        (None, 0.0, Outcome.DONE),  # what it has cannot be read
        (OLD, 0.0, Outcome.AS_WAS),
        (OLD, NOW_S + 5, Outcome.REFUSED),
        (NEW, NOW_S + 5, Outcome.DONE),  # what it had could not be put back
        (Shape(1, 3), 0.0, Outcome.CHANGED),
    ],
)
def test_how_it_ended_of_one_that_runs_again(
    carries: Shape | None, back_s: float, outcome: Outcome
) -> None:
    runs = Scene(NOW_S + 9, Sight(RUNNING, run=1, carries=carries))
    assert next_step(replace(intended(), back_s=back_s), runs) == Step(Do.END, outcome=outcome)


@given(PAUSES, st.integers(0, 20), st.sampled_from(["hold", "cancel"]))
def test_an_owner_who_acts_meanwhile_wins(pauses: Pauses, after: int, what: str) -> None:
    drill = Drill(begun(), intended())
    drill.disturbed(pauses[:after])
    held = what == "hold" and drill.hands.job.waits
    if held:
        drill.told("hold", str(JOB))
    else:
        drill.slurm.end(JOB, "CANCELLED")
    drill.run()
    assert drill.outcome is (Outcome.HELD if held else Outcome.GONE)
    assert drill.hands.job.state == ("PENDING" if held else "CANCELLED")
    drill.assert_tidy()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_job_that_is_suspended_keeps_its_place_until_it_may_go_on(after: int) -> None:
    """Slurm gives it the priority 0 of a job that is held, and its own when it is resumed."""
    drill = Drill(begun(), intended())
    drill.begin(after)
    drill.slurm.told(("suspend", str(JOB)))
    if after == 2:  # others may have what it does not use
        assert drill.look().do is Do.UNFENCE
    for _ in range(30):
        assert drill.look().do is Do.SETTLE
        drill.hands.pass_time(1.0)
    drill.slurm.told(("resume", str(JOB)))
    drill.run()
    assert drill.outcome is Outcome.DONE
    drill.assert_tidy()


@given(st.integers(0, 4), st.booleans())
def test_a_job_that_is_held_while_it_runs_stays_held(after: int, before_saved: bool) -> None:
    drill = Drill(begun(), intended(saved_s=0.0 if before_saved else NOW_S))
    drill.begin(after)
    if drill.hands.job.state != "RUNNING":
        return
    drill.told("hold", str(JOB))
    drill.run()
    assert (drill.outcome, drill.hands.job.priority) == (Outcome.HELD, 0)
    assert drill.hands.job.state == ("RUNNING" if before_saved else "PENDING")
    drill.assert_tidy()


@given(PAUSES, st.integers(0, 20))
def test_a_job_that_is_changed_while_it_waits_goes_on_as_it_says_without_its_pin(
    pauses: Pauses, after: int
) -> None:
    drill = Drill(begun(), intended())
    drill.disturbed(pauses[:after])
    if not drill.hands.job.waits:
        return
    begin = "StartTime=1970-01-01T01:23:20"
    drill.told("update", f"jobid={JOB}", "Gres=gpu:3", begin)
    drill.hands.did.clear()
    drill.run()
    assert drill.outcome is Outcome.CHANGED
    assert Do.RESHAPE not in drill.did
    assert (drill.hands.job.gpus, drill.hands.job.begin_s) == (3, 5000.0)
    assert not drill.is_pinned
    drill.assert_tidy()


def test_a_job_that_is_changed_once_its_fence_has_fallen_loses_its_pin() -> None:
    drill = Drill(begun(), intended())
    while Do.REQUEUE not in drill.did:
        drill.begin(1)
    drill.slurm.state = replace(drill.slurm.state, down=frozenset(("n1",)))
    while Do.UNFENCE not in drill.did:
        drill.begin(1, 0.25)
    drill.told("update", f"jobid={JOB}", "Gres=gpu:3")
    drill.run()
    assert (drill.outcome, drill.did[-1]) == (Outcome.CHANGED, Do.RELEASE)
    assert (drill.hands.job.gpus, drill.is_pinned) == (3, False)


def test_a_job_that_is_held_once_it_has_started_again_is_done() -> None:
    drill = Drill(begun(), intended())
    drill.hands.has(run=1, priority=0, gpus=2)
    drill.run()
    assert (drill.outcome, drill.did) == (Outcome.DONE, [])


@settings(max_examples=200)
@given(PAUSES, st.floats(0, 0.999))
def test_a_guest_gets_the_room_that_was_made_for_it(pauses: Pauses, phase_s: float) -> None:
    alive = [(pause_s % 2, scheduler, False) for pause_s, scheduler, _ in pauses]
    drill = Drill(begun(guest=True, now_s=NOW_S + phase_s), intended(guest=str(GUEST)))
    drill.run(alive)
    assert drill.outcome is Outcome.DONE
    hands = drill.hands
    seen = (hands.guest.state, hands.rival, hands.job.state)
    assert seen == ("RUNNING", "PENDING", "PENDING")
    assert drill.is_pinned  # it is the next to start
    drill.assert_tidy()


@pytest.mark.parametrize(("after_s", "does"), [(2.0, Do.SETTLE), (FRESH_S + 1, Do.END)])
def test_a_victim_is_looked_after_for_as_long_as_a_kill_of_before_may_meet_its_start(
    after_s: float, does: Do
) -> None:
    """Its guest may end at once."""
    waits = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    waits = replace(waits, fresh_s=100.0)
    scene = Scene(1001.0 + after_s, waits, Sight(None))
    assert next_step(intended(guest="8"), scene).do is does
    for guest, job, then in (
        (Sight(RUNNING, priority=PINNED + 1), waits, Do.RELEASE_GUEST),
        (Sight(None), replace(waits, priority=RETURNS), Do.PIN),
        (Sight(None), replace(waits, state=None, killed=True), Do.REQUEUE),
    ):
        assert next_step(intended(guest="8"), replace(scene, guest=guest, job=job)).do is then


def test_a_guest_that_cannot_start_keeps_no_pin_once_the_victim_runs_again() -> None:
    drill = Drill(begun(guest=True), intended(guest=str(GUEST)))
    drill.hands.has(run=1, priority=PINNED)
    drill.hands.has(number=GUEST, priority=PINNED + 1)  # the batch system requeued it
    drill.run()
    assert drill.did == [Do.RELEASE_GUEST, Do.RELEASE]
    assert drill.outcome is Outcome.DONE
    drill.assert_tidy()


def test_a_guest_whose_victim_has_ended_starts_on_nothing_that_is_kept_for_others() -> None:
    """It is pinned, and starts with the end of the fence."""
    over, ended = intended(guest="8"), Scene(NOW_S + 20, Sight(None), fence_end_s=NOW_S + 100)
    for guest, opens in (
        (Sight(WAITING, priority=PINNED + 1), True),
        (Sight(WAITING, priority=5), False),
        (Sight(WAITING, priority=PINNED + 1, held=True), False),
        (Sight(JobState.RUNNING, priority=PINNED + 1), False),
    ):
        assert next_step(over, replace(ended, guest=guest)) == Step(Do.UNFENCE, opens=opens)


@pytest.mark.parametrize("room_s", [0.0, 1050.0])
def test_a_guest_that_does_not_start_keeps_its_pin_for_no_longer_than_a_start_takes(
    room_s: float,
) -> None:
    victim = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    guest = Sight(WAITING, priority=PINNED + 1)
    over, end_s = intended(guest="8"), max(1002.0, room_s) + START_S
    assert next_step(over, Scene(end_s, victim, guest, room_s=room_s)) == Step(Do.WAIT)
    late = Scene(end_s + 1, victim, guest, room_s=room_s)
    assert next_step(over, late).do is Do.RELEASE_GUEST
    released = replace(late, guest=replace(guest, priority=5))
    assert next_step(over, released) == Step(Do.END, outcome=Outcome.SLOW)
    runs = replace(late, guest=replace(guest, state=RUNNING, priority=5))
    assert next_step(over, runs) == Step(Do.END, outcome=Outcome.DONE)


def test_where_slurm_may_start_nobody_for_a_while_that_is_waited_for() -> None:
    """With CompleteWait, while another job ends."""
    waits = Sight(WAITING, run=1, priority=RETURNS, carries=NEW, queued_s=1001.0, begins_s=1002.0)
    end_s = 1002.0 + START_S
    guest = Sight(WAITING, priority=PINNED + 1)
    victim = replace(waits, priority=PINNED, carries=OLD)
    for over, job, other in (
        (intended(), waits, Sight(None)),
        (intended(guest="8"), victim, guest),
    ):
        scene = Scene(end_s + 1, job, other, late_s=30.0)
        assert next_step(over, scene) == Step(Do.WAIT)
        assert next_step(over, replace(scene, late_s=0.0)) != Step(Do.WAIT)
        assert next_step(over, replace(scene, now_s=end_s + 31)) != Step(Do.WAIT)


@pytest.mark.parametrize("guest", [Sight(None), Sight(WAITING, priority=PINNED + 1)])
def test_who_asks_for_more_than_it_had_loses_its_pin_before_its_fence_falls(guest: Sight) -> None:
    """What lets it start is the fence's end."""
    over = replace(intended(guest="8" if guest.state else ""), changed=True)
    waits = Sight(WAITING, run=1, priority=PINNED, carries=NEW, queued_s=1001.0, changed=True)
    scene = Scene(1004.0, waits, guest, fence_end_s=1100.0)
    if guest.state:
        assert next_step(over, scene).do is Do.RELEASE_GUEST
        scene = replace(scene, guest=replace(guest, priority=5))
    assert next_step(over, scene).do is Do.RELEASE
    assert next_step(over, replace(scene, job=replace(waits, priority=5))).do is Do.UNFENCE


def test_a_guest_is_pinned_once_nothing_but_its_fence_keeps_its_room() -> None:
    """With its pin it would be before others on every node."""
    victim = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    scene = Scene(1003.0, victim, Sight(WAITING, priority=5), fence_end_s=1003.0 + FENCE_S)
    over = intended(guest="8")
    assert next_step(over, replace(scene, now_s=1001.5)) == Step(Do.WAIT)  # it may not begin yet
    assert next_step(over, scene).do is Do.PIN_GUEST
    assert next_step(over, replace(scene, fence_end_s=0.0)).do is Do.PIN_GUEST
    unfenced = replace(scene, now_s=1001.5, fence_end_s=0.0)  # its victim may begin in a moment
    assert next_step(replace(over, barred=True), unfenced).do is Do.PIN_GUEST


def test_what_is_kept_for_others_is_open_to_them_as_soon_as_it_has_started() -> None:
    waits = Sight(WAITING, run=1, priority=RETURNS, carries=NEW, queued_s=1001.0, begins_s=1002.0)
    scene = Scene(1003.0, waits, aside_end_s=1018.0)
    over = intended()
    assert next_step(over, replace(scene, fence_end_s=1100.0, aside_end_s=0.0)) == Step(
        Do.UNFENCE, opens=True
    )
    assert next_step(over, scene) == Step(Do.WAIT)
    runs = replace(waits, state=RUNNING, started_s=1003.0)
    assert next_step(over, replace(scene, job=runs)) == Step(Do.UNFENCE)
    assert next_step(over, replace(scene, job=runs, aside_end_s=0.0)).do is Do.RELEASE
    assert next_step(over, replace(scene, now_s=1002.0 + START_S + 1)) == Step(Do.UNFENCE)


def test_what_is_kept_for_others_stays_so_while_it_waits_for_anothers_fence() -> None:
    waits = Sight(WAITING, run=1, priority=RETURNS, carries=NEW, queued_s=1001.0, begins_s=1002.0)
    scene = Scene(1015.0, waits, aside_end_s=1018.0, behind_s=1015.0)
    assert next_step(intended(), scene) == Step(Do.UNFENCE, opens=True)
    assert next_step(intended(), replace(scene, aside_end_s=1030.0)) == Step(Do.WAIT)
    victim = replace(waits, priority=PINNED, carries=OLD)
    guest = Sight(WAITING, priority=PINNED + 1)
    room = replace(scene, job=victim, guest=guest, room_s=1015.0)
    assert next_step(intended(guest="8"), room) == Step(Do.UNFENCE, opens=True)
    late = replace(scene, now_s=1063.0, aside_end_s=1066.0, behind_s=1063.0)
    assert next_step(intended(), late) == Step(Do.WAIT)  # who is kept out there, too, waits for it


def test_what_is_kept_for_others_is_open_to_them_as_soon_as_its_guest_has_started() -> None:
    victim = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    guest = Sight(WAITING, priority=PINNED + 1)
    scene, over = Scene(1003.0, victim, guest, aside_end_s=1018.0), intended(guest="8")
    assert next_step(over, replace(scene, room_s=1003.0)) == Step(Do.WAIT)
    started = replace(scene, guest=replace(guest, state=RUNNING))
    assert next_step(over, started).do is Do.RELEASE_GUEST
    released = replace(scene, guest=replace(guest, state=RUNNING, priority=5))
    assert next_step(over, released) == Step(Do.UNFENCE)


def test_a_guest_that_has_not_started_is_no_more_before_all_when_what_is_kept_is_opened() -> None:
    """The fence's end lets the scheduler pass: it would start there."""
    victim = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    guest = Sight(WAITING, priority=PINNED + 1)
    scene = Scene(1003.0 + START_S, victim, guest, aside_end_s=1018.0, room_s=1002.0)
    assert next_step(intended(guest="8"), scene).do is Do.RELEASE_GUEST
    released = replace(scene, guest=replace(guest, priority=5))
    assert next_step(intended(guest="8"), released) == Step(Do.UNFENCE)


def test_a_guest_that_slurm_cannot_start_leaves_the_room_to_the_victim() -> None:
    drill = Drill(begun(guest=True), intended(guest=str(GUEST)))
    drill.hands.has(number=GUEST, lacks=True)  # as one with --exclusive beside another's CPU
    drill.run()
    assert (drill.outcome, drill.did[-3:]) == (
        Outcome.DONE,
        [Do.UNFENCE, Do.RELEASE_GUEST, Do.RELEASE],
    )
    drill.assert_tidy()
    assert (drill.hands.job.state, drill.hands.guest.state) == ("RUNNING", "PENDING")
    assert drill.hands.clock() - NOW_S < 3 * START_S


def test_a_guest_that_is_cancelled_leaves_the_room_to_the_victim() -> None:
    drill = Drill(begun(guest=True), intended(guest=str(GUEST)))
    drill.slurm.end(GUEST, "CANCELLED")
    drill.run()
    drill.hands.pass_time(1.0)
    assert drill.hands.job.state == "RUNNING"


@pytest.mark.parametrize("priority", [4_294_901_760, 4_000_000_000, 4_294_967_293])
def test_a_priority_that_is_not_ours_is_no_pin_however_high(priority: int) -> None:
    over = HandOver("7", 0, NEW, 0.0, 60.0, saved_s=1.0, before=OLD)
    runs = Scene(2.0, Sight(RUNNING, priority=priority, carries=OLD))
    assert next_step(over, runs).do is Do.PIN
    again = Scene(9.0, Sight(RUNNING, run=1, priority=priority, carries=NEW))
    assert next_step(over, again) == Step(Do.END, outcome=Outcome.DONE)


def test_a_job_that_the_batch_system_requeues_itself_keeps_its_place_once_it_has_saved() -> None:
    drill = Drill(begun(), intended())
    drill.slurm.cleaning_s = 0.0
    drill.slurm.sends_back(drill.hands.job)  # its node failed before there was a fence
    drill.slurm.pass_to(NOW_S)
    drill.run([(0.1, True, False)] * 60)
    seen = (drill.hands.job.state, drill.hands.job.gpus, drill.hands.rival)
    assert seen == ("RUNNING", 2, "PENDING")


def turned(refused: str = "no such GPU", *, before: Shape = OLD, shape: Shape = NEW) -> HandOver:
    return HandOver(
        *("7", 0, shape, 990.0, 1100.0),
        saved_s=1000.0,
        before=before,
        refused=refused,
        refused_s=1002.0,
    )


def waits(now_s: float, carries: Shape, *, fence_end_s: float, blocked: str = "") -> Scene:
    job = Sight(WAITING, 1, PINNED, carries=carries, queued_s=1001.0, begins_s=1002.0)
    return Scene(now_s, replace(job, blocked=blocked), fence_end_s=fence_end_s)


@pytest.mark.parametrize("fence_end_s", [1120.0, 0.0])
@pytest.mark.parametrize(("for_good", "do"), [(True, Do.TURN_BACK), (False, Do.RESHAPE)])
def test_a_reshape_that_is_refused_for_good_turns_back(
    for_good: bool, do: Do, fence_end_s: float
) -> None:
    """However long ago another was refused that was tried but once, and its fence has ended."""
    over = replace(turned(), for_good=for_good)
    assert next_step(over, waits(1030.0, OLD, fence_end_s=fence_end_s)).do is do


@pytest.mark.parametrize(
    ("now_s", "blocked", "shape", "fence_end_s", "do"),
    [
        (1007.0, "QOSMaxGRESPerJob", NEW, 0.0, Do.WAIT),
        (1007.5, "QOSMaxGRESPerJob", NEW, 0.0, Do.TURN_BACK),
        (1007.5, "QOSMaxGRESPerJob", OLD, 0.0, Do.WAIT),  # as it was it would be, too
        (1012.0, "", Shape(1, 8), 0.0, Do.WAIT),
        (1012.5, "", Shape(1, 8), 0.0, Do.TURN_BACK),  # as it was there may be room
        (1012.5, "", Shape(1, 8), 1120.0, Do.UNFENCE),  # until now our fence kept it out
        (1012.5, "", NEW, 0.0, Do.END),  # as it was there would be none either
    ],
)
def test_a_shape_that_is_taken_and_not_started_turns_back(
    now_s: float, blocked: str, shape: Shape, fence_end_s: float, do: Do
) -> None:
    over = turned("", shape=shape)
    assert next_step(over, waits(now_s, shape, fence_end_s=fence_end_s, blocked=blocked)).do is do


@pytest.mark.parametrize(
    ("behind_s", "blocked", "shape", "do"),
    [
        (1056.0, "QOSMaxGRESPerJob", NEW, Do.WAIT),
        (1055.0, "QOSMaxGRESPerJob", NEW, Do.TURN_BACK),
        (1051.0, "", Shape(1, 8), Do.WAIT),
        (1050.0, "", Shape(1, 8), Do.TURN_BACK),
        (1051.0, "", NEW, Do.WAIT),
        (1050.0, "", NEW, Do.END),
    ],
)
def test_one_behind_anothers_fence_has_its_seconds_to_start_after_that(
    behind_s: float, blocked: str, shape: Shape, do: Do
) -> None:
    scene = waits(1060.5, shape, fence_end_s=0.0, blocked=blocked)
    assert next_step(turned("", shape=shape), replace(scene, behind_s=behind_s)).do is do


@pytest.mark.parametrize(("now_s", "do"), [(1020.5, Do.WAIT), (1021.5, Do.END)])
def test_one_that_turned_back_has_as_long_to_start_as_before(now_s: float, do: Do) -> None:
    """PBS forgets a time to begin that has come, and tells the one before."""
    over = replace(turned(shape=Shape(1, 8)), back_s=1011.0)
    assert next_step(over, waits(now_s, OLD, fence_end_s=0.0)).do is do


@pytest.mark.parametrize(("now_s", "do"), [(1001.5, Do.WAIT), (1002.0, Do.UNFENCE)])
def test_no_fence_falls_in_the_second_in_which_the_job_went_back(now_s: float, do: Do) -> None:
    """Where requeue_delay=0 lets it begin in that second, in which slurmd refuses its launch."""
    scene = waits(now_s, OLD, fence_end_s=1120.0)
    scene = replace(scene, job=replace(scene.job, begins_s=1001.0))
    assert next_step(turned("", shape=OLD), scene).do is do


@pytest.mark.parametrize(
    ("state", "do"), [(RUNNING, Do.PIN), (ENDING, Do.FENCE), (WAITING, Do.END)]
)
def test_a_time_to_begin_by_a_clock_that_was_set_back_is_not_waited_for(
    state: JobState, do: Do
) -> None:
    """One that has saved goes back into the queue all the same."""
    job = Sight(state, carries=OLD, begins_s=NOW_S + GIVE_UP_S + 1)
    assert next_step(intended(), Scene(NOW_S, job)).do is do


def test_a_guest_has_its_room_where_the_reshape_of_the_victim_is_refused() -> None:
    over = replace(turned(shape=OLD), guest="8", for_good=True)
    scene = replace(waits(1002.5, OLD, fence_end_s=1120.0), guest=Sight(WAITING, priority=5))
    assert next_step(over, scene).do is Do.TURN_BACK
    over = replace(over, back_s=1002.5)
    assert next_step(over, scene).do is Do.PIN_GUEST


PINNED_JOB = Job("7", state=WAITING, priority=PINNED, restarts=1, submit_s=1002.0)


@pytest.mark.parametrize(
    ("over", "job", "contradicted"),
    [
        (intended(), PINNED_JOB, False),  # as it is while pliantd is started again
        (intended(), replace(PINNED_JOB, state=ENDING, restarts=0), False),
        (intended(saved_s=0.0), PINNED_JOB, True),  # no job is pinned before
        (intended(saved_s=0.0), replace(PINNED_JOB, state=ENDING, restarts=0), True),
        (intended(saved_s=0.0), replace(PINNED_JOB, priority=10), False),  # its owner requeued it
        (intended(saved_s=0.0), replace(PINNED_JOB, state=RUNNING, restarts=0), False),
        (intended(saved_s=1002.0 - GIVE_UP_S - 1), PINNED_JOB, True),
        (intended(saved_s=1002.0 - GIVE_UP_S - 1), replace(PINNED_JOB, state=RUNNING), False),
    ],
)
def test_a_stored_row_that_is_older_than_what_is_seen_counts_as_none(
    over: HandOver, job: Job, contradicted: bool
) -> None:
    assert is_contradicted(over, job) is contradicted
