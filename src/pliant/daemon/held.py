"""Which GPUs a job holds and does not use. Pure.

The batch system says how many GPUs a job holds on a node, and the node's monitor on how many of
them its processes are. What is left is idle. Which GPUs these are is not asked: Slurm's numbers of
them need not be those of their device files.

- A share of a GPU is never called idle: others may be at work on the same GPU.
- What cannot be told is not called idle: a node whose GPUs could not all be read, and one of whose
  jobs it is not known how many GPUs it holds there (a job may hold more on one node than on
  another, and only the most is known).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pliant.model import Kind, Node, Snapshot

GAP_S = 180.0
"""Looks that are farther apart say nothing of the time between them."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Since when so many GPUs of a job on a node have been idle, at every look.

    ``since_s`` has an instant for each idle GPU, the earliest first: since the n-th of them there
    have been n or more. ``seen_s``: the last look.
    """

    since_s: tuple[float, ...] = ()
    seen_s: float = 0.0

    def seen(self, idle: int, at_s: float) -> Idle:
        """Return what holds after a look that found ``idle`` GPUs; an older one changes nothing."""
        if at_s < self.seen_s:
            return self
        before = self.since_s if at_s - self.seen_s <= GAP_S else ()
        kept = before[: max(0, idle)]
        return Idle(kept + (at_s,) * (idle - len(kept)), at_s)


def held(snapshot: Snapshot) -> Mapping[tuple[str, str], int]:
    """Return how many whole GPUs each running job holds on each node, where that is known."""
    found = {
        (job.id, node): job.shape.gpus
        for job in snapshot.running
        if job.shape.gpus and not job.shape.is_share and job.shape.kind is not Kind.CPU
        for node in job.nodes
    }
    in_all = Counter[str]()
    for (_, node), gpus in found.items():
        in_all[node] += gpus
    known = {node.name for node in snapshot.nodes if in_all[node.name] == _lent(node)}
    return {(job, node): gpus for (job, node), gpus in found.items() if node in known}


def _lent(node: Node) -> int:
    """Return how many whole GPUs of a node are in use; not those in use by shares."""
    return sum(pool.total - pool.free - len(pool.parts) for pool in node.pools)


def gpus_of(node: Node) -> int:
    """Return how many GPUs the batch system knows on a node."""
    return sum(pool.total for pool in node.pools)
