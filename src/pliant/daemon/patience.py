"""Notices jobs that should have started, and lets what was refused rest.

What we call free for a job may not be so for Slurm.

A job that the plan would start as it stands, and that still waits after some backfill passes, is
given up in that shape for a while: else it would keep the hole from all others for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from pliant.cycle import Gate, gate
from pliant.model import Job, Shape, Snapshot
from pliant.plan import Plan

PASSES = 4
"""Backfill passes that a start may take."""
SLACK_S = 15.0
GAP_S = 60.0
"""Longer without a cycle, and nobody can say what happened meanwhile."""
REFUSED_FACTOR = 10
"""A shape is left out for so many times the patience, at first."""
FIRST_REST_S = 1.0
"""How long what was refused rests the first time, then twice as long; by the next look most that
was refused because the job had just changed is right again."""
MOST_REST_S = 300.0


@dataclass(slots=True)
class Patience:
    """Since when each job could have started as it stands; by the cycle's own clock."""

    backfill_s: float = 30.0  # Slurm's bf_interval
    _last_s: float = 0.0
    _since: dict[tuple[str, Shape, int], float] = field(default_factory=dict)

    @property
    def wait_s(self) -> float:
        """How long a start may take."""
        return PASSES * self.backfill_s + SLACK_S

    @property
    def refuse_s(self) -> float:
        """How long a shape is left out, the first time."""
        return REFUSED_FACTOR * self.wait_s

    def lost(self, snapshot: Snapshot, plan: Plan, now_s: float) -> tuple[Job, ...]:
        """Return the jobs that have had their time and still wait, each once."""
        if now_s - self._last_s > GAP_S:
            self.reset()  # we slept, not the batch system
        self._last_s = now_s
        ready = {
            (job.id, job.shape, job.tasks_waiting): job
            for job in (*_startable(plan), *_limited(snapshot))
        }
        self._since = {key: self._since.get(key, now_s) for key in ready}
        late = [
            key for key, since_s in self._since.items() if now_s - since_s >= self._wait(ready[key])
        ]
        for key in late:
            del self._since[key]
        return tuple(ready[key] for key in late)

    def _wait(self, job: Job) -> float:
        """A limit is looked at anew by each pass: one is enough, where slurmctld is not slow."""
        is_limited = gate(job.reason) is Gate.SMALLER
        return self.backfill_s + SLACK_S if is_limited else self.wait_s

    def reset(self) -> None:
        """Begin anew: the batch system was away, nothing could start."""
        self._since.clear()


def _startable(plan: Plan) -> Iterator[Job]:
    return (start.job for start in plan.starts if start.shape == start.job.shape)


def _limited(snapshot: Snapshot) -> Iterator[Job]:
    """Jobs that were made smaller for a limit, and wait for it all the same."""
    for job in snapshot.waiting:
        if job.spec and job.spec.set == job.shape and gate(job.reason) is Gate.SMALLER:
            yield job


@dataclass(slots=True)
class Rests:
    """What was refused and is not tried again yet, each time for twice as long as before."""

    _rests: dict[Hashable, tuple[float, float]] = field(default_factory=dict)  # until, for

    def refused(self, what: Hashable, now_s: float) -> float:
        """Note that something was refused; return how long it rests."""
        _, before_s = self._rests.get(what, (0.0, 0.0))
        rest_s = min(MOST_REST_S, 2 * before_s or FIRST_REST_S)
        self._rests[what] = (now_s + rest_s, rest_s)
        return rest_s

    def rests(self, what: Hashable, now_s: float) -> bool:
        """Whether it is not to be tried yet."""
        return now_s < self._rests.get(what, (0.0, 0.0))[0]

    def keep(self, wanted: Iterable[Hashable]) -> None:
        """Forget all others: they were done, or are wanted no more."""
        left = self._rests.keys() & set(wanted)
        self._rests = {what: self._rests[what] for what in left}
