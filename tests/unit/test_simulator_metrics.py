"""What a replay did, counted: by hand for examples, and what always holds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.simulator.metrics import (
    Span,
    Task,
    bags,
    lost_gpu_s,
    makespan_s,
    spread,
    utilisation,
    worst_hit,
)

ONCE = Task("1", "alice", 0.0, 200.0, (Span(10.0, 110.0, 2),))
TWICE = Task("2", "alice", 5.0, 300.0, (Span(10.0, 60.0, 4), Span(100.0, 260.0, 1, 10.0)))


def test_a_task_that_ran_once() -> None:
    assert (ONCE.flow_s, ONCE.wait_s, ONCE.execution_s, ONCE.restarts) == (110.0, 10.0, 100.0, 0)
    assert (ONCE.stretch, ONCE.slowdown) == (0.55, 1.1)


def test_what_lies_between_runs_and_what_a_restart_costs_counts_as_wait() -> None:
    assert (TWICE.flow_s, TWICE.execution_s, TWICE.wait_s) == (255.0, 200.0, 55.0)
    assert (TWICE.restarts, TWICE.slowdown, lost_gpu_s([ONCE, TWICE])) == (1, 1.275, 10.0)


def test_the_machine() -> None:
    assert makespan_s([ONCE, TWICE]) == 260.0
    assert utilisation([ONCE, TWICE], 4) == 500.0 / (4 * 260.0)


def of(number: int, start_s: float, end_s: float, user: str = "alice") -> Task:
    return Task(str(number), user, start_s - 5.0, 1.0, (Span(start_s, end_s, 1),))


def test_a_job_is_what_starts_during_or_within_a_minute_after_another_of_the_user() -> None:
    tasks = [
        *(of(1, 100, 500), of(2, 150, 200), of(3, 260, 300), of(4, 559, 600)),
        *(of(5, 661, 700), of(6, 760, 800), of(7, 100, 9000, "bob")),
    ]
    found = [(bag.user, [task.id for task in bag.tasks], bag.flow_s) for bag in bags(tasks)]
    assert found == [
        ("alice", ["1", "2", "3", "4"], 505.0),
        ("alice", ["5", "6"], 144.0),
        ("bob", ["7"], 8905.0),
    ]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 500), st.integers(1, 99))))
def test_each_task_is_in_one_job_and_jobs_of_a_user_lie_apart(
    drawn: list[tuple[str, int, int]],
) -> None:
    tasks = [of(n, start, start + run, user) for n, (user, start, run) in enumerate(drawn)]
    found = [*bags(tasks)]
    assert sorted(int(task.id) for bag in found for task in bag.tasks) == [*range(len(tasks))]
    for one, other in pairwise(found):
        if one.user == other.user:
            end_s = max(task.end_s for task in one.tasks)
            assert min(task.start_s for task in other.tasks) > end_s + 60


def test_percentiles_are_figures_that_occur() -> None:
    found = spread(range(1, 201))
    assert (found.mean, found.median, found.p95, found.p99, found.most) == (
        100.5,
        100,
        190,
        198,
        200,
    )
    assert spread([7.0]) == spread([7.0, 7.0])
    with pytest.raises(ValueError, match="no figures"):
        spread([])


def test_the_worst_hit_user_is_the_one_whose_mean_grew_most() -> None:
    before = [ONCE, TWICE, of(3, 100, 200, "bob")]
    after = [ONCE, TWICE, replace(before[2], submit_s=45.0)]
    assert worst_hit(after, before, lambda task: task.flow_s) == ("bob", 155 / 105)
    with pytest.raises(ValueError, match="no user to compare"):
        worst_hit(after, [], lambda task: task.flow_s)
