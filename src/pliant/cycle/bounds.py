"""What limits leave of a job's shapes: nothing more than may be allowed, nothing at others' cost.

A job that waits for a limit of several jobs together (of a group, a user, an account) is passed
over by the batch system, which keeps nothing for it. A later job under the same limit that was
made smaller would start, and have what the first one waits for. So behind such a job, none that may
share its limit becomes smaller than its user wrote it. Which limit it is, a Reason says roughly:

=====================  =============================================================
Reason holds           who may share the limit
=====================  =============================================================
QOSGrp                 jobs of its QOS, and of partitions with the same QOS
AssocGrp, PerAccount   jobs of its account, and of those under the same parent's limit
PerUser, AssocMaxJobs  jobs of its user
=====================  =============================================================

PBS says it of a number of jobs in words: of its queue, its user, or (of a server, a group, a
project) anybody's.

A limit of each job alone is shared with nobody (squeue(1), "JOB REASON CODES").

A running job that is requeued gives up its part of such a limit: who waits for it would start, and
the job itself wait for that one's whole run. So it is left alone while somebody waits for a limit
that may be its own too, be it of jobs, of cores, GPUs or of their minutes. So is it with a job of a
partition that goes before its own, whatever the priorities (see :mod:`pliant.placement.tiers`). And
while nobody waits: where a limit, a partition or a QOS that was changed since would not start it
again, it is left alone, and it becomes nothing that is beyond a limit.

Of cores, memory and nodes Slurm asks no limit any more once an operator's update has changed them
(job_mgr.c, limit_set). So a waiting job keeps what such a limit is on.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from pliant.grammar import no_larger
from pliant.grammar import shapes as request_shapes
from pliant.model import EVERYBODY, Caps, Job, Partition, Shape, Snapshot
from pliant.model.limits import WORDS, totals
from pliant.placement import Tiers

LIMITS = ("QOS", "Assoc", "Max")
"""How the Reasons begin that are limits."""

_Key = tuple[str, str]  # of what, and its name

_SHARED = (
    ("qosgrp", "qos"),
    ("assocgrp", "account"),
    ("peraccount", "account"),
    ("peruser", "user"),
    ("assocmaxjobs", "user"),
)
_OF_JOBS = re.compile(r"not running: (queue|server|user|group|project) .*(job|running) limit")
_SHARERS = {"queue": "queue", "user": "user"}


def own_of(job: Job) -> Shape:
    """Return what a job's user wrote; what it carries where that is not known."""
    return job.shape if job.spec is None or job.spec.own is None else job.spec.own


def own_stands(job: Job) -> bool:
    """Whether a job may still carry what its user wrote: a later word may have ruled it out."""
    spec = job.spec
    if spec is None or spec.own is None or not spec.renewed:
        return True
    return spec.own in request_shapes(spec.request, spec.own)


