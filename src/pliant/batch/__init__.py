"""The batch systems, as the daemon sees them: asked once a cycle, changed a few jobs at a time.

``slurm`` is a real Slurm by its client commands, ``pbs`` a real PBS. What both promise, and a
cluster that is only computed, is tested on all of them alike (tests/unit/test_batch_contract.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pliant.errors import BatchError
from pliant.model import Job, Shape, Snapshot, Spec
from pliant.plan import Mark

FENCE = "pliant_"
"""How the reservation's name begins that keeps a job's nodes in a hand-over; the job follows."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a waiting job, as it was observed: ``spec`` is what it carries then."""

    job: Job
    shape: Shape
    spec: Spec


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has ended, or the tasks of an array that were taken out of the queue together.

    ``job``: as it ran last, with no ``start_s`` where it never did. ``exit``: the batch system's
    word for its end (COMPLETED, CANCELLED, TIMEOUT ...).
    """

    job: Job
    exit: str
    end_s: float


class Batch(Protocol):
    """A batch system. Every call may raise Unavailable or BadAnswer; calls block."""

    def observe(self) -> Snapshot:
        """Return the cluster as it is now, with every job that waits, runs or ends."""
        ...

    def change(self, changes: Sequence[Change]) -> Sequence[BatchError | None]:
        """Let waiting jobs ask for other shapes, read them back, and return what went wrong.

        Jobs are as observed: where the batch system knows better by now, their owners win. A
        refused change is told in the batch system's words; the job is then as it was, or it says
        so.
        """
        ...

    def annotate(self, job: Job, says: Callable[[Job], Spec]) -> Job:
        """Let a job, as it is now, say what ``says`` returns, and change nothing else.

        Return it as it is with that. Raises Refused.
        """
        ...

    def mark(self, marks: Sequence[Mark]) -> Sequence[BatchError | None]:
        """Let waiting jobs share their CPUs, or no longer, and return what went wrong.

        Jobs are as observed: where they have changed since, their owners win.
        """
        ...

    def rescue(self, job: Job) -> None:
        """Give a job its own shape and its place back that is held for a shape we set.

        Such a job waits for HELD_FOR_SHAPE. Raises Refused.
        """
        ...


HELD_FOR_SHAPE = "BadConstraints"
"""The reason of a job that is held because no node can ever hold its shape, in Slurm's word."""

__all__ = ["FENCE", "HELD_FOR_SHAPE", "Batch", "Change", "Ended"]
