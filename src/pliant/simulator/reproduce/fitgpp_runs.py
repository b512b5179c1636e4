"""The runs behind the claims of Yabuuchi et al. (paper 001).

An interval between a preemption and the next run is read in two ways: from when the job is *told*
to make room, which its grace period is part of, and from when it is *gone*.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pliant.model import JobClass
from pliant.plan import Policy
from pliant.policies import by_name
from pliant.simulator.metrics import Spread, Task, spread
from pliant.simulator.replay import Replay
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.running import Run
from pliant.simulator.seeds import Estimate, change, estimate
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.chronus import chronus
from pliant.simulator.workloads.fitgpp import LOAD, MIXES, fitgpp

FIFO, FITGPP, LRTP, RAND = "fifo", "fitgpp", "lrtp", "rand"
PAPERS = (FIFO, FITGPP, LRTP, RAND)
ONCE = {LRTP: "lrtp, told once", RAND: "rand, told once"}
SEVERAL = "fitgpp, several"
VARIANTS = (SEVERAL, *ONCE.values())
RAND_DRAWS = 4
"""How often RAND is repeated (appendix A)."""

TE_P50, TE_P95, BE_P50, BE_P95 = "TE p50", "TE p95", "BE p50", "BE p95"
TOLD_P50, TOLD_P95 = "from told p50, s", "from told p95, s"
GONE_P50, GONE_P95 = "from gone p50, s", "from gone p95, s"
AT_ONCE = "again at once"
PREEMPTED, PREEMPTIONS, HELPED = "BE jobs preempted", "preemptions", "TE jobs made room for"
FIGURES = (
    *(TE_P50, TE_P95, BE_P50, BE_P95, TOLD_P50, TOLD_P95, GONE_P50, GONE_P95),
    *(AT_ONCE, PREEMPTED, PREEMPTIONS, HELPED),
)
"""``AT_ONCE``: the part of the preemptions after which the job ran again as soon as it was gone."""

Ran = Mapping[str, float]
"""A replay's figures by name."""


def policy_of(name: str, draw: int) -> Policy:
    """Return a policy by its name here; ``draw``: RAND's seed."""
    if name == SEVERAL:
        return by_name(FITGPP, several=True)
    base, _, told_once = name.partition(", ")
    times = {"times": 1} if told_once else {}
    return by_name(base, **times, **({"seed": draw} if base == RAND else {}))


class Setting(NamedTuple):
    """What is drawn: jobs of a mix at a load; or of a file, on so many nodes.

    ``every``: only each so many-th job of the file, another one for each seed.
    """

    mix: str
    load: float = LOAD
    jobs: int = 0
    path: Path | None = None
    nodes: int = 0
    every: int = 1
    one_node: bool = False


class Point(NamedTuple):
    """One replay."""

    setting: Setting
    seed: int
    policy: str
    draw: int


def workload_of(setting: Setting, seed: int, *, told: bool) -> Workload:
    """Return the jobs of a setting.

    Raises BadInput where its file is none.
    """
    jobs, mix, every = setting.jobs, setting.mix, setting.every
    if setting.path is None:
        return fitgpp(seed, jobs=jobs, mix=MIXES[mix], load=setting.load, told=told)
    found = chronus(setting.path, setting.nodes, seed=seed, told=told)
    some = found.arrivals[seed % every :: every]
    if setting.one_node:
        some = [one for one in some if one.job.shape.nodes == 1]
    return replace(found, arrivals=tuple(some))


def run_point(point: Point) -> Ran:
    """Replay one point; only LRTP is told how long jobs run."""
    workload = workload_of(point.setting, point.seed, told=point.policy.startswith(LRTP))
    helped: set[str] = set()

    def over(_: float, run: Run) -> None:
        if run.room_for:
            helped.add(run.room_for)

    replay = Replay(workload, policy_of(point.policy, point.draw), over=over)
    gc.collect()
    gc.freeze()  # as pliant.simulator.runs does
    try:
        tasks = [Short.of(task) for task in replay.run()]
    finally:
        gc.unfreeze()
    assert len(tasks) == len(workload.arrivals)  # noqa: S101  # each fits on empty nodes
    return figures_of(tasks, len(helped))


