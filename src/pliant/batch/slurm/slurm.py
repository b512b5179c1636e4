"""A real Slurm by its client commands: one batched look a cycle, one update for each change."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer, Runs
from pliant.batch.slurm.details import Allocation, detail_commands, parse_details
from pliant.batch.slurm.job_rows import (
    JobRow,
    excluded_format,
    job_format,
    parse_excluded,
    parse_jobs,
)
from pliant.batch.slurm.jobs import lent_shards, needs_detail, queue_order, running_job, waiting_job
from pliant.batch.slurm.node_rows import NodeRow, parse_nodes
from pliant.batch.slurm.nodes import node_of
from pliant.batch.slurm.partition_rows import parse_partitions, parse_reservations
from pliant.batch.slurm.request import Asked, asked
from pliant.batch.slurm.site import OLDEST, Site, parse_config
from pliant.batch.slurm.update import (
    Words,
    as_started,
    by_another,
    job_words,
    restoring,
    shortfall,
    token_words,
    unchanged,
    update_words,
    wanted,
)
from pliant.batch.slurm.values import host_list
from pliant.errors import BadAnswer, BatchError, Refused, Unavailable
from pliant.model import Job, Node, Shape, Snapshot, Spec

SITE_S = 600.0
"""How often a site's configuration is read again."""
DETAILS_AT_ONCE = 500
"""How many running jobs' places are asked in one look; the rest in the next ones."""

BAD_CONSTRAINTS = "BadConstraints"

