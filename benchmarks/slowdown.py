"""What the monitor costs those whose node it looks at: a node full of work, with it and without.

The monitor is a process of its own that is let go and stopped in turn. Each block is the order
without, with, with, without, or the other way round: what drifts evenly drops out of its ratio.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from statistics import mean

import msgspec

from benchmarks import machine
from benchmarks.section import Section
from benchmarks.speed.programs import Program, started
from benchmarks.stats import estimate
from pliant.monitor import counters, perf, service
from pliant.monitor.reading import NodeReading
from pliant.monitor.windows import Windows

BLOCKS, WINDOW_S, SETTLE_S = 9, 6.0, 0.2
EVERY_S = 1.0
WINDOWS = Windows(WINDOW_S, 1.0)
"""As long a part of the time as always, 10 s of 60 s, and as much of it in each of our windows."""


def measure(quick: bool, syscall: perf.Syscall) -> Section:
    """Measure the slowdown of a program on each CPU; ``syscall`` opens the counters."""
    blocks, window_s = (2, 1.0) if quick else (BLOCKS, WINDOW_S)
    draw = random.Random(0)
    cpus = sorted(os.sched_getaffinity(0))
    load, stolen_s, began_s = machine.load(), machine.steal_s(), time.monotonic()
    with started(["integer"] * len(cpus)) as programs, _monitor(syscall) as monitor:
        for program, cpu in zip(programs, cpus, strict=True):
            program.go({cpu})
        ratios, noise = [], []
        for _ in range(blocks):
            order = draw.choice(([False, True, True, False], [True, False, False, True]))
            rates = [_rate(programs, monitor if on else None, window_s) for on in order]
            ratio, apart = compared(order, rates)
            ratios.append(ratio)
            noise.append(apart)
    stolen = (machine.steal_s() - stolen_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)
    found = estimate(ratios, mean)
    seen = "not distinguishable" if found.low <= 1 <= found.high else "**distinguishable**"
    return Section(
        "What the monitor slows down",
        f"A job with a compute-bound program on each of {len(cpus)} CPUs, beside the jobs above; "
        f"its work per second without the monitor over that with it, in {blocks} blocks of four "
        f"windows of {window_s:g} s. The monitor is a process that looks once a second, with "
        f"counters, as above, open for {WINDOWS.length_s:g} s of {WINDOWS.every_s:g} s: the usual "
        "part of the time, opened ten times as often.",
        ("blocks", "time with the monitor ÷ time without", "two windows without it, apart"),
        [(str(blocks), found.text(4), f"{100 * mean(noise):.2f} %")],
        f"Load before {load}, after {machine.load()}; the host kept {100 * stolen:.2f} % of the "
        f"CPUs. Goal: not distinguishable from 1: {seen}.",
    )


def compared(order: Sequence[bool], rates: Sequence[float]) -> tuple[float, float]:
    """Return a block's rates without over those with, and how far apart those without are."""
    slow = [rate for rate, on in zip(rates, order, strict=True) if on]
    fast = [rate for rate, on in zip(rates, order, strict=True) if not on]
    return mean(fast) / mean(slow), max(fast) / min(fast) - 1


def _rate(programs: Sequence[Program], monitor: int | None, window_s: float) -> float:
    """Return the units of work per second of all programs together; ``monitor``: its process."""
    if monitor:
        os.kill(monitor, signal.SIGCONT)
    try:
        time.sleep(SETTLE_S)
        before, at_s = sum(p.units() for p in programs), time.monotonic()
        time.sleep(window_s)
        return (sum(p.units() for p in programs) - before) / (time.monotonic() - at_s)
    finally:
        if monitor:
            _halt(monitor)


def _halt(monitor: int) -> None:
    """Stop the monitor as soon as it holds no counters: open ones would cost on."""
    while any(WINDOWS.is_open(time.monotonic() - ago_s) for ago_s in (0, SETTLE_S)):
        time.sleep(0.05)
    os.kill(monitor, signal.SIGSTOP)


@contextmanager
def _monitor(syscall: perf.Syscall) -> Iterator[int]:
    """Start the monitor, and yield its process, stopped."""
    process = get_context("fork").Process(target=_look, args=(syscall,), daemon=True)
    process.start()
    assert process.pid
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield process.pid
    finally:
        process.kill()
        process.join()


def _look(syscall: perf.Syscall) -> None:
    logging.disable()  # what tier each job is in

    def sink(reading: NodeReading) -> None:
        msgspec.json.encode(reading)

    def wait(pause_s: float) -> bool:
        time.sleep(pause_s)
        return False

    counted = counters.here(syscall)
    node = service.Node("bench")
    service.run(node, sink, EVERY_S, wait, counters=counted, windows=WINDOWS)
