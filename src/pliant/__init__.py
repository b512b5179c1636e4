"""Pliant: Slurm and PBS jobs that bend to the GPUs that are free."""

from pliant.program import (
    Shape,
    checkpoint_wanted,
    checkpoint_wanted_everywhere,
    checkpointed,
    heartbeat,
    shape,
)

__version__ = "0.2.0.dev0"
__all__ = [
    "Shape",
    "checkpoint_wanted",
    "checkpoint_wanted_everywhere",
    "checkpointed",
    "heartbeat",
    "shape",
]
