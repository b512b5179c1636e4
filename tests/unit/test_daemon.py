"""The daemon on the fake Slurm: cycles, the loop, and both doors' words."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pbs_recorded import Recorded
from slurm_queue import Clock, Queue

from fake_door import stays
from pliant.batch import Batch
from pliant.batch.slurm.attempt import NO_INDEX
from pliant.daemon import answers as a
from pliant.daemon import watched
from pliant.daemon.cannot import GIVE_UP_GPUS, OTHERWISE, SHARES, beyond_reach, cannot_rows
from pliant.daemon.config import Config, parse
from pliant.daemon.cycling import AGAIN_S, Cycling
from pliant.daemon.filter_door import FilterDoor
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.lines import Answer as DoorAnswer
from pliant.daemon.lines import GivingWay
from pliant.daemon.loop import Loop, Pace
from pliant.daemon.monitors import Measured
from pliant.daemon.munge import Munge, Proof
from pliant.daemon.munge_door import MungeDoor
from pliant.daemon.patience import Patience
from pliant.daemon.private import TEXTS, without_private
from pliant.daemon.rights import Asker, Site, asker
from pliant.daemon.rows import decision_text
from pliant.daemon.sharing import Sharing
from pliant.daemon.verbs import Verbs
from pliant.daemon.watched import TierSpeed, TopAnswer
from pliant.errors import PliantError, StandsBy, Unavailable
from pliant.filter import Answer, View, filter_submission
from pliant.grammar import find_token, put_token, token_text
from pliant.grammar import parse as parse_request
from pliant.model import (
    Abilities,
    Footprint,
    Job,
    Mode,
    Node,
    Request,
    Shape,
    Snapshot,
    Spec,
)
from pliant.policies import by_name
from pliant.store import Decision, HandOverRow, RunRow, Store
from pliant.wire import SEAL_KEY, Message, decode, encode
from pliant.wire.lines import unsealed

ONE, TWO, FOUR, EIGHT = (Shape(1, gpus) for gpus in (1, 2, 4, 8))
ENFORCE = {"partitions": {"default": "enforce"}}
ALONE = Footprint()
"""What a job has beside its GPUs that asks for nothing else."""


@pytest.fixture
def batch() -> Queue:
    return Queue()


@pytest.fixture
def clock(batch: Queue) -> Clock:
    return batch.clock


@pytest.fixture
def make(batch: Queue, clock: Clock, tmp_path: Path) -> Callable[..., Cycling]:
    """Make a Cycling over the fake batch system; its state lasts from one to the next."""

    def build(config: Config | None = None, over: Batch = batch) -> Cycling:
        return Cycling(
            over,
            Store(tmp_path),
            config or parse(ENFORCE),
            by_name("moldable-equipartition"),
            patience=Patience(backfill_s=10.0),
            clock=clock,
            monotonic=clock,
        )

    return build


Make = Callable[..., Cycling]


# Cycles


def test_a_waiting_job_is_molded_into_what_is_free_and_then_left_alone(
    make: Make, batch: Queue
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make()
    cycling.run()
    cycling.run()
    assert batch.changes == [("2", "2")]
    spec = batch.spec("2")
    assert spec is not None
    assert spec == Spec(parse_request("gpus=1-4"), own=FOUR, set=TWO, footprint=spec.footprint)
    said = [(d.what, d.reason) for d in cycling.store.decisions("2")]
    spread = "one GPU to each job, the rest by D'Hondt"
    assert said == [
        ("start", f"{spread}; its own shape is 4"),
        ("mold", f"2 can start now: {spread}"),
    ]
    assert cycling.counts.updates == 1


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_where_pliant_does_not_enforce_nothing_is_changed(
    make: Make, batch: Queue, mode: str
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make(parse({"partitions": {"default": "enforce", "gpu": mode}}))
    cycling.run()
    assert batch.changes == []
    decided = [(d.what, d.shape) for d in cycling.store.decisions("2")]
    assert decided == ([("would", "2")] if mode == "observe" else [("keep", "4")])


def molded(make: Make, batch: Queue) -> Cycling:
    """A cycling that has changed job 2, whose user wrote four GPUs, to the two that are free."""
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make()
    cycling.run()
    assert batch.changes == [("2", "2")]
    return cycling


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_where_pliant_is_switched_off_what_still_waits_carries_what_its_user_wrote(
    make: Make, batch: Queue, mode: str
) -> None:
    cycling = molded(make, batch)
    cycling.config = parse({"partitions": {"default": mode}})
    cycling.run()
    cycling.run()
    assert batch.changes == [("2", "2"), ("2", "4")]
    newest = cycling.store.decisions("2")
    assert ("mold", "4") in [(d.what, d.shape) for d in newest]


@pytest.mark.parametrize("case", ["pinned", "changed by its owner", "paused"])
def test_what_is_an_owners_or_paused_stays_as_it_is_when_pliant_is_switched_off(
    make: Make, batch: Queue, case: str
) -> None:
    cycling = molded(make, batch)
    match case:
        case "pinned":
            batch.says("2", pinned=True)
        case "changed by its owner":
            batch.has("2", gpus=1)
        case _:
            cycling.store.pause(True)
    cycling.config = parse({"partitions": {"default": "off"}})
    cycling.run()
    assert batch.changes == [("2", "2")]


def test_a_pause_holds_until_it_is_taken_back_and_survives_a_restart(
    make: Make, batch: Queue
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    make().store.pause(True)
    again = make()
    again.run()
    assert batch.changes == []
    again.store.pause(False)
    again.run()
    assert batch.changes == [("2", "2")]


def test_a_job_in_an_observed_partition_is_rigid_for_the_others(make: Make, batch: Queue) -> None:
    """Its user's four GPUs are not free: nothing is planned on what it would give up."""
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR, also=[("Partition", "seen")])
    batch.submit("3", "gpus=1-2", own=TWO)
    cycling = make(parse({"partitions": {"gpu": "enforce", "seen": "observe"}}))
    batch.fake.partitions["seen"] = "Default=NO"
    cycling.run()
    assert cycling.seen is not None
    assert [start.job.id for start in cycling.seen.plan.starts] == ["3"]
    assert "2" in [start.job.id for start in cycling.seen.shadow.starts]
    assert batch.changes == []


def test_a_refused_change_is_told_and_not_tried_again_at_once(make: Make, batch: Queue) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=2:4", own=FOUR)
    batch.refuses = "slurm_update error: Requested node configuration is not available"
    cycling = make()
    cycling.run()
    assert cycling.counts.failures == 1
    assert cycling.store.refused(1000.0) == {"2": {TWO}}
    batch.refuses = ""
    cycling.run()
    assert batch.changes == []
    latest = cycling.store.decisions("2")
    assert "Requested node configuration is not available" in latest[1].reason


