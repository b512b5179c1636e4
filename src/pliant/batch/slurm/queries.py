"""What is asked of Slurm: one batched command for each kind of thing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pliant.batch.slurm import arrays
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Runs
from pliant.batch.slurm.details import (
    Allocation,
    detail_commands,
    parse_details,
    parse_throttles,
)
from pliant.batch.slurm.job_rows import (
    JobRow,
    excluded_format,
    job_format,
    parse_excluded,
    parse_jobs,
)
from pliant.batch.slurm.jobs import needs_detail
from pliant.batch.slurm.limits import (
    ASSOCIATIONS,
    NO_LIMITS,
    QOS,
    UNKNOWN,
    Limits,
    parse_limits,
)
from pliant.batch.slurm.node_rows import NodeRow, parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions, parse_reservations
from pliant.batch.slurm.site import OLDEST, Site, parse_config
from pliant.batch.slurm.snapshot import Places
from pliant.errors import BadAnswer, BatchError, Unavailable
from pliant.model import Partition, Reservation

SITE_S = 60.0
"""How often a site's configuration is read again, and its limits, which slurmdbd is asked for."""
AGAIN_S = 20.0
"""How soon they are asked for again where they were never known: sacctmgr may take half of that."""
PING_S = 10.0
"""How often it is asked which controller acts, where there are several."""
CAREFUL = "until accounting says which limits there are, no job is made larger than written"
DETAILS_AT_ONCE = 500
"""How many running jobs' places are asked in one look; the rest in the next ones."""

ARRAYS_APART = {"SQUEUE_ARRAY_UNIQUE": "1"}
"""An array's waiting tasks that have a record of their own stand on lines of their own. It is said
in the environment because 24.11's squeue, which knows it no more, refuses the option."""

ENDED = "BF,CA,CD,DL,F,NF,OOM,PR,TO"
"""The states of jobs that have ended, as squeue's -t takes them."""

_NICE = "JobID:|,Nice:|"
_Run = tuple[str, str, str]  # JobID, start, restarts: one run of a job


