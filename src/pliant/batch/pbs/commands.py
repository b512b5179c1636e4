"""PBS's client commands: what they find in their environment (see pliant.batch.clients)."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class OwnCommands(Commands):
    """Runs them as if who runs us had typed them: jobs take much from qsub's environment."""

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return all of our own environment."""
        return {**os.environ, **extra}
