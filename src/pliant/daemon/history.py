"""What became of a job: its runs, and the changes while it ran, from the store."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.daemon import answers as a
from pliant.daemon import rows
from pliant.daemon.rights import Asker
from pliant.model import Job
from pliant.store import HandOverRow, RunRow, Store

MOST_DECISIONS = 100


def history_of(store: Store, asker: Asker, job_id: str, job: Job | None) -> a.HistoryAnswer | None:
    """Return all that is known of a job; ``job``: as it is now, None once it has ended.

    None where nothing is known, or nothing that the asker may see.
    """
    runs, overs = store.runs(job_id), store.handovers(job_id) if job_id else ()
    whose = job or _owned(job_id, (*runs, *overs))
    if whose is None or not asker.may_see(whose):
        return None
    changes = tuple(_change(over, runs) for over in overs)
    saving_s = sum(run.saved_took_s for run in runs)
    first_s = runs[0].submit_s if runs else whose.submit_s
    return a.HistoryAnswer(
        job=job_id,
        user=whose.user,
        submit_s=first_s,
        runs=tuple(map(_run, runs)),
        handovers=changes,
        decisions=rows.decision_rows(store.decisions(job_id, MOST_DECISIONS)),
        lost_s=saving_s + sum(change.lost_s for change in changes),
    )


def _owned(job_id: str, known: Sequence[RunRow | HandOverRow]) -> Job | None:
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
    )


def _change(row: HandOverRow, runs: Sequence[RunRow]) -> a.HandOverHistory:
    after = next((run for run in runs if run.run > row.run), None)
    back_s = after.launched_s if after else 0.0
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
        lost_s=max(0.0, back_s - row.saved_s) if row.saved_s and back_s else 0.0,
    )
