"""PBS's client commands: what they find in their environment (see pliant.batch.clients)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pliant.batch.clients import Clients


@dataclass(frozen=True, slots=True)
class Commands(Clients):
    """Runs client commands against one PBS: ``server`` is its name, "" that of pbs.conf."""

    server: str = ""
    system: ClassVar[str] = "PBS"

    def fixed(self) -> dict[str, str]:
        """Return what all of them find there."""
        return {"PBS_SERVER": self.server} if self.server else {}
