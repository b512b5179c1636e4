"""How fast jobs run in each other's company, live: from windows and heartbeats to the snapshot.

Windows come from the nodes' monitors and, of jobs under ``pliant run``, from their steps. One
counts where the same jobs were on the node from its begin to its end: who came or went since is in
each look. Speeds of CPU time are not taken: they do not see what jobs do to each other in caches
and memory (see :mod:`pliant.monitor.speed`). Each tier is counted for itself, and a job is as fast
as the first tier says in which it was measured both alone and beside the other. Of a job with GPUs
counters say little: only its steps count. What was measured
of programs is kept in the store (see :class:`Memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import inf
from typing import Protocol

from pliant.daemon.beats import Beats
from pliant.daemon.monitors import Measured
from pliant.daemon.runs import UNNAMED
from pliant.daemon.vain import Vain
from pliant.model import Combination, Company, Job, Kind, Partition, Snapshot, Together, shape_text
from pliant.plan import Policy
from pliant.policies.parting import PAIR
from pliant.speed_table import MOST_KNOWN, OF_ONE, Program, Row, SpeedTable, Window

SEEING = ("heartbeat", "counters")
"""The tiers that see interference; where a job is known in both, its own steps count."""
OF_GPUS = SEEING[:1]
"""That which sees it where the work is done on GPUs, of which the host's counters know nothing."""
MOST_WAITING = 20
"""Of how many jobs that wait it is said how fast they would be beside others."""
ASK_S = 3.0
"""When a program that answers is asked for its step again where its speed is not known yet."""
MOST_ASK_S = 60.0
"""One that tells nothing is asked after twice the time as before, up to this."""
GAP_S = 60.0
"""After so long without a look, who was beside whom until then is not known."""
KEEP_S = 10.0
"""How often what was measured of programs is written down."""


class Windows(Protocol):
    """Where windows of the nodes' monitors are kept."""

    def of(self, job_id: str) -> Mapping[str, tuple[Measured, ...]]:
        """Return the last windows of a running job, by node."""
        ...


class Memory(Protocol):
    """Where what was measured of programs outlives pliantd."""

    def keep_speeds(self, rows: Iterable[Row]) -> None:
        """Keep it, in place of what was known of the same before."""
        ...

    def speeds(self, most: int) -> Sequence[Row]:
        """Return it, ``most`` at most, that measured last at the end."""
        ...


@dataclass(slots=True)
class _Beside:
    """Who is on a job's node beside it, in which run of it, and since when."""

    run: int
    others: Combination
    since_s: float


