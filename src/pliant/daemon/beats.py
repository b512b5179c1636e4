"""How far programs were and when, as they say at the second door: windows of their own steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

LEAST_S = 2.0
"""A window is no shorter."""
MOST_KEPT = 10
"""Windows of one job, the latest."""

Steps = tuple[float, float, float]
"""When a window began and ended, and the steps per second in it."""


@dataclass(slots=True)
class _Run:
    """A run's step where its next window begins, and the last one that was told."""

    run: int
    begin: tuple[int, float]
    last: tuple[int, float]


class Beats:
    """The steps of programs, as windows; told and asked from any thread."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._kept: dict[str, deque[Steps]] = {}

    def heard(self, job_id: str, run: int, step: int, at_s: float) -> None:
        """Note how far a run was at an instant.

        A step that was told before says nothing new: a watch that was long in waiting says what was
        so at its begin.
        """
        with self._lock:
            known = self._runs.get(job_id)
            if known is None or known.run != run or step < known.last[0]:
                self._runs[job_id] = _Run(run, (step, at_s), (step, at_s))
                self._kept.pop(job_id, None)
            elif step > known.last[0]:
                known.last = (step, at_s)
                self._close(job_id, known)

    def _close(self, job_id: str, run: _Run) -> None:
        (first, begin_s), (last, end_s) = run.begin, run.last
        if end_s - begin_s >= LEAST_S:
            kept = self._kept.setdefault(job_id, deque(maxlen=MOST_KEPT))
            kept.append((begin_s, end_s, (last - first) / (end_s - begin_s)))
            run.begin = run.last

    def of(self, job_id: str) -> tuple[Steps, ...]:
        """Return a job's last windows."""
        with self._lock:
            return tuple(self._kept.get(job_id, ()))

    def last(self) -> Mapping[str, Steps]:
        """Return the last window of each job that has one."""
        with self._lock:
            return {job_id: kept[-1] for job_id, kept in self._kept.items()}

    def told_s(self, job_id: str) -> float:
        """Return when a job's program was last further than before; -inf: nothing is known."""
        with self._lock:
            run = self._runs.get(job_id)
            return run.last[1] if run is not None else -inf

    def forget(self, there: Iterable[str]) -> None:
        """Forget all other jobs."""
        known = frozenset(there)
        with self._lock:
            self._runs = {job: run for job, run in self._runs.items() if job in known}
            self._kept = {job: kept for job, kept in self._kept.items() if job in known}