def test_a_change_that_is_refused_for_now_is_tried_again_as_soon_each_time(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=2:4", own=FOUR)
    batch.refuses = f"slurm_update error: {NO_INDEX}"
    cycling = make()
    for _ in range(5):
        cycling.run()
        clock.now_s += AGAIN_S
    assert cycling.counts.failures == 5
    batch.refuses = ""
    cycling.run()
    assert batch.changes == [("2", "2")]


def test_a_job_that_is_held_for_a_shape_of_ours_gets_its_own_back(make: Make, batch: Queue) -> None:
    batch.run("1", FOUR)

    def held(number: str) -> None:
        batch.submit(number, "gpus=2:4", own=FOUR)
        batch.says(number, set=TWO)
        batch.has(number, gpus=2, priority=0, reason="BadConstraints")

    held("2")
    cycling = make()
    batch.refuses = "no"
    cycling.run()
    batch.refuses = ""
    cycling.run()
    assert batch.changes == []  # what was refused is left for a while
    batch.gone("2")
    held("3")
    cycling.run()
    assert batch.changes == [("3", "4")]  # which frees it
    assert [d.what for d in cycling.store.decisions("3")] == ["rescue", "refused", "filter"]
    assert cycling.store.refused(1000.0)["3"] == {TWO}
    assert cycling.counts.failures == 0


@pytest.mark.parametrize(
    "says", [{"reason": "JobHeldUser"}, {"gpus": 3}, {"limit_min": 5}, {"state": "CANCELLED"}]
)
def test_what_its_owner_has_said_since_the_look_is_neither_released_nor_put_back(
    make: Make, batch: Queue, says: dict[str, Any]
) -> None:
    batch.run("1", FOUR)
    batch.submit("2", "gpus=2:4", own=FOUR)
    batch.says("2", set=TWO)
    batch.has("2", gpus=2, priority=0, reason="BadConstraints")
    cycling, observe = make(), batch.observe

    def observed() -> Snapshot:
        seen = observe()
        batch.has("2", **says)
        return seen

    batch.observe = observed  # type: ignore[method-assign]  # speaks in between
    cycling.run()
    assert batch.changes == []
    assert "rescue" not in [d.what for d in cycling.store.decisions("2")]


def test_a_shape_that_does_not_start_in_time_is_given_up_and_the_job_restored(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=2:4", own=FOUR)
    cycling = make()
    for _ in range(12):
        cycling.run()
        clock.now_s += 10
    assert batch.changes == [("2", "2"), ("2", "4")]
    assert "the batch system did not start it so in time" in [
        d.reason.partition(";")[0] for d in cycling.store.decisions("2")
    ]
    told = [(d.what, d.shape) for d in cycling.store.decisions("2", 20)]
    assert ("start", "2") not in told[: told.index(("refused", "2"))]  # the newest stand first


def test_a_shape_that_a_limit_forbids_is_taken_back_and_left_out_from_then_on(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    batch.fake.bar(1, 2, why="QOSMinGRES")  # its MinTRESPerJob is gres/gpu=3
    cycling = make()
    for _ in range(30):
        cycling.run()
        clock.now_s += 50
    assert batch.changes == [("2", "2"), ("2", "4")]
    assert cycling.store.refused(clock.now_s) == {"2": {ONE, TWO}}
    told = {d.shape: d.reason for d in cycling.store.decisions("2") if d.what == "refused"}
    words = "the batch system does not start it so: QOSMinGRES; left out for 86400 s"
    assert told == {"1": words, "2": words}


def enforced(make: Make, batch: Queue, clock: Clock) -> Setting:
    """Verbs over an enforcing daemon."""
    cycling, woken = make(), list[int]()
    cycling.run()
    verbs = Verbs(cycling, lambda: woken.append(1), clock, tuple, int, 900.0)
    return Setting(verbs, woken)


@pytest.mark.parametrize("text", ["gpus=1-4", "gpus=4", ""])
def test_an_owners_last_word_is_carried_though_it_is_one_shape_and_cannot_start(
    make: Make, batch: Queue, clock: Clock, text: str
) -> None:
    batch.run("1", FOUR)
    batch.submit("2", text, own=FOUR)
    setting = enforced(make, batch, clock)
    done = setting.ask(ALICE, "set", job="2", spec="gpus=1")
    assert done == a.DoneAnswer("job 2 now says moldable=gpus=1")
    setting.verbs.cycling.run()
    setting.verbs.cycling.run()
    assert batch.changes == [("2", "token"), ("2", "1")]
    reasons = [d.reason for d in setting.verbs.cycling.store.decisions("2") if d.what == "mold"]
    assert reasons == [
        "its owner allows 4 no longer: while it waits it carries its largest shape",
    ]
    setting.ask(ALICE, "set", job="2", spec="gpus=4")
    setting.verbs.cycling.run()
    assert batch.changes[2:] == [("2", "token"), ("2", "4")]


def test_an_owners_last_word_stays_when_pliant_is_switched_off(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.run("1", FOUR)
    batch.submit("2", "gpus=1-4", own=FOUR)
    setting = enforced(make, batch, clock)
    setting.ask(ALICE, "set", job="2", spec="gpus=2-3")
    setting.verbs.cycling.run()
    setting.verbs.cycling.config = parse({"partitions": {"default": "off"}})
    setting.verbs.cycling.run()
    assert batch.changes == [("2", "token"), ("2", "3")]


def test_what_an_owner_sets_where_pliant_does_not_act_is_not_applied_and_that_is_said(
    setting: Setting, batch: Queue
) -> None:
    done = setting.ask(ALICE, "set", job="2", spec="gpus=1")
    words = "job 2 now says moldable=gpus=1; it is not applied in partition gpu (observe)"
    assert done == a.DoneAnswer(words)
    setting.verbs.cycling.run()
    setting.ask(ROOT, "pause")
    paused = setting.ask(ALICE, "set", job="2", spec="gpus=1-2")
    words = "now says moldable=gpus=1-2; Pliant is paused: it is not applied before `pliant resume`"
    assert paused == a.DoneAnswer(f"job 2 {words}")
    setting.verbs.cycling.run()
    assert batch.changes == [("2", "token")] * 2


def test_a_new_request_takes_a_pin_back_and_says_so(setting: Setting) -> None:
    setting.ask(ALICE, "pin", job="2")
    setting.verbs.cycling.run()
    done = setting.ask(ALICE, "set", job="2", spec="gpus=1-2")
    assert isinstance(done, a.DoneAnswer)
    assert done.message.startswith("job 2 now says moldable=gpus=1-2; it is no longer pinned")


def test_a_daemon_that_slept_gives_no_shape_up_for_that(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=2:4", own=FOUR)
    cycling = make()
    for _ in range(2):
        cycling.run()
        clock.now_s += 3600
        batch.has("1", start_s=clock.now_s)
    cycling.run()
    assert cycling.store.refused(clock.now_s) == {}
    assert batch.changes == [("2", "2")]


def test_a_restart_in_the_middle_of_a_cycle_goes_on_from_what_the_batch_system_says(
    make: Make, batch: Queue
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make()
    cycling.store.intend(999.0, "2", FOUR, TWO, "then it was killed")
    again = make()
    assert again.store.unfinished() == ("2",)
    again.run()
    assert batch.changes == [("2", "2")]


def test_what_an_owner_notes_during_a_cycle_is_not_written_over(make: Make, batch: Queue) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make()
    job = batch.job("2")
    pinned = Spec(parse_request("gpus=1-4"), FOUR, pinned=True)

    def pin() -> None:
        cycling.acting.annotate(job, lambda _: pinned)

    batch.between = pin
    cycling.run()
    assert batch.changes == [("2", "token")]
    assert batch.spec("2") == pinned


def test_what_an_owner_notes_after_a_change_that_was_not_seen_yet_keeps_the_change(
    make: Make, batch: Queue
) -> None:
    batch.run("1", TWO)
    batch.submit("2", "gpus=1-4", own=FOUR)
    cycling = make()
    seen = batch.job("2")
    cycling.run()
    cycling.acting.annotate(seen, lambda now: replace(said(now), pinned=True))
    pinned = Spec(parse_request("gpus=1-4"), FOUR, pinned=True)
    assert batch.spec("2") == replace(pinned, set=TWO, footprint=Footprint())


def test_no_cycle_changes_more_jobs_than_it_may_nor_takes_more_back(
    make: Make, batch: Queue
) -> None:
    for number in ("1", "2", "3", "4"):
        batch.submit(number, "gpus=1-4", own=FOUR)
    few = {"daemon": {"updates_per_cycle": 2}}
    on, off = (make(parse({**few, "partitions": {"default": mode}})) for mode in ("enforce", "off"))
    for made, shape in ((on, "1"), (off, "4")):
        for changed in (2, 4, 4):
            made.run()
            assert len(batch.changes) == changed
        assert sorted(batch.changes) == [(number, shape) for number in ("1", "2", "3", "4")]
        batch.clients.took.clear()


def test_a_mark_is_given_noted_and_taken_back_in_a_pause(make: Make, batch: Queue) -> None:
    batch.submit("1", "colocate", FOUR, also=[("OverSubscribe", "YES")])
    batch.says("1", mark="*")
    cycling = make()
    cycling.store.pause(True)
    cycling.run()
    assert batch.changes == [("1", "mark -")]
    (decision,) = [d for d in cycling.store.decisions("1", 10) if d.what == "unmark"]
    assert decision.reason == "Pliant does not act here now"
    cycling.run()
    assert batch.changes == [("1", "mark -")]


def test_a_mark_that_is_refused_is_tried_again_less_and_less(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.submit("1", "colocate", TWO, also=[("OverSubscribe", "YES")])
    batch.says("1", mark="*")
    batch.refuses = "Slurm says no"
    cycling = make()
    cycling.store.pause(True)
    for _ in range(60):
        cycling.run()
        clock.now_s += 1.0
    assert cycling.counts.failures == 6  # at 0, 1, 3, 7, 15 and 31 s
    batch.refuses = ""
    clock.now_s += 3.0
    cycling.run()
    assert batch.changes == [("1", "mark -")]


class Silent:
    """Monitors that have said nothing."""

    def of(self, job_id: str) -> Mapping[str, tuple[Measured, ...]]:
        del job_id
        return {}


def test_where_speeds_beside_others_cannot_be_told_the_rest_goes_on(
    make: Make, batch: Queue
) -> None:
    class Broken(Sharing):
        def known(self, snapshot: Snapshot) -> Snapshot:
            raise ZeroDivisionError(snapshot)

    cycling = make()
    cycling.sharing = Broken(Silent())
    cycling.run()
    assert cycling.counts.cycles == 1
    assert cycling.seen is not None


def test_a_stop_leaves_the_rest_of_the_changes(make: Make, batch: Queue) -> None:
    batch.submit("2", "gpus=1-2", own=FOUR)
    batch.submit("3", "gpus=1-2", own=FOUR)
    cycling = make()
    cycling.stop()
    cycling.run()
    assert batch.changes == []


# The loop


def run_loop(cycling: Cycling, clock: Clock, until: Callable[[], bool]) -> Loop:
    """Run the loop until ``until`` holds; waiting takes no time, but the clock moves."""

    async def run() -> Loop:
        loop = Loop(cycling, clock)
        task = asyncio.create_task(loop.run())
        async with asyncio.timeout(20):
            while not until():
                loop.wake()
                await asyncio.sleep(0.01)
        loop.stop()
        await task
        return loop

    return asyncio.run(run())


def test_the_loop_survives_a_batch_system_that_is_away_and_a_mistake_of_its_own(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.daemon.loop.AWAY_S", 0.01)
    cycling, looks = make(), list[int]()
    batch.clients.away = Unavailable("slurmctld does not answer")
    loop = run_loop(cycling, clock, lambda: batch.clients.turned_away > 2)
    assert loop.trouble == "slurmctld does not answer"
    batch.clients.away = None
    assert run_loop(cycling, clock, lambda: cycling.counts.cycles > 0).trouble == ""

    def fail() -> None:
        looks.append(1)
        raise ZeroDivisionError("on purpose")

    batch.between = fail
    loop = run_loop(cycling, clock, lambda: len(looks) > 2)
    assert loop.trouble == "a mistake of Pliant's own: ZeroDivisionError: on purpose"


def test_the_pace_follows_what_there_is_to_do() -> None:
    pace = Pace(cycle_s=5.0)
    assert (pace.least_s(0.01), pace.most_s(0.01, eager=False)) == (0.25, 5.0)
    assert pace.most_s(0.01, eager=True) == 1.0
    assert (pace.least_s(0.4), pace.most_s(0.4, eager=True)) == (4.0, 4.0)  # a tenth of the time
    assert (pace.least_s(50.0), pace.most_s(50.0, eager=True)) == (120.0, 120.0)  # but not for long
    for expected in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        pace.failed()
        assert pace.least_s(0.01) == pace.most_s(0.01, eager=True) == expected
    pace.worked()
    assert pace.least_s(0.01) == 0.25
    pace.stood_by()
    assert pace.least_s(0.01) == pace.most_s(0.01, eager=True) == 5.0
    for expected in (1.0, 2.0, 4.0, 5.0, 5.0):  # its turn may come any moment
        pace.failed()
        assert pace.least_s(0.01) == expected


def test_a_job_waits_for_minutes_at_most_where_every_look_is_slow(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []

    async def sleep(_event: asyncio.Event, for_s: float) -> None:
        paused.append(for_s)
        clock.now_s += for_s
        await asyncio.sleep(0)

    def between() -> None:  # five commands of 10 s, one after the other
        clock.now_s += 50.0

    monkeypatch.setattr("pliant.daemon.loop.wait_for", sleep)
    batch.between = between
    run_loop(make(), clock, lambda: len(paused) > 4)
    assert max(paused) > 100
    assert max(paused) + 2 * 50.0 < 300.0


def test_one_slow_look_makes_no_long_pause_and_one_in_two_does(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def least_s(_pace: Pace, observe_s: float) -> float:
        pauses.append(observe_s)
        return 0.0

    monkeypatch.setattr(Pace, "least_s", least_s)
    monkeypatch.setattr(Pace, "most_s", lambda *_, **__: 0.0)
    took = iter((60.0, 0.5, 0.5, 60.0, 0.5, 60.0))

    def between() -> None:
        clock.now_s += next(took, 0.5)

    batch.between = between
    run_loop(make(), clock, lambda: len(pauses) > 5)
    assert pauses[:6] == [0.0, 0.5, 0.5, 0.5, 0.5, 60.0]


def test_a_daemon_that_stands_by_speaks_of_nothing_it_saw(
    make: Make, batch: Queue, clock: Clock
) -> None:
    batch.submit("2", "gpus=2:4", own=FOUR)
    cycling = make()
    cycling.run()
    words = "ctl1 stands by: slurmctld runs on ctl2"
    batch.clients.away = StandsBy(words)
    loop = run_loop(cycling, clock, lambda: batch.clients.turned_away > 0)
    assert (loop.stands_by, loop.trouble) == (words, "")
    verbs = Verbs(cycling, lambda: None, clock, tuple, int, 0.0, stands_by=lambda: loop.stands_by)
    with pytest.raises(Unavailable, match=r"^ctl1 stands by: slurmctld runs on ctl2$"):
        verbs.answer("jobs", {}, ROOT)
    status = verbs.answer("status", {}, ROOT)
    assert isinstance(status, a.StatusAnswer)
    assert (status.stands_by, status.troubles, status.waiting) == (words, (), 0)

    async def ask(verb: str) -> Message:
        door = MungeDoor(_KnowsAlice(""), verbs, lambda _uid: ALICE)
        return await ask_door(door.begin(), Message(verb))

    assert {verb: asyncio.run(ask(verb)).fields["stands-by"] for verb in ("status", "jobs")} == {
        "status": words,
        "jobs": words,
    }
    batch.clients.away = None
    assert run_loop(cycling, clock, lambda: cycling.seen is not None).stands_by == ""


# Door 1


SUBMISSION = {
    "name": "x",
    "user_id": "1000",
    "partition": "gpu",
    "tres_per_node": "gres:gpu:4",
    "option.moldable": "gpus=1-4",
    "min_nodes": "1",
}


def submit(door: FilterDoor, *requests: bytes) -> list[Message | None]:
    here, there = socket.socketpair(socket.AF_UNIX)

    with here, there:
        answers = []
        for request in requests:
            answers.append(door.answer(request, here))
            door.afterwards()
    return [decode(answer) if answer else None for answer in answers]


def door_one(cycling: Cycling, clock: Clock, woken: list[int], *uids: int) -> FilterDoor:
    import os

    may_ask = frozenset(uids or {os.getuid()})
    return FilterDoor(cycling, lambda: woken.append(1), lambda: may_ask, clock)


AWAY = Message("ok", {"away": "1"})
"""The plugin writes the token and nothing else."""


def test_the_filter_is_told_where_memory_is_limited(make: Make, batch: Queue, clock: Clock) -> None:
    cycling = make()
    batch.fake.partitions["gpu"] += " MaxMemPerCPU=4000"
    cycling.run()
    door = door_one(cycling, clock, [])
    (told,) = submit(door, encode(Message("submit", SUBMISSION)))
    assert told is not None and told.fields["mem_limit"] == "1"


def test_a_flagged_submission_is_answered_and_wakes_a_cycle(
    make: Make, batch: Queue, clock: Clock
) -> None:
    cycling, woken = make(), list[int]()
    cycling.run()
    door = door_one(cycling, clock, woken)
    flagged, plain = submit(
        door,
        encode(Message("submit", SUBMISSION)),
        encode(Message("submit", {"name": "x", "partition": "gpu"})),
    )
    assert flagged is not None and flagged.is_ok and "token" in flagged.fields
    assert plain == Message("ok")
    assert (door.answered, woken) == (2, [1])


def test_what_is_refused_is_counted_by_partition(make: Make, batch: Queue, clock: Clock) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    wrong = SUBMISSION | {"option.moldable": "gpus=x"}
    requests = [wrong, wrong, wrong | {"partition": "gup"}, SUBMISSION]
    submit(door, *(encode(Message("submit", fields)) for fields in requests))
    cycling.run()
    counted = cycling.remembering.counting.since_start
    assert {name: tally.refused for name, tally in counted.items()} == {"gpu": 2}


@pytest.mark.parametrize(
    "fields",
    [{"features": "," * 4200}, {f"option.x{n}": "," * 600 for n in range(40)}],
    ids=["a text", "a line"],
)
def test_what_is_longer_than_the_plugin_sends_is_left_unread(
    make: Make,
    batch: Queue,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, str],
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    long = encode(Message("submit", SUBMISSION | fields))
    monkeypatch.setattr("pliant.daemon.filter_door.decode", lambda _: pytest.fail("it is read"))
    assert submit(door, long) == [AWAY], "the job gets its token, and pliantd is asked again"


def test_the_longest_that_the_plugin_sends_is_read(make: Make, batch: Queue, clock: Clock) -> None:
    cycling = make()
    cycling.run()
    texts = {f"option.x{n}": "," * 1024 for n in range(12)} | {"array_inx": "," * 4096}
    line = encode(Message("submit", SUBMISSION | texts))
    (answer,) = submit(door_one(cycling, clock, []), line)
    assert answer is not None and answer != AWAY


def test_a_switch_to_off_waits_for_no_look_at_the_cluster(
    make: Make, batch: Queue, clock: Clock
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    line = encode(Message("submit", SUBMISSION))
    before, off = submit(door, line)[0], parse({"partitions": {"default": "off"}})
    assert before is not None and "token" in before.fields
    enforcing, cycling.config = cycling.config, off
    assert submit(door, line) == [Message("ok")]
    cycling.run()
    cycling.config = enforcing
    assert submit(door, line) == [Message("ok")], "to enforce does, as nothing is decided yet"
    cycling.run()
    assert submit(door, line) == [before]


def test_submissions_that_are_alike_are_looked_into_once_between_two_cycles(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycling, woken = make(), list[int]()
    cycling.run()
    looked: list[object] = []

    def look(fields: Mapping[str, str], view: View, *, fresh: bool) -> Answer:
        assert fresh is (not looked)  # the first does not start in what it saw: it may in less
        looked.append(fields)
        return Answer(spec=Spec(Request()), started=fields["tres_per_node"] == "gres:gpu:1")

    monkeypatch.setattr("pliant.daemon.filter_door.filter_submission", look)
    door = door_one(cycling, clock, woken)
    waits = encode(Message("submit", SUBMISSION))
    starts = encode(Message("submit", {**SUBMISSION, "tres_per_node": "gres:gpu:1"}))
    first, second, *_ = submit(door, waits, waits, starts, starts)
    assert first == second
    assert len(looked) == 3  # what starts takes something away from the next
    assert (door.answered, len(woken)) == (4, 4)
    cycling.run()
    submit(door, waits)
    assert len(looked) == 4


WAYS = ("min_mem_per_node", "min_mem_per_cpu")


@pytest.mark.parametrize("way", WAYS)
def test_where_nothing_is_free_neither_time_limits_nor_memory_are_looked_into_each_for_itself(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    batch.run("1", FOUR)
    cycling = make()
    cycling.run()
    told = [
        encode(Message("submit", SUBMISSION | {"time_limit": str(n + 1), way: str(n + 1)}))
        for n in range(12)
    ]
    alone = [submit(door_one(cycling, clock, []), line)[0] for line in told]
    looked: list[object] = []

    def look(*given: Any, **named: Any) -> Answer:
        looked.append(given)
        return filter_submission(*given, **named)

    monkeypatch.setattr("pliant.daemon.filter_door.filter_submission", look)
    door = door_one(cycling, clock, [])
    assert submit(door, *told) == alone
    assert (len(looked), door.answered) == (1, len(told))
    specs = [find_token(answer.fields["token"]) for answer in alone if answer]
    field = way.removeprefix("min_") + "_mib"
    memory = [getattr(spec.footprint, field) for spec in specs if spec]
    assert memory == list(range(1, 13))


@pytest.mark.parametrize(
    "odd",
    [
        {"min_mem_per_node": "0"},
        {"min_mem_per_node": ""},
        {"min_mem_per_node": "1x"},
        {"min_mem_per_node": "-1"},
        {"min_mem_per_node": "07"},
        {"min_mem_per_node": "99999999"},
        {"min_mem_per_node": "9" * 18},
        {"min_mem_per_cpu": "7"},
        {"min_mem_per_node": "7", "min_mem_per_cpu": "7"},
        {"mem_per_tres": "gres:gpu:7"},
        {"comment": "pliant:x min_mem_per_node=8&time_limit=9"},
        {"time_limit": ""},
        {"time_limit": "0"},
    ],
)
def test_an_odd_number_is_taken_for_no_other(
    make: Make, batch: Queue, clock: Clock, odd: dict[str, str]
) -> None:
    batch.run("1", FOUR)
    cycling = make()
    cycling.run()
    usual = SUBMISSION | {"time_limit": "5", "min_mem_per_node": "7"}
    submissions = [{k: v for k, v in usual.items() if k not in WAYS} | odd, usual | odd, usual]
    lines = [encode(Message("submit", fields)) for fields in submissions]
    lines.append(lines[-1] + b"&time_limit=9")  # twice
    alone = [submit(door_one(cycling, clock, []), line)[0] for line in lines]
    door = door_one(cycling, clock, [])
    assert submit(door, *reversed(lines)) == alone[::-1]
    assert submit(door, *lines) == alone


def test_trial_jobs_that_are_alike_are_counted_one_by_one_between_two_cycles(
    make: Make, batch: Queue, clock: Clock
) -> None:
    cycling = make(parse({**ENFORCE, "trial": {"max_jobs": 2, "users": {"bob": {"max_jobs": 9}}}}))
    cycling.policy = by_name("fitgpp")
    cycling.run()
    door = door_one(cycling, clock, [])
    job = {"partition": "gpu", "option.job-class": "trial", "time_limit": "5", "batch": "1"}
    for user, beyond in (("alice", [False, False, True]), ("bob", [False, False, False])):
        line = encode(Message("submit", {**job, "user_name": user}))
        told = submit(door, line, line, line)
        assert [bool(answer and "say" in answer.fields) for answer in told] == beyond
    cycling.policy = by_name("moldable-equipartition")
    cycling.run()
    assert submit(door, encode(Message("submit", {**job, "time_limit": "999", "user_name": "al"})))[
        0
    ] == Message("ok", {"token": token_text(Spec(parse_request("job-class=trial")))})


@pytest.mark.parametrize(("since", "shape"), [("", "4"), ("8", "4"), ("5", "2"), ("0", "2")])
def test_where_another_job_came_since_the_look_none_gets_more_than_its_owner_wrote(
    make: Make, batch: Queue, clock: Clock, since: str, shape: str
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    clock.now_s += 6
    fields = {**SUBMISSION, "option.moldable": "gpus=1-4", "tres_per_node": "gres:gpu:2"}
    request = fields | ({"since": since} if since else {})
    (answer,) = submit(door, encode(Message("submit", request)))
    assert answer is not None
    assert answer.fields.get("set.gres", "gpu:2") == f"gpu:{shape}"


@pytest.mark.parametrize(("age_s", "shape"), [(9, "4"), (12, "2")])
def test_who_came_since_an_older_look_than_the_plugin_counts_is_not_known(
    make: Make, batch: Queue, clock: Clock, age_s: int, shape: str
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    clock.now_s += age_s
    assert shape_of_two(door) == f"gpu:{shape}"


ARRAY = encode(Message("submit", SUBMISSION | {"array_inx": "1-3", "tres_per_node": "gres:gpu:1"}))
TAKEN = encode(Message("submit", SUBMISSION | {"option.moldable": "gpus=1", "time_limit": "9"}))
TWO_GPUS = encode(Message("submit", SUBMISSION | {"tres_per_node": "gres:gpu:2"}))


def shape_of_two(door: FilterDoor) -> str:
    """What a job with gpus=1-4 that asks for two GPUs gets, with four on the node."""
    (answer,) = submit(door, TWO_GPUS)
    assert answer is not None
    return answer.fields.get("set.gres", "gpu:2")


@pytest.mark.parametrize("line", [ARRAY, encode(Message("submit", {"name": "x"}))])
def test_a_job_that_was_given_nothing_may_have_what_seems_free_until_the_next_look(
    make: Make, batch: Queue, clock: Clock, line: bytes
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    clock.now_s += 1
    submit(door, line, line)
    assert shape_of_two(door) == "gpu:2"
    clock.now_s += 1
    cycling.run()
    assert shape_of_two(door) == "gpu:4"


def test_a_job_that_came_while_pliantd_looked_may_have_what_seems_free(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    observe = batch.observe

    def meanwhile(_: Queue) -> Snapshot:
        seen = observe()
        clock.now_s += 1
        submit(door, TAKEN)
        clock.now_s += 1
        return seen

    monkeypatch.setattr(Queue, "observe", meanwhile)
    cycling.run()
    assert shape_of_two(door) == "gpu:2"


def test_what_is_known_of_the_inventory_stands_until_it_changes(make: Make, batch: Queue) -> None:
    cycling = make()
    cycling.run()
    first = cycling.seen
    batch.run("1", TWO)
    cycling.run()
    second = cycling.seen
    cycling.config = parse({"partitions": {"default": "observe"}})
    cycling.run()
    third = cycling.seen
    assert first is not None and second is not None and third is not None
    assert first.inventory is second.inventory
    assert third.inventory is not first.inventory and third.inventory.mode("gpu") is Mode.OBSERVE


def test_an_old_snapshot_leaves_submissions_as_they_are(
    make: Make, batch: Queue, clock: Clock
) -> None:
    cycling = make()
    door = door_one(cycling, clock, [])
    request = encode(Message("submit", SUBMISSION))
    assert submit(door, request) == [AWAY]  # nothing was seen yet
    cycling.run()
    clock.now_s += 3600
    assert submit(door, request) == [AWAY]


def test_a_mistake_in_the_filter_leaves_submissions_as_they_are(
    make: Make, batch: Queue, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycling = make()
    cycling.run()
    monkeypatch.setattr("pliant.daemon.filter_door.filter_submission", lambda *_: 1 / 0)
    door = door_one(cycling, clock, [])
    assert submit(door, encode(Message("submit", SUBMISSION))) == [AWAY]


def test_strangers_and_other_words_are_turned_away(make: Make, batch: Queue, clock: Clock) -> None:
    cycling = make()
    assert submit(door_one(cycling, clock, [], 54321), b"ping") == [None]
    answers = submit(door_one(cycling, clock, []), b"ping", b"why job=1", b"\xff\0", b"")
    assert [answer.word for answer in answers if answer] == ["ok", "no", "no", "no"]


def test_a_paused_pliant_changes_no_submission(make: Make, batch: Queue, clock: Clock) -> None:
    batch.run("1", TWO)
    cycling = make()
    cycling.run()
    door = door_one(cycling, clock, [])
    request = encode(Message("submit", SUBMISSION))
    (before,) = submit(door, request)
    cycling.store.pause(True)
    (paused,) = submit(door, request)
    assert before is not None and paused is not None
    assert set(paused.fields) < set(before.fields)


# Door 2


@pytest.fixture(autouse=True)
def no_new_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again while a question waits."""
    monkeypatch.setattr("pliant.daemon.verbs.NEW_LOOK_S", 0.0)


@dataclass(slots=True)
class Setting:
    """The verbs, and who asks."""

    verbs: Verbs
    woken: list[int]

    def ask(self, who: Asker, verb: str, **fields: str) -> object:
        try:
            return self.verbs.answer(verb, fields, who)
        except PliantError as error:
            return str(error)


ROOT = Asker(0, "root", admin=True, sees_all=True)
ALICE = Asker(1001, "alice", admin=False, sees_all=True)
BOB = Asker(1002, "bob", admin=False, sees_all=True)
SHY_BOB = Asker(1002, "bob", admin=False, sees_all=False)
BLIND_BOB = replace(SHY_BOB, sees_nodes=False, sees_partitions=False)


@pytest.fixture
def setting(make: Make, batch: Queue, clock: Clock) -> Setting:
    """One running job of bob's on two of four GPUs; alice's moldable one waits."""
    batch.run("1", TWO)
    batch.submit("2", "gpus=2:4", own=FOUR)
    cycling, woken = make(parse({"partitions": {"default": "observe"}})), list[int]()
    cycling.run()
    verbs = Verbs(
        cycling,
        wake=lambda: woken.append(1),
        clock=clock,
        troubles=lambda: ("it rains",),
        submissions=lambda: 7,
        started_s=900.0,
    )
    return Setting(verbs, woken)


def test_top_says_how_many_steps_a_program_makes(setting: Setting) -> None:
    setting.verbs.cycling.sharing = Sharing(Silent())
    for step, at_s in ((100, 990.0), (200, 995.0)):
        setting.verbs.cycling.sharing.beats.heard("1", 0, step, at_s)
    setting.verbs.cycling.run()
    top = setting.ask(BOB, "top")
    assert isinstance(top, TopAnswer)
    (job,) = top.jobs
    assert (job.id, job.speeds) == ("1", (TierSpeed("heartbeat", 20.0, "steps/s", 1),))


def test_top_says_who_waits_and_why_and_what_is_under_way(setting: Setting, batch: Queue) -> None:
    batch.has("1", comment=put_token("", Spec(parse_request("gpus=1-2"), TWO)))
    setting.verbs.cycling.run()
    store = setting.verbs.cycling.store
    asked = HandOverRow(0, 990.0, "1", "bob", "", 0, "2", "1", "2", "job 2 needs it", 1110.0)
    number = store.hand_over(asked)
    gone = store.hand_over(replace(asked, job="9"))
    top, jobs = setting.ask(BOB, "top"), setting.ask(BOB, "jobs")
    assert isinstance(top, TopAnswer) and isinstance(jobs, a.JobsAnswer)
    assert [(row.id, row.reason, row.note) for row in top.queue] == [
        ("2", "Resources", jobs.jobs[0].note)
    ]
    assert top.queued == 1
    assert top.resizes == (
        ResizeRow("1", "bob", "2", "1", "job 2", "saving", 990.0, 1110.0, "job 2 needs it"),
    )
    assert jobs.jobs[1].note == "saving: makes room for job 2"
    hidden = setting.ask(SHY_BOB, "top")
    assert isinstance(hidden, TopAnswer)
    assert (hidden.queue, hidden.queued) == ((), 0)
    (own,) = hidden.resizes
    assert (own.guest, own.reason) == ("another job", "another job needs it")
    store.saved(number, 995.0)
    store.handed_over(gone, 999.0, "no")
    assert steps_of(setting) == ["saved"]
    batch.has("1", run=1)
    setting.verbs.cycling.run()
    assert steps_of(setting) == ["started"]
    store.handed_over(number, 999.0, "done")
    assert steps_of(setting) == []


def steps_of(setting: Setting) -> list[str]:
    top = setting.ask(ROOT, "top")
    assert isinstance(top, TopAnswer)
    return [row.step for row in top.resizes]


def test_status_says_how_the_daemon_is(setting: Setting) -> None:
    status = setting.ask(BOB, "status")
    assert isinstance(status, a.StatusAnswer)
    assert replace(status, version="", host="") == a.StatusAnswer(
        version="",
        host="",
        policy="moldable-equipartition",
        started_s=900.0,
        now_s=1000.0,
        paused=False,
        observed_s=1000.0,
        cycles=1,
        submissions=7,
        waiting=1,
        waiting_flagged=1,
        running=1,
        partitions=(a.PartitionRow("gpu", "observe", True, 1, 4, 2),),
        troubles=("it rains",),
    )


def test_jobs_lists_the_flagged_ones_that_the_asker_may_see(setting: Setting) -> None:
    jobs = setting.ask(ALICE, "jobs")
    assert isinstance(jobs, a.JobsAnswer)
    (row,) = jobs.jobs
    assert replace(row, last="") == JobRow(
        id="2",
        user="alice",
        partitions=("gpu",),
        state="waiting",
        reason="Resources",
        request="moldable=gpus=2:4",
        mode="observe",
        own="4",
        carried="4",
        allowed=("2", "4"),
        last_s=1000.0,
        submitted_s=1000.0,
    )
    assert row.last.startswith("would be changed to 2: ")
    assert setting.ask(SHY_BOB, "jobs") == a.JobsAnswer(1000.0)


def test_plan_says_what_would_be_done(setting: Setting) -> None:
    plan = setting.ask(ROOT, "plan")
    assert isinstance(plan, a.PlanAnswer)
    assert [(s.id, s.carried, s.shape, s.nodes, s.change) for s in plan.starts] == [
        ("2", "4", "2", ("n1",), "would be changed")
    ]
    assert [(c.id, c.carried, c.shape, c.done) for c in plan.changes] == [("2", "4", "2", False)]
    hidden = setting.ask(SHY_BOB, "plan")
    assert isinstance(hidden, a.PlanAnswer)
    assert (hidden.starts, hidden.changes) == ((), ())


def test_why_tells_each_shape_and_the_last_decisions(setting: Setting) -> None:
    why = setting.ask(ALICE, "why", job="2")
    assert isinstance(why, a.WhyAnswer)
    assert [(s.shape, s.now, s.at_s) for s in why.shapes] == [
        ("2", True, 1000.0),
        ("4", False, 7200.0),
    ]
    assert [d.what for d in why.decisions] == ["would"]
    assert why.text.startswith("it can start now as 2 on n1")


def test_why_says_of_a_running_job_that_it_hangs(setting: Setting, batch: Queue) -> None:
    batch.run("7", ONE)
    setting.verbs.cycling.run()
    words = "no heartbeat since the checkpoint was requested 99 s ago"
    setting.verbs.cycling.store.decide([Decision(1000.0, "7", "stalled", "1", words)])
    why = setting.ask(ROOT, "why", job="7")
    assert isinstance(why, a.WhyAnswer)
    assert why.text == words
    setting.verbs.cycling.store.decide([Decision(1001.0, "7", "handed over", "1", "done")])
    again = setting.ask(ROOT, "why", job="7")
    assert isinstance(again, a.WhyAnswer)
    assert again.text != words


def test_why_and_history_say_what_resizing_has_cost_a_job_so_far(
    setting: Setting, batch: Queue
) -> None:
    """Its checkpoint took 5 s on 4 GPUs, and 20 s later it worked again, on 2."""
    store, base = setting.verbs.cycling.store, RunRow("7", 0, "ann", "", "4", "n1", 1.0, 1.0, 1.0)
    batch.run("7", ONE)
    setting.verbs.cycling.run()
    ran = replace(base, launched_s=2.0, saved_took_s=5.0)
    goes_on = replace(base, run=1, shape="2", start_s=110.0, launched_s=125.0)
    for run, gpus in ((ran, 4.0), (goes_on, 2.0)):
        store.run_began(run)
        store.run_told(run)
        store.jobs.keep(begun=[replace(run, gpus=gpus)])
    over = HandOverRow(0, 90.0, "7", "ann", "", 0, "4", "2", "", "it fits", 150.0)
    store.handed_over(store.hand_over(over), 95.0, "no checkpoint in time")
    number = store.hand_over(replace(over, at_s=100.0))
    store.saved(number, 105.0)
    store.handed_over(number, 112.0, "done")
    why, history = setting.ask(ROOT, "why", job="7"), setting.ask(ROOT, "history", job="7")
    assert isinstance(why, a.WhyAnswer) and isinstance(history, a.HistoryAnswer)
    assert why.cost == a.CostRow(2, 1, 0, 25.0, 5 * 4.0 + 20 * 2.0)
    assert (history.lost_s, history.lost_gpu_s) == (why.cost.lost_s, why.cost.lost_gpu_s)
    assert [row.lost_gpu_s for row in history.handovers] == [0.0, 60.0]


def test_a_waiting_task_is_its_array_and_no_other_number_is(setting: Setting, batch: Queue) -> None:
    batch.gone("2")
    batch.submit("5", "gpus=2:4", own=FOUR, also=[("ArrayTaskID", "3-9:2,12")])
    batch.run("7_1", ONE)
    setting.verbs.cycling.run()
    for name, found in (("5", "5"), ("5_7", "5"), ("5_12", "5"), ("7_1", "7_1")):
        why = setting.ask(ROOT, "why", job=name)
        assert isinstance(why, a.WhyAnswer) and why.job.id == found
    unknown = {
        "1_1": "'1_1': job 1 is not an array: ask for 1",
        "5_4": "'5_4': no waiting or running job of this number is known",
        "5_": "'5_': no waiting or running job of this number is known",
        "7": "'7': an array, whose tasks are asked for one by one: 7_1",
        "7_2": "'7_2': no waiting or running job of this number is known",
    }
    assert {name: setting.ask(ROOT, "why", job=name) for name in unknown} == unknown


def test_an_array_of_pbs_is_named_as_its_users_write_it(setting: Setting, make: Make) -> None:
    setting.verbs.cycling = make(over=Recorded().pbs())
    setting.verbs.cycling.run()
    for name, found in (
        *(("34", "34[]"), ("34[]", "34[]"), ("34[4]", "34[]"), ("34_4", "34[]")),
        *(("34[1]", "34[1]"), ("34_1", "34[1]"), ("34[2]", "34[2]")),
    ):
        why = setting.ask(ROOT, "why", job=name)
        assert isinstance(why, a.WhyAnswer) and why.job.id == found
    unknown = {
        "30[1]": "'30[1]': job 30 is not an array: ask for 30",
        "34[6]": "'34[6]': no waiting or running job of this number is known",
        "34[": "'34[': no waiting or running job of this number is known",
    }
    assert {name: setting.ask(ROOT, "why", job=name) for name in unknown} == unknown
    ada = replace(ALICE, name="ada")
    assert isinstance(setting.ask(ada, "set", job="34", spec="gpus=1-2"), a.DoneAnswer)
    setting.verbs.cycling.run()
    whole = setting.ask(ada, "pin", job="34")
    task = setting.ask(ada, "pin", job="34[4]")
    assert isinstance(whole, a.DoneAnswer) and isinstance(task, a.DoneAnswer)
    assert whole.message == "job 34[] stays as it is"
    assert task.message == "job 34[] stays as it is: all its waiting tasks, not 34[4] alone"


@pytest.mark.parametrize(("kept", "names"), [("9[3]", ("9[3]", "9_3")), ("9_3", ("9_3", "9[3]"))])
def test_a_task_that_has_ended_has_a_history(
    setting: Setting, kept: str, names: tuple[str, ...]
) -> None:
    store = setting.verbs.cycling.store
    store.run_began(RunRow(kept, 0, "alice", "", "1", "n1", 1.0, 2.0, 3.0))
    for name in names:
        history = setting.ask(ALICE, "history", job=name)
        assert isinstance(history, a.HistoryAnswer)
        assert (history.job, [run.nodes for run in history.runs]) == (kept, [("n1",)])
    assert "no waiting or running job" in str(setting.ask(ALICE, "history", job="9"))


def test_what_is_done_to_a_waiting_task_is_done_to_its_array_and_that_is_said(
    setting: Setting, batch: Queue
) -> None:
    batch.has("2", [("ArrayTaskID", "1-3")])
    setting.verbs.cycling.run()
    for verb, spec, words in (
        ("set", "gpus=1-2", "now says moldable=gpus=1-2"),
        ("pin", "", "stays as it is"),
        ("unpin", "", "may change again"),
    ):
        fields = {"spec": spec} if spec else {}
        done = setting.ask(ALICE, verb, job="2_3", **fields)
        assert isinstance(done, a.DoneAnswer)
        said = f"job 2 {words}: all its waiting tasks, not 2_3 alone"
        assert done.message.partition("; ")[0] == said
        setting.verbs.cycling.run()


def test_why_names_the_shapes_that_a_waiting_job_cannot_be_changed_to(
    setting: Setting, batch: Queue
) -> None:
    request = parse_request("gpus=1/4:2:4:8,type=gpu:cpu")
    batch.says("2", request=request)
    job = batch.job("2")
    setting.verbs.cycling.run()
    why = setting.ask(ALICE, "why", job="2")
    assert isinstance(why, a.WhyAnswer)
    assert why.cannot == (
        a.CannotRow(("1x0@cpu",), GIVE_UP_GPUS),
        a.CannotRow(("1/4",), SHARES),
        a.CannotRow(("8",), OTHERWISE),
    )
    pinned = replace(job, spec=Spec(request, FOUR, pinned=True))
    assert cannot_rows(pinned, Abilities()) == ()
    able = Abilities(share_to_whole=True, whole_to_share=True, gpu_to_cpu=True)
    many = replace(job, spec=Spec(parse_request("gpus=1-20"), FOUR), shapes=(FOUR,))
    (row,) = cannot_rows(many, able)
    assert row.shapes == ("1", "2", "3", "5", "6", "7", "8", "9", "and 11 more")


def test_a_job_that_something_is_kept_for_says_what_and_when(
    setting: Setting, batch: Queue
) -> None:
    batch.submit("2", "gpus=4", own=FOUR)
    setting.verbs.cycling.run()
    jobs, why = setting.ask(ALICE, "jobs"), setting.ask(ALICE, "why", job="2")
    assert isinstance(jobs, a.JobsAnswer) and isinstance(why, a.WhyAnswer)
    assert why.text == "it waits, and n1 is kept for it as 4 in 103 min"
    assert [row.last for row in jobs.jobs] == ["waits; n1 is kept for it as 4 in 103 min"]
    before = Decision(1e6, "2", "keep", "4", "first in the queue")
    assert decision_text(before) == "waited for an opening as 4: first in the queue"


def test_where_pliant_is_off_why_says_so(setting: Setting, batch: Queue) -> None:
    setting.verbs.cycling.config = parse({"partitions": {"default": "off"}})
    batch.submit("3", "", own=TWO)
    setting.verbs.cycling.run()
    flagged, silent = setting.ask(ALICE, "why", job="2"), setting.ask(ALICE, "why", job="3")
    assert isinstance(flagged, a.WhyAnswer) and isinstance(silent, a.WhyAnswer)
    assert flagged.left == "Pliant is off in partition gpu"
    assert silent.left == "Pliant is off in partition gpu: what a job says to it is not read there"
    setting.verbs.cycling.config = parse(ENFORCE)
    setting.verbs.cycling.run()
    silent = setting.ask(ALICE, "why", job="3")
    assert isinstance(silent, a.WhyAnswer)
    assert silent.left == "it says nothing to Pliant; `pliant set` gives it a request"
    batch.has("2", [("Reservation", "course")])
    setting.verbs.cycling.run()
    asked = setting.ask(ALICE, "why", job="2")
    assert isinstance(asked, a.WhyAnswer)
    assert asked.left == "it belongs to a reservation"


@pytest.mark.parametrize(
    "job", ["3", "", "2;ls", "\n", "x" * 100_000, "2_" + "9" * 10_000, "_", "2_x"]
)
def test_an_unknown_job_is_said_in_one_line(setting: Setting, job: str) -> None:
    answer = setting.ask(ALICE, "why", job=job)
    assert isinstance(answer, str) and "\n" not in answer and len(answer) < 200


def test_an_unknown_job_may_be_newer_than_an_old_look(setting: Setting, clock: Clock) -> None:
    clock.now_s += 60
    words = "'99': no waiting or running job of this number is known; the last look was 60 s ago"
    assert setting.ask(ALICE, "why", job="99") == words


def test_a_job_submitted_just_now_is_found_in_a_new_look(
    setting: Setting, batch: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.daemon.verbs.NEW_LOOK_S", 10.0)
    batch.submit("3", "gpus=1-2", own=TWO)
    setting.verbs.wake = threading.Thread(target=setting.verbs.cycling.run).start
    why = setting.ask(ALICE, "why", job="3")
    assert isinstance(why, a.WhyAnswer) and why.job.id == "3"


def test_a_job_that_may_not_be_seen_is_not_there(setting: Setting) -> None:
    assert setting.ask(SHY_BOB, "why", job="2") == (
        "'2': no waiting or running job of this number is known"
    )


# What PrivateData keeps from users


@pytest.fixture
def behind(setting: Setting, batch: Queue) -> Setting:
    """A job of bob's waits behind alice's, for which the node is kept."""
    batch.submit("2", "gpus=4", own=FOUR)
    batch.submit("3", "gpus=1-2", own=ONE, user="bob", limit_min=150)
    setting.verbs.cycling.run()
    return setting


def why_3(setting: Setting, who: Asker) -> a.WhyAnswer:
    why = setting.ask(who, "why", job="3")
    assert isinstance(why, a.WhyAnswer)
    return why


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (ROOT, "n1 is kept for job 2"),
        (BOB, "n1 is kept for job 2"),
        (SHY_BOB, "1 node is kept for another job"),
        (BLIND_BOB, "1 node is kept for another job"),
    ],
)
def test_why_a_shape_does_not_fit_names_no_job_that_may_not_be_seen(
    behind: Setting, who: Asker, words: str
) -> None:
    says = f"{words} in 103 min, and its time limit would run into that"
    why = why_3(behind, who)
    assert [shape.reason for shape in why.shapes] == [says, says]
    assert [claim.id for claim in why.before] == (["2"] if who.sees_all else [])


def test_why_a_shape_is_left_names_no_job_that_may_not_be_seen(
    behind: Setting, batch: Queue
) -> None:
    for number in ("2", "3"):
        batch.has(number, reason="QOSGrpGRES")
    behind.verbs.cycling.run()
    words = "before it waits for a limit that may be its own too"
    assert why_3(behind, BOB).left == f"job 2 {words}"
    assert why_3(behind, SHY_BOB).left == f"another job {words}"


def test_the_history_names_no_job_that_may_not_be_seen(behind: Setting) -> None:
    for other in ("2", "1", "77", "5_3"):
        reason = f"beside job {other} both are done soonest; n1, n9"
        behind.verbs.cycling.store.decide([Decision(2000.0, "3", "start", "1", reason)])
    own, another = (f"beside {job} both are done soonest" for job in ("job 1", "another job"))
    assert [d.reason for d in why_3(behind, SHY_BOB).decisions[:4]] == [
        f"{another}; a node, n9",
        f"{another}; a node, n9",
        f"{own}; n1, n9",
        f"{another}; a node, n9",
    ]
    jobs = behind.ask(SHY_BOB, "jobs")
    assert isinstance(jobs, a.JobsAnswer)
    assert [row.last for row in jobs.jobs] == [f"can start as 1: {another}; a node, n9"]


def test_nodes_and_partitions_are_not_shown_to_whom_slurm_would_not_show_them(
    setting: Setting, batch: Queue
) -> None:
    batch.submit("2", "gpus=2:4", own=FOUR, user="bob")
    batch.run("1", TWO, user="bob", comment=put_token("", Spec(parse_request("gpus=2"), TWO)))
    setting.verbs.cycling.run()
    status, plan = setting.ask(BLIND_BOB, "status"), setting.ask(BLIND_BOB, "plan")
    why, jobs = setting.ask(BLIND_BOB, "why", job="2"), setting.ask(BLIND_BOB, "jobs")
    assert isinstance(status, a.StatusAnswer) and isinstance(plan, a.PlanAnswer)
    assert isinstance(why, a.WhyAnswer) and isinstance(jobs, a.JobsAnswer)
    assert status.partitions == ()
    assert [(start.shape, start.nodes) for start in plan.starts] == [("2", ())]
    assert why.text.startswith("it can start now as 2 on 1 node: ")
    assert [shape.nodes for shape in why.shapes] == [(), ()]
    # Where a job runs squeue says too.
    assert [(row.id, row.nodes) for row in jobs.jobs] == [("2", ()), ("1", ("n1",))]
    status = setting.ask(replace(BLIND_BOB, sees_partitions=True), "status")
    assert isinstance(status, a.StatusAnswer)
    assert status.partitions == (a.PartitionRow("gpu", "observe", True, -1, -1, -1),)


def test_lists_of_nodes_become_their_number() -> None:
    nodes = tuple(Node(f"n{i}", 1, 1, 1, 1, ()) for i in (1, 2, 3))
    snapshot = Snapshot(0.0, nodes, (), (), ())
    words = "it waits, and n1, n2, n3 and 2 more is kept; n1 alone; n9, x"
    answer = a.WhyAnswer(0.0, JobRow("3", "bob", (), "waiting", "", "", "off"), words)
    told = without_private(answer, BLIND_BOB, snapshot)
    says = "it waits, and 5 nodes is kept; 1 node alone; n9, x"
    assert told == replace(answer, text=says)
    assert without_private(answer, ROOT, snapshot) is answer


def test_every_field_of_the_answers_is_a_sentence_or_known_to_be_none() -> None:
    """A new text must be looked at: may it name other users' jobs, or nodes?"""
    rows = {
        kind
        for kind in (*vars(a).values(), *vars(watched).values())
        if dataclasses.is_dataclass(kind) and isinstance(kind, type)
    }
    texts = {
        f"{kind.__name__}.{one.name}"
        for kind in rows
        for one in dataclasses.fields(kind)
        if one.type == "str" and one.name not in TEXTS.get(kind, ())
    }
    of_jobs = ("id", "user", "carried", "shape")
    assert texts == {
        *(f"{kind}.{name}" for kind in ("StartRow", "ChangeRow") for name in of_jobs),
        *(f"ClaimRow.{name}" for name in ("id", "user", "shape")),
        *(f"JobRow.{name}" for name in ("id", "user", "state", "request", "mode")),
        *(f"JobRow.{name}" for name in ("own", "carried")),
        "JobRow.reason",  # the batch system's own, which it shows with the job
        *("StartRow.change", "ShapeRow.shape", "DecisionRow.what", "DecisionRow.shape"),
        *("PartitionRow.name", "PartitionRow.mode"),
        *(f"StatusAnswer.{name}" for name in ("version", "host", "policy", "stands_by")),
        "PlanAnswer.policy",
        "CannotRow.reason",  # what Slurm can change at all
        "DoneAnswer.message",  # of the asker's own job
        *(f"HistoryAnswer.{name}" for name in ("job", "user", "partition", "state", "request")),
        *(f"HistoryAnswer.{name}" for name in ("own", "filtered", "would", "exit", "tasks")),
        *("RunHistory.shape", "HandOverHistory.outcome"),
        *("HandOverHistory.before", "HandOverHistory.after"),
        *(f"SpeedRow.{name}" for name in ("job", "tier", "unit")),  # for administrators alone
        "MonitorRow.node",
        *("Tally.partition", "ResizeCount.why", "ResizeCount.result"),
        # only rows that may be seen are made at all: tests/unit/test_top.py
        *(f"RunningRow.{name}" for name in ("id", "user", "name", "state", "shape")),
        *(f"ResizeRow.{name}" for name in ("id", "user", "before", "after", "step")),
        *("NodeRow.name", "TierSpeed.tier", "TierSpeed.unit", "TopAnswer.policy"),
        "TopAnswer.stands_by",  # as in status
    }


def test_an_owner_gives_a_job_another_request(setting: Setting, batch: Queue) -> None:
    done = setting.ask(ALICE, "set", job="2", spec="gpus=1-2")
    assert isinstance(done, a.DoneAnswer)
    assert done.message.startswith("job 2 now says moldable=gpus=1-2")
    assert batch.spec("2") == Spec(parse_request("gpus=1-2"), FOUR, None, ALONE, renewed=True)
    assert setting.woken == [1]


@pytest.mark.parametrize("mark", ["n1", "*", "-"])
def test_a_mark_is_known_for_pliants_own_once_a_request_is_set(
    setting: Setting, batch: Queue, mark: str
) -> None:
    """Else nobody would take it back from a job whose owner says that it shares with nobody."""
    batch.says("2", mark=mark)
    setting.ask(ALICE, "set", job="2", spec="colocate=no")
    said = batch.spec("2")
    assert said is not None and (said.mark, said.request.colocate) == (mark, False)


def test_what_an_owner_changed_by_hand_is_the_own_shape_once_a_request_is_set(
    setting: Setting, batch: Queue
) -> None:
    batch.has("2", gpus=1)
    setting.ask(ALICE, "set", job="2", spec="gpus=1-2")  # not looked at since
    assert batch.spec("2") == Spec(parse_request("gpus=1-2"), ONE, None, ALONE, renewed=True)


PER_GPU = Footprint(cpus_per_gpu=2)


@pytest.mark.parametrize(
    ("noted", "carries", "then"),
    [
        # as Pliant left it: what was noted stays, and memory that the batch system gave is its own
        (PER_GPU, {"cpus": 4, "min_cpus": 4}, PER_GPU),
        (PER_GPU, {"cpus": 4, "min_cpus": 4, "also": [("MinMemory", "500M")]}, PER_GPU),
        # other CPUs, tasks or memory under the same shape: what it carries is its owner's
        (PER_GPU, {"cpus": 8, "min_cpus": 8}, Footprint(cpus_per_task=8)),
        (
            PER_GPU,
            {"cpus": 3, "also": [("NumTasks", "3"), ("cpus-per-task", "1"), ("NTPerNode", "3")]},
            Footprint(3),
        ),
        (
            Footprint(mem_per_gpu_mib=100),
            {"also": [("MinMemory", "300M")]},
            Footprint(mem_per_node_mib=300),
        ),
    ],
)
def test_what_a_job_carries_beside_its_shape_is_its_owners_too_once_a_request_is_set(
    setting: Setting, batch: Queue, noted: Footprint, carries: dict[str, Any], then: Footprint
) -> None:
    batch.says("2", set=TWO, footprint=noted)
    batch.has("2", gpus=2, **carries)
    setting.ask(ALICE, "set", job="2", spec="gpus=1-2")
    assert batch.spec("2") == Spec(parse_request("gpus=1-2"), FOUR, TWO, then, renewed=True)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"gpus": 1}, ""),
        ({"also": [("Reservation", "course")]}, "; it is not applied: it belongs to a reservation"),
    ],
)
def test_where_a_request_is_not_applied_the_answer_says_why(
    setting: Setting, batch: Queue, changed: dict[str, Any], says: str
) -> None:
    setting.verbs.cycling.config = parse(ENFORCE)
    batch.has("2", **changed)
    done = setting.ask(ALICE, "set", job="2", spec="gpus=1-2")
    assert done == a.DoneAnswer(f"job 2 now says moldable=gpus=1-2{says}")


def test_a_request_that_is_beyond_reach_is_told_so(batch: Queue) -> None:
    batch.submit("2", "gpus=1/4", own=FOUR)
    waits = batch.job("2").but(spec=Spec(parse_request("gpus=1/4"), FOUR, renewed=True))
    assert beyond_reach(replace(waits, shapes=(FOUR,)), Abilities()) == (
        f"it cannot become 1/4: {SHARES}"
    )
    assert beyond_reach(replace(waits, shapes=(ONE,)), Abilities()) == ""


def said(job: Job) -> Spec:
    """Return what a job says; it says something."""
    assert job.spec is not None
    return job.spec


def test_a_pin_is_set_and_taken_back(setting: Setting, batch: Queue) -> None:
    assert setting.ask(ALICE, "pin", job="2") == a.DoneAnswer("job 2 stays as it is")
    assert batch.spec("2") == Spec(parse_request("gpus=2:4"), FOUR, None, ALONE, pinned=True)
    setting.verbs.cycling.run()
    assert setting.ask(ROOT, "unpin", job="2") == a.DoneAnswer("job 2 may change again")
    assert batch.spec("2") == Spec(parse_request("gpus=2:4"), FOUR, None, ALONE)


@pytest.mark.parametrize(
    ("who", "verb", "fields", "message"),
    [
        (BOB, "set", {"job": "2", "spec": "gpus=1"}, "job 2 is not yours: "),
        (BOB, "pin", {"job": "2"}, "job 2 is not yours: "),
        (ALICE, "set", {"job": "2", "spec": "gpus=0"}, "moldable gpus: '0': "),
        (ALICE, "set", {"job": "2"}, "spec= is missing"),
        (BOB, "set", {"job": "1", "spec": "gpus=1"}, "job 1 does not wait any more: it is running"),
        (ALICE, "pause", {}, "only an administrator may do this"),
        (ALICE, "resume", {}, "only an administrator may do this"),
        (
            ROOT,
            "reboot",
            {},
            "'reboot': one of status, counts, jobs, top, plan, why, history, report, set, pin, ",
        ),
    ],
)
def test_what_may_not_be_done_is_said_in_one_line(
    setting: Setting,
    who: Asker,
    verb: str,
    fields: dict[str, str],
    message: str,
) -> None:
    answer = setting.ask(who, verb, **fields)
    assert isinstance(answer, str) and answer.startswith(message)
    assert isinstance(setting.verbs.cycling.batch, Queue)
    assert setting.verbs.cycling.batch.changes == []


def test_an_administrator_pauses_and_resumes(setting: Setting) -> None:
    setting.ask(ROOT, "pause")
    status = setting.ask(BOB, "status")
    assert isinstance(status, a.StatusAnswer) and status.paused
    setting.ask(ROOT, "resume")
    assert not setting.verbs.cycling.store.paused
    assert setting.woken == [1, 1]


def test_before_the_first_look_troubles_are_told(make: Make, clock: Clock) -> None:
    verbs = Verbs(make(), lambda: None, clock, lambda: ("slurmctld is away",), lambda: 0, 0.0)
    with pytest.raises(Unavailable, match=r"^slurmctld is away$"):
        verbs.answer("jobs", {}, ROOT)
    assert isinstance(verbs.answer("status", {}, ROOT), a.StatusAnswer)


def test_a_batch_system_that_is_away_is_the_answer_to_set(setting: Setting, batch: Queue) -> None:
    batch.clients.away = Unavailable("slurmctld does not answer")
    assert setting.ask(ALICE, "pin", job="2") == "slurmctld does not answer"


def test_rights_follow_the_batch_system_and_the_configuration() -> None:
    site = Site(slurm_uid=64030, private=frozenset({"jobs"}))
    assert asker(0, site, ()) == Asker(0, "root", admin=True, sees_all=True)
    assert asker(64030, site, ()).admin
    assert asker(54321, site, ()) == Asker(54321, "54321", admin=False, sees_all=False)
    site = Site(slurm_uid=64030, private=frozenset({"nodes", "partitions", "usage"}))
    assert asker(54321, site, ()) == Asker(54321, "54321", False, True, False, False)
    assert asker(54321, site, ("54321",)).admin
    assert asker(54321, Site(), ()).sees_all


@pytest.mark.parametrize(
    ("uid", "name", "owner", "owns"),
    [
        (1001, "alice", "alice", True),
        (1001, "alice", "1001", False),
        (54321, "54321", "54321", True),
        (3001, "2002", "2002", False),  # a user whose name is another's number
    ],
)
def test_a_job_is_its_users_own_by_name_and_by_number_where_there_is_none(
    uid: int, name: str, owner: str, owns: bool
) -> None:
    asks = Asker(uid, name, admin=False, sees_all=False)
    assert asks.owns(Job("1", user=owner)) is owns


def test_every_answer_goes_over_the_wire_and_back(setting: Setting) -> None:
    for verb, kind, fields in (
        ("status", a.StatusAnswer, {}),
        ("jobs", a.JobsAnswer, {}),
        ("counts", a.CountsAnswer, {}),
        ("plan", a.PlanAnswer, {}),
        ("why", a.WhyAnswer, {"job": "2"}),
        ("pin", a.DoneAnswer, {"job": "2"}),
    ):
        answer = setting.ask(ALICE, verb, **fields)
        assert a.from_json(kind, a.to_json(answer)) == answer


class _KnowsAlice(Munge):
    """Believes every credential: it is alice, and the credential is the payload."""

    async def prove(self, credential: bytes) -> Proof:
        return Proof(1001, credential)


async def ask_door(answer: DoorAnswer, request: Message) -> Message:
    """Say hello, and send the request with the challenge."""
    hello = decode(await answer(b"hello", stays))
    proven = Message(request.word, {**request.fields, **hello.fields})
    return decode(await answer(b"munge " + encode(proven), stays))


def test_door_two_answers_in_json_or_in_one_line(setting: Setting) -> None:
    threads: list[int] = []

    def who(uid: int) -> Asker:
        threads.append(threading.get_ident())
        return replace(ALICE, uid=uid)

    async def run(said: bytes | Message) -> Message:
        answer = MungeDoor(_KnowsAlice(""), setting.verbs, who).begin()
        if isinstance(said, Message):
            return await ask_door(answer, said)
        return decode(await answer(said, stays))

    answer = asyncio.run(run(Message("why", {"job": "2"})))
    assert answer.is_ok
    assert a.from_json(a.WhyAnswer, answer.fields["json"]).job.user == "alice"
    assert threads[0] != threading.get_ident()  # the doors' thread waits for nobody
    assert asyncio.run(run(Message("why", {"job": "99"}))) == Message(
        "no", {"message": "'99': no waiting or running job of this number is known"}
    )
    assert asyncio.run(run(b"status")).message == "munge <credential> is expected"
    assert asyncio.run(run(b"munge \xff")).message.startswith("line: ")


@pytest.mark.parametrize("verb", ["status", "no-verb", "why"])
def test_what_asks_for_a_seal_gets_one_whatever_the_answer(setting: Setting, verb: str) -> None:
    door = MungeDoor(_KnowsAlice(""), setting.verbs, lambda _uid: ALICE)
    answer = asyncio.run(ask_door(door.begin(), Message(verb, {SEAL_KEY: "k"})))
    bare = unsealed(answer, "k")
    assert bare is not None
    assert bare.is_ok == (verb == "status")


def test_a_recorded_request_counts_on_no_other_connection(setting: Setting) -> None:
    doors = [MungeDoor(_KnowsAlice(""), setting.verbs, lambda _uid: ALICE) for _ in range(2)]
    recorded: list[bytes] = []

    async def run() -> list[Message]:
        async def spied(line: bytes, giving_way: GivingWay) -> bytes:
            recorded.append(line)
            return await first(line, giving_way)

        first = doors[0].begin()
        answers = [await ask_door(spied, Message("status"))]
        for door in doors:  # of the same daemon, and of the other controller's
            for begins in ([recorded[1]], recorded):
                answer = door.begin()
                answers.append(decode([await answer(line, stays) for line in begins][-1]))
        return answers

    asked, *again = asyncio.run(run())
    assert asked.is_ok
    assert {answer.message for answer in again} == {
        "this munge credential was made for another connection"
    }
    assert [door.refused for door in doors] == [{"for another connection": 2}] * 2


def test_one_user_leaves_room_for_the_others(setting: Setting) -> None:
    go, uids = threading.Event(), iter([1001] * 17 + [1002])

    class KnowsMany(_KnowsAlice):
        async def prove(self, credential: bytes) -> Proof:
            return Proof(next(uids), credential)

    def who(uid: int) -> Asker:
        if uid == 1001:
            go.wait(20)
        else:
            go.set()
        return replace(ALICE, uid=uid)

    async def run() -> list[Message]:
        # As asyncio has on one core: what is above THREADS_OF_ONE takes none of them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(5))
        door = MungeDoor(KnowsMany(""), setting.verbs, who)
        asked = (ask_door(door.begin(), Message("status")) for _ in range(18))
        return await asyncio.gather(*asked)

    *answered, refused, other = asyncio.run(run())
    assert {answer.is_ok for answer in (*answered, other)} == {True}
    assert refused.message == "16 requests of yours are being answered: ask after that"


def test_a_pliant_of_an_earlier_release_is_told_so_in_one_line(setting: Setting) -> None:
    async def run() -> Message:
        answer = MungeDoor(_KnowsAlice(""), setting.verbs, lambda _uid: ALICE).begin()
        return decode(await answer(b"munge status", stays))

    assert asyncio.run(run()).message == (
        "this pliant is of an earlier release than pliantd: upgrade it on this host"
    )
