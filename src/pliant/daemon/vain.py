"""Marks for one node with which a job does not start: the node is left out for it, for a while.

Slurm starts a job that is not the first of its queue in a pass of its backfill, and none comes more
often than its bf_interval: so a start has the same time here as any other (see :mod:`.patience`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pliant.daemon.patience import Patience
from pliant.model import ANYWHERE, Job, Snapshot


@dataclass(slots=True)
class Vain:
    """When each job was marked for which node; used from the cycle's thread."""

    patience: Patience = field(default_factory=Patience)
    _marked_s: dict[tuple[str, str], float] = field(default_factory=dict)  # by job and node

    def without(self, snapshot: Snapshot) -> Snapshot:
        """Close a node to a job that was marked for it, and has not started there in time."""
        now_s = snapshot.now_s
        marked = {(job.id, job.mark) for job in snapshot.waiting if job.mark not in ("", ANYWHERE)}
        waits = {job.id for job in snapshot.waiting}
        kept = {
            key: at_s
            for key, at_s in self._marked_s.items()
            if key[0] in waits and (key in marked or self._is_lost(now_s - at_s))
        }
        self._marked_s = dict.fromkeys(marked, now_s) | kept
        lost: dict[str, frozenset[str]] = {}
        for (job_id, node), at_s in kept.items():
            if self._is_lost(now_s - at_s):
                lost[job_id] = lost.get(job_id, frozenset()) | {node}
        return _closed(snapshot, lost) if lost else snapshot

    def _is_lost(self, for_s: float) -> bool:
        """Whether a mark that was given so long ago was in vain, and is not tried again yet."""
        wait_s = self.patience.wait_s
        return wait_s < for_s < wait_s + self.patience.refuse_s


def _closed(snapshot: Snapshot, lost: dict[str, frozenset[str]]) -> Snapshot:
    def with_closed(job: Job) -> Job:
        nodes = lost.get(job.id)
        return replace(job, nodes_kept=job.nodes_kept | nodes) if nodes else job

    return replace(snapshot, waiting=tuple(with_closed(job) for job in snapshot.waiting))
