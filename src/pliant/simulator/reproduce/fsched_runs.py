"""The runs behind Seo's tables and figures (paper 003): four jobs under each scheduler.

The states are those of section 4.4. In a replay a job that holds GPUs launches until it works, and
saves and stops (CHECKPOINTING, STOPPING) when it is told to; between two of its runs, and from when
others are told to leave what it is to have, it is on STANDBY; before that it waits for resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import pvariance
from typing import NamedTuple

from pliant.model import Shape
from pliant.plan import Policy
from pliant.policies import by_name
from pliant.simulator.replay import Replay
from pliant.simulator.running import Run
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.curves import Table
from pliant.simulator.workloads.seo import GPUS, SAVE_S, seo

F = "F"
SLOTS = (1, 2, 3, 6)
STATIC = {f"n={slot}": slot for slot in SLOTS}
V_BOUND = 0.5
"""Section 5.1.3."""
NAMES = (F, *STATIC)


def policy_of(name: str, v_bound: float = V_BOUND) -> Policy:
    """Return F-scheduling, or the static partition of this name."""
    if name == F:
        return by_name("f-scheduling", v_bound=v_bound)
    return by_name("static-partition", slot=STATIC[name])


class Stay(NamedTuple):
    """One run of a job: from ``works_s`` to ``until_s`` it makes progress; then it saves."""

    job: str
    model: str
    submit_s: float
    gpus: int
    slowdown: float  # f(R)/f(U)
    start_s: float
    works_s: float
    until_s: float
    end_s: float


class States(NamedTuple):
    """Figure 3: the seconds of all jobs together in its three groups of states."""

    queuing_s: float
    launching_s: float
    running_s: float


class _Watched(Replay):
    """A replay that notes each run of each job."""

    def __init__(self, workload: Workload, policy: Policy) -> None:
        super().__init__(workload, policy)
        self.stays: list[Stay] = []

    def _note(self, run: Run) -> None:
        super()._note(run)
        until_s = run.saving_s or self.now_s
        whole = run.of.arrival.run_s(Shape(1, GPUS)) / run.run_s
        job = run.job
        times = (run.start_s, min(run.works_s, until_s), until_s, self.now_s)
        self.stays.append(Stay(job.id, job.name, job.submit_s, run.shape.gpus, whole, *times))


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of the four jobs."""

    stays: tuple[Stay, ...]

    @property
    def total_s(self) -> float:
        """When the last one ends: table 2."""
        return max(stay.end_s for stay in self.stays)

    @property
    def changes(self) -> int:
        """How often a job was started again."""
        return len(self.stays) - len(self._by_job())

    @property
    def states(self) -> States:
        """Figure 3, summed over the jobs."""
        queuing = launching = running = 0.0
        for stays in self._by_job().values():
            granted_s = self._granted_s(stays[0])
            working = sum(stay.until_s - stay.works_s for stay in stays)
            queuing += granted_s - stays[0].submit_s
            running += working
            launching += stays[-1].end_s - granted_s - working
        return States(queuing, launching, running)

    def _by_job(self) -> Mapping[str, list[Stay]]:
        found: dict[str, list[Stay]] = {}
        for stay in sorted(self.stays, key=lambda stay: stay.start_s):
            found.setdefault(stay.job, []).append(stay)
        return found

    def _granted_s(self, first: Stay) -> float:
        """When it was decided what a job gets first: others may have had to save before."""
        told = [
            stay.until_s
            for stay in self.stays
            if stay.end_s == first.start_s and stay.until_s < stay.end_s and stay.job != first.job
        ]
        return max(first.submit_s, min(told, default=first.start_s))

    def used(self, busy: Callable[[Stay], float]) -> list[tuple[float, float]]:
        """Return seconds and the mean utilisation of all GPUs then, from 0 to the end.

        ``busy``: how much of a GPU's time a job uses that makes progress.
        """
        parts = [(stay.works_s, stay.until_s, stay.gpus * busy(stay)) for stay in self.stays]
        times = sorted({0.0, self.total_s, *(at for part in parts for at in part[:2])})
        return [
            (
                after - before,
                sum(used for start, end, used in parts if start <= before < end) / GPUS,
            )
            for before, after in pairwise(times)
        ]

    @property
    def most_variance(self) -> float:
        """The largest variance of the slowdowns of the jobs that hold GPUs, at any time."""
        return max(self._variances())

    def _variances(self) -> list[float]:
        starts = {stay.start_s for stay in self.stays}
        return [
            pvariance([s.slowdown for s in self.stays if s.start_s <= at < s.end_s])
            for at in starts
        ]


def run(
    name: str,
    tables: tuple[Table, Table] | None = None,
    *,
    save_s: float = SAVE_S,
    v_bound: float = V_BOUND,
) -> Ran:
    """Run the four jobs under a scheduler.

    Raises BadInput where a table tells nothing of one GPU.
    """
    replay = _Watched(seo(tables, save_s=save_s), policy_of(name, v_bound))
    for _ in replay.run():
        pass
    assert len({stay.job for stay in replay.stays}) == len(replay.workload.arrivals)  # noqa: S101
    return Ran(tuple(replay.stays))


def above(used: Sequence[tuple[float, float]], least: float) -> float:
    """Return for what part of the time the utilisation is at least so much: 1 - figure 4."""
    exact = 1e-9
    whole_s = sum(seconds for seconds, _ in used)
    return sum(seconds for seconds, share in used if share >= least - exact) / whole_s
