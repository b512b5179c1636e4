"""Slurm's client commands: what they find in their environment (see pliant.batch.clients)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from pliant.batch.clients import MAX_OUTPUT, MAX_WORD, Answer, Clients, Runs


@dataclass(frozen=True, slots=True)
class Commands(Clients):
    """Runs client commands against one Slurm: ``conf`` names slurm.conf, "" is Slurm's default."""

    conf: str = ""
    system: ClassVar[str] = "Slurm"

    def fixed(self) -> dict[str, str]:
        """Return what all of them find there."""
        conf = self.conf or os.environ.get("SLURM_CONF", "")
        return {
            "SLURM_TIME_FORMAT": "%s",
            "SLURM_BITSTR_LEN": "0",  # array task lists are not cut
            **({"SLURM_CONF": conf} if conf else {}),
        }


__all__ = ["MAX_OUTPUT", "MAX_WORD", "Answer", "Commands", "Runs"]
