"""What may be done to a waiting job, by the batch system's Reason.

=================================  =========  ====================================================
Reason                             gate       what follows
=================================  =========  ====================================================
Resources, Priority                mold       any allowed shape
Nodes required for job are DOWN …  mold       the same: shown where another partition's first job
                                              waits for the same nodes; their state is in the
                                              snapshot
ReqNodeNotAvail, UnavailableNodes  mold       the same, where the job itself names no nodes
ReqNodeNotAvail, May be reserved   mold       the same: reservations are in the snapshot. A fence of
for other job                                 ours leaves it behind until Slurm looks again
None, or nothing yet               new        not judged by the batch system yet: it counts in the
                                              queue, at the shape it carries
QOS*, Assoc*, Max*PerAccount that  smaller    only shapes smaller than the one it carries, and none
limit cores, memory, nodes, GRES              larger again until the Reason changes; where Pliant
                                              made it larger than its user wrote, given back. What
                                              is limited stays, where it is cores, memory or nodes:
                                              Slurm would ask no limit on them any more
everything else                    leave      not counted, and only given back what its user wrote:
                                              held, dependency, begin time, licences, limits on
                                              jobs or run time …
=================================  =========  ====================================================

Some Reasons may follow from a shape that Pliant chose: the job, as it is then, can never start.
It is given back, and these shapes are left out from then on (:func:`forbidden`), or the next cycle
would choose them again, and the job would never keep the reservation that backfill makes for it:

=================================  ===============================================================
Reason                             shapes left out
=================================  ===============================================================
PartitionNodeLimit: "The number    those on as many nodes
of nodes required by this job is
outside of its partition's
current limits."
QOSMinNode                         those on as many nodes and fewer
QOSMin*, AssocMin* of cores,       the shape, and all that have no more GPUs
memory, GRES, billing
other limits of cores, memory,     all that are more than its user wrote, where it carries such one
nodes, GRES
=================================  ===============================================================

Where a limit may bound a job (:meth:`Abilities.may_be_limited`), none of its shapes is more than
its user wrote to begin with: waiting for a limit it would lose the turn that it has as written. And
behind a job that waits for a limit that they may share, none is less (see :mod:`.bounds`).

What is not about a shape (Dependency, JobHeld*, BeginTime, JobArrayTaskLimit, licences, limits on
jobs or run time) leaves none out. The Reasons are those of squeue(1), "JOB REASON CODES".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache

from pliant.cycle.bounds import (
    LIMITS,
    Ahead,
    Bounds,
    first_ahead,
    own_of,
    own_stands,
    some_wait_for_all,
    unchanged,
)
from pliant.cycle.running import as_running
from pliant.grammar import no_larger
from pliant.grammar import shapes as request_shapes
from pliant.model import Abilities, Job, Kind, Mode, Request, Shape, Snapshot


class Gate(StrEnum):
    """What may be done to a waiting job."""

    MOLD = "mold"
    NEW = "new"
    SMALLER = "smaller"
    LEAVE = "leave"


_MOLD = frozenset({"Resources", "Priority"})
_NODES_TAKEN = "Nodes required for job are DOWN, DRAINED or reserved"
_NOT_NOW = ("ReqNodeNotAvail, UnavailableNodes", "ReqNodeNotAvail, May be reserved")
_NEW = frozenset({"None", ""})
_OF_SHAPES = ("cpu", "mem", "node", "gres", "tres", "billing")
_NODES_OUTSIDE = "partitionnodelimit"
_LEAST = ("qosmin", "assocmin")
_WAIVED = (("cpu", "ncpus"), ("mem", "mem"), ("node", "nodect"))
_OF_TRES = (*_OF_SHAPES, "unknown")


def gate(reason: str, *, names_nodes: bool = False) -> Gate:
    """Return what the batch system's Reason for waiting allows.

    ``names_nodes``: the job itself requires certain nodes.
    """
    return _gate(reason, names_nodes)


@lru_cache(maxsize=1024)
def _gate(reason: str, names_nodes: bool) -> Gate:
    if reason in _MOLD or reason.startswith(_NODES_TAKEN):
        return Gate.MOLD
    if reason.startswith(_NOT_NOW) and not names_nodes:
        return Gate.MOLD
    if reason in _NEW:
        return Gate.NEW
    words = reason.lower().replace("minutes", "").replace("runmins", "")
    of_shapes = any(word in words for word in _OF_SHAPES) and "min" not in words
    if reason.startswith(LIMITS) and of_shapes:
        return Gate.SMALLER
    return Gate.LEAVE


def gate_of(job: Job) -> Gate:
    """Return what may be done to a waiting job.

    Reasons may be gone once slurmctld has started again, or its backup has taken over (22.05). A
    job of which it says where it expects to start is not new: it waits for resources.
    """
    chosen = _gate(job.reason, bool(job.nodes_required))
    return Gate.MOLD if chosen is Gate.NEW and job.expected_nodes else chosen


def goes_back(job: Job, off: frozenset[str]) -> bool:
    """Whether a job that does not take part carries what Pliant set and may be given its own.

    Its turn can come at any time without a look of ours in between: the next task of an array,
    a limit on jobs, a requeued job. ``off``: the partitions where Pliant is off.
    """
    return (
        not job.eligible
        and not job.limited
        and carries_ours(job)
        and off.isdisjoint(job.partitions)
        and gate_of(job) is Gate.LEAVE
    )


def carries_ours(job: Job) -> bool:
    """Whether a waiting job carries what Pliant set, and may be given what its user wrote."""
    spec = job.spec
    if spec is None or spec.own is None or spec.pinned or job.frozen:
        return False
    return spec.set == job.shape != spec.own


def forbidden(job: Job) -> tuple[Shape, ...]:
    """Return the shapes that a job's Reason forbids, where Pliant chose the one that it carries.

    Never the shape that its user wrote.
    """
    if not carries_ours(job) or job.spec is None:
        return ()
    shapes = {job.shape, *job.shapes} - {job.spec.own}
    return tuple(sorted(shape for shape in shapes if _forbids(job, shape)))


def _forbids(job: Job, shape: Shape) -> bool:
    words = job.reason.lower()
    if words == _NODES_OUTSIDE:
        return shape.nodes == job.shape.nodes
    if is_grown(job):
        return _is_more(shape, own_of(job))
    if not words.startswith(_LEAST) or not any(word in words for word in _OF_TRES):
        return False
    if "node" in words:
        return shape.nodes <= job.shape.nodes
    return shape.amount <= job.shape.amount


def is_grown(job: Job) -> bool:
    """Whether a job waits for a limit, and Pliant did not make it smaller than its user wrote.

    Where the user has ruled that out since, what it carries is the user's word and not Pliant's.
    """
    limited = gate_of(job) is Gate.SMALLER and carries_ours(job) and own_stands(job)
    return limited and _is_more(job.shape, own_of(job))


def grown(job: Job) -> tuple[Shape, ...]:
    """Return all shapes that are more than its user wrote, where Pliant gave the job such one."""
    own = own_of(job)
    if not carries_ours(job) or not _is_more(job.shape, own):
        return ()
    return tuple(shape for shape in {job.shape, *job.shapes} - {own} if _is_more(shape, own))


def _is_more(shape: Shape, own: Shape) -> bool:
    """Whether it is not less than the own shape in every respect."""
    return shape.amount >= own.amount or shape not in no_larger((shape, own), own)


def excluded(job: Job) -> bool:
    """Whether a waiting job carries what its owner has ruled out since, and can be changed."""
    left = job.frozen or job.spec is None or job.spec.pinned or not job.spec.renewed
    return not left and bool(job.shapes) and job.shape not in job.shapes


def allowed_shapes(
    request: Request, own: Shape, carried: Shape, abilities: Abilities
) -> tuple[Shape, ...]:
    """Return the shapes of a request that a waiting job can still be changed to.

    Some changes of kind are not possible on a waiting job (see Abilities). The carried shape
    alone where nothing else is left.
    """
    shapes = request_shapes(request, own)
    return tuple(s for s in shapes if can_become(carried, s, abilities)) or (carried,)


def can_become(carried: Shape, shape: Shape, abilities: Abilities) -> bool:
    """Whether a waiting job that carries one shape can be changed to another here.

    Where it could not be changed back it is not: the next cycle would decide anew without the
    shapes that this one has made impossible. But cores may be given up for a GPU.
    """
    was_cpu, is_cpu = carried.kind is Kind.CPU, shape.kind is Kind.CPU
    if was_cpu and not is_cpu:
        return abilities.cpu_to_gpu
    if is_cpu and not was_cpu:
        return abilities.gpu_to_cpu and abilities.cpu_to_gpu
    if carried.is_share is not shape.is_share and not is_cpu:
        return abilities.share_to_whole and abilities.whole_to_share
    return True


def why_left(snapshot: Snapshot, job: Job) -> str:
    """Return why the shape of a waiting job is not changed, in words; "" where it may be."""
    chosen = gate_of(job)
    off = [name for name in job.partitions if _is_off(snapshot, name)]
    behind = first_ahead(snapshot, job)
    judged = Bounds(snapshot).why_judged(job)
    checks = (
        (job.frozen != "", job.frozen),
        (job.spec is not None and job.spec.pinned, "its owner pinned it"),
        (job.shapes in ((), (job.shape,)), "it asks for one shape only"),
        (bool(off), f"Pliant is off in partition {''.join(off[:1])}"),
        (behind != "", f"job {behind} before it waits for a limit that may be its own too"),
        (judged != "", judged),
        (chosen is Gate.NEW, "the batch system has not said yet why it waits"),
        (chosen is Gate.LEAVE, f"it waits for another reason than free resources: {job.reason}"),
    )
    return next((words for holds, words in checks if holds), "")


def partitions_off(snapshot: Snapshot) -> frozenset[str]:
    """Return the partitions where Pliant is off."""
    return frozenset(p.name for p in snapshot.partitions if p.mode is Mode.OFF)


def _is_off(snapshot: Snapshot, partition: str) -> bool:
    known = snapshot.partition_by_name.get(partition)
    return known is not None and known.mode is Mode.OFF


def view(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as policies see it: each waiting job as its gate leaves it.

    And each running job with no more than may be done to it (see :mod:`.running`).

    Doing it twice changes nothing more.
    """
    if snapshot.is_plain:
        return snapshot
    off, bounds = partitions_off(snapshot), Bounds(snapshot)
    seen: Iterable[Job] = [_seen(job, off) for job in snapshot.waiting]
    if some_wait_for_all(snapshot):
        seen = _behind_others(snapshot, seen)
    preempts = snapshot.abilities.preempts
    running = tuple(
        [as_running(job, off, preempts, now_s=snapshot.now_s) for job in snapshot.running]
    )
    waiting = tuple([bounds.within(job) for job in seen])
    return replace(snapshot, waiting=waiting, running=running)


