"""A hand-over on a small fake of Slurm: killed at any step, disturbed by owners, never in the way.

The fake keeps what was measured on real ones: a fence holds others out, a requeued job may begin
two minutes later unless it is told when, deleting a fence starts a pass of the scheduler, and a job
that starts in the second of its requeue is killed, or by a kill that is told a second time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pliant.handover import (
    FENCE_S,
    FRESH_S,
    GIVE_UP_S,
    PINNED,
    REFUSED_S,
    SETTLE_S,
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

OLD, NEW, X_SHAPE = Shape(1, 4), Shape(1, 2), Shape(1, 4)
IDLE = (Do.WAIT, Do.SETTLE)
WAITING, RUNNING, ENDING = JobState.WAITING, JobState.RUNNING, JobState.ENDING


@dataclass
class FakeSlurm:
    """One node of four GPUs: J runs on all, X waits for all with a higher priority than J's own."""

    now_s: float = 1000.0
    job: Sight = field(default_factory=lambda: Sight(RUNNING, priority=10, carries=OLD))
    x: JobState = WAITING
    x_priority: int = 1000
    guest: Sight | None = None
    fence_end_s: float = 0.0
    ends_s: float = 0.0  # when the requeued run's last process is gone
    cleaned_s: float = 2.0
    ahead_s: float = 0.0  # how far pliantd's clock is
    never: Shape | None = None  # it takes this shape, and never starts a job of it
    failing: int = (
        0  # how many of the job's starts fail: PrologSlurmctld sends it back to the queue
    )
    idle_s: float = 0.0  # how long GPUs were idle behind a fence
    back_s: float = 0.0  # how far all clocks were set back

    def monotonic(self) -> float:
        return self.now_s + self.back_s

    def set_back(self, by_s: float) -> None:
        self.now_s, self.ends_s = self.now_s - by_s, self.ends_s - by_s
        self.back_s += by_s

    def scene(self) -> Scene:
        fence = self.fence_end_s if self.fence_end_s > self.now_s else 0.0
        return Scene(self.now_s, self.job, self.guest, fence, self.ahead_s)

    def free(self) -> int:
        held = {RUNNING, ENDING}
        used = 4 if self.x is RUNNING else 0
        if self.job.state in held:
            used += int(self.job.carries.amount) if self.job.carries else 0
        if self.guest is not None and self.guest.state in held:
            used += 4
        return int(4 - used)

    def do(self, step: Step, over: HandOver) -> None:
        job = self.job
        match step.do:
            case Do.PIN:
                assert not job.held, "Slurm refuses it"
                self.job = replace(job, priority=PINNED)
            case Do.FENCE | Do.RENEW:
                self.fence_end_s = self.now_s + FENCE_S
            case Do.REQUEUE:
                assert over.saved_s, "a run was ended that had not saved"
                self.ends_s = self.now_s + self.cleaned_s
                state = ENDING if job.state is RUNNING else WAITING
                self.job = replace(job, state=state, killed=False)
                if state is WAITING:
                    self._queue_again()
            case Do.RESHAPE:
                assert job.state is WAITING
                begins_s = max(step.begin_s, self.now_s + self.ahead_s)  # scontrol(1): not before
                self.job = replace(job, carries=over.shape, begins_s=begins_s)
            case Do.PUT_BACK:
                assert job.state is WAITING
                carries = over.before or job.carries
                self.job = replace(job, carries=carries, begins_s=max(step.begin_s, self.now_s))
            case Do.UNFENCE:
                self.fence_end_s = 0.0
                self.schedule()
            case Do.RELEASE:
                self.job = replace(job, priority=10)
            case Do.PIN_GUEST:
                assert self.guest is not None
                self.guest = replace(self.guest, priority=PINNED + 1)
            case Do.RELEASE_GUEST:
                assert self.guest is not None
                self.guest = replace(self.guest, priority=500)
            case _:
                pass

    def _queue_again(self) -> None:
        self.job = replace(
            self.job,
            state=WAITING,
            run=self.job.run + 1,
            queued_s=float(int(self.now_s)),
            begins_s=self.now_s + 121,
        )

    def pass_time(self, by_s: float, scheduler: bool) -> None:
        if self.job.state is WAITING and self.fence_end_s > self.now_s:
            self.idle_s += by_s
        self.now_s += by_s
        if self.job.state is ENDING and self.now_s >= self.ends_s:
            self._queue_again()
        if scheduler:
            self.schedule()

    def schedule(self) -> None:
        if self.fence_end_s > self.now_s:
            return
        queue = [(self.x_priority, "x")] if self.x is WAITING else []
        if self.job.is_waiting and self.job.begins_s <= self.now_s:
            stuck = self.job.carries == self.never
            self.job = replace(self.job, blocked="QOSMaxGRESPerJob" if stuck else "")
            queue += [] if stuck else [(self.job.priority, "job")]
        if self.guest is not None and self.guest.is_waiting:
            queue.append((self.guest.priority, "guest"))
        for _, who in sorted(queue, reverse=True):
            self._start(who)

    def _start(self, who: str) -> None:
        if who == "x" and self.free() >= X_SHAPE.amount:
            self.x = RUNNING
        elif who == "guest" and self.guest is not None and self.free() >= 4:
            self.guest = replace(self.guest, state=RUNNING)
        elif who == "job" and self.job.carries and self.free() >= self.job.carries.amount:
            if self.failing:
                self.failing -= 1
                self._queue_again()
                return
            early = int(self.now_s) <= self.job.queued_s
            state, started_s = None if early else RUNNING, float(int(self.now_s))
            self.job = replace(self.job, state=state, killed=early, started_s=started_s)


