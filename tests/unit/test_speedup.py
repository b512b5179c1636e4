"""How fast a job runs as each shape: as given, between what is given, and where nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import HOUR_S, job
from hypothesis import given
from hypothesis import strategies as st

from pliant.grammar import parse, parse_shape
from pliant.model import Shape
from pliant.speedup import given_speed, known_speed, relative_speed, run_time_s

MEASURED = parse(
    "gpus=1/4-8,type=gpu:cpu;throughput=1:1.0,2:1.9,4:3.6,2x4:2.5,1/2:0.6,1x0@cpu:0.1,4@v100:2.0"
)


@pytest.mark.parametrize(
    ("shape", "speed"),
    [
        ("4", 3.6),  # given
        ("2x4", 2.5),  # given, and slower than four GPUs of one node
        ("3", 2.75),  # between 2 and 4
        ("8", 3.6),  # more than was measured: nothing more is promised
        ("2x2", 1.25),  # two nodes: below what was measured there, in proportion
        ("1/4", 0.3),
        ("1/3", 0.4),
        ("4@v100", 2.0),  # given for that type
        ("4@a100", 3.6),  # given for any type
        ("1x0@cpu", 0.1),
        ("2x0@cpu", 0.1),
        ("1@both", None),
    ],
)
def test_speeds_are_taken_as_given_and_between(shape: str, speed: float | None) -> None:
    found = given_speed(MEASURED, parse_shape(shape))
    assert found == (pytest.approx(speed) if speed is not None else None)


def test_nothing_is_known_where_nothing_is_given() -> None:
    assert given_speed(parse("gpus=1-4"), parse_shape("2")) is None


@pytest.mark.parametrize(
    ("shape", "speed"),
    [("1", 1.0), ("2", 1.8), ("3", 2.4), ("4", 3.0), ("8", 6.0), ("1/2", 0.5), ("1x0@cpu", None)],
)
def test_what_was_measured_holds_between_and_grows_in_proportion_beyond(
    shape: str, speed: float | None
) -> None:
    table = ((Shape(1, 1), 1.0), (Shape(1, 2), 1.8), (Shape(1, 4), 3.0))
    asked = replace(job(1, "4", "gpus=1-8"), measured=table)
    assert known_speed(asked, parse_shape(shape)) == speed
    assert known_speed(replace(asked, measured=()), parse_shape(shape)) is None


def test_what_the_owner_gave_outranks_what_was_measured() -> None:
    asked = job(1, "4", "gpus=1-4;throughput=1:2.0")
    measured = replace(asked, measured=((Shape(1, 4), 100.0),))
    assert [known_speed(one, Shape(1, 4)) for one in (asked, measured)] == [2.0, 2.0]


def test_run_times_follow_from_what_was_measured() -> None:
    asked = job(1, "4", "gpus=1-4;steps=1000")
    measured = replace(asked, measured=((Shape(1, 1), 1.0), (Shape(1, 4), 2.0)))
    times = [run_time_s(measured, Shape(1, gpus)) for gpus in (1, 4)]
    assert (times, relative_speed(measured, Shape(1, 1))) == ([1000.0, 500.0], 0.5)


@pytest.mark.parametrize(
    ("words", "shape", "time_s"),
    [
        ("throughput=1:1.0,4:2.0;steps=1000", "4", 500),
        ("throughput=1:1.0,4:2.0;steps=1000", "1", 1000),
        ("throughput=1:1.0,4:2.0", "1", 2 * HOUR_S),  # the limit is the run time of the own shape
        ("throughput=1:1.0,4:2.0", "1x0@cpu", 40 * HOUR_S),  # nothing given: 0.1 of a GPU
        ("throughput=1:0.0,4:2.0", "1", float("inf")),
        ("", "1", 4 * HOUR_S),  # linear
        ("", "2x4", HOUR_S / 2),
        ("", "1/4", 16 * HOUR_S),
        ("", "4@both", HOUR_S * 4 / 4.1),
    ],
)
def test_run_times_follow_from_speeds(words: str, shape: str, time_s: float) -> None:
    asked = job(1, "4", f"gpus=1-4{';' * bool(words)}{words}")
    assert run_time_s(asked, parse_shape(shape)) == pytest.approx(time_s)


def test_a_job_that_says_nothing_runs_a_year_at_most() -> None:
    assert run_time_s(job(1, "1", time_limit_s=0), parse_shape("1")) == 365 * 24 * 3600
    assert relative_speed(job(1, "1x0@cpu"), parse_shape("1"), cpu_speed=0.25) == 4.0
    assert relative_speed(job(1, "1x0@cpu"), parse_shape("1"), cpu_speed=0.0) == 1.0


@given(
    speeds=st.dictionaries(
        st.sampled_from(["1", "2", "3", "4", "2x1", "2x2", "2x4", "1/2"]),
        st.floats(0, 100, allow_nan=False).map(lambda x: round(x, 3)),
        min_size=1,
    ),
    shape=st.sampled_from(["1", "2", "4", "8", "2x2", "2x3", "4x4", "1/4"]),
)
def test_no_curve_gives_more_than_the_most_that_was_given(
    speeds: dict[str, float], shape: str
) -> None:
    table = ",".join(f"{text}:{speed}" for text, speed in speeds.items())
    found = given_speed(parse(f"gpus=1-4;throughput={table}"), parse_shape(shape))
    assert found is not None
    assert 0 <= found <= max(speeds.values()) * (1 + 1e-9)
