"""The batch systems, as the daemon sees them: asked once a cycle, changed one job at a time.

``slurm`` is a real Slurm by its client commands; ``simulated`` is a cluster that is only computed.
"""

from __future__ import annotations

from typing import Protocol

from pliant.model import Job, Shape, Snapshot, Spec


class Batch(Protocol):
    """A batch system. Every call may raise Unavailable or BadAnswer; calls block."""

    def observe(self) -> Snapshot:
        """Return the cluster as it is now, with every job that waits, runs or ends."""
        ...

    def change(self, job: Job, shape: Shape, spec: Spec) -> None:
        """Let a waiting job ask for ``shape`` and carry ``spec``; read it back.

        ``job`` is as observed: where the batch system knows better by now, its owner wins.
        Raises Refused, in the batch system's words; the job is then as it was, or it says so.
        """
        ...

    def annotate(self, job: Job, spec: Spec) -> None:
        """Let a job carry ``spec`` and change nothing else.

        Raises Refused.
        """
        ...

    def rescue(self, job: Job) -> None:
        """Give a job its own shape and its place back that is held for a shape we set.

        Such a job waits for HELD_FOR_SHAPE. Raises Refused.
        """
        ...


HELD_FOR_SHAPE = "BadConstraints"
"""The reason of a job that is held because no node can ever hold its shape, in Slurm's word."""

__all__ = ["HELD_FOR_SHAPE", "Batch"]
