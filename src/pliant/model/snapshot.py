"""The cluster at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pliant.model.abilities import Abilities
from pliant.model.cluster import Node, Partition, Reservation
from pliant.model.company import Company
from pliant.model.jobs import Job


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at ``now_s``, as one cycle sees it. ``waiting`` stands in queue order.

    ``company``: what is known of the speeds of jobs that share a node, for the policies that pair
    them; nobody else looks at it.
    """

    now_s: float
    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    waiting: tuple[Job, ...] = ()
    running: tuple[Job, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    abilities: Abilities = field(default_factory=Abilities)
    company: Company = field(default_factory=Company)

    @property
    def partition_by_name(self) -> Mapping[str, Partition]:
        """The partitions by name."""
        return {partition.name: partition for partition in self.partitions}
