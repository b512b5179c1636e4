"""What pyslurm is asked, and when the commands are asked instead.

pyslurm is made for one release of Slurm: where it is missing, where slurmctld is of another one, or
where it has failed, one line says so and the commands do it all. Beside that they always do what
pyslurm cannot: nodes, partitions and the configuration are read by scontrol (pyslurm counts the
GPUs in use only by the accounts), a job that is to be changed is read by squeue before and after,
and an update that ``words.py`` cannot say is made by scontrol.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pliant.batch.slurm.commands import Answer, Runs
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.native.fit import INSTEAD, blind, installed, misfit
from pliant.batch.slurm.native.words import arguments
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.update import Words
from pliant.errors import Unavailable

log = logging.getLogger("pliant.native")

REST_S = 300.0
"""How long the commands do it after pyslurm has failed."""
FEW = 100
"""Of so many jobs squeue is asked beside pyslurm; where there are more, it is asked for all."""


class Asks(Protocol):
    """Asks pyslurm, as :class:`Worker` does."""

    def ask(self, request: Sequence[object]) -> Any:
        """Return the answer; see :meth:`Worker.ask`."""
        ...

    def close(self) -> None:
        """Begin anew with the next question; see :meth:`Worker.close`."""
        ...


class Native:
    """Asks pyslurm where it fits; every method returns None where the commands are to do it."""

    def __init__(
        self,
        worker: Asks,
        version: Callable[[], str] = installed,
        clock: Callable[[], float] = time.monotonic,
        *,
        reads: bool = True,
    ) -> None:
        """``version`` is that of the pyslurm which the worker imports; ``clock`` counts seconds.

        ``reads``: whether jobs are read by it too, or only changed.
        """
        self._worker, self._version, self._clock, self._reads = worker, version, clock, reads
        self._said = ""
        self._rests_until = {_JOBS: float("-inf"), _UPDATE: float("-inf")}

    def jobs(self, site: Site) -> tuple[list[JobRow], list[str]] | None:
        """Return all jobs, and the ids of those of which only squeue knows all.

        Where it does not fit, the first look says so, also where it only changes jobs. Raises
        Unavailable where no answer comes in time.
        """
        if not self._fits(site, _JOBS) or not self._reads or not self._is_well(blind(site)):
            return None
        told = self._ask(_JOBS)
        if "rows" not in told:
            return None
        if len(told["unsure"]) > FEW:
            self._rest(f"pyslurm hides what {len(told['unsure'])} jobs ask", _JOBS)
            return None
        return [JobRow(*fields) for fields in told["rows"]], told["unsure"]

    def update(self, site: Site, row: JobRow, words: Words) -> Answer | None:
        """Make an update as ``scontrol update`` would be told it.

        Raises Unavailable: then it is not known whether it was made.
        """
        said = arguments(row, words) if row.key == row.job_id else None  # see job_words()
        if said is None or not self._fits(site, _UPDATE):
            return None
        told = self._ask(_UPDATE, int(row.job_id), said)
        if "unfit" in told:
            return None
        answer = Answer("", told.get("refused", ""), 1 if "refused" in told else 0)
        if answer.controller_is_away:
            self._rest(f"pyslurm: {answer.words}")
            raise Unavailable(f"pyslurm: {answer.words}")
        return answer

    def _fits(self, site: Site, what: str) -> bool:
        if self._clock() < self._rests_until[what]:
            return False
        return self._is_well(misfit(self._version(), site))

    def _is_well(self, reason: str) -> bool:
        return not reason or self._say(reason)

    def _say(self, reason: str, how_long: str = "") -> bool:
        """Say it once; return False."""
        if reason != self._said:
            log.warning("%s: %s%s", reason, INSTEAD, how_long)
            self._said = reason
        return False

    def _ask(self, what: str, *arguments: object) -> Mapping[str, Any]:
        try:
            told: Mapping[str, Any] = self._worker.ask((what, *arguments))
        except Unavailable as error:
            self._rest(str(error))
            raise
        if "unfit" in told or (what == _JOBS and "refused" in told):
            self._rest(f"pyslurm: {told.get('unfit') or told['refused']}")
        return told

    def _rest(self, reason: str, *what: str) -> None:
        """Let the commands do it for a while: all where nothing is named, with a new worker then.

        The library reads slurm.conf once: a new one knows what has changed in it.
        """
        if not what:
            self._worker.close()
        for kind in what or (_JOBS, _UPDATE):
            self._rests_until[kind] = self._clock() + REST_S
        self._said = ""
        self._say(reason, f" for {REST_S / 60:g} minutes")


_JOBS, _UPDATE = "jobs", "update"


class NativeQueries(Queries):
    """The same questions; all jobs are asked of pyslurm where it fits."""

    def __init__(
        self, native: Native, commands: Runs, clock: Callable[[], float] = time.time
    ) -> None:
        """``clock`` counts seconds since the epoch."""
        super().__init__(commands, clock)
        self._native = native

    def jobs(self, job_ids: Sequence[str] = ()) -> list[JobRow]:
        """Return all jobs, or some by their JobID: these by squeue, which knows all of them."""
        told = None if job_ids else self._native.jobs(self.site())
        if told is None:
            return super().jobs(job_ids)
        rows, unsure = told
        wanted = set(unsure)
        return [*rows, *(row for row in self.again(unsure).values() if row.job_id in wanted)]
