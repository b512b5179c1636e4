"""Malleable jobs whose programs speak: what each said last, and where that puts it in its life.

``pliant run`` speaks for a job's program (see the verbs ``run-*``). What is known of a run is kept
in the store, so that a new pliantd knows it too; what was heard when is not: a program is
listening once it has asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from pliant.daemon.handing import HandOvers
from pliant.lifecycle import Life, Seen, observed
from pliant.model import Job, JobState, shape_text
from pliant.store import RunRow, Store

SILENT_S = 90.0
"""A program that has not asked for so long is not listening: nothing is asked of it."""


class Runs:
    """What programs said; safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        overs: HandOvers,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly."""
        self._store, self._overs, self._clock, self._monotonic = store, overs, clock, monotonic
        self._lock = threading.Lock()
        self._known: dict[str, RunRow] = {}
        self._heard: dict[str, float] = {}

    # --- what is said ----------------------------------------------------------------------

    def heard(
        self, job: Job, run: int, *, launched: bool = False, step: int = 0, rate: float = 0.0
    ) -> None:
        """Note that the program of this run speaks."""
        with self._lock:
            row = self._row(job, run)
            self._heard[job.id] = self._monotonic()
            now = replace(
                row,
                launched_s=row.launched_s or (self._clock() if launched else 0.0),
                step=max(row.step, step),
                rate=rate or row.rate,
            )
            self._keep(row, now)

    def saved(self, job: Job, run: int, took_s: float) -> None:
        """Note how long its checkpoint took."""
        with self._lock:
            row = self._row(job, run)
            self._keep(row, replace(row, saved_took_s=took_s))

    def ended(self, job: Job, run: int, code: int) -> None:
        """Note that the program ended by itself."""
        with self._lock:
            row = self._row(job, run)
            self._keep(row, replace(row, code=code))

    def _row(self, job: Job, run: int) -> RunRow:
        known = self._known.get(job.id)
        if known is None or known.run != run:
            stored = next((row for row in self._store.runs(job.id) if row.run == run), None)
            known = stored or RunRow(
                *(job.id, run, shape_text(job.shape), job.submit_s, job.start_s, self._clock())
            )
            if stored is None:
                self._store.run_began(known)
            self._known[job.id] = known
        return known

    def _keep(self, before: RunRow, now: RunRow) -> None:
        if now != before:
            self._known[now.job] = now
            self._store.run_told(now)

    # --- what is known ---------------------------------------------------------------------

    def life(self, job: Job) -> Life:
        """Return where a job is in its life."""
        over = self._overs.of(job.id)
        runs = job.state is not JobState.WAITING
        with self._lock:
            row = self._known.get(job.id)
        spoke = runs and row is not None and row.run == job.restarts
        seen = Seen(
            runs,
            job.start_s,
            row.launched_s if spoke and row else 0.0,
            asked=over is not None,
            saved_s=over.saved_s if over else 0.0,
        )
        return observed(seen, self._clock())

    def may_reshape(self, job: Job) -> bool:
        """Whether its program may be asked for a checkpoint now: it listens, and is not busy."""
        with self._lock:
            heard_s = self._heard.get(job.id)
        listens = heard_s is not None and self._monotonic() - heard_s < SILENT_S
        return listens and self.life(job).may_reshape

    def restart_s(self, job: Job) -> float:
        """Return what a restart costs this job: its last launch and checkpoint; 0 not known."""
        rows = self._store.runs(job.id)
        launches = [row.launched_s - row.start_s for row in rows if row.launched_s]
        saves = [row.saved_took_s for row in rows if row.saved_took_s]
        return max(0.0, launches[-1] if launches else 0.0) + (saves[-1] if saves else 0.0)

    def forget(self, there: frozenset[str]) -> None:
        """Forget what is not there any more."""
        with self._lock:
            for known in (self._known, self._heard):
                for job_id in known.keys() - there:
                    del known[job_id]
