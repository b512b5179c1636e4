"""Trial jobs for whom room was made in vain are ordinary ones for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pliant.daemon.unserved import FIRST_S, MOST_S, Unserved
from pliant.model import Job, JobClass, JobState, Request, Shape, Snapshot, Spec

TRIAL = Job(
    "9",
    state=JobState.WAITING,
    partitions=("gpu",),
    shape=Shape(1, 2),
    spec=Spec(Request(job_class=JobClass.TRIAL)),
    time_limit_s=600,
)


def look(one: Unserved, now_s: float, *waiting: Job, still: tuple[str, ...] = ()) -> None:
    one.looked(Snapshot(now_s, (), (), waiting=waiting), still)


def room(one: Unserved, now_s: float, *after: Job, job: Job = TRIAL) -> None:
    """Room is made for a job, and a look sees who waits after that."""
    look(one, now_s - 30, job)
    one.asked(job.id)
    one.made_room(job.id, now_s - 1)
    look(one, now_s, *after)


def test_one_that_did_not_start_is_ordinary_each_time_for_twice_as_long() -> None:
    one = Unserved()
    now_s, rest_s = 1000.0, FIRST_S
    while rest_s < MOST_S:
        room(one, now_s, TRIAL)
        assert one.why(TRIAL, now_s + rest_s - 1).endswith(f"again for {rest_s / 60:.0f} minutes")
        assert one.why(TRIAL, now_s + rest_s) == ""
        now_s, rest_s = now_s + rest_s + 60, 2 * rest_s
    room(one, now_s, TRIAL)
    assert one.why(TRIAL, now_s + MOST_S) == ""


def test_one_that_started_is_none() -> None:
    one = Unserved()
    room(one, 1000.0)
    assert one.why(TRIAL, 1001.0) == ""


@pytest.mark.parametrize(("array", "name"), [("12[]", "12[4]"), ("12", "12_4")])
def test_what_a_task_could_not_have_no_other_one_of_its_array_gets(array: str, name: str) -> None:
    one, rest = Unserved(), replace(TRIAL, id=array, tasks_waiting=3)
    task = replace(TRIAL, id=name)
    room(one, 2000.0, rest, job=task)
    assert one.why(rest, 2001.0) == ""
    room(one, 3000.0, task, rest, job=task)
    assert one.why(rest, 3001.0) == one.why(task, 3001.0) != ""
    room(one, 3100.0, task, rest, job=task)  # for which room was being made as well
    assert one.why(rest, 3000.0 + FIRST_S - 1) != ""
    assert one.why(rest, 3000.0 + FIRST_S) == ""
    assert one.why(replace(TRIAL, id="13"), 3001.0) == ""


def test_one_whose_owner_holds_it_or_lets_it_begin_later_has_not_been_tried() -> None:
    one = Unserved()
    room(one, 1000.0, replace(TRIAL, eligible=False))
    assert one.why(TRIAL, 1001.0) == ""


def test_a_look_that_is_older_than_the_room_and_more_room_on_its_way_say_nothing() -> None:
    one = Unserved()
    look(one, 970.0, TRIAL)
    one.asked("9")
    one.made_room("9", 1000.0)
    look(one, 1000.0, TRIAL)
    look(one, 1001.0, TRIAL, still=("9",))
    assert one.why(TRIAL, 1001.0) == ""
    look(one, 1002.0, TRIAL)
    assert one.why(TRIAL, 1002.0)


def test_what_its_owner_changes_makes_another_job_of_it() -> None:
    one = Unserved()
    room(one, 1000.0, TRIAL)
    for change in ({"partitions": ("other",)}, {"shape": Shape(1, 1)}, {"time_limit_s": 60}):
        assert one.why(replace(TRIAL, **change), 1001.0) == ""
    look(one, 1002.0)
    look(one, 1003.0, TRIAL)
    assert one.why(TRIAL, 1003.0) == ""


def test_of_one_that_an_earlier_pliantd_made_room_for_nothing_is_said() -> None:
    one = Unserved()
    one.made_room("9", 1000.0)
    look(one, 1001.0, TRIAL)
    assert one.why(TRIAL, 1001.0) == ""
