"""GPU time that stood idle, and how much of it need not have.

A GPU's time is *avoidably idle* while it is free and a job waits that has an allowed shape which
fits there and would not have delayed the first waiting job. It is computed from a round's records
alone, whoever decided: between two events (a submission, a start, an end) the waiting jobs are
gone through in order of submission and each is given the largest of its allowed shapes that fits.
The first that finds none gets a claim: the earliest time at which one of its shapes fits if every
running job uses its whole time limit. From then on a job counts only if its own limit ends before
the claim, or if the claim still fits beside it. What they were given, times the length of the
interval, is avoidable; what stays free is not.

Rigid and moldable rounds are measured by the same jobs' same allowed shapes, so a round with
Pliant off shows what its requests cost. CPUs and memory are left out: this demonstration's jobs
never run short of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from pliant.demo.run import Run
from pliant.model import Shape

Free = Mapping[str, Fraction]
"""Free GPUs by node. The part behind the whole number is on a GPU that is shared already."""


@dataclass(frozen=True, slots=True)
class Idle:
    """GPU-seconds of a round, from its first submission to its last end."""

    capacity_s: float
    idle_s: float
    avoidable_s: float

    @property
    def idle_share(self) -> float:
        """The part of all GPU time that no job had."""
        return self.idle_s / self.capacity_s

    @property
    def avoidable_share(self) -> float:
        """The part of all GPU time that a waiting job could have had."""
        return self.avoidable_s / self.capacity_s


def idle(runs: Sequence[Run], gpus: Mapping[str, int], settle_s: float = 0.0) -> Idle:
    """Measure a round on nodes with ``gpus``.

    ``settle_s``: how long after each submission or end nothing is called avoidable, the time that
    a batch system takes to react.
    """
    events = sorted({t for run in runs for t in (run.submit_s, run.start_s, run.end_s)})
    total = sum(gpus.values())
    idle_s = avoidable_s = 0.0
    for begin, end in pairwise(events):
        free = _free(runs, gpus, begin)
        idle_s += float(sum(free.values())) * (end - begin)
        changed = max(t for run in runs for t in (run.submit_s, run.end_s) if t <= begin)
        counted = max(0.0, end - max(begin, changed + settle_s))
        if counted and (waiting := _waiting(runs, begin)):
            running = [run for run in runs if run.start_s <= begin < run.end_s]
            avoidable_s += float(_usable(waiting, running, free, begin)) * counted
    return Idle(total * (events[-1] - events[0]), idle_s, avoidable_s)


def _waiting(runs: Sequence[Run], now_s: float) -> list[Run]:
    found = [run for run in runs if run.submit_s <= now_s < run.start_s]
    return sorted(found, key=lambda run: (run.submit_s, run.job.at_s, run.job.name))


def _free(runs: Sequence[Run], gpus: Mapping[str, int], now_s: float) -> Free:
    free: Free = {node: Fraction(count) for node, count in gpus.items()}
    for run in runs:
        if run.start_s <= now_s < run.end_s:
            free = _less(free, run.shape, run.nodes)
    return free


def _usable(waiting: Sequence[Run], running: Sequence[Run], free: Free, now_s: float) -> Fraction:
    """Return how many GPUs the waiting jobs could use now."""
    used = Fraction(0)
    claim: _Claim | None = None
    for run in waiting:
        limit_s = 60.0 * run.job.limit_min
        for shape, nodes in _fitting(run.job.shapes, free):
            left = _less(claim.free, shape, nodes) if claim else free
            harmless = claim is None or now_s + limit_s <= claim.at_s
            if claim and not harmless and claim.fits(left):
                claim, harmless = _Claim(claim.at_s, left, claim.shapes), True
            if harmless:
                free, used = _less(free, shape, nodes), used + shape.amount
                break
        else:
            claim = claim or _earliest(run.job.shapes, running, free)
    return used


@dataclass(frozen=True, slots=True)
class _Claim:
    """When the first waiting job can start at the latest, and what is free then."""

    at_s: float
    free: Free
    shapes: tuple[Shape, ...]

    def fits(self, free: Free) -> bool:
        """Whether one of the job's shapes still fits."""
        return next(_fitting(self.shapes, free), None) is not None


def _earliest(shapes: tuple[Shape, ...], running: Sequence[Run], free: Free) -> _Claim | None:
    """Return the claim of a job for which nothing fits now; None if it never fits."""
    for run in sorted(running, key=lambda run: (run.limit_end_s, run.job.name)):
        free = _less(free, run.shape, run.nodes, sign=-1)
        claim = _Claim(run.limit_end_s, free, shapes)
        if claim.fits(free):
            return claim
    return None


def _fitting(shapes: Sequence[Shape], free: Free) -> Iterator[tuple[Shape, tuple[str, ...]]]:
    """Yield the shapes that fit, largest first, each with the fullest nodes that have room."""
    for shape in reversed(shapes):
        need = Fraction(shape.gpus, shape.share)
        # A part may go onto a GPU that is shared already; whole GPUs must be wholly free.
        have = {
            node: left if shape.is_share else Fraction(int(left)) for node, left in free.items()
        }
        room = sorted((left, node) for node, left in have.items() if left >= need)
        if len(room) >= shape.nodes:
            yield shape, tuple(node for _, node in room[: shape.nodes])


def _less(free: Free, shape: Shape, nodes: Sequence[str], sign: int = 1) -> Free:
    need = sign * Fraction(shape.gpus, shape.share)
    return {node: left - need if node in nodes else left for node, left in free.items()}
