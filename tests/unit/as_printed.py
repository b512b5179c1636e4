"""Equipartition as Fujiwara et al. print it (section IV-A): a loop that knows every single GPU.

It has nothing in common with the policies but the rule, and is what they are compared with. Every
task that may be changed is placed anew at each event, which costs nothing; a task that finds no
place is suspended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pliant.model import Shape
from pliant.simulator.workload import Arrival, Workload

LEAST_LEFT_S = 300.0
"""A task with no more work left is not changed."""
MOST = 4
"""p_max, and the most that share a GPU."""
NEARLY = 1e-9


@dataclass(eq=False)
class Task:
    """A task; what it holds, 1/``share`` of each of ``gpus``; and its work left on one GPU."""

    number: int
    arrival: Arrival
    left_s: float
    share: int = 1
    gpus: Sequence[int] = ()

    @property
    def mem_mib(self) -> int:
        spec = self.arrival.job.spec
        assert spec is not None
        return spec.request.gpu_mem_mib

    @property
    def speed(self) -> float:
        return self.arrival.speed(Shape(len(self.gpus), 1, share=self.share))


class Gpus:
    """What is free of each GPU, of its processor and of its memory, and how many tasks it has."""

    def __init__(self, count: int, mem_mib: int, stay: Sequence[Task]) -> None:
        self.capacity_mib = mem_mib
        self.free, self.mem_mib, self.tasks = [1.0] * count, [mem_mib] * count, [0] * count
        for task in stay:
            for gpu in task.gpus:
                self.take(task, gpu, task.share)

    def take(self, task: Task, gpu: int, share: int) -> None:
        self.free[gpu] -= 1 / share
        self.mem_mib[gpu] -= task.mem_mib
        self.tasks[gpu] += 1

    def vacant(self) -> list[int]:
        return [gpu for gpu, tasks in enumerate(self.tasks) if not tasks]

    def fits(self, task: Task, gpu: int, share: int) -> bool:
        return self.free[gpu] >= 1 / share - NEARLY and self.mem_mib[gpu] >= task.mem_mib

    def least(self, task: Task) -> int:
        """p_min is 1 over this: as many as find memory on one GPU."""
        return min(MOST, self.capacity_mib // task.mem_mib)


def flows_s(workload: Workload, *, malleable: bool) -> Iterator[float]:
    """Yield the flow times of all tasks, as they end."""
    (pool,) = workload.nodes[0].pools
    coming = [Task(at, one, one.volume_s) for at, one in enumerate(workload.arrivals)][::-1]
    waiting: list[Task] = []
    running: list[Task] = []
    now_s = 0.0
    while coming or running:
        then_s = min(
            [now_s + task.left_s / task.speed for task in running]
            + [task.arrival.job.submit_s for task in coming[-1:]]
        )
        for task in running:
            task.left_s -= (then_s - now_s) * task.speed
        now_s = then_s
        yield from (now_s - one.arrival.job.submit_s for one in running if one.left_s <= NEARLY)
        running = [task for task in running if task.left_s > NEARLY]
        while coming and coming[-1].arrival.job.submit_s <= now_s:
            waiting.append(coming.pop())
        moved = [task for task in running if malleable and task.left_s > LEAST_LEFT_S]
        stay = [task for task in running if task not in moved]
        queue = sorted(moved + waiting, key=lambda task: task.number)
        for task in queue:
            task.gpus = ()
        divide(queue, Gpus(len(workload.nodes), pool.mem_mib, stay))
        running = stay + [task for task in queue if task.gpus]
        waiting = [task for task in queue if not task.gpus]


def divide(queue: Sequence[Task], gpus: Gpus) -> None:
    """Give each task of the queue what it should have."""
    vacant = gpus.vacant()
    if sum(1 / gpus.least(task) for task in queue) >= sum(gpus.free) - NEARLY:
        for task in queue:
            share = gpus.least(task)
            fitting = (gpu for gpu in range(len(gpus.free)) if gpus.fits(task, gpu, share))
            give(task, [*fitting][:1], share, gpus)
    elif len(queue) <= len(vacant):
        # With all of them p_max where there is enough: that is what D'Hondt comes to as well.
        seats = dict.fromkeys(queue, 1)
        for _ in range(min(len(vacant), MOST * len(queue)) - len(queue)):
            seats[min(queue, key=lambda task: (seats[task] == MOST, seats[task]))] += 1
        for task, count in seats.items():
            give(task, gpus.vacant()[:count], 1, gpus)
    else:
        share_out(queue, gpus)


def share_out(queue: Sequence[Task], gpus: Gpus) -> None:
    """Pre-assign each task to the GPU with the fewest tasks; all there get the same share."""
    seats: dict[int, list[Task]] = {}
    free = list(gpus.free)
    for task in queue:
        share = gpus.least(task)
        fitting = [gpu for gpu in range(len(free)) if gpus.fits(task, gpu, share)]
        if fitting:
            gpu = min(fitting, key=lambda gpu: gpus.tasks[gpu])
            gpus.take(task, gpu, share)
            seats.setdefault(gpu, []).append(task)
    for gpu, tasks in seats.items():
        for task in tasks:
            shares = range(1, gpus.least(task) + 1)
            fair = (one for one in shares if 1 / one <= free[gpu] / len(tasks) + NEARLY)
            task.gpus, task.share = [gpu], next(fair, gpus.least(task))


def give(task: Task, places: Sequence[int], share: int, gpus: Gpus) -> None:
    """Give a task 1/``share`` of each of these GPUs; none: it waits."""
    task.gpus, task.share = places, share
    for gpu in places:
        gpus.take(task, gpu, share)