class Short(NamedTuple):
    """What is kept of a task; intervals from told, and from gone."""

    job_class: str
    slowdown: float
    told_s: tuple[float, ...]
    gone_s: tuple[float, ...]

    @classmethod
    def of(cls, task: Task) -> Short:
        """Keep some of a task; what a run lost was its grace period: nothing else takes time."""
        if not task.preemptions:
            return cls(task.job_class, task.slowdown, (), ())
        graces = [span.lost_s for span in task.spans if span.preempted]
        gone_s = task.away_s
        told_s = tuple(grace + gone for grace, gone in zip(graces, gone_s, strict=True))
        return cls(task.job_class, task.slowdown, told_s, gone_s)


def figures_of(tasks: Sequence[Short], helped: int) -> Ran:
    """Return what the paper looks at; intervals are 0 where no job made room."""
    trial, best = (
        spread(task.slowdown for task in tasks if task.job_class == one.value)
        for one in (JobClass.TRIAL, JobClass.BEST_EFFORT)
    )
    gone_s = [seconds for task in tasks for seconds in task.gone_s]
    told = _spread([seconds for task in tasks for seconds in task.told_s])
    gone = _spread(gone_s)
    made_room = [len(task.told_s) for task in tasks if task.told_s]
    values = (
        *(trial.median, trial.p95, best.median, best.p95),
        *(told.median, told.p95, gone.median, gone.p95),
        gone_s.count(0.0) / max(1, len(gone_s)),
        *(float(len(made_room)), float(sum(made_room)), float(helped)),
    )
    return dict(zip(FIGURES, values, strict=True))


def _spread(seconds: Sequence[float]) -> Spread:
    return spread(seconds) if seconds else Spread(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Runs:
    """The figures of one setting by policy, seed by seed; RAND's are means over its draws."""

    setting: Setting
    of: Mapping[str, Sequence[Ran]]

    @property
    def seeds(self) -> int:
        """How many seeds there are."""
        return len(next(iter(self.of.values())))

    def mean(self, policy: str, figure: str) -> float:
        """Return the mean of a figure over the seeds."""
        return fmean(self._values(policy, figure))

    def estimate(self, policy: str, figure: str) -> Estimate:
        """Return the same, and how far the true one may be from it."""
        return estimate(self._values(policy, figure))

    def change(self, figure: str, policy: str = FITGPP, base: str = FIFO) -> Estimate | None:
        """Return by what part a policy's figure differs from another's, seed by seed.

        None where the other's was 0.
        """
        return change(self._values(policy, figure), self._values(base, figure))

    def _values(self, policy: str, figure: str) -> list[float]:
        return [ran[figure] for ran in self.of[policy]]


def run_settings(
    asked: Asked, what: str, settings: Iterable[tuple[Setting, int, Sequence[str], int]]
) -> list[Runs]:
    """Replay settings, each with so many seeds, policies, and draws of RAND.

    Raises BadInput where a file is none.
    """
    some = list(settings)
    points = [
        Point(setting, seed, policy, draw)
        for setting, seeds, policies, draws in some
        for seed in asked.seeds(seeds)
        for policy in policies
        for draw in range(1, 1 + (draws if policy.startswith(RAND) else 1))
    ]
    found = dict(zip(points, asked.spread(what, run_point, points), strict=True))
    return [
        Runs(
            setting,
            {
                policy: [
                    _mean(
                        [found[point] for point in points if point[:3] == (setting, seed, policy)]
                    )
                    for seed in asked.seeds(seeds)
                ]
                for policy in policies
            },
        )
        for setting, seeds, policies, _ in some
    ]


def _mean(rans: Sequence[Ran]) -> Ran:
    return {figure: fmean(ran[figure] for ran in rans) for figure in FIGURES}
