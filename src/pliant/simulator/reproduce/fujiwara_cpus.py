"""Fujiwara et al. (paper 000), section VI: all runs on HPC2N's trace, and their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Table
from pliant.simulator.reproduce.fujiwara_figures import (
    COLUMNS,
    Came,
    Figure,
    makespan,
    mean_flow,
    most_flow,
)
from pliant.simulator.reproduce.fujiwara_runs import (
    ALL,
    FCFS,
    LIST,
    Cpu,
    Results,
    Some,
    records_in,
    run_points,
)
from pliant.simulator.workloads.hpc2n import CPUS

TRACE = Path("swf", "HPC2N-2002-2.2-cln.swf.gz")
FEWEST = CPUS[0]
"""On these the paper shows the utilisation alone."""
CHECKED = 240


class Windows(NamedTuple):
    """Policies that are run on so many stretches of the trace, of so many tasks each; 0: on all."""

    stretches: int
    tasks: int
    policies: tuple[str, ...]

    def of(self, tasks: int) -> list[Some]:
        """Return the stretches, each in the middle of its part of the trace."""
        if not self.tasks:
            return [Some()]
        length = tasks // self.stretches
        skip = max(0, length - self.tasks) // 2
        begins = [place * length + skip for place in range(self.stretches)]
        return [Some(begin, begin + self.tasks) for begin in begins]

    @property
    def text(self) -> str:
        """What of the trace that is."""
        return f"{self.stretches} × {self.tasks:,} tasks" if self.tasks else "the whole trace"


class Every(NamedTuple):
    """Policies that are run, offline, on every ``step``-th task."""

    step: int
    policies: tuple[str, ...]

    @property
    def text(self) -> str:
        """What of the trace that is."""
        return f"1 task of {self.step}" if self.step > 1 else "the whole trace"


class Cpus:
    """What came out. Figures of several stretches are means, or the largest where it is a most."""

    def __init__(self, online: Sequence[Windows], offline: Sequence[Every], path: Path) -> None:
        self.online, self.offline, self.path = online, offline, path
        self._checked = [] if all(part.tasks for part in online) else [_checked(path)]
        self._results: Results = {}

    def run(self, asked: Asked) -> None:
        """Run all points. Raises BadInput where the trace cannot be right."""
        points = [*self._online(), *self._offline(), *self._checked]
        self._results = run_points(asked, "HPC2N", points)

    def _online(self) -> Iterator[Cpu]:
        for part in self.online:
            for cpus in CPUS:
                for policy in part.policies:
                    yield from self._points(policy, cpus, part)

    def _points(self, policy: str, cpus: int, part: Windows | Every) -> list[Cpu]:
        if isinstance(part, Every):
            return [Cpu(policy, cpus, self.path, Some(step=part.step), offline=True)]
        some = part.of(len(records_in(self.path)))
        return [Cpu(policy, cpus, self.path, one) for one in some]

    def _offline(self) -> Iterator[Cpu]:
        for part in self.offline:
            for cpus in CPUS:
                for policy in part.policies:
                    yield from self._points(policy, cpus, part)

    @property
    def checked(self) -> Came | None:
        """Strict FCFS with as many CPUs as each task asked for, where the whole trace is run."""
        return self._results[self._checked[0]] if self._checked else None

    @property
    def demand_s(self) -> float:
        """The volume of the whole trace over the time in which it was submitted: CPUs at work."""
        records = records_in(self.path)
        volume_s = sum(record.run_s * record.width for record in records)
        return volume_s / (records[-1].submit_s - records[0].submit_s)

    def part(self, *policies: str) -> Windows:
        """The largest part in which some policies are."""
        some = [part for part in self.online if {*policies} <= {*part.policies}]
        return max(some, key=lambda part: part.tasks or ALL)

    def offline_part(self, *policies: str) -> Every:
        """The largest part in which some policies are, offline."""
        some = [part for part in self.offline if {*policies} <= {*part.policies}]
        return min(some, key=lambda part: part.step)

    def came(self, policy: str, cpus: int, part: Windows | Every) -> list[Came]:
        """What came of a policy, stretch by stretch."""
        return [self._results[point] for point in self._points(policy, cpus, part)]

    def figure(self, policy: str, cpus: int, part: Windows | Every, figure: Figure) -> float:
        """Return a policy's figure over all stretches."""
        found = [*map(figure, self.came(policy, cpus, part))]
        return max(found) if figure.most else fmean(found)

    def change(
        self, policy: str, base: str, cpus: int, part: Windows | Every, figure: Figure
    ) -> float:
        """Return how much a figure is above that of another policy."""
        now, before = (self.figure(one, cpus, part, figure) for one in (policy, base))
        return now / before - 1


def _checked(path: Path) -> Cpu:
    return Cpu(FCFS, CHECKED, path, asked=True)


# --- tables ---------------------------------------------------------------------------------------


def cpu_tables(cpus: Cpus) -> list[Table]:
    """Return figures 7 to 9 as numbers."""
    return [*(_online(cpus, part) for part in cpus.online), _offline(cpus), _reference(cpus)]


def _online(cpus: Cpus, part: Windows) -> Table:
    rows = [
        [
            f"{count} CPUs, {policy}",
            *(one.write(cpus.figure(policy, count, part, one)) for one in COLUMNS),
        ]
        for count in CPUS
        for policy in part.policies
    ]
    return Table(
        f"Figures 7 and 8 as numbers: HPC2N online, {part.text}",
        ["CPUs, policy", *(one.name for one in COLUMNS)],
        rows,
    )


def _offline(cpus: Cpus) -> Table:
    rows = []
    for part in cpus.offline:
        for count in CPUS:
            for policy in part.policies:
                came = cpus.came(policy, count, part)[0]
                rows.append(
                    [
                        f"{part.text}, {count} CPUs, {policy}",
                        f"{makespan(came):,.0f}",
                        f"{1 / came.utilisation:.4f}",
                        f"{mean_flow(came):,.0f}",
                        f"{most_flow(came):,.0f}",
                    ]
                )
    return Table(
        "Figure 9 as numbers: HPC2N offline",
        ["tasks, CPUs, policy", "makespan, s", "over volume / CPUs", "task flow, s", "longest"],
        rows,
    )


REFERENCE: dict[tuple[str, int], float] = {
    (FCFS, 120): 32_348_179,
    (LIST, 120): 4_279_956,
    (FCFS, 240): 33_726.7,
    (LIST, 240): 26_964.4,
    (FCFS, 480): 18_549.8,
    (LIST, 480): 18_141.5,
}
"""Mean flow times of the whole trace in seconds, worked out apart by a loop that counts CPUs."""


def _reference(cpus: Cpus) -> Table:
    part = cpus.part(FCFS, LIST)
    rows = [
        [
            f"{count} CPUs, {policy}",
            f"{mean_s:,.1f}",
            f"{cpus.figure(policy, count, part, mean_flow):,.1f}",
        ]
        for (policy, count), mean_s in REFERENCE.items()
    ]
    return Table(
        f"Mean flow times of rigid tasks on the whole trace, and ours on {part.text}",
        ["CPUs, policy", "a loop that counts CPUs, s", "ours, s"],
        rows,
    )