@dataclass
class Drill:
    """Runs a hand-over on the fake to its end."""

    slurm: FakeSlurm
    over: HandOver
    outcome: Outcome | None = None
    did: list[Do] = field(default_factory=list)

    def run(self, pauses: list[tuple[float, bool, bool]] | None = None) -> None:
        """Go on until it ends. Each pause: how long, whether Slurm schedules, whether pliantd is
        dead in it."""
        pauses = pauses or []
        for turn in range(4000):
            pause_s, scheduler, dead = pauses[turn] if turn < len(pauses) else (0.25, True, False)
            if not dead:
                step = next_step(self.over, self.slurm.scene())
                if step.do is Do.END:
                    self.outcome = step.outcome
                    return
                self.did.append(step.do)
                self.slurm.do(step, self.over)
            self.slurm.pass_time(pause_s, scheduler)
        raise AssertionError(f"it does not end: {self.did[-5:]} {self.slurm}")

    def assert_tidy(self) -> None:
        slurm = self.slurm
        assert slurm.fence_end_s <= slurm.now_s
        assert slurm.guest is None or not slurm.guest.pinned or slurm.guest.state is None
        assert not slurm.job.pinned or slurm.job.state in (None, WAITING)


def intended(guest: str = "", saved_s: float = 1000.0) -> HandOver:
    shape = OLD if guest else NEW
    return HandOver("7", 0, shape, 990.0, 1100.0, saved_s, guest)


def test_a_resize_from_its_checkpoint_to_its_next_run() -> None:
    drill = Drill(FakeSlurm(), intended())
    drill.run()
    assert drill.outcome is Outcome.DONE
    assert [do for do in drill.did if do not in IDLE] == [
        *(Do.PIN, Do.FENCE, Do.REQUEUE, Do.RESHAPE, Do.UNFENCE, Do.RELEASE)
    ]
    slurm = drill.slurm
    assert (slurm.job.state, slurm.job.carries, slurm.job.run) == (RUNNING, NEW, 1)
    assert slurm.x is WAITING
    drill.assert_tidy()


