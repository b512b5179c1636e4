"""Hand-overs under way: what each job's program is asked for, and the steps after its checkpoint.

Intentions are stored before anything is done, and each step is worked out anew from what is seen
(see :mod:`pliant.handover`), so that a pliantd that was killed goes on where it was. One hand-over
at a time for each job; they run in a thread of their own, beside the cycles (see
:mod:`pliant.daemon.stepping`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pliant.batch.snapshot_file import read_job, write_job
from pliant.daemon.journal import about_job
from pliant.errors import BadInput, BadSpec, Closed, Infeasible, PliantError, Refused, TooLate
from pliant.grammar import parse_shape
from pliant.handover import (
    BEFORE_RESHAPE,
    BEGINS,
    PUT_BACK_S,
    REFUSED_S,
    Do,
    HandOver,
    Outcome,
    Scene,
    Sight,
    Step,
    is_contradicted,
    next_step,
)
from pliant.model import Job, JobState, Shape, shape_text
from pliant.store import HandOverRow, Store

log = logging.getLogger("pliant.handing")

QUICK_S = 0.05
"""Between looks at a job that has been checkpointed: its GPUs stand idle."""
SLOW_S = 1.0
"""Between looks at one whose program is still asked for its checkpoint."""
AGAIN_S = 1.0
"""After a step that the batch system refused, or that changed nothing."""
HEARD_S = 8.0
"""How long a program that said that it has saved is taken to wait for the requeue: its
``pliant run`` says so every 4 s, and waits for longer (``node.core.SILENT_S``) before it acts
itself, by as much as a requeue may take that is not answered. Where that is refused, the program
runs again, and has what it saved no more."""
UNHEARD_S = 65.0
"""How long the requeue of a run is withheld that has saved, and does not say so any more: what
does requeue it meanwhile finds its place kept. Where its ``pliant run`` has spoken of something
else in that time, as it does every minute at least, its program runs again; else nobody is there:
the run has ended, which a slurmctld that was killed forgets."""
STALE_S = 600.0
"""A checkpoint that comes so long after its wish was given up leads to no other shape."""
ONCE_MORE_S = 600.0
"""A run whose requeue was forgotten is ended if its job saved no longer ago: it would lose more."""
REST_S = 300.0
"""A job that saved in vain, and goes on where it is, or was asked in vain, is not asked before."""
LATE = frozenset(
    (Outcome.NOT_SAVED.value, Outcome.HELD.value, Outcome.HELD_BY_ADMIN.value),
)
"""What is given up before a checkpoint that may still come."""

PLACELESS_S = 3600.0
"""The same where the batch system refused to keep its place, which it may do of every job's."""

_GIVEN_UP = LATE | {Outcome.STALLED.value, Outcome.UNTOLD.value}
_TURNED = frozenset((Outcome.REFUSED, Outcome.SLOW, Outcome.AS_WAS))
"""What stands before why a shape was refused: before 0.2 it was AS_WAS for REFUSED."""
_BEGUN = frozenset((Outcome.DONE, Outcome.AS_WAS, Outcome.REFUSED))
"""The ends in which its next run has begun."""
_RESTS = frozenset((Outcome.STAYS, Outcome.UNTOLD))
"""Those that would come again at once."""
_WENT_BACK = _BEGUN | {Outcome.SLOW}
"""Those in which it has gone back, or else it was given up too long after its checkpoint."""
_AGAIN = _BEGUN | {Outcome.CHANGED}
"""Those in which it may have."""
WHY = ": "
"""Between an outcome and the batch system's words."""
UNMADE = "the batch system took the change and did not make it"
Said = tuple[str, int]
"""A wrapper's own word, and the number of what it reports of its program."""
UNNUMBERED: Said = ("", 0)
"""Earlier releases number nothing."""


class Hands(Protocol):
    """The batch system, as far as a hand-over needs it. Calls block and raise PliantError."""

    def scene(self, over: HandOver, job: Job) -> Scene:
        """Return what is seen of a hand-over now."""
        ...

    def step(self, step: Step, over: HandOver, job: Job) -> None:
        """Do one step of it."""
        ...

    def must_go_back(self, job: Job) -> None:
        """Raise Refused where a job that ends after its checkpoint would not come back."""
        ...

    def before_end(self, over: HandOver, job: Job) -> None:
        """Do at once what must be so before a program ends that has saved."""
        ...

    def fences(self) -> Mapping[str, float]:
        """Return when each fence ends that stands now, by job."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job is to become: ``nodes`` where, as far as decided; ``guest``: for which job.

    ``end_s``, ``asks``: as in :class:`HandOver`.
    """

    shape: Shape
    nodes: tuple[str, ...] = ()
    guest: str = ""
    end_s: float = 0.0
    asks: Job | None = None


