"""Whether a waiting job asks for more than what it is to have before all others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from pliant.model.jobs import Job
from pliant.model.limits import totals

ONE_OF_ARRAY = "it is a single waiting task of an array"
"""Why a task that has a record of its own is not changed: of itself that says nothing of what it
asks."""
_LATER = ("Dependency", "Licenses")
"""How the Reasons begin of jobs whose owners have let them wait for something: squeue(1)."""


def asks_otherwise(job: Job, had: Job) -> bool:
    """Whether a waiting job asks for more than it had, elsewhere, or more than a trial job may."""
    longer = had.longest_s < (job.time_limit_s or inf)
    changed = job.frozen not in ("", had.frozen, ONE_OF_ARRAY)
    later = not job.eligible or job.reason.startswith(_LATER)
    told = longer or later or changed or job.ordinary != "" or job.spec is None
    return told or _is_larger(job, had) or _place(job, job.mark) != _place(had, job.mark)


def _is_larger(job: Job, had: Job) -> bool:
    spec = job.spec
    expected = (spec.set or spec.own) if spec is not None else None
    if job.shape.amount > min(had.shape.amount, expected.amount if expected else inf):
        return True
    asks, then = (totals(j.shape.nodes, j.demand(j.shape)) for j in (job, had))
    return _cores(asks) > _cores(then) or 0 < then["mem"] < asks["mem"]


def _cores(has: Mapping[str, int]) -> float:
    """All cores of a node are a number below zero."""
    return has["ncpus"] if has["ncpus"] >= 0 else inf


def _place(job: Job, mark: str) -> tuple[object, ...]:
    """Where a job is to run, and for whom; with a ``mark`` of ours its node may be ours too."""
    required = () if mark else job.nodes_required
    for_whom = (job.account, job.qos, job.reservation)
    return (*for_whom, {*job.partitions}, required, job.nodes_excluded, job.features)
