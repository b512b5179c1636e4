"""A hand-over's steps on PBS: what is seen of it, and one command for each step.

The steps are those of :mod:`pliant.handover`. Here the job's program ends with 85, the epilogue
hook sends it back to the queue, and what keeps it from starting there as it was is the time to
begin that the hook gives it. Others are kept out of its vnodes, and of those that it
is to have, by a fence (see fences.py): PBS's own scheduler starts whom it lets in, or nobody. So:

- *pin* and *release* are done by nobody: PBS orders jobs as they came, and a requeued one keeps its
  place.
- *fence* and *renew* put up the fence, which lets in the job; *pin-guest* lets in its guest in its
  place, and *release-guest* the job again.
- *requeue* waits for the program's end, and after some seconds makes it.
- *reshape* gives the request, the time to begin, and a new count of 20 starts before PBS holds it.
- *put back* gives the request as it was, and the time to begin in a call of its own.
- *unfence* ends the hook's time to begin, leaves the fence for some seconds more, and starts a
  cycle of the scheduler. It ends when one has started for whom it was.

A job that is not any more what it was asked as is left so (see standing.py).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeGuard

from pliant.batch.clients import Runs
from pliant.batch.pbs.fences import Fences, Kept
from pliant.batch.pbs.job_rows import ENDING, JobRow
from pliant.batch.pbs.jobs import carried, job_of, spec_of
from pliant.batch.pbs.queries import Queries
from pliant.batch.pbs.reasons import blocked
from pliant.batch.pbs.site import Site
from pliant.batch.pbs.standing import AHEAD_S, is_later_run, is_same_run, stands
from pliant.batch.pbs.update import shape_words
from pliant.batch.pbs.values import has_index
from pliant.errors import Refused, TooLate, Unavailable
from pliant.filter.fields import Fixed
from pliant.filter.pbs.fences import LONGEST_S, Fence, number_of
from pliant.handover import FENCE_S, GIVE_UP_S, GUEST, PINNED, Do, HandOver, Scene, Sight, Step
from pliant.model import Job, JobState, Shape, asks_otherwise

log = logging.getLogger("pliant.handing")

ENDS_S = 15.0
"""How long a program may take to end that has saved, before the job is requeued from outside."""
FALSE_START_S = 120.0
"""How long the start that our hook refuses may take: where its pbs_mom dies, PBS shows it so on."""
_FENCING = frozenset({Do.FENCE, Do.RENEW, Do.PIN_GUEST})


class Handing:
    """Sees and does what a hand-over needs."""

    def __init__(
        self,
        commands: Runs,
        queries: Queries,
        clock: Callable[[], float],
        fences: Fences,
    ) -> None:
        """``clock`` counts seconds since the epoch, as the server's host does or about so."""
        self._commands, self._queries, self._clock = commands, queries, clock
        self._fences = fences

    # --- see -------------------------------------------------------------------------------

    def scene(self, over: HandOver, job: Job, site: Site) -> Scene:
        """Return what is seen now; ``job``: as it was asked.

        Raises Unavailable, BadAnswer.
        """
        now_s = self._clock()  # the look may take long: by what is seen it is no later than that
        rows = {row.id: row for row in self._queries.jobs()}
        row = rows.get(over.job)
        kept, sight = self._kept(over), self._sight(row, over, job, site)
        with contextlib.suppress(Unavailable):  # then the next look does so
            if kept and kept.opened and kept.fence.stands(now_s) and _has_come(over, rows, kept):
                self._fences.end(over.job)
                kept = self._kept(over)
            elif sight.changed and sight.state is JobState.WAITING:
                self._fences.let_in(over.job)  # nobody: it would be past the fences of others, too
        self.tend()
        fence_end_s = 0.0
        if kept is not None and not kept.opened:
            until_s = kept.fence.until_s  # by a clock that was set back it stands no more
            fence_end_s = until_s if until_s <= now_s + LONGEST_S else now_s
        return Scene(
            now_s,
            sight,
            _guest(over, rows, kept, now_s, site),
            fence_end_s,
            AHEAD_S,
        )

    def tend(self) -> None:
        """Start a cycle of the scheduler where a fence has ended.

        PBS starts none for a job that a hook refused: it waits for what happens next, up to 10
        minutes (scheduler_iteration). Raises Unavailable, BadAnswer.
        """
        if not self._fences.fell():
            return
        woken = False
        try:
            woken = self._queries.kick()
        finally:
            if not woken:
                self._fences.not_woken()

    def release(self, rows: Iterable[JobRow]) -> None:
        """Let those start again that PBS holds for going back to the queue, and for nothing else.

        Raises Unavailable.
        """
        for row in rows:
            if row.is_held_for_returns:
                self._let_go(row)

    def _let_go(self, row: JobRow) -> None:
        """Let a job start again. At 1 its next start is the one that is refused, or it was."""
        for argv in (("qalter", "-W", "run_count=1", row.id), ("qrls", "-h", "s", row.id)):
            answer = self._commands.run(argv)
            if answer.status:
                log.warning("job %s: it stays held since it went back: %s", row.id, answer.words)
                return
        log.info("job %s: it was held since it went back to the queue: released", row.id)

    def fences(self) -> Mapping[str, float]:
        """Return when each fence ends that stands now and is not open, by job."""
        return self._fences.standing()

    def _kept(self, over: HandOver) -> Kept | None:
        """Return the fence of this hand-over: one that ended before is that of an earlier one."""
        kept = self._fences.of(over.job)
        if kept is None or kept.fence.stands(self._clock()):
            return kept
        return kept if kept.fence.until_s > over.asked_s else None

    def _sight(self, row: JobRow | None, over: HandOver, job: Job, site: Site) -> Sight:
        if row is None:
            return Sight(None)
        state, now, run = _state(row, self._clock()), job_of(row, site), row.restarts
        changed = row.waits and not stands(row, now, job, over, self._clock())
        if state is JobState.RUNNING:
            run = over.run + 1 if is_later_run(row, over) else run
            changed = not is_same_run(row, now, job, over)
        goes_on = not (changed or over.changed) and self._clock() <= over.saved_s + GIVE_UP_S
        return Sight(
            state=state,
            run=run,
            priority=PINNED if goes_on else 1,
            held=row.state == "H",
            held_by_admin="o" in row.holds and "u" not in row.holds,
            changed=changed,
            carries=_carried(row, site),
            queued_s=over.saved_s,
            begins_s=_begins_s(row, over),
            started_s=row.start_s,
            blocked=blocked(row),
            suspended=row.is_suspended,
        )

    # --- do --------------------------------------------------------------------------------

    def do(self, step: Step, over: HandOver, job: Job, site: Site) -> None:
        """Do one step.

        Raises Refused in PBS's words, Unavailable.
        """
        has_saved = over.saved_s > over.asked_s  # else there is no program that could end
        if step.do is Do.REQUEUE and has_saved and self._clock() < over.saved_s + ENDS_S:
            return
        if step.do is Do.RESHAPE:
            self._reshape(over, job, site)
        elif step.do is Do.PUT_BACK:
            self._put_back(step, over, job, site)
        elif step.do is Do.REQUEUE:
            self._rerun(step, over)
        elif step.do is Do.UNFENCE:
            self._unfence(step, over, job, site)
        elif step.do is Do.RELEASE_GUEST:
            self._release_guest(over)
        elif step.do in _FENCING:
            self._put(over, job, site)
            if step.do is Do.PIN_GUEST:
                self._fences.let_in(over.job, over.guest)

    def _rerun(self, step: Step, over: HandOver) -> None:
        """Requeue a job from outside; one that has been deleted would come back.

        Not a later run: pliantd may have stood still since its look.
        """
        row = self._row(over)
        if row is None or row.is_deleted:
            raise Refused(f"job {over.job}: it has been deleted")
        if row.is_suspended or is_later_run(row, over):
            raise TooLate(f"job {over.job}: it does not run any more")
        try:
            self._tell(step, over, ("qrerun", over.job))
        except Refused as error:
            if any(words in str(error) for words in _IN_PROGRESS):
                raise Unavailable(str(error)) from None
            raise

    def must_keep_out(self) -> None:
        """Raise Refused where nobody could be kept out of what a job gives up."""
        with _or_refused():
            self._fences.check()

    def before_end(self, over: HandOver, job: Job, site: Site) -> None:
        """Put up the fence: PBS may start others as soon as the program has ended.

        That is sooner than the next look, which waits for qstat. Raises Refused.
        """
        self._put(over, job, site)

    def _put(self, over: HandOver, job: Job, site: Site) -> None:
        fence = self._fence(over, job, site)
        with _or_refused():
            self._fences.put(fence)

    def _release_guest(self, over: HandOver) -> None:
        """Let the guest in no more: where the fence stands for more than that, its victim again."""
        kept = self._kept(over)
        if kept is not None and not kept.opened:
            self._fences.let_in(over.job, number_of(over.job))
        else:
            self._fences.end(over.job)

    def _fence(self, over: HandOver, job: Job, site: Site) -> Fence:
        """Return the fence around what a job has, or had, and what it is to have.

        What the job had its fence tells where 0.1.0 asked it, which did not store where it ran.
        """
        known, hosts = self._kept(over), frozenset((*job.nodes, *job.next_nodes))
        had = known.fence.vnodes if known is not None else ()
        groups = site.vnodes.of.items()
        theirs = (row.name for name, group in groups if name in hosts for row in group)
        return Fence(
            over.job,
            self._clock() + FENCE_S,
            tuple(dict.fromkeys((*had, *theirs))),
            self._still(_let_in(known, over), over, site),
            tuple(row.name for row in site.queues.values() if site.may_be_kept_out(row)),
        )

    def _still(self, lets: tuple[str, ...], over: HandOver, site: Site) -> tuple[str, ...]:
        """Whom a fence may let in yet that is put up again: no guest that asks for more by now."""
        if not (over.guest and lets):
            return lets
        row = _guest_row(over, {row.id: row for row in self._queries.jobs()})
        return () if row is None or _has_outgrown(row, over, site) else lets

    def _unfence(self, step: Step, over: HandOver, job: Job, site: Site) -> None:
        row, now_s = self._row(over), self._clock()
        if row is None or not row.waits:
            self._fences.end(over.job)  # the next look wakes whom it kept out
        elif row.begins_by_hook and now_s + AHEAD_S < row.begin_s:
            # it was not reshaped, and has the hook's time to begin; the fence stands until ours
            self._tell(step, over, ("qalter", "-a", _text(int(now_s) + 1), over.job))
        elif not over.guest and stands(row, job_of(row, site), job, over, now_s):
            self._fences.let_in(over.job, number_of(over.job))
            self._open(over)
        elif _lets_guest(self._kept(over), over):
            self._open(over)
        else:
            self._fences.end(over.job)

    def _open(self, over: HandOver) -> None:
        """Let whom it lets in be first; where nobody can be told it stands, to be tried again."""
        if not self._queries.kick():
            raise Unavailable(f"job {over.job}: PBS refuses to start a cycle of its scheduler")
        try:
            self._fences.open(over.job)
        except Unavailable:
            if over.job in self._fences.standing():
                raise
            self._fences.end(over.job)  # it did so by itself

    def _waiting(self, over: HandOver, job: Job, site: Site) -> JobRow:
        """Return the row of a job that waits as it is to. Raises TooLate where it does not."""
        row = self._row(over)
        if row is None or not row.waits:
            raise TooLate(f"job {over.job}: it does not wait any more")
        if not stands(row, job_of(row, site), job, over, self._clock()):
            raise TooLate(f"job {over.job}: it was changed since it was asked; its owner wins")
        return row

    def _reshape(self, over: HandOver, job: Job, site: Site) -> None:
        row = self._waiting(over, job, site)
        begin_s = _may_begin_s(row, self._clock())
        words = (
            *shape_words(row, job, over.shape, job.noted(over.shape), site),
            *_left(over, begin_s, job_of(row, site).time_limit_s),
            *("-W", "run_count=0", "-a", _text(begin_s)),
        )
        self._tell(Step(Do.RESHAPE), over, ("qalter", *words, over.job))
        self._may_begin(over)

    def _put_back(self, step: Step, over: HandOver, job: Job, site: Site) -> None:
        """Put back the request that a job had, with what is left of its time limit.

        Then the time to begin, whatever came of that.
        """
        row = self._waiting(over, job, site)
        begin_s = _may_begin_s(row, self._clock())
        before = shape_words(row, job, over.before, job.flag, site)
        left = _left(over, begin_s, job_of(row, site).time_limit_s)
        for words in filter(None, (left, before)):
            try:
                self._tell(step, over, ("qalter", *words, over.job))
            except Refused as error:
                log.warning("%s", error)
        self._tell(step, over, ("qalter", "-W", "run_count=0", "-a", _text(begin_s), over.job))
        self._may_begin(over)

    def _may_begin(self, over: HandOver) -> None:
        """Let a job start once its time comes, where it has no guest that is to be first."""
        if not over.guest:
            self._fences.let_in(over.job, number_of(over.job))

    def _row(self, over: HandOver) -> JobRow | None:
        """The row of the job as it is just now, which its owner may have changed since the look."""
        return next((row for row in self._queries.jobs() if row.id == over.job), None)

    def _tell(self, step: Step, over: HandOver, argv: Sequence[str]) -> None:
        answer = self._commands.run(argv)
        if answer.status:
            kind = Unavailable if answer.controller_is_away else Refused
            raise kind(f"job {over.job}: {step.do}: {answer.words}")


