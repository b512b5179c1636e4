"""How often running jobs were changed, as the store tells."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from pliant.handover import Outcome
from pliant.store import HandOverRow, Store


@dataclass(frozen=True, slots=True)
class Counted:
    """How often one job was resized, and has made room."""

    resized: int = 0
    made_room: int = 0


def counted(rows: Sequence[HandOverRow]) -> Counted:
    """Count what has come of a job's hand-overs."""
    return Counted(
        resized=sum(not row.guest and row.outcome == Outcome.DONE for row in rows),
        made_room=sum(row.guest != "" and row.saved_s > 0 for row in rows),
    )


class Changes:
    """What was counted of each job; safe to use from several threads."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._counted: dict[str, Counted] = {}

    def done(self, job_id: str) -> int:
        """How often a job was resized or has made room."""
        counts = self._of(job_id)
        return counts.resized + counts.made_room

    def made_room(self, job_id: str) -> int:
        """How often a job has made room."""
        return self._of(job_id).made_room

    def _of(self, job_id: str) -> Counted:
        with self._lock:  # what is read must not be noted after it has become too old
            if job_id not in self._counted:
                self._counted[job_id] = counted(self._store.handovers(job_id))
            return self._counted[job_id]

    def ended(self, job_id: str) -> None:
        """Note that something has come of a wish."""
        with self._lock:
            self._counted.pop(job_id, None)

    def forget(self, there: frozenset[str]) -> None:
        """Forget all other jobs."""
        with self._lock:
            self._counted = {job: counts for job, counts in self._counted.items() if job in there}
