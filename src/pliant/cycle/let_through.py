"""Which changes of running jobs are let through, of those that a policy decides on.

None grows onto a node on which the batch system expects to start a waiting job meanwhile. And none
goes back to the queue where it, or its guest, could start on what is kept for a job that waits:
both are pinned before all others there, and on which of the nodes that have room for it a job
starts is the batch system's choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pliant.cycle.leftover import guest_strays, leftover
from pliant.model import Snapshot
from pliant.placement import Free, limit_s
from pliant.placement.giving_up import settled
from pliant.plan import Plan, Reshape

EXPECTED = "the batch system expects to start a waiting job where it would grow"
STRAYS = "the batch system could start job {} on {}, which is kept for another one that waits"


def let_through(seen: Snapshot, plan: Plan) -> Plan:
    """Return the plan without what is withheld of it."""
    why = withheld(seen, plan)
    if not why:
        return plan
    reshapes = tuple(one for one in plan.reshapes if one.job.id not in why)
    preempts = tuple(one for one in plan.preempts if one.job.id not in why)
    return replace(plan, reshapes=reshapes, preempts=preempts)


def withheld(seen: Snapshot, plan: Plan) -> Mapping[str, str]:
    """Return why some changes are not let through, by running job.

    Of several jobs that make room for the same guest all are, or none.
    """
    if not plan.changes_running or seen.is_plain:
        return {}
    free = leftover(settled(seen), plan)
    why = dict(_reshapes_withheld(seen, plan, free))
    for guest in {one.room_for: None for one in plan.preempts}:
        why |= _withheld_for(guest, seen, plan, free)
    return why


def _reshapes_withheld(seen: Snapshot, plan: Plan, free: Free) -> Iterator[tuple[str, str]]:
    kept_s = _expected_s(seen, plan)
    for one in plan.reshapes:
        if _grows_into(seen, one, kept_s):
            yield one.job.id, EXPECTED
        elif node := free.on_kept(one.job, one.shape, (one.job,), one.nodes):
            yield one.job.id, STRAYS.format(one.job.id, node)


def _withheld_for(room_for: str, seen: Snapshot, plan: Plan, free: Free) -> Mapping[str, str]:
    """Why nobody makes room for a job, by who would."""
    preempts = [one for one in plan.preempts if one.room_for == room_for]
    victims, mine = [one.job for one in preempts], frozenset({room_for})
    guest = next((job for job in seen.waiting if job.id == room_for), None)
    words = ""
    for job in victims:
        node = free.on_kept(job, job.shape, (job,), job.nodes, beside=mine)
        words = words or (STRAYS.format(job.id, node) if node else "")
    if guest is not None and not words:
        shape, nodes = preempts[0].shape or guest.shape, [n for job in victims for n in job.nodes]
        if free.on_kept(guest, shape, victims, nodes, beside=mine):  # of all claims: a quick look
            node = guest_strays(seen, plan, replace(guest, next_shape=shape), victims)
            words = STRAYS.format(guest.id, node) if node else ""
    return {job.id: words for job in victims} if words else {}


def _expected_s(seen: Snapshot, plan: Plan) -> dict[str, float]:
    """By when the batch system expects to start a waiting job there, by node."""
    starts = {start.job.id for start in plan.starts}
    kept_s: dict[str, float] = {}
    for job in seen.waiting:
        if job.eligible and job.id not in starts:
            for node in job.expected_nodes:
                kept_s[node] = min(kept_s.get(node, job.expected_s), job.expected_s)
    return kept_s


def _grows_into(seen: Snapshot, reshape: Reshape, kept_s: Mapping[str, float]) -> bool:
    """Whether it takes more on a kept node than the job has there, for longer than it is free."""
    job, end_s = reshape.job, seen.now_s + limit_s(reshape.job)
    less = reshape.shape.gpus * job.shape.share <= job.shape.gpus * reshape.shape.share
    return any(
        kept_s.get(node, end_s) < end_s and not (less and node in job.nodes)
        for node in reshape.nodes
    )
