"""Whether a waiting job asks for more than what it is to have before all others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from pliant.model.jobs import Job, JobState
from pliant.model.limits import totals

ONE_OF_ARRAY = "it is a single waiting task of an array"
"""Why a task that has a record of its own is not changed: of itself that says nothing of what it
asks."""
BEGUN_ARRAY = "an array that has begun keeps its shape"
"""Why the subjobs of one that wait are not changed on PBS, which says as little."""
_LATER = ("Dependency", "Licenses")
"""How the Reasons begin of jobs whose owners have let them wait for something: squeue(1)."""


def asks_otherwise(job: Job, had: Job) -> bool:
    """Whether a waiting job asks for more than it had, elsewhere, or more than a trial job may.

    ``had``: as it ran; a guest as it waited when room was decided on for it.
    """
    longer = had.longest_s < (job.time_limit_s or inf)
    changed = job.frozen not in ("", had.frozen, ONE_OF_ARRAY, BEGUN_ARRAY)
    later = not job.eligible or job.reason.startswith(_LATER)
    told = longer or later or changed or job.ordinary != "" or job.spec is None
    other = had.state is JobState.WAITING and _is_other(job, had)
    return told or other or _is_larger(job, had) or _place(job, job.mark) != _place(had, job.mark)


def _is_other(job: Job, had: Job) -> bool:
    """Whether a guest is one no more, or wants what its room was not chosen for."""
    if (job.is_trial, job.licenses) != (had.is_trial, had.licenses):
        return True
    is_all = job.demand(job.shape).mem_mib == 0 < had.demand(had.shape).mem_mib  # of a node
    is_spread = job.shape.nodes > had.shape.nodes
    return is_all or is_spread or job.shape.gpu_type != had.shape.gpu_type


def _is_larger(job: Job, had: Job) -> bool:
    most = had.shape.amount
    if had.state is not JobState.WAITING and job.spec is not None:
        expected = job.spec.set or job.spec.own
        most = min(most, expected.amount) if expected else most
    if job.shape.amount > most:
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
