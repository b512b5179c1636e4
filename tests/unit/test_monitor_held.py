"""GPUs that a job holds and does not use."""

from __future__ import annotations

from dataclasses import replace

from pliant.monitor.gpus import Gpu, GpuProcess, GpuReading, Instance
from pliant.monitor.held import HeldIdle, Holding, held_idle

IDLE = Gpu("GPU-aaaa", 1, 0, "H100", 0, 81559, 0, ())
BUSY = replace(IDLE, util_pct=1)
USED = replace(IDLE, processes=(GpuProcess(300, 500, None, False),))
UNREAD = replace(IDLE, util_pct=None)
UNLISTED = replace(IDLE, processes=None)
MIG = replace(IDLE, util_pct=None)
SLICE = replace(MIG, uuid="MIG-1111", instance=Instance(1, 0, "GPU-aaaa"))
JOB = Holding("4711", [0], since_s=0.0)


def every(step_s: float, *states: Gpu | tuple[Gpu, ...] | None) -> list[GpuReading]:
    """One reading after the other: of one GPU, of several rows, or without any."""
    rows = [(state,) if isinstance(state, Gpu) else state or () for state in states]
    return [GpuReading(100 + step_s * n, "1", gpus) for n, gpus in enumerate(rows)]


def idle(readings: list[GpuReading], *jobs: Holding, window_s: float = 60) -> list[HeldIdle]:
    return list(held_idle(readings, jobs or (JOB,), window_s, gap_s=60))


def test_a_gpu_that_no_reading_sees_used_is_idle_since_the_first() -> None:
    assert idle(every(30, IDLE, IDLE, IDLE, IDLE)) == [HeldIdle("4711", 0, 90.0)]


def test_it_is_idle_since_it_was_last_used() -> None:
    for used in (BUSY, USED, UNREAD, UNLISTED, None):
        assert idle(every(30, IDLE, used, IDLE, IDLE, IDLE)) == [HeldIdle("4711", 0, 60.0)]


def test_what_is_used_now_or_cannot_be_read_is_not_idle() -> None:
    for used in (BUSY, USED, UNREAD, UNLISTED, None):
        readings = every(30, IDLE, IDLE, IDLE, used)
        assert idle(readings) == idle(readings, window_s=0) == []


def test_less_than_the_window_is_not_enough() -> None:
    readings = every(30, IDLE, IDLE, IDLE)
    assert idle(readings, window_s=60) == [HeldIdle("4711", 0, 60.0)]
    assert idle(readings, window_s=61) == []
    assert idle(every(30, IDLE), window_s=60) == idle([], window_s=60) == []


def test_before_a_gap_between_readings_nothing_is_known() -> None:
    readings = every(30, IDLE, IDLE, IDLE, IDLE, IDLE)
    assert idle(readings[:1] + readings[3:], window_s=30) == [HeldIdle("4711", 0, 30.0)]
    assert idle(readings[:1] + readings[2:], window_s=30) == [HeldIdle("4711", 0, 120.0)]


def test_a_job_is_not_blamed_for_the_time_before_it() -> None:
    readings = every(30, IDLE, IDLE, IDLE, IDLE)
    late = Holding("4712", [0], since_s=125.0)
    assert idle(readings, late, window_s=30) == [HeldIdle("4712", 0, 60.0)]
    assert idle(readings, late, window_s=61) == []


def test_each_job_is_told_of_its_own_gpus_by_their_device_files() -> None:
    other = replace(BUSY, uuid="GPU-bbbb", index=0, minor=1)
    third = replace(IDLE, uuid="GPU-cccc", index=2, minor=2)
    readings = every(60, (other, IDLE, third), (other, IDLE, third))
    jobs = [Holding("1", {2, 1}, 0.0), Holding("2", [0], 0.0), Holding("3", [0, 7], 0.0)]
    assert idle(readings, *jobs) == [
        HeldIdle("1", 2, 60.0),
        HeldIdle("2", 0, 60.0),
        HeldIdle("3", 0, 60.0),
    ]


def test_a_gpu_with_mig_is_idle_if_none_of_its_instances_has_a_process() -> None:
    used = replace(SLICE, processes=USED.processes)
    assert idle(every(60, (MIG, SLICE, SLICE), (MIG, SLICE))) == [HeldIdle("4711", 0, 60.0)]
    assert idle(every(60, (MIG, SLICE, SLICE), (MIG, SLICE, used))) == []
