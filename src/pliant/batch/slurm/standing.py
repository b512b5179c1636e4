"""Whether a job that waits between two runs still says what it said, or what we made it say. Pure.

Else its owner, or an administrator, has changed it since, and wins. A part of what we asked may
have been taken where Slurm refused the rest: so each thing may be as it was or as it is to be. Once
all of it was seen to be taken, it is as it is to be: its token says so too, unless a slurmctld that
was killed has forgotten both.

What Slurm itself rewrites at a requeue is nobody's update (read in its source, measured on 22.05):

- it begins cred_expire and a second later (``requeue_delay`` from 25.11 on) than it was submitted
  anew, unless it was told meanwhile to begin later than that moment;
- it forgets what the job depended on when it starts: after that a dependency is its owner's;
- a job of several partitions, which shows the one in which it ran, shows all of them again;
- before 26.05.3 a pass of backfill may write back the time limit that it saw before ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import FOR_NOW
from pliant.batch.slurm.lent import has_its_memory
from pliant.batch.slurm.request import Asked, asked, least_cpus
from pliant.batch.slurm.requested import CHANGED, Requested, partitions_of, requested, spec_of
from pliant.batch.slurm.update import by_another, wanted
from pliant.batch.slurm.values import NOTHING, duration_s, instant_s
from pliant.errors import BadAnswer, Refused
from pliant.handover import FRESH_S, HandOver
from pliant.model import Job

ROUNDED_S = 2.0
"""Slurm counts in whole seconds, and submits a job anew one later where it was just submitted."""


def stands(row: JobRow, job: Job, over: HandOver, cluster: Cluster) -> bool:
    """Whether a waiting job asks for what it asked, ``job``, or is to ask; see begins_by_others."""
    try:
        said = requested(replace(row, array_tasks="N/A"), cluster)  # a task has a record of its own
        return (
            _says_the_same(said, job)
            and row.dependency in NOTHING
            and (row.licenses in NOTHING or job.frozen != "")  # none with licences is asked
            and not _is_elsewhere(row, said, job)
            and has_its_memory(row, cluster.default_per_cpu_mib)
            and not _asks_otherwise(row, said, job, over, cluster)
            and not _may_run_longer(row, job, over)
        )
    except BadAnswer:  # nothing that we write is
        return False


def begins_by_others(row: JobRow, over: HandOver, delay_s: float, now_s: float) -> bool:
    """Whether somebody else lets a job begin later: neither Slurm's requeue nor our reshape does.

    ``delay_s``: how much later it may begin than it was requeued; ``now_s``: by whichever clock is
    ahead, ours or slurmctld's, which takes what is past for its now. Once ours was seen since it
    was requeued, Slurm's is past, but where a slurmctld that was killed has forgotten ours: then
    its shape is forgotten, too, unless that is as it was.
    """
    begins_s, submit_s = instant_s(row.eligible), instant_s(row.submit)
    later_s, seen = begins_s - submit_s, over.begin_s > submit_s
    kept = seen and over.shape != over.before and _is_made(row, over)
    by_slurm = abs(later_s - delay_s) <= ROUNDED_S and not kept
    fresh = later_s == FRESH_S  # as a pliantd may have told it that was killed since
    by_us = begins_s == over.begin_s if seen else fresh or begins_s == over.told_s
    return not (by_slurm or by_us or begins_s <= now_s + ROUNDED_S)


def _is_made(row: JobRow, over: HandOver) -> bool:
    """Whether its token says that it was given the shape that it is to have."""
    noted = spec_of(row.admin_comment)
    return not over.back_s and noted is not None and noted.set == over.shape


def left_min(over: HandOver, begin_s: float) -> int:
    """Return what is left of a time limit in whole minutes: one at least, else it began anew."""
    return max(1, int(over.end_s - begin_s) // 60)


def _says_the_same(said: Requested, job: Job) -> bool:
    """Whether its token says what it said: ``pliant set`` and ``pin`` write it too."""
    now, then = said.spec, job.spec
    if now is None or then is None:
        return False
    return (now.request, now.pinned) == (then.request, then.pinned)


def _is_elsewhere(row: JobRow, said: Requested, job: Job) -> bool:
    """Whether it is to run for another account, or somewhere else than when it was asked."""
    unnamed = job.mark != "" and not said.nodes_required  # the mark's node: by us
    same = (
        (_text(row.account), _text(row.qos).lower()) == (job.account, job.qos),
        _text(row.reservation) == job.reservation,
        not set(job.partitions).isdisjoint(partitions_of(row.partition)),
        said.features == job.features,
        said.nodes_excluded == job.nodes_excluded,
        unnamed or said.nodes_required == job.nodes_required,
    )
    return not all(same)


def _asks_otherwise(
    row: JobRow, said: Requested, job: Job, over: HandOver, cluster: Cluster
) -> bool:
    """Whether something that it asks is neither as it was nor as it is to be.

    Of one whose form was odd before nothing is changed, and nothing can be told.
    """
    found = asked(row, job.footprint, cluster.default_per_cpu_mib)
    if job.frozen and job.frozen not in FOR_NOW:
        return False
    noted = spec_of(row.admin_comment)
    assert noted is not None  # noqa: S101  # it says the same as it did
    says_shape = noted.own is not None
    if says_shape and not (said.frozen.startswith(CHANGED) or found.odd):
        return False  # its token accounts for it
    made = over.made and _is_made(row, over)
    shapes = (over.shape,) if made else (job.shape, over.shape)
    try:
        forms = [wanted(job, shape, job.flag, cluster) for shape in shapes]
    except Refused:
        return True
    if not says_shape:
        return found.odd != "" or _is_neither(found, forms) or _asks_other_cpus(row, job, forms)
    mems = {form.mem_mib for form in forms}
    memory = 0 not in mems and found.mem_mib not in mems
    return memory or found.odd != "" or by_another(found, forms)


def _is_neither(found: Asked, forms: Sequence[Asked]) -> bool:
    """Whether a job whose submission got no answer asks for what it neither had nor is to have.

    Its token says no shape, and how it ran is what it was given: whole cores, a type of GPU, and as
    many nodes as Slurm chose. So fewer CPUs in all are no change, nor are other nodes with as much
    on each or in all.
    """

    def differ(name: str) -> Iterator[int]:
        many = getattr(found, name)
        for form in forms:
            each = getattr(form, name)
            yield min(many - each, found.nodes * many - form.nodes * each, key=abs)

    other = any(all(differ(name)) for name in ("gpus", "shards", "tasks"))
    types = {"", *(form.gpu_type for form in forms)}
    return other or found.gpu_type not in types or min(differ("cpus")) > 0


def _asks_other_cpus(row: JobRow, job: Job, forms: Sequence[Asked]) -> bool:
    """Whether a task's or a node's least CPUs are neither as they were nor as they are to be."""
    if not job.cpus_asked:  # an earlier pliantd has not stored it
        return False
    per_task, least = least_cpus(row)
    return per_task not in (job.cpus_asked[0], *(form.cpus_per_task for form in forms)) or (
        least not in (job.cpus_asked[1], *(form.cpus for form in forms))
    )


def _may_run_longer(row: JobRow, job: Job, over: HandOver) -> bool:
    """Whether it was given more time: less than it has is its owner's to say, and stands."""
    limit_s = duration_s(row.time_limit) or inf
    if not over.end_s:
        return job.longest_s < limit_s
    if not job.nodes:  # as it waits now: how it ran when it was asked 0.1.0 did not store
        return False
    was_s = job.limit_shown_s or over.end_s - job.start_s  # in whole minutes, as Slurm shows it
    as_it_was = abs(limit_s - was_s) < 60
    return limit_s > left_min(over, instant_s(row.submit)) * 60 and not as_it_was


def _text(text: str) -> str:
    return "" if text in NOTHING else text