_Run = tuple[str, str, str]  # JobID, start, restarts: one run of a job


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a waiting job, as it was observed."""

    job: Job
    shape: Shape
    spec: Spec


class Slurm:
    """The batch system of a Slurm cluster; safe to call from several threads."""

    def __init__(self, commands: Runs, clock: Callable[[], float] = time.time) -> None:
        """``clock`` counts seconds since the epoch."""
        self._commands, self._clock = commands, clock
        self._site: tuple[float, Site] | None = None
        self._rows: Mapping[str, JobRow] = {}
        self._cluster: Cluster | None = None
        self._places: dict[_Run, Allocation | None] = {}
        self._lock = threading.Lock()

    # --- look ------------------------------------------------------------------------------

    def site(self) -> Site:
        """Return what the site's configuration says, read again every ten minutes.

        Raises Unavailable, or BadAnswer for a release that is too old.
        """
        now_s = self._clock()
        if self._site is None or not 0 <= now_s - self._site[0] < SITE_S:
            site = parse_config(self._ask("scontrol", "show", "config"))
            if site.version < OLDEST:
                raise BadAnswer(f"Slurm {site.release} is too old: 22.05 or later is needed")
            self._site = (now_s, site)
        return self._site[1]

    def observe(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises Unavailable, BadAnswer.
        """
        try:
            return self._observe(self.site())
        except (Unavailable, BadAnswer):
            self._site = None  # Slurm may come back as another release
            raise

    def _observe(self, site: Site) -> Snapshot:
        with ThreadPoolExecutor(5) as pool:
            rows = pool.submit(self._look_jobs, site)
            excluded = pool.submit(self._look_excluded, site)
            nodes = pool.submit(self._ask, "scontrol", "-o", "-d", "-a", "show", "node")
            partitions = pool.submit(self._ask, "scontrol", "-o", "-a", "show", "partition")
            reservations = pool.submit(self._ask, "scontrol", "-o", "show", "reservation")
            now_s = self._clock()
            jobs = _with_excluded(rows.result(), excluded.result())
            node_rows = {row.name: row for row in parse_nodes(nodes.result())}
            cluster = Cluster(
                site.version,
                node_rows,
                {row.partition.name: row for row in parse_partitions(partitions.result())},
                site.default_per_cpu_mib,
            ).as_before(self._cluster)
            held = parse_reservations(reservations.result())
        places = self._look_places(jobs, cluster)
        nodes_now = _nodes(node_rows.values(), jobs, places, counts_memory=site.counts_memory)
        snapshot = _snapshot(jobs, cluster, places, now_s)
        with self._lock:
            self._rows = {row.key: row for row in jobs}
            self._cluster = cluster
        return replace(snapshot, nodes=nodes_now, reservations=tuple(held))

    def _look_jobs(self, site: Site, job_ids: Sequence[str] = ()) -> list[JobRow]:
        nonce = _nonce()
        only = ("-j", ",".join(job_ids)) if job_ids else ()
        out = self._ask(
            *("squeue", "-h", "-a", "--array-unique", "--local"),
            *only,
            env={"SQUEUE_FORMAT2": job_format(nonce, site.version)},
        )
        return parse_jobs(out, nonce, site.version)

    def _look_excluded(self, site: Site) -> Mapping[str, str]:
        nonce = _nonce()
        format_ = excluded_format(nonce)
        if site.version >= (23, 11):
            return {}
        out = self._ask(
            *("squeue", "-h", "-a", "--array-unique", "--local", "-t", "PENDING"),
            env={"SQUEUE_FORMAT": format_},
        )
        return parse_excluded(out, nonce)

    def _look_places(
        self, rows: Sequence[JobRow], cluster: Cluster
    ) -> dict[str, Allocation | None]:
        """Return where running jobs sit, for those of which only scontrol can tell."""
        runs = {_run(row): row for row in rows if needs_detail(row, cluster)}
        known = {run: place for run, place in self._places.items() if run in runs}
        unknown = [run for run in runs if run not in known][:DETAILS_AT_ONCE]
        if unknown:
            mark = _nonce()
            job_ids = [job_id for job_id, _, _ in unknown]
            nodes = {run[0]: runs[run].nodes for run in unknown}
            answer = self._commands.run(
                ("scontrol", "-o", "-d"), stdin=detail_commands(job_ids, mark)
            )
            found = parse_details(answer.out, job_ids, nodes, mark)
            known |= {run: found.get(run[0]) for run in unknown}
        self._places = known
        return {run[0]: known.get(run) for run in runs}

    def _ask(self, *argv: str, env: Mapping[str, str] | None = None) -> str:
        answer = self._commands.run(argv, env=env)
        if answer.status:
            raise Unavailable(f"{' '.join(argv[:2])}: {answer.words}")
        return answer.out

    # --- change ----------------------------------------------------------------------------

    def change(self, job: Job, shape: Shape, spec: Spec) -> None:
        """Let a waiting job ask for ``shape`` and carry ``spec``; read it back.

        Raises Refused, in Slurm's words.
        """
        error = self.change_many([Change(job, shape, spec)])[0]
        if error is not None:
            raise error

    def change_many(self, changes: Sequence[Change]) -> list[BatchError | None]:
        """Make several changes with one look before and one after; return what went wrong.

        Raises Unavailable where Slurm is away.
        """
        site, cluster = self.site(), self._known_cluster()
        ids = [change.job.id for change in changes]
        before = self._look_again(site, ids)
        tries = [_Try(change, self._rows.get(change.job.id), cluster) for change in changes]
        for one in tries:
            one.check(before)
        for one in tries:
            self._apply(one)
        after = self._look_again(site, [one.id for one in tries if one.sent])
        for one in tries:
            if one.sent:
                self._verify(one, after)
        return [one.error for one in tries]

    def annotate(self, job: Job, spec: Spec) -> None:
        """Let a job carry ``spec`` and change nothing else.

        Raises Refused.
        """
        row = self._look_again(self.site(), [job.id]).get(job.id)
        if row is None:
            raise Refused(f"job {job.id}: Slurm does not know it any more")
        answer = self._update(row, token_words(row, spec))
        if answer.status:
            raise Refused(f"job {job.id}: {answer.words}")

    def rescue(self, job: Job) -> None:
        """Give a job its own shape back, and its place, that Slurm holds for one we set.

        Where no node can ever hold a request, Slurm sets its Reason to BadConstraints and its
        priority to 0; it would wait for ever. Raises Refused.
        """
        spec = job.spec
        if job.reason != BAD_CONSTRAINTS or spec is None or spec.own is None or spec.set is None:
            raise Refused(f"job {job.id}: it is not held for a shape that Pliant set")
        row = self._look_again(self.site(), [job.id]).get(job.id)
        if row is None or not row.waits:
            raise Refused(f"job {job.id}: it does not wait any more")
        cluster = self._known_cluster()
        spec = replace(spec, set=None)
        now = asked(row, job.footprint, cluster.default_per_cpu_mib)
        then = wanted(job, spec.own or job.shape, spec, cluster)
        for argv in (
            ("scontrol", "update", f"jobid={job_words(row)}", *update_words(row, now, then, spec)),
            ("scontrol", "release", job_words(row)),
        ):
            answer = self._commands.run(argv)
            if answer.status:
                raise Refused(f"job {job.id}: {answer.words}")

    def _known_cluster(self) -> Cluster:
        with self._lock:
            if self._cluster is not None:
                return self._cluster
        self.observe()
        assert self._cluster is not None  # noqa: S101
        return self._cluster

    def _look_again(self, site: Site, ids: Iterable[str]) -> dict[str, JobRow]:
        numbers = list(dict.fromkeys(job_id.partition("_")[0] for job_id in ids))
        if not numbers:
            return {}
        try:
            return {row.key: row for row in self._look_jobs(site, numbers)}
        except Unavailable as error:
            if "invalid job id" in str(error).lower():
                return {}
            raise

    def _update(self, row: JobRow, words: Words) -> Answer:
        return self._commands.run(("scontrol", "update", f"jobid={job_words(row)}", *words))

    def _apply(self, one: _Try) -> None:
        words = one.call()
        if words is not None:
            answer = self._update(one.now, words)
            one.sent = True
            one.words = answer.words if answer.status else ""

    def _verify(self, one: _Try, after: Mapping[str, JobRow]) -> None:
        one.judge(after.get(one.id))
        if one.half_applied:
            self._update(one.now, restoring(one.now, one.asked_before))
            back = self._look_again(self.site(), [one.id]).get(one.id)
            one.judge_restored(back)


