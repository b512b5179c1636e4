"""Hand-overs under way: one for each job, stored before they begin, gone on with after a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from slurm_hands import NOW_S, Hands, begun

from pliant.batch.slurm import Commands
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.standing import ROUNDED_S
from pliant.batch.snapshot_file import read_job
from pliant.daemon.elastic import LEFT
from pliant.daemon.handing import (
    AGAIN_S,
    HEARD_S,
    ONCE_MORE_S,
    PLACELESS_S,
    QUICK_S,
    REST_S,
    SLOW_S,
    STALE_S,
    UNHEARD_S,
    HandOvers,
    Wanted,
    _with_room,
    name_of,
)
from pliant.errors import Closed, Infeasible, Refused, Unavailable
from pliant.grammar import parse, put_token
from pliant.handover import (
    FRESH_S,
    GIVE_UP_S,
    OURS,
    PINNED,
    PUT_BACK_S,
    REFUSED_S,
    Do,
    HandOver,
    Outcome,
    Scene,
    Sight,
    Step,
)
from pliant.model import Job, JobState, Malleable, Request, Shape, Spec
from pliant.node.core import SILENT_S
from pliant.node.door import MOST_S, REPORT_S
from pliant.store import HandOverRow, Store
from pliant.wire.runs import TAKE_OVER_S
from prove.fake_slurm import KILLED, REQUEUE_S, FakeSlurm, Record
from prove.on_slurm import OnSlurm
from prove.world import GUEST, JOB, NEW, OLD, RIVAL, SPEC

ASKED = Hands(begun()).running()
"""The job as it is asked."""


class Bench:
    """Hand-overs on the fake, with a clock that is the fake's."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.back_s, self.room = directory, 0.0, True
        self.places: Callable[[Wanted], bool] = lambda _wanted: True
        self.ends: list[tuple[str, Outcome]] = []
        self.made_room: list[str] = []
        self.told: list[str] = []
        self.on(begun())

    def on(self, slurm: FakeSlurm) -> None:
        """Start on another Slurm."""
        self.hands = Hands(slurm)
        self.asked = self.hands.running()
        self.start()

    def start(self) -> None:
        """As after a kill: only the store and the fake are left."""
        self.says, self.talks = "", False
        self.store = Store(self.directory)
        self.overs = HandOvers(
            *(self.hands, self.store, self.hands.clock, self._monotonic),
            ended=self._ended,
            changed=self.told.append,
            has_place=lambda _job, wanted: self.room and self.places(wanted),
        )

    def _ended(self, job: Job, guest: str, outcome: Outcome, _told: str) -> None:
        self.ends.append((job.id, outcome))
        if outcome in LEFT:
            self.made_room.append(guest)

    def _monotonic(self) -> float:
        return self.hands.clock() + self.back_s

    @property
    def did(self) -> list[Do]:
        return [do for _, do in self.hands.did]

    @property
    def is_pinned(self) -> bool:
        return self.hands.job.priority in OURS

    def set_back(self, by_s: float) -> None:
        """Set the clocks of all hosts back."""
        job = self.hands.job
        self.hands.has(cleaned_s=job.cleaned_s - by_s, killed_s=job.killed_s - by_s)
        self.hands.fake.now_s -= by_s
        self.back_s += by_s

    @property
    def under_way(self) -> HandOver:
        over = self.overs.of("7")
        assert over is not None
        return over

    def begin(self, guest: str = "") -> bool:
        until_s = self.hands.clock() + 60
        wanted = Wanted(NEW, ("n1",), guest)
        return self.overs.begin(self.asked, wanted, until_s, "it fits better")

    def save(self) -> bool:
        """Let the program save; its `pliant run` says so every 4 s, until :meth:`start`."""
        self.says = name_of(self.under_way)
        return self.overs.saved("7", 0, self.says)

    def go_on(self, turns: int = 100) -> None:
        for turn in range(turns):
            if self.talks and turn % 8 == 0:
                self.overs.spoke("7")
            if self.says and turn % 8 == 0 and self.overs.of("7") and self.hands.job.run == 0:
                self.overs.saved("7", 0, self.says)
            self.overs.turn()
            self.hands.pass_time(0.5)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_a_checkpoint_that_was_asked_for_leads_to_the_other_shape(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pliant.handing")
    assert bench.begin()
    bench.go_on(3)
    assert bench.hands.job.run == 0  # nothing before the checkpoint
    assert bench.save()
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, job.run, bench.ends) == ("RUNNING", 2, 1, [("7", "done")])
    (row,) = bench.store.handovers("7")
    assert (row.before, row.after, row.outcome) == ("4", "2", "done")
    assert (row.guest, row.guest_asks) == ("", "")
    assert 1000.0 <= row.at_s <= row.saved_s <= row.done_s
    steps = ("pin", "fence", "requeue", "reshape", "unfence", "release", "done")
    assert caplog.messages == [f"job 7: {words}" for words in ("to 2: it fits better", *steps)]


def test_one_job_makes_room_for_a_guest(bench: Bench) -> None:
    bench.begin(guest="8")
    other, until_s = replace(bench.asked, id="9"), bench.hands.clock() + 60
    assert not bench.overs.begin(other, Wanted(OLD, ("n2",), "8"), until_s, "for 8")
    assert bench.overs.begin(other, Wanted(OLD, ("n2",), "10"), until_s, "for 10")
    bench.overs._end(bench.overs._active["9"], Outcome.NOT_SAVED)
    bench.overs._end(bench.overs._active["7"], Outcome.NOT_SAVED)
    assert bench.overs.begin(other, Wanted(OLD, ("n2",), "8"), until_s, "for 8")


def test_a_checkpoint_that_comes_late_makes_no_room_where_another_job_does(bench: Bench) -> None:
    bench.begin(guest="8")
    name = name_of(bench.under_way)
    bench.overs.withdraw("7")
    bench.go_on(3)
    other, until_s = replace(bench.asked, id="9"), bench.hands.clock() + 60
    assert bench.overs.begin(other, Wanted(OLD, ("n2",), "8"), until_s, "for 8")
    assert bench.overs.saved_late(ASKED, 0, name)
    assert (bench.overs.of("7"), bench.overs.stays("7", 0, name)) == (None, True)
    bench.overs._end(bench.overs._active["9"], Outcome.NOT_SAVED)
    assert not bench.begin()  # it has just saved for nothing
    bench.hands.pass_time(REST_S, scheduler=False)
    assert bench.begin()


def test_what_is_noted_of_a_step_stays_whatever_is_done_next(bench: Bench) -> None:
    """Since when its guest has no pin, and when it was told to begin."""
    bench.on(begun(guest=True))
    bench.begin(guest=str(GUEST))
    active = bench.overs._active["7"]
    active.over, active.unpinned_s = replace(active.over, told_s=NOW_S + 2), NOW_S
    scene = bench.hands.scene(active.over, active.job)
    bench.overs._do(active, Step(Do.PIN), scene)
    assert (active.over.told_s, active.unpinned_s) == (NOW_S + 2, NOW_S)
    bench.overs._do(active, Step(Do.PIN_GUEST), scene)
    assert (active.over.told_s, active.unpinned_s) == (NOW_S + 2, 0.0)


@pytest.mark.parametrize("waits", [True, False])
def test_what_a_guest_asks_counts_as_long_as_it_waits(bench: Bench, *, waits: bool) -> None:
    """By what it asks it is told which nodes are kept for others."""
    bench.on(begun(guest=True))
    until_s, asks = bench.hands.clock() + 60, replace(ASKED, id=str(GUEST))
    bench.overs.begin(bench.asked, Wanted(NEW, ("n1",), str(GUEST), asks=asks), until_s, "for it")
    if not waits:
        bench.hands.fake.cancel(GUEST)
    active, kept = bench.overs._active["7"], Mock(return_value=frozenset())
    cast("Any", bench.overs)._kept = kept
    bench.overs._aside(active, bench.hands.scene(active.over, active.job))
    ((_, wanted), _), *_ = kept.call_args_list
    assert (wanted.guest, wanted.asks) == ((str(GUEST), asks) if waits else ("", None))


def test_since_when_the_room_of_a_guest_is_there(bench: Bench) -> None:
    bench.begin(guest="8")
    waits, runs = JobState.WAITING, JobState.RUNNING

    def room_s(now_s: float, fence_end_s: float = 0.0, **sight: Any) -> float:
        scene = Scene(now_s, Sight(**sight), fence_end_s=fence_end_s)
        return _with_room(bench.overs._active["7"], scene).room_s

    assert [room_s(now_s, state=runs) for now_s in (999.0, 1000.0)] == [999.0, 1000.0]
    assert room_s(1001.0, state=JobState.ENDING, run=1) == 1001.0  # counted from its requeue on
    assert room_s(1002.0, state=waits, begins_s=1003.0) == 1002.0
    assert room_s(1003.0, 1100.0, state=waits, begins_s=1003.0) == 1003.0
    assert room_s(1004.0, state=waits, begins_s=1003.0) == 1003.0
    assert room_s(1005.0, state=runs, run=1) == 1003.0
    bench.start()
    bench.overs.resume([ASKED])
    assert room_s(1006.0, state=waits) == 1006.0  # it is seen for the first time
    assert room_s(1007.0, state=waits) == 1006.0


def test_who_has_no_guest_waits_for_no_room(bench: Bench) -> None:
    bench.begin()
    scene = Scene(1000.0, Sight(state=JobState.WAITING), fence_end_s=1100.0)
    assert _with_room(bench.overs._active["7"], scene) == scene


def test_the_batch_system_is_ready_before_a_program_that_has_saved_is_answered(
    bench: Bench,
) -> None:
    bench.begin()
    bench.go_on(3)
    assert bench.hands.ends == []
    assert bench.save()
    assert bench.save()  # it is said until it is heard
    assert bench.hands.ends == [("7", [])]  # once, and before any step


def test_it_is_ready_too_where_pliantd_was_killed_once_it_had_noted_the_checkpoint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.begin()
    bench.go_on(3)
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(bench.hands, "before_end", Mock(side_effect=KeyboardInterrupt))
        bench.save()
    bench.store.close()
    bench.start()
    bench.overs.resume([ASKED])
    assert bench.save()
    assert bench.hands.ends == [("7", [])]


@pytest.mark.parametrize("turns", range(14))
def test_a_clock_that_is_set_back_stops_no_hand_over(bench: Bench, turns: int) -> None:
    bench.begin()
    bench.save()
    bench.go_on(turns)
    bench.set_back(900.0)
    bench.go_on()
    job, ((_, outcome),) = bench.hands.job, bench.ends
    assert bench.hands.fence_end_s == 0.0
    if job.state == "RUNNING":
        assert (job.gpus, bench.is_pinned, outcome) == (2, False, Outcome.DONE)
    else:  # it may begin in a while, by that clock: Slurm says when, and nobody is kept out for it
        assert (job.waits, outcome) == (True, Outcome.SLOW)


def wakes(bench: Bench, do: Callable[[], object]) -> bool:
    """Whether the thread that does the steps is told that one may be due sooner."""
    woken: list[Job] = []
    bench.overs.woken = lambda: woken.append(ASKED)
    do()
    return woken != []


def test_whoever_does_the_steps_is_woken_where_one_is_due(bench: Bench) -> None:
    assert wakes(bench, bench.begin)
    name = name_of(bench.under_way)
    assert wakes(bench, lambda: bench.overs.withdraw("7"))
    bench.overs.turn()
    told = len(bench.told)
    assert wakes(bench, lambda: bench.overs.saved_late(ASKED, 0, name))
    assert len(bench.told) > told  # and who watches
    assert wakes(bench, lambda: fail(bench))
    bench.start()
    assert wakes(bench, lambda: bench.overs.resume([ASKED]))
    assert wakes(bench, bench.save)


def test_what_a_program_says_is_gone_on_with_at_once(bench: Bench) -> None:
    bench.begin()
    bench.overs.turn()
    bench.save()
    bench.overs.turn()
    assert bench.did == [Do.PIN]