@dataclass(slots=True)
class _Active:
    number: int
    over: HandOver
    job: Job
    next_s: float = 0.0
    trouble: str = ""
    did: Step | None = None  # in the last look
    heard_s: float = float("-inf")  # when its program last said that it waits; inf: it says nothing
    spoke_s: float = float("-inf")  # when its `pliant run` last said anything
    withheld_s: float = 0.0  # since when its requeue is, 0 while it is not
    ran_s: float = 0.0  # when it was last seen to run or to end
    waits_s: float = 0.0  # since when it is seen to wait, where the batch system does not say
    behind_s: float = 0.0  # when another's fence was last seen around its nodes
    room_s: float = 0.0  # when it was last seen to make room for its guest yet; 0.0: it was not
    unpinned_s: float = 0.0  # since when the pin of its guest is refused; 0.0: it is not
    no_guest: bool = False  # that is given up: it is as one that is held
    requeued: bool = False  # the batch system was told so, or may have been
    stays: bool = False  # it has saved, and goes on where it is
    rest_s: float = REST_S  # for how long it is not asked again where that is to be so
    untold: bool = False  # its program could not be asked
    ready: bool = False  # the batch system is, for its program's end
    once_more: bool = False  # its requeue has been forgotten
    aside: tuple[Wanted, frozenset[str]] | None = None  # what is kept for others, where it is that


