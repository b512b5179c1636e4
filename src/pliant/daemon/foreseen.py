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
    :meth:`.Elastic.arriving`), unless something is ending there. A fence stands where nobody knows
    what it is for, or that has no room.
    """
    snapshot = _once_ended(snapshot, under_way)
    names = {one.name for one in snapshot.reservations}
    behind = {job: to for job, to in under_way.items() if f"{FENCE}{job}" in names and job != own}
    rooms = {job: to for job, to in behind.items() if to.guest}
    there = _ids(_with_guests(snapshot, rooms))
    fit = {job: to for job, to in rooms.items() if to.guest in there}
    snapshot = _with_guests(snapshot, fit)  # who has none keeps its own place
    there = _ids(snapshot)
    fallen = {f"{FENCE}{job}" for job, to in behind.items() if (to.guest or job) in there}
    fallen.add(f"{FENCE}{own}")
    left = tuple(one for one in snapshot.reservations if one.name not in fallen)
    return replace(snapshot, reservations=left)


def _ids(snapshot: Snapshot) -> set[str]:
    return {one.id for one in snapshot.running}


def _once_ended(snapshot: Snapshot, under_way: UnderWay) -> Snapshot:
    """The same without those that are ending, but with where they go on."""
    if all(node.once_ended is None for node in snapshot.nodes):
        return snapshot
    ending = [one for one in snapshot.running if one.state is JobState.ENDING]
    between = [one for one in (*ending, *snapshot.waiting) if one.id in under_way]
    back = [_at(one, under_way[one.id]) for one in between]
    nodes = tuple(node.once_ended or node for node in snapshot.nodes)
    left = tuple(one for one in snapshot.running if one.state is not JobState.ENDING)
    there = [one for one in back if len(one.nodes) == one.shape.nodes and not one.room_for]
    return arrived(replace(snapshot, nodes=nodes, running=left), there)


def _at(job: Job, wanted: Wanted) -> Job:
    """A job where it will go on, as that."""
    shape = wanted.shape
    became = replace(job, shape=shape, shapes=(shape,), nodes=wanted.nodes)
    return replace(became, next_shape=None, next_nodes=(), room_for=wanted.guest)


def _with_guests(snapshot: Snapshot, rooms: UnderWay) -> Snapshot:
    """The same with guests in their victims' places, where they are known and have room there."""
    running = _ids(snapshot)
    guests = {
        victim: _there(wanted.asks, wanted)
        for victim, wanted in rooms.items()
        if wanted.asks is not None and wanted.guest not in running  # 0.1.0 did not note it
    }
    leave = [one for one in snapshot.running if one.id in guests]
    fit = [one for one in guests.values() if len(one.nodes) == one.shape.nodes]
    return arrived(without(snapshot, leave), fit)


def _there(guest: Job, wanted: Wanted) -> Job:
    """A guest in its room: it may be on any of those nodes."""
    shape = guest.next_shape or guest.shape
    shape = replace(shape, nodes=max(shape.nodes, len(wanted.nodes)))
    return _at(guest, replace(wanted, shape=shape, guest=""))