def test_a_program_for_which_there_is_no_place_any_more_goes_on_whatever_there_is_later(
    bench: Bench,
) -> None:
    bench.begin()
    bench.room = False
    assert bench.save()
    bench.room = True
    assert bench.save()  # it is said until it is heard
    name = name_of(bench.under_way)
    assert bench.overs.stays("7", 0, name)
    assert not bench.overs.stays("7", 0, "0.1")
    bench.overs.turn()
    assert (bench.ends, bench.hands.ends) == ([("7", Outcome.STAYS)], [])
    assert bench.overs.stays("7", 0, name)
    assert not bench.overs.stays("7", 0, "0.1")
    bench.start()
    bench.hands.pass_time(1.0)
    assert bench.begin()
    assert not bench.overs.saved("7", 0, name)  # it has gone on since


def test_a_program_that_had_a_place_when_it_saved_is_handed_over_however_often_it_says_so(
    bench: Bench,
) -> None:
    bench.begin()
    bench.save()
    was = bench.under_way
    bench.hands.pass_time(1.0)
    bench.room = False
    assert bench.save()
    assert bench.under_way == was


def test_one_that_is_under_way_is_not_begun_anew_by_what_is_stored(bench: Bench) -> None:
    bench.begin()
    bench.overs.withdraw("7")
    was = bench.under_way
    bench.overs.resume([ASKED])
    assert (bench.under_way, bench.store.handovers("7")[-1].outcome) == (was, "")


OF_0_1_0 = HandOverRow(0, NOW_S, "7", "alice", "lab", 0, "4", "2", "", "it fits", NOW_S + 60)


@pytest.mark.parametrize(("there", "nodes"), [([ASKED], ASKED.nodes), ([], ())])
def test_what_0_1_0_asked_is_gone_on_with_by_what_is_seen_of_the_job(
    bench: Bench, there: list[Job], nodes: tuple[str, ...]
) -> None:
    bench.store.hand_over(OF_0_1_0)
    bench.overs.resume(there)
    assert bench.overs.all() == {"7": Wanted(NEW, nodes)}


@pytest.mark.parametrize(
    "unread", [replace(OF_0_1_0, before="?"), replace(OF_0_1_0, after="?")], ids=("before", "after")
)
def test_a_row_that_cannot_be_read_is_not_gone_on_with(bench: Bench, unread: HandOverRow) -> None:
    for there in ([ASKED], []):
        bench.store.hand_over(unread)
        bench.overs.resume(there)
        assert (bench.overs.all(), bench.store.handovers("7")[-1].outcome) == ({}, "?")


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.SLOW, Outcome.AS_WAS])
def test_of_a_job_that_is_there_it_is_known_that_it_rests_and_what_it_was_refused(
    bench: Bench, outcome: Outcome
) -> None:
    bench.begin()
    bench.room = False
    bench.save()
    bench.overs.turn()
    assert bench.overs.refused("7") == {}
    row = bench.store.hand_over(OF_0_1_0)
    bench.store.handed_over(row, NOW_S, f"{outcome}: no")
    bench.overs.forget(frozenset({"7"}))
    assert (bench.begin(), bench.overs.refused("7")) == (False, {})
    bench.overs.forget(frozenset())
    assert bench.overs.refused("7") == {NEW: "no"}
    assert bench.overs.begin(ASKED, Wanted(Shape(1, 1)), NOW_S + 60, "it fits better")


def test_a_pliantd_that_is_to_stop_does_no_step_more(bench: Bench) -> None:
    bench.begin()
    bench.save()
    bench.overs.turn()
    bench.overs.stop()
    bench.overs.turn()
    assert bench.did == [Do.PIN]


def test_nothing_is_done_of_one_that_is_waited_for(bench: Bench) -> None:
    bench.begin()
    bench.overs.turn()
    assert (bench.did, bench.hands.tried) == ([], set())


def test_what_is_refused_is_said_once_and_again_where_it_was_taken_meanwhile(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.begin()
    bench.save()
    for _ in range(2):
        bench.hands.refuses = {Do.FENCE, Do.REQUEUE}
        bench.go_on(8)
        bench.hands.refuses = set()
        bench.go_on(3)
        bench.hands.fake.state = begun().state
    assert caplog.text.count("job 7: fence: ") == 2


@pytest.mark.parametrize(("run", "name"), [(1, None), (0, "0.1")])
def test_that_another_wish_has_failed_counts_for_nothing(
    bench: Bench, run: int, name: str | None
) -> None:
    bench.begin()
    bench.save()
    was = bench.under_way
    bench.overs.failed("7", run, name or name_of(was))
    bench.overs.failed("9", 0, name_of(was))
    assert bench.under_way == was


def test_when_the_next_look_is_due(bench: Bench) -> None:
    bench.begin()
    assert bench.overs.turn() == NOW_S + SLOW_S
    bench.save()
    bench.hands.refuses = {Do.PIN}
    assert bench.overs.turn() == NOW_S + AGAIN_S
    bench.hands.pass_time(1)
    bench.hands.refuses, bench.hands.breaks = set(), [Do.PIN]
    assert bench.overs.turn() == bench.hands.clock() + AGAIN_S
    bench.hands.pass_time(1)
    bench.hands.fake.cleaning_s = 5
    while Do.REQUEUE not in bench.did:
        bench.overs.turn()
    assert bench.overs.turn() == bench.hands.clock() + QUICK_S


CHECKED = replace(SPEC.request, malleable=Malleable(30, checkpoint="ck.pt"))


@pytest.mark.parametrize(
    ("request_", "holds", "again"),
    [
        (CHECKED, False, False),
        (CHECKED, True, True),
        (SPEC.request, False, True),
        (parse("job-class=best-effort"), False, True),
        (None, False, True),
    ],
)
def test_a_program_whose_named_checkpoint_was_not_new_is_let_rest(
    bench: Bench, request_: Request | None, holds: bool, again: bool
) -> None:
    bench.asked = replace(ASKED, spec=replace(SPEC, request=request_) if request_ else None)
    bench.begin()
    if holds:
        bench.hands.has(priority=0)
    else:
        fail(bench)
    bench.overs.turn()
    assert len(bench.ends) == 1
    assert bench.begin() is again


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        (Wanted(NEW), ASKED.nodes),
        (Wanted(NEW, ("n2",)), ("n2",)),
        (Wanted(Shape(2, 1)), ()),
        (Wanted(Shape(2, 1), ("n1", "n2")), ("n1", "n2")),
    ],
)
def test_where_it_will_be_is_as_decided_or_where_it_is(
    bench: Bench, wanted: Wanted, nodes: tuple[str, ...]
) -> None:
    bench.overs.begin(ASKED, wanted, NOW_S + 60, "it fits better")
    assert bench.overs.all()["7"].nodes == nodes


@pytest.mark.parametrize("outcome", [Outcome.AS_WAS, Outcome.DONE, f"{Outcome.CHANGED}: no"])
def test_a_shape_of_which_nobody_said_why_it_was_not_given_may_be_tried(
    bench: Bench, outcome: str
) -> None:
    bench.store.handed_over(bench.store.hand_over(OF_0_1_0), NOW_S, outcome)
    assert bench.overs.refused("7") == {}


def test_in_whose_words_it_ended_is_said_only_where_that_is_why(bench: Bench) -> None:
    bench.hands.refuses = {Do.RESHAPE}
    bench.begin()
    bench.save()
    while not bench.under_way.refused:
        bench.go_on(1)
    bench.hands.has(state="RUNNING", start_s=bench.hands.fake.now_s)
    bench.go_on(20)
    (row,) = bench.store.handovers("7")
    assert row.outcome == Outcome.AS_WAS


def test_of_a_job_that_is_cancelled_once_it_turns_back_is_said_only_that_it_has_ended(
    bench: Bench,
) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True
    bench.begin()
    bench.save()
    while not bench.under_way.back_s:
        bench.go_on(1)
    bench.hands.fake.end(JOB, "CANCELLED")
    bench.go_on(3)
    (row,) = bench.store.handovers("7")
    assert row.outcome == Outcome.GONE


def test_what_hinders_a_pin_keeps_no_program_where_it_is(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.hands.refuses = {Do.PIN}
    bench.begin()
    bench.save()
    told = len(bench.told)
    bench.go_on(3)
    assert "its program goes on" not in caplog.text
    assert len(bench.told) == told


def test_a_mistake_in_one_step_ends_neither_the_thread_nor_the_hand_over(bench: Bench) -> None:
    bench.hands.breaks = [Do.FENCE, Do.RESHAPE]
    bench.begin()
    bench.save()
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (2, [("7", "done")])


def test_there_is_one_at_a_time_for_a_job(bench: Bench) -> None:
    assert bench.begin()
    assert not bench.begin()


def test_a_run_that_was_handed_over_is_not_asked_again_by_a_look_of_before(bench: Bench) -> None:
    wanted = Wanted(NEW, ("n1",))
    bench.begin()
    bench.save()
    bench.go_on()
    assert not bench.begin()
    assert len(bench.store.handovers("7")) == 1
    assert bench.overs.begin(replace(ASKED, restarts=1), wanted, 2000.0, "it fits better")
    bench.overs.forget(frozenset({"7"}))
    assert not bench.begin()


def as_it_was(bench: Bench) -> None:
    """It starts as it was, whatever came of the reshape."""
    bench.hands.has(state="RUNNING", run=1, gpus=4, start_s=bench.hands.clock())


def as_its_owner_says(bench: Bench) -> None:
    bench.hands.has(gpus=3)


def refuses(bench: Bench) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True


@pytest.mark.parametrize(
    ("happens", "outcome"),
    [
        (as_it_was, Outcome.AS_WAS),
        (as_its_owner_says, Outcome.CHANGED),
        (refuses, Outcome.REFUSED),
    ],
)
def test_nor_is_one_that_did_not_become_what_was_wanted(
    bench: Bench, happens: Callable[[Bench], None], outcome: Outcome
) -> None:
    bench.begin()
    bench.save()
    while not bench.hands.job.waits:
        bench.overs.turn()
        bench.hands.pass_time(0.5)
    happens(bench)
    bench.go_on()
    assert bench.ends == [("7", outcome)]
    assert not bench.overs.begin(ASKED, Wanted(Shape(1, 1)), NOW_S + 500, "it fits better")


def test_of_a_number_that_was_another_jobs_nothing_is_known(bench: Bench) -> None:
    bench.begin()
    bench.save()
    bench.go_on()
    bench.overs.forget(frozenset())
    assert bench.begin()


def test_a_run_that_was_not_saved_may_be_asked_again(bench: Bench) -> None:
    bench.begin()
    bench.hands.fake.pass_to(NOW_S + 61)
    bench.go_on(3)
    assert bench.begin()


def test_a_run_that_could_not_be_asked_and_is_over_is_over(bench: Bench) -> None:
    bench.begin()
    bench.overs.failed("7", 0, name_of(bench.under_way), untold=True)
    bench.hands.fake.end(JOB)
    bench.go_on(3)
    assert bench.ends == [("7", Outcome.RUN_OVER)]


def test_a_checkpoint_that_nobody_asked_for_counts_for_nothing(bench: Bench) -> None:
    assert not bench.overs.saved("7", 0, "0.1")
    bench.begin()
    assert not bench.overs.saved("7", 1, name_of(bench.overs.of("7") or pytest.fail()))
    assert not bench.overs.saved("7", 0, "0.1")
    bench.go_on(5)
    assert bench.hands.job.run == 0


def test_a_checkpoint_that_comes_late_leads_to_the_other_shape_after_all(bench: Bench) -> None:
    bench.begin()
    name = name_of(bench.overs.of("7") or pytest.fail())
    bench.hands.fake.pass_to(NOW_S + 61)
    bench.go_on(3)
    assert bench.ends == [("7", Outcome.NOT_SAVED)]
    assert not bench.overs.saved_late(ASKED, 0, "0.1")
    assert not bench.overs.saved_late(ASKED, 1, name)
    bench.start()  # another pliantd knows it too
    assert not bench.overs.saved("7", 0, name)
    assert bench.overs.saved_late(ASKED, 0, name)
    assert bench.hands.ends == [("7", [])]
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, job.run, bench.ends[1:]) == ("RUNNING", 2, 1, [("7", "done")])
    (row,) = bench.store.handovers("7")
    assert (row.outcome, row.saved_s > row.until_s) == ("done", True)
    assert not bench.overs.saved_late(ASKED, 0, name)


