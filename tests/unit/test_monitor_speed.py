"""Speeds from two samples, windows, and what a node's reading says: no clock, no file."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.monitor.reading import JobReading, Look, NodeReading, reading
from pliant.monitor.sample import CountedBy, Counts, Pressure, Sample, ThreadTime
from pliant.monitor.speed import Parts, Speed, Stalled, relative, speed, stalled
from pliant.monitor.tier import Tier
from pliant.monitor.windows import Windows, next_tick, of_node, pause_s

BEFORE = Sample(
    job="12",
    at_s=100.0,
    cpu_by=CountedBy.PROCESSES,
    cpu_s={"batch/1": 50.0, "0/2": 7.0},
    threads={(1, 1, 1): ThreadTime(40.0, 10.0), (1, 1, 2): ThreadTime(9.0, 0.0)},
    processes=1,
    memory_bytes=1000,
    memory_by=CountedBy.PROCESSES,
)
AFTER = replace(
    BEFORE,
    at_s=110.0,
    cpu_s={"batch/1": 58.0, "1/3": 2.0},  # step 0 has ended, step 1 begun
    threads={(1, 1, 1): ThreadTime(46.0, 12.0), (3, 9, 3): ThreadTime(2.0, 0.0)},
)
PARTS = Parts(cpu=1.0, run_share=0.8, thread_cpu=0.4)
SLOW = Speed(0.5, Tier.CPU, 10.0, PARTS)

# speed


def test_without_counters_a_speed_is_cpu_time() -> None:
    assert speed(BEFORE, AFTER) == Speed(1.0, Tier.CPU, 10.0, PARTS)


def test_with_counters_it_is_instructions_and_the_papers_beside_it() -> None:
    before = replace(BEFORE, counts=Counts(1_000, 500, 3.0))
    after = replace(AFTER, counts=Counts(31_000, 15_500, 11.0))
    # instructions per cycle 2; of two threads over 10 s, on a CPU for 8 s
    with_ipc = replace(PARTS, ipc=2.0, ipc_cpu=2.0 * 0.4)
    assert speed(before, after) == Speed(3_000.0, Tier.COUNTERS, 10.0, with_ipc)


@pytest.mark.parametrize(
    ("counts", "ipc"),
    [(Counts(31_000, None, 11.0), None), (Counts(31_000, 15_500, None), 2.0)],
)
def test_a_pmu_that_lacks_an_event_gives_what_can_be_told_without(
    counts: Counts, ipc: float | None
) -> None:
    before = replace(BEFORE, counts=Counts(1_000, 500, 3.0))
    found = speed(before, replace(AFTER, counts=counts))
    assert found == Speed(3_000.0, Tier.COUNTERS, 10.0, replace(PARTS, ipc=ipc))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, Counts(31_000, 15_500, 11.0)),
        (Counts(1_000, 500, 3.0), None),
        (Counts(31_000, 500, 3.0), Counts(1_000, 15_500, 11.0)),  # counted anew
    ],
)
def test_counts_at_one_end_of_the_window_are_none(
    before: Counts | None, after: Counts | None
) -> None:
    found = speed(replace(BEFORE, counts=before), replace(AFTER, counts=after))
    assert found == Speed(1.0, Tier.CPU, 10.0, PARTS)


@pytest.mark.parametrize(
    "after",
    [
        replace(AFTER, at_s=100.0),
        replace(AFTER, cpu_by=CountedBy.CGROUP, cpu_s={"/sys/fs/cgroup/x": 900.0}),
        replace(AFTER, cpu_s={"batch/1": 49.0}),  # who took it ended, and nobody waited for him
    ],
)
def test_samples_that_do_not_tell_have_no_speed(after: Sample) -> None:
    assert speed(BEFORE, after) is None


def test_a_job_that_sleeps_has_speed_nought_and_one_without_processes_too() -> None:
    asleep = replace(BEFORE, at_s=110.0)
    empty = replace(asleep, threads={}, cpu_s={})
    assert speed(BEFORE, asleep) == Speed(0.0, Tier.CPU, 10.0, Parts(0.0, None, 0.0))
    assert speed(BEFORE, empty) == Speed(0.0, Tier.CPU, 10.0, Parts(0.0, None, None))


def test_a_threads_number_may_be_given_again() -> None:
    again = replace(AFTER, threads={(1, 1, 1): ThreadTime(3.0, 1.0)})
    assert speed(BEFORE, again) == Speed(1.0, Tier.CPU, 10.0, Parts(1.0, 0.75, 0.3))


def test_the_speed_relative_to_alone_is_of_one_tier() -> None:
    alone = replace(SLOW, value=2.0)
    assert relative(SLOW, alone) == 0.25
    assert relative(SLOW, replace(alone, value=0.0)) is None
    with pytest.raises(ValueError, match="tier 3 is not compared with tier 1"):
        relative(SLOW, replace(alone, tier=Tier.COUNTERS))


def test_pressure_is_an_alarm() -> None:
    found = stalled(Pressure(1.0, 2.0, 3.0), Pressure(6.0, 2.0, 3.5), 10.0)
    assert found == Stalled(cpu=0.5, memory=0.0, io=0.05)
    assert (found.alarms(), found.alarms(0.05)) == (("cpu",), ("cpu", "io"))
    assert stalled(None, Pressure(1.0, 2.0, 3.0), 10.0) is None


# a reading


def test_a_reading_has_the_jobs_that_are_here_now() -> None:
    pressed = replace(AFTER, pressure=Pressure(5.0, 0.0, 0.0))
    before = Look(
        100.0,
        1000.0,
        {"12": replace(BEFORE, pressure=Pressure(0.0, 0.0, 0.0)), "8": BEFORE},
        Pressure(0.0, 0.0, 0.0),
    )
    new = replace(AFTER, job="9")
    after = Look(110.0, 1010.0, {"12": pressed, "9": new}, Pressure(0.0, 0.0, 2.0))
    row = JobReading(
        job="9",
        cpu_s=60.0,
        cpu_by=CountedBy.PROCESSES,
        memory_bytes=1000,
        memory_by=CountedBy.PROCESSES,
        processes=1,
        threads=2,
        speed=None,
        stalled=None,
        alarms=(),
    )
    old = replace(
        row, job="12", speed=speed(BEFORE, AFTER), stalled=Stalled(0.5, 0, 0), alarms=("cpu",)
    )
    assert reading("n1", before, after) == NodeReading(
        "n1", 1010.0, 10.0, Stalled(0.0, 0.0, 0.2), ("io",), (row, old)
    )


# windows


def test_windows_are_open_from_their_phase_on_for_their_length() -> None:
    windows = Windows(every_s=60.0, length_s=10.0, phase_s=5.0)
    at = (-56.0, -55.0, 0.0, 4.9, 5.0, 14.9, 15.0, 64.9, 65.0)
    is_open = (False, True, False, False, True, True, False, False, True)
    assert tuple(map(windows.is_open, at)) == is_open
    edges = [windows.next_edge(t) for t in (0.0, 5.0, 14.9, 15.0, 65.0)]
    assert edges == pytest.approx([5.0, 15.0, 15.0, 65.0, 75.0])
    assert windows.duty == pytest.approx(1 / 6)


@pytest.mark.parametrize("length_s", [0.0, -1.0, 61.0])
def test_windows_that_cannot_be_are_refused(length_s: float) -> None:
    with pytest.raises(ValueError, match="every 60"):
        Windows(60.0, length_s)


def test_each_node_has_its_own_phase_and_keeps_it() -> None:
    phases = {name: of_node(name).phase_s for name in (f"n{number}" for number in range(1000))}
    assert of_node("n7") == Windows(60.0, 10.0, phases["n7"])
    at_once = [sum(of_node(name).is_open(t) for name in phases) for t in range(0, 60, 5)]
    assert max(at_once) < 250  # 167 on average; all 1000 where none had its own


@given(
    phase_s=st.floats(0, 60),
    every_s=st.floats(0.5, 300),
    start_s=st.floats(0, 1e7),
)
def test_ticks_meet_every_edge_and_are_never_close(
    phase_s: float, every_s: float, start_s: float
) -> None:
    windows = Windows(60.0, 10.0, phase_s)
    ticks = [start_s]
    while ticks[-1] < start_s + 150:
        ticks.append(next_tick(windows, ticks[-1], every_s))
    gaps = [later - sooner for sooner, later in pairwise(ticks)]
    assert min(gaps) >= min(every_s / 2, 10.0) - 0.01
    edges = [windows.next_edge(start_s)]  # the first may be close to the start, and is left out
    while edges[-1] < start_s + 90:
        edges.append(windows.next_edge(edges[-1]))
    missed = [edge for edge in edges[1:] if min(abs(edge - tick) for tick in ticks) > 0.01]
    assert missed == []


def test_a_tick_that_costs_much_comes_less_often() -> None:
    assert pause_s(10.0, 0.05, 0.01) == 10.0
    assert pause_s(1.0, 0.05, 0.01) == 5.0
