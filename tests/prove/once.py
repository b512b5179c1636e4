"""What is worked out once though it is asked again and again: it depends on a job's record alone.

Most moves leave most records as they were. What squeue or qstat prints of one, the row that is read
from that and the job that is made of the row are pure: each is made by the shipped code at its
first use, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from pliant.batch.pbs import handing as pbs_handing
from pliant.batch.pbs import jobs as pbs_jobs
from pliant.batch.pbs import snapshot as pbs_snapshot
from pliant.batch.pbs.job_rows import JobRow as PbsJobRow
from pliant.batch.pbs.queries import Queries as PbsQueries
from pliant.batch.slurm import handing, jobs, snapshot
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.queries import Queries
from prove.fake_pbs import FakePbs
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


class PbsQueriesOnce(PbsQueries):
    """Reads the row of a record once."""

    def __init__(self, commands: Any, clock: Callable[[], float], fake: FakePbs) -> None:
        super().__init__(commands, clock)
        self._fake = fake
        self._known: dict[Any, PbsJobRow] = {}

    def jobs(self) -> list[PbsJobRow]:
        if len(self._known) > MOST:
            self._known.clear()
        return [self._known.get(one) or self._read(one) for one in self._fake.alive()]

    def _read(self, record: Any) -> PbsJobRow:
        rows = (
            super().jobs()
        )  # of all: qstat returns no more than the first of those that are named
        row = next(one for one in rows if one.id == str(record.number))
        self._known[record] = row
        return row


def _once(made: Callable[..., Any]) -> Callable[..., Any]:
    """Make something of a row once; ``made`` may be told more, which never changes."""
    known: dict[int, tuple[Any, Any]] = {}

    def make(row: Any, site: Any, more: Any = None) -> Any:
        found = known.get(id(row))  # its row is kept with it, so that no other gets its id
        if more is not None or found is None:
            if len(known) > MOST:
                known.clear()
            found = (row, made(row, site) if more is None else made(row, site, more))
            known[id(row)] = found
        return found[1]

    return make


@contextmanager
def jobs_once() -> Iterator[None]:
    """Make of a row a job once, in all places where the adapters do so."""
    running_job, job_of = _once(jobs.running_job), _once(pbs_jobs.job_of)
    with (
        mock.patch.object(snapshot, "running_job", running_job),
        mock.patch.object(handing, "running_job", running_job),
        mock.patch.object(pbs_snapshot, "job_of", job_of),
        mock.patch.object(pbs_handing, "job_of", job_of),
    ):
        yield
