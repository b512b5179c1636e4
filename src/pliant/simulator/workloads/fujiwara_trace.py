"""A GPU trace like the one of Fujiwara et al., whose own is not public, fitted to what they print.

Printed: 77,677 tasks in 2,317 jobs (bags of tasks) of 14 users in the six months from August 2017
through January 2018, on 42 GPUs of 12 GB; a task runs on one GPU, for more than 300 s, beside
others: the concurrency is 3.95 on average and 16 at most. Typically a task takes 20 % of a GPU's
memory; 97 % of the volume are programs based on MCNN or OpenNMT, and the latter take more than 90 %
of the memory. Tasks on one GPU each saturate six GPUs.

How it is made: the sizes of the jobs are lognormal, apportioned to the tasks. Each job has a user
and a program, a typical run time and a typical memory, from which its tasks differ little; the
concurrency of a task is geometric, cut at 16. A job's tasks run in lanes, one after the other, so
that each starts during or soon after another, as the paper defines a job; a user's jobs lie apart,
with idle time between that is exponential. At last all run times beyond 300 s are stretched by one
factor, so that the volume is that of six GPUs for the whole time.

Source: paper 000, sections II-B, III-C and V-A to V-C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from random import Random

from pliant.errors import BadInput

TASKS, JOBS, USERS = 77_677, 2_317, 14
GPUS = 42
SPAN_S = 184 * 86400.0
"""Six months: 184 days."""
GPU_MIB = 12 * 1024
LEAST_S = 300.0
CONCURRENCY, MOST_CONCURRENT = 3.95, 16
GAP_S = 60.0
"""Tasks of a user that start later after one another are in two jobs."""
SATURATED = 6
"""As many GPUs are at work all the time when each task has one for itself."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What is not printed, and was chosen here.

    ``size_sigma``, ``run_sigma``, ``memory_sigma``: of the lognormal sizes, run times and memories
    of jobs; ``task_sigma``: of the run times of a job's tasks. ``whole``: the part of the jobs that
    takes a whole GPU (OpenNMT); they are the smallest ones, and run ``whole_times`` as long.
    ``memory_mib``: the median of others.
    ``waves``: how many tasks of a job follow each other, on average, where ``lanes``, the most that
    run at once, make it no more: with 24, some six GPUs' worth, all fits on the 42 GPUs at any
    time. ``busy``: no user runs jobs
    for a larger part of the time.
    """

    size_sigma: float = 1.8
    run_sigma: float = 1.2
    task_sigma: float = 0.3
    whole: float = 0.3
    whole_times: float = 8.0
    memory_mib: int = GPU_MIB // 5
    memory_sigma: float = 0.5
    waves: float = 3.0
    lanes: int = 24
    busy: float = 0.8


TRACES = (
    Choices(),
    Choices(lanes=12),
    Choices(lanes=166),
    Choices(size_sigma=1.4),
    Choices(run_sigma=1.6),
    Choices(whole_times=1.0),
)
"""The choices made, then burstier and calmer traces, other sizes and times: for a table."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A task as the paper's daemon sees it (section V-A)."""

    user: int
    job: int
    start_s: float
    run_s: float
    concurrency: int
    mem_mib: int
    whole: bool

    @property
    def volume_s(self) -> float:
        """v_k: how long it would run alone on one GPU."""
        return self.run_s / self.concurrency


@dataclass(slots=True)
class _Bag:
    """A job in the making: for each lane the run times and concurrencies of its tasks."""

    user: int
    whole: bool
    mem_mib: int
    lanes: list[list[tuple[float, int]]]

    @property
    def length_s(self) -> float:
        return max(sum(run_s for run_s, _ in lane) for lane in self.lanes)


def observed(seed: int, tasks: int = TASKS, choices: Choices | None = None) -> list[Observed]:
    """Return the tasks of one seed, in the order of their starts.

    Fewer tasks are as dense: in fewer jobs and less time. Raises BadInput for fewer than 100.
    """
    if tasks < 100:
        raise BadInput(f"{tasks} tasks: a hundred at least are needed for the means to be right")
    random, chosen = Random(seed), choices or Choices()  # noqa: S311  # no secret
    span_s = SPAN_S * tasks / TASKS
    bags = _stretched(_bags(random, tasks, chosen), SATURATED * span_s)
    _assign(random, bags, chosen.busy * span_s)
    found = _laid_out(random, bags, span_s)
    return sorted(found, key=lambda task: (task.start_s, task.job))