@pytest.mark.parametrize("given_up", [False, True])
def test_a_checkpoint_for_a_wish_that_was_given_up_does_for_the_next_one(
    bench: Bench, given_up: bool
) -> None:
    """Its program has ended, and had heard of no other: pliantd was away meanwhile."""
    bench.begin()
    name = name_of(bench.under_way)
    bench.hands.pass_time(61, scheduler=False)
    bench.go_on(3)
    assert bench.begin()
    if given_up:
        bench.hands.pass_time(61, scheduler=False)
        bench.go_on(3)
    assert not bench.overs.saved("7", 1, name)
    saves = bench.overs.saved_late if given_up else lambda job, *of: bench.overs.saved(job.id, *of)
    assert saves(ASKED, 0, name)
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, job.run, bench.ends[-1]) == ("RUNNING", 2, 1, ("7", "done"))
    assert bench.overs.begin(replace(ASKED, restarts=1), Wanted(OLD), NOW_S + 500, "it fits better")
    assert not bench.overs.saved("7", 1, name)


@pytest.mark.parametrize(("after_s", "shape"), [(STALE_S - 10, NEW), (STALE_S + 10, OLD)])
def test_a_checkpoint_of_long_after_leads_to_no_change(
    bench: Bench, after_s: float, shape: Shape
) -> None:
    bench.begin(guest=str(GUEST))
    name = name_of(bench.overs.of("7") or pytest.fail())
    bench.overs.withdraw("7")
    bench.go_on(3)
    bench.hands.pass_time(after_s, scheduler=False)
    assert bench.overs.saved_late(ASKED, 0, name)
    bench.start()  # another pliantd means the same
    bench.overs.resume([ASKED])
    (found,) = bench.overs.all().values()
    assert (found.shape, found.guest) == (shape, str(GUEST) if shape == NEW else "")
    assert bench.overs.saved("7", 0, name)  # it is said until it is heard
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.run, job.gpus) == ("RUNNING", 1, shape.gpus)


@pytest.mark.parametrize(("after_s", "nodes"), [(STALE_S - 10, ("n2",)), (STALE_S + 10, ("n1",))])
def test_one_that_comes_late_goes_to_the_nodes_that_were_chosen(
    bench: Bench, after_s: float, nodes: tuple[str, ...]
) -> None:
    """They are kept for it, too, but where it goes back to its own shape."""
    now_s = bench.hands.clock()
    assert bench.overs.begin(bench.asked, Wanted(NEW, ("n2",)), now_s + 60, "it fits better")
    name = name_of(bench.under_way)
    bench.overs.withdraw("7")
    bench.go_on(3)
    bench.hands.pass_time(after_s, scheduler=False)
    assert bench.overs.saved_late(ASKED, 0, name)
    (found,) = bench.overs.all().values()
    assert found.nodes == nodes
    bench.overs.turn()
    bench.overs.turn()
    fenced = {"n1", *nodes}
    assert {*bench.hands.fake.state.fenced["pliant_7"]} == fenced


@pytest.mark.parametrize(
    "asked",
    [ASKED, replace(ASKED, spec=None), replace(ASKED, spec=Spec(parse("job-class=best-effort")))],
    ids=["malleable", "without a request", "best-effort"],
)
def test_a_checkpoint_that_fails_leaves_the_job_as_it_is(bench: Bench, asked: Job) -> None:
    bench.asked = asked
    bench.begin()
    over = bench.overs.of("7")
    assert over is not None
    bench.overs.failed("7", 0, name_of(over))
    bench.go_on(3)
    assert bench.ends == [("7", Outcome.NOT_SAVED)]
    assert _as_it_was(bench)
    assert bench.overs.of("7") is None


def fail(bench: Bench) -> None:
    over = bench.overs.of("7")
    assert over is not None
    bench.says = ""
    bench.overs.failed("7", 0, name_of(over))


def _as_it_was(bench: Bench) -> bool:
    """Whether nothing is left of what was begun."""
    fake, was = bench.hands.fake.state, begun().state
    return (fake.jobs, {**fake.fences}) == (was.jobs, {})


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("steps", range(3))
def test_a_program_that_runs_again_after_its_checkpoint_is_not_requeued(
    bench: Bench, steps: int, killed: bool
) -> None:
    """Its `pliant run` could not have it requeued itself, nor hear that we would."""
    bench.begin()
    bench.save()
    for _ in range(steps):
        bench.overs.turn()
    fail(bench)
    if killed:
        bench.start()
        bench.overs.resume([ASKED])
        bench.hands.fake.pass_to(NOW_S + 61)  # as if it had not been saved in time
    bench.go_on(5)
    assert _as_it_was(bench)
    assert bench.ends == [("7", Outcome.NOT_SAVED)]


def begins_anew(bench: Bench) -> Record:
    """Hand it over until its next run has begun; return the job as it was before."""
    was = bench.hands.job
    bench.begin()
    bench.save()
    while bench.hands.job.run == 0 or bench.hands.job.waits:
        bench.go_on(1)
    bench.says = ""
    return was


def forgets(bench: Bench, was: Record, **more: Any) -> Job:
    """Let slurmctld be killed, and know the job as it was before its requeue."""
    bench.hands.fake.state = bench.hands.fake.state.with_job(replace(was, **more))
    bench.hands.did.clear()
    return bench.hands.running()


