"""Jobs that have ended, as PBS's history has them (``job_history_enable``), for pliantd's own.

The server keeps them for two weeks by default, so that there may be very many: it is asked for the
ids of those alone that carry a token and were changed since it was asked last, and then for these
by name. Measured on OpenPBS 23.06: a comparison of a resource leaves out the jobs that do not have
it but for ``ne`` and ``lt``; ``qstat -x`` prints all jobs that are named as JSON, and those that
are known where others are not. Where there is no history nothing is known of how a job ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from pliant.batch import Ended
from pliant.batch.clients import Runs
from pliant.batch.pbs.job_rows import job_row
from pliant.batch.pbs.jobs import job_of
from pliant.batch.pbs.site import Site
from pliant.batch.pbs.values import Table, instant_s, number, table, text
from pliant.errors import BadAnswer
from pliant.filter.pbs.names import TOKEN

FIRST_S = 86400.0
"""How far back is looked at first: pliantd may have been away."""
AGAIN_S = 120.0
"""And later, beside the time since: who ended meanwhile may have been on the way."""
MOST, AT_ONCE = 1000, 100
"""So many ids are looked into, the highest, and so many by one command."""
_EXITS = {91: "CANCELLED", 92: "COMPLETED", 93: "FAILED"}
"""By a job's substate, in Slurm's words (JOB_SUBSTATE_* in src/include/job.h)."""
_TIMED_OUT = -29
"""The Exit_status of a job whose walltime was over (JOB_EXEC_KILL_WALLTIME, as above)."""


class History:
    """Asks PBS for jobs that have ended."""

    def __init__(self, commands: Runs) -> None:
        self._commands = commands
        self._since_s: float | None = None

    def ended(self, site: Site, now_s: float) -> list[Ended]:
        """Return the flagged jobs that have ended since this was asked last; of arrays the tasks.

        What is not understood is left out: it would be so again for as long as PBS remembers it.
        Raises Unavailable.
        """
        since_s = now_s - FIRST_S if self._since_s is None else self._since_s - AGAIN_S
        answer = self._commands.run(select_words(since_s))
        if answer.status:  # there is no history
            return []
        ids = answer.out.split()[-MOST:]
        found: list[Ended] = []
        for at in range(0, len(ids), AT_ONCE):
            argv = ("qstat", "-x", "-f", "-F", "json", *ids[at : at + AT_ONCE])
            out = self._commands.run(argv).out
            with suppress(BadAnswer):
                found += ended_jobs(out, site)
        self._since_s = now_s
        return found


def select_words(since_s: float) -> tuple[str, ...]:
    """Return what asks for the ids of flagged jobs that have ended since an instant."""
    since = f"{datetime.fromtimestamp(since_s, UTC):%Y%m%d%H%M.%S}"  # PBS's clients have UTC here
    token = f"{TOKEN}.ge.{TOKEN}"
    return ("qselect", "-x", "-T", "-s", "FX", f"-tm.ge.{since}", "-l", token)


def ended_jobs(out: str, site: Site) -> Iterator[Ended]:
    """Read ``qstat -x -f -F json``.

    Raises BadAnswer.
    """
    for name, one in table(out, "Jobs").items():
        row = job_row(name, one)
        if not row.id or row.is_array or row.state not in ("F", "X"):
            continue
        job = job_of(row, site)
        if not one.get("stime"):  # it never started
            job = replace(job, start_s=0.0, nodes=())
        if job.spec is not None:
            yield Ended(job, _exit(one), _end_s(one))


def _exit(one: Table) -> str:
    """Return Slurm's word for a job's end; "" for one that PBS does not tell."""
    if number(one.get("Exit_status")) == _TIMED_OUT:
        return "TIMEOUT"
    return _EXITS.get(number(one.get("substate")), "")


def _end_s(one: Table) -> float:
    return instant_s(text(one.get("obittime"))) or instant_s(text(one.get("mtime")))