class HandOvers:
    """The hand-overs under way; safe to use from several threads."""

    def __init__(
        self,
        hands: Hands,
        store: Store,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        *,
        ended: Callable[[Job, str, Outcome, str], None] = lambda _job, _guest, _outcome, _told: (
            None
        ),
        changed: Callable[[str], None] = lambda _job_id: None,
        has_place: Callable[[Job, Wanted], bool] = lambda _job, _wanted: True,
        kept: Callable[[Job, Wanted], frozenset[str]] = lambda _job, _wanted: frozenset(),
    ) -> None:
        """``clock`` counts seconds since the epoch, and may be set; ``monotonic`` counts evenly.

        ``ended`` is told of each end, with the guest and in words.

        ``changed`` is told which job something else is wanted of now, from any thread.
        ``has_place``: whether a job could still start so, asked once its program has saved.
        ``kept``: the nodes that are kept for others, where it could start, or its guest.
        """
        self._hands, self._store, self._clock, self._ended = hands, store, clock, ended
        self._monotonic = monotonic
        self._told, self._has_place, self._kept = changed, has_place, kept
        self._active: dict[str, _Active] = {}
        self._gone: dict[str, int] = {}  # the last run that was handed over, by job
        self._rests: dict[str, float] = {}  # until when it is not asked again, by job
        self._placeless = float("-inf"), ""  # until when that is said, and in which words
        self._refused: dict[str, dict[Shape, str]] = {}  # what it was not given, by job: as stored
        self._said: dict[str, Said] = {}  # the last report of its wrapper's, by job
        self._ended_since = set[str]()
        self._lock = threading.RLock()
        self._stopping = False
        self.woken: Callable[[], None] = lambda: None
        """Is called, from any thread, where a step may be due sooner than :meth:`turn` said."""

    # --- what is intended ------------------------------------------------------------------

    def begin(
        self, job: Job, wanted: Wanted, until_s: float, reason: str, *, listens: bool = True
    ) -> bool:
        """Ask a job's program for a checkpoint; False where one is under way already.

        False too for one that runs where ``job`` is of a look that is older than the end of that
        run, shortly after it has saved in vain, for a shape that it was not given, and for a guest
        for whom another makes room: one of two may keep its place.
        Where none ``listens`` that could make one, it is as good as made at once: nothing is
        awaited, and :meth:`resume` knows it by that.
        """
        now_s = self._clock()
        until_s = until_s if listens else 0.0
        with self._lock:
            is_over = self._is_resting(job.id) or job.restarts <= self._gone.get(job.id, -1)
            is_over |= wanted.shape in self.refused(job.id)
            is_under_way = job.id in self._active or self._is_served(wanted.guest)
            if is_under_way or (is_over and job.state is JobState.RUNNING):
                return False
            asked = replace(job, next_nodes=wanted.nodes)
            row = HandOverRow(
                *(0, now_s, job.id, job.user, job.account, job.restarts, shape_text(job.shape)),
                *(shape_text(wanted.shape), wanted.guest, reason, until_s),
                end_s=wanted.end_s,
                asked=write_job(asked),
                guest_asks=write_job(wanted.asks) if wanted.asks is not None else "",
            )
            number = self._store.hand_over(row)
            over = HandOver(
                *(job.id, job.restarts, wanted.shape, now_s, until_s),
                guest=wanted.guest,
                end_s=wanted.end_s,
                before=job.shape,
                asks=wanted.asks,
            )
            active = _Active(number, over, asked)
            if not listens:
                active.over = replace(over, saved_s=now_s)
                active.heard_s = float("inf")
                self._store.saved(number, now_s)
            self._active[job.id] = active
            self.woken()
        after = shape_text(wanted.shape)
        fields = about_job(job, shape_text(job.shape), after)
        log.info("job %s: to %s: %s", job.id, after, reason, extra=fields)
        self._told(job.id)
        return True

    def _is_served(self, guest: str) -> bool:
        """Whether a job is a guest, for whom another makes room."""
        return guest != "" and any(one.over.guest == guest for one in self._active.values())

    def resume(self, jobs: Iterable[Job]) -> None:
        """Go on with what was under way when pliantd ended; ``jobs``: all that are there now.

        What a job contradicts counts as not stored, and so does all but the last one of a job.
        """
        known = {job.id: job for job in jobs}
        with self._lock:
            for row in reversed(self._store.handovers()):
                over, now = _read(row), known.get(row.job)
                active = self._active.get(row.job)
                if active is not None and active.number == row.id:
                    continue
                if (
                    over is None
                    or active is not None
                    or (now is not None and is_contradicted(over, now))
                ):
                    self._store.handed_over(row.id, self._clock(), "?")
                else:
                    job = _as_asked(row) or now or Job(row.job)
                    if now is not None and _is_its_run(over, now):
                        over = replace(over, ran_s=self._clock())
                    self._active[row.job] = active = _Active(row.id, over, job)
                    if not over.until_s:  # nobody was asked, who must say once more that it waits
                        active.heard_s = float("inf")
            self.woken()

    def looking(self) -> None:
        """Say that a look at all jobs begins: what has ended before, it shows."""
        with self._lock:
            self._ended_since.clear()

    def fenced(self) -> dict[str, tuple[str, ...]]:
        """Return where each job runs or ran that is in a hand-over, and where it is to run."""
        with self._lock:
            jobs = [active.job for active in self._active.values()]
        return {job.id: (*job.nodes, *job.next_nodes) for job in jobs}

    def ended_since(self) -> frozenset[str]:
        """Return whom the last look may show in the middle of what has ended since it began.

        Jobs, and the guests that room was made for.
        """
        with self._lock:
            return frozenset(self._ended_since)

    def forget(self, there: frozenset[str]) -> None:
        """Forget what is known of jobs that are not there any more."""
        with self._lock:
            self._gone = {job: run for job, run in self._gone.items() if job in there}
            self._rests = {job: until_s for job, until_s in self._rests.items() if job in there}
            self._said = {job: said for job, said in self._said.items() if job in there}
            self._refused = {job: some for job, some in self._refused.items() if job in there}

    def of(self, job_id: str) -> HandOver | None:
        """Return a job's hand-over; None where it has none."""
        with self._lock:
            active = self._active.get(job_id)
            return active.over if active else None

    def as_asked(self, job_id: str) -> Job | None:
        """Return a job as it ran when it was last asked; None where that is not stored."""
        rows = self._store.handovers(job_id)
        return _as_asked(rows[-1]) if rows else None

    def refused(self, job_id: str) -> Mapping[Shape, str]:
        """Return the shapes that the batch system did not give a running job, and its words."""
        with self._lock:
            if job_id not in self._refused:
                rows = self._store.handovers(job_id)
                self._refused[job_id] = dict(filter(None, map(_refused, rows)))
            return self._refused[job_id]

    def rests(self, job_id: str) -> bool:
        """Whether a running job is not asked again yet, as it has saved in vain shortly ago."""
        with self._lock:
            return self._is_resting(job_id)

    def _is_resting(self, job_id: str) -> bool:
        return self._monotonic() < self._rests.get(job_id, float("-inf"))

    def placeless(self) -> str:
        """Return in which words it was refused of late to keep a job's place; or ""."""
        until_s, words = self._placeless
        return words if self._monotonic() < until_s else ""

    def all(self) -> Mapping[str, Wanted]:
        """Return what the jobs of which one is under way are to become, by job."""
        with self._lock:
            return {
                job_id: Wanted(
                    *(active.over.shape, _places(active), active.over.guest), asks=active.over.asks
                )
                for job_id, active in self._active.items()
            }

    # --- what its program says -------------------------------------------------------------

    def saved(self, job_id: str, run: int, name: str, said: Said = UNNUMBERED) -> bool:
        """Note that the checkpoint of this run is written; False where nobody asked for it.

        Raises Refused where it was said before what was said since.
        """
        with self._lock:
            self._check_order(job_id, said)
            active = self._active.get(job_id)
            if active is None or not self._does_for(active.over, run, name):
                return self.stays(job_id, run, name)  # it is said again until it is heard
            self._note_heard(active)
            if not (active.over.saved_s or active.stays):
                self._note_saved(active)
            over, job, ends = active.over, active.job, not (active.stays or active.ready)
        if ends:  # of one noted as saved too: pliantd may have been killed just then
            self._before_end(over, job)
            active.ready = True
        return True

    def _does_for(self, over: HandOver, run: int, name: str) -> bool:
        """Whether a checkpoint of this name is what a hand-over waits for.

        One for a wish that was given up is too: its program has ended, and heard of no later one.
        """
        rows = self._store.handovers(over.job)
        earlier = [_read(row) for row in rows if row.run == run and row.outcome in _GIVEN_UP]
        return over.run == run and name in (name_of(one) for one in (over, *filter(None, earlier)))

    def _note_heard(self, active: _Active) -> None:
        """Its program waits: a requeue that had to wait for that is due at once."""
        active.heard_s, active.withheld_s = self._monotonic(), 0.0
        self._hasten(active)

    def _check_order(self, job_id: str, said: Said) -> None:
        """Raise Refused where a wrapper has said something else since: threads overtake others."""
        word, number = said
        last = self._said.get(job_id, said)
        if word == last[0] and number < last[1]:
            raise Refused(f"job {job_id}: its `pliant run` has said something else since")
        self._said[job_id] = said

    def _note_saved(self, active: _Active) -> None:
        over, job = active.over, active.job
        wanted = Wanted(over.shape, job.next_nodes, over.guest, over.end_s, over.asks)
        active.stays = not self._has_place(job, wanted)
        if active.stays:
            active.over = replace(over, until_s=0.0)
        else:
            active.over = replace(over, saved_s=self._clock())
            self._store.saved(active.number, active.over.saved_s)

    def stays(self, job_id: str, run: int, name: str | None = None) -> bool:
        """Whether a run that has saved is to go on where it is: it would have lost its place.

        ``name``: for which wish; None: for the last one.
        """
        with self._lock:
            active = self._active.get(job_id)
            if active is not None:
                over = active.over if active.stays else None
            else:
                rows = self._store.handovers(job_id)
                over = _read(rows[-1]) if rows and rows[-1].outcome == Outcome.STAYS else None
            if over is None:
                return False
            return over.run == run if name is None else self._does_for(over, run, name)

    def saved_late(self, job: Job, run: int, name: str, said: Said = UNNUMBERED) -> bool:
        """Go on with a hand-over that was given up before this run's program saved after all.

        It has ended for it, and waits for us. False where there is none of this name. What was
        decided too long ago is not done any more: the job is requeued as it is, without a guest.
        Raises as :meth:`saved`.
        """
        with self._lock:
            self._check_order(job.id, said)
            rows = self._store.handovers(job.id)
            over = _read(rows[-1]) if rows and rows[-1].outcome in _GIVEN_UP else None
            if over is None or not self._does_for(over, run, name):
                return False
            over, then = replace(over, saved_s=self._clock()), _as_asked(rows[-1])
            if over.saved_s - rows[-1].done_s > STALE_S:
                over, then = replace(over, shape=job.shape, guest=""), None
            job = replace(job, next_nodes=then.next_nodes if then is not None else ())
            wanted = Wanted(over.shape, job.next_nodes, over.guest, over.end_s, over.asks)
            if self._is_served(over.guest) or not self._has_place(job, wanted):
                self._store.handed_over(rows[-1].id, over.saved_s, Outcome.STAYS)
                self._rests[job.id] = self._monotonic() + REST_S
                return True
            self._note_heard(self._reopen(rows[-1], over, job))
        self._before_end(over, job)
        log.info("job %s: its checkpoint came late; it goes on", job.id)
        self._told(job.id)
        return True

    def forgotten(self, job: Job) -> bool:
        """Requeue a job once more: its next run is there, of which the batch system knows nothing.

        It was killed, and has forgotten the requeue: it takes the place of the run before for
        used, and may give to others what is. ``job``: as it is known now. False where it was not
        requeued for a hand-over of that run, or not of late: it is one like others then. True too
        where it may not go back now.
        """
        with self._lock:
            active = self._active.get(job.id)
            if active is not None and active.once_more:
                return True
            rows = self._store.handovers(job.id)
            over = _read(rows[-1]) if rows else None
            if over is None or not over.saved_s or over.run != job.restarts:
                return False
            has_begun = _outcome(rows[-1]) in _WENT_BACK
            if active is not None:  # the number of a first run may be of the job that submitted it
                has_begun = job.restarts > 0 or active.over.made
            if not has_begun or self._clock() - over.saved_s > ONCE_MORE_S:
                self._gone.pop(job.id, None)
                return False
            active = active or self._begun_once_more(rows[-1], over, job)
            if active is None:
                return True
            active.once_more = True
            self._hasten(active)
        log.warning("job %s: its requeue has been forgotten: it goes back once more", job.id)
        return True

    def _begun_once_more(self, row: HandOverRow, over: HandOver, job: Job) -> _Active | None:
        """Reopen one after which its next run had begun; None where it may not go back now.

        It becomes what it was to be and makes room for the same guest, unless that was refused,
        another does so, or there is no room for it any more: then it starts again as it is known.
        """
        then, refused = _as_asked(row), self.refused(job.id)
        nodes = then.next_nodes if then is not None else ()
        as_asked = Wanted(over.shape, nodes, over.guest, asks=over.asks)
        ways = (as_asked, Wanted(job.shape))
        for wanted in (way for way in ways if way.shape == job.shape or way.shape not in refused):
            if not self._is_served(wanted.guest) and self._has_place(job, wanted):
                over = replace(over, shape=wanted.shape, guest=wanted.guest, saved_s=self._clock())
                return self._reopen(row, over, replace(job, next_nodes=wanted.nodes))
        return None

    def _reopen(self, row: HandOverRow, over: HandOver, job: Job) -> _Active:
        """Let one be under way again that had ended, from its checkpoint on."""
        self._store.reopened(row.id, over.saved_s, shape_text(over.shape), over.guest)
        self._active[job.id] = active = _Active(row.id, over, job)
        return active

    def _before_end(self, over: HandOver, job: Job) -> None:
        """Let the batch system be ready: the program ends as soon as we have answered it."""
        try:
            self._hands.before_end(over, job)
        except PliantError as error:
            log.warning("%s", error)

    def failed(
        self,
        job_id: str,
        run: int,
        name: str,
        said: Said = UNNUMBERED,
        *,
        untold: bool = False,
    ) -> None:
        """Note that there is no checkpoint, as nobody was asked where ``untold``: the job goes on.

        Also one that was reported before: its program runs again, and has what it saved no more
        where it ends now. Where the batch system has been told to requeue it, it may do so yet: it
        is told no more, and that is waited for. Raises as :meth:`saved`.
        """
        with self._lock:
            self._check_order(job_id, said)
            active = self._active.get(job_id)
            if active is None:
                return
            is_its_own = (active.over.run, name_of(active.over)) == (run, name)
            was_taken = active.over.saved_s > 0 and self._does_for(active.over, run, name)
            if not (is_its_own or was_taken):
                return
            active.heard_s = float("-inf")
            if not active.requeued:
                active.untold = untold
                self._take_back(active)
                self._hasten(active)

    def _take_back(self, active: _Active) -> None:
        """Note that its program runs, and has nothing saved: it goes on where it is."""
        self._store.saved(active.number, 0.0)
        active.over = replace(active.over, until_s=0.0, saved_s=0.0)

    def spoke(self, job_id: str) -> None:
        """Note that a job's ``pliant run`` is there, whatever it says, and of whichever run."""
        with self._lock:
            active = self._active.get(job_id)
            if active is not None:
                active.spoke_s = self._monotonic()

    def withdraw(self, job_id: str) -> None:
        """Take a wish back whose checkpoint is not written yet: the job goes on as it is."""
        with self._lock:
            active = self._active.get(job_id)
            if active is not None:
                active.over = replace(active.over, until_s=0.0)  # of no account once it is written
                self._hasten(active)

    def _hasten(self, active: _Active) -> None:
        """Let its next step be due at once."""
        active.next_s = 0.0
        self.woken()

    # --- the steps -------------------------------------------------------------------------

    def stop(self) -> None:
        """Let the step that is under way be the last one: the next pliantd goes on."""
        self._stopping = True

    def turn(self) -> float:
        """Do the next step of each hand-over that is due; return when the next one is."""
        now_s = self._monotonic()
        with self._lock:
            due = [active for active in self._active.values() if active.next_s <= now_s]
        for active in due:
            if not self._stopping:
                self._advance(active)
        with self._lock:
            return min((active.next_s for active in self._active.values()), default=float("inf"))

    def _advance(self, active: _Active) -> None:
        over, job = active.over, active.job
        was_requeued = active.requeued
        try:
            look_s = self._monotonic()
            scene = self._hands.scene(over, job)
            scene = _as_queued(active, scene, self._monotonic() - look_s)
            active.behind_s = scene.behind_s or active.behind_s
            scene = _with_room(active, replace(scene, behind_s=active.behind_s))
            over = self._as_it_runs(active, over, scene)
            over = self._as_it_ends(active, over, scene.job)
            step = next_step(over, scene)
            with self._lock:
                step = self._heard(active, step, scene.job)
                if not self._stands(active, over, step, scene.job):
                    return
            if step.outcome is not None:
                self._end(active, Outcome.STAYS if active.stays else step.outcome)
                return
            if step.do is Do.TURN_BACK:
                self._turn_back(active, step.words, scene.now_s)
            elif step.do not in (Do.WAIT, Do.SETTLE):
                self._do(active, step, scene)
        except PliantError as error:
            if isinstance(error, Refused):
                active.requeued = was_requeued  # by a command that was not answered, say
            if str(error) != active.trouble:
                log.warning("%s", error)
            gives_up = _given_up(active.over) != _given_up(over)
            active.trouble = str(error)
            active.next_s = self._monotonic() + (0.0 if gives_up else AGAIN_S)
            return
        except Exception:  # the thread lives on: the other jobs' GPUs stand idle
            log.exception("job %s: a mistake of Pliant's own in its hand-over", over.job)
            active.next_s = self._monotonic() + AGAIN_S
            return
        active.trouble = ""
        active.next_s = self._monotonic() + _pause_s(step, active)
        active.did = step

    def _heard(self, active: _Active, step: Step, job: Sight) -> Step:
        """Return a step, but for a requeue that would end a run whose program may run again.

        One that is not heard of is waited for, and then left where it is. So is one that is to go
        back once more, of which nothing is saved since, where its owner holds it.
        """
        ends_it = step.do is Do.REQUEUE and job.state is JobState.RUNNING
        now_s = self._monotonic()
        waits = now_s <= active.heard_s + HEARD_S
        if job.suspended:  # and so is its `pliant run`
            active.withheld_s = 0.0
        if not ends_it or waits or (active.once_more and not job.held):
            return step
        active.withheld_s = active.withheld_s or now_s
        if now_s <= active.withheld_s + UNHEARD_S and not active.once_more:
            return Step(Do.SETTLE)
        if active.spoke_s < active.withheld_s and not active.once_more:
            return step
        log.warning("job %s: its program has saved, and runs again: it stays", active.job.id)
        self._take_back(active)
        return Step(Do.SETTLE)

    def _do(self, active: _Active, step: Step, scene: Scene) -> None:
        """Do one step; note since when, and in which words, a reshape is refused."""
        now_s = scene.now_s
        again = active.did is not None and active.did.do is step.do is Do.RESHAPE
        if again:  # it was taken, and is to be done once more
            self._note_refusal(active, UNMADE, now_s, for_good=False)
        if step.begin_s:
            with self._lock:
                active.over = replace(active.over, told_s=step.begin_s, begin_s=0.0)
        over = active.over
        if step.do is Do.RESHAPE:
            with self._lock:
                self._note_made(active, made=False)
        begins = step.opens or step.do in BEGINS
        aside = self._aside(active, scene) if begins else step.aside
        try:
            self._hands.step(replace(step, aside=aside), over, active.job)
        except TooLate:  # nothing was done: what it asks now is not what we have left
            with self._lock:
                self._note_made(active, made=over.made)
            raise
        except Refused as error:
            self._note_refused(active, step, error, scene)
            raise
        with self._lock:
            stuck = _is_stuck(active.over, step, now_s)
            ran_s = self._clock() - scene.ahead_s if step.do is Do.REQUEUE else active.over.ran_s
            active.over = replace(active.over, hindered_s=0.0, stuck=stuck, ran_s=ran_s)
        if step.do is Do.PIN_GUEST:
            active.unpinned_s = 0.0
        if step != active.did:  # said once, however often it is to be done
            log.info("job %s: %s", active.over.job, step.do, extra=about_job(active.job))

    def _aside(self, active: _Active, scene: Scene) -> frozenset[str]:
        """The nodes that are kept for others, where one could start that is to start now.

        Asked once: what others are planned for once its own fence is there, or it is pinned, is
        because of that. Of one that turns back what it has is its own.
        """
        over = active.over
        guest, nodes = over.guest if scene.guest.is_waiting else "", _places(active)
        asks = over.asks if guest else None
        to = Wanted(over.goal, () if over.back_s else nodes, guest, over.end_s, asks)
        if active.aside is None or active.aside[0] != to:
            active.aside = to, self._asked_kept(active.job, to)
        return active.aside[1]

    def _asked_kept(self, job: Job, to: Wanted) -> frozenset[str]:
        try:
            return self._kept(job, to)
        except Exception:  # it starts all the same: its GPUs stand idle
            log.exception("job %s: a mistake of Pliant's own: nothing is kept from it", job.id)
            return frozenset()

    def _note_refused(self, active: _Active, step: Step, error: Refused, scene: Scene) -> None:
        now_s, for_good = scene.now_s, isinstance(error, Infeasible)
        if step.do is Do.RESHAPE:
            words = str(error).removeprefix(f"job {active.over.job}: {step.do}: ")
            self._note_refusal(active, words, now_s, for_good=for_good)
        elif step.do is Do.PIN_GUEST:
            active.unpinned_s = active.unpinned_s or now_s
            active.no_guest |= for_good or now_s - active.unpinned_s >= REFUSED_S
        elif step.do in BEFORE_RESHAPE:
            self._note_hindrance(active, step, scene, error)
        else:
            with self._lock:
                stuck = _is_stuck(active.over, step, now_s)
                active.over = replace(active.over, stuck=stuck)

    def _note_hindrance(self, active: _Active, step: Step, scene: Scene, error: Refused) -> None:
        """Note since when it is hindered; one stays as it runs that cannot be requeued, may not
        start again where it runs, or whose place cannot be kept."""
        over, now_s = active.over, scene.now_s
        since_s = over.hindered_s or now_s
        given_up = isinstance(error, Infeasible) or now_s - since_s >= REFUSED_S
        closed = isinstance(error, Closed)
        runs = scene.job.state is JobState.RUNNING
        with self._lock:
            barred = over.barred or (given_up and not runs and not scene.job.killed)
            active.over = replace(over, hindered_s=since_s, barred=barred)
            if not runs or not (closed or given_up):
                return
            active.stays = True
            self._take_back(active)
            if not closed and step.do is not Do.REQUEUE:
                words = f"a job's place cannot be kept, it goes on as it is: {error}"
                self._placeless = self._monotonic() + PLACELESS_S, words
                active.rest_s = PLACELESS_S
        log.warning("job %s: it stays, and its program goes on: %s", over.job, error)
        self._told(over.job)

    def _note_refusal(self, active: _Active, words: str, now_s: float, *, for_good: bool) -> None:
        with self._lock:
            since_s = active.over.refused_s or now_s
            for_good |= now_s - since_s >= REFUSED_S
            active.over = replace(active.over, refused=words, refused_s=since_s, for_good=for_good)

    def _turn_back(self, active: _Active, words: str, now_s: float) -> None:
        with self._lock:
            active.over = replace(active.over, refused=words, back_s=now_s)
        log.warning(
            *("job %s: it does not become %s and goes on as it was: %s",),
            *(active.over.job, shape_text(active.over.shape), words),
        )

    def _as_it_runs(self, active: _Active, over: HandOver, scene: Scene) -> HandOver:
        """Return the hand-over with when its run was last seen, where it runs or ends.

        What ends once the job was told when to begin is a later run.
        """
        runs = scene.job.state is JobState.RUNNING and scene.job.run <= over.run
        if not runs and (scene.job.state is not JobState.ENDING or over.told_s):
            return over
        seen = replace(over, ran_s=scene.now_s)
        with self._lock:
            if active.over is not over:  # its program has spoken meanwhile: nothing is done
                return over
            active.over = seen
        return seen

    def _as_it_ends(self, active: _Active, over: HandOver, sight: Sight) -> HandOver:
        """Return the hand-over with the time limit that the run which is asked has by now.

        Its owner may make that shorter, an administrator longer, or take it away; and Slurm itself
        puts the end of a run off that was suspended. So nobody has changed the job that waits.
        """
        job, limit_s, ends_s = active.job, sight.limit_s, sight.ends_s
        ends_otherwise = over.end_s > 0 and abs(ends_s - over.end_s) >= 1
        if not limit_s or not (ends_otherwise or _has_another_limit(job, limit_s)):
            return over
        with self._lock:
            if active.over is over:
                active.job = replace(
                    job,
                    time_limit_s=round(ends_s - job.start_s) if ends_s else 0,
                    limit_shown_s=int(limit_s) if ends_s else 0,
                )
                active.over = replace(over, end_s=ends_s if over.end_s else 0.0)
                self._store.ends(active.number, active.over.end_s, write_job(active.job))
            return active.over

    def _note_made(self, active: _Active, *, made: bool) -> None:
        if active.over.made != made:
            active.over = replace(active.over, made=made)
            self._store.made(active.number, made)

    def _stands(self, active: _Active, over: HandOver, step: Step, job: Sight) -> bool:
        """Whether a step is still right; it is not where its program has spoken meanwhile.

        Note then that a job asks for what it is to become, and begins as it was told, as what it
        says later is its owner's, and that somebody else has changed it.
        """
        if active.over is not over:
            return False
        if job.carries == over.shape:
            self._note_made(active, made=True)
        if job.changed and job.state is JobState.WAITING:
            active.over = replace(active.over, changed=True)
        elif job.begins_s == active.over.told_s > 0:
            active.over = replace(active.over, begin_s=job.begins_s)
        if step.do is Do.REQUEUE:
            active.requeued = True
            if job.state is JobState.RUNNING:  # what had been made of it is forgotten
                self._note_made(active, made=False)
        return True

    def _end(self, active: _Active, outcome: Outcome) -> None:
        if active.untold and outcome is Outcome.NOT_SAVED:
            outcome = Outcome.UNTOLD
        with self._lock:
            self._active.pop(active.over.job, None)
            told = _told(active.over, outcome)
            self._ended_since |= {active.over.job, active.over.guest}
            self._refused.pop(active.over.job, None)
            if outcome in _AGAIN:
                self._gone[active.over.job] = active.over.run
            elif outcome in _RESTS or _was_checked(active.job, outcome):
                self._rests[active.over.job] = self._monotonic() + active.rest_s
            self._store.handed_over(active.number, self._clock(), told)
        change = shape_text(active.job.shape), shape_text(active.over.shape)
        log.info("job %s: %s", active.over.job, told, extra=about_job(active.job, *change))
        self._told(active.over.job)
        self._ended(active.job, active.over.guest, outcome, told)


