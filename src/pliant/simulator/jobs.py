"""For which jobs a policy is better, and for which worse: each one's flow time under two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

from pliant.simulator.metrics import Task
from pliant.simulator.users import SAME, SHOWN


class Flow(NamedTuple):
    """Whose a job was, and its flow time."""

    user: str
    flow_s: float


Flows = Mapping[str, Flow]
"""Of jobs that have ended, by their ids."""


class Ended:
    """Collects the flow times of jobs as they end."""

    def __init__(self) -> None:
        self.flows: dict[str, Flow] = {}

    def add(self, task: Task) -> None:
        """Note one job."""
        self.flows[task.id] = Flow(task.user, task.flow_s)


@dataclass(frozen=True, slots=True)
class JobChange:
    """One job's flow time, before and under a policy."""

    job: str
    user: str
    before_s: float
    after_s: float

    @property
    def more_s(self) -> float:
        """How much longer it is under the policy."""
        return self.after_s - self.before_s

    @property
    def part(self) -> float:
        """By what part it changed: -0.1 is 10 % less."""
        return self.after_s / self.before_s - 1


@dataclass(frozen=True, slots=True)
class JobSides:
    """How many jobs a policy is better for, worse, and the same, which is within 1 %.

    ``worst`` and ``best``: those that lose and gain most seconds, the most first.
    """

    policy: str
    better: int
    worse: int
    same: int
    worst: tuple[JobChange, ...]
    best: tuple[JobChange, ...]


def job_sides(policy: str, now: Flows, before: Flows) -> JobSides:
    """Return for which jobs a policy is better and worse, of those that have ended under both."""
    changes = [
        JobChange(job, flow.user, before[job].flow_s, flow.flow_s)
        for job, flow in now.items()
        if job in before and before[job].flow_s > 0
    ]
    worse = [one for one in changes if one.part > SAME]
    better = [one for one in changes if one.part < -SAME]
    return JobSides(
        policy,
        len(better),
        len(worse),
        len(changes) - len(better) - len(worse),
        tuple(nsmallest(SHOWN, worse, key=lambda one: (-one.more_s, one.job))),
        tuple(nsmallest(SHOWN, better, key=lambda one: (one.more_s, one.job))),
    )
