"""What decisions are made on: the nodes, what is free on them, and when more will be.

A decision takes and gives back on it as it tries things out, and the next one finds it as it was:
:meth:`Ground.restored`. So a cluster that shows itself again and again, as a simulated one does,
keeps one ground and tells it what has really changed, instead of having everything read anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from pliant.model import Job, Shape, Snapshot
from pliant.placement.cells import Cells
from pliant.placement.ends import Ends
from pliant.placement.needs import Need
from pliant.placement.profiles import Profiles
from pliant.placement.states import state_of

MOST_KNOWN = 20_000
"""How many kinds of jobs, or of node states, are remembered between decisions."""


class Ground:
    """One cluster's nodes by number (their place in the snapshot), and what runs there."""

    def __init__(self, snapshot: Snapshot, like: Ground | None = None) -> None:
        """``like``: of the same nodes and partitions, whatever is free and runs there."""
        self.names = [node.name for node in snapshot.nodes]
        self.number = {name: place for place, name in enumerate(self.names)}
        self.profiles: Profiles = like.profiles if like is not None else Profiles(snapshot)
        self.cells = Cells()
        for place, kind in enumerate(self.profiles.scopes.kinds):
            if kind is not None:
                self.cells.add(place, kind, state_of(snapshot.nodes[place]))
        self.ends = Ends(snapshot.running, self.profiles, self.number)
        self.sharers: dict[tuple[int, int, int], int] | None = None
        self.turn = 0  # how many decisions were made on it: the last alone is valid
        self.remembered: dict[object, object] = like.remembered if like is not None else {}
        self._chains: dict[object, tuple[tuple[object, ...], list[list[tuple[Shape, Need]]]]] = {}
        self._pools = [node.pools for node in snapshot.nodes]

    def held(self, job: Job) -> tuple[tuple[int, ...], Need]:
        """Return the nodes of a running job, and what it has on each."""
        places = tuple([self.number[name] for name in job.nodes if name in self.number])
        return (places, self.profiles.need(job, job.shape))

    def chains(self, job: Job, shapes: Iterable[Shape]) -> list[list[tuple[Shape, Need]]]:
        """Return a job's shapes by amount, parted where one is not more than the one before.

        Of equal amounts that on the most nodes comes first.
        """
        if isinstance(shapes, tuple) and len(shapes) == 1:
            return [[(shapes[0], self.profiles.need(job, shapes[0]))]]
        key = (id(shapes), id(job.footprint), id(job.spec))
        known = self._chains.get(key)
        if known is None or known[0][0] is not shapes:
            ordered = sorted(shapes, key=lambda shape: (shape.amount, -shape.nodes, shape))
            found: list[list[tuple[Shape, Need]]] = []
            for shape in ordered:
                need = self.profiles.need(job, shape)
                if not (found and _is_more(shape, need, *found[-1][-1])):
                    found.append([])
                found[-1].append((shape, need))
            known = self._chains[key] = ((shapes, job.footprint, job.spec), found)
        return known[1]

    def jobs_on(self, place: int, pool: int, gpu: int) -> int:
        """Return how many jobs have a part of one GPU of a node; one where it is not known."""
        if self.sharers is not None:
            return self.sharers.get((place, pool, gpu), 0)
        seen = self._pools[place][pool]
        part = gpu - seen.free  # as a node's state has them: those that are free first
        if part < 0:
            return 0
        return seen.sharers[part] if part < len(seen.sharers) else 1

    def restored(self) -> Ground:
        """Undo what the decision before has done, and remember from now on what is done."""
        self.turn += 1
        self.cells.restore()
        self.ends.restore()
        if self.profiles.known > MOST_KNOWN or len(self._chains) > MOST_KNOWN:
            self.profiles.forget()
            self.cells.forget()
            self.remembered.clear()
            self._chains.clear()
        return self


def _is_more(shape: Shape, need: Need, other: Shape, less: Need) -> bool:
    """Whether whatever has room for a shape has room for the other."""
    return shape.nodes >= other.nodes and need.is_more(less)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounded(Snapshot):
    """A snapshot of a cluster that keeps its ground. The last decision over it alone is valid."""

    ground: Ground

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said of its jobs by a batch system: a simulated one says nothing."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed(Snapshot):
    """What such a cluster would be if other jobs ran there: ``like`` knows its nodes already."""

    like: Ground

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said of its jobs by a batch system."""
        return True


def as_read(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot that can be changed: without the ground that it comes with."""
    if not isinstance(snapshot, Grounded):
        return snapshot
    values = {field.name: getattr(snapshot, field.name) for field in fields(Snapshot)}
    return Supposed(**values, like=snapshot.ground)


def ground_of(snapshot: Snapshot) -> Ground:
    """Return the ground that a snapshot comes with, as it really is, or a new one."""
    if isinstance(snapshot, Grounded):
        return snapshot.ground.restored()
    return Ground(snapshot, snapshot.like if isinstance(snapshot, Supposed) else None)
