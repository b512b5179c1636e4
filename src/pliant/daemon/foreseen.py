"""What is seen as it will be once what ends is gone, and hand-overs have come to what they are for.

On Slurm nothing starts on a node as long as something is ending there, nor where there is a fence,
which closes its nodes as a whole. But a job that has saved may wait for both. So beside it counts
what others are to have there, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.batch import FENCE
from pliant.daemon.handing import Wanted
from pliant.model import Job, JobState, Snapshot
from pliant.placement.giving_up import arrived, without

UnderWay = Mapping[str, Wanted]
"""What jobs are to become, by id."""


def foreseen(snapshot: Snapshot, under_way: UnderWay, own: str) -> Snapshot:
    """Return what was seen as if nothing were ending, and without the fences.

    ``own``: whose fence is in nobody's way. Those that return to their places, and guests for whom
    room is made behind a fence, are there. Who waits by now for its own is so already (see
    :meth:`.Elastic.arriving`). A fence stands where nobody knows what it is for, or that has no
    room.
    """
    snapshot = _once_ended(snapshot, under_way)
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


def _once_ended(snapshot: Snapshot, under_way: UnderWay) -> Snapshot:
    """The same without those that are ending, but with where they go on."""
    if all(node.once_ended is None for node in snapshot.nodes):
        return snapshot
    ending = [one for one in snapshot.running if one.state is JobState.ENDING]
    back = [_at(one, under_way[one.id]) for one in ending if one.id in under_way]
    nodes = tuple(node.once_ended or node for node in snapshot.nodes)
    left = tuple(one for one in snapshot.running if one.state is not JobState.ENDING)
    there = [one for one in back if len(one.nodes) == one.shape.nodes and not one.room_for]
    return arrived(replace(snapshot, nodes=nodes, running=left), there)


def _at(job: Job, wanted: Wanted) -> Job:
    """A job where it will go on, as that."""
    shape = wanted.shape
    became = replace(job, shape=shape, shapes=(shape,), nodes=wanted.nodes)
    return replace(became, next_shape=None, next_nodes=(), room_for=wanted.guest)


def _with_guest(snapshot: Snapshot, victim: str, wanted: Wanted) -> Snapshot:
    """The same with a guest in its victim's place, where it is known and has room there."""
    asks = wanted.asks  # 0.1.0 did not note it
    if asks is None or any(one.id == wanted.guest for one in snapshot.running):
        return snapshot
    shape = asks.next_shape or asks.shape
    shape = replace(shape, nodes=max(shape.nodes, len(wanted.nodes)))  # it may be on any of these
    guest = _at(asks, replace(wanted, shape=shape, guest=""))
    leaves = [one for one in snapshot.running if one.id == victim]
    fits = len(guest.nodes) == shape.nodes
    return arrived(without(snapshot, leaves), [guest] if fits else [])
