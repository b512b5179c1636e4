"""What a replay of Fujiwara et al. (paper 000) came to, and its figures by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from pliant.simulator.metrics import Spread
from pliant.simulator.reproduce.claims import percent


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


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of a replay, and how it is written.

    ``most``: it is that of one task or job, and of several replays the largest counts.
    """

    name: str
    of: Callable[[Came], float]
    most: bool = False
    write: Callable[[float], str] = "{:,.0f}".format

    def __call__(self, came: Came) -> float:
        """Return it."""
        return self.of(came)


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _figure(name: str, where: str, write: Callable[[float], str] = _seconds) -> Figure:
    return Figure(name, attrgetter(where), where.endswith(".most"), write)


mean_flow = _figure("task flow, s", "flow_s.mean")
most_flow = _figure("longest", "flow_s.most")
mean_job_flow = _figure("job flow, s", "job_flow_s.mean")
most_job_flow = _figure("longest job", "job_flow_s.most")
mean_stretch = _figure("task stretch", "stretch.mean", "{:,.3f}".format)
most_stretch = _figure("largest", "stretch.most", "{:,.3f}".format)
mean_job_stretch = _figure("job stretch", "job_stretch.mean", "{:,.3f}".format)
most_job_stretch = _figure("largest job", "job_stretch.most", "{:,.3f}".format)
used = _figure("utilisation", "utilisation", lambda part: percent(part, 1))
makespan = _figure("makespan, s", "makespan_s")

COLUMNS = (
    mean_flow,
    most_flow,
    mean_job_flow,
    most_job_flow,
    mean_stretch,
    most_stretch,
    mean_job_stretch,
    most_job_stretch,
    used,
)
"""Those of a row."""
