"""Hold the monitor's speeds against the true ones; write docs/benchmarks-speed.md and its figure.

``make bench-speed``, or ``python -m benchmarks.speed [--quick] [--out FILE]``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.speed import pages
from benchmarks.speed.measuring import REPEATS, WARM_S, WINDOW_S, Plan, measured, plans, two_cpus
from benchmarks.speed.plot import figure
from benchmarks.speed.points import Point, Seen, point
from benchmarks.speed.programs import PROGRAMS, started
from pliant.errors import Unavailable
from pliant.monitor import counting
from pliant.monitor.perf import Event
from pliant.simulator.report import plots

DOCUMENT = Path(__file__).parents[2] / "docs" / "benchmarks-speed.md"
QUICK = ("integer", "chase", "half", "threads")

_HEAD = """\
# The monitor's speed against the true one

Written by `make bench-speed`; every number below was measured by that run. It is the second figure
of Kuchumov and Korkhov (paper 002) as far as this machine allows: their speed is instructions per
cycle times CPU-time fraction, measured on programs of NPB, of PARSEC and of their own.
In brackets: the interval that holds 95 % of a bootstrap, which draws whole pairs.
"""
_HOW = """\
Each program counts units of equal work in a file that it shares with the benchmark. It runs alone
({repeats} windows, wherever it runs beside another) and in all pairs, itself included: both on one
core, and each on a core of its own, where `threads` takes both. A window is {window:g} s, after
{warm:g} s to warm up; they follow each other in a shuffled order, and whoever is not measured is
stopped. The monitor is Pliant's own, looking at both ends of the window.
"""


def main(arguments: list[str]) -> None:
    """Measure, and write the document and its figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few and short: to try it out")
    parser.add_argument("--out", type=Path, help="where to write; - for standard output")
    chosen = parser.parse_args(arguments)
    if os.geteuid():
        parser.error("only root can look at jobs: run it as root")
    out = chosen.out or (Path("-") if chosen.quick else DOCUMENT)
    names = list(QUICK if chosen.quick else PROGRAMS)
    try:
        if out != Path("-"):
            plots.check()
        text, points = measured_now(names, 0.5 if chosen.quick else WINDOW_S)
    except Unavailable as error:
        parser.error(str(error))
    if out == Path("-"):
        print(text)
        return
    drawn = out.with_suffix(".png")
    drawn.write_bytes(figure(points))
    out.write_text(f"{text}\n![Measured over true]({drawn.name})\n")


def measured_now(names: Sequence[str], window_s: float) -> tuple[str, list[Point]]:
    """Measure all; return the document without its figure, and the points."""
    lines, stolen_s, began_s = list(machine.lines()), machine.steal_s(), time.monotonic()
    planned = plans(names, two_cpus())
    with started([*names, *names]) as programs:
        seen = measured(programs, planned, window_s)
    wall_s = time.monotonic() - began_s
    stolen = (machine.steal_s() - stolen_s) / wall_s / (os.cpu_count() or 1)
    lines.append(f"- Load when it ended: {machine.load()}; it took {wall_s:.0f} s")
    lines.append(
        f"- Time that the host kept CPUs from this machine meanwhile: {100 * stolen:.2f} %"
    )
    lines.append(f"- Two windows of a program alone: {_spread(seen)}")
    how = _HOW.format(repeats=REPEATS, window=window_s, warm=WARM_S)
    pairs = paired(seen)
    text = [_HEAD, *lines, "", how, *_programs(names)]
    refused = counting.offered()[Event.INSTRUCTIONS]
    for section in (
        pages.agreements(pairs, refused.why if refused else ""),
        pages.blind(pairs),
        *pages.all_points(pairs, names),
    ):
        text += section.markdown()
    return "\n".join(text), [each for pair in pairs for each in pair]


def _programs(names: Sequence[str]) -> Iterator[str]:
    yield from ("| program | what it does |", "| --- | --- |")
    yield from (f"| {name} | {PROGRAMS[name]} |" for name in names)
    yield ""


def paired(seen: Sequence[tuple[Plan, tuple[Seen, ...]]]) -> list[list[Point]]:
    """Return the points of each pair, against the windows of the same copy on the same CPUs."""
    alone = _alone(seen)
    return [
        [
            point(plan.setting, one, other.name, alone[placed])
            for one, other, placed in zip(both, reversed(both), plan.who, strict=True)
        ]
        for plan, both in seen
        if plan.setting
    ]


def _alone(seen: Sequence[tuple[Plan, tuple[Seen, ...]]]) -> dict[object, list[Seen]]:
    found: dict[object, list[Seen]] = {}
    for plan, ran in seen:
        if not plan.setting:
            found.setdefault(plan.who[0], []).append(ran[0])
    return found


def _spread(seen: Sequence[tuple[Plan, tuple[Seen, ...]]]) -> str:
    """Say how much the windows of a program alone differ: what of an error is but noise."""
    apart = sorted(
        (max(rates) / min(rates) - 1, each[0].name)
        for each in _alone(seen).values()
        for rates in [[one.units_per_s for one in each]]
    )
    middle, (most, name) = apart[len(apart) // 2][0], apart[-1]
    return f"{100 * middle:.1f} % apart (median), {100 * most:.1f} % at most ({name})"


if __name__ == "__main__":
    main(sys.argv[1:])
