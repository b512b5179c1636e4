"""What is worked out once though it is asked again and again: it depends on a job's record alone.

Most moves leave most records as they were. What squeue prints of one, the row that is read from
that and the running job that is made of the row are pure: each is made by the shipped code at its
first use, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from pliant.batch.slurm import handing, jobs, snapshot
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.queries import Queries
from prove.fake_slurm import FakeSlurm, Record

MOST = 100_000
"""Of how many records and rows it is kept; then it begins anew."""


class QueriesOnce(Queries):
    """Reads the row of a record once."""

    def __init__(self, commands: Any, clock: Callable[[], float], fake: FakeSlurm) -> None:
        super().__init__(commands, clock)
        self._fake = fake
        self._known: dict[Record, JobRow] = {}

    def _rows(self, *options: str) -> list[JobRow]:
        if len(self._known) > MOST:
            self._known.clear()
        only = self._fake.named(options)
        return [self._known.get(one) or self._read(one) for one in self._fake.alive(only)]

    def _read(self, record: Record) -> JobRow:
        (row,) = super()._rows("-j", str(record.number))
        self._known[record] = row
        return row


@contextmanager
def running_jobs_once() -> Iterator[None]:
    """Make of a row a running job once, in all places where the adapter does so."""
    known: dict[int, tuple[JobRow, Any]] = {}
    made = jobs.running_job

    def running_job(row: JobRow, cluster: Any, allocation: Any = None) -> Any:
        found = known.get(id(row))  # its row is kept with it, so that no other gets its id
        if allocation is not None or found is None:
            if len(known) > MOST:
                known.clear()
            found = known[id(row)] = (row, made(row, cluster, allocation))
        return found[1]

    with (
        mock.patch.object(snapshot, "running_job", running_job),
        mock.patch.object(handing, "running_job", running_job),
    ):
        yield