class Queries:
    """Asks Slurm, and remembers what does not change: the configuration, where a job runs."""

    def __init__(self, commands: Runs, clock: Callable[[], float] = time.time) -> None:
        """``clock`` counts seconds since the epoch."""
        self._commands, self._clock = commands, clock
        self._site: tuple[float, Site] | None = None
        self._limits = UNKNOWN
        self._dbd_away_s = -SITE_S  # when slurmdbd last did not answer
        self.trouble = ""
        """Why it is not known which limits there are; "" where it is, or was."""
        self._places: dict[_Run, Allocation | None] = {}
        self._ping: tuple[float, str] | None = None

    def site(self) -> Site:
        """Return what the site's configuration and its limits are, read again every minute.

        Raises Unavailable, or BadAnswer for a release that is too old.
        """
        known, now_s = self._site, self._clock()
        if known is None or not 0 <= now_s - known[0] < SITE_S:
            site = parse_config(self._ask("scontrol", "show", "config"))
            if site.version < OLDEST:
                raise BadAnswer(f"Slurm {site.release} is too old: 22.05 or later is needed")
            read = replace(site, limits=self._limits_of(site))
            known = self._site = (now_s - (SITE_S - AGAIN_S if self.trouble else 0.0), read)
        return known[1]

    def _limits_of(self, site: Site) -> Limits:
        """Return what limits hold, as they were last known where slurmdbd is away."""
        if not site.enforces_limits and not site.preempts_by_qos:
            return NO_LIMITS
        if not 0 <= self._clock() - self._dbd_away_s < (AGAIN_S if self.trouble else SITE_S):
            try:
                self._limits, self.trouble = self._ask_limits(site.cluster), ""
                self._dbd_away_s = -SITE_S
            except (BatchError, Unavailable) as error:
                # sacctmgr takes its whole time limit to find that out: not in every look, though
                # the site is read in each while slurmctld does not answer either.
                self._dbd_away_s = self._clock()
                self.trouble = f"{error}: {CAREFUL}" if self._limits is UNKNOWN else ""
        known = self._limits
        return known if site.enforces_limits else Limits(preempting=known.preempting)

    def _ask_limits(self, cluster: str) -> Limits:
        of_cluster = (f"cluster={cluster}",) if cluster else ()
        qos = self._ask("sacctmgr", "-n", "-P", *QOS)
        return parse_limits(qos, self._ask("sacctmgr", "-n", "-P", *ASSOCIATIONS, *of_cluster))

    def forget_site(self) -> None:
        """Read the configuration again next time, and the limits."""
        self._dbd_away_s = -SITE_S
        self.doubt_site()

    def doubt_site(self) -> None:
        """Read the configuration again next time: Slurm may come back as another release."""
        self._site = self._ping = None

    def ping(self) -> str:
        """Return which controllers are up, asked every ten seconds.

        Raises Unavailable.
        """
        known, now_s = self._ping, self._clock()
        if known is None or not 0 <= now_s - known[0] < PING_S:
            # It complains with its exit status of one that is down.
            known = self._ping = (now_s, self._commands.run(("scontrol", "ping")).out)
        return known[1]

    def nodes(self) -> dict[str, NodeRow]:
        """Return all nodes by name."""
        answer = self._ask("scontrol", "-o", "-d", "-a", "show", "node")
        return {row.name: row for row in parse_nodes(answer)}

    def partitions(self) -> dict[str, Partition]:
        """Return all partitions by name."""
        answer = self._ask("scontrol", "-o", "-a", "show", "partition")
        rows = parse_partitions(answer, self.site().options)
        return {row.name: row for row in rows}

    def reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations that keep nodes."""
        return tuple(parse_reservations(self._ask("scontrol", "-o", "show", "reservation")))

    def jobs(self, job_ids: Sequence[str] = ()) -> list[JobRow]:
        """Return all jobs that wait, run or end, or some by their JobID."""
        only = ("-j", ",".join(job_ids)) if job_ids else ()
        rows = self._rows(*only)
        if self.site().version == OLDEST or not any(row.is_array_record for row in rows):
            return rows
        tasks = self._tasks(only)
        hidden = sorted(tasks.keys() - {row.job_id for row in rows})
        return arrays.apart(rows, tasks) + (self._hidden(hidden) if hidden else [])

    def ended(self) -> list[JobRow]:
        """Return the jobs that have ended and that slurmctld remembers yet (MinJobAge)."""
        return self._rows("-t", ENDED)

    def _rows(self, *options: str) -> list[JobRow]:
        version = self.site().version
        nonce = _nonce()
        out = self._ask(
            *("squeue", "-h", "-a", "--local"),
            *options,
            env={**ARRAYS_APART, "SQUEUE_FORMAT2": job_format(nonce, version)},
        )
        return parse_jobs(out, nonce, version)

    def nice(self, row: JobRow) -> int:
        """Return a job's nice value as it is now; no poll needs it."""
        out = self._ask(*("squeue", "-h", "-a", "-r", "--local", "-j", row.array_id, "-O", _NICE))
        found = (line.split("|") for line in out.splitlines())
        return next((int(nice) for job_id, nice, *_ in found if job_id == row.job_id), 0)

    def _tasks(self, only: Sequence[str]) -> Mapping[str, arrays.Tasks]:
        """Return the tasks of arrays by the JobID of their record (see arrays.py).

        Also those that run: one may have started since its array was asked for.
        """
        out = self._ask(
            *("squeue", "-h", "-a", "-r", "--local"),
            *only,
            env={"SQUEUE_FORMAT2": arrays.FORMAT},
        )
        return arrays.parse_tasks(out)

    def _hidden(self, job_ids: Sequence[str]) -> list[JobRow]:
        """Return the records that stood in their array's line, but for those that are gone."""
        try:
            return self._rows("-r", "-j", ",".join(job_ids))
        except Unavailable as error:
            return _none_if_gone(error)

    def excluded(self, job_ids: Sequence[str] = ()) -> Mapping[str, str]:
        """Return jobs' excluded nodes by JobID where :meth:`jobs` cannot (see job_rows.py)."""
        version = self.site().version
        nonce = _nonce()
        format_ = excluded_format(nonce)
        if version >= (23, 11):
            return {}
        only = ("-j", ",".join(job_ids)) if job_ids else ()
        out = self._ask(
            *("squeue", "-h", "-a", "--local", "-t", "PENDING,RUNNING"),
            *only,
            env={**ARRAYS_APART, "SQUEUE_FORMAT": format_},
        )
        return parse_excluded(out, nonce)

    def places(self, rows: Sequence[JobRow], cluster: Cluster) -> Places:
        """Return where running jobs sit, for those of which only scontrol can tell."""
        runs = {_run(row): row for row in rows if needs_detail(row, cluster)}
        known = {run: place for run, place in self._places.items() if run in runs}
        unknown = [run for run in runs if run not in known][:DETAILS_AT_ONCE]
        if unknown:
            job_ids = [job_id for job_id, _, _ in unknown]
            nodes = {run[0]: runs[run].nodes for run in unknown}
            found = parse_details(*self._details(job_ids), nodes=nodes)
            known |= {run: found.get(run[0]) for run in unknown}
        self._places = known
        return {run[0]: known.get(run) for run in runs}

    def with_limits(self, rows: Sequence[JobRow]) -> list[JobRow]:
        """Return all rows, those of arrays with how many of their tasks may run at once."""
        job_ids = arrays.of_unknown_limit(rows)[:DETAILS_AT_ONCE]
        found = parse_throttles(*self._details(job_ids)) if job_ids else {}
        return arrays.with_limits(rows, found)

    def _details(self, job_ids: Sequence[str]) -> tuple[str, Sequence[str], str]:
        """Return what scontrol says of jobs, for whom it was asked, and the mark between them."""
        mark = _nonce()
        asks = detail_commands(job_ids, mark)
        return self._commands.run(("scontrol", "-o", "-d"), stdin=asks).out, job_ids, mark

    def again(self, ids: Iterable[str]) -> dict[str, JobRow]:
        numbers = list(dict.fromkeys(job_id.partition("_")[0] for job_id in ids))
        if not numbers:
            return {}
        try:
            found = self.jobs(numbers)
        except Unavailable as error:
            found = _none_if_gone(error)
        return {row.key: row for row in found}

    def _ask(self, *argv: str, env: Mapping[str, str] | None = None) -> str:
        answer = self._commands.run(argv, env=env)
        if answer.status:
            raise Unavailable(f"{' '.join(argv[:2])}: {answer.words}")
        return answer.out


def _none_if_gone(error: Unavailable) -> list[JobRow]:
    """Return no job where squeue knows none of those that it was asked for; else raise."""
    if "invalid job id" in str(error).lower():
        return []
    raise error


def _nonce() -> str:
    """Return a word that nobody can know, with a letter first."""
    return f"N{secrets.token_hex(8)}"


def _run(row: JobRow) -> _Run:
    return (row.job_id, row.start, row.restarts)
