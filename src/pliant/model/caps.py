"""Limits of accounting on how many jobs may run, for how long, and on what one job has. Pure.

A job that runs goes on when such a limit is lowered; one that went back to the queue would wait
until that is raised again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pliant.model.cluster import Partition
from pliant.model.jobs import Job
from pliant.model.limits import WORDS, Amounts, totals

Partitions = Mapping[str, Partition]


@dataclass(frozen=True, slots=True)
class Cap:
    """What jobs of a QOS, or of a user or account, may have; names are in small letters, "" is any.

    ``accounts``: that one and those below it, all where there is none; ``partition``: in which
    alone it holds. ``each``: it counts the jobs of each "user", or of each "account", on their own.
    ``jobs``: how many may run at once; ``wall_s``: the longest time limit; None: any. ``most``:
    what one job may have in all; ``together``: what all have that it counts. ``besides``: users for
    whom there is another one.
    """

    name: str
    qos: str = ""
    user: str = ""
    accounts: frozenset[str] = frozenset()
    partition: str = ""
    each: str = ""
    jobs: int | None = None
    wall_s: int | None = None
    most: Amounts = ()
    together: Amounts = ()
    besides: frozenset[str] = frozenset()

    def counts(self, job: Job, of: Partitions) -> bool:
        """Whether it holds for a job; ``of``: the partitions by name, with a QOS of their own."""
        theirs = (of[name].qos for name in job.partitions if name in of)
        return (
            self.user in ("", job.user.lower())
            and job.user.lower() not in self.besides
            and self.qos in ("", job.qos.lower(), *theirs)
            and (not self.accounts or job.account.lower() in self.accounts)
            and (not self.partition or self.partition in job.partitions)
        )

    def with_whom(self, job: Job) -> str:
        """Whose jobs it counts with a job's, of those that it holds for."""
        return {"user": job.user, "account": job.account}.get(self.each, "")

    def stops(self, job: Job, running: Taken) -> str:
        """Return why a running job for which it holds would not start again, in words; "": it does.

        ``running``: what those have that it counts together, that one among them.
        """
        if self.jobs is not None and running.jobs > self.jobs:
            return f"{self.name} lets {self.jobs} jobs run at once, and {running.jobs} do"
        if self.wall_s is not None and self.wall_s < job.longest_s < float("inf"):
            return f"{self.name} lets a job run for {self.wall_s // 60} min at most"
        has = totals(job.shape.nodes, job.demand(job.shape))
        if any(has[name] > most for name, most in self.most):
            return f"{self.name} lets no job have as much as it has"
        words = f"{self.name} lets jobs have fewer {{}} together"
        beyond = (name for name, most in self.together if running.has[name] > most)
        return next((words.format(WORDS.get(name, name)) for name in beyond), "")


class Taken:
    """How many jobs run, and what they have in all, as :func:`totals` counts it."""

    def __init__(self, running: Iterable[Job]) -> None:
        self.jobs, self.has = 0, Counter[str]()
        for job in running:
            self.jobs += 1
            has = totals(job.shape.nodes, job.demand(job.shape))
            self.has.update({name: many for name, many in has.items() if many > 0})


class Caps:
    """All limits and all that runs, by whom they are for: of thousands few are for one job."""

    def __init__(self, caps: Iterable[Cap], running: Iterable[Job], of: Partitions) -> None:
        self._of = of
        self._running: dict[tuple[str, str], list[Job]] = defaultdict(list)
        self._caps: dict[tuple[str, str], list[Cap]] = defaultdict(list)
        self._taken: dict[tuple[Cap, str], Taken] = {}
        for cap in caps:
            for whose in _for_whom(cap):
                self._caps[whose].append(cap)
        for job in running if self._caps else ():
            for whose in _whose(job):
                self._running[whose].append(job)

    def why_not(self, job: Job) -> str:
        """Return why a running job would not start again, in words; "" where none stops it."""
        for whose in _whose(job):
            for cap in self._caps.get(whose, ()):
                if cap.counts(job, self._of):
                    why = cap.stops(job, self._with(cap, job))
                    if why:
                        return why
        return ""

    def _with(self, cap: Cap, job: Job) -> Taken:
        """What those have that run and that a limit counts with a job."""
        whose = cap.with_whom(job)
        if (cap, whose) not in self._taken:
            some = [job for of in _for_whom(cap) for job in self._running.get(of, ())]
            counted = (one for one in some if cap.with_whom(one) == whose)
            self._taken[cap, whose] = Taken(x for x in counted if cap.counts(x, self._of))
        return self._taken[cap, whose]


def _for_whom(cap: Cap) -> Sequence[tuple[str, str]]:
    if cap.user:
        return [("user", cap.user)]
    return [("account", account) for account in cap.accounts] or [_ANYBODY]


def _whose(job: Job) -> Sequence[tuple[str, str]]:
    return (("user", job.user.lower()), ("account", job.account.lower()), _ANYBODY)


_ANYBODY = ("", "")
