"""What a replay came to: every task is counted as it ends, and kept as a few numbers.

Half a million tasks are some tens of megabytes so; the tasks themselves are not kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.simulator.metrics import Spread, Task, bags_in_order, spread
from pliant.simulator.workloads.rows import Kinds


@dataclass(frozen=True, slots=True)
class User:
    """What became of one user's tasks: how many ended, and their means."""

    tasks: int
    flow_s: float
    slowdown: float


@dataclass(frozen=True, slots=True)
class Spreads:
    """How the figures of tasks are distributed."""

    tasks: int
    flow_s: Spread
    stretch: Spread
    slowdown: Spread
    wait_s: Spread


@dataclass(frozen=True, slots=True)
class Bags:
    """How the figures of bags are distributed: tasks of one user that belong together.

    Tasks of nobody known are in none.
    """

    bags: int
    flow_s: Spread
    stretch: Spread


@dataclass(frozen=True, slots=True)
class Figures:
    """All that is said of one replay. Times in seconds, GPU times in GPU seconds.

    ``tasks`` is None where none ended, ``bags`` where no user is known. ``never``: how many tasks
    never started, or never ended; ``never_example``: one of them. ``makespan_s``: from the first
    submission to the last end; ``capacity_gpu_s``: all GPUs for that time. ``utilisation``: the
    volume of tasks that had GPUs, over the capacity; ``idle_gpu_s``: capacity that no task held;
    ``avoidable_gpu_s``: see :mod:`pliant.simulator.idle`; None: not measured. ``lost_gpu_s``: GPU
    time held in which a task made no progress. ``preempted``: how many tasks made room at least
    once, ``preemptions`` times in all. ``away_s``: how long from then to their next run.
    """

    gpus: int
    never: int
    never_example: str
    tasks: Spreads | None
    bags: Bags | None
    makespan_s: float
    utilisation: float
    capacity_gpu_s: float
    idle_gpu_s: float
    avoidable_gpu_s: float | None
    lost_gpu_s: float
    preempted: int
    preemptions: int
    restarts: int
    timed_out: int
    away_s: Spread | None
    classes: dict[str, Spreads] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)

    @property
    def worst_off(self) -> tuple[str, User] | None:
        """The user with the largest mean slowdown; None where there are not two."""
        if len(self.users) < 2:
            return None
        return max(sorted(self.users.items()), key=lambda item: item[1].slowdown)


class _Row(NamedTuple):
    """A task that has ended."""

    user: str
    submit_s: float
    start_s: float
    end_s: float
    volume_s: float