@pytest.mark.parametrize("turns", [4, 100])
def test_a_requeue_that_a_killed_slurmctld_forgot_is_done_once_more(
    bench: Bench, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Slurm takes the run before for running, and gives what the next one has to others."""
    was = begins_anew(bench)
    bench.go_on(turns)
    assert (bench.overs.of("7") is None) == (turns == 100)
    job = forgets(bench, was)
    if turns == 100:  # of one that is under way the next pliantd does not know that it was told
        bench.start()
        bench.overs.resume([ASKED])
    assert not bench.overs.forgotten(replace(job, restarts=1))
    assert bench.overs.forgotten(job)
    assert bench.overs.forgotten(job)  # it says so until it is ended
    assert caplog.text.count("its requeue has been forgotten") == 1
    bench.go_on()
    now = bench.hands.job
    assert (now.state, now.gpus, now.run, now.killed_s > was.killed_s) == ("RUNNING", 2, 1, True)
    assert (bench.ends[-1], bench.is_pinned) == (("7", Outcome.DONE), False)
    assert bench.did.count(Do.REQUEUE) == 1
    assert not bench.overs.forgotten(bench.hands.running())


def test_so_is_that_of_one_that_did_not_start_in_time_and_has_begun_since(bench: Bench) -> None:
    was = bench.hands.job
    until_made(bench)
    bench.hands.fake.bar(2, why="QOSMaxGRESPerUser")
    bench.go_on(300)
    assert [outcome for _, outcome in bench.ends] == [Outcome.SLOW]
    bench.says = ""
    assert bench.overs.forgotten(forgets(bench, was))
    bench.go_on()
    assert Do.REQUEUE in bench.did


def test_of_what_was_not_requeued_nothing_is_forgotten(bench: Bench) -> None:
    assert not bench.overs.forgotten(ASKED)
    bench.begin()
    assert not bench.overs.forgotten(ASKED)
    bench.save()
    assert not bench.overs.forgotten(ASKED)  # its number is that of the job that submitted it
    fail(bench)
    bench.go_on()
    assert bench.ends == [("7", Outcome.NOT_SAVED)]
    assert not bench.overs.forgotten(ASKED)


@pytest.mark.parametrize("why", ["long ago", "its owner changed it"])
def test_one_that_may_not_go_back_now_or_would_lose_much_is_left_alone(
    bench: Bench, why: str
) -> None:
    was = begins_anew(bench)
    if why == "its owner changed it":
        while not bench.hands.job.waits:
            bench.hands.fake.sends_back(bench.hands.job)
            bench.hands.pass_time(2, scheduler=False)
        bench.hands.fake.told(("update", "jobid=7", "Gres=gpu:3"), by_owner=True)
    bench.go_on(100)
    changed = why == "its owner changed it"
    assert bench.ends == [("7", Outcome.CHANGED if changed else Outcome.DONE)]
    job = forgets(bench, was)
    bench.hands.fake.now_s += ONCE_MORE_S if why == "long ago" else 0.0
    assert not bench.overs.begin(job, Wanted(NEW), NOW_S + 5000, "it fits better")
    assert not bench.overs.forgotten(job)
    bench.go_on()
    assert (bench.did, bench.hands.job.state) == ([], "RUNNING")
    assert bench.overs.begin(job, Wanted(NEW), NOW_S + 5000, "it fits better")  # it is as others


def test_one_that_may_not_go_back_now_does_so_later(bench: Bench) -> None:
    was = begins_anew(bench)
    bench.go_on(100)
    job, bench.room = forgets(bench, was), False
    assert bench.overs.forgotten(job)
    bench.go_on()
    assert (bench.did, bench.hands.job.state) == ([], "RUNNING")
    bench.room = True
    assert bench.overs.forgotten(job)
    bench.go_on()
    assert (bench.hands.job.state, bench.hands.job.gpus, bench.hands.job.run) == ("RUNNING", 2, 1)


def test_one_that_is_under_way_yet_goes_on_as_it_was_decided(bench: Bench) -> None:
    """Its checkpoint is as old as it is: it does not have all of its time anew."""
    was = begins_anew(bench)
    bench.go_on(4)
    job, over = forgets(bench, was), bench.under_way
    assert wakes(bench, lambda: bench.overs.forgotten(job))
    assert bench.under_way == over
    bench.go_on()
    assert (bench.hands.job.state, bench.hands.job.gpus, bench.hands.job.run) == ("RUNNING", 2, 1)


def test_one_that_0_1_0_made_goes_back_once_more_to_where_it_runs(bench: Bench) -> None:
    row = bench.store.hand_over(OF_0_1_0)
    bench.store.saved(row, NOW_S)
    bench.store.handed_over(row, NOW_S, Outcome.DONE)
    assert bench.overs.forgotten(ASKED)
    assert bench.overs.all() == {"7": Wanted(NEW, ASKED.nodes)}


def test_a_first_run_whose_requeue_was_not_answered_is_not_taken_for_the_next(bench: Bench) -> None:
    """Its number may be that of the job that submitted it."""
    bench.begin()
    bench.save()
    bench.hands.clients.away = Unavailable("no answer")
    bench.go_on(20)
    bench.hands.clients.away = None
    assert not bench.overs.forgotten(bench.hands.running())


def test_one_for_which_there_is_no_room_any_more_goes_back_as_it_is_known(bench: Bench) -> None:
    was = begins_anew(bench)
    bench.go_on(100)
    job = forgets(bench, was)
    bench.places = lambda wanted: wanted.shape == job.shape
    assert bench.overs.forgotten(job)
    bench.go_on()
    assert (bench.hands.job.state, bench.hands.job.gpus, bench.hands.job.run) == ("RUNNING", 4, 1)


def made_room(bench: Bench) -> Record:
    """Let its guest have its room, and end; return the job as it was before."""
    bench.on(begun(guest=True))
    was = bench.hands.job
    bench.begin(str(GUEST))
    bench.save()
    bench.go_on(100)
    bench.says = ""
    bench.hands.fake.end(GUEST)
    bench.go_on(100)
    return was


def test_one_that_goes_back_once_more_makes_room_only_for_a_guest_that_is_still_wanted(
    bench: Bench,
) -> None:
    """Nobody else is passed for one that is no trial job any more."""
    was = made_room(bench)
    assert bench.ends == [("7", Outcome.DONE)]
    job = forgets(bench, was)
    bench.places = lambda wanted: not wanted.guest
    assert bench.overs.forgotten(job)
    assert bench.overs.all() == {"7": Wanted(job.shape, job.nodes)}
    bench.go_on()
    assert Do.PIN_GUEST not in bench.did
    assert (bench.hands.job.state, bench.hands.job.gpus, bench.hands.job.run) == ("RUNNING", 4, 1)


def test_one_that_goes_back_once_more_makes_room_for_no_guest_that_another_job_serves(
    bench: Bench,
) -> None:
    was = made_room(bench)
    other, until_s = replace(bench.asked, id="9"), bench.hands.clock() + 60
    assert bench.overs.begin(other, Wanted(OLD, ("n2",), str(GUEST)), until_s, "it waits again")
    job = forgets(bench, was)
    assert bench.overs.forgotten(job)
    assert bench.overs.all()["7"] == Wanted(job.shape, job.nodes)


@pytest.mark.parametrize("known", [OLD, NEW])
def test_one_that_goes_back_once_more_is_not_asked_again_to_be_what_slurm_has_refused(
    bench: Bench, known: Shape
) -> None:
    """But for what it is."""
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True
    was = begins_anew(bench)
    bench.go_on(100)
    assert bench.ends == [("7", Outcome.REFUSED)]
    bench.hands.refuses = set()
    assert bench.overs.forgotten(forgets(bench, was, gpus=known.gpus, cpus=2 * known.gpus))
    assert bench.overs.all()["7"].shape == known
    bench.go_on()
    assert Do.REQUEUE in bench.did
    now = bench.hands.job
    assert (now.state, now.gpus, now.run) == ("RUNNING", known.gpus, 1)


def test_one_that_goes_back_once_more_goes_to_the_nodes_that_were_chosen(bench: Bench) -> None:
    wanted = Wanted(NEW, ("n2",))
    was = bench.hands.job
    assert bench.overs.begin(bench.asked, wanted, bench.hands.clock() + 60, "it fits better")
    bench.save()
    bench.go_on(100)
    bench.says = ""
    assert bench.overs.forgotten(forgets(bench, was))
    assert bench.overs.all() == {"7": wanted}
    while not bench.hands.fake.state.fenced:
        bench.overs.turn()
    assert {*bench.hands.fake.state.fenced["pliant_7"]} == {"n1", "n2"}


@pytest.mark.parametrize("steps", range(4))
def test_one_that_its_owner_holds_goes_on_where_it_is(bench: Bench, steps: int) -> None:
    """Nothing is saved of what it has done since: requeued it would wait, held."""
    was = begins_anew(bench)
    bench.go_on(100)
    assert bench.overs.forgotten(forgets(bench, was))
    for _ in range(steps):
        bench.overs.turn()
    bench.hands.fake.told(("hold", "7"), by_owner=True)
    bench.go_on()
    went = Do.REQUEUE in bench.did  # it had been told already
    assert (went, bench.hands.job.state) == ((steps > 2), "PENDING" if steps > 2 else "RUNNING")
    assert (bench.overs.of("7"), bench.hands.fence_end_s) == (None, 0.0)


def test_what_an_owner_asks_once_it_went_back_once_more_stands(bench: Bench) -> None:
    """Though it is as half of what it is to become would be, were that made just then."""
    was = begins_anew(bench)
    bench.go_on(100)
    job = forgets(bench, was)
    assert bench.overs.forgotten(job)
    while not (bench.hands.job.waits and bench.hands.job.gpus == 2):
        bench.overs.turn()
        bench.hands.pass_time(0.1, scheduler=False)
    bench.overs.turn()
    bench.hands.fake.told(("update", "jobid=7", "Gres=gpu:4"), by_owner=True)
    assert bench.overs.forgotten(job)  # a look of before
    bench.go_on()
    assert (bench.ends[-1], bench.hands.job.gpus) == (("7", Outcome.CHANGED), 4)


def save_later(bench: Bench) -> None:
    """Begin, and let its program save a second later."""
    bench.begin()
    bench.hands.pass_time(1)
    bench.save()


def killed(bench: Bench, for_s: float = 300.0) -> None:
    """Let pliantd be dead for so long while its hand-over is under way."""
    bench.start()
    bench.hands.pass_time(for_s)
    bench.overs.resume([ASKED])


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_pliantd_that_starts_ends_a_run_as_soon_as_its_program_says_that_it_waits(
    bench: Bench, withdrawn: bool
) -> None:
    save_later(bench)
    killed(bench)
    if withdrawn:
        bench.overs.withdraw("7")
    bench.go_on(8)
    assert bench.did == [Do.PIN, Do.FENCE]
    assert bench.save()
    bench.overs.turn()
    assert bench.did == [Do.PIN, Do.FENCE, Do.REQUEUE]
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


@pytest.mark.parametrize("says_so", [False, True])
def test_a_pliantd_that_starts_ends_no_run_whose_program_may_run_again(
    bench: Bench, says_so: bool
) -> None:
    """Slurm was away, too: its `pliant run` could not requeue it, and may not be heard of it."""
    save_later(bench)
    killed(bench)
    bench.talks = True
    bench.go_on(8)
    if says_so:
        fail(bench)
    bench.go_on(8 if says_so else 150)
    assert Do.REQUEUE not in bench.did
    assert _as_it_was(bench)
    assert bench.ends == [("7", Outcome.NOT_SAVED)]


def test_a_run_of_which_nobody_says_anything_for_a_minute_has_ended(bench: Bench) -> None:
    """Slurmctld was killed too, and has forgotten that it was told to requeue it."""
    save_later(bench)
    killed(bench)
    bench.go_on(100)
    assert Do.REQUEUE not in bench.did
    bench.go_on(100)
    assert bench.ends == [("7", Outcome.DONE)]


def test_a_job_begins_after_the_second_in_which_it_was_last_seen_to_run(bench: Bench) -> None:
    """Its node went down as its run ended: Slurm has no new SubmitTime, and revoked the start."""
    save_later(bench)
    while bench.hands.job.state == "RUNNING":
        bench.overs.turn()
    bench.overs.turn()
    bench.hands.fake.loses_its_node(bench.hands.job)
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]
    assert bench.hands.job.start_s > bench.hands.job.killed_s


@pytest.mark.parametrize(
    "by",
    [
        *("pliantd", "pliantd, slowly", "its wrapper", "its wrapper, while pliantd was dead"),
        "its wrapper, as soon as pliantd lives again",
    ],
)
def test_a_start_that_is_revoked_counts_as_none_however_long_after_its_checkpoint_it_comes(
    bench: Bench, by: str
) -> None:
    """Its node went down as its run ended, and a victim asks for what it had."""
    bench.on(begun(rival=False, guest=True))
    fake = bench.hands.fake
    fake.nodes = ("n1", "n2")
    fake.state = fake.state.with_job(replace(fake.state.jobs[GUEST], begin_s=9000.0))
    bench.begin(str(GUEST))
    bench.hands.pass_time(1)
    bench.save()
    bench.hands.refuses = {Do.REQUEUE}
    bench.go_on(20)
    bench.hands.refuses = set()
    if "slowly" in by:
        between(bench, lambda: bench.hands.pass_time(5), Do.REQUEUE)
    if by.startswith("pliantd"):
        while bench.hands.job.state == "RUNNING":
            bench.overs.turn()
            bench.hands.pass_time(0.25)
    if "again" in by:
        bench.start()
        bench.overs.resume([ASKED])
    if by.startswith("its wrapper"):
        fake.told(("requeue", "7"))
    if "dead" in by:
        bench.start()
        bench.overs.resume([ASKED])
        bench.overs.turn()
    fake.loses_its_node(bench.hands.job)
    fake.start_fails = {JOB: "1:0"}
    fake.schedule()
    assert (bench.hands.job.state, bench.hands.job.submit_s) == ("FAILED", 400.0)
    bench.says = ""
    bench.go_on()
    assert bench.hands.job.state == "RUNNING"


@pytest.mark.parametrize("there", [[], [replace(ASKED, state=JobState.WAITING, restarts=1)]])
def test_when_its_run_ended_a_pliantd_does_not_know_that_has_not_seen_it(
    bench: Bench, there: list[Job]
) -> None:
    save_later(bench)
    bench.hands.fake.told(("requeue", "7"))
    bench.start()
    bench.overs.resume(there)
    assert bench.under_way.ran_s == 0.0


@pytest.mark.parametrize(
    ("state", "restarts", "made", "ran"),
    [
        (JobState.RUNNING, 0, False, True),
        (JobState.RUNNING, 1, False, False),  # a later run: its node went down, say
        (JobState.ENDING, 1, False, True),  # by a requeue of its `pliant run`'s
        (JobState.ENDING, 2, False, False),
        (JobState.ENDING, 1, True, False),  # it was reshaped: what ends may be a later run
    ],
)
def test_one_that_is_just_started_sees_whether_that_run_runs_or_ends(
    bench: Bench, state: JobState, restarts: int, made: bool, ran: bool
) -> None:
    save_later(bench)
    bench.hands.fake.told(("requeue", "7"))
    bench.store.made(1, made)
    bench.start()
    bench.overs.resume([replace(ASKED, state=state, restarts=restarts)])
    assert bench.under_way.ran_s == (bench.hands.clock() if ran else 0.0)


def test_what_it_is_told_once_its_run_has_ended_makes_that_no_later(bench: Bench) -> None:
    save_later(bench)
    while bench.hands.job.state != "PENDING":
        bench.go_on(1)
    ended_s = bench.under_way.ran_s
    while Do.RESHAPE not in bench.did:
        bench.go_on(1)
    assert bench.under_way.ran_s == ended_s < bench.hands.clock() - 0.5


def test_a_later_run_is_not_the_one_that_is_handed_over(bench: Bench) -> None:
    """Its node went down as that ended, and it began elsewhere."""
    bench.on(begun(rival=False))
    fake = bench.hands.fake
    fake.nodes = ("n1", "n2")
    save_later(bench)
    while bench.hands.job.state == "RUNNING":
        bench.overs.turn()
        bench.hands.pass_time(0.25)
    fake.loses_its_node(bench.hands.job)
    fake.pass_to(fake.now_s + 3)  # in the second of the kill its start would be revoked
    fake.schedule()
    assert (bench.hands.job.state, bench.hands.job.run) == ("RUNNING", 1)
    ended_s = bench.under_way.ran_s
    bench.hands.pass_time(1)
    bench.overs.turn()
    assert bench.under_way.ran_s == ended_s


def test_nor_is_a_later_time_its_owners_where_the_slurmd_has_just_started(bench: Bench) -> None:
    save_later(bench)
    while bench.hands.job.state == "RUNNING":
        bench.overs.turn()
    bench.overs.turn()
    bench.hands.fake.slurmd = f"{bench.hands.fake.now_s:.0f}"
    bench.hands.fake.loses_its_node(bench.hands.job)
    bench.go_on()
    job = bench.hands.job
    assert (bench.ends, job.gpus) == ([("7", Outcome.DONE)], 2)
    assert job.begin_s == int(job.killed_s) + FRESH_S


def test_a_job_is_back_since_slurmctld_says_so_where_pliantds_clock_is_ahead(bench: Bench) -> None:
    bench.hands.fake.slurmd = f"{bench.hands.fake.now_s:.0f}"
    bench.hands.fake.ahead_s = 3.0
    save_later(bench)
    while bench.hands.job.state != "PENDING":
        bench.go_on(1)
    bench.hands.pass_time(1.0)  # the next look sees it a second later
    bench.go_on()
    job = bench.hands.job
    assert (bench.ends, job.begin_s) == ([("7", Outcome.DONE)], job.submit_s + FRESH_S)


def test_nor_does_one_that_a_pliantd_that_starts_finds_waiting_since_before_it_saved(
    bench: Bench,
) -> None:
    """It was killed as the run ended, and nobody saw that end."""
    save_later(bench)
    while bench.hands.job.state == "RUNNING":
        bench.overs.turn()
    bench.hands.fake.loses_its_node(bench.hands.job)
    killed(bench, 0.0)
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]
    assert bench.hands.job.start_s > bench.hands.job.killed_s


def test_nor_does_one_whose_end_a_pliantd_that_stood_still_has_not_seen(bench: Bench) -> None:
    """Its wrapper requeued it itself; the second in which pliantd last saw it run is long past."""
    save_later(bench)
    bench.overs.turn()
    assert bench.hands.job.state == "RUNNING"
    bench.hands.pass_time(20)
    bench.hands.fake.told(("requeue", "7"))
    bench.hands.fake.loses_its_node(bench.hands.job)
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]
    assert bench.hands.job.start_s > bench.hands.job.killed_s


def test_nor_does_a_later_run_that_ends_so(bench: Bench) -> None:
    """Its owner requeued it as soon as it ran."""
    save_later(bench)
    while bench.hands.job.run == 0 or bench.hands.job.state != "RUNNING":
        bench.go_on(1)
    bench.hands.pass_time(2)
    bench.overs.turn()
    bench.hands.fake.told(("requeue", "7"))
    bench.overs.turn()
    bench.hands.fake.loses_its_node(bench.hands.job)
    for _ in range(8):  # all within that second
        bench.overs.turn()
    assert bench.hands.fence_end_s > 0
    bench.go_on()
    assert bench.hands.job.run == 2
    assert bench.hands.job.start_s > bench.hands.job.killed_s


def test_one_that_is_silent_is_waited_for_for_a_minute(bench: Bench) -> None:
    """Whoever requeues it meanwhile finds its place kept; slurmctld is not asked all the time."""
    save_later(bench)
    killed(bench)
    bench.go_on(4)
    looks = len(bench.hands.seen)
    bench.go_on(114)
    assert len(bench.hands.seen) - looks <= 60
    assert bench.ends == []
    assert bench.hands.fence_end_s > bench.hands.clock()


def test_one_that_is_suspended_meanwhile_is_waited_for_as_long_from_then_on(bench: Bench) -> None:
    save_later(bench)
    bench.says = ""  # it stands still, too
    bench.hands.pass_time(10)
    bench.go_on(4)  # its requeue is withheld
    bench.hands.fake.told(("suspend", "7"))
    bench.go_on(200)
    bench.hands.fake.told(("resume", "7"))
    bench.go_on(100)
    assert bench.ends == []
    assert bench.save()
    bench.go_on(20)
    assert Do.REQUEUE in bench.did


@pytest.mark.parametrize(("heard_s", "waits"), [(7.0, True), (9.0, False)])
def test_one_whose_program_is_heard_no_more_is_not_requeued_either(
    bench: Bench, heard_s: float, waits: bool
) -> None:
    """Its wrapper was killed while Slurm was away: its guardian lets `pliant run` begin anew."""
    save_later(bench)
    bench.overs.turn()
    bench.overs.turn()
    assert bench.did == [Do.PIN, Do.FENCE]
    bench.hands.pass_time(14)
    assert bench.save()
    bench.hands.pass_time(heard_s)
    for _ in range(3):
        bench.overs.turn()
    assert (Do.REQUEUE in bench.did) is waits


def test_a_requeue_that_is_not_answered_comes_before_its_wrapper_acts_itself() -> None:
    assert HEARD_S + Commands().timeout_s + 1 < SILENT_S
    assert HEARD_S > REPORT_S  # else it waits for each word
    assert max(TAKE_OVER_S, MOST_S) < UNHEARD_S  # the longest silence of a watch


@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_wrapper_said_before_does_not_count_once_it_has_said_something_else(
    bench: Bench, is_late: bool
) -> None:
    """Pliantd's threads overtake each other, where the network or a user's name takes its time."""
    bench.begin()
    name = name_of(bench.under_way)
    bench.hands.pass_time(1)
    bench.overs.saved("7", 0, name, ("word", 1))
    bench.overs.failed("7", 0, name, ("word", 2))
    if is_late:
        bench.go_on(5)
        assert bench.ends == [("7", Outcome.NOT_SAVED)]
    with pytest.raises(Refused, match="has said something else since"):
        bench.overs.saved("7", 0, name, ("word", 1))
    with pytest.raises(Refused, match="has said something else since"):
        bench.overs.saved_late(ASKED, 0, name, ("word", 1))
    with pytest.raises(Refused, match="has said something else since"):
        bench.overs.failed("7", 0, name, ("word", 1))
    bench.go_on(5)
    assert _as_it_was(bench)
    said = ("another's", 1) if is_late else ("word", 3)
    took = bench.overs.saved("7", 0, name, said) or bench.overs.saved_late(ASKED, 0, name, said)
    assert took
    bench.overs.forget(frozenset())
    assert bench.overs.saved("7", 0, name, ("word", 1))


def test_one_whose_program_is_heard_again_and_again_is_requeued_however_late(bench: Bench) -> None:
    save_later(bench)
    bench.hands.idle = {Do.PIN}
    for _ in range(10):
        bench.overs.turn()
        bench.hands.pass_time(4)
        assert bench.save()
    bench.hands.idle = set()
    bench.go_on(8)
    assert Do.REQUEUE in bench.did


def test_a_pliantd_that_starts_requeues_one_of_which_nobody_was_asked(bench: Bench) -> None:
    bench.overs.begin(ASKED, Wanted(NEW), bench.hands.clock() + 60, "it fits", listens=False)
    killed(bench)
    bench.go_on(4)
    assert Do.REQUEUE in bench.did


def test_of_several_that_are_stored_of_a_job_the_last_one_is_gone_on_with(bench: Bench) -> None:
    """The end of the one before could not be stored: the disk was full."""
    bench.begin()
    (first,) = bench.store.handovers()
    asked_s = bench.hands.clock() + 5
    bench.store.hand_over(replace(first, at_s=asked_s, until_s=asked_s + 60))
    killed(bench, 10)
    assert bench.under_way.asked_s == asked_s
    assert [row.outcome for row in bench.store.handovers("7")] == ["?", ""]


def test_one_that_was_requeued_is_gone_on_with_at_once(bench: Bench) -> None:
    bench.begin()
    bench.save()
    while not bench.hands.job.waits:
        bench.overs.turn()
        bench.hands.pass_time(0.5)
    done = len(bench.hands.did)
    bench.start()
    bench.overs.resume([replace(ASKED, state=JobState.WAITING, restarts=1)])
    bench.overs.turn()
    assert len(bench.hands.did) > done


@pytest.mark.parametrize("killed", [False, True])
def test_nor_is_one_whose_checkpoint_was_for_a_wish_of_before(bench: Bench, killed: bool) -> None:
    """It has heard of that one alone."""
    bench.begin()
    name = name_of(bench.under_way)
    bench.hands.pass_time(61, scheduler=False)
    bench.go_on(3)
    assert bench.begin()
    bench.overs.failed("7", 0, name)  # that one: what it is asked for now it may save yet
    assert bench.under_way.until_s > bench.hands.clock()
    assert bench.overs.saved("7", 0, name)
    if killed:
        bench.start()
        bench.overs.resume([ASKED])
    bench.overs.failed("7", 0, name)
    bench.go_on()
    assert _as_it_was(bench)


@pytest.mark.parametrize("follows", [False, True])
def test_a_requeue_that_slurm_was_told_may_come_yet(bench: Bench, follows: bool) -> None:
    """It did not answer, say: it is told no more, and what it does is gone on with."""
    bench.begin()
    bench.save()
    bench.hands.idle = {Do.REQUEUE}
    for _ in range(3):
        bench.overs.turn()
    fail(bench)
    bench.talks = True
    bench.hands.idle = set()
    bench.go_on(10)
    assert bench.did == [Do.PIN, Do.FENCE, Do.REQUEUE]
    if follows:
        bench.hands.fake.told(("requeue", "7"))
    bench.go_on(150)
    assert bench.ends == [("7", Outcome.DONE if follows else Outcome.NOT_SAVED)]
    assert bench.did.count(Do.REQUEUE) == 1


def test_so_may_one_that_it_did_not_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.begin()
    bench.save()
    for _ in range(2):
        bench.overs.turn()
    with monkeypatch.context() as away:
        away.setattr(bench.hands, "step", Mock(side_effect=Unavailable("no answer within 10 s")))
        bench.overs.turn()
    fail(bench)
    bench.talks = True
    bench.go_on(10)
    assert bench.ends == []  # it may come yet
    bench.hands.fake.told(("requeue", "7"))
    bench.go_on(150)
    assert bench.ends == [("7", Outcome.DONE)]


def test_a_requeue_that_slurm_refused_is_taken_back(bench: Bench) -> None:
    bench.begin()
    bench.save()
    bench.hands.refuses = {Do.REQUEUE}
    for _ in range(4):
        bench.overs.turn()
    fail(bench)
    bench.go_on(5)
    assert _as_it_was(bench)
    assert bench.ends == [("7", Outcome.NOT_SAVED)]


def test_a_step_that_was_worked_out_before_the_program_spoke_is_not_done(bench: Bench) -> None:
    bench.begin()
    bench.save()
    scene = bench.hands.scene

    def seen(over: HandOver, job: Job) -> Scene:
        found = scene(over, job)
        fail(bench)
        return found

    bench.overs.turn()
    bench.overs.turn()
    bench.hands.scene = seen  # type: ignore[method-assign]  # speaks in between
    bench.overs.turn()
    assert bench.did == [Do.PIN, Do.FENCE]


def between(bench: Bench, says: Callable[[], object], what: Do) -> None:
    """Let something be so from just before the next step of a kind on."""
    does = bench.hands.step

    def done(step: Step, over: HandOver, job: Job) -> None:
        if step.do is what:
            bench.hands.step = does  # type: ignore[method-assign]  # as it was
            says()
        does(step, over, job)

    bench.hands.step = done  # type: ignore[method-assign]  # speaks in between


def test_what_its_owner_asks_between_a_look_and_a_second_reshape_stands(bench: Bench) -> None:
    """Slurm has kept the request of the first, and its own time to begin; what it had before is
    then its owner's, and not what we have left."""
    save_later(bench)
    while bench.hands.job.gpus != 2:
        bench.go_on(1)
    bench.hands.has(begin_s=bench.hands.job.submit_s + REQUEUE_S)
    between(bench, lambda: bench.hands.has(gpus=4), Do.RESHAPE)
    bench.go_on()
    (row,) = bench.store.handovers("7")
    assert (bench.hands.job.gpus, row.outcome, row.made) == (4, Outcome.CHANGED, True)


def test_once_ours_was_seen_a_time_to_begin_is_its_owners_that_could_be_slurms(
    bench: Bench,
) -> None:
    until_made(bench)
    begin_s = bench.hands.job.submit_s + REQUEUE_S
    bench.hands.has(begin_s=begin_s)
    bench.go_on()
    assert (bench.hands.job.begin_s, bench.ends) == (begin_s, [("7", Outcome.CHANGED)])


def test_a_time_to_begin_that_slurmctld_takes_late_is_ours(bench: Bench) -> None:
    """It did not answer, and somebody had deleted the fence, which is made again first."""
    bench.on(begun(rival=False))
    bench.hands.fake.slurmd = f"{bench.hands.fake.now_s:.0f}"
    save_later(bench)
    does, late = bench.hands.step, list[Callable[[], None]]()

    def unanswered(step: Step, over: HandOver, job: Job) -> None:
        if step.do is Do.RESHAPE:
            bench.hands.step = does  # type: ignore[method-assign]  # as it was
            late.append(partial(does, step, over, job))
            raise Unavailable("no answer within 10 s")
        does(step, over, job)

    bench.hands.step = unanswered  # type: ignore[method-assign]  # as slurmctld may be
    while not late:
        bench.go_on(1)
    (fence,) = bench.hands.fake.state.fences
    bench.hands.fake.told(("delete", f"ReservationName={fence}"))
    while bench.did[-1] is not Do.FENCE:
        bench.go_on(1)
    late[0]()
    assert bench.hands.job.begin_s > bench.hands.fake.now_s + ROUNDED_S
    bench.overs.turn()
    assert not bench.under_way.changed
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_what_its_owner_gives_it_back_whose_next_run_was_killed_stands(bench: Bench) -> None:
    """By a kill that was meant for the run before: it is requeued, and asks what it asked."""
    until_made(bench)
    bench.hands.fake.start_fails = {JOB: KILLED}
    bench.hands.did.clear()
    while Do.REQUEUE not in bench.did:
        bench.go_on(1)
    bench.hands.has(gpus=4, cpus=8, min_cpus=8)
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (4, [("7", Outcome.CHANGED)])


def test_what_was_made_of_a_job_is_forgotten_where_its_requeue_was(bench: Bench) -> None:
    was = bench.hands.job
    until_made(bench)
    assert bench.overs.forgotten(forgets(bench, was))
    while Do.REQUEUE not in bench.did:
        bench.overs.turn()
    (row,) = bench.store.handovers("7")
    assert not (row.made or bench.under_way.made)


def test_one_that_is_suspended_between_a_look_and_its_requeue_is_not_requeued(
    bench: Bench,
) -> None:
    """Slurm would hold it; nor was anything refused that could be given up."""
    save_later(bench)
    between(bench, lambda: bench.hands.fake.told(("suspend", "7")), Do.REQUEUE)
    bench.go_on(60)
    assert (bench.hands.job.state, bench.under_way.hindered_s) == ("SUSPENDED", 0.0)
    bench.hands.fake.told(("resume", "7"))
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_one_whose_node_fails_while_a_look_takes_long_begins_no_later(bench: Bench) -> None:
    bench.on(begun(rival=False))
    save_later(bench)
    scene = bench.hands.scene

    def seen(over: HandOver, job: Job) -> Scene:
        found = scene(over, job)
        if bench.hands.job.runs and Do.FENCE in bench.did:
            bench.hands.fake.sends_back(bench.hands.job)
            bench.hands.pass_time(2)
            bench.hands.pass_time(2)
            bench.hands.scene = scene  # type: ignore[method-assign]  # as it was
        return found

    bench.hands.scene = seen  # type: ignore[method-assign]  # speaks in between
    bench.go_on()
    job = bench.hands.job
    assert (job.run, job.begin_s) == (1, job.submit_s + 3)  # as soon as that look was over


def test_one_whose_node_fails_within_a_look_does_not_begin_in_the_second_of_its_kill(
    bench: Bench,
) -> None:
    """Slurm notes no new SubmitTime: its run ended as the node went down."""
    bench.on(begun(rival=False))
    fake, again = bench.hands.fake, bench.hands._queries.again
    fake.nodes, fake.cleaning_s = ("n1", "n2"), 30.0
    save_later(bench)
    while bench.hands.job.state != "COMPLETING":
        bench.go_on(1)
    bench.hands.pass_time(0.9 - fake.now_s % 1)  # the second passes while it looks

    def slow(ids: Sequence[str]) -> dict[str, JobRow]:
        bench.hands._queries.again = again  # type: ignore[method-assign]  # as it was
        bench.hands.pass_time(0.2)
        fake.state = replace(fake.state, down=frozenset({"n1"}))
        fake.loses_its_node(bench.hands.job)
        return again(ids)

    bench.hands._queries.again = slow  # type: ignore[assignment, method-assign]  # as slurmctld may be
    looked_s = fake.now_s
    bench.overs.turn()
    ended_s = fake.now_s
    bench.go_on()
    assert (int(looked_s) + 1, bench.hands.job.run) == (int(ended_s), 1)
    assert bench.hands.job.begin_s > int(ended_s)


def test_nor_is_it_given_up_for_its_time_where_its_program_has_saved_meanwhile(
    bench: Bench,
) -> None:
    bench.begin()
    bench.hands.pass_time(100)
    scene = bench.hands.scene

    def seen(over: HandOver, job: Job) -> Scene:
        found = scene(over, job)
        bench.hands.scene = scene  # type: ignore[method-assign]  # as it was
        bench.save()
        return found

    bench.hands.scene = seen  # type: ignore[method-assign]  # speaks in between
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_a_start_that_came_to_nothing_is_no_change_of_anybodys(bench: Bench) -> None:
    """PBS shows one that pbs_mom, just killed, has not taken as any other run."""
    bench.begin()
    bench.save()
    sight = Sight(JobState.RUNNING, 1, carries=NEW, started_s=NOW_S, changed=True)
    scene = Scene(NOW_S, sight)
    bench.hands.scene = lambda *_: scene  # type: ignore[method-assign]  # such a run is PBS's alone
    bench.overs.turn()
    assert not bench.under_way.changed
    scene = replace(scene, job=replace(sight, state=JobState.WAITING))
    bench.go_on(5)
    assert bench.ends == [("7", Outcome.CHANGED)]


@pytest.mark.parametrize("killed_after", range(10))
def test_a_restart_goes_on_where_it_was(bench: Bench, killed_after: int) -> None:
    bench.begin()
    bench.save()
    for _ in range(killed_after):
        bench.overs.turn()
    bench.start()
    bench.overs.resume([ASKED])
    bench.save()
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, bench.hands.rival) == ("RUNNING", 2, "PENDING")
    assert (bench.hands.fence_end_s, bench.is_pinned) == (0.0, False)