class _Try:
    """One change under way: what was seen, what was sent, what came of it."""

    def __init__(self, change: Change, seen: JobRow | None, cluster: Cluster) -> None:
        self.change, self.seen, self.cluster = change, seen, cluster
        self.id = change.job.id
        self.error: BatchError | None = None
        self.words = ""  # Slurm's complaint
        self.sent = False
        self.half_applied = False
        self._now: JobRow | None = None
        self._then: Asked | None = None

    @property
    def now(self) -> JobRow:
        """The job's row just before the update."""
        assert self._now is not None  # noqa: S101
        return self._now

    @property
    def asked_before(self) -> Asked:
        """What it asked for then."""
        return self._asks(self.now)

    def _asks(self, row: JobRow) -> Asked:
        return asked(row, self.change.job.footprint, self.cluster.default_per_cpu_mib)

    def check(self, before: Mapping[str, JobRow]) -> None:
        """Refuse where the job is not any more as it was observed: its owner wins."""
        now = self._now = before.get(self.id)
        if now is None or not now.waits:
            self._refuse("it does not wait any more")
        elif self.seen is None or not unchanged(self.seen, now):
            self._refuse("it was changed since it was last looked at; its owner wins")

    def call(self) -> Words | None:
        """Return the update to make; None where the change is refused already."""
        if self.error is not None:
            return None
        job, shape, spec = self.change.job, self.change.shape, self.change.spec
        try:
            self._then = wanted(job, shape, spec, self.cluster)
            return update_words(self.now, self.asked_before, self._then, spec)
        except BatchError as error:
            self._refuse(str(error))
            return None

    def judge(self, after: JobRow | None) -> None:
        """Compare what was read back with what was wanted."""
        assert self._then is not None  # noqa: S101
        if after is None:
            self._refuse(self.words or "it is gone")
            return
        found = self._asks(after)
        if not after.waits:
            if not as_started(found, self._then):
                self._refuse(f"it started meanwhile as it was ({self.words or 'no change'})")
            return
        wrong = shortfall(found, self._then)
        if not wrong and not self.words:
            return
        if by_another(found, self.asked_before, self._then):
            self._refuse("it was changed at the same time; its owner wins")
            return
        self._refuse(self.words or f"Slurm took the change and did not make it: {wrong}")
        self.half_applied = not unchanged(self.now, after)

    def judge_restored(self, back: JobRow | None) -> None:
        """Say so where the job could not be brought back to what it was."""
        if back is None or not back.waits:
            return
        left = shortfall(self._asks(back), self.asked_before)
        if left:
            self._refuse(f"{self.words or 'refused'}; it could not be put back: {left}")

    def _refuse(self, words: str) -> None:
        self.error = Refused(f"job {self.id} to {self.change.shape}: {words}")


def _nonce() -> str:
    """Return a word that nobody can know, with a letter first."""
    return f"N{secrets.token_hex(8)}"


def _run(row: JobRow) -> _Run:
    return (row.job_id, row.start, row.restarts)


def _with_excluded(rows: list[JobRow], excluded: Mapping[str, str]) -> list[JobRow]:
    if not excluded:
        return rows
    return [
        replace(row, nodes_excluded=excluded[row.job_id]) if row.job_id in excluded else row
        for row in rows
    ]


def _snapshot(
    rows: Sequence[JobRow],
    cluster: Cluster,
    places: Mapping[str, Allocation | None],
    now_s: float,
) -> Snapshot:
    running = [row for row in rows if not row.waits]
    tasks = Counter(row.array_id for row in running)
    waiting = [waiting_job(row, cluster, now_s, tasks[row.array_id]) for row in rows if row.waits]
    return Snapshot(
        now_s=now_s,
        nodes=(),
        partitions=tuple(row.partition for row in cluster.partitions.values()),
        waiting=tuple(sorted(waiting, key=lambda job: queue_order(job, cluster))),
        running=tuple(running_job(row, cluster, places.get(row.job_id)) for row in running),
        abilities=cluster.abilities,
    )


def _nodes(
    node_rows: Iterable[NodeRow],
    rows: Sequence[JobRow],
    places: Mapping[str, Allocation | None],
    *,
    counts_memory: bool,
) -> tuple[Node, ...]:
    lent = lent_shards({job_id: place for job_id, place in places.items() if place})
    hidden = [row for row in rows if places.get(row.job_id, ()) is None]
    blind = {node for row in hidden for node in host_list(row.nodes)}
    nodes = (
        node_of(row, None if row.name in blind else lent.get(row.name, {})) for row in node_rows
    )
    if counts_memory:
        return tuple(nodes)
    return tuple(replace(node, mem_mib=0, free_mem_mib=0) for node in nodes)
