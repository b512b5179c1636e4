"""The cluster at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    nodes: Sequence[Node]
    partitions: tuple[Partition, ...]
    waiting: Sequence[Job] = ()
    running: Sequence[Job] = ()
    reservations: tuple[Reservation, ...] = ()
    abilities: Abilities = field(default_factory=Abilities)
    company: Company = field(default_factory=Company)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is said of its jobs by a batch system.

        No reasons, no expected starts, no shapes that were set before they start.
        """
        return False

    @property
    def partition_by_name(self) -> Mapping[str, Partition]:
        """The partitions by name."""
        return {partition.name: partition for partition in self.partitions}
