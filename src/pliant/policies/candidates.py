"""What FMS tries a job as: at N, N/2 and N/4 of each kind; how long it would run; what fits now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from pliant.model import Job, Kind, Shape
from pliant.placement import Free, Option, Profile
from pliant.placement.pick import Places
from pliant.speedup import run_time_s

PARTS = (1, 2, 4)
ENDLESS_S = 1e12
"""The run time of a job that makes no progress: worse than any other, better than never."""

Timed = tuple[Option, float]
"""An option, and how many seconds the job would run so."""
Fitting = tuple[Option, float, Places]
"""The same, and where it fits now."""


class Dimensions(NamedTuple):
    """What is molded: the kind of resource, the number of nodes, or both."""

    kinds: bool = True
    nodes: bool = True

    def at(self, profile: Profile, part: int) -> tuple[Option, ...]:
        """Return what may be tried at N/part."""
        options = at_part(profile, part)
        return options if self.kinds else whole(options)


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """A job in a pair: what is tried for it, and what of that fits now."""

    job: Job
    profile: Profile
    tried: tuple[Timed, ...]
    now: tuple[Fitting, ...]


class Candidates:
    """What is tried for each job; what does not fit in any way is not tried again.

    ``light``: the load is low, so that N alone is tried where it is free. ``every_size``: all
    allowed sizes take the place of N, N/2 and N/4. ``molded``: what may differ from what is asked.
    """

    def __init__(
        self, free: Free, molded: Dimensions, *, light: bool, every_size: bool, cpu_speed: float
    ) -> None:
        self._free, self._light, self._molded = free, light, molded
        self._every_size, self._cpu_speed = every_size, cpu_speed
        self._steps: dict[Profile, tuple[tuple[Option, ...], ...]] = {}
        self._times: dict[tuple[int, int, int, int], tuple[object, tuple[Timed, ...]]] = {}
        self._stuck: set[tuple[Profile, float]] = set()

    def stuck(self, job: Job, profile: Profile) -> bool:
        """Whether nothing fits a job like this one."""
        return (profile, self._free.bound(job)) in self._stuck

    def of(self, job: Job, profile: Profile) -> Candidate:
        """Return what is tried for a job, at least one size that fits where any does."""
        bound = self._free.bound(job)
        if (profile, bound) in self._stuck:
            return Candidate(job, profile, (), ())
        full, parts, every = self._sizes(profile)
        if self._light:
            tried = self._timed(job, full)
            now = self._fitting(profile, tried, bound)
            if now:
                return Candidate(job, profile, tried, now)
        tried = self._timed(job, parts)
        now = self._fitting(profile, tried, bound)
        if not now:
            now = self._fitting(profile, self._timed(job, every), bound)[:1]
        if not now:
            self._stuck.add((profile, bound))
        return Candidate(job, profile, tried, now)

    def sizes(self, job: Job, profile: Profile) -> tuple[Timed, ...]:
        """Return all that is tried where N is not free or the load is high."""
        return self._timed(job, self._sizes(profile)[1])

    def _sizes(self, profile: Profile) -> tuple[tuple[Option, ...], ...]:
        """The options at N, at all sizes to try, and every option with the largest first."""
        known = self._steps.get(profile)
        if known is None:
            known = self._steps[profile] = self._stepped(profile)
        return known

    def _stepped(self, profile: Profile) -> tuple[tuple[Option, ...], ...]:
        full = self._molded.at(profile, 1)
        if not self._molded.nodes:
            return (full, full, full)
        parts = (option for part in PARTS for option in self._molded.at(profile, part))
        every = profile.options if self._molded.kinds else whole(profile.options)
        return (
            full,
            every if self._every_size else tuple(dict.fromkeys(parts)),
            tuple(sorted(every, key=lambda option: -option[0].amount)),
        )

    def _timed(self, job: Job, options: tuple[Option, ...]) -> tuple[Timed, ...]:
        """The options with their run times, worked out once for equal jobs."""
        key = (id(job.spec), id(job.shape), job.time_limit_s, id(options))
        known = self._times.get(key)
        if known is None:
            timed = tuple((o, run_s(job, o[0], self._cpu_speed)) for o in options)
            known = self._times[key] = ((job.spec, job.shape, options), timed)
        return known[1]

    def _fitting(
        self, profile: Profile, tried: Iterable[Timed], bound: float
    ) -> tuple[Fitting, ...]:
        found: list[Fitting] = []
        for option, time_s in tried:
            places = self._free.places(profile, option, bound)
            if places is not None:
                found.append((option, time_s, places))
        return tuple(found)


def run_s(job: Job, shape: Shape, cpu_speed: float) -> float:
    """Return how long a job would run as a shape; never for ever."""
    return min(ENDLESS_S, run_time_s(job, shape, cpu_speed))


@lru_cache(maxsize=4096)
def at_part(profile: Profile, part: int) -> tuple[Option, ...]:
    """Return the options at N/part, of each kind, CPU shapes last; ``part`` is one of PARTS.

    N is the most that a job asks: for CPU shapes nodes, else GPUs. N/part is the largest allowed
    size that is no more than that; where there is none, it is that of the part before.
    """
    chosen: list[Option] = []
    for cpu in (False, True):
        options = [o for o in profile.options if (o[0].kind is Kind.CPU) is cpu]
        amounts = [_size(option[0]) for option in options]
        most = max(amounts, default=Fraction(0))
        parts = [one for one in PARTS if one <= part and min(amounts, default=most) <= most / one]
        size = max((one for one in amounts if one <= most / max(parts)), default=None)
        chosen += [option for option in options if _size(option[0]) == size]
    return tuple(chosen)


def whole(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return what stands for CPU+GPU: the options that have both, else those on GPUs, else all."""
    some = tuple(options)
    for kind in (Kind.BOTH, Kind.GPU):
        found = tuple(option for option in some if option[0].kind is kind)
        if found:
            return found
    return some


def _size(shape: Shape) -> Fraction:
    return Fraction(shape.nodes) if shape.kind is Kind.CPU else shape.amount
