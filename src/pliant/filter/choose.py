"""Which of a submission's shapes it gets: one that fits right now, or the one to wait with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from pliant.filter.case import Case, has_cpu
from pliant.filter.fields import number
from pliant.model import Job, Kind, Request, Shape, Spec


def waiting_shape(case: Case, own: Shape | None) -> Shape:
    """Return the shape to wait with: the own one, else the nearest to it, else the largest.

    A job that may run on CPUs waits so where a waiting job cannot give up its GPUs. Where a
    submission beyond a limit is refused, the smallest stands in for the largest.
    """
    possible = case.possible
    if has_cpu(possible) and case.view.molds and not case.view.abilities.gpu_to_cpu:
        possible = tuple(shape for shape in possible if shape.kind is Kind.CPU)
    if own is None:
        choose = min if case.view.abilities.limits_deny else max
        return choose(possible, key=lambda shape: (shape.amount, -shape.nodes, shape))
    if own in possible:
        return own
    return min(possible, key=lambda shape: (*_distance(shape, own), shape))


def _distance(shape: Shape, own: Shape) -> tuple[bool, Fraction, int]:
    return (
        shape.kind is not own.kind,
        abs(shape.amount - own.amount),
        abs(shape.nodes - own.nodes),
    )


def shape_now(case: Case, base: Shape) -> Shape | None:
    """Return the best shape that fits into the hole right now, and take it from there.

    Never more than the waiting shape where a submission beyond a limit is refused.
    """
    free = case.view.free
    if free is None or not case.view.molds or not _can_start(case.submission):
        return None
    job = _as_job(case, base)
    bounded = case.view.abilities.limits_deny
    some = [shape for shape in case.possible if not bounded or _within(shape, base)]
    some = _worth_preempting(case, some)
    with_gpu = [shape for shape in some if shape.kind is not Kind.CPU]
    for shape in sorted(with_gpu or some, key=_worth(case.request), reverse=True):
        nodes = free.fit(job, shape)
        if nodes is not None:
            free.take(job, shape, nodes)
            return shape
    return None


def _worth_preempting(case: Case, some: list[Shape]) -> list[Shape]:
    """Leave out what is smaller than the own shape where Slurm would make room for that one."""
    own, names = case.written.own, case.submission.get("partition", "")
    if own is None or not any(partition.preempts for partition in case.view.partitions(names)):
        return some
    return [shape for shape in some if shape.amount >= own.amount]


def _within(shape: Shape, base: Shape) -> bool:
    return shape.amount <= base.amount and shape.nodes <= base.nodes and shape.kind is base.kind


def _worth(request: Request) -> Callable[[Shape], tuple[float, Fraction, int, Shape]]:
    """Order shapes by the speed that the owner said, then by GPUs, then by fewer nodes."""
    speed = dict(request.throughput)

    def worth(shape: Shape) -> tuple[float, Fraction, int, Shape]:
        nodes = shape.nodes if shape.kind is Kind.CPU else -shape.nodes
        return (speed.get(shape, 0.0), shape.amount, nodes, shape)

    return worth


_LATER = ("array_inx", "dependency", "req_nodes", "exc_nodes", "licenses")
"""Fields of jobs that wait for more than GPUs, or that the snapshot says little about."""


def _can_start(submission: Mapping[str, str]) -> bool:
    if number(submission, "priority") == 0 or number(submission, "begin_time"):
        return False
    if any(submission.get(name) for name in _LATER):
        return False
    return all(sign not in submission.get("features", "") for sign in "|[]()*,:")


def _as_job(case: Case, base: Shape) -> Job:
    names = case.submission.get("partition", "")
    features = case.submission.get("features", "")
    return Job(
        id="",
        partitions=tuple(partition.name for partition in case.view.partitions(names)),
        shape=base,
        shapes=case.possible,
        footprint=case.written.footprint,
        spec=Spec(case.request),
        time_limit_s=60 * (number(case.submission, "time_limit") or 0),
        features=frozenset(word for word in features.split("&") if word),
    )