@contextlib.contextmanager
def _or_refused() -> Iterator[None]:
    """Take what nobody can be told of for refused: the job keeps its place by staying in it."""
    try:
        yield
    except Unavailable as error:
        raise Refused(str(error)) from None


_IN_PROGRESS = ("still in progress", "Request invalid for state")
"""What qrerun says where a rerun takes long, and where another one is asked for meanwhile.

A pbs_mom that was started again with -p does not end the job; the server sends it back without that
after 45 seconds (job_requeue_timeout).
"""


def _state(row: JobRow, now_s: float) -> JobState:
    if row.waits:
        return JobState.WAITING
    starts_falsely = row.starts_falsely and now_s < row.start_s + FALSE_START_S
    ends = row.state == ENDING or starts_falsely
    return JobState.ENDING if ends else JobState.RUNNING


def _begins_s(row: JobRow, over: HandOver) -> float:
    """When it may start, or since when: PBS forgets a time to begin that has come."""
    return row.begin_s or max(row.eligible_s, over.saved_s)


def _may_begin_s(row: JobRow, now_s: float) -> float:
    """Return the next second, or a later one from which on somebody else lets it begin."""
    return max(int(now_s) + 1, 0 if row.begins_by_hook else row.begin_s)


def _carried(row: JobRow, site: Site) -> Shape | None:
    try:
        return carried(row, site, spec_of(row))
    except Fixed:
        return None


