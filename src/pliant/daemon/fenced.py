"""What is seen without the fences of hand-overs: whom they are for is there instead.

On Slurm a fence is a reservation, which closes its nodes as a whole. So where another hand-over is
to have its place beside it, only what that is for is taken there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.batch import FENCE
from pliant.daemon.handing import Wanted
from pliant.model import Snapshot
from pliant.placement.giving_up import arrived, without


def unfenced(snapshot: Snapshot, under_way: Mapping[str, Wanted], own: str) -> Snapshot:
    """Return what was seen as if guests were where room is made for them, and without the fences.

    ``under_way``: what running jobs are to become, by id; ``own``: whose fence is in nobody's way.
    Who returns to its place is there already (see :meth:`.Elastic.arriving`). Where nobody knows
    what a fence is for, or that has no room, it stands.
    """
    fallen = {f"{FENCE}{own}"}
    for fence in snapshot.reservations:
        job = fence.name.removeprefix(FENCE)
        wanted = under_way.get(job)
        if wanted is None or job in (own, fence.name):
            continue
        seen = _with_guest(snapshot, job, wanted) if wanted.guest else snapshot
        if any(one.id == (wanted.guest or job) for one in seen.running):
            snapshot, fallen = seen, {*fallen, fence.name}
    left = tuple(one for one in snapshot.reservations if one.name not in fallen)
    return replace(snapshot, reservations=left)


def _with_guest(snapshot: Snapshot, victim: str, wanted: Wanted) -> Snapshot:
    """The same with a guest in its victim's place, where it is known and has room there."""
    asks = wanted.asks  # 0.1.0 did not note it
    if asks is None or any(one.id == wanted.guest for one in snapshot.running):
        return snapshot
    shape = asks.next_shape or asks.shape
    guest = replace(asks, shape=shape, shapes=(shape,), nodes=wanted.nodes, next_shape=None)
    leaves = [one for one in snapshot.running if one.id == victim]
    return arrived(without(snapshot, leaves), [guest] * (len(wanted.nodes) == shape.nodes))