@pytest.mark.parametrize("x", [WAITING, ENDING])
def test_a_run_that_is_killed_in_place_of_the_one_before_is_requeued(x: JobState) -> None:
    slurm = FakeSlurm(x=x)
    drill = Drill(slurm, intended())
    while slurm.job.state is not RUNNING or slurm.job.run == 0 or slurm.job.pinned:
        slurm.do(next_step(drill.over, slurm.scene()), drill.over)
        slurm.pass_time(0.25, scheduler=True)
    slurm.job = replace(slurm.job, state=None, killed=True)
    drill.run()
    assert (slurm.job.run, slurm.job.carries) == (2, NEW)
    if x is WAITING:  # it started as soon as the job had failed
        assert (drill.outcome, slurm.job.state) == (Outcome.SLOW, WAITING)
        assert slurm.job.pinned  # it is the next to start
    else:
        assert (drill.outcome, slurm.job.state) == (Outcome.DONE, RUNNING)
        assert slurm.now_s >= slurm.job.started_s + SETTLE_S
    drill.assert_tidy()


@pytest.mark.parametrize(("failing", "runs"), [(2, 3), (1000, STARTS + 1)])
def test_a_job_whose_starts_fail_again_and_again_is_left_to_the_queue(
    failing: int, runs: int
) -> None:
    """As measured on Slurm 22.05, where PrologSlurmctld failed: 26 starts in 25 s."""
    slurm = FakeSlurm(x=ENDING, failing=failing)
    drill = Drill(slurm, intended())
    drill.run()
    ends = Outcome.DONE if failing < STARTS else Outcome.NOT_LAUNCHED
    assert (drill.outcome, slurm.job.run) == (ends, runs)
    drill.assert_tidy()


@pytest.mark.parametrize("guest", [None, Sight(WAITING, priority=500, carries=OLD)])
@pytest.mark.parametrize("after", range(6))
def test_a_pin_that_was_forgotten_by_a_slurm_that_was_killed_is_set_again(
    after: int, guest: Sight | None
) -> None:
    slurm = FakeSlurm(guest=guest)
    drill = Drill(slurm, intended(guest="8" if guest else ""))
    for _ in range(after):
        slurm.do(next_step(drill.over, slurm.scene()), drill.over)
        slurm.pass_time(1.0, scheduler=True)
    slurm.job = replace(slurm.job, priority=10)
    drill.run()
    assert (drill.outcome, slurm.x) == (Outcome.DONE, WAITING)
    assert slurm.job.pinned is bool(guest)


def test_where_pliantds_clock_is_ahead_its_fence_stands_until_the_job_may_begin() -> None:
    drill = Drill(FakeSlurm(ahead_s=30.0), intended())
    drill.run()
    assert (drill.outcome, drill.slurm.x) == (Outcome.DONE, WAITING)
    assert [do for do in drill.did if do not in IDLE] == [
        *(Do.PIN, Do.FENCE, Do.REQUEUE, Do.RESHAPE, Do.UNFENCE, Do.RELEASE)
    ]


@pytest.mark.parametrize(("fresh_s", "later_s"), [(0.0, 1), (990.0, 1), (1001.0, 5), (1009.0, 5)])
def test_where_a_slurmd_has_just_started_the_job_begins_later(
    fresh_s: float, later_s: float
) -> None:
    slurm = FakeSlurm(job=Sight(RUNNING, priority=10, carries=OLD, fresh_s=fresh_s))
    drill = Drill(slurm, intended())
    drill.run()
    assert (drill.outcome, slurm.x) == (Outcome.DONE, WAITING)
    assert slurm.job.started_s == slurm.job.queued_s + later_s
    assert drill.did.count(Do.RESHAPE) == 1


def test_nothing_is_done_before_the_checkpoint_is_reported() -> None:
    drill = Drill(FakeSlurm(), intended(saved_s=0.0))
    drill.run()
    assert (drill.outcome, set(drill.did)) == (Outcome.NOT_SAVED, {Do.WAIT})
    assert drill.slurm.job == FakeSlurm().job


PAUSES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 1.0, 40.0]), st.booleans(), st.booleans()), max_size=40
)