@dataclass(slots=True)
class Sharing:
    """The speed table and what feeds it; used from the cycle's thread."""

    windows: Windows
    beats: Beats = field(default_factory=Beats)
    ask: Callable[[str], None] = lambda _job_id: None  # lets a program tell its step soon
    memory: Memory | None = None
    vain: Vain = field(default_factory=Vain)
    table: SpeedTable = field(default_factory=SpeedTable)
    _beside: dict[str, _Beside] = field(default_factory=dict)
    _taken_s: dict[tuple[str, str], float] = field(default_factory=dict)  # by job and tier
    _asked: dict[str, tuple[float, float]] = field(default_factory=dict)  # when; the next pause
    _looked_s: float = -inf
    _kept_s: float = -inf

    def __post_init__(self) -> None:
        """Know what an earlier pliantd has measured of programs."""
        if self.memory is not None:
            self.table.recall(self.memory.speeds(MOST_KNOWN))

    def known(self, snapshot: Snapshot) -> Snapshot:
        """Return what was seen, with what is known of its jobs in each other's company."""
        self.beats.forget({job.id for job in snapshot.running})
        if not any(partition.sharers == PAIR for partition in snapshot.partitions):
            return snapshot
        running = _on_one_node(snapshot)
        waiting = [job for job in snapshot.waiting if job.colocates][:MOST_WAITING]
        self._forget(snapshot, (*running.values(), *waiting))
        for job in (*running.values(), *waiting):
            self.table.runs(job.id, _program(job))
        for job in running.values():
            if job.colocates:
                self._measure(snapshot.now_s, job)
        self._keep(snapshot.now_s)
        company = self._company(running, waiting)
        self._ask(snapshot.now_s, running, company)
        return replace(self.vain.without(snapshot), company=company)

    def _keep(self, now_s: float) -> None:
        if self.memory is not None and abs(now_s - self._kept_s) >= KEEP_S:
            self._kept_s = now_s
            self.memory.keep_speeds(self.table.fresh())

    def _forget(self, snapshot: Snapshot, jobs: tuple[Job, ...]) -> None:
        there = {job.id for job in jobs}
        self.table.forget(there)
        runs = {job.id for job in snapshot.running}
        self._taken_s = {key: s for key, s in self._taken_s.items() if key[0] in runs}
        for known in (self._beside, self._asked):
            for job_id in known.keys() - runs:
                del known[job_id]
        others, starts = _beside(snapshot), {job.id: job.start_s for job in snapshot.running}
        for job in jobs:
            if job.id in runs:
                self._note(job, others[job.id], starts, snapshot.now_s)
        self._looked_s = snapshot.now_s

    def _note(
        self, job: Job, others: Combination, starts: Mapping[str, float], now_s: float
    ) -> None:
        """Note who is beside a job now, and since when that is so for certain."""
        known = self._beside.get(job.id)
        missed = now_s - self._looked_s > GAP_S  # others may have come and gone meanwhile
        if not missed and known is not None and (known.run, known.others) == (job.restarts, others):
            return
        since_s = max(starts[one] for one in (job.id, *others))
        left = known is not None and known.run == job.restarts and known.others - others
        if left or missed or (known is None and starts[job.id] < self._looked_s):
            since_s = now_s  # who was beside it until now is not known
        self._asked.pop(job.id, None)
        self._beside[job.id] = _Beside(job.restarts, others, since_s)

    # Measured

    def _measure(self, now_s: float, job: Job) -> None:
        """Count the windows of a job that lie whole in its present company, each tier for itself.

        Those of both tiers: it may tell its steps only from some time on, or no longer.
        """
        beside = self._beside[job.id]
        taken_s = {tier: self._taken_s.get((job.id, tier), 0.0) for tier in SEEING}
        for tier, begin_s, end_s, speed in self._windows(job.id):
            if beside.since_s <= begin_s and taken_s[tier] < end_s <= now_s:
                window = Window(job.id, tier, speed, end_s - begin_s, end_s, beside.others)
                self.table.add(window)
                self._taken_s[job.id, tier] = max(end_s, self._taken_s.get((job.id, tier), 0.0))

    def _windows(self, job_id: str) -> Iterator[tuple[str, float, float, float]]:
        for begin_s, end_s, speed in self.beats.of(job_id):
            yield "heartbeat", begin_s, end_s, speed
        for kept in self.windows.of(job_id).values():
            for one in kept:
                if one.window.tier == "counters" and one.end_s > one.begin_s:
                    yield one.window.tier, one.begin_s, one.end_s, one.window.value

    # Known

    def _company(self, running: Mapping[str, Job], waiting: list[Job]) -> Company:
        """What is known of pairs that are there or could come about, and who is known alone."""
        here = [job for job in running.values() if job.colocates]
        alone = {job.id: known for job in (*here, *waiting) if (known := self._alone(job))}
        found = [Together(((job_id, 1.0),)) for job_id in alone]
        for one, two in _pairs(here, waiting):
            if one.id in alone and two.id in alone:
                mine = self._relative(one.id, two.id, alone[one.id])
                its = self._relative(two.id, one.id, alone[two.id]) if mine is not None else None
                if mine is not None and its is not None:
                    found.append(Together(((one.id, mine), (two.id, its))))
        return Company(tuple(found))

    def _alone(self, job: Job) -> dict[str, float]:
        """How fast a job is alone, by tier, the best first."""
        tiers = SEEING if job.shape.kind is Kind.CPU else OF_GPUS
        speeds = ((tier, self.table.alone(job.id, tier)) for tier in tiers)
        return {tier: speed for tier, speed in speeds if speed is not None}

    def _relative(self, job_id: str, other: str, alone: Mapping[str, float]) -> float | None:
        """How fast a job is beside another, relative to alone: two numbers of one tier."""
        for tier, speed in alone.items():
            beside = self.table.beside(job_id, tier, frozenset((other,)))
            if beside is not None:
                return beside / speed
        return None

    def _ask(self, now_s: float, running: Mapping[str, Job], company: Company) -> None:
        """Let programs tell their steps where it is not known how fast they are now."""
        known = company.table
        for job in running.values():
            beside = self._beside[job.id].others
            here = beside | {job.id}
            wanted = job.colocates and len(here) <= PAIR and here not in known
            asked_s, pause_s = self._asked.get(job.id, (-inf, ASK_S / 2))
            unknown = self.table.beside(job.id, SEEING[0], beside) is None
            if unknown and self.beats.told_s(job.id) > asked_s:  # it answers
                pause_s = ASK_S
            if wanted and now_s - asked_s >= pause_s:
                self._asked[job.id] = (now_s, min(MOST_ASK_S, 2 * pause_s))
                self.ask(job.id)


def _on_one_node(snapshot: Snapshot) -> dict[str, Job]:
    """Running jobs of one node where somebody's owner lets it share, by id."""
    nodes = {job.nodes[0] for job in snapshot.running if job.colocates and len(job.nodes) == 1}
    return {job.id: job for job in snapshot.running if not nodes.isdisjoint(job.nodes)}


def _beside(snapshot: Snapshot) -> dict[str, Combination]:
    """Who is on the same nodes, by job."""
    on: dict[str, set[str]] = {}
    for job in snapshot.running:
        for node in job.nodes:
            on.setdefault(node, set()).add(job.id)
    return {
        job.id: frozenset().union(*(on[node] for node in job.nodes)) - {job.id}
        for job in snapshot.running
    }


def _pairs(here: list[Job], waiting: list[Job]) -> Iterator[tuple[Job, Job]]:
    """Yield those that share a node, and those that could: one of them waits."""
    on: dict[tuple[str, ...], list[Job]] = {}
    for job in here:
        on.setdefault(job.nodes, []).append(job)
    yield from (pair for jobs in on.values() for pair in combinations(jobs, 2))
    yield from product(here, waiting)
    yield from combinations(waiting, 2)


def sharing_trouble(policy: Policy, partitions: Iterable[Partition]) -> str:
    """Return why a policy that pairs jobs never will here; "" where it can."""
    if not getattr(policy, "marks", False) or any(p.sharers == PAIR for p in partitions):
        return ""
    return f"policy {policy.name}: no partition has OverSubscribe=YES:2: no two jobs share a node"


def _program(job: Job) -> Program:
    name = f"{OF_ONE}{job.id}" if job.name in UNNAMED else job.name
    return Program(job.user, name, shape_text(job.shape))