def _behind_others(snapshot: Snapshot, seen: Iterable[Job]) -> Iterator[Job]:
    """The jobs as they are seen, and none sooner than one before it that waits for its limit."""
    ahead = Ahead(snapshot)
    for job, as_seen in zip(snapshot.waiting, seen, strict=True):
        yield _no_sooner(job, as_seen) if ahead.of(job) else as_seen
        ahead.add(job)


def _no_sooner(job: Job, seen: Job) -> Job:
    """A job behind one that waits for a limit that they share: nothing less than its user wrote."""
    if seen.limited:
        return replace(job, eligible=False, limited=True)
    own = own_of(job)
    left = tuple(s for s in seen.shapes if s.amount >= own.amount)
    return seen if left in ((), seen.shapes) else replace(seen, shapes=left)


def _seen(job: Job, off: frozenset[str]) -> Job:
    if not job.eligible and not job.reason.startswith(LIMITS):
        return job
    chosen = gate_of(job)
    if chosen is Gate.LEAVE:
        return replace(job, eligible=False) if job.eligible else job
    if job.limited:
        return job
    fixed = chosen is Gate.NEW or job.frozen or (off and not off.isdisjoint(job.partitions))
    fixed = fixed or (job.spec is not None and job.spec.pinned)
    if chosen is Gate.SMALLER:
        return _smaller(job, () if fixed else job.shapes)
    if fixed and job.shapes != (job.shape,):
        return replace(job, shapes=(job.shape,))
    return job


def _limited_in(reason: str) -> frozenset[str]:
    """What a limit is on that Slurm would ask no more once Pliant has changed it (see bounds)."""
    words = reason.lower().replace("pernode", "")
    return frozenset(name for word, name in _WAIVED if word in words)


def _smaller(job: Job, shapes: tuple[Shape, ...]) -> Job:
    """A job that waits for a limit: it may start smaller than what the limit refused."""
    refused = job.shape in job.refused or job.spec is None or job.spec.set != job.shape
    held_to = unchanged(job, _limited_in(job.reason))
    less = tuple(s for s in shapes if 0 < s.amount < job.shape.amount and s in held_to)
    if not refused or not less or excluded(job):
        return replace(job, eligible=False, limited=True)
    return replace(job, shapes=less, eligible=True, limited=True)