@settings(max_examples=300)
@given(PAUSES, st.floats(0, 0.999), st.sampled_from([0.1, 2.0, 30.0]))
@example([(0.0, True, False)] * 5 + [(200.0, True, True)], 0.5, 2.0)
def test_killed_at_any_step_for_any_time_it_ends_and_leaves_nothing_behind(
    pauses: list[tuple[float, bool, bool]], phase_s: float, cleaned_s: float
) -> None:
    drill = Drill(FakeSlurm(1000.0 + phase_s, cleaned_s=cleaned_s), intended())
    drill.run(pauses)
    late = drill.outcome is Outcome.AS_WAS  # it came back by itself while pliantd was dead
    assert drill.outcome in (Outcome.DONE, Outcome.SLOW) or late
    assert not late or drill.slurm.job.carries == OLD
    assert drill.slurm.job.state in (RUNNING, WAITING)
    drill.assert_tidy()


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.25, 1.0]), st.booleans(), st.just(False))),
    st.floats(0, 0.999),
    st.sampled_from([0.1, 2.0, 90.0]),
)
def test_nobody_slips_in_while_pliantd_lives(
    pauses: list[tuple[float, bool, bool]], phase_s: float, cleaned_s: float
) -> None:
    drill = Drill(FakeSlurm(1000.0 + phase_s, cleaned_s=cleaned_s), intended())
    drill.run(pauses)
    assert (drill.outcome, drill.slurm.x) == (Outcome.DONE, WAITING)


def test_a_fence_is_renewed_for_as_long_as_the_run_before_takes_to_end() -> None:
    """A program that ignores TERM, or an epilogue, keeps a job COMPLETING for minutes."""
    drill = Drill(FakeSlurm(cleaned_s=3 * FENCE_S), intended())
    drill.run()
    assert (drill.outcome, drill.slurm.x) == (Outcome.DONE, WAITING)
    assert drill.did.count(Do.RENEW) >= 3


def test_a_job_whose_run_never_ends_is_left_to_the_queue_and_its_nodes_to_all() -> None:
    """Its node is down, or its epilogue hangs: no fence stands for ever."""
    drill = Drill(FakeSlurm(cleaned_s=10 * GIVE_UP_S), intended())
    drill.run()
    slurm = drill.slurm
    assert (drill.outcome, slurm.job.state, slurm.fence_end_s) == (Outcome.SLOW, ENDING, 0.0)
    assert GIVE_UP_S < slurm.now_s - drill.over.saved_s < GIVE_UP_S + 1


@given(PAUSES, st.integers(0, 20), st.sampled_from(["hold", "cancel", "end"]))
def test_an_owner_who_acts_meanwhile_wins(
    pauses: list[tuple[float, bool, bool]], after: int, what: str
) -> None:
    slurm = FakeSlurm()
    drill = Drill(slurm, intended())
    for pause_s, scheduler, dead in [*pauses[:after], (0.25, True, False)]:
        if not dead:
            slurm.do(next_step(drill.over, slurm.scene()), drill.over)
        slurm.pass_time(pause_s, scheduler)
    held = what == "hold" and slurm.job.state is WAITING
    slurm.job = (
        replace(slurm.job, held=True, priority=0) if held else replace(slurm.job, state=None)
    )
    drill.run()
    assert drill.outcome is (Outcome.HELD if held else Outcome.GONE)
    assert slurm.job.state is (WAITING if held else None)
    drill.assert_tidy()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_job_that_is_suspended_keeps_its_place_until_it_may_go_on(after: int) -> None:
    """Slurm gives it the priority 0 of a job that is held, and its own when it is resumed."""
    drill = Drill(FakeSlurm(), intended())
    slurm = drill.slurm
    for _ in range(after):
        slurm.do(next_step(drill.over, slurm.scene()), drill.over)
    assert slurm.job.state is RUNNING
    own = slurm.job.priority if not slurm.job.pinned else 1
    slurm.job = replace(slurm.job, held=True, suspended=True, priority=0)
    for _ in range(30):
        assert next_step(drill.over, slurm.scene()).do is Do.SETTLE
        slurm.pass_time(1.0, scheduler=True)
    slurm.job = replace(slurm.job, held=False, suspended=False, priority=own)
    drill.run()
    assert drill.outcome is Outcome.DONE
    drill.assert_tidy()


