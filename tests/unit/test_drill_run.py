"""What a run of the drill takes for not good (benchmarks/drill)."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.drill import pbs_faults, slurm_faults
from benchmarks.drill.fault import Fault
from benchmarks.drill.field import Admin
from benchmarks.drill.pbs_field import PbsField
from benchmarks.drill.run import (
    PASSED_BY,
    Ran,
    Seen,
    _other_shape,
    count_work,
    run,
    stands,
    until_quiet,
)
from benchmarks.drill.slurm_admin import SlurmAdmin, instant
from benchmarks.drill.slurm_field import SlurmField
from benchmarks.drill.work import Work

from pliant.daemon.answers import HandOverHistory, HistoryAnswer
from pliant.errors import PliantError
from pliant.handover import GUEST, PINNED, Outcome

NOTHING = Fault("nothing", ("asked",))
JOB, GUESTS = "1", "2"
RUNS, WAITS = ("RUNNING", "4294901758"), ("PENDING", "4294901758")


class Idle(Admin):
    """Does nothing; ``late``: what it has seen."""

    def __init__(self, late: str = "") -> None:
        self.late = late

    def tend(self) -> Sequence[Mapping[str, str]]:
        return ()


class Still(SlurmField):
    """A Slurm of which the same is shown for ever: of its jobs, its fences and the hand-over."""

    def __init__(
        self, jobs: Mapping[str, tuple[str, str]], outcome: str, fences: int = 0, **more: str
    ) -> None:
        super().__init__(Path(), job=JOB, guest=GUESTS)
        self.jobs, self.outcome, self.standing, self.more = jobs, outcome, fences, more
        self.late = ""

    def show(self, job: str) -> Mapping[str, str]:
        shown = dict(zip(("JobState", "Priority"), self.jobs.get(job, ()), strict=False))
        return {**shown, **self.more}

    def history(self) -> HistoryAnswer:
        over = HandOverHistory(1.0, 0, "4", "2", "", "why", outcome=self.outcome)
        return HistoryAnswer(JOB, "alice", handovers=(over,))

    def fences(self) -> int:
        return self.standing

    def admin(self, *, hurries: bool = False) -> Admin:  # type: ignore[override]  # the only admin here
        assert not hurries
        return Idle(self.late)


@pytest.mark.parametrize(
    ("field", "left"),
    [
        (Still({JOB: RUNS}, Outcome.DONE, fences=1), (1, 0)),
        (Still({JOB: WAITS}, Outcome.HELD, fences=1), (1, 0)),
        (Still({JOB: WAITS}, "", fences=1), (1, 0)),
        (Still({JOB: ("RUNNING", f"{PINNED}")}, Outcome.DONE), (0, 1)),
        (Still({JOB: ("PENDING", f"{PINNED}")}, Outcome.CHANGED), (0, 1)),
        (Still({JOB: WAITS, GUESTS: ("PENDING", f"{GUEST}")}, Outcome.DONE), (0, 1)),
        (Still({JOB: ("PENDING", f"{PINNED}")}, Outcome.SLOW), (0, 0)),
        (Still({JOB: RUNS}, Outcome.DONE), (0, 0)),
    ],
)
def test_a_fence_or_a_pin_that_nothing_needs_any_more_is_left(
    field: Still, left: tuple[int, int]
) -> None:
    seen = Seen("asked")
    until_quiet(field, NOTHING, seen, left_s=0.0)
    assert (seen.fences, seen.pins) == left
    assert seen.words == ([f"left for 0 s: {left[0]} fences, {left[1]} pins"] if any(left) else [])
    assert seen.is_good == (not any(left))


@pytest.mark.parametrize(("stands", "is_good"), [("", False), ("EligibleTime", True)])
def test_a_time_to_begin_that_is_nobodys_is_left(stands: str, *, is_good: bool) -> None:
    field, seen = Still({JOB: RUNS}, Outcome.DONE), Seen("asked")
    field.late = "it begins at noon"
    until_quiet(field, replace(NOTHING, stands=(stands, "noon")), seen, left_s=0.0)
    assert seen.is_good is is_good


@pytest.mark.parametrize(
    ("field", "shown", "held"),
    [
        (SlurmField, {"JobState": "PENDING", "Priority": "0", "Reason": "JobHeldUser"}, True),
        (SlurmField, {"JobState": "RUNNING", "Priority": "0", "Reason": "None"}, True),
        (SlurmField, {"JobState": "PENDING", "Priority": "0", "Reason": "JobHeldAdmin"}, False),
        (SlurmField, {"JobState": "PENDING", "Priority": "7", "Reason": "Resources"}, False),
        (SlurmField, {}, False),
        (PbsField, {"JobState": "PENDING", "Hold_Types": "su"}, True),
        (PbsField, {"JobState": "PENDING", "Hold_Types": "n"}, False),
    ],
)
def test_whether_an_owner_holds_his_job(
    field: type[SlurmField | PbsField], shown: Mapping[str, str], held: bool
) -> None:
    assert field.is_held(shown) is held


def test_an_owners_hold_that_somebody_ended_is_not_good() -> None:
    fault = Fault("user holds", ("asked",), held=True)
    ended, stood = Seen("asked"), Seen("asked")
    stands(Still({JOB: WAITS}, Outcome.HELD), fault, ended)
    stands(Still({JOB: ("RUNNING", "0")}, Outcome.HELD), fault, stood)
    assert stood.is_good
    (words,) = ended.words
    assert words.startswith("its owner's hold does not stand: JobId=None JobState=PENDING ")


LOWERED = Fault("user lowers the time limit", ("asked",), limit_s=25 * 60)


@pytest.mark.parametrize(
    ("limit", "is_good"),
    [("00:25:00", True), ("00:24:00", True), ("00:30:00", False), ("1-00:00:00", False)],
)
def test_a_longer_time_limit_than_its_owner_gave_it_is_not_good(
    limit: str, *, is_good: bool
) -> None:
    seen = Seen("asked")
    stands(Still({JOB: RUNS}, Outcome.DONE, TimeLimit=limit), LOWERED, seen)
    assert seen.is_good is is_good


def test_a_job_is_made_what_was_asked_by_what_the_batch_system_says_of_it() -> None:
    made = Still({JOB: RUNS}, Outcome.DONE, TresPerNode="gres:gpu:2")
    assert _other_shape(made, "2") == ""
    assert _other_shape(made, "1") == "it has 2 GPUs, not 1"


SUBMITTED = "2026-11-30T12:00:00"
SUBMITTED_S = instant(SUBMITTED)


@pytest.mark.parametrize(
    ("begins", "worked_s", "skew_s", "is_slurms"),
    [
        ("12:02:01", -5.0, 0, True),  # as after each requeue
        ("12:02:01", 100.0, 0, True),  # its SubmitTime is from before the run
        ("12:01:40", 60.0, 0, True),  # so it may be of a requeue just now
        ("12:01:00", -5.0, 0, False),
        ("14:00:00", -5.0, 0, False),
        ("14:00:00", 100.0, 0, False),
        ("12:00:35", -5.0, 30, True),  # nothing begins before pliantd's own now
    ],
)
def test_a_time_to_begin_that_no_requeue_gives_is_seen(
    begins: str, worked_s: float, skew_s: int, tmp_path: Path, *, is_slurms: bool
) -> None:
    field = Still({}, "", Reason="BeginTime", SubmitTime=SUBMITTED)
    field.place, field.skew_s = tmp_path, skew_s
    (tmp_path / "log").touch()
    os.utime(tmp_path / "log", (SUBMITTED_S + worked_s,) * 2)
    shown = {"SubmitTime": SUBMITTED, "EligibleTime": f"2026-11-30T{begins}"}
    assert SlurmAdmin(field)._is_slurms(shown, SUBMITTED_S + 1.0) is is_slurms


class Gone(Still):
    """One whose daemons have ended by themselves."""

    def pid(self, _part: str) -> int | None:
        return None


def test_a_daemon_that_has_ended_by_itself_is_told_and_nobody_else_is_killed() -> None:
    field = Gone({}, "")
    with pytest.raises(PliantError, match="slurmd-n1 has ended by itself"):
        field.kill("slurmd-n1")
    with pytest.raises(PliantError, match="pliantd has ended by itself"):
        field.signal("pliantd", signal.SIGSTOP)
    assert field.dead == ["slurmd-n1", "pliantd"]


class Broken(Still):
    """One in which no run can begin."""

    def __init__(self, why: BaseException) -> None:
        super().__init__({}, "")
        self.why = why

    def said(self, _since: int = 0) -> str:
        return ""

    def begin(self, _place: Path, _ends: str) -> None:
        raise self.why


@pytest.mark.parametrize("error", [StopIteration(), IndexError("no"), KeyError("StartTime")])
def test_a_run_in_which_the_drill_itself_fails_is_recorded_as_not_good(
    error: Exception, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran = run(Broken(error), NOTHING, tmp_path, random.Random(1))  # noqa: S311  # no secret
    assert [seen.words for seen in ran.seen] == [[f"{type(error).__name__}: {error}"]]
    assert not ran.is_good
    assert "nothing: this run is not good\nTraceback " in caplog.text


def test_a_sitting_ends_at_an_interrupt(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Broken(KeyboardInterrupt()), NOTHING, tmp_path, random.Random(1))  # noqa: S311  # no secret


ENDED_UNSAVED = "began 0 0\nsaved 90\nbegan 90 90\nbegan 90 140\n"


@pytest.mark.parametrize(
    ("redoes", "moments", "is_good"),
    [
        ("", ["asked"], False),
        ("its node goes down", ["asked"], True),
        ("its node goes down", [PASSED_BY], False),
        ("its node goes down", ["asked", PASSED_BY], True),
    ],
)
def test_work_done_again_is_lost_work_but_where_the_fault_has_ended_a_run(
    redoes: str, moments: Sequence[str], is_good: bool, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(ENDED_UNSAVED)
    ran = Ran("x", [Seen(moment) for moment in moments])
    count_work(Fault("x", ("asked",), redoes=redoes), ran, Work(tmp_path / "log"))
    assert (ran.seen[-1].redone, ran.seen[-1].steps_lost) == (50, 0)
    assert ran.is_good is is_good
    said = [] if is_good else ["lost work: 50 steps that were not saved are done again"]
    assert ran.seen[-1].words == said


def test_nothing_done_again_needs_no_excuse(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("began 0 0\nsaved 90\nbegan 90 90\n")
    ran = Ran("nothing", [Seen("asked")])
    count_work(NOTHING, ran, Work(tmp_path / "log"))
    assert ran.is_good


@pytest.mark.parametrize("faults", [slurm_faults, pbs_faults])
def test_what_may_be_done_again_is_said_of_kinds_that_there_are(faults: ModuleType) -> None:
    excused = {one.name: one.redoes for one in faults.FAULTS if one.redoes}
    assert excused == faults._REDONE


@pytest.mark.parametrize("faults", [slurm_faults, pbs_faults])
def test_a_fault_of_pliantd_alone_is_no_cause_for_lost_work(faults: ModuleType) -> None:
    of_pliantd = [one for one in faults.FAULTS if one.name.startswith("pliantd ")]
    assert of_pliantd
    assert not any(one.redoes for one in of_pliantd)
