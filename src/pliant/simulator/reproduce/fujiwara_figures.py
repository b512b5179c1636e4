"""What a replay of Fujiwara et al. (paper 000) came to, and its figures by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pliant.simulator.metrics import Spread


@dataclass(frozen=True, slots=True)
class Came:
    """What a replay came to. A job is a bag of tasks, as the trace has them.

    ``own_job_flow_s``: of the jobs that the tasks make up as they were scheduled.
    """

    tasks: int
    jobs: int
    flow_s: Spread
    stretch: Spread
    job_flow_s: Spread
    job_stretch: Spread
    own_job_flow_s: Spread
    wait_s: Spread
    utilisation: float
    makespan_s: float
    restarts: int


Figure = Callable[[Came], float]


def mean_flow(came: Came) -> float:
    """The mean flow time of tasks."""
    return came.flow_s.mean


def most_flow(came: Came) -> float:
    """The longest flow time of a task."""
    return came.flow_s.most


def mean_stretch(came: Came) -> float:
    """The mean stretch of tasks."""
    return came.stretch.mean


def most_stretch(came: Came) -> float:
    """The largest stretch of a task."""
    return came.stretch.most


def mean_job_flow(came: Came) -> float:
    """The mean flow time of jobs."""
    return came.job_flow_s.mean


def most_job_flow(came: Came) -> float:
    """The longest flow time of a job."""
    return came.job_flow_s.most


def mean_job_stretch(came: Came) -> float:
    """The mean stretch of jobs."""
    return came.job_stretch.mean


def most_job_stretch(came: Came) -> float:
    """The largest stretch of a job."""
    return came.job_stretch.most


def used(came: Came) -> float:
    """The utilisation."""
    return came.utilisation


def makespan(came: Came) -> float:
    """The makespan."""
    return came.makespan_s
