"""The speed table keeps apart what must not be divided by each other, and forgets slowly."""

from __future__ import annotations

import pytest

from pliant.speed_table import HALF_LIFE_S, LEAST_S, Mean, Program, SpeedTable, Window

TRAIN, EVAL = Program("ada", "train", "1"), Program("ben", "eval", "1")


def seen(job: str, speed: float, *others: str, tier: str = "counters", end_s: float = 10) -> Window:
    return Window(job, tier, speed, 10.0, end_s, frozenset(others))


def table(**programs: Program) -> SpeedTable:
    found = SpeedTable()
    for job, program in programs.items():
        found.runs(job, program)
    return found


def test_a_speed_is_relative_to_the_job_alone() -> None:
    speeds = table(a=TRAIN, b=EVAL)
    speeds.add(seen("a", 4e9))
    speeds.add(seen("a", 3e9, "b"))
    assert speeds.relative("a", "counters", frozenset("b")) == 0.75
    assert speeds.relative("b", "counters", frozenset("a")) is None


def test_speeds_of_two_tiers_are_never_divided_by_each_other() -> None:
    speeds = table(a=TRAIN, b=EVAL)
    speeds.add(seen("a", 4e9, tier="counters"))
    speeds.add(seen("a", 0.9, "b", tier="cpu"))
    assert speeds.relative("a", "counters", frozenset("b")) is None
    assert speeds.relative("a", "cpu", frozenset("b")) is None


def test_a_new_job_is_known_by_its_program() -> None:
    speeds = table(a=TRAIN, b=EVAL)
    speeds.add(seen("a", 4e9))
    speeds.add(seen("a", 3e9, "b"))
    speeds.forget(())
    speeds.runs("c", TRAIN)
    speeds.runs("d", EVAL)
    assert speeds.relative("c", "counters", frozenset("d")) == 0.75
    assert speeds.relative("a", "counters", frozenset("d")) is None


def test_a_program_of_one_job_alone_goes_with_it() -> None:
    speeds = table(a=TRAIN, b=Program("ben", "#b", "1"))
    speeds.add(seen("a", 4e9))
    speeds.add(seen("a", 3e9, "b"))
    speeds.add(seen("b", 3e9, "a"))
    speeds.forget("a")
    assert speeds.alone("a", "counters") == 4e9
    assert len(speeds._means) == len(speeds._known) == 1  # a alone, and its program's


def test_what_was_seen_of_the_very_jobs_counts_first() -> None:
    speeds = table(a=TRAIN, b=EVAL, c=TRAIN, d=EVAL)
    for job, other, beside in (("a", "b", 3e9), ("c", "d", 1e9)):
        speeds.add(seen(job, 4e9))
        speeds.add(seen(job, beside, other))
    assert speeds.relative("a", "counters", frozenset("b")) == 0.75
    assert speeds.relative("a", "counters", frozenset("d")) == 0.5  # the mean of both pairs


def test_a_job_that_goes_on_as_another_shape_is_another_program() -> None:
    speeds = table(a=TRAIN)
    speeds.add(seen("a", 4e9))
    speeds.runs("a", TRAIN._replace(shape="2"))
    assert speeds.alone("a", "counters") is None
    speeds.runs("a", TRAIN)
    assert speeds.alone("a", "counters") == 4e9  # by what its program did


def test_older_windows_count_less_in_whatever_order_they_come() -> None:
    one, other = Mean(), Mean()
    windows = [(1.0, 10.0, 0.0), (4.0, 10.0, HALF_LIFE_S)]
    for window in windows:
        one.add(*window)
    for window in reversed(windows):
        other.add(*window)
    assert one.value == pytest.approx(3.0)
    assert other.value == pytest.approx(3.0)


def test_a_moment_is_not_enough_to_know_a_speed() -> None:
    mean = Mean()
    mean.add(1.0, LEAST_S / 2, 0.0)
    assert mean.value is None
    mean.add(1.0, LEAST_S, 0.0)
    assert mean.value == 1.0


def test_what_is_written_down_of_programs_is_known_again() -> None:
    first = table(
        a=TRAIN, b=Program("ben", "naïve\udcff\n|", "1x0@cpu"), c=Program("ben", "#c", "1")
    )
    for others, speed in ((), 4e9), (("b",), 3e9), (("c",), 2e9):
        first.add(seen("a", speed, *others))
    rows = first.fresh()
    assert all(text.isascii() for text, *_ in rows)
    assert first.fresh() == []
    first.add(seen("a", 2e9, "b", end_s=20))
    (again,) = first.fresh()

    later = table(x=TRAIN, y=Program("ben", "naïve\udcff\n|", "1x0@cpu"))
    later.recall([*rows, ("no json", 1.0, 1.0, 1.0), ("[1, 2]", 1.0, 1.0, 1.0)])
    assert later.relative("x", "counters", frozenset("y")) == 0.75
    assert len(later._known) == 2  # not what was beside a program of one job
    later.recall([again])
    assert later.relative("x", "counters", frozenset("y")) == pytest.approx(0.625, rel=0.01)


def test_of_programs_the_latest_are_known() -> None:
    speeds = SpeedTable(most_known=2)
    for job in "abac":
        speeds.runs(job, Program("ada", f"train-{job}", "1"))
        speeds.add(seen(job, 4e9))
    speeds.forget(())
    for job in "abc":
        speeds.runs(f"{job}2", Program("ada", f"train-{job}", "1"))
    known = [speeds.alone(f"{job}2", "counters") for job in "abc"]
    assert known == [4e9, None, 4e9]
    assert len(speeds.fresh()) == 2
