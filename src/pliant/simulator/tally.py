"""What a replay came to: every task is counted as it ends, and kept as a few numbers.

Half a million tasks are some tens of megabytes so; the tasks themselves are not kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pliant.simulator.metrics import Spread, Task, bags_in_order, spread


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
    user: str
    submit_s: float
    start_s: float
    end_s: float
    volume_s: float


@dataclass(slots=True)
class _Sums:
    tasks: int = 0
    flow_s: float = 0.0
    slowdown: float = 0.0


class _Columns:
    """The figures of each task, so far."""

    def __init__(self) -> None:
        self.flow_s, self.stretch = array("d"), array("d")
        self.slowdown, self.wait_s = array("d"), array("d")

    def add(self, task: Task) -> None:
        self.flow_s.append(task.flow_s)
        self.stretch.append(task.stretch)
        self.slowdown.append(task.slowdown)
        self.wait_s.append(task.wait_s)

    def spreads(self) -> Spreads | None:
        columns = (self.flow_s, self.stretch, self.slowdown, self.wait_s)
        return Spreads(len(self.flow_s), *map(spread, columns)) if self.flow_s else None


class Tally:
    """Counts tasks as they end."""

    def __init__(self) -> None:
        self._all = _Columns()
        self._classes: dict[str, _Columns] = {}
        self._users: dict[str, _Sums] = {}
        self._names: list[str] = []
        self._number: dict[str, int] = {}
        self._user = array("I")
        self._submit_s, self._start_s = array("d"), array("d")
        self._end_s, self._volume_s = array("d"), array("d")
        self._away_s = array("d")
        self._held_gpu_s = self._lost_gpu_s = self._used_gpu_s = 0.0
        self._preempted = self._preemptions = self._restarts = self._timed_out = 0

    def add(self, task: Task) -> None:
        """Count one task."""
        self._all.add(task)
        if task.job_class:
            self._classes.setdefault(task.job_class, _Columns()).add(task)
        self._add_to_user(task)
        held = sum([(span.end_s - span.start_s) * span.gpus for span in task.spans])
        self._held_gpu_s += held
        self._lost_gpu_s += sum([span.lost_s * span.gpus for span in task.spans])
        self._used_gpu_s += task.volume_s if held else 0.0
        self._preempted += task.preemptions > 0
        self._preemptions += task.preemptions
        self._restarts += task.restarts
        self._timed_out += task.timed_out
        if task.preemptions:
            self._away_s.extend(task.away_s)

    def _add_to_user(self, task: Task) -> None:
        number = self._number.setdefault(task.user, len(self._names))
        if number == len(self._names):
            self._names.append(task.user)
        self._user.append(number)
        self._submit_s.append(task.submit_s)
        self._start_s.append(task.start_s)
        self._end_s.append(task.end_s)
        self._volume_s.append(task.volume_s)
        if task.user:
            sums = self._users.setdefault(task.user, _Sums())
            sums.tasks += 1
            sums.flow_s += task.flow_s
            sums.slowdown += task.slowdown

    def figures(
        self, gpus: int, avoidable_gpu_s: float | None = None, never: int = 0, example: str = ""
    ) -> Figures:
        """Return all figures of what was counted, on so many GPUs."""
        makespan_s = max(self._end_s) - min(self._submit_s) if self._end_s else 0.0
        capacity = gpus * makespan_s
        classes = {name: of.spreads() for name, of in sorted(self._classes.items())}
        return Figures(
            gpus=gpus,
            never=never,
            never_example=example,
            tasks=self._all.spreads(),
            bags=self._bags(),
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
            users={
                name: User(sums.tasks, sums.flow_s / sums.tasks, sums.slowdown / sums.tasks)
                for name, sums in sorted(self._users.items())
            },
        )

    def _bags(self) -> Bags | None:
        flow_s, stretch = array("d"), array("d")
        for bag in bags_in_order(self._rows()):
            flow_s.append(bag.flow_s)
            stretch.append(bag.stretch)
        return Bags(len(flow_s), spread(flow_s), spread(stretch)) if flow_s else None

    def _rows(self) -> Iterator[_Row]:
        """The tasks of known users, in the order that makes up bags (metrics.order)."""
        names = self._names

        def order(row: int) -> tuple[str, float, float]:
            return (names[self._user[row]], self._start_s[row], self._end_s[row])

        for row in sorted(range(len(self._user)), key=order):
            user = names[self._user[row]]
            if user:
                yield _Row(
                    user,
                    self._submit_s[row],
                    self._start_s[row],
                    self._end_s[row],
                    self._volume_s[row],
                )
