"""Pliant and AccaSim beside each other on HPC2N's trace, and where Pliant's time goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.section import Section, verdict
from benchmarks.sim.points import Came, Point
from benchmarks.sim.processes import Peer, ours, theirs

GOAL, STRETCH = 10, 50
"""How many times as many jobs a second as AccaSim's."""
NAMES = {"fifo": "FIFO", "easy": "EASY", "list": "list"}

_HOW = """\
{jobs:,} jobs, {rounds} rounds in one run, one after the other and in turn; each run is a process of
its own. Times are from before the trace is opened to the last figure; memory is the process's peak
(VmHWM). Medians; in brackets the least and the most. Both read one plain SWF file: the jobs of
HPC2N-2002-2.2-cln that ran, as many processors as they asked for, a time limit not shorter than the
run (AccaSim ends no job early, Pliant would), and no memory, which Pliant's machine of processors
has not. Pliant's machine is one node of 240 CPUs. AccaSim's is the same, or 120 nodes of two CPUs,
as HPC2N's was: a job is so many single processors to it, so that both come to the same schedule,
and one node costs it less. "As it comes" it writes its schedule and statistics to files (once in
this run); else it writes nothing. Pliant keeps all its figures, with percentiles by task and user;
AccaSim without files keeps waits and slowdowns. AccaSim 1.1.3 has two shims of ours on this Python
(`benchmarks/sim/accasim_shims.py`); the one for requests of nothing has no use without memory.

Mean wait and slowdown say whether both simulate the same. AccaSim's EASY gives its allocator an
empty list of reserved nodes (`EASYBackfilling.scheduling_method`), so that later jobs may delay the
first that waits; "list" is Pliant's `rigid-fcfs` with `overtaking`, which keeps nothing either."""


class Rival(NamedTuple):
    """One way to run AccaSim; ``once``: in the first round alone."""

    name: str
    nodes: int
    files: bool = False
    once: bool = False


RIVALS = (
    Rival("AccaSim, 120 nodes, as it comes", 120, files=True, once=True),
    Rival("AccaSim, 120 nodes", 120),
    Rival("AccaSim, one node", 1),
)
OWN = "Pliant"

Ran = Came | Peer
Runs = Mapping[tuple[str, str], Sequence[Ran]]
"""All runs by scheduler and simulator."""


def measured(trace: Path, python: Path | None, jobs: int, rounds: int) -> Runs:
    """Run all of them in turn; ``python``: of AccaSim's environment, None: there is none."""
    found: dict[tuple[str, str], list[Ran]] = {}
    for round_ in range(rounds):
        for scheduler in ("fifo", "easy"):
            point = Point("rigid", scheduler, str(trace), jobs=jobs)
            found.setdefault((scheduler, OWN), []).append(ours(point))
            for rival in RIVALS if python is not None else ():
                if python is None or (rival.once and round_):
                    continue
                words = (str(trace), scheduler, str(rival.nodes), *(["files"] * rival.files))
                found.setdefault((scheduler, rival.name), []).append(theirs(python, *words))
    found[("list", OWN)] = [ours(Point("rigid", "list", str(trace), jobs=jobs))]
    return found


def section(runs: Runs, jobs: int, rounds: int) -> Section:
    """Return the table."""
    rows = [[f"{NAMES[of]}, {who}", *_cells(runs, of, who)] for of, who in runs]
    header = ["", "jobs/s", "Pliant's ÷ its", f"{GOAL} times", "peak MiB", "less"]
    header += ["mean wait, s", "mean slowdown"]
    result = (
        f'Goals: {GOAL} times as many jobs a second as AccaSim ("{GOAL} times"; the stretch is'
        f' {STRETCH}), with a lower peak of memory ("less").'
    )
    if len(rows) == len([who for _, who in runs if who == OWN]):
        result = "AccaSim was not measured: its environment is missing (`make bench-sim` makes it)."
    how = _HOW.format(jobs=jobs, rounds=rounds)
    return Section("Pliant and AccaSim", how, header, rows, result)


def _cells(runs: Runs, of: str, who: str) -> list[str]:
    some = runs[(of, who)]
    rates = [one.rate for one in some]
    spread = f" ({min(rates):,.0f} to {max(rates):,.0f})" if len(rates) > 1 else ""
    rate, peak = f"{median(rates):,.0f}{spread}", f"{_peak_mib(some):.0f}"
    same = [f"{some[0].wait_s:,.2f}", f"{some[0].slowdown:,.2f}"]
    if who == OWN:
        return [rate, "", "", peak, "", *same]
    times = ratio(runs, of, who)
    less = _peak_mib(runs[(of, OWN)]) < _peak_mib(some)
    return [rate, f"{times:.1f}", verdict(times >= GOAL), peak, verdict(less), *same]


def ratio(runs: Runs, of: str, who: str) -> float:
    """Return how many times as many jobs a second Pliant simulates."""
    own, other = ([one.rate for one in runs[(of, name)]] for name in (OWN, who))
    return median(own) / median(other)


def _peak_mib(some: Sequence[Ran]) -> float:
    return median(one.peak_mib for one in some)


def shares(trace: Path, jobs: int) -> Section:
    """Measure and return where Pliant's time goes."""
    rows = []
    for of in ("fifo", "easy"):
        came = ours(Point("rigid", of, str(trace), jobs=jobs, clocked=True))
        state_s = came.wall_s - came.read_s - came.policy_s
        parts = (came.read_s, state_s, came.policy_s)
        rows.append([NAMES[of], *(f"{part:.1f} s, {part / came.wall_s:.0%}" for part in parts)])
    how = (
        "One more run of each, apart from those above: the reader is timed as a whole, the policy"
        " by a clock around each of its calls; state is all else: jobs made as they arrive, events,"
        " the cluster and its snapshots, and the figures of all tasks."
    )
    return Section("Where Pliant's time goes", how, ["", "parsing", "state", "policy"], rows)