def _lets_guest(kept: Kept | None, over: HandOver) -> TypeGuard[Kept]:
    """Whether a fence lets in the guest; one that lets in others is of an earlier hand-over."""
    lets = kept.fence.lets if kept is not None and over.guest else ()
    return over.guest in lets


def _let_in(known: Kept | None, over: HandOver) -> tuple[str, ...]:
    """Whom a fence lets in that is put up, or put up again in place of a known one.

    At first nobody: PBS would start a victim before its guest, and a job as it was that waits for
    its new request, where it has no time to begin yet.
    """
    whom = over.guest or number_of(over.job)
    return (whom,) if known is not None and whom in known.fence.lets else ()


def _guest(
    over: HandOver, rows: Mapping[str, JobRow], kept: Kept | None, now_s: float, site: Site
) -> Sight:
    """See the guest.

    One that did not start while a fence kept others out is not waited for, nor is one that asks for
    more than when room was decided on for it.
    """
    row = _guest_row(over, rows)
    if row is None:
        return Sight(None)
    stands = _lets_guest(kept, over) and kept.fence.stands(now_s)
    was_in_vain = _lets_guest(kept, over) and kept.opened and not stands
    return Sight(
        _state(row, now_s),
        priority=GUEST if stands else 1,
        held=row.state in "HW" or was_in_vain or _has_outgrown(row, over, site),
    )


