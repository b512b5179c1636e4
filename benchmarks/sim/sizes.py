"""How long whole papers' runs take, and how that grows with the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.section import Section, verdict
from benchmarks.sim.peers import NAMES
from benchmarks.sim.points import Came, Point
from benchmarks.sim.processes import all_of
from pliant.simulator.reproduce.fujiwara_runs import POLICIES
from pliant.simulator.workloads.fitgpp import JOBS

GOALS_S = {240: 60.0, 120: 300.0}
"""For every policy of Fujiwara et al., by CPUs."""
FITGPP_S = 300.0
PATIENCE = 1.25
"""After so many times its goal a run is not waited for any longer."""
SIZES = (50_000, 100_000, 200_000)
FLAT = 0.8
"""A rate that falls no lower than this part of it counts as the same."""


def fujiwara(trace: Path, jobs: int, at_once: int) -> Section:
    """Measure every policy of Fujiwara et al. on HPC2N."""
    points = [
        Point("fujiwara", policy, str(trace), cpus, jobs, PATIENCE * goal_s)
        for cpus, goal_s in GOALS_S.items()
        for policy in POLICIES
    ]
    found = all_of(points, at_once)
    rows, slow = [], []
    for point, came in zip(points, found, strict=True):
        name, goal_s = f"{point.cpus} CPUs, {point.policy}", GOALS_S[point.cpus]
        rows.append(_row(name, came, goal_s))
        if not _reached(came, goal_s):
            slow.append(name)
    how = (
        "HPC2N's trace from the archive's own file, the policies as the paper has them, told each"
        " task's volume; under the rigid ones a task has its own number of CPUs alone. Runs at once"
        f" on this machine: {at_once}. A run is given up after"
        f" {PATIENCE} times its goal: then it says how far it came."
    )
    said = "; ".join(slow)
    result = f"Goals: {verdict(not slow)}" + (f" by {said}." if slow else ".")
    header = ["CPUs, policy", "seconds", "goal, s", "jobs/s", "peak MiB", ""]
    return Section("Fujiwara's policies on HPC2N", how, header, rows, result)


def fitgpp(jobs: int) -> Section:
    """Measure FitGpp on the paper's number of jobs."""
    came = all_of([Point("fitgpp", "fitgpp", jobs=jobs, cap_s=PATIENCE * FITGPP_S)], 1)[0]
    how = f"The paper's mix, {jobs:,} jobs drawn with seed 1; drawing them is part of it."
    if jobs == JOBS:
        how += " That is 2^19, as many as in the paper."
    header = ["policy", "seconds", "goal, s", "jobs/s", "peak MiB", ""]
    result = f"Of it, to draw the jobs and find when they arrive: {came.read_s:.0f} s."
    return Section("FitGpp", how, header, [_row("fitgpp", came, FITGPP_S)], result)


def growth(trace: Path, sizes: Sequence[int]) -> Section:
    """Measure how time and memory grow with the jobs."""
    points = [
        Point("rigid", of, str(trace), jobs=jobs) for of in ("fifo", "easy") for jobs in sizes
    ]
    found = all_of(points, 1)
    rows = [
        [f"{NAMES[point.policy]}, {came.jobs:,} jobs", f"{came.wall_s:.1f}", *_figures(came)]
        for point, came in zip(points, found, strict=True)
    ]
    said = []
    for of in ("fifo", "easy"):
        of_this = [came for point, came in zip(points, found, strict=True) if point.policy == of]
        times = of_this[-1].rate / of_this[0].rate
        per_job = (of_this[-1].peak_mib - of_this[0].peak_mib) / (
            of_this[-1].jobs - of_this[0].jobs
        )
        said.append(
            f"{NAMES[of]}: {times:.2f} times the jobs a second of the fewest at the most"
            f" ({'no less' if times >= FLAT else 'less'}), {per_job * 2**20:.0f} bytes more a job."
        )
    how = "The first jobs of HPC2N as above, rigid on 240 CPUs, one run after the other."
    header = ["", "seconds", "jobs/s", "peak MiB"]
    return Section("Growth", how, header, rows, " ".join(said))


def _row(name: str, came: Came, goal_s: float) -> list[str]:
    took = f"{came.wall_s:.0f}" if came.finished else f"> {came.wall_s:.0f}"
    far = f"not finished after {came.wall_s:.0f} s: {came.jobs:,} of {came.of:,} jobs"
    word = verdict(_reached(came, goal_s)) if came.finished else far
    return [name, took, f"{goal_s:.0f}", *_figures(came), word]


def _figures(came: Came) -> tuple[str, str]:
    return (f"{came.rate:,.0f}", f"{came.peak_mib:.0f}")


def _reached(came: Came, goal_s: float) -> bool:
    return came.finished and came.wall_s < goal_s
