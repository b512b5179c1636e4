"""What came out of a what-if: the changes, for whom, and how well the replay fits what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.simulator.comparison import Compared, Pick, compare, of_tasks, part_of
from pliant.simulator.jobs import JobSides, job_sides
from pliant.simulator.runs import Outcome
from pliant.simulator.tally import Figures
from pliant.simulator.users import Sides, sides

CLOSE = 0.25
"""Within this part of what happened, a replayed mean wait is near it."""

PICKS: dict[str, Pick] = {
    "flow time, mean (s)": of_tasks(lambda tasks: tasks.flow_s.mean),
    "flow time, median (s)": of_tasks(lambda tasks: tasks.flow_s.median),
    "flow time, p95 (s)": of_tasks(lambda tasks: tasks.flow_s.p95),
    "flow time, p99 (s)": of_tasks(lambda tasks: tasks.flow_s.p99),
    "wait, mean (s)": of_tasks(lambda tasks: tasks.wait_s.mean),
    "wait, median (s)": of_tasks(lambda tasks: tasks.wait_s.median),
    "wait, p95 (s)": of_tasks(lambda tasks: tasks.wait_s.p95),
    "wait, p99 (s)": of_tasks(lambda tasks: tasks.wait_s.p99),
    "slowdown, mean": of_tasks(lambda tasks: tasks.slowdown.mean),
    "slowdown, median": of_tasks(lambda tasks: tasks.slowdown.median),
    "slowdown, p95": of_tasks(lambda tasks: tasks.slowdown.p95),
    "slowdown, p99": of_tasks(lambda tasks: tasks.slowdown.p99),
    "GPUs held (%)": lambda figures: _percent(_held_gpu_s(figures), figures),
    "GPU time held (h)": lambda figures: _held_gpu_s(figures) / 3600,
    "avoidably idle (%)": lambda figures: _percent(figures.avoidable_gpu_s, figures),
    "lost GPU time (%)": lambda figures: _percent(figures.lost_gpu_s, figures),
    "makespan (h)": lambda figures: figures.makespan_s / 3600,
    "restarts": lambda figures: figures.restarts,
    "ended by a limit": lambda figures: figures.timed_out,
    "never started": lambda figures: figures.never,
}


def _percent(gpu_s: float | None, figures: Figures) -> float | None:
    part = part_of(gpu_s, figures)
    return None if part is None else 100 * part


def _held_gpu_s(figures: Figures) -> float:
    return figures.capacity_gpu_s - figures.idle_gpu_s


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: in truth (None: nobody measured it), and of each replay."""

    figure: str
    happened: float | None
    replays: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the rigid replay agrees with what happened: means, in seconds."""

    wait_s: float
    replayed_wait_s: float
    flow_s: float
    replayed_flow_s: float

    @property
    def is_close(self) -> bool:
        """Whether the replayed jobs wait about as long as they did; a minute is no difference."""
        return abs(self.replayed_wait_s - self.wait_s) <= max(60.0, CLOSE * self.wait_s)


@dataclass(frozen=True, slots=True)
class Result:
    """All that came out; ``outcomes`` by policy, first that with which the others are compared."""

    happened: Outcome
    outcomes: Mapping[str, Outcome]

    @property
    def rows(self) -> list[Row]:
        """The table of changes."""
        replays = {policy: [outcome.figures] for policy, outcome in self.outcomes.items()}
        found: dict[str, list[Compared]] = {}
        for row in compare(replays, PICKS):
            found.setdefault(row.figure, []).append(row)
        return [Row(name, self._happened(name), tuple(of)) for name, of in found.items()]

    def _happened(self, name: str) -> float | None:
        untrue = ("lost GPU time (%)", "restarts", "ended by a limit", "never started")
        return None if name in untrue else PICKS[name](self.happened.figures)

    @property
    def fit(self) -> Fit | None:
        """How well it agrees; None where nothing ended in the replay."""
        truth = self.happened.figures.tasks
        first = next(iter(self.outcomes.values())).figures.tasks
        if truth is None or first is None:
            return None
        means = (truth.wait_s, first.wait_s, truth.flow_s, first.flow_s)
        return Fit(*(one.mean for one in means))

    @property
    def baseline(self) -> str:
        """With which policy the others are compared."""
        return next(iter(self.outcomes))

    @property
    def sides(self) -> list[Sides]:
        """For each policy but the first, for whom it is better and for whom worse."""
        (_, first), *others = self.outcomes.items()
        return [sides(policy, outcome.figures, first.figures) for policy, outcome in others]

    @property
    def job_sides(self) -> list[JobSides]:
        """The same by job."""
        (_, first), *others = self.outcomes.items()
        return [job_sides(policy, outcome.flows, first.flows) for policy, outcome in others]
