"""The edges of the fake of Slurm: what may become of a job, as far as slurmctld's log tells it.

An edge is one change of one job: it starts, ends or waits again; its place in the queue, its fence,
its GPUs, or whether it waits for the two minutes that Slurm lets a requeued job wait are otherwise
than before. Of how it stood before an edge says whether it waited, ran or how it had ended, whether
it was requeued before, and what else makes a difference to that change: to a start all, to the end
of a run whether it was held or pinned, to others nothing.

The fake knows more than a log tells, so what it does is seen as a log would tell it:

- When a requeue or a cancel was asked for no log says, but when the run has ended: until then it
  runs. A start that fails is a start, and then the end or the requeue of what was started.
- Why a job is held, who set its priority, with how many GPUs it was submitted, when somebody lets it
  begin, what its limit, its dependency or its comment is: all that is left out. So a priority that
  backfill writes back is the edge of one that is set.
- That a reservation is over no log says: its fence stands until it is listed no more.
- A command that changes several things is an edge for each.
- What a slurmctld forgets that is killed is no edge: of a job that it may know less of none counts.

One is told apart though no log does so: that a requeue itself holds the job. In a log that is seen as
a requeue that leaves it its place, until somebody releases it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from unittest import mock

from pliant.batch import FENCE
from pliant.handover import OURS
from prove.fake_slurm import REQUEUE_S, Jobs, Record

_PHASES = {"PENDING": "waits", "RUNNING": "runs", "COMPLETING": "runs"}
_LONG, _OWN = "for two minutes", "in its own place"


def edges(before: Jobs, after: Jobs, number: int) -> Iterator[str]:
    """Yield the edges of a job between two moments between which one thing was done."""
    old, new = before.jobs[number], after.jobs[number]
    if old.waits and (new.runs or new.has_failed or new.run > old.run):
        yield from _of_its_start(_stands(old, _fence(before, old)), old, new)
    elif _phase(old) != _phase(new):
        yield _ends(_who(old), old, new)
    elif not new.is_over:
        yield from _of_what_it_asks(old, new)
    yield from _of_its_fence(before, after, old, new)


def _of_its_start(waits: str, old: Record, new: Record) -> Iterator[str]:
    """Yield how a job starts, and, where that fails, how it ends."""
    moves = ", elsewhere" if old.run and old.on != new.on else ""
    begun = _who(old).replace("waits", "runs")
    yield f"{waits} > {begun}{moves}"
    if not new.runs:
        yield _ends(begun, old, new)


def _of_what_it_asks(old: Record, new: Record) -> Iterator[str]:
    """Yield what is otherwise of a job that goes on to wait, or to run."""
    for what in (_place, _begins):
        if what(old) != what(new):
            yield f"{_who(new)}: {what(old)} > {what(new)}"
    if old.gpus != new.gpus:
        yield f"{_who(new)}: asks for other GPUs"
    if old.on != new.on:
        yield f"{_who(new)}: its nodes are changed"


def _ends(who: str, old: Record, new: Record) -> str:
    """How a run ends, or a job that does not run; of one that waits again then, how."""
    if new.is_over:
        return f"{who} > {new.state}"
    place = "" if old.is_over else _place(old)
    return f"{_said(who, place)} > {_stands(new)}"


def _of_its_fence(before: Jobs, after: Jobs, old: Record, new: Record) -> Iterator[str]:
    """Yield what becomes of its fence."""
    name = f"{FENCE}{new.number}"
    had, has = (_fence(jobs, old) for jobs in (before, after))
    if had != has:
        yield f"{_who(new)}: {had or 'no fence'} > {has or 'no fence'}"
    elif before.fences.get(name) != after.fences.get(name):
        yield f"{_who(new)}: its fence is to end at another time"


def _phase(job: Record) -> str:
    return _PHASES.get(job.state, job.state)


def _who(job: Record) -> str:
    """Whether it waits or runs, and was requeued before: a requeue counts once its run has ended."""
    if job.is_over:
        return job.state
    counted = not job.final or job.killed_s >= job.start_s > 0  # it may be cancelled meanwhile
    run = job.run - (job.state == "COMPLETING" and counted)
    return f"{_phase(job)} anew" if run > 0 else _phase(job)


def _stands(job: Record, fence: str = "") -> str:
    return _said(_who(job), _LONG if _begins(job) == _LONG else "", _place(job), fence)


def _said(*words: str) -> str:
    return ", ".join(word for word in words if word and word != _OWN)


def _place(job: Record) -> str:
    return "pinned" if job.priority in OURS else _OWN if job.priority else "held"


def _begins(job: Record) -> str:
    by_requeue = job.waits and job.run > 0 and job.begin_s == job.submit_s + REQUEUE_S
    return _LONG if by_requeue else "as it was told"


def _fence(jobs: Jobs, job: Record) -> str:
    """Whether its fence is where it has been, or there only where others are to be."""
    nodes = jobs.fenced.get(f"{FENCE}{job.number}")
    if nodes is None:
        return ""
    return "fenced elsewhere" if {*nodes}.isdisjoint(job.on) else "fenced"


def changed_jobs(before: Jobs, after: Jobs) -> Set[int]:
    """Return which jobs, known before and after, have another record or another fence."""
    known = before.jobs.keys() & after.jobs.keys()
    return {number for number in known if _differs(before, after, number)}


def _differs(before: Jobs, after: Jobs, number: int) -> bool:
    name = f"{FENCE}{number}"
    had, has = ((jobs.fences.get(name), jobs.fenced.get(name)) for jobs in (before, after))
    return before.jobs[number] is not after.jobs[number] or had != has


@contextmanager
def noted(found: set[str]) -> Iterator[None]:
    """Note the edges of all that is done to a fake: its jobs are changed in two ways, and no other."""
    with_job, with_fences = Jobs.with_job, Jobs.with_fences

    def _with_job(jobs: Jobs, job: Record) -> Jobs:
        after = with_job(jobs, job)
        if job.number in jobs.jobs:
            found.update(edges(jobs, after, job.number))
        return after

    def _with_fences(
        jobs: Jobs, fences: Mapping[str, float], fenced: Mapping[str, tuple[str, ...]]
    ) -> Jobs:
        after = with_fences(jobs, fences, fenced)
        for number in changed_jobs(jobs, after):
            found.update(edges(jobs, after, number))
        return after

    with (
        mock.patch.object(Jobs, "with_job", _with_job),
        mock.patch.object(Jobs, "with_fences", _with_fences),
    ):
        yield