def test_whom_others_are_kept_from_is_asked_before_it_may_start(bench: Bench) -> None:
    asked: list[Wanted] = []

    def kept(_job: Job, wanted: Wanted) -> frozenset[str]:
        asked.append(wanted)
        return frozenset({"n2"})

    cast("Any", bench.overs)._kept = kept
    bench.hands.fake.nodes = ("n2", "n1")  # Slurm's choice, were it free to
    bench.begin()
    bench.save()
    bench.go_on()
    assert asked == [Wanted(NEW, ("n1",))]  # and not what Slurm plans because of its own fence
    assert (bench.hands.job.on, bench.ends) == (("n1",), [("7", Outcome.DONE)])
    assert bench.hands.fence_end_s == 0.0


def test_one_that_turns_back_is_not_kept_from_what_it_had(bench: Bench) -> None:
    asked: list[Wanted] = []

    def kept(_job: Job, wanted: Wanted) -> frozenset[str]:
        asked.append(wanted)
        return frozenset()

    cast("Any", bench.overs)._kept = kept
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True
    assert bench.overs.begin(
        bench.asked, Wanted(NEW, ("n2",)), bench.hands.clock() + 60, "it moves"
    )
    bench.save()
    bench.go_on()
    assert asked == [Wanted(NEW, ("n2",)), Wanted(OLD)]


