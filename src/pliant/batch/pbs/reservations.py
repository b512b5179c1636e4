"""Reservations, as ``pbs_rstat -f`` prints them in text: it knows no JSON.

::

    Resv ID: R40.head
    reserve_state = RESV_CONFIRMED
    reserve_start = Mon Nov 23 11:00:00 2026
    reserve_end = Mon Nov 23 12:00:00 2026
    queue = R40
    resv_nodes = (gn1:ncpus=4:ngpus=4)+(gn2:ncpus=4:ngpus=4)

One of a part of a node is taken as one of all of it, as on Slurm: PBS alone knows what is left.
Each has a queue of its own, in which jobs get no more than the reservation has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pliant.batch.pbs.jobs import nodes_of
from pliant.batch.pbs.values import instant_s
from pliant.batch.pbs.vnodes import Vnodes
from pliant.model import Reservation

_HEAD = "Resv ID: "


@dataclass(frozen=True, slots=True)
class ReservationRow:
    """One reservation, and its queue; ``vnodes``: none as long as it is not confirmed."""

    name: str
    queue: str
    vnodes: tuple[str, ...]
    start_s: float
    end_s: float


def parse_reservations(out: str) -> list[ReservationRow]:
    """Read all that are there."""
    return [_row(name, said) for name, said in _said(out)]


def _said(out: str) -> Iterator[tuple[str, dict[str, str]]]:
    name, said = "", dict[str, str]()
    for line in [*out.splitlines(), _HEAD]:
        if line.startswith(_HEAD):
            if name:
                yield name, said
            name, said = line.removeprefix(_HEAD).strip(), {}
        else:
            key, _, value = line.partition(" = ")
            said[key.strip()] = value.strip()


def _row(name: str, said: dict[str, str]) -> ReservationRow:
    return ReservationRow(
        name,
        said.get("queue", ""),
        nodes_of(said.get("resv_nodes", "")),
        instant_s(said.get("reserve_start", "")),
        instant_s(said.get("reserve_end", "")),
    )


def keeping(rows: Sequence[ReservationRow], vnodes: Vnodes) -> tuple[Reservation, ...]:
    """Return those that keep nodes from others' jobs, now or later; ``vnodes``: whose they are."""
    return tuple(
        Reservation(row.name, vnodes.owners(row.vnodes), row.start_s, row.end_s)
        for row in rows
        if row.vnodes and row.start_s < row.end_s
    )
