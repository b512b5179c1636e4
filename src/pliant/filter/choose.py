"""Which of a submission's shapes it gets: one that fits right now, or the one to wait with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from pliant.filter.case import Case, has_cpu
from pliant.filter.fields import number
from pliant.filter.view import FreeLike, View
from pliant.grammar import no_larger
from pliant.model import Job, Kind, Shape


def waiting_shape(case: Case, molds: bool) -> Shape:
    """Return the shape to wait with: the own one, else the nearest to it, else the largest.

    A job that may run on CPUs waits so where a waiting job cannot give up its GPUs, but not where
    its cores may be beyond a limit. Where a submission beyond a limit may be refused or have to
    wait for it, the smallest stands in for the largest; so it does where the job names nodes or
    features, which not all of them may have.
    """
    own, possible, abilities = case.own, case.possible, case.inventory.abilities
    careful = abilities.limits_deny or case.may_be_limited
    if careful and own in possible:
        return own
    if has_cpu(possible) and molds and not abilities.gpu_to_cpu:
        possible = tuple(shape for shape in possible if shape.kind is Kind.CPU)
    if own is None:
        choose = min if careful or case.is_choosy else max
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


def shape_now(
    case: Case, base: Shape, submission: Mapping[str, str], view: View, fresh: bool
) -> Shape | None:
    """Return the best shape that fits into the hole right now, and take it from there.

    Never another than the waiting shape where a submission beyond a limit is refused, be it for
    its size: a cycle may change it as soon as it waits. Never more than the owner wrote where
    that may be beyond a limit, or where others were submitted since the look (``fresh`` is false),
    who may have what seemed free: the job would wait, and lose its turn.
    """
    free = _free_for(case, submission, view)
    if free is None:
        return None
    job = _as_job(case, base, submission)
    some = case.best_first
    if case.may_be_limited or not fresh:
        bound = no_larger(case.possible, case.own or base)
        some = [shape for shape in some if shape in bound]
    some = _no_smaller(case, some, limits_wait=view.limits_wait)
    with_gpu = [shape for shape in some if shape.kind is not Kind.CPU]
    for shape in with_gpu or some:
        nodes = free.fit(job, shape)
        if nodes is not None:
            free.take(job, shape, nodes)
            return shape
    return None


def none_starts_now(case: Case, submission: Mapping[str, str], view: View) -> bool:
    """Whether no such job gets a shape to start in now, however little time and memory it asks."""
    free = _free_for(case, submission, view)
    if free is None:
        return True
    job = _as_job(case, case.possible[0], submission)
    least = replace(job, time_limit_s=60, footprint=case.without_memory)
    return all(free.fit(least, shape) is None for shape in case.possible)


def _free_for(case: Case, submission: Mapping[str, str], view: View) -> FreeLike | None:
    """Return what is free; None where that is no reason to give such a job another shape."""
    chooses = view.molds and not case.inventory.abilities.limits_deny
    return view.free if chooses and _can_start(submission) else None


def _no_smaller(case: Case, some: list[Shape], *, limits_wait: bool) -> list[Shape]:
    """Leave out what is smaller than the own shape where that one would start sooner or alone.

    Slurm would end others to make room for it, or its QOS asks for so much at least; or it would
    have what another job, that waits for the same limit, is to have first.
    """
    own, behind = case.own, limits_wait and case.may_be_limited
    if own is None or not (case.preempts or case.may_be_too_small or behind):
        return some
    return [shape for shape in some if shape.amount >= own.amount]


_LATER = ("array_inx", "dependency", "req_nodes", "exc_nodes", "licenses")
"""Fields of jobs that wait for more than GPUs, or that the snapshot says little about."""


def _can_start(submission: Mapping[str, str]) -> bool:
    if number(submission, "priority") == 0 or number(submission, "begin_time"):
        return False
    if any(submission.get(name) for name in _LATER):
        return False
    return all(sign not in submission.get("features", "") for sign in "|[]()*,:")


def _as_job(case: Case, base: Shape, submission: Mapping[str, str]) -> Job:
    names = submission.get("partition", "")
    features = submission.get("features", "")
    return Job(
        id="",
        partitions=tuple(partition.name for partition in case.inventory.partitions(names)),
        shape=base,
        shapes=case.possible,
        footprint=case.written.taken,
        spec=case.spec,
        time_limit_s=60 * (number(submission, "time_limit") or 0),
        features=frozenset(word for word in features.split("&") if word),
    )