@pytest.mark.parametrize("no_guest", [True, False])
def test_a_guest_is_kept_from_what_others_wait_for_and_then_its_victim(
    bench: Bench, *, no_guest: bool
) -> None:
    bench.on(begun(guest=True))
    asked: list[str] = []

    def kept(_job: Job, wanted: Wanted) -> frozenset[str]:
        asked.append(wanted.guest)
        return frozenset()

    cast("Any", bench.overs)._kept = kept
    bench.hands.refuses, bench.hands.for_good = {Do.PIN_GUEST} if no_guest else set(), True
    bench.begin(str(GUEST))
    bench.save()
    bench.go_on()
    assert asked == [str(GUEST), *([""] if no_guest else [])]


def test_a_refused_step_is_tried_again(bench: Bench) -> None:
    bench.hands.refuses = {Do.FENCE}
    bench.begin()
    bench.save()
    bench.go_on(10)
    assert (bench.hands.job.state, bench.hands.job.run) == ("RUNNING", 0)
    bench.hands.refuses = set()
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


PLACE_REFUSED = pytest.mark.parametrize(
    ("refuses", "fence_end_s"),
    [
        ({Do.PIN}, 0.0),
        ({Do.FENCE}, 0.0),
        ({Do.PIN, Do.FENCE}, 0.0),
        ({Do.RENEW}, 1040.0),  # one of an earlier pliantd's
    ],
)


@PLACE_REFUSED
@pytest.mark.parametrize("for_good", [True, False])
def test_a_job_whose_place_cannot_be_kept_goes_on_where_it_is(
    bench: Bench, refuses: set[Do], fence_end_s: float, *, for_good: bool
) -> None:
    """Requeued without pin and fence it would wait behind whoever started there."""
    if fence_end_s:
        bench.hands.fence("7", fence_end_s)
    bench.hands.refuses, bench.hands.for_good = refuses, for_good
    bench.begin()
    bench.save()
    until_it_stays(bench)
    assert bench.hands.clock() - NOW_S <= (1 if for_good else 12)
    bench.go_on()
    assert (bench.hands.job.state, bench.hands.job.run, bench.is_pinned) == ("RUNNING", 0, False)
    assert (bench.hands.fence_end_s, bench.ends) == (0.0, [("7", Outcome.STAYS)])


@pytest.mark.parametrize(
    ("do", "error", "runs", "barred", "stays", "placeless"),
    [
        (Do.PIN, Infeasible("no"), True, False, True, True),
        (Do.REQUEUE, Infeasible("no"), True, False, True, False),
        (Do.FENCE, Closed("no"), True, False, True, False),
        (Do.PIN, Refused("no"), True, False, False, False),
        (Do.PIN, Refused("no"), False, True, False, False),  # it was given up before
    ],
)
def test_what_a_refusal_means_for_a_job_that_runs_and_for_one_that_waits(  # noqa: PLR0917  # as parametrized
    bench: Bench, do: Do, error: Refused, runs: bool, barred: bool, stays: bool, placeless: bool
) -> None:
    bench.begin()
    active = bench.overs._active["7"]
    active.over = replace(active.over, saved_s=NOW_S, barred=barred)
    state = JobState.RUNNING if runs else JobState.WAITING
    bench.overs._note_hindrance(active, Step(do), Scene(NOW_S, Sight(state)), error)
    assert (active.over.barred, active.stays) == (barred, stays)
    assert (bench.overs.placeless() != "") is placeless


def test_one_whose_place_cannot_be_kept_is_not_asked_for_an_hour(bench: Bench) -> None:
    """It saves, and starts again where it is, for nothing."""
    assert bench.overs.placeless() == ""
    bench.hands.refuses, bench.hands.for_good = {Do.PIN}, True
    bench.begin()
    bench.save()
    until_it_stays(bench)
    bench.hands.refuses = set()
    bench.go_on()
    until_s = bench.hands.clock() + 2 * PLACELESS_S
    assert "violates accounting/QOS policy" in bench.overs.placeless()
    bench.hands.pass_time(PLACELESS_S - 60, scheduler=False)
    assert not bench.overs.begin(bench.asked, Wanted(NEW), until_s, "it grows")
    bench.hands.pass_time(60, scheduler=False)
    assert bench.overs.placeless() == ""
    assert bench.overs.begin(bench.asked, Wanted(NEW), until_s, "it grows")


@PLACE_REFUSED
@pytest.mark.parametrize("for_good", [True, False])
def test_a_job_that_has_saved_does_not_wait_for_a_pin_or_a_fence_that_is_refused(
    bench: Bench, refuses: set[Do], fence_end_s: float, *, for_good: bool
) -> None:
    bench.on(begun(rival=False))  # nobody else is in its way
    if fence_end_s:
        bench.hands.fence("7", fence_end_s)
    bench.begin()
    bench.save()
    bench.hands.fake.told(("requeue", "7"))
    bench.hands.refuses, bench.hands.for_good = refuses, for_good
    bench.go_on()
    assert bench.hands.job.start_s - NOW_S <= (10 if for_good else 20)
    assert bench.ends == [("7", Outcome.DONE)]


@pytest.mark.parametrize(("for_good", "after_s"), [(True, 10.0), (False, 20.0)])
def test_a_victim_has_its_room_again_where_the_pin_of_its_guest_is_refused(
    bench: Bench, for_good: bool, after_s: float
) -> None:
    """Its GPUs would stand idle for as long as a fence stands by itself."""
    bench.on(begun(guest=True))
    bench.hands.refuses, bench.hands.for_good = {Do.PIN_GUEST}, for_good
    bench.begin(str(GUEST))
    bench.save()
    bench.go_on()
    assert (bench.hands.job.state, bench.hands.guest.state) == ("RUNNING", "PENDING")
    assert bench.hands.job.start_s - NOW_S <= after_s
    assert (bench.ends, bench.hands.fence_end_s) == ([("7", Outcome.DONE)], 0.0)


def test_a_guest_is_pinned_where_that_is_refused_for_a_short_while(bench: Bench) -> None:
    bench.on(begun(guest=True))
    bench.hands.refuses = {Do.PIN_GUEST}
    bench.begin(str(GUEST))
    bench.save()
    bench.go_on(14)
    assert bench.hands.fence_end_s
    bench.hands.refuses = set()
    bench.go_on(14)
    assert (bench.hands.job.state, bench.hands.guest.state) == ("PENDING", "RUNNING")


@pytest.mark.parametrize(("for_good", "after_s"), [(True, 3.0), (False, 13.0)])
@pytest.mark.parametrize("refuses", [{Do.REQUEUE}, {Do.PIN, Do.FENCE, Do.REQUEUE}])
def test_a_program_goes_on_in_place_whose_job_the_batch_system_does_not_requeue(
    bench: Bench, refuses: set[Do], for_good: bool, after_s: float
) -> None:
    bench.hands.refuses, bench.hands.for_good = refuses, for_good
    bench.begin()
    over = bench.overs.of("7")
    assert over is not None
    bench.save()
    bench.go_on(2 * int(after_s))
    assert bench.overs.stays("7", 0)
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.run, bench.is_pinned) == ("RUNNING", 0, False)
    assert (bench.hands.fence_end_s, bench.ends) == (0.0, [("7", Outcome.STAYS)])
    assert bench.overs.stays("7", 0, name_of(over))
    assert not bench.overs.stays("7", 1)  # the next run


def until_it_stays(bench: Bench) -> None:
    for _ in range(100):
        if bench.overs.stays("7", 0):
            return
        bench.overs.turn()
        bench.hands.pass_time(0.5)
    pytest.fail("it is not told to go on")


