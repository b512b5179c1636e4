"""What a job was given in a cycle."""

from __future__ import annotations

from dataclasses import dataclass

from pliant.model import Job, Shape
from pliant.placement.needs import Need
from pliant.placement.pick import Places
from pliant.placement.states import Receipt


@dataclass(eq=False, slots=True)
class Taken:
    """What a job was given in this cycle. Made thousands of times: frozen would take longer."""

    job: Job
    shape: Shape
    places: Places
    need: Need
    receipts: tuple[Receipt, ...]
    end_s: float
