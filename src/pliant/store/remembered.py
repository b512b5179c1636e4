"""The jobs that say something to Pliant, each from when it was first seen, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from pliant.store.database import Database
from pliant.store.rows import COUNTED, ENDED, LIVING, Decision, JobRecord, RunRow, Tally, clean

MOST_JOBS = 1_000_000
"""Whatever the retention: with all their runs these take less than 1 GB."""


def _values(names: Sequence[str]) -> str:
    return f"({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    return attrgetter(*names)


_JOB = tuple(field.name for field in fields(JobRecord))
_FLAGS = (_JOB.index("answered"), _JOB.index("array"))
_RUN = ("job", "run", "user", "account", "shape", "nodes", "submit_s", "start_s", "name", "gpus")
_TALLY = ("hour_s", "partition", *COUNTED)
_job_values, _run_values, _tally_values = map(_values_of, (_JOB, _RUN, _TALLY))

NOT_LIVING = f"NOT {LIVING}"
"""A condition on rows of jobs that have ended, or of which nothing else is known."""

_READ_JOB = f"SELECT {', '.join(_JOB)} FROM jobs"  # noqa: S608  # our own names
_KEEP_JOB = f"INSERT OR REPLACE INTO jobs {_values(_JOB)}"
_RUN_BEGINS = (
    f"INSERT INTO runs {_values((*_RUN, 'at_s'))[:-2]}0)"
    " ON CONFLICT (job, run) DO UPDATE SET gpus = excluded.gpus"
)
_RUN_ENDS = "UPDATE runs SET end_s = ? WHERE job = ? AND run = ?"
_COUNT = (
    f"INSERT INTO hours {_values(_TALLY)} ON CONFLICT (hour_s, partition) DO UPDATE SET "
    + ", ".join(f"{name} = {name} + excluded.{name}" for name in COUNTED)
)

DECIDES = "INSERT INTO decisions (at_s, job, what, shape, reason) VALUES (?, ?, ?, ?, ?)"


def decision_values(made: Decision) -> tuple[object, ...]:
    """Return a decision as :data:`DECIDES` takes it."""
    return (made.at_s, made.job, made.what, made.shape, clean(made.reason))


class Remembered:
    """The tables ``jobs`` and ``hours``, and of ``runs`` what is seen of each run."""

    def __init__(self, db: Database) -> None:
        """Keep them in ``db``."""
        self._db = db

    def keep(
        self,
        jobs: Iterable[JobRecord] = (),
        begun: Iterable[RunRow] = (),
        ended: Iterable[tuple[float, str, int]] = (),
        tallies: Iterable[Tally] = (),
        decisions: Iterable[Decision] = (),
    ) -> None:
        """Keep what one look has shown, in one transaction; nothing where there is nothing.

        ``ended``: runs' ends, each with its job and its number. ``tallies`` are added to what was
        counted in their hours before.
        """
        steps = (
            (_KEEP_JOB, [_job_values(job) for job in jobs]),
            (_RUN_BEGINS, [_run_values(run) for run in begun]),
            (_RUN_ENDS, [*ended]),
            (DECIDES, [decision_values(decision) for decision in decisions]),
            (_COUNT, [_tally_values(tally) for tally in tallies]),
        )
        some = [step for step in steps if step[1]]
        if some:
            self._db.write_all(*some)

    def job(self, job_id: str) -> JobRecord | None:
        """Return what is known of a job; None where it is nothing."""
        rows = self._db.read(f"{_READ_JOB} WHERE job = ?", (job_id,))
        return _record(rows[0]) if rows else None

    def tasks(self, array: str, most: int) -> tuple[str, ...]:
        """Return some tasks of an array, ``7`` or ``7[]``, that have a record of their own."""
        prefix = f"{array[:-1]}" if array.endswith("[]") else f"{array}_"
        rows = self._db.read(
            "SELECT job FROM jobs WHERE job > ?1 AND job < ?1 || char(127) AND job != ?2 LIMIT ?3",
            (prefix, array, most),
        )
        return tuple(str(row[0]) for row in rows)

    def live(self) -> tuple[JobRecord, ...]:
        """Return the jobs of which no end is known."""
        rows = self._db.read(f"{_READ_JOB} WHERE end_s = 0 AND state != ?", (ENDED,))
        return tuple(map(_record, rows))

    def prune(self, before_s: float) -> None:
        """Drop what ended or was counted before an instant, and the first above MOST_JOBS."""
        self._db.write("DELETE FROM jobs WHERE end_s > 0 AND end_s < ?", (before_s,))
        self._db.write("DELETE FROM hours WHERE hour_s < ?", (before_s,))
        self._db.write(
            "DELETE FROM jobs WHERE end_s > 0 AND end_s <= (SELECT end_s FROM jobs WHERE end_s > 0"
            " ORDER BY end_s DESC LIMIT 1 OFFSET ?)",
            (MOST_JOBS,),
        )
        self._db.write(
            "DELETE FROM runs WHERE rowid <= (SELECT max(rowid) FROM runs) - ?", (2 * MOST_JOBS,)
        )

    def forget_user(self, user: str) -> int:
        """Drop all that is kept of a user's jobs that have ended; return how many jobs that were.

        How fast the user's programs run stays: pliantd goes on measuring them.
        """
        ended = "SELECT job FROM jobs WHERE user = ? AND state = ?"
        ((number,),) = self._db.read(f"SELECT count(*) FROM ({ended})", (user, ENDED))  # noqa: S608  # our own words
        steps = [
            (f"DELETE FROM {table} WHERE job IN ({ended})", [(user, ENDED)])  # noqa: S608  # our own names
            for table in ("decisions", "intentions", "refused", "runs", "handovers")
        ]
        rest = (
            (
                f"DELETE FROM handovers WHERE user = ? AND done_s IS NOT NULL AND {NOT_LIVING}",  # noqa: S608  # our own words
                [(user,)],
            ),
            ("DELETE FROM jobs WHERE user = ? AND state = ?", [(user, ENDED)]),
            (
                "DELETE FROM runs WHERE user = ? AND job NOT IN (SELECT job FROM jobs)",
                [(user,)],
            ),
        )
        self._db.write_all(*steps, *rest)
        return int(number)


def _record(row: tuple[object, ...]) -> JobRecord:
    """Read a row; SQLite has numbers for what is true."""
    values: list[Any] = [*row]
    for place in _FLAGS:
        values[place] = bool(values[place])
    return JobRecord(*values)
