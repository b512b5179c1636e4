"""From a GPU that becomes free to the job that runs on it: molded against stock.

One node of four GPUs. Two are held all the time; a second job holds the others for a few seconds,
and behind it waits the job that is measured. Stock: a rigid job of two GPUs, which Pliant does not
touch. Molded: a job that asks for four and allows two, which cannot start until Pliant has changed
it. Both kinds in turn, on the same slurmctld. What is measured is the time from the last command of
the job that ends to the first of the job that starts, by their own clocks: it holds the epilogue,
slurmctld's reaction, Pliant's cycle and the launch.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.section import Section, verdict
from benchmarks.stats import difference, estimate, quantile
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.options import SCHEDULER_PARAMETERS

GOAL_S = 2.0
_POLL_S = 0.1
_TIMEOUT_S = 180.0
_STAMP = "date +%s.%N"

STOCK = ("--gres=gpu:2",)
MOLDED = ("--gres=gpu:4", "--moldable=gpus=2:4")


@dataclass(frozen=True, slots=True)
class Setting:
    """One SchedulerParameters, and how often each kind is measured under it."""

    name: str
    parameters: str
    times: int


def measure(quick: bool) -> list[Section]:
    """Measure under the sandbox's quick scheduler parameters and under Slurm's own."""
    settings = (
        Setting("the sandbox's", SCHEDULER_PARAMETERS, 1 if quick else 30),
        Setting("Slurm's defaults", "", 0 if quick else 12),
    )
    return [_section([(one, *_both(one)) for one in settings if one.times])]


def _both(setting: Setting) -> tuple[list[float], list[float]]:
    """Return the seconds of stock and of molded jobs."""
    options = Options(nodes=1, gpus=4, scheduler_parameters=setting.parameters)
    sandbox = Sandbox("bench-start", options)
    sandbox.up()
    try:
        return _measured(sandbox, setting.times)
    finally:
        sandbox.down()


def _measured(sandbox: Sandbox, times: int) -> tuple[list[float], list[float]]:
    draw = random.Random(0)
    stock: list[float] = []
    molded: list[float] = []
    _submit(sandbox, "--gres=gpu:2", script="sleep 36000")
    for _ in range(times):
        for asked, found in draw.sample([(STOCK, stock), (MOLDED, molded)], 2):
            found.append(_once(sandbox, asked, hold_s=draw.uniform(3, 4)))
    return stock, molded


def _once(sandbox: Sandbox, asked: Sequence[str], hold_s: float) -> float:
    """Return the seconds from the end of one job to the start of the next."""
    ended, began = (sandbox.layout.top / name for name in ("bench-ended", "bench-began"))
    for path in (ended, began):
        path.unlink(missing_ok=True)
    holder = _submit(sandbox, "--gres=gpu:2", script=f"sleep {hold_s}; {_STAMP} >{ended}")
    _until(lambda: _state(sandbox, holder) == "R", "the first job to start")
    _submit(sandbox, *asked, script=f"{_STAMP} >{began}")
    _until(lambda: _has_line(began), "the second job to start")
    return float(began.read_text()) - float(ended.read_text())


def _submit(sandbox: Sandbox, *options: str, script: str) -> str:
    argv = ["sbatch", "--parsable", "--nodes=1", "--time=600", "--output=/dev/null", *options]
    return sandbox.run(argv, check=True, stdin=f"#!/bin/sh\n{script}\n").stdout.strip()


def _state(sandbox: Sandbox, job: str) -> str:
    return sandbox.run(["squeue", "-h", "-j", job, "-o", "%t"]).stdout.strip()


def _has_line(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


def _until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not ready():
        assert time.monotonic() < deadline, f"waited {_TIMEOUT_S:.0f} s for {what}"
        time.sleep(_POLL_S)


def _section(found: Sequence[tuple[Setting, list[float], list[float]]]) -> Section:
    added = [difference(molded, stock) for _, stock, molded in found]
    reached = all(one.value <= GOAL_S for one in added)
    return Section(
        "From a free GPU to a job that runs on it",
        "A rigid job that fits what becomes free, and one that Pliant must mold first, in turn on "
        "one slurmctld; from the last command of the job that ends to the first of the next.",
        ("SchedulerParameters", "each", "stock, s", "molded, s", "molded p90, s", "more, s"),
        [
            (
                setting.name,
                str(setting.times),
                estimate(stock).text(),
                estimate(molded).text(),
                f"{quantile(0.9)(molded):.2f}",
                more.text(),
            )
            for (setting, stock, molded), more in zip(found, added, strict=True)
        ],
        f"Goal: at most {GOAL_S:.0f} s more, median: {verdict(reached)}.",
    )
