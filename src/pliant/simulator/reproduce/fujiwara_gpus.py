"""Fujiwara et al. (paper 000), section V: the runs on the synthetic GPU trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Table, percent
from pliant.simulator.reproduce.fujiwara_figures import (
    Came,
    Figure,
    mean_flow,
    mean_job_flow,
    mean_job_stretch,
    mean_stretch,
    most_flow,
    most_job_flow,
    most_job_stretch,
    most_stretch,
    used,
)
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    Gpu,
    Results,
    run_points,
)
from pliant.simulator.workloads.fujiwara import SENSITIVITY
from pliant.simulator.workloads.fujiwara_trace import TRACES

FEW = 3
"""For figure 3: fewer GPUs than the six that are saturated."""
GPUS = (6, 12, 24, 48)
OVERHEADS_S = (0.0, 150.0, 300.0)


class Part(NamedTuple):
    """Policies that are run on so many tasks of each of so many seeds."""

    tasks: int
    seeds: int
    policies: tuple[str, ...]

    @property
    def text(self) -> str:
        """How much that is."""
        return f"{self.tasks:,} tasks of {self.seeds} seed" + "s" * (self.seeds > 1)


class Gpus:
    """What came out. Figures of a part are means over its seeds."""

    def __init__(self, parts: Sequence[Part], varied: Part, first_seed: int) -> None:
        self.parts, self.varied, self._first = parts, varied, first_seed
        self._results: Results = {}

    def run(self, asked: Asked) -> None:
        """Run all points."""
        points = [*self._points(), *self._overheads(), *self._varied()]
        self._results = run_points(asked, "GPU trace", points)

    def _points(self) -> Iterator[Gpu]:
        for part in self.parts:
            few = (FEW,) if part == self.all else ()
            for gpus in (*few, *GPUS):
                for policy in part.policies:
                    yield from self._seeds(policy, gpus, part)

    def _overheads(self) -> Iterator[Gpu]:
        for gpus in GPUS:
            for overhead_s in OVERHEADS_S:
                yield from self._seeds(MALLEABLE, gpus, self.all, overhead_s)

    def _varied(self) -> Iterator[Gpu]:
        for variant in variants():
            for gpus in GPUS:
                for policy in self.varied.policies:
                    yield from self._seeds(policy, gpus, self.varied, variant=variant)

    def _seeds(
        self,
        policy: str,
        gpus: int,
        part: Part,
        overhead_s: float = 0.0,
        variant: tuple[int, int] = (0, 0),
    ) -> Iterator[Gpu]:
        for seed in range(self._first, self._first + part.seeds):
            yield Gpu(policy, gpus, part.tasks, seed, overhead_s, *variant)

    @property
    def all(self) -> Part:
        """The largest part in which all policies are."""
        return self.part(MALLEABLE, MALLEABLE_P)

    def part(self, *policies: str) -> Part:
        """The largest part in which some policies are."""
        return max(part for part in self.parts if {*policies} <= {*part.policies})

    def came(
        self,
        policy: str,
        gpus: int,
        part: Part,
        overhead_s: float = 0.0,
        variant: tuple[int, int] = (0, 0),
    ) -> list[Came]:
        """What came of a policy, seed by seed."""
        points = self._seeds(policy, gpus, part, overhead_s, variant)
        return [self._results[point] for point in points]

    def mean(self, policy: str, gpus: int, part: Part, figure: Figure) -> float:
        """Return a policy's mean figure."""
        return fmean(map(figure, self.came(policy, gpus, part)))

    def changes(
        self, policy: str, gpus: int, part: Part, figure: Figure, base: str = FCFS
    ) -> list[float]:
        """Return how much a figure is above that of another policy, seed by seed."""
        both = zip(self.came(policy, gpus, part), self.came(base, gpus, part), strict=True)
        return [figure(one) / figure(other) - 1 for one, other in both]

    def change(self, policy: str, gpus: int, figure: Figure, part: Part, base: str = FCFS) -> float:
        """Return the mean of :meth:`changes`."""
        return fmean(self.changes(policy, gpus, part, figure, base))

    def over_gpus(
        self, policy: str, figure: Figure, base: str = FCFS, least: int = GPUS[0]
    ) -> dict[int, float]:
        """Return :meth:`change` by GPUs, from ``least`` on, on the largest part that has both."""
        part = self.part(policy, base)
        return {
            gpus: self.change(policy, gpus, figure, part, base) for gpus in GPUS if gpus >= least
        }


