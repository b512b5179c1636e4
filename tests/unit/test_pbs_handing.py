"""A hand-over on PBS over a recorded OpenPBS 23.06: its steps, and who is kept out meanwhile."""

from __future__ import annotations

import contextlib
import errno
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from pbs_recorded import LISTED, NAMES, NOW_S, Recorded

from pliant.batch.clients import Answer
from pliant.batch.pbs import Pbs
from pliant.batch.pbs.fences import Fences, Kept
from pliant.batch.pbs.queries import KICK
from pliant.daemon.guests import first_task
from pliant.daemon.kept import unwanted
from pliant.errors import Refused, TooLate, Unavailable
from pliant.filter.pbs.fences import Fence, fences_text, in_the_way, read_fences
from pliant.grammar import parse, token_text
from pliant.handover import (
    FENCE_S,
    GIVE_UP_S,
    START_S,
    Do,
    HandOver,
    Outcome,
    Step,
    next_step,
)
from pliant.model import Footprint, Job, JobState, Shape, Snapshot, Spec


@pytest.fixture
def site(tmp_path: Path) -> Recorded:
    site = Recorded()
    site.fences = tmp_path / "run" / "fences.json"
    return site


def job(snapshot: Snapshot, job_id: str) -> Job:
    return next(one for one in (*snapshot.waiting, *snapshot.running) if one.id == job_id)


class Clocked:
    """A pliantd that goes on: the same backend at several instants."""

    def __init__(self, site: Recorded, guest: str = "", saved_s: float = NOW_S) -> None:
        self.now_s, self.site = NOW_S, site
        self.pbs = Pbs(site, lambda: self.now_s, NAMES, fences=site.fences)
        self.job = job(self.pbs.observe(), "30")
        site.said.clear()  # whom an earlier pliantd has kept out may start
        shape = Shape(1, 1 if guest else 2)
        self.over = HandOver(
            *("30", 0, shape, NOW_S - 5, NOW_S + 60, saved_s, guest), before=self.job.shape
        )

    def step(self, at_s: float = 0.0) -> Step:
        """Do the next step, so many seconds after the first."""
        self.now_s = NOW_S + at_s
        step = next_step(self.over, self.pbs.scene(self.over, self.job))
        if step.do not in (Do.WAIT, Do.SETTLE, Do.END):
            self.pbs.step(step, self.over, self.job)
        return step


def fences(site: Recorded) -> tuple[Fence, ...]:
    """What the runjob hook is told."""
    assert site.fences
    return read_fences(site.fences.read_text()) if site.fences.exists() else ()


def goes_back(site: Recorded, **more: object) -> None:
    """What the epilogue hook makes of a job that ends with 85."""
    one = site.job("30")
    one["Variable_List"]["PLIANT_BACK"] = f"1:1:{NOW_S + 60:.0f}"
    one.update(job_state="W", Execution_Time="Mon Nov 23 06:23:32 2026")
    one.update(more)
    one.pop("exec_vnode", None)


def starts_again(site: Recorded) -> None:
    """What PBS makes of it after the start that our hook refuses."""
    goes_back(site, job_state="R", run_count=3, stime="Mon Nov 23 06:22:34 2026")
    site.job("30")["exec_vnode"] = "(gn1:ncpus=2:ngpus=2)"
    site.job("30").pop("Execution_Time", None)


KEPT = Fence("30", NOW_S + FENCE_S, ("gn1",), ("30",), ("workq", "debug"))


def test_a_program_that_has_not_saved_is_waited_for(site: Recorded) -> None:
    assert (Clocked(site, saved_s=0.0).step(), site.said, fences(site)) == (Step(Do.WAIT), [], ())


def test_who_gives_up_a_job_is_not_asked_for_more(site: Recorded) -> None:
    late = Clocked(site, saved_s=0.0)
    assert late.step(61).outcome is Outcome.NOT_SAVED
    stuck = Clocked(site)
    stuck.over = replace(stuck.over, saved_s=NOW_S - 601)
    site.job("30")["stime"] = "Mon Nov 23 06:02:18 2026"
    assert stuck.step().outcome is Outcome.SLOW


def test_one_that_has_saved_is_fenced_given_time_to_end_and_then_requeued(site: Recorded) -> None:
    under_way = Clocked(site)
    assert (under_way.step().do, fences(site)) == (Do.FENCE, (replace(KEPT, lets=()),))
    assert (under_way.step().do, site.said) == (Do.REQUEUE, [])
    assert (under_way.step(20).do, site.said) == (Do.REQUEUE, [("qrerun", "30")])
    assert under_way.pbs.fences() == {"30": NOW_S + FENCE_S}


def test_a_later_run_than_the_one_that_saved_is_not_ended(site: Recorded) -> None:
    """It has gone back by itself while pliantd stood still between its look and its step."""
    under_way = Clocked(site)
    under_way.step()
    seen = next_step(under_way.over, under_way.pbs.scene(under_way.over, under_way.job))
    site.job("30").update(run_count=3, stime="Mon Nov 23 06:26:34 2026")
    under_way.now_s = NOW_S + 590
    with pytest.raises(TooLate, match="does not run any more"):
        under_way.pbs.step(seen, under_way.over, under_way.job)
    assert (seen.do, site.said) == (Do.REQUEUE, [])


