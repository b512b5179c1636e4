"""Limits of accounting on how many jobs may run, for how long, and on what they have. Pure.

A job that runs goes on when such a limit is lowered; one that went back to the queue would wait
until that is raised again. So would one that came back as more than a limit leaves: the batch
system keeps nothing for a job that waits for a limit, whatever its place.

Where several set the same limit, Slurm goes by the first of these (acct_policy.c; resource_limits):
the QOS of the partition, the job's own (the other way round where that has OverPartQOS), its
association. Limits of a group hold at each account above, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pliant.model.cluster import Partition
from pliant.model.footprints import Demand
from pliant.model.jobs import Job, JobState
from pliant.model.limits import WORDS, Amounts, totals
from pliant.model.shapes import Shape

Partitions = Mapping[str, Partition]
JOBS, WALL_S, NODES = "jobs", "wall_s", "nodes"
"""How many jobs run at once; the longest time limit; nodes, however many jobs are on each."""
JOB, USER, ACCOUNT = "job", "user", "account"
COUNTED = frozenset((JOBS, WALL_S, NODES, *totals(1, Demand())))


@dataclass(frozen=True, slots=True)
class Cap:
    """What jobs of a QOS, or of a user or account, may have; names are in small letters, "" is any.

    ``accounts``: that one and those below it, all where there is none; ``partition``: in which
    alone it holds; ``besides``: the users, and ``elsewhere``: the partitions, for which there is
    another one. ``each``: it counts the jobs of each :data:`USER`, or of each :data:`ACCOUNT`, on
    their own, or each :data:`JOB`. ``limits``: :data:`JOBS`, :data:`WALL_S`, :data:`NODES` and
    amounts, as :func:`totals` calls them. Of what else they name it is not known how much there is
    of it. ``first``: a QOS that goes before that of a partition.
    """

    name: str
    limits: Amounts
    qos: str = ""
    user: str = ""
    accounts: frozenset[str] = frozenset()
    partition: str = ""
    each: str = ""
    besides: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    first: bool = False

    def counts(self, job: Job, of: Partitions) -> bool:
        """Whether it holds for a job; ``of``: the partitions by name, with a QOS of their own."""
        places = [name.lower() for name in job.partitions]
        return (
            self.user in ("", job.user.lower())
            and job.user.lower() not in self.besides
            and (not self.qos or self.qos in _qos_of(job, of))
            and (not self.accounts or job.account.lower() in self.accounts)
            and (not self.partition or self.partition in places)
            and self.elsewhere.isdisjoint(places)
        )

    def with_whom(self, job: Job) -> str:
        """Whose jobs it counts with a job's, of those that it holds for."""
        return {JOB: job.id, USER: job.user, ACCOUNT: job.account}.get(self.each, "").lower()

    def breaks(self, name: str, most: int, has: int) -> str:
        """Say that one of its limits would be broken."""
        each = "" if self.user and self.each == USER else self.each  # its name says whose
        jobs = {JOB: "one job", USER: "jobs of a user", ACCOUNT: "jobs of an account"}
        whose = jobs.get(each, "jobs")
        if name == JOBS:
            return f"{self.name} lets {most} {whose} run at once, and {has} do"
        if name == WALL_S:
            return f"{self.name} lets one job run for {most // 60} min at most"
        if name not in COUNTED:
            return f"{self.name} limits {name}, so none of its jobs becomes larger"
        together = "at most" if self.each == JOB else "together"
        return f"{self.name} lets {whose} have {most} {WORDS.get(name, name)} {together}"


class Taken:
    """What some running jobs have in all: amounts, how many they are, on which nodes."""

    def __init__(self) -> None:
        self.has, self._nodes = Counter[str](), set[str]()

    def add(self, job: Job, amounts: Mapping[str, int]) -> None:
        """Add a job, and what it has."""
        self._nodes.update(job.nodes)
        self.has.update(amounts)
        self.has[JOBS] += 1
        self.has[NODES] = len(self._nodes)

    def after(self, name: str, had: Mapping[str, int], has: Mapping[str, int]) -> int:
        """Return how much they would have, one of them having something else than before."""
        if name == NODES:  # which ones it would have is not known
            return self.has[NODES] + max(0, has["nodect"] - had["nodect"])
        return self.has[name] - had.get(name, 0) + has.get(name, 0)