def _bags(random: Random, tasks: int, chosen: Choices) -> list[_Bag]:
    jobs = max(USERS, round(JOBS * tasks / TASKS))
    sizes = sorted(
        apportioned([random.lognormvariate(0, chosen.size_sigma) for _ in range(jobs)], tasks)
    )
    small = round(chosen.whole * jobs)
    alone = sum(sizes[:small])
    shared = (CONCURRENCY * tasks - alone) / (tasks - alone)  # the mean of those that share
    weights = geometric(shared, MOST_CONCURRENT)
    bags = [_bag(random, size, place < small, weights, chosen) for place, size in enumerate(sizes)]
    random.shuffle(bags)
    return bags


def apportioned(weights: Sequence[float], total: int) -> list[int]:
    """Return whole numbers in proportion to weights, each at least 1, with an exact sum."""
    spare, sum_ = total - len(weights), sum(weights)
    bounds = [round(spare * part / sum_) for part in accumulate(weights)]
    return [1 + high - low for low, high in zip([0, *bounds], bounds, strict=False)]


def geometric(mean: float, most: int) -> list[float]:
    """Return weights of 1 … most, each the same multiple of the one before, with a given mean."""
    low, high = 1e-9, 1e3
    for _ in range(200):
        ratio = (low * high) ** 0.5
        weights = [ratio**number for number in range(most)]
        if sum(weight * number for number, weight in enumerate(weights, 1)) < mean * sum(weights):
            low = ratio
        else:
            high = ratio
    return weights


def _bag(random: Random, size: int, whole: bool, weights: list[float], chosen: Choices) -> _Bag:
    typical_s = random.lognormvariate(0, chosen.run_sigma) * (chosen.whole_times if whole else 1)
    counts = [1] * size if whole else random.choices(range(1, len(weights) + 1), weights, k=size)
    mem_mib = GPU_MIB * random.uniform(0.9, 1.0)
    if not whole:
        mem_mib = min(
            chosen.memory_mib * random.lognormvariate(0, chosen.memory_sigma), GPU_MIB / 2
        )
    runs = [(typical_s * random.lognormvariate(0, chosen.task_sigma), count) for count in counts]
    lanes = min(ceil(size / max(1.0, random.expovariate(1 / chosen.waves))), chosen.lanes)
    return _Bag(0, whole, ceil(mem_mib), [runs[lane::lanes] for lane in range(lanes)])


def _stretched(bags: list[_Bag], volume_s: float) -> list[_Bag]:
    """Give the tasks run times: 300 s and what was drawn, times what makes the volume right."""
    counted = [task for bag in bags for lane in bag.lanes for task in lane]
    least = sum(LEAST_S / count for _, count in counted)
    factor = (volume_s - least) / sum(run / count for run, count in counted)
    for bag in bags:
        bag.lanes = [[(LEAST_S + factor * run, count) for run, count in lane] for lane in bag.lanes]
    return bags


def _assign(random: Random, bags: list[_Bag], most_s: float) -> None:
    """Give each job a user: the k-th user has 1/k as many, as long as all find time for theirs."""
    busy_s = [0.0] * USERS
    weights = [1 / number for number in range(1, USERS + 1)]
    for bag in sorted(bags, key=lambda bag: -bag.length_s):
        bag.user = random.choices(range(USERS), weights)[0]
        if busy_s[bag.user] + bag.length_s > most_s:
            bag.user = min(range(USERS), key=busy_s.__getitem__)
        busy_s[bag.user] += bag.length_s


def _laid_out(random: Random, bags: list[_Bag], span_s: float) -> Iterator[Observed]:
    """Lay each user's jobs one after the other, with idle time between."""
    numbers = {id(bag): number for number, bag in enumerate(bags)}
    for user in range(USERS):
        mine = [bag for bag in bags if bag.user == user]
        pauses = [random.expovariate(1) for _ in range(len(mine) + 1)]
        idle_s = span_s - sum(bag.length_s + 3 * GAP_S for bag in mine)
        scale, now_s = max(0.0, idle_s) / sum(pauses), 0.0
        for bag, pause in zip(mine, pauses, strict=False):
            now_s += pause * scale
            yield from _tasks(random, bag, numbers[id(bag)], now_s)
            now_s += bag.length_s + 3 * GAP_S


def _tasks(random: Random, bag: _Bag, job: int, begin_s: float) -> Iterator[Observed]:
    for lane in bag.lanes:
        start_s = begin_s + random.uniform(0, GAP_S / 2)
        for run_s, count in lane:
            mem_mib = min(bag.mem_mib, GPU_MIB // count)
            yield Observed(bag.user, job, start_s, run_s, count, mem_mib, bag.whole)
            start_s += run_s