@given(st.integers(0, 4), st.booleans())
def test_a_job_that_is_held_while_it_runs_stays_held(after: int, before_saved: bool) -> None:
    slurm = FakeSlurm()
    drill = Drill(slurm, intended(saved_s=0.0 if before_saved else 1000.0))
    for _ in range(after):
        slurm.do(next_step(drill.over, slurm.scene()), drill.over)
    if slurm.job.state is not RUNNING:
        return
    slurm.job = replace(slurm.job, held=True, priority=0)
    drill.run()
    assert (drill.outcome, slurm.job.held) == (Outcome.HELD, True)
    assert slurm.job.state is (RUNNING if before_saved else ENDING)
    drill.assert_tidy()


@given(PAUSES, st.integers(0, 20))
def test_a_job_that_is_changed_while_it_waits_goes_on_as_it_says_without_its_pin(
    pauses: list[tuple[float, bool, bool]], after: int
) -> None:
    slurm = FakeSlurm()
    drill = Drill(slurm, intended())
    for pause_s, scheduler, dead in [*pauses[:after], (0.25, True, False)]:
        if not dead:
            slurm.do(next_step(drill.over, slurm.scene()), drill.over)
        slurm.pass_time(pause_s, scheduler)
    if slurm.job.state is not WAITING:
        return
    slurm.job = replace(slurm.job, changed=True, carries=Shape(1, 3), begins_s=5000.0)
    drill.did.clear()
    drill.run()
    assert drill.outcome is Outcome.CHANGED
    assert Do.RESHAPE not in drill.did
    assert (slurm.job.carries, slurm.job.begins_s) == (Shape(1, 3), 5000.0)
    assert not slurm.job.pinned
    drill.assert_tidy()


def test_a_job_that_is_held_once_it_has_started_again_is_done() -> None:
    drill = Drill(FakeSlurm(job=Sight(RUNNING, run=1, priority=0, held=True)), intended())
    drill.run()
    assert (drill.outcome, drill.did) == (Outcome.DONE, [])


@settings(max_examples=200)
@given(PAUSES, st.floats(0, 0.999))
def test_a_guest_gets_the_room_that_was_made_for_it(
    pauses: list[tuple[float, bool, bool]], phase_s: float
) -> None:
    alive = [(pause_s % 2, scheduler, False) for pause_s, scheduler, _ in pauses]
    slurm = FakeSlurm(1000.0 + phase_s, guest=Sight(WAITING, priority=500, carries=OLD))
    drill = Drill(slurm, intended(guest="8"))
    drill.run(alive)
    assert drill.outcome is Outcome.DONE
    assert slurm.guest is not None
    assert (slurm.guest.state, slurm.x, slurm.job.state) == (RUNNING, WAITING, WAITING)
    assert slurm.job.pinned  # it is the next to start
    drill.assert_tidy()


@pytest.mark.parametrize(("after_s", "does"), [(2.0, Do.SETTLE), (FRESH_S + 1, Do.END)])
def test_a_victim_is_looked_after_for_as_long_as_a_kill_of_before_may_meet_its_start(
    after_s: float, does: Do
) -> None:
    """Its guest may end at once."""
    waits = Sight(WAITING, run=1, priority=PINNED, carries=OLD, queued_s=1001.0, begins_s=1002.0)
    scene = Scene(1001.0 + after_s, waits, Sight(None))
    assert next_step(intended(guest="8"), scene).do is does
    killed = replace(scene, job=replace(waits, state=None, killed=True))
    assert next_step(intended(guest="8"), killed).do is Do.REQUEUE


def test_a_guest_that_cannot_start_keeps_no_pin_once_the_victim_runs_again() -> None:
    guest = Sight(WAITING, priority=PINNED + 1, carries=OLD)  # the batch system requeued it
    slurm = FakeSlurm(job=Sight(RUNNING, run=1, priority=PINNED, carries=OLD), guest=guest)
    drill = Drill(slurm, intended(guest="8"))
    drill.run()
    assert drill.did == [Do.RELEASE_GUEST, Do.RELEASE]
    assert drill.outcome is Outcome.DONE
    drill.assert_tidy()


