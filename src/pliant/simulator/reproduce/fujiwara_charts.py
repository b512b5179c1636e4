"""Fujiwara et al. (paper 000): its figures 3 to 9, drawn of what came out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from pliant.simulator.reproduce.claims import Chart
from pliant.simulator.reproduce.fujiwara_cpus import Cpus, Every, Windows
from pliant.simulator.reproduce.fujiwara_figures import (
    Figure,
    makespan,
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
from pliant.simulator.reproduce.fujiwara_gpus import FEW, GPUS, OVERHEADS_S, Seen
from pliant.simulator.reproduce.fujiwara_runs import MALLEABLE, MOLDABLE, POLICIES
from pliant.simulator.workloads.hpc2n import CPUS


class _Ran(NamedTuple):
    """Where lines come from: ``of`` what they are, and a policy's figure on so many of ``x``."""

    of: str
    x: str
    policies: Sequence[str]
    value: Callable[[str, int, Figure], float]

    def chart(
        self, number: str, words: str, sizes: Sequence[int], panels: Mapping[str, Figure]
    ) -> Chart:
        """Return a figure of the paper."""
        drawn = {
            name: {
                policy: [self.value(policy, size, of) for size in sizes] for policy in self.policies
            }
            for name, of in panels.items()
        }
        title = f"Figure {number}, {words}: {self.of}"
        return Chart(f"fujiwara-{number}", title, self.x, sizes, drawn)

    def flow_and_stretch(self, number: str, sizes: Sequence[int]) -> Iterator[Chart]:
        """Yield the four parts of figures 4 and 8, each the mean above the maximum."""
        for letter, (words, mean, most) in _PARTS.items():
            unit = ", s" if "flow" in words else ""
            panels = {f"mean{unit}": mean, f"maximum{unit}": most}
            yield self.chart(f"{number}{letter}", words, sizes, panels)


_PARTS = {
    "a": ("per-task flow time", mean_flow, most_flow),
    "b": ("per-job flow time", mean_job_flow, most_job_flow),
    "c": ("per-task stretch", mean_stretch, most_stretch),
    "d": ("per-job stretch", mean_job_stretch, most_job_stretch),
}


def gpu_charts(seen: Seen) -> Iterator[Chart]:
    """Yield figures 3, 4 and 5."""
    part = seen.all
    of = f"GPU trace, {part.text}"
    ran = _Ran(
        of, "GPUs", part.policies, lambda name, gpus, figure: seen.mean(name, gpus, part, figure)
    )
    yield ran.chart("3", "utilisation", (FEW, *GPUS), {used.name: used})
    yield from ran.flow_and_stretch("4", GPUS)
    costs = {f"{MALLEABLE}, {cost_s:.0f} s": cost_s for cost_s in OVERHEADS_S}

    def with_costs(name: str, gpus: int, figure: Figure) -> float:
        if name == MOLDABLE:
            return seen.mean(name, gpus, part, figure)
        return fmean(map(figure, seen.came(MALLEABLE, gpus, part, costs[name])))

    ran = _Ran(of, "GPUs", (MOLDABLE, *costs), with_costs)
    panels = {"mean, s": mean_flow, "maximum, s": most_flow}
    yield ran.chart("5", "per-task flow time with what a preemption costs", GPUS, panels)


def cpu_charts(cpus: Cpus) -> Iterator[Chart]:
    """Yield figures 7, 8 and 9."""
    online = cpus.part(*POLICIES)
    ran = _Ran(f"HPC2N online, {online.text}", "CPUs", online.policies, _of(cpus, online))
    yield ran.chart("7", "utilisation", CPUS, {used.name: used})
    yield from ran.flow_and_stretch("8", CPUS[1:])
    offline = max(cpus.offline, key=lambda part: len(part.policies))
    ran = _Ran(f"HPC2N offline, {offline.text}", "CPUs", offline.policies, _of(cpus, offline))
    yield ran.chart("9", "makespan", CPUS, {makespan.name: makespan})


def _of(cpus: Cpus, part: Windows | Every) -> Callable[[str, int, Figure], float]:
    return lambda name, count, figure: cpus.figure(name, count, part, figure)