def test_a_pliantd_that_is_killed_once_a_program_was_told_to_go_on_does_not_requeue_it(
    bench: Bench,
) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.REQUEUE}, True
    bench.begin()
    bench.save()
    bench.told.clear()
    until_it_stays(bench)
    assert (bench.told, bench.ends) == (["7"], [])  # its wrapper hears of it at once
    bench.start()
    bench.hands.refuses = set()
    bench.overs.resume([ASKED])
    bench.go_on()
    assert (bench.hands.job.run, Do.REQUEUE in bench.did) == (0, False)


def test_where_a_pin_is_refused_for_good_the_first_requeue_that_is_refused_is_the_last(
    bench: Bench,
) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.PIN}, True
    bench.begin()
    bench.save()
    bench.overs.turn()
    bench.hands.refuses, bench.hands.for_good = {Do.PIN, Do.REQUEUE}, False
    bench.go_on(6)
    assert (bench.ends, bench.did) == ([("7", Outcome.STAYS)], [])


def test_one_that_was_killed_at_its_start_is_requeued_as_soon_as_slurm_does_so(
    bench: Bench,
) -> None:
    """However often it refuses: there is no program any more that could go on."""
    bench.begin()
    bench.save()
    while bench.hands.job.run == 0 or bench.hands.job.state != "RUNNING":
        bench.go_on(1)
    bench.hands.has(state="FAILED", code="0:15", end_s=bench.hands.job.start_s)
    bench.hands.refuses, bench.hands.for_good = {Do.REQUEUE}, True
    bench.go_on(30)
    bench.hands.refuses = set()
    bench.go_on()
    assert bench.hands.job.run == 2


def test_one_whose_partition_was_closed_to_it_while_it_ran_goes_on_where_it_is(
    bench: Bench,
) -> None:
    """Slurm looks at the groups of its user before it takes a priority."""
    bench.hands.refuses = {Do.PIN}
    bench.hands.words = "Requested partition configuration not available now for job 7"
    bench.begin()
    bench.save()
    bench.go_on()
    assert bench.ends == [("7", Outcome.STAYS)]
    assert (bench.hands.job.state, bench.hands.job.run) == ("RUNNING", 0)
    assert bench.overs.stays("7", 0)


def test_one_that_waits_already_does_not_go_on_where_its_partition_was_closed_to_it(
    bench: Bench,
) -> None:
    bench.begin()
    bench.save()
    bench.hands.refuses = {Do.PIN}
    bench.hands.words = "Requested partition configuration not available now for job 7"
    bench.hands.fake.told(("requeue", "7"))
    for _ in range(5):
        bench.overs.turn()
        bench.hands.pass_time(0.5)
    assert Do.PIN in bench.hands.tried
    assert not bench.overs.stays("7", 0)
    assert bench.ends == []
    bench.hands.refuses = set()
    bench.go_on(400)
    assert bench.ends == [("7", Outcome.DONE)]


@pytest.mark.parametrize("barred_before", [False, True])
def test_one_that_was_killed_at_its_start_and_could_not_be_requeued_keeps_its_place(
    bench: Bench, barred_before: bool
) -> None:
    """It does not stay, as one that runs would, whatever was refused before."""
    bench.hands.refuses, bench.hands.for_good = {Do.FENCE} if barred_before else set(), True
    bench.begin()
    bench.save()
    if barred_before:
        bench.hands.fake.cancel(RIVAL)  # who would be in its place
        bench.hands.fake.told(("requeue", "7"))
    while bench.hands.job.run == 0 or bench.hands.job.state != "RUNNING":
        bench.go_on(1)
    bench.hands.has(state="FAILED", code="0:15", end_s=bench.hands.job.start_s)
    bench.hands.refuses = {Do.REQUEUE}
    bench.go_on(90)
    assert (bench.ends, bench.overs.stays("7", 0)) == ([], False)
    bench.hands.refuses = set()
    while bench.hands.job.state == "FAILED":
        bench.go_on(1)
    bench.go_on(1)
    assert bench.hands.fence_end_s > 0 or barred_before
    bench.go_on()
    assert bench.hands.job.run == 2


def test_one_that_nobody_may_requeue_is_let_be_at_last(bench: Bench) -> None:
    """Its owner says so, who had it end where a start of it fails."""
    bench.begin()
    bench.save()
    while bench.hands.job.run == 0 or bench.hands.job.state != "RUNNING":
        bench.go_on(1)
    job = bench.hands.job
    bench.hands.has(state="FAILED", code="0:15", end_s=job.start_s, requeues=False)
    bench.go_on(3)
    bench.hands.pass_time(GIVE_UP_S - 10, scheduler=False)
    bench.go_on(3)
    assert bench.ends == []
    bench.hands.pass_time(10)
    bench.go_on(3)
    assert bench.ends == [("7", Outcome.NOT_LAUNCHED)]


def test_what_is_refused_once_its_job_has_another_request_hinders_no_pin(bench: Bench) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.UNFENCE}, True
    bench.begin()
    bench.save()
    bench.go_on(20)
    over = bench.overs.of("7")
    assert over is not None
    assert (over.hindered_s, over.barred, bench.hands.job.gpus) == (0.0, False, 2)


def test_a_fence_that_was_refused_for_a_while_and_stands_hinders_no_more(bench: Bench) -> None:
    bench.hands.refuses = {Do.FENCE}
    bench.begin()
    bench.save()
    bench.go_on(10)
    bench.hands.refuses = set()
    while Do.FENCE not in bench.did:
        bench.go_on(1)
    bench.hands.refuses = {Do.REQUEUE}
    bench.go_on(14)  # more than ten seconds after the first refusal
    bench.hands.refuses = set()
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def go_on_once_refused(bench: Bench, step: Do, *, for_good: bool, silent_s: float) -> None:
    """Refuse a step once, then stop pliantd for a while."""
    bench.hands.refuses, bench.hands.for_good = {step}, for_good
    bench.begin()
    bench.save()
    while step not in bench.hands.tried:
        bench.hands.pass_time(0.5)
        bench.overs.turn()
    bench.hands.refuses = set()
    while for_good and not bench.under_way.back_s:
        bench.hands.pass_time(0.25)
        bench.overs.turn()
    bench.hands.pass_time(silent_s)
    bench.go_on()


def test_a_pliantd_that_was_stopped_tries_once_more_what_was_refused_before_it_does_without(
    bench: Bench,
) -> None:
    go_on_once_refused(bench, Do.PIN, for_good=False, silent_s=REFUSED_S + 1)
    job = bench.hands.job
    assert (job.state, job.gpus, bench.hands.rival) == ("RUNNING", 2, "PENDING")


def test_a_pliantd_that_was_stopped_puts_a_request_back_before_the_fence_falls(
    bench: Bench,
) -> None:
    go_on_once_refused(bench, Do.RESHAPE, for_good=True, silent_s=PUT_BACK_S + 1)
    job = bench.hands.job
    assert (job.state, job.gpus, bench.hands.rival) == ("RUNNING", 4, "PENDING")
    assert bench.ends == [("7", Outcome.REFUSED)]


def words(*, for_good: bool) -> str:
    """In which words Slurm refuses."""
    return OnSlurm.for_good if for_good else OnSlurm.temporary


@pytest.mark.parametrize(
    "taken",
    [
        {},
        {"gpus": 2},
        {"gpus": 2, "cpus": 4, "min_cpus": 4},
        {"comment": put_token("", replace(SPEC, set=NEW))},
    ],
)
@pytest.mark.parametrize(("for_good", "idle_s"), [(True, 3.0), (False, 13.0)])
def test_a_reshape_that_is_refused_ends_as_it_was(
    bench: Bench, for_good: bool, idle_s: float, taken: dict[str, Any]
) -> None:
    """Also where a part of it was taken."""
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, for_good
    bench.begin()
    bench.save()
    while not bench.hands.job.waits:
        bench.go_on(1)
    bench.hands.has(**taken)
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.run) == ("RUNNING", 1)
    assert (job.gpus, job.cpus, job.min_cpus, job.comment) == (4, 8, 8, put_token("", SPEC))
    assert (bench.hands.rival, bench.is_pinned, bench.hands.fence_end_s) == ("PENDING", False, 0.0)
    assert bench.hands.idle_s <= idle_s
    assert bench.ends == [("7", Outcome.REFUSED)]
    (row,) = bench.store.handovers("7")
    assert row.outcome == f"{Outcome.REFUSED}: {words(for_good=for_good)}"


def test_a_request_that_is_not_put_back_at_once_is_put_back_as_soon_as_slurm_does_so(
    bench: Bench,
) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE, Do.PUT_BACK}, True
    bench.begin()
    bench.save()
    while not bench.hands.job.waits:
        bench.go_on(1)
    bench.hands.has(gpus=2, cpus=4, min_cpus=4)  # a part was taken
    while Do.PUT_BACK not in bench.hands.tried:
        bench.go_on(1)
    bench.hands.refuses = set()
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (4, [("7", Outcome.REFUSED)])


@pytest.mark.parametrize("for_good", [True, False])
def test_a_fence_falls_in_time_though_all_is_refused(bench: Bench, for_good: bool) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE, Do.PUT_BACK}, for_good
    bench.begin()
    bench.save()
    bench.go_on()
    hands = bench.hands
    assert (hands.fence_end_s, hands.rival) == (0.0, "RUNNING")  # its nodes are kept for nobody
    assert 0 < hands.idle_s <= 15.0


def test_a_reshape_that_is_taken_and_not_made_is_as_good_as_refused(bench: Bench) -> None:
    bench.hands.idle = {Do.RESHAPE}
    bench.begin()
    bench.save()
    bench.go_on()
    assert bench.ends == [("7", Outcome.REFUSED)]
    assert bench.hands.idle_s <= 15.0


def test_that_a_reshape_was_made_is_remembered_until_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Mock(wraps=bench.store.made)
    monkeypatch.setattr(bench.store, "made", stored)
    bench.begin()
    bench.save()
    made = []
    while bench.overs.of("7") is not None:
        bench.go_on(1)
        made.append((bench.hands.seen[-1][0].made, Do.RESHAPE in bench.did))
    assert made[0] == (False, False)
    assert made[-1] == (True, True)
    assert made == sorted(made)
    assert all(reshaped for seen, reshaped in made if seen)
    stored.assert_called_once_with(1, True)  # not at each look: it waits for the disk


def until_made(bench: Bench) -> None:
    bench.begin()
    bench.save()
    while not bench.under_way.made:
        bench.overs.turn()
        bench.hands.pass_time(0.25)


def test_what_its_owner_gives_it_back_while_pliantd_is_dead_stands(bench: Bench) -> None:
    until_made(bench)
    bench.hands.fake.told(("update", f"jobid={JOB}", "Gres=gpu:4"), by_owner=True)
    bench.start()
    bench.overs.resume([ASKED])
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (4, [("7", Outcome.CHANGED)])


def test_a_time_to_begin_that_its_owner_gives_it_stands_though_it_comes_while_a_kill_may(
    bench: Bench,
) -> None:
    """Beside a slurmd that has just started the hand-over goes on for five seconds."""
    bench.hands.fake.slurmd = f"{bench.hands.fake.now_s:.0f}"
    bench.begin()
    bench.save()
    while not bench.hands.job.waits:
        bench.go_on(1)
    begin_s = bench.hands.job.submit_s + 6
    begin = f"StartTime={datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%S}"
    bench.hands.fake.told(("update", f"jobid={JOB}", begin), by_owner=True)
    bench.go_on()
    assert bench.ends == [("7", Outcome.CHANGED)]
    assert (bench.hands.job.gpus, bench.hands.job.begin_s) == (4, begin_s)


def test_what_is_taken_of_a_reshape_that_slurm_had_forgotten_is_not_its_owners(
    bench: Bench,
) -> None:
    """Slurmctld was killed within its save interval, and refuses half of the reshape then."""
    until_made(bench)
    job, half = bench.hands.job, put_token("", replace(SPEC, set=NEW))
    bench.hands.has(
        gpus=4, cpus=8, min_cpus=8, begin_s=job.submit_s + 121.0, comment=put_token("", SPEC)
    )
    bench.hands.refuses = {Do.RESHAPE}
    bench.hands.tried.clear()
    while Do.RESHAPE not in bench.hands.tried:
        bench.go_on(1)
    bench.hands.has(comment=half)
    bench.hands.refuses = set()
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (2, [("7", Outcome.DONE)])