def _has_another_limit(job: Job, limit_s: float) -> bool:
    """Whether its time limit is said otherwise by now; an earlier pliantd has not stored it."""
    known_s = job.limit_shown_s or (0 if job.time_limit_s else float("inf"))
    return known_s not in (0, limit_s)


def _as_queued(active: _Active, scene: Scene, took_s: float) -> Scene:
    """Return what is seen, with since when it waits: not since before it was last seen to run.

    Slurm notes no new SubmitTime where a run's node goes down while it ends. Such a job waits since
    it is first seen to: at the latest when that look was over, which ``took_s``.
    """
    if scene.job.state is not JobState.WAITING:
        active.ran_s, active.waits_s = scene.now_s, 0.0
    elif scene.job.queued_s < int(max(active.ran_s, active.over.saved_s - scene.ahead_s)):
        active.waits_s = active.waits_s or scene.now_s + took_s
        return replace(scene, job=replace(scene.job, queued_s=float(int(active.waits_s))))
    return scene


def _with_room(active: _Active, scene: Scene) -> Scene:
    """Return what is seen, with when the room for its guest was last seen to be made yet.

    A guest whose pin is refused for long is as one that is held: its victim has its room again.
    """
    if not active.over.guest:
        return scene
    if active.no_guest:
        scene = replace(scene, guest=replace(scene.guest, held=True))
    job, now_s = scene.job, scene.now_s
    again = job.state is JobState.RUNNING and job.run > active.over.run
    has_left = again or (job.state is JobState.WAITING and now_s >= job.begins_s)
    if not has_left or scene.fence_end_s or not active.room_s:
        active.room_s = now_s
    return replace(scene, room_s=active.room_s)