class Caps:
    """All limits and all that runs, by whom they are for: of thousands few are for one job."""

    def __init__(self, caps: Iterable[Cap], running: Iterable[Job], of: Partitions) -> None:
        self._of = of
        self._running: dict[_Whom, list[Job]] = defaultdict(list)
        self._caps: dict[_Whom, list[tuple[int, Cap]]] = defaultdict(list)
        self._taken: dict[tuple[int, str], Taken] = {}
        for number, cap in enumerate(caps):
            for whom in _for_whom(cap):
                self._caps[whom].append((number, cap))
        for job in running if self._caps else ():
            if job.state is not JobState.ENDING:  # its part has been given back
                for whom in _whose(job, of):
                    self._running[whom].append(job)

    def why_not(self, job: Job, shape: Shape | None = None) -> str:
        """Return why a running job would not start again, in words; "" where none stops it.

        ``shape``: as which; None: as it runs.
        """
        if not self._caps:
            return ""
        had = _amounts(job, job.shape)
        has = had if shape in (None, job.shape) else _amounts(job, shape or job.shape)
        gone_by = set[tuple[str, str]]()
        grows = any(many > had.get(name, 0) for name, many in has.items())
        for level in self._levels(job):
            for number, cap in level:
                taken = self._with(number, cap, job)
                for name, most in cap.limits:
                    many = job.limit_s if name == WALL_S else taken.after(name, had, has)
                    broken = many > most if name in COUNTED else grows
                    if broken and (cap.each, name) not in gone_by:
                        return cap.breaks(name, most, many)
            gone_by |= {(cap.each, name) for _, cap in level for name, _ in cap.limits}
            if (ACCOUNT, JOBS) in gone_by:
                gone_by.add((USER, JOBS))
        return ""

    def named(self, job: Job) -> Mapping[str, str]:
        """Return what limits of a job are on, and of each the first one's name."""
        found = [cap for level in self._levels(job) for _, cap in level] if self._caps else []
        return {name: cap.name for cap in reversed(found) for name, _ in cap.limits}

    def _levels(self, job: Job) -> Sequence[Sequence[tuple[int, Cap]]]:
        """Those that hold for a job: first those that make others of the same kind void."""
        found = [one for whom in _whose(job, self._of) for one in self._caps.get(whom, ())]
        found = [(number, cap) for number, cap in found if cap.counts(job, self._of)]
        own = [one for one in found if one[1].qos and one[1].qos == job.qos.lower()]
        theirs = [one for one in found if one[1].qos and one not in own]
        rest = [one for one in found if not one[1].qos]
        goes_first = any(cap.first for _, cap in own)
        return (own, theirs, rest) if goes_first else (theirs, own, rest)

    def _with(self, number: int, cap: Cap, job: Job) -> Taken:
        """What those have that run and that a limit counts with a job."""
        whose = cap.with_whom(job)
        if (number, whose) not in self._taken:
            taken = self._taken[number, whose] = Taken()
            places = [(cap.each, whose)] if cap.each in (USER, ACCOUNT) else _for_whom(cap)
            some = [job] if cap.each == JOB else [x for of in places for x in self._running[of]]
            for one in some:
                if cap.with_whom(one) == whose and cap.counts(one, self._of):
                    taken.add(one, _amounts(one, one.shape))
        return self._taken[number, whose]


_Whom = tuple[str, str]
_ANYBODY = ("", "")


def _amounts(job: Job, shape: Shape) -> dict[str, int]:
    has = totals(shape.nodes, job.demand(shape))
    return {name: many for name, many in has.items() if many > 0}


def _qos_of(job: Job, of: Partitions) -> Sequence[str]:
    theirs = (of[name].qos for name in job.partitions if name in of)
    return [name for name in dict.fromkeys((job.qos.lower(), *theirs)) if name]


def _for_whom(cap: Cap) -> Sequence[_Whom]:
    if cap.user:
        return [(USER, cap.user)]
    if cap.qos:
        return [("qos", cap.qos)]
    return [(ACCOUNT, account) for account in cap.accounts] or [_ANYBODY]


def _whose(job: Job, of: Partitions) -> Sequence[_Whom]:
    all_qos = [("qos", name) for name in _qos_of(job, of)]
    return [(USER, job.user.lower()), (ACCOUNT, job.account.lower()), *all_qos, _ANYBODY]
