"""All rows of one look as a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.jobs import ABILITIES, job_of, queue_of
from pliant.batch.pbs.server_rows import QueueRow
from pliant.batch.pbs.site import Site
from pliant.model import EVERYBODY, Abilities, Job, Partition, Snapshot, within_array


def snapshot_of(rows: Sequence[JobRow], site: Site, now_s: float) -> Snapshot:
    """Return one look; the tasks of an array that wait are one job."""
    waiting = queue_of(rows, site.queues)
    running = [row for row in rows if not row.waits and row.state in ("R", "E", "S", "U")]
    begun = Counter(row.array for row in running if row.is_subjob)
    return Snapshot(
        now_s=now_s,
        nodes=site.vnodes.nodes(),
        partitions=tuple(partition_of(row, site) for row in site.queues.values()),
        waiting=tuple(_waiting(row, site, begun[row.array]) for row in waiting),
        running=tuple(job_of(row, site) for row in running),
        reservations=site.reservations,
        abilities=_abilities(site),
    )


def _waiting(row: JobRow, site: Site, begun: int) -> Job:
    """Return a waiting job; ``begun``: the subjobs of its array that run."""
    job = job_of(row, site)
    return within_array(job, row.at_once - begun) if row.at_once else job


def partition_of(row: QueueRow, site: Site) -> Partition:
    """Return one queue; a node that belongs to another one, or its partition, is none of its."""
    limits = site.limits(row)
    return Partition(
        name=row.name,
        nodes=site.vnodes.of_queue(row.name),
        max_time_s=row.max_time_s or site.server.max_time_s,
        default=row.name == site.server.default_queue,
        max_nodes=dict(limits.most).get("nodect", 0),
        min_nodes=dict(limits.least).get("nodect", 0),
        up=row.up,
        default_time_s=row.default_time_s or site.server.default_time_s,
        limits=limits,
        sets=site.sets(row),
        keeps_shapes=site.keeps_shapes(row),
    )


def _abilities(site: Site) -> Abilities:
    """Where a limit may bound several jobs together, none is made larger than its owner wrote."""
    limited = site.server.limited or any(row.limited for row in site.queues.values())
    of = frozenset({EVERYBODY}) if limited else frozenset()
    caps = chain(site.server.caps, *(row.caps for row in site.queues.values()))
    return replace(ABILITIES, limited_qos=of, caps=tuple(caps), judges_again=False)
