"""Malleable jobs whose programs speak: what each said last, and where that puts it in its life.

``pliant run`` speaks for a job's program (see the verbs ``run-*``). What is known of a run is kept
in the store, so that a new pliantd knows it too; what was heard when is not: a program is
listening once it has asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from pliant.daemon.beats import Beats
from pliant.daemon.handing import HandOvers
from pliant.daemon.speakers import SILENT_S, Speakers
from pliant.grammar.values import MAX_GRACE_S
from pliant.lifecycle import Life, Seen, observed
from pliant.model import Job, JobState, shape_text
from pliant.speedup import Rates
from pliant.store import RunRow, Store

CLOSE_S = 1.0
"""By less than that no word corrects when a program began to work."""
GRACE_S = 120.0
"""How long a program may take to save what it has, where its owner names no time."""
UNNAMED = frozenset(("", "wrap", "sbatch", "interactive", "bash", "STDIN"))
"""What jobs are called that nobody named: what ran under such a name tells nothing of another."""


@dataclass(frozen=True, slots=True)
class Beat:
    """How far a run is: at ``step`` since ``at_s``, as was heard last at ``heard_s``."""

    run: int
    step: int
    at_s: float
    heard_s: float


class Runs:
    """What programs said; safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        overs: HandOvers,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        beats: Beats | None = None,
    ) -> None:
        """``clock`` counts seconds since the epoch, ``monotonic`` from anywhere, evenly.

        ``beats``: is told how far programs are, and when.
        """
        self._beats = beats
        self._store, self._overs, self._clock, self._monotonic = store, overs, clock, monotonic
        self._lock = threading.Lock()
        self._known: dict[str, RunRow] = {}
        self._heard: dict[str, float] = {}
        self._beat: dict[str, Beat] = {}
        self._lost: dict[str, int] = {}  # by job: the run of which a wrapper has left
        self._grace: dict[str, tuple[int, float]] = {}  # by job: the run, and what it said
        self._speakers = Speakers()
        self._restart_s: dict[str, float] = {}
        self._never: dict[str, int] = {}  # the run of which the store knows nothing
        self._rates: dict[tuple[str, str], Rates] = {}  # by user and name

    # --- what is said ----------------------------------------------------------------------

    def heard(
        self,
        job: Job,
        run: int,
        *,
        launched: bool = False,
        ago_s: float = 0.0,
        step: int = 0,
        rate: float = 0.0,
        beat_s: float = 0.0,
        lost: bool = False,
    ) -> None:
        """Note that the program of this run speaks; ``launched``: it works, since ``ago_s``.

        Where we could not be reached at first, that was earlier than the first word of it.
        ``beat_s``: for how long it has been at this ``step``; ``lost``: whether a task of its has
        lost its wrapper.
        """
        if self._beats is not None and step:
            self._beats.heard(job.id, run, step, self._clock() - beat_s)
        with self._lock:
            row = self._row(job, run)
            self._heard[job.id] = self._monotonic()
            self._note_beat(job.id, run, step, beat_s)
            if lost:
                self._lost[job.id] = run
            else:
                self._lost.pop(job.id, None)
            now = replace(
                row,
                launched_s=self._launched_s(row, ago_s) if launched else row.launched_s,
                step=max(row.step, step),
                rate=rate or row.rate,
            )
            self._keep(row, now)

    def _note_beat(self, job_id: str, run: int, step: int, beat_s: float) -> None:
        """Note how far it is; a step that was told before says only that it is still there."""
        if not step:
            return
        now_s, known = self._clock(), self._beat.get(job_id)
        same = known is not None and (known.run, known.step) == (run, step)
        at_s = known.at_s if known is not None and same else now_s - beat_s
        self._beat[job_id] = Beat(run, step, at_s, now_s)

    def _launched_s(self, row: RunRow, ago_s: float) -> float:
        at_s = max(row.start_s, self._clock() - ago_s)
        known = row.launched_s and at_s > row.launched_s - CLOSE_S
        return row.launched_s if known else at_s

    def spoke(self, job: Job, run: int, word: str, *, others: bool = False) -> None:
        """Note which wrapper it was, by its word; see :class:`Speakers`."""
        with self._lock:
            self._speakers.heard(job.id, run, word, self._monotonic(), others=others)

    def may_take(self, job: Job, run: int, grace_s: float) -> None:
        """Note how long its wrapper was told that a checkpoint takes; 0: it was not told."""
        with self._lock:
            self._grace[job.id] = run, grace_s

    def left(self, job: Job, run: int, word: str) -> None:
        """Note that this wrapper's program has ended, however it did."""
        with self._lock:
            self._speakers.ended(job.id, run, word, self._monotonic())

    def lost(self, job: Job, run: int, word: str) -> bool:
        """Note that a wrapper has left without a word, and whether nobody speaks for the run."""
        with self._lock:
            if job.restarts != run or not self._speakers.lost(job.id, run, word, self._monotonic()):
                return False
            self._heard.pop(job.id, None)
            self._lost[job.id] = run
            return True

    def is_unmanaged(self, job: Job) -> bool:
        """Whether a program of this run goes on without its wrapper."""
        with self._lock:
            return self._lost.get(job.id) == job.restarts

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
        """Return what is known of this run, which begins now where nothing is."""
        known = self._told(job, run)
        if known is None:
            known = RunRow(
                *(job.id, run, job.user, job.account, shape_text(job.shape)),
                *(",".join(job.nodes), job.submit_s, job.start_s, self._clock()),
                name=job.name,
            )
            self._store.run_began(known)
            steps = [row.step for row in self._store.runs(job.id)]
            known = replace(known, step=max(steps, default=0))  # it goes on where it was
            self._known[job.id] = known
        return known

    def _told(self, job: Job, run: int) -> RunRow | None:
        """Return what the program of this run has said, to an earlier pliantd too.

        Of one that began earlier nothing: a slurmctld that was killed has given its number twice.
        """
        known = self._known.get(job.id)
        if known is not None and known.run == run and known.start_s >= job.start_s:
            return known
        if self._never.get(job.id) != run:
            stored = next((row for row in self._store.runs(job.id) if row.run == run), None)
            if stored is not None and stored.start_s >= job.start_s:
                self._known[job.id] = stored
                return stored
            self._never[job.id] = run
        return None

    def _keep(self, before: RunRow, now: RunRow) -> None:
        if now != before:
            self._known[now.job] = now
            self._store.run_told(now)
            if now.rate != before.rate:
                self._rates.pop((now.user, now.name), None)
            if (now.launched_s, now.saved_took_s) != (before.launched_s, before.saved_took_s):
                self._restart_s.pop(now.job, None)

    # --- what is known ---------------------------------------------------------------------

    def life(self, job: Job) -> Life:
        """Return where a job is in its life."""
        over = self._overs.of(job.id)
        runs = job.state is not JobState.WAITING
        with self._lock:
            row = self._told(job, job.restarts) if runs else None
        seen = Seen(
            runs,
            job.start_s,
            row.launched_s if row else 0.0,
            asked=over is not None,
            saved_s=over.saved_s if over else 0.0,
        )
        return observed(seen, self._clock())

    def launched_s(self, job: Job) -> float:
        """Return since when the program of this run works; 0 not known."""
        with self._lock:
            row = self._told(job, job.restarts)
        return row.launched_s if row is not None else 0.0

    def may_reshape(self, job: Job) -> bool:
        """Whether its program may be asked for a checkpoint now: it listens, and is not busy.

        A job of two programs, each under a `pliant run` of its own, may not: see
        :class:`Speakers`. Nor may one with a task whose wrapper is lost: it would not hear of it.
        """
        with self._lock:
            heard_s = self._heard.get(job.id)
        listens = heard_s is not None and self._monotonic() - heard_s < SILENT_S
        alone = not self.are_several(job) and not self.is_unmanaged(job)
        return listens and alone and self.life(job).may_reshape

    def beat(self, job: Job) -> Beat | None:
        """Return how far this run is; None where it has told this pliantd no step."""
        with self._lock:
            known = self._beat.get(job.id)
        return known if known is not None and known.run == job.restarts else None

    def rate(self, job: Job) -> float:
        """Return the steps per second of this run, 0 where they are not known."""
        with self._lock:
            row = self._told(job, job.restarts)
        return row.rate if row is not None else 0.0

    def are_several(self, job: Job) -> bool:
        """Whether more than one wrapper speaks for this run."""
        with self._lock:
            return self._speakers.are_several(job.id, job.restarts, self._monotonic())

    def speaks(self, job: Job) -> bool:
        """Whether its program has ever spoken in this run."""
        with self._lock:
            return self._told(job, job.restarts) is not None

    def grace_s(self, job: Job) -> float:
        """Return how long this run's program may take to save what it has.

        Never longer than its owner said at submission, who may say less to `pliant run`.
        """
        request = job.spec.request if job.spec is not None else None
        malleable = request.malleable if request is not None else None
        most_s = float(malleable.grace_s) if malleable is not None else 0.0
        with self._lock:
            run, said_s = self._grace.get(job.id, (-1, 0.0))
        if run != job.restarts or not said_s:
            return most_s or GRACE_S
        return min(said_s, most_s or MAX_GRACE_S)

    def progress(self, job: Job, steps: int) -> float:
        """Return the part of ``steps`` that its program has done, from 0 to 1; 0 not known."""
        with self._lock:
            row = self._told(job, job.restarts)
        return min(1.0, row.step / steps) if row is not None and steps else 0.0

    def measured(self, job: Job) -> Rates:
        """Return how fast jobs of its user and name ran by their heartbeats; () not known."""
        if job.name in UNNAMED:
            return ()
        with self._lock:
            key = (job.user, job.name)
            if key not in self._rates:
                self._rates[key] = tuple(sorted(self._store.rates(*key).items()))
            return self._rates[key]

    def restart_s(self, job: Job) -> float:
        """Return what a restart costs this job: its last launch and checkpoint; 0 not known."""
        with self._lock:
            if job.id not in self._restart_s:
                self._restart_s[job.id] = self._restart(job.id)
            return self._restart_s[job.id]

    def _restart(self, job_id: str) -> float:
        rows = self._store.runs(job_id)
        launches = [row.launched_s - row.start_s for row in rows if row.launched_s and row.start_s]
        saves = [row.saved_took_s for row in rows if row.saved_took_s]
        return max(0.0, launches[-1] if launches else 0.0) + (saves[-1] if saves else 0.0)

    def forget(self, jobs: Collection[Job]) -> None:
        """Forget what is not there any more; ``jobs``: all that are."""
        there = frozenset(job.id for job in jobs)
        names = {(job.user, job.name) for job in jobs}
        with self._lock:
            self._speakers.forget(there)
            self._rates = {key: rates for key, rates in self._rates.items() if key in names}
            every: tuple[dict[str, Any], ...] = (
                *(self._known, self._never),
                *(self._heard, self._restart_s, self._grace, self._beat, self._lost),
            )
            for known in every:
                for job_id in known.keys() - there:
                    del known[job_id]