def _was_checked(job: Job, outcome: Outcome) -> bool:
    """Whether a program may have been started again because its named checkpoint was not new."""
    malleable = job.spec.request.malleable if job.spec is not None else None
    return outcome is Outcome.NOT_SAVED and malleable is not None and malleable.checkpoint != ""


def _given_up(over: HandOver) -> tuple[bool, ...]:
    """What is not tried any more."""
    return (over.barred, over.for_good, over.stuck)


def _is_stuck(over: HandOver, step: Step, now_s: float) -> bool:
    """Whether a request that is to be put back had its time, once this step was tried."""
    return over.stuck or (step.do is Do.PUT_BACK and now_s >= over.back_s + PUT_BACK_S)


def _told(over: HandOver, outcome: Outcome) -> str:
    """How it ended, with the batch system's words where those are why."""
    turned = over.back_s > 0 and outcome in _TURNED
    return f"{outcome}{WHY}{over.refused}" if turned else outcome.value


def _outcome(row: HandOverRow) -> str:
    """How one ended, without the batch system's words."""
    return row.outcome.partition(WHY)[0]


def _refused(row: HandOverRow) -> tuple[Shape, str] | None:
    """Which shape a job was not given, and why, by what :func:`_told` said."""
    outcome, _, words = row.outcome.partition(WHY)
    over = _read(row) if outcome in _TURNED and words else None
    return (over.shape, words) if over else None


