"""What became of a job, and of a round of jobs; the same for the real and the simulated Slurm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pliant.demo.mix import Submission
from pliant.model import Shape


@dataclass(frozen=True, slots=True)
class Run:
    """One job's run as the batch system recorded it; instants in seconds of its own clock."""

    job: Submission
    shape: Shape
    nodes: tuple[str, ...]
    submit_s: float
    start_s: float
    end_s: float

    @property
    def waited_s(self) -> float:
        """From submission to start."""
        return self.start_s - self.submit_s

    @property
    def flow_s(self) -> float:
        """From submission to end."""
        return self.end_s - self.submit_s

    @property
    def limit_end_s(self) -> float:
        """When its time limit would have ended it."""
        return self.start_s + 60 * self.job.limit_min


def mean_wait_s(runs: Sequence[Run]) -> float:
    """Return the mean time from submission to start."""
    return fmean(run.waited_s for run in runs)


def mean_flow_s(runs: Sequence[Run]) -> float:
    """Return the mean time from submission to end."""
    return fmean(run.flow_s for run in runs)


def makespan_s(runs: Sequence[Run]) -> float:
    """Return the time from the first submission to the last end."""
    return max(run.end_s for run in runs) - min(run.submit_s for run in runs)
