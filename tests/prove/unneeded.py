"""Decisions that make no difference where they are taken out, each with the reason for it."""

from __future__ import annotations

from collections.abc import Mapping

UNNEEDED: Mapping[str, str] = {
    "pliant.batch.slurm.lent.giving_back: if not any((key in then for key in _LENT)): never": (
        "it is quicker: of nearly all jobs, at each look, there is nothing to give back"
    ),
}
