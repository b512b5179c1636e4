"""Proportional: each job as many GPUs as let all be done at the same time.

With v the work of a job that is left, as the time that it would take alone on one GPU, f(v, p) its
run time on p GPUs, p_min, p_max, Q and A as for moldable equipartition:

1. If the p_min of all are at least all that is available, each gets its p_min.
2. If the p_max of all are at most |A|, each gets its p_max.
3. Otherwise the target is Σ v (of all their work) over all that is available, and each job gets
   the p of which f(v, p) is closest to the target; of equally close ones, the smaller.

``malleable-proportional`` is the same over the jobs that wait and the running ones that may be
changed, with more than ``least_left_s`` of v left: see :mod:`pliant.policies.malleable`.

What the paper does not cover:

- v is known by the owner's ``throughput`` and ``steps``, else taken from the time limit, as if the
  job ran so long in its own shape (see :mod:`pliant.speedup`).
- In step 3 the paper takes the jobs in descending order of v: ``order = volume``. On a cluster it
  is ``queue``, the batch system's order: the first waiting job is not delayed by larger ones
  behind it. What a job should have is the same in both. Steps 1 and 2 name no order: it is the
  queue's.
- The target is printed with the whole volumes, what is done of them included: ``target = whole``.
  Then jobs that run aim at a later end than all could have, and less is given; ``left`` counts what
  is left, which is what all would be done at the same time with, and the default where it is live.
- Where a job's p is not free it gets the next smaller shape that is, else a larger one. What nobody
  takes stays free. All else is as for moldable equipartition.

Options: ``order``; ``target``; ``cpu_speed``; of the malleable one also ``least_left_s`` and
``pays``.

Where GPUs are just a number (see :mod:`pliant.policies.crowd`) the same is decided over numbers, in
:mod:`pliant.policies.numbers`: what it comes to is the same.

Source: Fujiwara et al. (paper 000), section IV-B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Literal

from pliant.model import Job, Snapshot
from pliant.placement.queue import Alike
from pliant.plan import Plan
from pliant.policies.crowd import Crowd, Standing, crowd_of
from pliant.policies.desk import Desk
from pliant.policies.equipartition import Division
from pliant.policies.groups import Sizes, groups
from pliant.policies.malleable import resized
from pliant.policies.numbers import ENDLESS_S, proportional, volume_s
from pliant.policies.reasons import ALIKE, LARGEST, SMALLEST
from pliant.policies.split import Split
from pliant.speedup import DEFAULT_CPU_SPEED, left_s, speed_to_one, volume_left_s

Order = Literal["queue", "volume"]
Target = Literal["whole", "left"]


@dataclass(frozen=True, slots=True)
class MoldableProportional:
    """What is free, to the jobs that wait in proportion to their work."""

    name: ClassVar[str] = "moldable-proportional"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    live_options: ClassVar[Mapping[str, object]] = {"order": "queue"}
    order: Order = "volume"
    target: Target = "whole"
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts and claims."""
        crowd = crowd_of(snapshot)
        return self.divide(Desk(snapshot)) if crowd is None else self.split(crowd, ()).plan()

    def divide(self, desk: Desk) -> Plan:
        """Return the same over a desk."""
        for group in groups(desk):
            _Proportional(desk, group, self.cpu_speed).divide(self.order, self.target)
        return desk.plan()

    def split(self, crowd: Crowd, rows: Sequence[Standing]) -> Split:
        """Return the same in numbers, the GPUs of some running jobs divided too."""
        by_volume, whole = self.order == "volume", self.target == "whole"
        return proportional(crowd, rows, self.cpu_speed, by_volume=by_volume, whole=whole)


@dataclass(frozen=True, slots=True)
class MalleableProportional:
    """All GPUs, to the jobs that wait and those that run in proportion to their work."""

    name: ClassVar[str] = "malleable-proportional"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = True
    live_options: ClassVar[Mapping[str, object]] = {"order": "queue"}
    order: Order = "volume"
    target: Target = "whole"
    cpu_speed: float = DEFAULT_CPU_SPEED
    least_left_s: float = 300.0
    pays: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims and reshapes."""
        rule = MoldableProportional(self.order, self.target, self.cpu_speed)
        return resized(snapshot, rule, self.least_left_s, pays=self.pays)


class _Proportional(Division):
    """One group's jobs and what they get."""

    def divide(self, order: Order, target: Target) -> None:
        """Decide for the whole group."""
        tasks = self._group.tasks
        least = sum(count * of.least for of, count in tasks.items())
        most = sum(count * of.most for of, count in tasks.items())
        available = self._free.available_on(self._kinds)
        if least >= available:
            self._reason = SMALLEST
            self._give("queue", lambda _job, _of: 0)
        elif most <= self._free.vacant_on(self._kinds):
            self._reason = LARGEST
            self._give("queue", lambda _job, of: len(of.levels) - 1)
        else:
            self._reason = ALIKE
            jobs = self._group.jobs(self._desk)
            whole = target == "whole"
            work_s = sum(job.tasks_waiting * volume_s(job, whole=whole) for job, _ in jobs)
            target_s = work_s / available
            self._give(order, lambda job, of: self._closest(job, of, float(target_s)))
        for holding in self._held.values():
            self._write(holding)

    def _give(self, order: Order, level: Callable[[Job, Sizes], int]) -> None:
        """Give each job its shape at its level, or else any that fits."""
        passed: set[Alike] = set()
        jobs = self._group.jobs(self._desk, passed)
        if order == "volume":
            jobs = iter(sorted(jobs, key=lambda entry: -volume_s(entry[0])))
        for job, of in jobs:
            self._serve_one(job, of, of.from_level(level(job, of)) if of.levels else ())
            if self._is_hopeless(job, of):
                passed.add((of.profile, job.time_limit_s))

    def _closest(self, job: Job, of: Sizes, target_s: float) -> int:
        """Return the level at which a job's run time is closest to the target."""
        if not of.levels:
            return 0
        left = volume_left_s(job)
        if left == inf:  # it makes no progress on one GPU
            runs_s = [left_s(job, options[0][0], self._cpu_speed) for _, options in of.levels]
        else:
            runs_s = [left / speed if speed else ENDLESS_S for speed in self._speeds(job, of)]
        away = [abs(min(ENDLESS_S, run_s) - target_s) for run_s in runs_s]
        return away.index(min(away))

    def _speeds(self, job: Job, of: Sizes) -> list[float]:
        """The speed at each level against one GPU, worked out once for jobs that say the same."""
        key = (of.profile, id(job.spec), job.shape.gpu_type, job.measured, self._cpu_speed)

        def made() -> tuple[object, list[float]]:
            speeds = [speed_to_one(job, options[0][0], self._cpu_speed) for _, options in of.levels]
            return (job.spec, speeds)  # the spec stays, so that its id is nobody else's

        return self._free.remembered(key, made)[1]
