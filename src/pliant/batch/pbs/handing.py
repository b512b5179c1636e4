"""A hand-over's steps on PBS: what is seen of it, and one command for each step.

The steps are those of :mod:`pliant.handover`. Here the job's program ends with 85, the epilogue
hook sends it back to the queue, and what keeps it from starting there as it was is the time to
begin (or the hold) that the hook gives it: that is the *fence*, which ends by itself. It keeps
nobody else out. So:

- *pin*, *fence*, *renew* and *release* are done by nobody: PBS orders jobs as they came, and a
  requeued one keeps its place.
- *requeue* waits for the program's end, and after some seconds makes it.
- *reshape* gives the request, the time to begin, and a new count of 20 starts before PBS holds it.
- *unfence* ends the hook's hold.
- *pin-guest* starts the guest where it fits (``qrun``), before the victim may begin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pliant.batch.clients import Runs
from pliant.batch.pbs.jobs import Site, carried, spec_of
from pliant.batch.pbs.queries import Queries
from pliant.batch.pbs.rows import ENDING, JobRow
from pliant.batch.pbs.update import shape_words
from pliant.errors import Refused, Unavailable
from pliant.filter.fields import Fixed
from pliant.handover import PINNED, Do, HandOver, Scene, Sight, Step
from pliant.model import Job, JobState, Shape

STANDS_S = 3600.0
"""How long a fence stands that the job itself is: longer than any that is looked at."""
AHEAD_S = 2.0
"""How far ahead a time to begin is set: PBS counts in whole seconds."""
ENDS_S = 15.0
"""How long a program may take to end that has saved, before the job is requeued from outside."""
_NOTHING = frozenset({Do.PIN, Do.FENCE, Do.RENEW, Do.RELEASE, Do.RELEASE_GUEST})


class Handing:
    """Sees and does what a hand-over needs."""

    def __init__(
        self, commands: Runs, queries: Queries, clock: Callable[[], float] = time.time
    ) -> None:
        """``clock`` counts seconds since the epoch, as the server's host does or about so."""
        self._commands, self._queries, self._clock = commands, queries, clock

    # --- see -------------------------------------------------------------------------------

    def scene(self, over: HandOver, site: Site) -> Scene:
        """Return what is seen now.

        Raises Unavailable, BadAnswer.
        """
        rows = {row.id: row for row in self._queries.jobs()}
        now_s, row = self._clock(), rows.get(over.job)
        sight = self._sight(row, over, site)
        stands = row is not None and self._stands(row, over, now_s)
        guest = rows.get(over.guest) if over.guest else None
        return Scene(
            now_s,
            sight,
            _guest(guest) if over.guest else None,
            now_s + STANDS_S if stands else 0.0,
            AHEAD_S,
        )

    def _stands(self, row: JobRow, over: HandOver, now_s: float) -> bool:
        """Whether something keeps the job from starting as it is, or will once it has ended."""
        if not row.waits:
            return over.saved_s > 0 and row.restarts <= over.run
        return row.is_held_by_us or row.begin_s > now_s + AHEAD_S

    def _sight(self, row: JobRow | None, over: HandOver, site: Site) -> Sight:
        if row is None or row.state == "F":
            return Sight(None)
        state = _state(row)
        shape = _carried(row, site) if row.waits else None
        back = row.waits or row.restarts <= over.run
        return Sight(
            state=state,
            run=row.restarts,
            priority=PINNED if back else 1,
            held=row.state == "H" and not row.is_held_by_us,
            carries=shape,
            queued_s=over.saved_s,
            begins_s=row.begin_s,
            started_s=row.start_s,
        )

    # --- do --------------------------------------------------------------------------------

    def do(self, step: Step, over: HandOver, job: Job, site: Site) -> None:
        """Do one step.

        Raises Refused in PBS's words, Unavailable.
        """
        if step.do in _NOTHING:
            return
        if step.do is Do.REQUEUE and self._clock() < over.saved_s + ENDS_S:
            return
        if step.do is Do.RESHAPE:
            self._reshape(over, job, site)
        elif step.do is Do.REQUEUE:
            self._tell(step, over, ("qrerun", over.job))
        elif step.do is Do.UNFENCE:
            self._tell(step, over, ("qrls", "-h", "s", over.job))
            self._kick()
        elif step.do is Do.PIN_GUEST:
            self._tell(step, over, ("qrun", over.guest))

    def _reshape(self, over: HandOver, job: Job, site: Site) -> None:
        row = {one.id: one for one in self._queries.jobs()}.get(over.job)
        if row is None or not row.waits or job.spec is None:
            raise Refused(f"job {over.job}: it does not wait any more")
        begin_s = int(self._clock()) + 1
        if over.guest:  # who it makes room for is first, if there is room now
            self._commands.run(("qrun", over.guest))
        words = (
            *shape_words(row, job, over.shape, job.noted(over.shape), site),
            *_left(over, begin_s),
            *("-W", "run_count=0", "-a", _text(begin_s)),
        )
        self._tell(Step(Do.RESHAPE), over, ("qalter", *words, over.job))

    def _kick(self) -> None:
        self._commands.run(("qmgr", "-c", "set server scheduling = True"))

    def _tell(self, step: Step, over: HandOver, argv: Sequence[str]) -> None:
        answer = self._commands.run(argv)
        if answer.status:
            kind = Unavailable if answer.controller_is_away else Refused
            raise kind(f"job {over.job}: {step.do}: {answer.words}")


def _state(row: JobRow) -> JobState:
    if row.waits:
        return JobState.WAITING
    ends = row.state == ENDING or row.starts_falsely
    return JobState.ENDING if ends else JobState.RUNNING


def _carried(row: JobRow, site: Site) -> Shape | None:
    try:
        return carried(row, site, spec_of(row))
    except Fixed:
        return None


def _guest(row: JobRow | None) -> Sight:
    if row is None:
        return Sight(None)
    return Sight(_state(row), held=row.state in "HW")


def _left(over: HandOver, begin_s: float) -> Sequence[str]:
    """Return what is left of a job's time limit, where it does not begin anew."""
    left_s = max(60, int(over.end_s - begin_s))
    return ("-l", f"walltime={left_s}") if over.end_s else ()


def _text(instant_s: float) -> str:
    """Write an instant for ``-a``, in UTC as the commands run: [CC]YYMMDDhhmm.SS."""
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y%m%d%H%M.%S")