def variants() -> Iterator[tuple[int, int]]:
    """Yield which curves and which traces are looked at: one differs at a time, the first none."""
    yield from ((curves, 0) for curves in range(len(SENSITIVITY)))
    yield from ((0, choices) for choices in range(1, len(TRACES)))


# --- tables ---------------------------------------------------------------------------------------

COLUMNS: dict[str, Figure] = {
    "task flow, s": mean_flow,
    "longest": most_flow,
    "job flow, s": mean_job_flow,
    "longest job": most_job_flow,
    "task stretch": mean_stretch,
    "largest": most_stretch,
    "job stretch": mean_job_stretch,
    "largest job": most_job_stretch,
    "utilisation": used,
}


def cell(name: str, value: float) -> str:
    if name == "utilisation":
        return percent(value, 1)
    return (
        f"{value:.3f}" if "stretch" in name else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
    )


def gpu_tables(gpus: Gpus) -> list[Table]:
    """Return figures 3 to 5 as numbers, and what other choices give."""
    return [*(_table(gpus, part) for part in gpus.parts), _overheads(gpus), _variants(gpus)]


def _table(gpus: Gpus, part: Part) -> Table:
    rows = []
    for count in (FEW, *GPUS) if part == gpus.all else GPUS:
        for policy in part.policies:
            cells = [cell(name, gpus.mean(policy, count, part, of)) for name, of in COLUMNS.items()]
            flow = gpus.changes(policy, count, part, mean_flow)
            of_seeds = f"{percent(min(flow), 1)} … {percent(max(flow), 1)}" if any(flow) else ""
            rows.append([f"{count} GPUs, {policy}", *cells, of_seeds])
    return Table(
        f"Figures 3 and 4 as numbers: {part.text}",
        ["GPUs, policy", *COLUMNS, "task flow against FCFS, by seed"],
        rows,
        "In the mean over the seeds; the last column is the range over them.",
    )


def _overheads(gpus: Gpus) -> Table:
    part, rows = gpus.all, []
    for count in GPUS:
        base = gpus.came(MOLDABLE, count, part)
        for overhead_s in OVERHEADS_S:
            came = gpus.came(MALLEABLE, count, part, overhead_s)
            rows.append(
                [
                    f"{count} GPUs, {overhead_s:.0f} s",
                    f"{fmean(map(mean_flow, came)):,.0f}",
                    f"{fmean(map(mean_flow, base)):,.0f}",
                    f"{fmean(map(most_flow, came)):,.0f}",
                    f"{fmean(map(most_flow, base)):,.0f}",
                    f"{fmean(one.restarts / one.tasks for one in came):.2f}",
                ]
            )
    return Table(
        f"Figure 5 as numbers: {part.text}",
        [
            *("GPUs, overhead", "malleable: task flow, s", "moldable", "malleable: longest"),
            *("moldable", "restarts a task"),
        ],
        rows,
    )


def _variants(gpus: Gpus) -> Table:
    part, rows = gpus.varied, []
    for curves, choices in variants():
        cells = []
        for policy in part.policies[1:]:
            for count in GPUS:
                base, came = (
                    gpus.came(one, count, part, 0.0, (curves, choices)) for one in (FCFS, policy)
                )
                flows = zip(map(mean_flow, came), map(mean_flow, base), strict=True)
                cells.append(percent(fmean(now / before - 1 for now, before in flows), 1))
        rows.append([_variant(curves, choices), *cells])
    columns = [f"{one.split()[0]}, {count}" for one in part.policies[1:] for count in GPUS]
    return Table(
        f"By the choice of curves and of the trace: {part.text}",
        ["chosen", *columns],
        rows,
        "Mean flow time of tasks against rigid FCFS, on so many GPUs.",
    )


def _variant(curves: int, choices: int) -> str:
    if choices:
        chosen, usual = TRACES[choices], TRACES[0]
        names = type(usual).__slots__
        return ", ".join(
            f"{name} {getattr(chosen, name)}"
            for name in names
            if getattr(chosen, name) != getattr(usual, name)
        )
    speeds = SENSITIVITY[curves]
    return (
        f"n^-{speeds.mcnn.share} shared; n^{speeds.mcnn.many} (MCNN), n^{speeds.opennmt.many}"
        f" (OpenNMT)" + ("" if curves else ": as chosen")
    )
