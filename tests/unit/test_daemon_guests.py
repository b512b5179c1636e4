"""Of an array one task is made room for, as if it were a job of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.batch.slurm.values import tasks_in
from pliant.daemon.guests import apart, first_task
from pliant.model import ARRAY_LIMIT, ONE_OF_ARRAY, Job, Shape, Snapshot

SHAPES = (Shape(1, 2), Shape(1, 4))
ARRAY = Job("8", shape=SHAPES[0], shapes=SHAPES, tasks_waiting=4, array_tasks="1-4")
OTHER = Job("7")


def waiting(*jobs: Job) -> Snapshot:
    return Snapshot(0.0, (), (), waiting=jobs)


def told(snapshot: Snapshot) -> list[tuple[str, str, int]]:
    return [(job.id, job.array_tasks, job.tasks_waiting) for job in snapshot.waiting]


@pytest.mark.parametrize(
    ("job", "name"),
    [
        (ARRAY, "8_1"),
        (replace(ARRAY, array_tasks="3,5-9"), "8_3"),
        (replace(ARRAY, id="8[]"), "8[1]"),
        (replace(ARRAY, id="8_4", array_tasks="4"), "8_4"),  # the last one goes by its name already
        (replace(ARRAY, array_tasks="what"), "8"),
        (OTHER, "7"),
    ],
)
def test_the_first_task_is_the_guest(job: Job, name: str) -> None:
    guest = first_task(job)
    assert guest.id == name
    assert guest is job or guest == replace(
        job,
        id=name,
        array_tasks="",
        tasks_waiting=1,
        shapes=SHAPES[:1],  # nobody changes a single task of an array
        frozen=ONE_OF_ARRAY,
    )


def test_it_waits_beside_its_array_and_in_its_place_in_the_queue() -> None:
    seen = waiting(OTHER, ARRAY, replace(OTHER, id="9"))
    one = first_task(ARRAY)
    found = apart(seen, ("8_1",))
    assert told(found) == [("7", "", 1), ("8_1", "", 1), ("8", "2-4", 3), ("9", "", 1)]
    assert found.waiting[1] == one
    both = [("8_1", "", 1), ("8_3", "", 1), ("8", "2,4", 2)]
    assert told(apart(seen, ("8_1", "8_3")))[1:4] == both
    assert apart(found, ("8_1",)) == found


@pytest.mark.parametrize("name", ["", "8", "8_5", "9_1", "8_x", "7_1"])
def test_who_waits_in_no_array_is_taken_out_of_none(name: str) -> None:
    seen = waiting(OTHER, ARRAY)
    assert apart(seen, (name,)) == seen


def test_of_an_array_as_many_of_which_run_as_may_no_other_task_has_its_turn() -> None:
    array = replace(ARRAY, tasks_waiting=1, reason="Resources")  # --array=1-4%1
    one, rest = apart(waiting(array), ("8_1",)).waiting
    assert (one.reason, rest.reason, rest.tasks_waiting) == ("Resources", ARRAY_LIMIT, 1)
    two = replace(array, tasks_waiting=2)
    assert [job.reason for job in apart(waiting(two), ("8_1",)).waiting] == ["Resources"] * 2


def test_where_its_last_task_is_the_guest_nothing_is_left_of_an_array() -> None:
    last = replace(ARRAY, id="8[]", tasks_waiting=1, array_tasks="3")
    assert told(apart(waiting(last), ("8[3]",))) == [("8[3]", "", 1)]


@given(st.integers(0, 20), st.integers(1, 30), st.integers(1, 4), st.data())
def test_all_other_tasks_are_left(first: int, number: int, step: int, data: st.DataObject) -> None:
    tasks = range(first, first + number * step, step)
    text = f"{tasks[0]}-{tasks[-1]}:{step},100" if number > 1 else f"{first},100"
    task = data.draw(st.sampled_from(tasks))
    array = replace(ARRAY, array_tasks=text, tasks_waiting=number + 1)
    one, rest = apart(waiting(array), (f"8_{task}",)).waiting
    assert (one.id, rest.tasks_waiting, tasks_in(rest.array_tasks)) == (f"8_{task}", number, number)
    assert apart(waiting(rest), (f"8_{task}",)) == waiting(rest)
