"""``scontrol -o show partition`` and ``show reservation``: the same in 22.05 to 26.05."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.batch.slurm.records import records
from pliant.batch.slurm.values import duration_s, host_list, instant_s, whole
from pliant.errors import BadAnswer
from pliant.model import Partition, Reservation

_KEYS = ("Default", "MaxNodes", "MaxTime", "Nodes", "PriorityTier", "State")
_RESERVATION_KEYS = ("StartTime", "EndTime", "Nodes")


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition; ``tier`` goes before priority in the queue."""

    partition: Partition
    tier: int


def parse_partitions(text: str) -> list[PartitionRow]:
    """Read all partitions.

    Raises BadAnswer.
    """
    rows = []
    for fields in records(text, "PartitionName", _KEYS):
        name = fields["PartitionName"]
        try:
            limit = fields["MaxNodes"]
            partition = Partition(
                name,
                host_list(fields["Nodes"]),
                max_time_s=duration_s(fields["MaxTime"]),
                default=fields["Default"] == "YES",
                max_nodes=0 if limit == "UNLIMITED" else whole(limit),
                up=fields["State"] == "UP",
            )
            rows.append(PartitionRow(partition, whole(fields["PriorityTier"])))
        except KeyError as missing:
            raise BadAnswer(f"partition {name}: scontrol names no {missing.args[0]}") from None
    return rows


def parse_reservations(text: str) -> list[Reservation]:
    """Read all reservations that keep nodes; "No reservations in the system" is none.

    A reservation of some cores or GPUs of its nodes is taken as one of the whole nodes.
    Raises BadAnswer.
    """
    found = []
    for fields in records(text, "ReservationName", _RESERVATION_KEYS):
        try:
            nodes = host_list(fields["Nodes"])
            start_s, end_s = instant_s(fields["StartTime"]), instant_s(fields["EndTime"])
        except KeyError as missing:
            name = fields["ReservationName"]
            raise BadAnswer(f"reservation {name}: scontrol names no {missing.args[0]}") from None
        if nodes:
            found.append(Reservation(fields["ReservationName"], nodes, start_s, end_s))
    return found
