"""The queue that a simulated cluster keeps is what a list of its jobs would be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from build import job, node
from hypothesis import given
from hypothesis import strategies as st

from pliant.model import Job, Partition, Snapshot
from pliant.placement import queue as module
from pliant.placement.ground import Ground
from pliant.placement.profiles import Profiles
from pliant.placement.queue import Alike, Queue

CLUSTER = Snapshot(0.0, (node("n1"),), (Partition("gpu", ("n1",), default=True),))
KINDS = [job(0), job(0, "2"), job(0, "2", time_limit_s=60), job(0, "4", "gpus=1-4")]
kinds = st.integers(0, len(KINDS) - 1)
jobs = st.tuples(kinds, st.sampled_from([1, 1, 1, 3]))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), jobs),
        st.tuples(st.just("append"), jobs),
        st.tuples(st.just("push"), jobs),
        st.tuples(st.just("remove"), st.integers(0, 99)),
        st.tuples(st.just("start"), st.integers(0, 99)),
    ),
    max_size=25,
)


def limit(one: Job) -> float:
    return one.time_limit_s


def width(one: Job) -> float:
    return -float(one.shape.gpus)


def after(steps: list[tuple[str, object]], profiles: Profiles) -> tuple[Queue, list[Job]]:
    """A queue, and a list of its jobs, after the same steps."""
    queue, plain = Queue(profiles), list[Job]()
    assert list(queue.ordered(limit)) == []  # from now on the order is kept
    for number, (what, value) in enumerate(steps):
        if isinstance(value, tuple):
            kind, tasks = value
            found = replace(KINDS[kind], id=str(number), tasks_waiting=tasks)
            (queue.append if what == "append" else queue.push)(found)
            plain.insert(len(plain) if what == "append" else 0, found)
        elif plain and isinstance(value, int):
            at = value % len(plain)
            left = plain[at].tasks_waiting - 1
            if what == "start" and left:
                plain[at] = replace(plain[at], tasks_waiting=left)
                queue.replace(plain[at])
            else:
                assert queue.remove(plain[at].id) == plain.pop(at)
    return queue, plain


@given(steps=steps)
def test_the_jobs_stand_in_order(steps: list[tuple[str, object]]) -> None:
    profiles = Profiles(CLUSTER)
    queue, plain = after(steps, profiles)
    assert list(queue) == list(queue[:]) == plain
    assert len(queue) == len(plain)
    assert [queue.get(one.id) for one in plain] == plain
    assert sorted(plain, key=lambda one: queue.place(one.id)) == plain
    assert all(one in queue for one in plain)
    assert job(99999) not in queue
    tasks: dict[object, int] = {}
    for one in plain:
        of = profiles.of(one)
        tasks[of] = tasks.get(of, 0) + one.tasks_waiting
    assert queue.tasks == tasks
    for key in (limit, width):
        ordered = sorted(plain, key=key)
        assert list(queue.ordered(key)) == [(one, profiles.of(one)) for one in ordered]
    first = {profiles.of(one): queue.place(one.id) for one in reversed(plain)}
    assert queue.firsts() == first


@pytest.mark.parametrize("patience", [0, 1, 3, 32])
@given(steps=steps, turned_down=st.lists(st.booleans(), min_size=25, max_size=25))
def test_those_that_are_passed_over_are_left_out_and_no_others(
    patience: int, steps: list[tuple[str, object]], turned_down: list[bool]
) -> None:
    profiles = Profiles(CLUSTER)
    queue, plain = after(steps, profiles)

    def naive(passed: set[Alike]) -> Iterator[Job]:
        for one in plain:
            if (profiles.of(one), one.time_limit_s) not in passed:
                yield one

    def seen(turns: Iterator[Job], passed: set[Alike]) -> list[Job]:
        found = []
        for one, down in zip(turns, turned_down, strict=False):
            found.append(one)
            if down:
                passed.add((profiles.of(one), one.time_limit_s))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PATIENCE", patience)
        passed: set[Alike] = set()
        turns = queue.turns(passed)
        mine = seen((one for one, profile in turns if profile is profiles.of(one)), passed)
    passed = set()
    assert mine == seen(naive(passed), passed)


def test_who_has_made_room_is_known_until_it_runs_again() -> None:
    queue = Queue(Profiles(CLUSTER))
    for number in range(3):
        queue.append(replace(KINDS[0], id=str(number)))
    queue.push(replace(KINDS[1], id="maker", room_for="1"))
    assert [one.id for one in queue.makers()] == ["maker"]
    queue.replace(replace(queue.get("maker"), restarts=2))
    assert [one.restarts for one in queue.makers()] == [2]
    queue.remove("maker")
    assert list(queue.makers()) == []


def test_claims_for_one_shape_leave_nothing_behind() -> None:
    ground, one = Ground(CLUSTER), KINDS[1]
    for _ in range(3):
        need = ground.profiles.need(one, one.shape)
        assert ground.chains(one, (one.shape,)) == [[(one.shape, need)]]
    assert not ground._chains
