"""FitGpp's jobs (paper 001, section 3 and appendix A), drawn from truncated normals.

A minute of the paper is a second here. What the paper does not print, and is chosen freely, stands
here: every standard deviation, the distributions of CPUs, memory and GPUs, all lower bounds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

TRIALS = 0.3
STEPS_PER_S = 10
MEM_MIB_PER_GB = 250  # a node has 64,000 MiB here, 256 GB in the paper


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution, drawn again until the value lies within the bounds."""

    mean: float
    sd: float
    low: float
    high: float

    def draw(self, by: random.Random) -> float:
        """Draw a value."""
        while True:
            value = by.gauss(self.mean, self.sd)
            if self.low <= value <= self.high:
                return value


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of jobs: minutes of execution, GPUs, CPUs, GB of memory."""

    minutes: Normal
    gpus: Normal
    cpus: Normal
    memory: Normal


# The paper's: the means and upper bounds of minutes, and of the grace period. All else is chosen.
TRIAL = Kind(Normal(5, 5, 1, 30), Normal(1, 1, 1, 8), Normal(4, 4, 1, 32), Normal(16, 16, 1, 256))
BEST_EFFORT = Kind(
    Normal(30, 30, 1, 1440), Normal(2, 2, 1, 8), Normal(8, 8, 1, 32), Normal(32, 32, 1, 256)
)
GRACE = Normal(3, 3, 0.2, 20)


@dataclass(frozen=True, slots=True)
class Asked:
    """One job; seconds are those of the clock here."""

    trial: bool
    exec_s: float
    gpus: int
    cpus: int
    mem_mib: int
    grace_s: float  # what its checkpoint takes

    @property
    def steps(self) -> int:
        """How many steps it counts."""
        return max(1, round(self.exec_s * STEPS_PER_S))


def workload(count: int, seed: int) -> list[Asked]:
    """Draw the jobs."""
    by = random.Random(seed)  # no secret
    trials = [at < round(TRIALS * count) for at in range(count)]
    by.shuffle(trials)
    return [_draw(by, trial=trial) for trial in trials]


def _draw(by: random.Random, *, trial: bool) -> Asked:
    kind = TRIAL if trial else BEST_EFFORT
    return Asked(
        trial,
        kind.minutes.draw(by),
        round(kind.gpus.draw(by)),
        round(kind.cpus.draw(by)),
        round(kind.memory.draw(by) * MEM_MIB_PER_GB),
        0.0 if trial else GRACE.draw(by),
    )
