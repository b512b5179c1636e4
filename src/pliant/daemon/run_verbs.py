"""The verbs of ``pliant run`` (see :mod:`pliant.wire.runs`): for a job's own user alone.

They are spoken for one run of one job: what is said of a run that is over, or that Slurm has not
shown yet, is refused in one line, and ``pliant run`` says it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pliant.daemon.cycling import Cycling
from pliant.daemon.handing import HandOvers, Said, name_of
from pliant.daemon.rights import Asker
from pliant.daemon.runs import Runs
from pliant.daemon.seen import Seen
from pliant.errors import BadInput, Refused, Unavailable
from pliant.grammar import quoted
from pliant.handover import HandOver
from pliant.model import Job, JobState, shape_text
from pliant.wire.runs import MOST, RunAnswer

log = logging.getLogger("pliant.runs")
GONE = "its `pliant run` is gone without a word: no checkpoint is asked for any more"


@dataclass(slots=True)
class RunVerbs:
    """What a job's program may say, over what the last look saw."""

    cycling: Cycling
    runs: Runs
    overs: HandOvers
    clock: Callable[[], float]
    _by_name: tuple[Seen | None, dict[str, Job]] = field(default=(None, {}))

    def answer(self, verb: str, fields: Mapping[str, str], asker: Asker) -> RunAnswer:
        """Answer one request.

        Raises PliantError.
        """
        if verb not in VERBS:
            raise BadInput(f"{quoted(verb)}: one of {', '.join(VERBS)} is expected")
        job, run = self._job(fields, asker), int(_number(fields, "run"))
        self.overs.spoke(job.id)
        age_s = _number(fields, "age") if verb == BEGIN else 0.0
        if verb == BEGIN and self._is_forgotten(job, run, age_s):
            raise Refused(f"job {job.id}: run {run} is forgotten: it is to go back once more")
        if self._is_inherited(job, run, age_s):
            run = job.restarts
        if run != job.restarts or not self._is_seen(job):
            raise Refused(f"job {job.id}: run {run} is not the one that is known")
        VERBS[verb](self, job, run, fields)
        if self.runs.are_several(job) or self.runs.is_unmanaged(job):
            self.overs.withdraw(job.id)
        stays = verb in (SAVED, WATCH) and self.overs.stays(job.id, run, fields.get("wish"))
        return replace(self._wish(job, run), stays=stays)

    def id_of(self, fields: Mapping[str, str]) -> str:
        """Return the id of the job that a request is about: a task of an array goes by another."""
        name = fields.get("job", "")
        job = self._known(name)
        return job.id if job is not None else name

    def is_news(self, fields: Mapping[str, str]) -> bool:
        """Whether a watch is to be answered at once."""
        over = self.overs.of(self.id_of(fields))
        name = name_of(over) if over is not None and not over.saved_s else ""
        return name != fields.get("known", "")

    def left(self, fields: Mapping[str, str]) -> None:
        """A watch was given up: unless its program has ended, its wrapper is lost.

        One that merely could not wait begins anew within a minute, and is known again.
        """
        job = self._known(fields.get("job", ""))
        if job is None:
            return
        if self.runs.lost(job, int(_number(fields, "run")), fields.get("word", "")):
            over = self.overs.of(job.id)
            if over is None or not over.saved_s:  # else it ends by the requeue
                log.info("job %s: %s", job.id, GONE)
            self.overs.withdraw(job.id)

    def begin(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A run's program has been started, or its wrapper looks for us anew.

        One whose program ends before it hears us says no more: so it counts from its first watch.
        """
        self.runs.heard(job, run, lost=fields.get("lost") == "1")
        self.runs.may_take(job, run, _number(fields, "grace"))
        if fields.get("others") == "1":
            self.runs.spoke(job, run, fields.get("word", ""), others=True)

    def launched(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A program has begun to work."""
        self.watch(job, run, {**fields, "launched": "1"})

    def watch(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A program runs, and says how far it is."""
        self.runs.spoke(job, run, fields.get("word", ""))
        self.runs.heard(
            job,
            run,
            launched=fields.get("launched") == "1",
            ago_s=_number(fields, "ago"),
            step=int(_number(fields, "step")),
            rate=_number(fields, "rate"),
            beat_s=_number(fields, "beat"),
            lost=fields.get("lost") == "1",
        )

    def saved(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A program has saved what it has and ended, as it was asked.

        Where another one runs beside it that would be ended by a requeue, nothing comes of it: the
        answer says why.
        """
        wish, said, over = fields.get("wish", ""), _said(fields), self.overs.of(job.id)
        if self.runs.are_several(job) and (over is None or not over.saved_s):
            return
        overs = self.overs
        if not overs.saved(job.id, run, wish, said) and not overs.saved_late(job, run, wish, said):
            raise Refused(f"job {job.id}: nobody asked this run for that checkpoint")
        self.runs.saved(job, run, _number(fields, "took"))

    def failed(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A program could not save, and runs on."""
        untold = fields.get("untold") == "1"
        self.overs.failed(job.id, run, fields.get("wish", ""), _said(fields), untold=untold)

    def end(self, job: Job, run: int, fields: Mapping[str, str]) -> None:
        """A program has ended by itself."""
        self.runs.left(job, run, fields.get("word", ""))
        over = self.overs.of(job.id)
        if over is not None:
            self.overs.failed(job.id, run, name_of(over))
        if fields.get("termed") != "1":
            self.runs.ended(job, run, int(_number(fields, "code")))

    def _job(self, fields: Mapping[str, str], asker: Asker) -> Job:
        """Return the asker's own running job of this name.

        Raises Refused, Unavailable.
        """
        name = fields.get("job", "")
        if self.cycling.seen is None:
            raise Unavailable("the first look is not done yet")
        job = self._known(name)
        if job is None or not asker.owns(job):
            raise Refused(f"{quoted(name)}: no running job of yours has this number")
        return job

    def _known(self, name: str) -> Job | None:
        """Return the running job of this number, its own one or what squeue shows."""
        seen, jobs = self._by_name
        now = self.cycling.seen
        if now is not seen:
            running = now.snapshot.running if now is not None else ()
            jobs = {job.id: job for job in running}
            jobs |= {job.number: job for job in running if job.number}
            self._by_name = now, jobs
        return jobs.get(name)

    def _is_seen(self, job: Job) -> bool:
        """Whether the last look saw this very run, and not the end of the one before.

        Slurm 24.11 counts a restart from the requeue on: while the run before still ends, it shows
        that one's nodes and shape under the new number.
        """
        if job.state is JobState.ENDING and job.restarts:
            return self.runs.speaks(job)
        return job.state is not JobState.WAITING

    def _is_inherited(self, job: Job, run: int, age_s: float) -> bool:
        """Whether a wrapper took its number of restarts from the job that submitted its own.

        Slurm sets it in jobs that were restarted alone. So a first run has what it inherited,
        unless what we know of the job is older than the wrapper, and the job was restarted since.
        """
        return run > 0 == job.restarts and self._was_seen(age_s)

    def _is_forgotten(self, job: Job, run: int, age_s: float) -> bool:
        """Whether a run that we let begin is not known any more: its slurmctld was killed since."""
        is_next = job.state is JobState.RUNNING and run == job.restarts + 1
        return is_next and self._was_seen(age_s) and self.overs.forgotten(job)

    def _was_seen(self, age_s: float) -> bool:
        """Whether what we know is younger than a wrapper of this age."""
        seen = self.cycling.seen
        return seen is not None and seen.snapshot.now_s > self.clock() - age_s

    def _wish(self, job: Job, run: int) -> RunAnswer:
        over, state = self.overs.of(job.id), self.runs.life(job).phase
        now_s, goes = self.clock(), over is not None and over.saved_s > 0
        several = self.runs.are_several(job) and not goes
        if over is None or over.run != run or goes or several:
            return RunAnswer(
                state=state, now_s=now_s, several=several, run=run, signal=_signal(job)
            )
        return RunAnswer(
            *(name_of(over), _why(over), shape_text(over.shape), over.until_s, state, now_s),
            run=run,
            signal=_signal(job),
            checkpoint=_checkpoint(job),
        )


def _why(over: HandOver) -> str:
    return "preempt" if over.guest else "resize"


def _checkpoint(job: Job) -> str:
    malleable = job.spec.request.malleable if job.spec is not None else None
    return malleable.checkpoint if malleable is not None else ""


def _signal(job: Job) -> str:
    malleable = job.spec.request.malleable if job.spec is not None else None
    return malleable.signal if malleable is not None else ""


def _said(fields: Mapping[str, str]) -> Said:
    return fields.get("word", ""), int(_number(fields, "number"))


def _number(fields: Mapping[str, str], name: str) -> float:
    """Read a number that is not negative; "" is 0.

    Raises BadInput.
    """
    text = fields.get(name, "") or "0"
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MOST:
        raise BadInput(f"{name}: {quoted(text)}: a number of at least 0 is expected")
    return number


_Verb = Callable[[RunVerbs, Job, int, Mapping[str, str]], None]

BEGIN, WATCH, SAVED = "run-begin", "run-watch", "run-saved"
VERBS: Mapping[str, _Verb] = {
    BEGIN: RunVerbs.begin,
    "run-launched": RunVerbs.launched,
    WATCH: RunVerbs.watch,
    SAVED: RunVerbs.saved,
    "run-failed": RunVerbs.failed,
    "run-end": RunVerbs.end,
}