class _Rows:
    """The tasks so far, in the order in which they ended: what the figures follow from."""

    def __init__(self) -> None:
        self.users, self.classes = Kinds[str](), Kinds[str]()
        self.submit_s, self.start_s, self.end_s = array("d"), array("d"), array("d")
        self.volume_s, self.execution_s = array("d"), array("d")

    def __len__(self) -> int:
        return len(self.end_s)

    def __getitem__(self, row: int) -> _Row:
        return _Row(
            self.users[row],
            self.submit_s[row],
            self.start_s[row],
            self.end_s[row],
            self.volume_s[row],
        )

    def append(self, task: Task) -> None:
        self.users.append(task.user)
        self.classes.append(task.job_class)
        self.submit_s.append(task.submit_s)
        self.start_s.append(task.start_s)
        self.end_s.append(task.end_s)
        self.volume_s.append(task.volume_s)
        self.execution_s.append(task.execution_s)

    # Figures of some tasks, as metrics.Task has them.

    def flow_s(self, rows: Iterable[int]) -> Iterator[float]:
        submit_s, end_s = self.submit_s, self.end_s
        return (end_s[row] - submit_s[row] for row in rows)

    def wait_s(self, rows: Sequence[int]) -> Iterator[float]:
        execution_s = self.execution_s
        flows = zip(self.flow_s(rows), rows, strict=True)
        return (flow_s - execution_s[row] for flow_s, row in flows)

    def stretch(self, rows: Sequence[int]) -> Iterator[float]:
        volume_s = self.volume_s
        flows = zip(self.flow_s(rows), rows, strict=True)
        return (flow_s / volume_s[row] for flow_s, row in flows)

    def slowdown(self, rows: Sequence[int]) -> Iterator[float]:
        execution_s = self.execution_s
        waits = zip(self.wait_s(rows), rows, strict=True)
        return (
            1 + wait_s / execution_s[row] if execution_s[row] > 0 else float("inf")
            for wait_s, row in waits
        )

    def spreads(self, rows: Sequence[int]) -> Spreads | None:
        """Return how the figures of some tasks are distributed; one figure at a time is at hand."""
        if not rows:
            return None
        figures = (self.flow_s, self.stretch, self.slowdown, self.wait_s)
        return Spreads(len(rows), *(spread(figure(rows)) for figure in figures))

    def by_user(self) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield each user that is known, by name, with their tasks as they ended."""
        return ((user, rows) for user, rows in sorted(self.users.places()) if user)

    def bags(self) -> Bags | None:
        """Return how the figures of bags are distributed."""
        flow_s, stretch = array("d"), array("d")
        for _, of_user in self.by_user():
            rows = sorted(of_user, key=lambda row: (self.start_s[row], self.end_s[row]))
            for bag in bags_in_order(map(self.__getitem__, rows)):
                flow_s.append(bag.flow_s)
                stretch.append(bag.stretch)
        return Bags(len(flow_s), spread(flow_s), spread(stretch)) if flow_s else None


class Tally:
    """Counts tasks as they end."""

    def __init__(self) -> None:
        self._rows = _Rows()
        self._away_s = array("d")
        self._held_gpu_s = self._lost_gpu_s = self._used_gpu_s = 0.0
        self._preempted = self._preemptions = self._restarts = self._timed_out = 0

    def add(self, task: Task) -> None:
        """Count one task."""
        self._rows.append(task)
        held = sum([(span.end_s - span.start_s) * span.gpus for span in task.spans])
        self._held_gpu_s += held
        self._lost_gpu_s += sum([span.lost_s * span.gpus for span in task.spans])
        self._used_gpu_s += task.volume_s if held else 0.0
        self._restarts += task.restarts
        self._timed_out += task.timed_out
        if task.preemptions:
            self._preempted += 1
            self._preemptions += task.preemptions
            self._away_s.extend(task.away_s)

    def figures(
        self, gpus: int, avoidable_gpu_s: float | None = None, never: int = 0, example: str = ""
    ) -> Figures:
        """Return all figures of what was counted, on so many GPUs."""
        rows = self._rows
        makespan_s = max(rows.end_s) - min(rows.submit_s) if rows else 0.0
        capacity = gpus * makespan_s
        classes = {name: rows.spreads(some) for name, some in sorted(rows.classes.places()) if name}
        return Figures(
            gpus=gpus,
            never=never,
            never_example=example,
            tasks=rows.spreads(range(len(rows))),
            bags=rows.bags(),
            makespan_s=makespan_s,
            utilisation=self._used_gpu_s / capacity if capacity else 0.0,
            capacity_gpu_s=capacity,
            idle_gpu_s=capacity - self._held_gpu_s,
            avoidable_gpu_s=avoidable_gpu_s,
            lost_gpu_s=self._lost_gpu_s,
            preempted=self._preempted,
            preemptions=self._preemptions,
            restarts=self._restarts,
            timed_out=self._timed_out,
            away_s=spread(self._away_s) if self._away_s else None,
            classes={name: spreads for name, spreads in classes.items() if spreads},
            users={user: _user(rows, some) for user, some in rows.by_user()},
        )


def _user(rows: _Rows, some: Sequence[int]) -> User:
    tasks = len(some)
    return User(tasks, sum(rows.flow_s(some)) / tasks, sum(rows.slowdown(some)) / tasks)
