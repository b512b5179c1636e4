"""Jobs that a hook of 0.1.0 holds, and that nobody releases any more.

The epilogue hook of 0.1.0 could hold a job that it sent back to the queue (``[pbs] back =
"hold"``), and its pliantd or periodic hook ended that.
"""

from __future__ import annotations

from pliant.batch.clients import Runs
from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.queries import Queries
from pliant.errors import Refused
from pliant.filter.pbs.names import HELD

BY_QHOLD = "Job held by"
"""How the comment of a job begins that somebody holds; a hook that does writes none."""


def held_jobs(commands: Runs) -> list[str]:
    """Return the jobs that wait with that hook's hold alone.

    Raises Unavailable, BadAnswer.
    """
    return [row.id for row in Queries(commands).jobs() if is_held(row)]


def is_held(row: JobRow) -> bool:
    """Whether a hook of 0.1.0 holds a job, and it has not run since.

    PBS has one system hold for all who set one: where a dependency or a qhold may have set it too,
    it is left. (Others that wait for this one, ``beforeok`` and the like, do not hold it.)
    """
    is_marked = row.variables.get(HELD, "") == str(row.run_count)
    depends = any(one and not one.startswith("before") for one in row.depend.split(","))
    by_others = depends or row.comment.startswith(BY_QHOLD)
    return row.waits and row.holds == "s" and is_marked and not by_others


def release(commands: Runs, job: str) -> None:
    """End the hold.

    Raises Refused, Unavailable.
    """
    answer = commands.run(("qrls", "-h", "s", job))
    if answer.status:
        raise Refused(f"job {job}: it stays held: {answer.words}")
