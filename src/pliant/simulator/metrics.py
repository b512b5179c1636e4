"""What a replay did to tasks, jobs and users: flow time, stretch, slowdown, wait, utilisation.

Terms as in Fujiwara et al. (paper 000), section III: the flow time of a task is from its arrival to
its completion, its stretch is that divided by its volume (its time alone on one GPU), and the
utilisation is the volume of all tasks divided by the GPUs and the makespan. A job is a bag of
tasks: those of one user that start during, or within a minute after, another task of that user.
Slowdown as in Yabuuchi et al. (paper 001): 1 + wait / execution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil
from typing import Generic, NamedTuple, Protocol, TypeVar

GAP_S = 60.0
"""How long after a task's end another one may start and still belong to the same job."""


class Span(NamedTuple):
    """One run of a task: ``gpus`` were its own from ``start_s`` to ``end_s``.

    ``lost_s``: how much of that went into saving, launching, and work that was done before.
    ``preempted``: it ended because the task made room for another.
    """

    start_s: float
    end_s: float
    gpus: float
    lost_s: float = 0.0
    preempted: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A task that has ended, with all its runs in order; ``volume_s``: alone on one GPU.

    ``preemptions``: how often it made room for another; ``timed_out``: its time limit ended it.
    ``job_class``: "" where its owner named none.
    """

    id: str
    user: str
    submit_s: float
    volume_s: float
    spans: tuple[Span, ...]
    preemptions: int = 0
    timed_out: bool = False
    job_class: str = ""

    @property
    def start_s(self) -> float:
        """When its first run began."""
        return self.spans[0].start_s

    @property
    def end_s(self) -> float:
        """When its last run ended."""
        return self.spans[-1].end_s

    @property
    def flow_s(self) -> float:
        """From its submission to its end, whatever happened between."""
        return self.end_s - self.submit_s

    @property
    def execution_s(self) -> float:
        """How long it made progress."""
        return sum(span.end_s - span.start_s - span.lost_s for span in self.spans)

    @property
    def wait_s(self) -> float:
        """All that was not progress: in the queue, between runs, saving and launching."""
        return self.flow_s - self.execution_s

    @property
    def stretch(self) -> float:
        """Flow time over volume."""
        return self.flow_s / self.volume_s

    @property
    def slowdown(self) -> float:
        """1 + wait / execution; inf where it was ended before it made any progress."""
        execution_s = self.execution_s
        return 1 + self.wait_s / execution_s if execution_s > 0 else float("inf")

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return len(self.spans) - 1

    @property
    def away_s(self) -> tuple[float, ...]:
        """Each re-scheduling interval: from holding nothing, having made room, to its next run."""
        return tuple(
            [then.start_s - now.end_s for now, then in pairwise(self.spans) if now.preempted]
        )


class Ran(Protocol):
    """What of a task that has ended makes up jobs."""

    @property
    def user(self) -> str:
        """Who submitted it."""

    @property
    def submit_s(self) -> float:
        """When it was submitted."""

    @property
    def start_s(self) -> float:
        """When its first run began."""

    @property
    def end_s(self) -> float:
        """When its last run ended."""

    @property
    def volume_s(self) -> float:
        """Alone on one GPU."""


Some = TypeVar("Some", bound=Ran)


@dataclass(frozen=True, slots=True)
class Bag(Generic[Some]):
    """A job of Fujiwara's: tasks of one user, one after the other or at once."""

    user: str
    tasks: tuple[Some, ...]

    @property
    def flow_s(self) -> float:
        """From the first submission to the last end."""
        return max(task.end_s for task in self.tasks) - min(task.submit_s for task in self.tasks)

    @property
    def stretch(self) -> float:
        """Flow time over the volume of all its tasks."""
        return self.flow_s / sum(task.volume_s for task in self.tasks)


def bags(tasks: Iterable[Some], gap_s: float = GAP_S) -> Iterator[Bag[Some]]:
    """Yield the jobs that tasks make up, user by user."""
    return bags_in_order(sorted(tasks, key=order), gap_s)


def order(task: Ran) -> tuple[str, float, float]:
    """Return what tasks are ordered by to make up jobs."""
    return (task.user, task.start_s, task.end_s)


def bags_in_order(ordered: Iterable[Some], gap_s: float = GAP_S) -> Iterator[Bag[Some]]:
    """Yield the jobs that tasks make up which come in their :func:`order`."""
    for user, of_user in groupby(ordered, key=lambda task: task.user):
        bag: list[Some] = []
        end_s = float("-inf")
        for task in of_user:
            if bag and task.start_s > end_s + gap_s:
                yield Bag(user, tuple(bag))
                bag = []
            bag.append(task)
            end_s = max(end_s, task.end_s) if len(bag) > 1 else task.end_s
        yield Bag(user, tuple(bag))


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure is distributed."""

    mean: float
    median: float
    p95: float
    p99: float
    most: float


def spread(figures: Iterable[float]) -> Spread:
    """Return the distribution of figures; percentiles are figures that occur (nearest rank).

    Raises ValueError where there are none.
    """
    ranked = sorted(figures)
    if not ranked:
        raise ValueError("no figures")

    def rank(part: float) -> float:
        return ranked[max(0, ceil(part * len(ranked)) - 1)]

    mean = sum(ranked) / len(ranked)
    return Spread(mean, rank(0.5), rank(0.95), rank(0.99), ranked[-1])


def makespan_s(tasks: Sequence[Task]) -> float:
    """Return the time from the first submission to the last end."""
    return max(task.end_s for task in tasks) - min(task.submit_s for task in tasks)


def utilisation(tasks: Sequence[Task], gpus: float) -> float:
    """Return the volume of all tasks over GPUs times makespan: 1 where no GPU ever idled."""
    return sum(task.volume_s for task in tasks) / (gpus * makespan_s(tasks))


def lost_gpu_s(tasks: Iterable[Task]) -> float:
    """Return the GPU seconds that went into restarts."""
    return sum(span.lost_s * span.gpus for task in tasks for span in task.spans)


def worst_hit(
    tasks: Iterable[Task], before: Iterable[Task], figure: Callable[[Task], float]
) -> tuple[str, float]:
    """Return the user whose mean figure grew most against ``before``, and its ratio.

    ``before``: the same tasks under another policy. Users whose mean was 0 there do not count.
    Raises ValueError where no user is left.
    """
    return worst_of(_means(tasks, figure), _means(before, figure))


def worst_of(means: Mapping[str, float], before: Mapping[str, float]) -> tuple[str, float]:
    """Return the user whose mean grew most against ``before``, and its ratio, as worst_hit does.

    Raises ValueError where no user is left.
    """
    ratios = {user: means[user] / before[user] for user in means if before.get(user, 0.0) > 0}
    if not ratios:
        raise ValueError("no user to compare")
    user = max(sorted(ratios), key=ratios.__getitem__)
    return (user, ratios[user])


def _means(tasks: Iterable[Task], figure: Callable[[Task], float]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for task in tasks:
        total, count = sums.get(task.user, (0.0, 0))
        sums[task.user] = (total + figure(task), count + 1)
    return {user: total / count for user, (total, count) in sums.items()}
