"""What became of a job: its runs, and the changes while it ran, from the store.

Whose job it was is stored at first sight, so that also of one that has ended it can be told who may
see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pliant.daemon import answers as a
from pliant.daemon import rows
from pliant.daemon.changes import counted
from pliant.daemon.flagged import JobRow
from pliant.daemon.named import MOST_NAMED
from pliant.daemon.rights import Asker
from pliant.model import Job
from pliant.store import ENDED, HandOverRow, JobRecord, RunRow, Store

MOST_DECISIONS = 100


def history_of(store: Store, asker: Asker, job_id: str, job: Job | None) -> a.HistoryAnswer | None:
    """Return all that is known of a job; ``job``: as it is now, None once it has ended.

    None where nothing is known, or nothing that the asker may see.
    """
    record = store.jobs.job(job_id)
    runs = store.runs(job_id, silent=True)
    overs = store.handovers(job_id) if job_id else ()
    whose = job or _owned(job_id, (*([record] if record else []), *runs, *overs))
    if whose is None or not asker.may_see(whose):
        return None
    changes, cost = _changes(overs, runs), _cost(overs, runs)
    first_s = runs[0].submit_s if runs else whose.submit_s
    found = a.HistoryAnswer(
        job=job_id,
        user=whose.user,
        submit_s=first_s,
        runs=tuple(map(_run, runs)),
        handovers=changes,
        decisions=rows.decision_rows(store.decisions(job_id, MOST_DECISIONS)),
        lost_s=cost.lost_s,
        lost_gpu_s=cost.lost_gpu_s,
    )
    return found if record is None else _with_record(found, record, _tasks(store, record))


def cost_of(store: Store, job_id: str) -> a.CostRow:
    """Return what changes have cost a job so far."""
    overs = store.handovers(job_id)
    return _cost(overs, store.runs(job_id)) if overs else a.CostRow()


def ended_answer(store: Store, asker: Asker, ids: Sequence[str]) -> a.WhyAnswer | None:
    """Return what became of a job that is there no more; None where that is not known."""
    found = (store.jobs.job(job_id) for job_id in ids)
    record = next((one for one in found if one is not None), None)
    if record is None or not asker.may_see(Job(record.job, record.user, record.account)):
        return None
    decisions = rows.decision_rows(store.decisions(record.job, 10))
    became = _tasks(store, record) or _became(record)
    return a.WhyAnswer(
        *(record.end_s, _row(record), became),
        decisions=decisions,
        cost=cost_of(store, record.job),
    )


def _row(record: JobRecord) -> JobRow:
    return JobRow(
        id=record.job,
        user=record.user,
        partitions=tuple(record.partition.split(",")),
        state="ended",
        reason=record.exit,
        request=record.request,
        mode=record.mode,
        own=record.own,
        carried=record.shape,
        tasks=record.tasks,
        submitted_s=record.submit_s,
        started_s=record.start_s,
        ended_s=record.end_s,
    )


def _tasks(store: Store, record: JobRecord) -> str:
    """Say which tasks of an array are told of apart; "" where there are none, or it was one job."""
    if not record.array or record.exit:
        return ""
    tasks = store.jobs.tasks(record.job, MOST_NAMED + 1)
    if not tasks:
        return ""
    more = " ..." if tasks[MOST_NAMED:] else ""
    named = ", ".join(tasks[:MOST_NAMED])
    return f"it is an array, whose tasks are asked for one by one: {named}{more}"


def _became(record: JobRecord) -> str:
    how = record.exit or f"how is not known{'' if record.state == ENDED else ' yet'}"
    if not record.start_s:
        return f"it has ended before it started: {how}"
    molded = f" instead of {record.own}" if record.molded else ""
    would = f"; it would have started as {record.would} before" if record.would else ""
    return f"it has ended: {how}; it started as {record.shape}{molded}{would}"


def _with_record(found: a.HistoryAnswer, record: JobRecord, tasks: str) -> a.HistoryAnswer:
    return replace(
        found,
        submit_s=record.submit_s,
        partition=record.partition,
        state=record.state,
        request=record.request,
        own=record.own,
        filtered=record.filtered,
        answered=record.answered,
        would=record.would,
        would_s=record.would_s,
        start_s=record.start_s,
        end_s=record.end_s,
        exit=record.exit,
        tasks=tasks,
    )


def _owned(job_id: str, known: Sequence[JobRecord | RunRow | HandOverRow]) -> Job | None:
    return Job(job_id, known[0].user, known[0].account) if known else None


def _run(row: RunRow) -> a.RunHistory:
    return a.RunHistory(
        row.run,
        row.shape,
        tuple(name for name in row.nodes.split(",") if name),
        row.start_s,
        row.launched_s,
        row.step,
        row.rate,
        row.saved_took_s,
        row.code,
        row.end_s,
        row.gpus,
    )


def _cost(overs: Sequence[HandOverRow], runs: Sequence[RunRow]) -> a.CostRow:
    changes, counts = _changes(overs, runs), counted(overs)
    return a.CostRow(
        len(overs),
        counts.resized,
        counts.made_room,
        sum(run.saved_took_s for run in runs) + sum(change.lost_s for change in changes),
        sum(change.lost_gpu_s for change in changes),
    )


def _changes(overs: Sequence[HandOverRow], runs: Sequence[RunRow]) -> tuple[a.HandOverHistory, ...]:
    last = {row.run: row.id for row in overs}
    return tuple(_change(row, runs, saves=last[row.run] == row.id) for row in overs)


def _change(row: HandOverRow, runs: Sequence[RunRow], *, saves: bool) -> a.HandOverHistory:
    """Say what a change cost; ``saves``: its run's checkpoint is told of this one."""
    before = next((run for run in runs if run.run == row.run), None)
    after = next((run for run in runs if run.run > row.run), None)
    back_s = after.launched_s if after else 0.0
    lost_s = max(0.0, back_s - row.saved_s) if row.saved_s and back_s else 0.0
    saving = before.saved_took_s * before.gpus if before and saves else 0.0
    return a.HandOverHistory(
        at_s=row.at_s,
        run=row.run,
        before=row.before,
        after=row.after,
        guest=f"job {row.guest}" if row.guest else "",
        reason=row.reason,
        saved_s=row.saved_s,
        done_s=row.done_s,
        outcome=row.outcome,
        lost_s=lost_s,
        lost_gpu_s=saving + lost_s * (after.gpus if after else 0.0),
    )