def _has_outgrown(row: JobRow, over: HandOver, site: Site) -> bool:
    if over.asks is None or not row.waits:
        return False
    as_one = replace(row, state="Q")  # of an array, which may have begun by now
    return asks_otherwise(replace(job_of(as_one, site), eligible=True), over.asks)


def _guest_row(over: HandOver, rows: Mapping[str, JobRow]) -> JobRow | None:
    """Return a guest's row: of a subjob that waits that of its array, by which it was chosen.

    An array as a whole is none.
    """
    row = rows.get(over.guest)
    if row is not None and not (row.is_subjob and row.waits):
        return None if row.is_array else row
    number, _, index = over.guest.removesuffix("]").partition("[")
    array = rows.get(f"{number}[]")
    return array if array is not None and has_index(array.indices, index) else row


def _has_come(over: HandOver, rows: Mapping[str, JobRow], kept: Kept) -> bool:
    """Whether one has started for whom a fence was, or will not any more."""
    is_for_guest = _lets_guest(kept, over)
    row = _guest_row(over, rows) if is_for_guest else rows.get(over.job)
    return row is None or not (row.waits or row.starts_falsely)


def _left(over: HandOver, begin_s: float, limit_s: float) -> Sequence[str]:
    """Return what is left of a job's time limit, where it does not begin anew.

    One that is less already is its owner's.
    """
    left_s = max(60, int(over.end_s - begin_s))
    lowers = over.end_s > 0 and not 0 < limit_s <= left_s
    return ("-l", f"walltime={left_s}") if lowers else ()


def _text(instant_s: float) -> str:
    """Write an instant for ``-a``, in UTC as the commands run: [CC]YYMMDDhhmm.SS."""
    return datetime.fromtimestamp(instant_s, UTC).strftime("%Y%m%d%H%M.%S")