def test_a_guest_that_is_cancelled_leaves_the_room_to_the_victim() -> None:
    slurm = FakeSlurm(guest=Sight(None))
    drill = Drill(slurm, intended(guest="8"))
    drill.run()
    slurm.pass_time(1.0, scheduler=True)
    assert slurm.job.state is RUNNING


@pytest.mark.parametrize("priority", [4_294_901_760, 4_000_000_000, 4_294_967_293])
def test_a_priority_that_is_not_ours_is_no_pin_however_high(priority: int) -> None:
    over = HandOver("7", 0, NEW, 0.0, 60.0, saved_s=1.0)
    runs = Scene(2.0, Sight(RUNNING, priority=priority, carries=OLD))
    assert next_step(over, runs).do is Do.PIN
    over = HandOver("7", 0, NEW, 0.0, 60.0, saved_s=1.0)
    again = Scene(9.0, Sight(RUNNING, run=1, priority=priority, carries=NEW))
    assert next_step(over, again) == Step(Do.END, outcome=Outcome.DONE)


def test_a_job_that_the_batch_system_requeues_itself_keeps_its_place_once_it_has_saved() -> None:
    slurm = FakeSlurm()
    over = HandOver("7", 0, NEW, slurm.now_s, slurm.now_s + 60, saved_s=slurm.now_s)
    slurm._queue_again()  # its node failed before there was a fence
    for _ in range(60):
        step = next_step(over, slurm.scene())
        if step.do is Do.END:
            break
        slurm.do(step, over)
        slurm.pass_time(0.1, scheduler=True)
    assert (slurm.job.state, slurm.job.carries, slurm.x) == (RUNNING, NEW, WAITING)


@pytest.mark.parametrize(
    ("hindered_s", "barred", "now_s", "goes_on"),
    [
        (0.0, False, 2000.0, False),
        (1000.0, False, 1000.0 + REFUSED_S - 1, False),
        (1000.0, False, 1000.0 + REFUSED_S, True),
        (1000.0, True, 1000.0, True),
    ],
)
def test_it_goes_on_without_what_is_refused_for_ten_seconds_or_for_good(
    hindered_s: float, barred: bool, now_s: float, goes_on: bool
) -> None:
    over = replace(intended(), hindered_s=hindered_s, barred=barred)
    assert over.is_hindered(now_s) is goes_on


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
    return Scene(now_s, replace(job, blocked=blocked), None, fence_end_s)


@pytest.mark.parametrize(
    ("now_s", "for_good", "do"),
    [(1002.5, True, Do.TURN_BACK), (1011.5, False, Do.RESHAPE), (1012.0, False, Do.TURN_BACK)],
)
def test_a_refused_reshape_turns_back_at_once_or_after_ten_seconds(
    now_s: float, for_good: bool, do: Do
) -> None:
    over = replace(turned(), for_good=for_good)
    assert next_step(over, waits(now_s, OLD, fence_end_s=1120.0)).do is do


@pytest.mark.parametrize(
    ("now_s", "blocked", "shape", "do"),
    [
        (1007.0, "QOSMaxGRESPerJob", NEW, Do.WAIT),
        (1007.5, "QOSMaxGRESPerJob", NEW, Do.TURN_BACK),
        (1012.0, "", Shape(1, 8), Do.WAIT),
        (1012.5, "", Shape(1, 8), Do.TURN_BACK),  # as it was there may be room
        (1012.5, "", NEW, Do.END),  # as it was there would be none either
    ],
)
def test_a_shape_that_is_taken_and_not_started_turns_back(
    now_s: float, blocked: str, shape: Shape, do: Do
) -> None:
    over = turned("", shape=shape)
    assert next_step(over, waits(now_s, shape, fence_end_s=0.0, blocked=blocked)).do is do


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