class Ahead:
    """Who waits for a limit that others may share, while one goes through the queue in order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pools = dict(snapshot.abilities.pools)
        self._qos = {p.name: p.qos for p in snapshot.partitions if p.qos}
        self._first: dict[_Key, str] = {}

    def of(self, job: Job) -> str:
        """Return the first job before it that may wait for a limit of its own; "" where none."""
        if not self._first:
            return ""
        return next((self._first[key] for key in self._keys(job) if key in self._first), "")

    def add(self, job: Job) -> None:
        """Note a job, in queue order."""
        shared = shared_limit(job.reason)
        if shared:
            for key in self._keys(job):
                if key[0] in shared:
                    self._first.setdefault(key, job.id)

    def _keys(self, job: Job) -> Iterator[_Key]:
        yield ("qos", job.qos.lower())
        for name in job.partitions:
            if name in self._qos:
                yield ("qos", self._qos[name])
        account = job.account.lower()
        yield ("account", self._pools.get(EVERYBODY) or self._pools.get(account, account))
        yield ("user", job.user)
        yield ("all", "")
        for name in job.partitions:
            yield ("queue", name)


@lru_cache(maxsize=1024)
def shared_limit(reason: str) -> frozenset[str]:
    """Return of what a limit is that several jobs share, by the Reason; empty for all others."""
    words = reason.lower()
    of_jobs = _OF_JOBS.match(words)
    if of_jobs:
        return frozenset((_SHARERS.get(of_jobs[1], "all"),))
    if not reason.startswith(LIMITS):
        return frozenset()
    return frozenset(kind for word, kind in _SHARED if word in words)


def some_wait_for_all(snapshot: Snapshot) -> bool:
    """Whether a job waits for a limit that several share."""
    return any(map(shared_limit, {job.reason for job in snapshot.waiting}))


def first_ahead(snapshot: Snapshot, job: Job) -> str:
    """Return the first job before ``job`` that may wait for a limit of its own; "" where none."""
    ahead = Ahead(snapshot)
    for other in snapshot.waiting:
        if other.id == job.id:
            break
        ahead.add(other)
    return ahead.of(job)


AGAIN = "requeued, it might not start again"
MINUTES = f"{AGAIN}: a limit on minutes holds for its account or QOS"


def caps_of(snapshot: Snapshot) -> Caps:
    """Return what limits leave of what runs."""
    return Caps(snapshot.abilities.caps, snapshot.running, snapshot.partition_by_name)


def kept_within_limits(snapshot: Snapshot) -> Snapshot:
    """Leave running jobs alone that a limit could keep from starting again.

    One that others wait for and they may share; or one on minutes, of which a job takes as many as
    its time limit has, which begins anew at a requeue; or one that was lowered, or a partition that
    was closed, since they started, or whose QOS its user has lost. Nor do they become what a limit
    would keep from starting, or what would give somebody of a higher tier their place.
    """
    ahead = Ahead(snapshot)
    for job in snapshot.waiting:
        ahead.add(job)
    kept = _Kept(snapshot, ahead, Tiers(snapshot))
    return replace(snapshot, running=tuple([kept.alone(job) for job in snapshot.running]))


class _Kept:
    """Says of running jobs that may change why they are left alone."""

    def __init__(self, snapshot: Snapshot, ahead: Ahead, tiers: Tiers) -> None:
        self._ahead, self._tiers, self._abilities = ahead, tiers, snapshot.abilities
        self._partitions = snapshot.partition_by_name
        self._caps = caps_of(snapshot)
        above = snapshot.abilities.above
        self._above = dict(above) if above is not None else None
        self._qos_of = dict(snapshot.abilities.qos_of or ())

    def alone(self, job: Job) -> Job:
        if job.frozen or job.spec is None or not job.spec.request.is_elastic:
            return job
        known = [self._partitions[name] for name in job.partitions if name in self._partitions]
        if self._abilities.counts_minutes(job.account, job.qos, known):
            return replace(job, frozen=MINUTES)
        why = self._caps.why_not(job) or self._may_not(job) or self._closed(job, known)
        if why:
            return replace(job, frozen=f"{AGAIN}: {why}")
        behind = self._ahead.of(job)
        words = (
            f"job {behind} waits for a limit that may be its own too, and would start in its place"
        )
        return replace(job, frozen=words) if behind else self._that_start(job)

    def _closed(self, job: Job, known: Sequence[Partition]) -> str:
        """Why none of its partitions would start it again; "" where one would."""
        accounts = self._accounts(job.account.lower())
        words = [one.shuts_out(accounts, job.qos) or self._too_much(job, one) for one in known]
        return words[0] if words and all(words) else ""

    def _may_not(self, job: Job) -> str:
        """Why its user may have no job of its account and QOS any more; "" where he may."""
        if not self._qos_of or not job.account:
            return ""
        some = self._qos_of.get((job.account.lower(), job.user.lower()))
        if some is None:
            return f"{job.user} has no association with account {job.account} any more"
        gone = job.qos and some and job.qos.lower() not in some
        return f"{job.user} may not have QOS {job.qos} any more" if gone else ""

    def _accounts(self, account: str) -> Sequence[str]:
        """Return an account and those above it, as far as a partition looks at them."""
        names: list[str] = []
        while account and account not in names and self._above is not None:
            names.append(account)
            account = self._above.get(account, "")
        return names

    def _too_much(self, job: Job, one: Partition) -> str:
        """Why it is more than a partition lets one job have; "" where it is not, or nobody asks."""
        abilities, demand, nodes = self._abilities, job.demand(job.shape), job.shape.nodes
        if not abilities.judges_again:
            return ""
        any_time = not abilities.any_time_qos.isdisjoint((job.qos.lower(), one.qos))
        limit_s = 0 if any_time else job.limit_s
        return one.refuses(demand, nodes, limit_s) or abilities.beyond(job.qos, one, nodes, demand)

    def _that_start(self, job: Job) -> Job:
        """One that may be resized, with the shapes as which it would come back."""
        others = [shape for shape in job.shapes if shape != job.shape]
        gone = {s for s in others if self._tiers.overtaken(job, s) or self._caps.why_not(job, s)}
        return replace(job, shapes=tuple(s for s in job.shapes if s not in gone)) if gone else job


def unchanged(job: Job, names: Container[str]) -> tuple[Shape, ...]:
    """Return the shapes that change nothing of what is named, as :func:`totals` calls it.

    Memory that its owner said is said with each update, though it is the same.
    """
    if "mem" in names and job.demand(job.shape).mem_mib:
        return tuple(shape for shape in job.shapes if shape == job.shape)
    had = totals(job.shape.nodes, job.demand(job.shape)).items()
    kept = [(name, many) for name, many in had if name in names]
    has = [(shape, totals(shape.nodes, job.demand(shape))) for shape in job.shapes]
    return tuple(shape for shape, one in has if all(one[name] == many for name, many in kept))


class Bounds:
    """Leaves out what is more than a user wrote, where it may be beyond a limit."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._abilities, self._partitions = snapshot.abilities, snapshot.partition_by_name
        self._limited: dict[tuple[str, tuple[str, ...]], tuple[bool, bool]] = {}
        self._waiving = Caps(snapshot.abilities.waived, (), self._partitions)
        self._waived: dict[object, Mapping[str, str]] = {}
        self._known: dict[object, tuple[object, tuple[Shape, ...]]] = {}

    def within(self, job: Job) -> Job:
        """Return the job with the shapes that are left; what it carries stays."""
        if len(job.shapes) < 2 or job.spec is None or job.spec.own is None:
            return job
        waived = self.waived(job)
        job = replace(job, shapes=unchanged(job, waived)) if waived else job
        above, below = self._limits(job)
        return replace(job, shapes=self._left(job, above, below)) if above or below else job

    def waived(self, job: Job) -> Mapping[str, str]:
        """Return of what limits no change may be made, as it would not be held to them any more."""
        key = (job.user, job.account, job.qos, job.partitions)
        if key not in self._waived:
            self._waived[key] = self._waiving.named(job)
        return self._waived[key]

    def why_judged(self, job: Job) -> str:
        """Return why it keeps its shape while it waits, in words; "" where it may have another."""
        names = self.waived(job)
        if not names or unchanged(job, names) not in ((), (job.shape,)):
            return ""
        name, whose = next(iter(names.items()))
        what = WORDS[name].removeprefix("MiB of ")
        return f"{whose} is on {what}: a job of which Pliant changed that is not held to it"

    def _limits(self, job: Job) -> tuple[bool, bool]:
        """Whether a limit may bound it from above, and from below."""
        key = (job.qos, job.partitions)
        if key not in self._limited:
            known = [self._partitions[name] for name in job.partitions if name in self._partitions]
            self._limited[key] = (
                self._abilities.may_be_limited(job.qos, known),
                self._abilities.may_be_too_small(job.qos, known),
            )
        return self._limited[key]

    def _left(self, job: Job, above: bool, below: bool) -> tuple[Shape, ...]:
        """One object for jobs that share theirs, as readers let them.

        What its user wrote is the bound where its gate leaves it out, too.
        """
        own, stands = own_of(job), own_stands(job)
        key = (id(job.shapes), id(own), id(job.shape), above, below, stands)
        if key not in self._known:
            known = (*job.shapes, own) if stands else job.shapes
            some = no_larger(known, own) if above else job.shapes
            least = own.amount if below and own in some else 0
            left = {shape for shape in some if shape.amount >= least} | {job.shape}
            shapes = tuple(shape for shape in job.shapes if shape in left)
            self._known[key] = ((job.shapes, own, job.shape), shapes)
        return self._known[key][1]