def test_a_fence_that_was_put_up_by_a_clock_that_was_set_back_is_that_of_its_hand_over(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    assert under_way.step(-3600).do is Do.FENCE
    assert under_way.step(-3599).do is Do.REQUEUE


@pytest.mark.parametrize("state", ["S", "U"])
def test_one_that_is_suspended_keeps_its_place_until_it_goes_on(site: Recorded, state: str) -> None:
    under_way = Clocked(site)
    under_way.step()
    site.job("30")["job_state"] = state
    assert (under_way.step(19).do, fences(site)) == (Do.UNFENCE, ())  # PBS gives others what it had
    assert under_way.step(20).do is Do.SETTLE
    with pytest.raises(TooLate, match="does not run any more"):
        under_way.pbs.step(Step(Do.REQUEUE), under_way.over, under_way.job)
    site.job("30")["job_state"] = "R"
    assert (under_way.step(21).do, fences(site) != ()) == (Do.FENCE, True)
    assert ("qrerun", "30") not in site.said
    assert (under_way.step(21).do, site.said[-1]) == (Do.REQUEUE, ("qrerun", "30"))


@pytest.mark.parametrize(
    "words",
    [
        "qrerun: Response timed out. Job rerun request still in progress for 30.head",
        "qrerun: Request invalid for state of job 30.head",
    ],
)
def test_a_rerun_that_takes_long_is_waited_for(site: Recorded, words: str) -> None:
    under_way = Clocked(site)
    under_way.step()
    site.refuses = words
    with pytest.raises(Unavailable, match="requeue: qrerun"):
        under_way.step(20)
    site.refuses = "qrerun: Unauthorized Request"
    with pytest.raises(Refused, match="Unauthorized"):
        under_way.step(21)


def test_one_that_somebody_has_deleted_is_not_requeued(site: Recorded) -> None:
    """PBS shows it running for as long as its processes take to end, and would let it come back."""
    under_way = Clocked(site)
    under_way.step()
    site.job("30")["comment"] = "Job run at Fri Nov 27 at 09:41 on (gn1) and terminated by ada@head"
    with pytest.raises(Refused, match="it has been deleted"):
        under_way.step(20)
    site.answers["jobs"]["Jobs"].pop("30.head")  # since the look
    with pytest.raises(Refused, match="it has been deleted"):
        under_way.pbs.step(Step(Do.REQUEUE), under_way.over, under_way.job)
    assert site.said == []


def test_the_fence_is_up_before_the_program_that_has_saved_ends(site: Recorded) -> None:
    asked = Clocked(site, saved_s=0.0)
    asked.step()
    asked.pbs.before_end(asked.over, asked.job)
    assert (fences(site), site.said) == ((replace(KEPT, lets=()),), [])


def test_one_that_goes_back_without_a_time_to_begin_waits_for_its_new_request(
    site: Recorded,
) -> None:
    """As where its script works on for a minute: PBS starts it at once, as it was."""
    under_way = Clocked(site)
    under_way.step()
    goes_back(site, Execution_Time=None)
    assert fences(site)[0].lets == ()
    assert (under_way.step(1).do, fences(site)[0].lets) == (Do.RESHAPE, ("30",))


def test_one_that_was_reshaped_by_a_command_without_an_answer_is_let_in(
    site: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    with monkeypatch.context() as unheard:
        unheard.setattr(under_way.pbs._handing, "_may_begin", Mock(side_effect=Unavailable("no")))
        with pytest.raises(Unavailable):
            under_way.step(1)
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert fences(site)[0].lets == ()
    assert under_way.step(3).do is Do.UNFENCE
    assert fences(site)[0].lets == ("30",)


def test_a_first_start_that_never_ends_keeps_others_out_for_no_more_than_two_minutes(
    site: Recorded,
) -> None:
    """As PBS shows it for good where pbs_mom was killed meanwhile."""
    under_way = Clocked(site)
    under_way.step()
    starts_again(site)
    site.job("30")["run_count"] = 2
    assert [under_way.step(at_s).do for at_s in (10, 70, 120)] == [Do.WAIT, Do.RENEW, Do.WAIT]
    assert (under_way.step(123).do, fences(site)) == (Do.UNFENCE, ())


def test_one_that_has_no_program_to_wait_for_is_requeued_at_once(site: Recorded) -> None:
    mute = Clocked(site)
    mute.over = replace(mute.over, asked_s=NOW_S)
    assert [mute.step().do, mute.step().do] == [Do.FENCE, Do.REQUEUE]
    assert site.said == [("qrerun", "30")]


def test_the_fence_is_for_all_to_read_and_for_us_alone_to_write(site: Recorded) -> None:
    Clocked(site).step()
    assert site.fences
    assert stat.S_IMODE(site.fences.stat().st_mode) == 0o644


def test_where_no_fence_can_be_shown_none_is_put_up_and_no_job_gives_up_its_place(
    site: Recorded, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "run").write_text("a file")
    under_way = Clocked(site)
    words = "nobody can be kept out of what a job gives up"
    for _ in range(2):
        with pytest.raises(Refused, match=words):
            under_way.step()  # the fence
    with pytest.raises(Refused, match=words):
        under_way.pbs.before_end(under_way.over, under_way.job)
    with pytest.raises(Refused, match=words):
        under_way.pbs.must_go_back(under_way.job)
    assert caplog.text.count(words) == 1
    (tmp_path / "run").unlink()
    under_way.pbs.must_go_back(under_way.job)
    assert fences(site) == ()
    assert (under_way.step().do, len(fences(site))) == (Do.FENCE, 1)


def full() -> AbstractContextManager[object]:
    """Let nothing be written for the hooks; what is there can be removed."""
    error = OSError(errno.ENOSPC, "No space left on device")
    return patch("pliant.batch.pbs.fences.show", side_effect=error)


def test_what_cannot_be_written_of_a_fence_is_not_so_and_said_once(
    site: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    words = "No space left on device: nobody can be kept out of what a job gives up"
    kept, other = Fences(site.fences, lambda: NOW_S), replace(KEPT, job="31")
    kept.put(other)
    changes: Sequence[Callable[[], None]] = (
        lambda: kept.let_in("30", "31"),
        lambda: kept.open("30"),
        lambda: kept.end("30"),
        lambda: kept.put(replace(KEPT, until_s=NOW_S + 1)),
        kept.check,
    )
    for _ in range(2):
        kept.put(KEPT)
        with full():
            for change in changes:
                with pytest.raises(Unavailable, match=words):
                    change()
        assert kept.standing() == {"30": KEPT.until_s, "31": KEPT.until_s}
    assert (fences(site), kept.of("30")) == ((other, KEPT), Kept(KEPT))
    assert caplog.text.count(words) == 2


def reshaped(site: Recorded) -> Clocked:
    """A job that waits with its new request, behind its fence."""
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    assert under_way.step(1).do is Do.RESHAPE
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    return under_way


def test_a_fence_that_cannot_be_opened_stands_and_is_opened_later(site: Recorded) -> None:
    under_way = reshaped(site)
    with full(), pytest.raises(Unavailable, match="nobody can be kept out"):
        under_way.step(3)
    assert under_way.pbs.fences() == {"30": NOW_S + FENCE_S}
    assert (under_way.step(4).do, fences(site)[0].until_s) == (Do.UNFENCE, NOW_S + 4 + START_S)


def test_one_that_could_not_be_opened_until_it_ended_keeps_nobody_waiting(site: Recorded) -> None:
    under_way = reshaped(site)
    with full():
        assert under_way.step(FENCE_S + 1).do is Do.UNFENCE
    kept = under_way.pbs._handing._fences.of("30")
    assert kept is not None
    assert (kept.opened, kept.fence.until_s) == (True, NOW_S + FENCE_S + 1)


def test_where_none_stands_any_more_the_hooks_find_no_file(tmp_path: Path) -> None:
    kept = Fences(tmp_path / "fences.json", lambda: NOW_S)
    kept.put(KEPT)
    kept.end("30")
    assert [*tmp_path.iterdir()] == []


def test_one_that_ends_is_not_sent_back_twice_nor_taken_for_changed(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    site.job("30").update(job_state="E", Execution_Time="Mon Nov 23 07:22:34 2026")
    assert (under_way.step(20).do, site.said) == (Do.WAIT, [])


@pytest.mark.parametrize("do", [Do.PIN, Do.RELEASE, Do.GIVE_BACK, Do.RELEASE_GUEST])
def test_what_pbs_needs_not_be_told_it_is_not(site: Recorded, do: Do) -> None:
    under_way = Clocked(site)
    under_way.pbs.step(Step(do), under_way.over, under_way.job)
    assert (site.said, fences(site)) == ([], ())


def test_a_fence_that_fell_between_two_looks_is_known_and_forgotten_in_time() -> None:
    now_s = [NOW_S]
    kept = Fences(None, lambda: now_s[0])
    assert not kept.fell()
    kept.put(KEPT)
    kept.end("30")
    assert [kept.fell(), kept.fell()] == [True, False]
    now_s[0] += GIVE_UP_S - 1
    kept.put(replace(KEPT, job="31"))
    assert kept.of("30") is not None
    now_s[0] += 1
    kept.put(replace(KEPT, job="32"))
    assert kept.of("30") is None


def test_what_it_is_to_have_elsewhere_is_kept_too(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.job = replace(under_way.job, next_nodes=("gn1", "gn3"))
    under_way.step()
    assert fences(site)[0].vnodes == ("gn1", "gn3")


def test_jobs_for_which_pbs_ends_others_and_those_of_reservations_are_not_kept_out(
    site: Recorded,
) -> None:
    queues = site.answers["queues"]["Queue"]
    queues["R12"] = dict(queues["workq"])
    queues["debug"]["Priority"] = 150
    Clocked(site).step()
    assert fences(site)[0].queues == ("workq",)


@pytest.mark.parametrize(("prio", "kept_out"), [(100, ("workq",)), (101, ("workq", "debug"))])
def test_from_which_priority_on_pbs_ends_others_its_scheduler_says(
    site: Recorded, prio: int, kept_out: tuple[str, ...]
) -> None:
    site.answers["queues"]["Queue"]["debug"]["Priority"] = 100
    listed = LISTED.rstrip() + f"\n    preempt_queue_prio = {prio}\n\n"
    site.schedulers = Answer(listed, "", 0)
    Clocked(site).step()
    assert fences(site)[0].queues == kept_out


def test_each_partition_has_its_own(site: Recorded) -> None:
    queues = site.answers["queues"]["Queue"]
    queues["debug"]["Priority"], queues["debug"]["partition"] = 100, "p1"
    own = "Sched gpus\n    partition = p1\n    preempt_queue_prio = 100\n\n"
    site.schedulers = Answer(LISTED + own, "", 0)
    Clocked(site).step()
    assert fences(site)[0].queues == ("workq",)


def test_back_in_the_queue_it_gets_its_shape_and_is_the_first_there(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    assert under_way.step(1).do is Do.RESHAPE
    (argv,) = site.said
    assert argv[:3] == ("qalter", "-l", "select=1:ncpus=2:ngpus=2:mem=4096mb")
    assert argv[5:] == ("-W", "run_count=0", "-a", "202611230622.34", "30")
    site.said.clear()
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert under_way.step(3).do is Do.UNFENCE
    assert site.said == [KICK]
    assert fences(site) == (replace(KEPT, until_s=NOW_S + 3 + START_S),)
    assert under_way.step(4).do is Do.WAIT
    starts_again(site)
    site.said.clear()
    assert (under_way.step(8).outcome, fences(site)) == (Outcome.DONE, ())
    assert site.said == [KICK]  # nobody else starts one: for those that were kept out
    under_way.step(9)
    assert site.said == [KICK]


def test_the_start_that_our_hook_refuses_opens_nothing_to_others(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    under_way.step(3)
    site.said.clear()
    starts_again(site)
    site.job("30")["run_count"] = 2
    assert (under_way.step(6).do, site.said) == (Do.FENCE, [])
    assert fences(site) == (replace(KEPT, until_s=NOW_S + 6 + FENCE_S),)


def test_where_nobody_looks_at_a_hand_over_any_more_its_fence_ends_all_the_same(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    under_way.step()
    under_way.pbs.observe()
    assert site.said == []
    under_way.now_s = NOW_S + FENCE_S
    under_way.pbs.observe()
    under_way.pbs.observe()
    assert site.said == [KICK]


@pytest.mark.parametrize(("etime", "since_s"), [("Mon Nov 23 06:22:34 2026", 2), (None, 0)])
def test_one_whose_time_to_begin_has_come_is_given_all_of_its_seconds_to_start(
    site: Recorded, etime: str | None, since_s: int
) -> None:
    """PBS forgets an Execution_Time that has come; a cycle of its scheduler may take a while."""
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    site.job("30").update(job_state="Q", etime=etime)
    site.job("30").pop("Execution_Time")
    assert [under_way.step(3).do, under_way.step(4).do] == [Do.UNFENCE, Do.WAIT]
    assert under_way.step(since_s + START_S).do is Do.WAIT
    assert under_way.step(since_s + 1 + START_S).do is Do.TURN_BACK  # it had less


def test_whom_a_pliantd_kept_out_that_was_killed_may_start(site: Recorded) -> None:
    """It ended its fence, and was killed before it let PBS look again."""
    Clocked(site)
    Pbs(site, lambda: NOW_S, NAMES, fences=site.fences).observe()
    assert site.said == [KICK]


def test_a_time_to_begin_of_its_owners_that_is_near_stands_to_the_second(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:35 2026"
    assert under_way.step(1).do is Do.RESHAPE
    assert site.said[-1][-2:] == ("202611230622.35", "30")


def test_one_that_its_owner_lets_nobody_requeue_since_the_last_look_goes_on_where_it_is(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    site.job("30")["Rerunable"] = "False"
    with pytest.raises(Refused, match="qalter -r n"):
        under_way.pbs.must_go_back(under_way.job)


def test_nor_does_one_that_somebody_holds_since(site: Recorded) -> None:
    under_way = Clocked(site)
    site.job("30")["Hold_Types"] = "u"
    with pytest.raises(Refused, match="it is held, and would not start again"):
        under_way.pbs.must_go_back(under_way.job)


def test_nor_one_whose_queue_was_stopped_since(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.pbs.must_go_back(under_way.job)
    site.answers["queues"]["Queue"][under_way.job.partitions[0]]["started"] = "False"
    with pytest.raises(Refused, match=r"queue .* is stopped or disabled"):
        under_way.pbs.must_go_back(under_way.job)


def test_what_is_seen_is_as_of_when_the_look_began(
    site: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, run = Clocked(site), site.run

    def takes_long(argv: Sequence[str], **more: Any) -> Answer:
        under_way.now_s += 30
        return run(argv, **more)

    monkeypatch.setattr(site, "run", takes_long)
    scene = under_way.pbs.scene(under_way.over, under_way.job)
    assert scene.now_s == NOW_S < under_way.now_s


@pytest.mark.parametrize("away", [False, True])
def test_where_pbs_cannot_be_told_to_look_again_it_is_told_once_more(
    site: Recorded, monkeypatch: pytest.MonkeyPatch, *, away: bool
) -> None:
    pbs, run, refuses = Pbs(site, lambda: NOW_S, NAMES, fences=site.fences), site.run, [True]

    def answered(argv: Sequence[str], **more: Any) -> Answer:
        answer = run(argv, **more)
        if tuple(argv) != KICK or not refuses:
            return answer
        refuses.clear()
        if away:
            raise Unavailable("qmgr: no answer within 10 s")
        return Answer("", "qmgr: Error (15039) returned from server", 1)

    monkeypatch.setattr(site, "run", answered)
    for _ in range(3):
        with contextlib.suppress(Unavailable):
            pbs.observe()
    assert site.said == [KICK, KICK]


def test_one_that_its_owner_lets_begin_later_while_it_runs_is_asked_for_nothing(
    site: Recorded,
) -> None:
    """What our hook gives it as a time to begin takes the place of that one."""
    under_way = Clocked(site)
    site.job("30")["Execution_Time"] = "Mon Nov 23 07:22:34 2026"
    with pytest.raises(Refused, match="its owner lets it begin later"):
        under_way.pbs.must_go_back(under_way.job)
    assert job(under_way.pbs.observe(), "30").frozen.startswith("its owner lets it begin later")


def test_a_fence_that_has_ended_stands_no_more(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    (until_s,) = under_way.pbs.fences().values()
    under_way.now_s = until_s
    assert under_way.pbs.fences() == {}


def test_one_that_does_not_start_keeps_nobody_out_for_long(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    under_way.step(3)
    site.said.clear()
    assert under_way.step(3 + START_S + 2).do is Do.TURN_BACK
    assert (under_way.pbs.fences(), site.said) == ({}, [KICK])  # whom it kept out may start


def test_a_shape_that_pbs_says_it_can_never_start_turns_back_before_that(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    never = "Can Never Run: Insufficient amount of resource: ngpus"
    site.job("30").update(job_state="Q", etime="Mon Nov 23 06:22:34 2026", comment=never)
    site.job("30").pop("Execution_Time")
    assert under_way.step(3).do is Do.UNFENCE
    assert under_way.step(8) == Step(Do.TURN_BACK, words=never)


@pytest.mark.parametrize("do", [Do.RESHAPE, Do.PUT_BACK])
@pytest.mark.parametrize("gone", [False, True])
def test_the_request_of_one_that_waits_no_more_stays(site: Recorded, do: Do, gone: bool) -> None:
    under_way = Clocked(site)
    if gone:
        del site.answers["jobs"]["Jobs"]["30.head"]
    with pytest.raises(Refused, match="job 30: it does not wait any more"):
        under_way.pbs.step(Step(do), under_way.over, under_way.job)
    assert site.said == []


@pytest.mark.parametrize(
    ("end_s", "words"),
    [
        (0.0, []),  # its time limit begins anew
        (NOW_S + 500, ["walltime=498"]),
        (NOW_S + 30, ["walltime=60"]),
    ],
)
def test_what_is_left_of_its_time_limit_is_kept(
    site: Recorded, end_s: float, words: list[str]
) -> None:
    under_way = Clocked(site)
    under_way.over = replace(under_way.over, end_s=end_s)
    under_way.step()
    goes_back(site)
    assert under_way.step(1).do is Do.RESHAPE
    assert [word for word in site.said[-1] if word.startswith("walltime")] == words


def test_a_scheduler_that_someone_has_stopped_stays_so(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    site.said.clear()
    site.answers["server"]["Server"]["head"]["scheduling"] = "False"
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert (under_way.step(3).do, site.said) == (Do.UNFENCE, [])


@pytest.mark.parametrize(
    ("holds", "outcome"),
    [
        ("u", Outcome.HELD),
        ("o", Outcome.HELD_BY_ADMIN),
        ("uo", Outcome.HELD),
        ("s", Outcome.HELD),  # by what its owner lets it wait for
    ],
)
@pytest.mark.parametrize("mark", ["", "1"])  # what 0.1.0 noted of a hold, by which it was ended
def test_one_that_somebody_holds_is_left(
    site: Recorded, holds: str, outcome: Outcome, mark: str
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site, job_state="H", Hold_Types=holds, Execution_Time=None, run_count=1)
    site.job("30")["Variable_List"]["PLIANT_HELD"] = mark
    under_way.pbs.observe()
    assert site.said == []
    assert [under_way.step(at_s).do for at_s in (0, 1)] == [Do.WAIT, Do.UNFENCE]
    assert fences(site)[0].until_s == NOW_S + 1 + START_S
    assert under_way.step(2).outcome is outcome


def test_a_fence_of_which_nobody_remembers_why_it_stands_is_opened_once_its_job_may_begin(
    site: Recorded,
) -> None:
    """As it is: it has the hook's time to begin, and then ours; an open one ends by itself."""
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    again = Clocked(site)  # it reads what the one before has left
    over = replace(again.over, saved_s=0.0)
    again.pbs.step(Step(Do.UNFENCE), over, again.job)
    assert site.said == [("qalter", "-a", "202611230622.33", "30")]
    assert [*again.pbs.fences()] == ["30"]
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:33 2026"
    again.now_s = NOW_S + 3
    again.pbs.step(Step(Do.UNFENCE), over, again.job)
    assert ([*again.pbs.fences()], fences(site)[0].until_s) == ([], NOW_S + 3 + START_S)


def test_one_that_has_no_fence_any_more_is_let_go_all_the_same(site: Recorded) -> None:
    """Somebody has taken pliantd's file of them away."""
    under_way = Clocked(site)
    goes_back(site, Execution_Time=None, job_state="Q")
    under_way.pbs.step(Step(Do.UNFENCE), under_way.over, under_way.job)
    assert (site.said, fences(site)) == ([KICK], ())


def test_a_time_to_begin_that_its_owner_gives_it_since_the_last_look_stands(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.over = replace(under_way.over, changed=True)
    under_way.now_s = NOW_S + 1
    step = next_step(under_way.over, under_way.pbs.scene(under_way.over, under_way.job))
    assert step.do is Do.UNFENCE
    goes_back(site, Execution_Time="Mon Nov 23 07:22:34 2026")
    under_way.pbs.step(step, under_way.over, under_way.job)
    assert (site.said, fences(site)) == ([], ())  # the next look wakes whom it kept out


def test_one_that_was_changed_once_is_let_go_though_it_is_as_before_now(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.over = replace(under_way.over, changed=True)
    assert [under_way.step(at_s).do for at_s in (1, 62)] == [Do.UNFENCE, Do.UNFENCE]
    assert under_way.step(63).outcome is Outcome.CHANGED


def test_the_start_that_our_hook_refuses_is_none(site: Recorded) -> None:
    under_way = Clocked(site)
    goes_back(site, job_state="R", Execution_Time=None, run_count=2)
    site.job("30")["exec_vnode"] = "(gn1:ncpus=2:ngpus=2)"
    assert [under_way.step().do, under_way.step().do] == [Do.FENCE, Do.WAIT]
    assert site.said == []
    starts_again(site)
    assert under_way.step(60).do is Do.UNFENCE
    assert (under_way.step(60).outcome, fences(site)) == (Outcome.AS_WAS, ())


def test_a_request_that_pbs_refuses_is_put_back_and_begins_by_a_call_of_its_own(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    over = replace(under_way.over, before=Shape(1, 1), refused="no", refused_s=NOW_S)
    under_way.over = over
    site.said.clear()
    assert (under_way.step(9).do, site.said[0][0]) == (Do.RESHAPE, "qalter")
    goes_back(site)
    step = next_step(over, under_way.pbs.scene(over, under_way.job))
    assert step.do is not Do.TURN_BACK
    over = replace(over, for_good=True)
    assert next_step(over, under_way.pbs.scene(over, under_way.job)).words == "no"
    under_way.over = replace(over, back_s=NOW_S + 10, end_s=NOW_S + 400)
    site.said.clear()
    assert under_way.step(10).do is Do.PUT_BACK
    left, first, second = (argv for argv in site.said if argv[0] == "qalter")
    assert left == ("qalter", "-l", "walltime=389", "30")  # it is waited for no longer than before
    assert any("ngpus=1" in word for word in first)
    assert second[1:4] == ("-W", "run_count=0", "-a")


def test_one_that_turns_back_is_let_in_with_its_request_put_back(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    refused = replace(under_way.over, before=Shape(1, 1), refused="no", for_good=True)
    under_way.over = replace(refused, back_s=NOW_S + 10)
    assert (fences(site)[0].lets, under_way.step(10).do) == ((), Do.PUT_BACK)
    assert fences(site)[0].lets == ("30",)


# What somebody else has changed meanwhile

ASKS = Footprint(tasks_per_node=1, cpus_per_task=2, mem_per_node_mib=4096)
NARROWER = {"pliant": token_text(Spec(parse("gpus=1-3;malleable"), Shape(1, 3), Shape(1, 1), ASKS))}
OWNERS: tuple[dict[str, str], ...] = (
    {"select": "1:ncpus=2:ngpus=3:mem=4096mb"},
    {"select": "1:ncpus=4:ngpus=1:mem=4096mb"},
    {"select": "1:ncpus=2:ngpus=1:mem=4096mb:host=gn1"},
    {"pliant": token_text(Spec(parse("gpus=4"), Shape(1, 3), Shape(1, 1), renewed=True))},
    NARROWER,
    {"pliant": ""},
)


@pytest.mark.parametrize("says", OWNERS)
def test_what_the_owner_of_one_that_is_back_says_is_left_and_it_begins(
    site: Recorded, says: dict[str, str]
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    site.job("30")["Resource_List"].update(says)
    assert under_way.step(1).do is Do.UNFENCE
    assert site.said == [("qalter", "-a", "202611230622.34", "30")]
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert under_way.step(3).do is Do.UNFENCE
    assert under_way.step(4).outcome is Outcome.CHANGED
    assert site.said[1:] == [KICK]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queue", "debug"),
        ("Execution_Time", "Mon Nov 23 07:22:34 2026"),
        ("Execution_Time", "Mon Nov 23 06:23:02 2026"),  # sooner than our hook lets it begin
    ],
)
def test_so_is_where_and_when_its_owner_lets_it_begin(site: Recorded, key: str, value: str) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site, Execution_Time="Mon Nov 23 06:22:33 2026")
    site.job("30")[key] = value
    assert [under_way.step(2).do, under_way.step(3).outcome] == [Do.UNFENCE, Outcome.CHANGED]
    assert site.said == [KICK]


def test_one_that_turns_back_is_what_could_be_put_back(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    site.job("30")["Resource_List"].update(NARROWER)
    under_way.over = replace(under_way.over, back_s=NOW_S)
    assert under_way.step(1).do is Do.PUT_BACK


def test_one_that_said_nothing_to_pliant_is_left(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    under_way.job = replace(under_way.job, spec=None)
    goes_back(site, Execution_Time="Mon Nov 23 06:22:33 2026")
    assert [under_way.step(2).do, under_way.step(3).outcome] == [Do.UNFENCE, Outcome.CHANGED]


def test_a_time_to_begin_of_our_hook_that_has_nearly_come_is_waited_for(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site, queue="debug", Execution_Time="Mon Nov 23 06:22:34 2026")
    site.job("30")["Variable_List"]["PLIANT_BACK"] = f"1:1:{NOW_S + 2:.0f}"
    assert (under_way.step(1).do, site.said, fences(site)) == (Do.UNFENCE, [], ())


def test_a_time_limit_that_begins_anew_anyway_is_its_owners(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    site.job("30")["Resource_List"]["walltime"] = "02:00:00"
    assert under_way.step(1).do is Do.RESHAPE
    assert not any("walltime" in word for word in site.said[-1])


def test_a_time_limit_that_its_owner_gave_it_meanwhile_stands(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.over = replace(under_way.over, end_s=NOW_S + 500)
    under_way.step()
    goes_back(site, Execution_Time="Mon Nov 23 06:22:33 2026")
    site.job("30")["Resource_List"]["walltime"] = "02:00:00"
    assert [under_way.step(2).do, under_way.step(3).outcome] == [Do.UNFENCE, Outcome.CHANGED]


def test_a_shorter_one_that_its_owner_gave_it_meanwhile_stands_and_it_gets_its_shape(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    under_way.over = replace(under_way.over, end_s=NOW_S + 500)
    under_way.step()
    goes_back(site)
    site.job("30")["Resource_List"]["walltime"] = "00:05:00"
    assert under_way.step(2).do is Do.RESHAPE
    assert not any("walltime" in word for word in site.said[-1])


def test_its_owner_wins_after_the_look_and_after_the_new_shape_too(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    step = next_step(under_way.over, under_way.pbs.scene(under_way.over, under_way.job))
    assert step.do is Do.RESHAPE
    ours = dict(site.job("30")["Resource_List"])
    site.job("30")["Resource_List"].update(OWNERS[0])
    with pytest.raises(Refused, match="its owner wins"):
        under_way.pbs.step(step, under_way.over, under_way.job)
    assert site.said == []
    site.job("30")["Resource_List"] = ours
    assert under_way.step(1).do is Do.RESHAPE
    site.job("30")["Resource_List"].update(OWNERS[0])
    assert under_way.step(3).do is Do.UNFENCE
    assert "qalter" in site.said[0]
    assert site.job("30")["Resource_List"]["select"] == OWNERS[0]["select"]


@pytest.mark.parametrize(
    "change",
    [
        {"run_count": 0},
        {"Resource_List": {"select": "1:ncpus=2:ngpus=3:mem=4096mb"}},
    ],
)
def test_a_run_that_may_not_be_the_one_that_saved_is_not_ended(
    site: Recorded, change: dict[str, object]
) -> None:
    under_way = Clocked(site)
    under_way.over = replace(under_way.over, run=0 if change != {"run_count": 0} else 1)
    under_way.step()
    site.job("30").update(change)
    steps = [under_way.step(20 + n) for n in range(3)]
    assert Outcome.CHANGED in [step.outcome for step in steps]
    assert all(argv[0] != "qrerun" for argv in site.said)


@pytest.mark.parametrize("gpus", [2, 1])
def test_one_that_started_since_is_another_run_whatever_is_counted(
    site: Recorded, gpus: int
) -> None:
    under_way = Clocked(site)
    under_way.step()
    select = f"1:ncpus=2:ngpus={gpus}:mem=4096mb"
    site.job("30").update(run_count=1, stime="Mon Nov 23 06:22:34 2026")
    site.job("30")["Resource_List"]["select"] = select
    assert under_way.step(20).do is Do.UNFENCE
    done = Outcome.DONE if gpus == 2 else Outcome.AS_WAS
    assert under_way.step(21).outcome is done
    assert all(argv[0] != "qrerun" for argv in site.said)


def test_the_fence_of_an_earlier_hand_over_lets_nobody_in_and_is_around_nothing_any_more(
    site: Recorded,
) -> None:
    """Its job is resized once more, on another node, and is sent back without a time to begin."""
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    under_way.step(1)
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert under_way.step(3).do is Do.UNFENCE
    assert fences(site)[0].lets == ("30",)
    under_way.now_s = NOW_S + 100
    under_way.over = replace(under_way.over, run=1, asked_s=NOW_S + 95, saved_s=NOW_S + 100)
    under_way.job = replace(under_way.job, nodes=("gn2",))
    under_way.pbs.before_end(under_way.over, under_way.job)
    (fence,) = fences(site)
    assert (fence.lets, fence.vnodes) == ((), ("gn2",))


# A guest


def lets_in(under_way: Clocked, site: Recorded) -> None:
    """Bring a hand-over to where its guest may start; until then its fence lets in nobody."""
    under_way.step()
    goes_back(site)
    assert fences(site)[0].lets == ()
    assert under_way.step(1).do is Do.RESHAPE
    site.job("30")["Execution_Time"] = "Mon Nov 23 06:22:34 2026"
    assert fences(site)[0].lets == ()
    assert under_way.step(2).do is Do.PIN_GUEST


def makes_room(site: Recorded) -> Clocked:
    """A hand-over whose victim is back in the queue, and whose guest waits and is let in."""
    under_way = Clocked(site, guest="32")
    lets_in(under_way, site)
    assert fences(site)[0].lets == ("32",)
    return under_way


def test_a_guest_is_started_by_pbs_alone_and_before_its_victim(site: Recorded) -> None:
    under_way = makes_room(site)
    assert [argv[0] for argv in site.said] == ["qalter"]
    assert under_way.step(3).do is Do.UNFENCE
    assert under_way.step(4).do is Do.WAIT
    site.job("32").update(job_state="R", exec_vnode="(gn1:ncpus=2:ngpus=2)")
    assert (under_way.step(5).outcome, fences(site)) == (Outcome.DONE, ())


def test_a_guest_that_pbs_does_not_start_is_not_waited_for(site: Recorded) -> None:
    under_way = makes_room(site)
    under_way.step(3)
    site.said.clear()
    assert under_way.step(4 + START_S).outcome is Outcome.DONE
    assert (under_way.pbs.fences(), site.said) == ({}, [KICK])


@pytest.mark.parametrize("change", [{"job_state": "H", "Hold_Types": "u"}, {}])
def test_a_guest_that_is_held_or_gone_keeps_nobody_out(
    site: Recorded, change: dict[str, str]
) -> None:
    under_way = makes_room(site)
    if change:
        site.job("32").update(change)
    else:
        del site.answers["jobs"]["Jobs"]["32.head"]
    done = [under_way.step(3 + n / 10) for n in range(4)]
    assert (done[-1].outcome, fences(site)) == (Outcome.DONE, ())


@pytest.mark.parametrize("words", ["1:ncpus=2:ngpus=8", "1:ncpus=2:ngpus=2:host=gn2"])
def test_a_guest_that_asks_for_more_or_elsewhere_is_let_in_no_more(
    site: Recorded, words: str
) -> None:
    under_way = Clocked(site, guest="32")
    asks = job(under_way.pbs.observe(), "32")
    under_way.over = replace(under_way.over, asks=asks)
    lets_in(under_way, site)
    site.job("32")["Resource_List"]["select"] = words
    assert under_way.step(2.1).do is Do.RELEASE_GUEST
    assert fences(site)[0].lets == ("30",)
    done = [under_way.step(3 + n / 10) for n in range(4)]
    assert (done[0].do, done[-1].outcome, fences(site)) == (Do.UNFENCE, Outcome.DONE, ())


def test_a_fence_that_is_made_anew_lets_in_no_guest_that_asks_for_more(site: Recorded) -> None:
    under_way = Clocked(site, guest="32")
    asks = job(under_way.pbs.observe(), "32")
    under_way.over = replace(under_way.over, asks=asks)
    lets_in(under_way, site)
    under_way.pbs.step(Step(Do.RENEW), under_way.over, under_way.job)
    assert fences(site)[0].lets == ("32",)
    site.job("32")["Resource_List"]["select"] = "1:ncpus=2:ngpus=8"
    under_way.pbs.step(Step(Do.FENCE), under_way.over, under_way.job)
    assert fences(site)[0].lets == ()
    site.job("32")["Resource_List"]["select"] = "1:ncpus=2:ngpus=2"
    under_way.pbs.step(Step(Do.PIN_GUEST), under_way.over, under_way.job)
    del site.answers["jobs"]["Jobs"]["32.head"]
    under_way.pbs.step(Step(Do.RENEW), under_way.over, under_way.job)
    assert fences(site)[0].lets == ()


@pytest.mark.parametrize(
    "kick", [{"side_effect": Unavailable("no answer")}, {"return_value": False}]
)
@pytest.mark.parametrize("guest", ["", "32"])
def test_a_fence_opens_once_pbs_was_told_that_somebody_may_start(
    site: Recorded, monkeypatch: pytest.MonkeyPatch, guest: str, kick: dict[str, Any]
) -> None:
    """Else that would not start in the few seconds for which it keeps others out then."""
    under_way = makes_room(site) if guest else Clocked(site)
    if not guest:
        under_way.step()
        goes_back(site, Execution_Time=None)
        under_way.step(1)
    step, stands = Step(Do.UNFENCE), fences(site)[0].until_s
    with monkeypatch.context() as away:
        away.setattr(under_way.pbs._handing._queries, "kick", Mock(**kick))
        with pytest.raises(Unavailable):
            under_way.pbs.step(step, under_way.over, under_way.job)
    assert (fences(site)[0].until_s, under_way.pbs.fences()) == (stands, {"30": stands})
    under_way.pbs.step(step, under_way.over, under_way.job)
    assert (fences(site)[0].until_s, under_way.pbs.fences()) == (under_way.now_s + START_S, {})


def an_array(site: Recorded) -> tuple[dict[str, Any], dict[str, Any]]:
    """Trial jobs: an array of which 34[1] waits, and that subjob, as a real PBS shows them."""
    jobs = site.answers["jobs"]["Jobs"]
    array, waits = jobs["34[].head"], jobs["34[3].head"]
    for row in (array, waits):
        row["Resource_List"]["pliant"] = token_text(Spec(parse("job-class=trial"), Shape(1, 1)))
    array.update(job_state="Q", array_indices_remaining="1-5", max_run_subjobs=0)
    for index in (1, 2):
        jobs[f"34[{index}].head"] = dict(waits, array_index=index)
    return array, jobs["34[1].head"]


def test_of_an_array_one_subjob_is_let_in_and_its_victim_goes_on_once_that_runs(
    site: Recorded,
) -> None:
    array, subjob = an_array(site)
    pbs = Pbs(site, lambda: NOW_S, NAMES, fences=site.fences)
    asks = first_task(job(pbs.observe(), "34[]"))
    under_way = Clocked(site, guest=asks.id)
    under_way.over = replace(under_way.over, asks=asks)
    lets_in(under_way, site)
    let = [in_the_way(fences(site), f"34[{n}].head", "workq", "gn1") is None for n in (1, 2)]
    assert let == [True, False]
    assert under_way.step(3).do is Do.UNFENCE
    array.update(job_state="B", array_indices_remaining="2-5")
    subjob.update(job_state="R", exec_vnode="(gn1:ncpus=1:ngpus=1)")
    subjob.update(stime="Mon Nov 23 06:22:36 2026")
    assert (under_way.step(4).outcome, fences(site)) == (Outcome.DONE, ())


RUNS = {
    "job_state": "R",
    "exec_vnode": "(gn1:ncpus=1:ngpus=1)",
    "stime": "Mon Nov 23 06:22:20 2026",
}


@pytest.mark.parametrize(
    ("guest", "array", "subjob", "state"),
    [
        ("34[]", {}, {}, None),  # as a whole it is none
        ("34[1]", {}, {}, JobState.WAITING),
        ("34[9]", {}, {}, None),
        ("34[1]", {"array_indices_remaining": "2-5"}, {}, JobState.WAITING),  # by its own row
        ("34[1]", {"job_state": "H", "Hold_Types": "u"}, {}, None),
        ("34[1]", {"job_state": "H", "Hold_Types": "u"}, RUNS, JobState.RUNNING),
        ("34[1]", {"array_indices_remaining": "1-5", "job_state": "B"}, RUNS, JobState.RUNNING),
    ],
)
def test_of_an_array_a_subjob_is_seen_by_its_own_row_once_it_runs(
    site: Recorded,
    guest: str,
    array: dict[str, str],
    subjob: dict[str, str],
    state: JobState | None,
) -> None:
    whole, one = an_array(site)
    whole.update(array)
    one.update(subjob)
    under_way = Clocked(site, guest=guest)
    seen = under_way.pbs.scene(under_way.over, under_way.job).guest
    assert (None if seen.held else seen.state) == state


def test_a_guest_that_runs_may_have_been_given_more_time_since(site: Recorded) -> None:
    under_way = Clocked(site, guest="32")
    asks = job(under_way.pbs.observe(), "32")
    under_way.over = replace(under_way.over, asks=asks)
    lets_in(under_way, site)
    site.job("32").update(job_state="R", exec_vnode="(gn1:ncpus=2:ngpus=2)")
    site.job("32")["Resource_List"]["walltime"] = "20:00:00"
    seen = under_way.pbs.scene(under_way.over, under_way.job).guest
    assert (seen.state, seen.held) == (JobState.RUNNING, False)


def test_a_fence_that_is_put_up_for_longer_lets_in_whom_it_did(site: Recorded) -> None:
    under_way = makes_room(site)
    under_way.pbs.step(Step(Do.RENEW), under_way.over, under_way.job)
    assert fences(site)[0].lets == ("32",)


@pytest.mark.parametrize("left", ["1-5", "2-5"])
def test_an_array_that_has_begun_is_a_guest_for_its_subjobs_that_wait(
    site: Recorded, left: str
) -> None:
    array, _ = an_array(site)
    pbs = Pbs(site, lambda: NOW_S, NAMES, fences=site.fences)
    asks = first_task(job(pbs.observe(), "34[]"))
    array.update(job_state="B", array_indices_remaining=left)
    is_unwanted = unwanted(pbs.observe(), lambda _job: True)
    assert is_unwanted("30", asks.id, asks) is not left.startswith("1")


def test_who_asks_for_more_is_not_let_past_the_fence_of_another_job(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    theirs = Fence("31", NOW_S + FENCE_S, ("gn1",), ("31",), ("workq", "debug"))
    goes_back(site)
    assert under_way.step(0.5).do is Do.RESHAPE
    kept = read_fences(fences_text([*fences(site), theirs]))
    site.job("30")["Resource_List"]["select"] = "1:ncpus=4:ngpus=4"
    under_way.step(1)
    assert site.fences
    own = [fence for fence in fences(site) if fence.job == "30"]
    assert in_the_way(kept, "30.head", "workq", "gn1") is None
    assert in_the_way([*own, theirs], "30.head", "workq", "gn1") is not None


def test_a_fence_that_stands_no_more_by_a_clock_that_was_set_back_is_put_up_again(
    site: Recorded,
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    assert not fences(site)[0].stands(NOW_S - 20)
    assert under_way.step(-20).do is Do.RENEW
    assert fences(site)[0].stands(NOW_S - 20)


def test_a_guest_is_kept_the_room_once_more_where_no_pliantd_opened_its_fence(
    site: Recorded,
) -> None:
    under_way = makes_room(site)
    assert under_way.step(FENCE_S + 5).do is Do.PIN_GUEST
    assert fences(site) == (replace(KEPT, until_s=NOW_S + 2 * FENCE_S + 5, lets=("32",)),)


def test_a_pliantd_that_comes_back_finds_its_fences(site: Recorded) -> None:
    makes_room(site)
    again = Clocked(site, guest="32")
    assert again.pbs.fences() == {"30": NOW_S + 2 + FENCE_S}
    assert again.step(3).do is Do.UNFENCE


def test_a_fence_that_is_renewed_keeps_what_it_kept_where_it_is_not_stored_how_the_job_ran(
    site: Recorded,
) -> None:
    """As of what 0.1.0 asked: pliantd was updated meanwhile, and sees the job wait."""
    under_way = makes_room(site)
    under_way.job = replace(under_way.job, nodes=())
    assert under_way.step(FENCE_S + 5).do is Do.PIN_GUEST
    assert fences(site)[0].vnodes == KEPT.vnodes


@pytest.mark.parametrize("ago_s", [START_S / 2, START_S + 1])
def test_a_guest_has_nothing_of_a_fence_that_its_victim_had_before(
    site: Recorded, ago_s: float
) -> None:
    """Neither the room nor that it did not start there."""
    under_way = Clocked(site, guest="32")
    earlier = replace(under_way.over, guest="")
    under_way.pbs.before_end(earlier, under_way.job)
    goes_back(site, job_state="Q")
    site.job("30").pop("Execution_Time")
    under_way.pbs.scene(earlier, under_way.job)
    under_way.pbs.step(Step(Do.UNFENCE), earlier, under_way.job)
    under_way.now_s += ago_s
    guest = under_way.pbs.scene(under_way.over, under_way.job).guest
    assert (guest.is_waiting, guest.pinned) == (True, False)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("qalter: Job has finished", Refused),
        ("qalter: cannot connect to server head (errno=111)", Unavailable),
    ],
)
def test_what_pbs_refuses_of_a_step_is_told_and_an_absent_pbs_apart(
    site: Recorded, words: str, kind: type[Exception]
) -> None:
    under_way = Clocked(site)
    under_way.step()
    goes_back(site)
    site.refuses = words
    with pytest.raises(kind, match=re.escape(f"job 30: reshape: {words}")):
        under_way.step(1)


def test_a_job_that_is_gone_ends_its_hand_over(site: Recorded) -> None:
    under_way = Clocked(site)
    under_way.step()
    del site.answers["jobs"]["Jobs"]["30.head"]
    assert (under_way.step(1).do, fences(site)) == (Do.UNFENCE, ())
    assert under_way.step(2).outcome is Outcome.GONE


TOO_MANY = "job held, too many failed attempts to run"


@pytest.mark.parametrize("back", ["21:11", "20:10:1795000000"])
def test_who_is_held_for_going_back_so_often_is_let_start_again(site: Recorded, back: str) -> None:
    goes_back(site, job_state="H", Hold_Types="s", run_count=21, comment=TOO_MANY)
    site.job("30")["Variable_List"]["PLIANT_BACK"] = back
    Pbs(site, lambda: NOW_S, NAMES).observe()
    assert site.said == [("qalter", "-W", "run_count=1", "30"), ("qrls", "-h", "s", "30")]


def test_who_would_be_refused_its_next_start_stays_held(site: Recorded) -> None:
    goes_back(site, job_state="H", Hold_Types="s", run_count=21, comment=TOO_MANY)
    site.job("30")["Variable_List"]["PLIANT_BACK"] = "21:11"
    site.refuses = "qalter: Unauthorized Request"
    Pbs(site, lambda: NOW_S, NAMES).observe()
    assert site.said == [("qalter", "-W", "run_count=1", "30")]


@pytest.mark.parametrize(
    ("back", "more"),
    [
        ("20:10", {"comment": "Job held by root"}),
        ("20:10", {"Hold_Types": "so"}),
        ("20:10", {"Hold_Types": "us"}),
        ("20:10", {"Hold_Types": "o"}),
        ("0:10", {}),  # its starts have failed since it went back
        ("21:11", {"comment": ""}),  # as a dependency or a hook holds
        ("", {}),
    ],
)
def test_nobody_elses_hold_is_ended(site: Recorded, back: str, more: dict[str, str]) -> None:
    goes_back(site, job_state="H", Hold_Types="s", run_count=21, comment=TOO_MANY)
    site.job("30").update(more)
    site.job("30")["Variable_List"]["PLIANT_BACK"] = back
    Pbs(site, lambda: NOW_S, NAMES).observe()
    assert site.said == []
