"""Equipartition and proportional where GPUs are just a number: see :mod:`pliant.policies.crowd`.

The rules are those of :mod:`pliant.policies.equipartition` and :mod:`pliant.policies.proportional`.
There are no shares, so all that is available is vacant.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Literal, cast

from pliant.model import Job
from pliant.placement.profiles import Ladder
from pliant.policies.crowd import Crowd, Standing
from pliant.policies.reasons import ALIKE, LARGEST, SMALLEST, SPREAD
from pliant.policies.split import Member, Split, Waiting
from pliant.speedup import left_s, speed_to_one, volume_left_s, volume_of_s

ENDLESS_S = 1e12
"""For a job that makes no progress on one GPU: more than any other."""


def equipartition(
    crowd: Crowd, rows: Sequence[Standing], votes: Literal["largest", "equal"]
) -> Split:
    """Divide what is free, and what some running jobs have, equally."""

    def votes_of(amounts: Sequence[int]) -> float:
        return float(amounts[-1]) if votes == "largest" else 1.0

    split = Split(crowd, rows)
    least, most = split.bounds
    if least >= split.room.free:
        split.reason = SMALLEST
        split.serve_least()
    elif most <= split.room.free:
        split.reason = LARGEST
        split.serve_all(_largest)
    else:
        split.reason = SPREAD
        if split.ladder is not None:
            split.spread(split.ladder)
            return split
        split.serve_all(_smallest)
    if split.room.free:
        split.grow(votes_of)
    return split


def proportional(
    crowd: Crowd, rows: Sequence[Standing], cpu_speed: float, *, by_volume: bool, whole: bool
) -> Split:
    """Divide the same so that all jobs would be done at the same time.

    ``whole``: the target is of all work of the jobs, not of what is left of it.
    """
    split = Split(crowd, rows)
    least, most = split.bounds
    available = split.room.free
    if least >= available:
        split.reason = SMALLEST
        split.serve_least()
    elif most <= available:
        split.reason = LARGEST
        split.serve_all(_largest)
    else:
        split.reason = ALIKE
        left = [(min(ENDLESS_S, m.left_s(crowd.now_s)), m) for m in split.members()]
        work = [min(ENDLESS_S, m.whole_s) for _, m in left] if whole else [v for v, _ in left]
        target_s = sum(work) / available
        if by_volume:
            left.sort(key=lambda pair: -pair[0])
        closest_to = _Closest(crowd, target_s, cpu_speed)
        split.serve([(member, closest_to(member)) for _, member in left])
    return split


def volume_s(job: Job, *, whole: bool = False) -> float:
    """Return what is left of a job's work, or the whole, alone on one GPU; never for ever."""
    return min(ENDLESS_S, volume_of_s(job) if whole else volume_left_s(job))


def closest(left_s: float, speeds: Sequence[float], target_s: float) -> int:
    """Return at which of some speeds what is left is done closest to a target.

    The speeds are more than none, and never fall; of equally close ones, the first.
    """

    count = len(speeds)
    if left_s / speeds[0] > ENDLESS_S or target_s <= 0:
        return first_of([left_s / speed for speed in speeds], target_s)
    place = bisect_left(speeds, left_s / target_s)
    # The first that is done by the target, whatever rounding made of it.
    while place and left_s / speeds[place - 1] <= target_s:
        place -= 1
    while place < count and left_s / speeds[place] > target_s:
        place += 1
    if place == 0:
        return 0
    longer = place - 1
    away = left_s / speeds[longer] - target_s
    if place < count and target_s - left_s / speeds[place] < away:
        return place
    while longer and left_s / speeds[longer - 1] - target_s == away:
        longer -= 1
    return longer


def first_of(runs_s: Sequence[float], target_s: float) -> int:
    """Return which run time is closest to a target; of equally close ones, the first."""
    away = [abs(min(ENDLESS_S, run_s) - target_s) for run_s in runs_s]
    return away.index(min(away))


def _smallest(_member: Member) -> int:
    return 0


def _largest(member: Member) -> int:
    return len(member.ladder.amounts) - 1


class _Closest:
    """Tells at which level a job's run time is closest to the target."""

    def __init__(self, crowd: Crowd, target_s: float, cpu_speed: float) -> None:
        self._crowd, self._target_s, self._cpu_speed = crowd, target_s, cpu_speed
        self._linear: dict[Ladder, tuple[Sequence[float], bool]] = {}  # of who says nothing

    def __call__(self, member: Member) -> int:
        job = member.job
        left = member.left_s(self._crowd.now_s)
        if left == inf:  # it makes no progress on one GPU
            return first_of(self._runs_s(member), self._target_s)
        says = job.measured or (job.spec is not None and job.spec.request.throughput)
        known = None if says else self._linear.get(member.ladder)
        speeds, rise = known or self._speeds(member)
        if not says:
            self._linear[member.ladder] = (speeds, rise)
        if rise:
            return closest(left, speeds, self._target_s)
        runs_s = [left / speed if speed else ENDLESS_S for speed in speeds]
        return first_of(runs_s, self._target_s)

    def _runs_s(self, member: Member) -> list[float]:
        job = member.job if isinstance(member, Waiting) else self._crowd.shown(member)
        return [left_s(job, shape, self._cpu_speed) for shape in member.ladder.shapes]

    def _speeds(self, member: Member) -> tuple[Sequence[float], bool]:
        """The speed at each level against one GPU, worked out once for jobs that say the same.

        And whether all are known to be more than none, and never fall.
        """
        job, known = member.job, self._crowd.ground.remembered
        key = (member.ladder, id(job.spec), job.shape.gpu_type, job.measured, self._cpu_speed)
        found = known.get(key)
        if found is None:
            speeds = [speed_to_one(job, shape, self._cpu_speed) for shape in member.ladder.shapes]
            rise = speeds[0] > 0 and all(one <= more for one, more in pairwise(speeds))
            # the spec stays, so that its id is nobody else's
            found = known[key] = (job.spec, speeds, rise)
        _, speeds, rise = cast(tuple[object, list[float], bool], found)
        return speeds, rise