def _places(active: _Active) -> tuple[str, ...]:
    """Where a job will run: as decided, or where it is if it needs as many nodes there."""
    job = active.job
    return job.next_nodes or (job.nodes if len(job.nodes) == active.over.shape.nodes else ())


def _pause_s(step: Step, active: _Active) -> float:
    if step.do is Do.WAIT:
        return QUICK_S if active.over.saved_s else SLOW_S
    return AGAIN_S if step == active.did else 0.0


def name_of(over: HandOver) -> str:
    """Return how a hand-over is called towards the job's program: no two of a job are alike."""
    return f"{over.run}.{over.asked_s:.3f}"


def _read(row: HandOverRow) -> HandOver | None:
    shape, before = _shape(row.after), _shape(row.before)
    if shape is None or before is None:
        return None
    times = (row.at_s, row.until_s, row.saved_s)
    over = HandOver(row.job, row.run, shape, *times, row.guest, row.end_s, before=before)
    return replace(over, made=row.made, asks=_job(row.guest_asks))


def _shape(text: str) -> Shape | None:
    try:
        return parse_shape(text)
    except BadSpec:
        return None


def _is_its_run(over: HandOver, job: Job) -> bool:
    """Whether a job is in the run that is handed over, or that ends: a requeue counts at once.

    What ends once it asks for less, say, may be a later run.
    """
    if job.state is JobState.RUNNING:
        return job.restarts <= over.run
    return job.state is JobState.ENDING and not over.made and job.restarts <= over.run + 1


def _as_asked(row: HandOverRow) -> Job | None:
    """Return the job as it was when it was asked; None where an older pliantd did not note it."""
    return _job(row.asked)


def _job(text: str) -> Job | None:
    try:
        return read_job(text)
    except BadInput:
        return None