@pytest.mark.parametrize(
    ("bars", "state", "outcome"),
    [((2,), "RUNNING", Outcome.REFUSED), ((2, 4), "PENDING", Outcome.SLOW)],
)
def test_a_shape_that_is_taken_and_never_started_is_taken_back(
    bench: Bench, bars: tuple[int, ...], state: str, outcome: Outcome
) -> None:
    bench.on(begun(rival=False))
    bench.hands.fake.bar(*bars, why="QOSMinGRES")
    bench.begin()
    bench.save()
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, bench.is_pinned) == (state, 4, state == "PENDING")
    (row,) = bench.store.handovers("7")
    assert row.outcome == f"{outcome}: QOSMinGRES, a limit of its QOS"


def test_a_job_whose_node_is_fenced_for_another_waits_for_that_to_end(bench: Bench) -> None:
    """Two hand-overs on one node: the run of the other takes half a minute to end."""
    bench.on(begun(rival=False))
    bench.hands.fence("9", NOW_S + 40)
    bench.begin()
    bench.save()
    bench.go_on()
    job = bench.hands.job
    assert job.start_s >= NOW_S + 40
    assert (job.state, job.gpus, bench.ends) == ("RUNNING", 2, [("7", Outcome.DONE)])


def test_nor_is_it_turned_back_as_soon_as_that_has_ended(bench: Bench) -> None:
    """It has as long to start as any other from then on."""
    bench.on(begun(rival=False))
    bench.hands.fence("9", NOW_S + 60)
    bench.begin()
    bench.save()
    while bench.hands.clock() < NOW_S + 64:
        bench.overs.turn()
        bench.hands.pass_time(0.5, scheduler=False)
    assert bench.under_way.back_s == 0.0
    bench.go_on()
    assert (bench.hands.job.gpus, bench.ends) == (2, [("7", Outcome.DONE)])


@pytest.mark.parametrize("killed", [False, True])
def test_a_shape_that_was_refused_is_not_tried_again_for_this_job(
    bench: Bench, killed: bool
) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True
    bench.begin()
    bench.save()
    bench.go_on()
    if killed:
        bench.start()
    again = replace(ASKED, restarts=1)
    assert bench.overs.refused("7") == {NEW: words(for_good=True)}
    assert not bench.overs.begin(again, Wanted(NEW, ("n1",)), 2000.0, "it fits better")
    assert bench.overs.begin(again, Wanted(Shape(1, 1), ("n1",)), 2000.0, "it fits better")


@pytest.mark.parametrize("killed_after", range(3, 12))
def test_a_restart_goes_on_where_a_refused_reshape_was(bench: Bench, killed_after: int) -> None:
    bench.hands.refuses, bench.hands.for_good = {Do.RESHAPE}, True
    bench.begin()
    bench.save()
    bench.go_on(killed_after)
    bench.start()
    bench.overs.resume([ASKED])
    bench.go_on()
    job = bench.hands.job
    assert (job.state, job.gpus, bench.is_pinned) == ("RUNNING", 4, False)
    assert (bench.hands.rival, bench.hands.fence_end_s) == ("PENDING", 0.0)


def test_a_step_that_changes_nothing_is_not_repeated_at_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pliant.handing")
    bench.hands.idle = {Do.FENCE}
    bench.begin()
    bench.save()
    for _ in range(10):
        bench.overs.turn()
        bench.hands.pass_time(0.1)
    assert bench.did == [Do.PIN, Do.FENCE, Do.FENCE]
    assert caplog.messages[1:] == ["job 7: pin", "job 7: fence"]  # said once


@pytest.mark.parametrize(
    ("reason", "held"),
    [("JobHeldUser", Outcome.HELD), ("JobHeldAdmin", Outcome.HELD_BY_ADMIN)],
)
def test_a_checkpoint_that_comes_after_somebody_held_the_job_leaves_it_held(
    bench: Bench, reason: str, held: Outcome
) -> None:
    bench.begin()
    over = bench.overs.of("7")
    assert over is not None
    bench.hands.has(priority=0, reason=reason)
    bench.go_on(3)
    assert bench.ends == [("7", held)]
    assert bench.overs.saved_late(ASKED, 0, name_of(over))
    bench.go_on()
    job = bench.hands.job
    assert (bench.ends[1:], job.state, job.priority) == ([("7", held)], "PENDING", 0)
    assert bench.did == [Do.REQUEUE]


def test_who_watches_is_told_of_a_wish_and_of_its_end(bench: Bench) -> None:
    bench.begin()
    assert (bench.told, bench.overs.all()) == (["7"], {"7": Wanted(NEW, ("n1",))})
    bench.overs.withdraw("7")
    bench.go_on(3)
    assert (bench.told, bench.ends) == (["7", "7"], [("7", Outcome.NOT_SAVED)])
    assert bench.overs.all() == {}


def test_a_wish_whose_checkpoint_is_written_is_not_withdrawn(bench: Bench) -> None:
    bench.begin()
    bench.save()
    bench.overs.withdraw("7")
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_who_has_nobody_to_ask_is_requeued_at_once(bench: Bench) -> None:
    assert bench.overs.begin(
        ASKED, Wanted(OLD), bench.hands.clock() + 60, "room is needed", listens=False
    )
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_a_guest_is_remembered_through_a_restart(bench: Bench) -> None:
    bench.on(begun(guest=True))
    bench.begin(guest=str(GUEST))
    bench.save()
    bench.start()
    bench.overs.resume([bench.asked])
    bench.save()
    bench.go_on()
    assert (bench.hands.guest.state, bench.ends) == ("RUNNING", [("7", Outcome.DONE)])


def test_a_job_that_is_gone_after_a_restart_is_only_tidied_up_after(bench: Bench) -> None:
    bench.begin()
    bench.save()
    for _ in range(2):
        bench.overs.turn()
    bench.hands.fake.end(JOB, "CANCELLED")
    bench.start()
    bench.overs.resume([])
    bench.go_on(5)
    assert (bench.hands.fence_end_s, bench.ends) == (0.0, [("7", Outcome.GONE)])


def test_a_new_pliantd_compares_with_the_job_as_it_was_asked_not_as_it_says_now(
    bench: Bench,
) -> None:
    bench.begin()
    bench.save()
    bench.start()
    changed = replace(
        ASKED, shape=Shape(1, 3), state=JobState.WAITING, nodes=(), partitions=("cpu",)
    )
    bench.overs.resume([changed])
    bench.go_on()
    assert bench.hands.seen[-1][1] == replace(ASKED, next_nodes=("n1",))


def test_a_run_that_is_given_another_limit_ends_by_that(bench: Bench) -> None:
    began_s = bench.hands.job.start_s
    wanted = Wanted(NEW, ("n1",), end_s=began_s + 30 * 60)
    assert bench.overs.begin(ASKED, wanted, NOW_S + 60, "its owner asked for it")
    bench.hands.fake.told(("update", "jobid=7", "TimeLimit=20"), by_owner=True)
    bench.go_on(3)
    over = bench.overs.of("7")
    assert over is not None
    assert over.end_s == began_s + 20 * 60
    (row,) = bench.store.handovers()
    assert row.end_s == over.end_s
    bench.save()
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]
    job = bench.hands.job
    assert 0 < began_s + 20 * 60 - (job.start_s + job.limit_min * 60) <= 60  # in whole minutes


@pytest.mark.parametrize("guest", ["", "8"])
def test_a_run_that_is_given_more_time_while_it_saves_keeps_that_and_its_place(
    bench: Bench, guest: str
) -> None:
    asked = replace(ASKED, time_limit_s=30 * 60, limit_shown_s=30 * 60)
    end_s = 0.0 if guest else asked.start_s + 30 * 60
    wanted = Wanted(OLD if guest else NEW, ("n1",), guest, end_s=end_s)
    assert bench.overs.begin(asked, wanted, NOW_S + 60, "explored")
    bench.hands.fake.told(("update", "jobid=7", "TimeLimit=60"))
    bench.go_on(3)
    (row,) = bench.store.handovers()
    assert (read_job(row.asked).limit_shown_s, row.end_s > 0) == (3600, not guest)
    bench.save()
    bench.go_on()
    assert bench.ends == [("7", Outcome.DONE)]


def test_a_run_whose_time_limit_is_taken_away_has_none_when_it_comes_back(bench: Bench) -> None:
    asked = replace(ASKED, time_limit_s=30 * 60, limit_shown_s=30 * 60)
    wanted = Wanted(NEW, ("n1",), end_s=asked.start_s + 30 * 60)
    assert bench.overs.begin(asked, wanted, NOW_S + 60, "its owner asked for it")
    active, none = bench.overs._active["7"], Sight(JobState.RUNNING, limit_s=float("inf"))
    over = bench.overs._as_it_ends(active, active.over, none)
    assert (over.end_s, active.job.longest_s) == (0.0, float("inf"))
    assert (active.job.time_limit_s, active.job.limit_shown_s) == (0, 0)
    assert bench.overs._as_it_ends(active, over, none) is over


@pytest.mark.parametrize(("limit_s", "later_s"), [(30 * 60, 90), (60 * 60, 30 * 60)])
def test_a_run_that_ends_otherwise_by_now_ends_so_when_it_comes_back(
    bench: Bench, limit_s: int, later_s: int
) -> None:
    """Slurm puts its end off where it was suspended, and an administrator gives it more time."""
    asked = replace(ASKED, time_limit_s=30 * 60, limit_shown_s=30 * 60)
    end_s = asked.start_s + 30 * 60
    assert bench.overs.begin(asked, Wanted(NEW, ("n1",), end_s=end_s), NOW_S + 60, "explored")
    active = bench.overs._active["7"]
    then = Sight(JobState.RUNNING, limit_s=limit_s, ends_s=end_s + later_s)
    over = bench.overs._as_it_ends(active, active.over, then)
    assert over is active.over
    assert over.end_s == end_s + later_s
    assert (active.job.time_limit_s, active.job.limit_shown_s) == (30 * 60 + later_s, limit_s)


def test_what_its_program_said_meanwhile_is_not_overwritten_by_a_new_time_limit(
    bench: Bench,
) -> None:
    bench.begin()
    active = bench.overs._active["7"]
    looked_at = active.over
    active.over = said = replace(looked_at, saved_s=NOW_S)
    active.job = job = replace(active.job, time_limit_s=30 * 60, limit_shown_s=30 * 60)
    another = Sight(JobState.RUNNING, limit_s=60 * 60, ends_s=job.start_s + 60 * 60)
    assert bench.overs._as_it_ends(active, looked_at, another) is said
    assert active.job is job


def test_a_run_that_ends_as_it_was_to_is_not_noted_anew_at_each_look(bench: Bench) -> None:
    asked = replace(ASKED, time_limit_s=30 * 60, limit_shown_s=30 * 60)
    end_s = asked.start_s + 30 * 60
    assert bench.overs.begin(asked, Wanted(NEW, ("n1",), end_s=end_s), NOW_S + 60, "explored")
    active = bench.overs._active["7"]
    same = Sight(JobState.RUNNING, limit_s=30 * 60, ends_s=end_s + 0.5)
    assert bench.overs._as_it_ends(active, active.over, same) is active.over
    assert active.over.end_s == end_s


@pytest.mark.parametrize(
    ("had_s", "shown_s", "limit_s", "is_another"),
    [
        (1800, 1800, 1800.0, False),
        (1800, 1800, 3600.0, True),
        (1800, 0, 3600.0, False),  # an earlier pliantd has not stored it
        (0, 0, float("inf"), False),
        (0, 0, 3600.0, True),
    ],
)
def test_which_limit_is_another_one(
    bench: Bench, had_s: int, shown_s: int, limit_s: float, *, is_another: bool
) -> None:
    asked = replace(ASKED, time_limit_s=had_s, limit_shown_s=shown_s)
    assert bench.overs.begin(asked, Wanted(NEW, ("n1",)), NOW_S + 60, "it fits better")
    active, sight = bench.overs._active["7"], Sight(JobState.RUNNING, limit_s=limit_s)
    before = active.job
    bench.overs._as_it_ends(active, active.over, sight)
    assert (active.job is not before) is is_another


def test_a_row_that_the_batch_system_contradicts_is_not_gone_on_with(bench: Bench) -> None:
    bench.begin()
    bench.start()
    bench.overs.resume([replace(ASKED, state=JobState.WAITING, priority=PINNED, restarts=1)])
    assert (bench.overs.of("7"), bench.store.handovers()) == (None, ())
    assert [row.outcome for row in bench.store.handovers("7")] == ["?"]
