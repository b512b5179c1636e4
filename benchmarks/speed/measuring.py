"""Run programs alone and beside each other, and look at them with Pliant's own monitor."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from benchmarks.speed.points import Seen
from benchmarks.speed.programs import Program
from pliant.errors import Unavailable
from pliant.monitor import counters
from pliant.monitor.counters import Counters
from pliant.monitor.reading import reading
from pliant.monitor.service import Node

ONE, TWO = "one core", "two cores"
ON_ALL = "threads"
"""The program that runs on both cores where there are two."""
REPEATS = 2
"""Windows of a program alone."""
WINDOW_S, WARM_S = 2.0, 0.25

Placed = tuple[int, frozenset[int]]
"""A program, by its place among those that were started, and its CPUs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who runs at the same time, and where. ``setting``: empty where one runs alone."""

    setting: str
    who: tuple[Placed, ...]


def two_cpus() -> tuple[int, int]:
    """Return two CPUs. Raises Unavailable where this process may use one alone."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Unavailable(f"CPUs {allowed}: two are needed")
    return allowed[0], allowed[1]


def plans(names: Sequence[str], cpus: tuple[int, int]) -> list[Plan]:
    """Return all pairs in both settings, and each program alone, shuffled.

    Every program is started twice, all second copies after the first, and a pair is one of each. A
    copy runs alone wherever it runs beside another: neither CPUs nor copies need be alike.
    """
    first_cpu, last_cpu = cpus
    pairs = [
        Plan(
            setting, ((one, _cpus(names[one], a, of)), (len(names) + two, _cpus(names[two], b, of)))
        )
        for setting, a, b, of in (
            (ONE, first_cpu, first_cpu, {first_cpu}),
            (TWO, first_cpu, last_cpu, {first_cpu, last_cpu}),
        )
        for one, two in combinations_with_replacement(range(len(names)), 2)
    ]
    alone = dict.fromkeys(each for plan in pairs for each in plan.who)
    found = pairs + [Plan("", (each,)) for each in alone for _ in range(REPEATS)]
    random.Random(0).shuffle(found)
    return found


def _cpus(name: str, cpu: int, of: set[int]) -> frozenset[int]:
    return frozenset(of if name == ON_ALL else {cpu})


def measured(
    programs: Sequence[Program], planned: Sequence[Plan], window_s: float
) -> list[tuple[Plan, tuple[Seen, ...]]]:
    """Run what is planned, one after the other, and return what was seen."""
    counted = counters.here()
    found = []
    for number, plan in enumerate(planned, 1):
        found.append((plan, _seen(programs, plan, window_s, counted)))
        print(f"\r  window {number} of {len(planned)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if counted:
        counted.read(())
    return found


def _seen(
    programs: Sequence[Program], plan: Plan, window_s: float, counted: Counters | None
) -> tuple[Seen, ...]:
    """Let programs run beside each other for a window, and return what each did."""
    node = Node("bench")
    running = [programs[place] for place, _ in plan.who]
    for program, (_, cpus) in zip(running, plan.who, strict=True):
        program.go(cpus)
    try:
        time.sleep(WARM_S)
        before, units, at_s = node.look(counted), [p.units() for p in running], time.monotonic()
        time.sleep(window_s)
        after, now, end_s = node.look(counted), [p.units() for p in running], time.monotonic()
    finally:
        for program in running:
            program.halt()
    speeds = {job.job: job.speed for job in reading(node.name, before, after).jobs}
    seen = []
    for program, then, done in zip(running, units, now, strict=True):
        speed = speeds[program.job]
        assert speed, f"{program.name}: the monitor told no speed"
        seen.append(Seen(program.name, (done - then) / (end_s - at_s), speed))
    return tuple(seen)
