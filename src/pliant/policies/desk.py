"""Where a policy writes down its decision: starts, claims of first jobs, other changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import dropwhile, islice

from pliant.model import Job, Shape, Snapshot
from pliant.placement import Free, Need, Option, Profile, Taken
from pliant.placement.pick import Places
from pliant.placement.queue import Alike, Queue
from pliant.plan import Plan, Preempt, Reshape, Start
from pliant.policies.reasons import FIRST


class Desk:
    """A decision in the making, over one snapshot."""

    def __init__(self, snapshot: Snapshot, order: Sequence[Job] = ()) -> None:
        """``order``: what decides between equal jobs; the queue's where none is given."""
        self.free = Free(snapshot)
        self.reshapes: list[Reshape] = []
        self.preempts: list[Preempt] = []
        self._order = order
        self._position: dict[str, int] = {}
        self._starts: dict[str, Start] = {}
        self._queues = [partition.name for partition in snapshot.partitions]
        self._kept: set[str] = set()  # partitions whose first waiting job has its claim
        self._openings: dict[tuple[Profile, int, Need], float] = {}

    def queue(self) -> list[Job]:
        """Return the jobs that take part, first in the queue first."""
        return [job for job in self.free.snapshot.waiting if job.eligible]

    def turns(self, passed: Set[Alike] = frozenset()) -> Iterator[tuple[Job, Profile]]:
        """Yield the same with their profiles, without those that are passed over.

        ``passed`` may grow meanwhile.
        """
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            yield from waiting.turns(passed)
            return
        for job in waiting:
            if job.eligible:
                profile = self.free.profile(job)
                if (profile, job.time_limit_s) not in passed:
                    yield job, profile

    def ordered(self, key: Callable[[Job], float]) -> Iterator[tuple[Job, Profile]]:
        """Yield the jobs that take part with their profiles, the least by a key first.

        ``key`` depends on nothing that changes while a job waits.
        """
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            return waiting.ordered(key)
        jobs = sorted(self.queue(), key=key)
        return ((job, self.free.profile(job)) for job in jobs)

    def trials(self) -> Iterator[tuple[Job, Profile]]:
        """Yield all trial jobs that take part, with their profiles, in order."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            yield from waiting.trials()
            return
        for job in waiting:
            if job.eligible and job.is_trial:
                yield job, self.free.profile(job)

    def trials_behind(self, job: Job) -> Iterator[tuple[Job, Profile]]:
        """Yield the trial jobs behind a job that take part, with their profiles."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            yield from waiting.trials_behind(job.id)
            return
        rest = dropwhile(lambda other: other.id != job.id, waiting)
        for other in islice(rest, 1, None):
            if other.eligible and other.is_trial:
                yield other, self.free.profile(other)

    def makers(self) -> Iterator[Job]:
        """Yield the waiting jobs that have made room for another, in no order."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            return waiting.makers()
        return (job for job in waiting if job.room_for)

    def waits(self, job_id: str) -> bool:
        """Whether a job waits and takes part."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            return waiting.has(job_id)
        return any(job.id == job_id and job.eligible for job in waiting)

    def tasks(self) -> Mapping[Profile, int]:
        """Return how many tasks wait and take part, by profile."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            return waiting.tasks
        tasks: dict[Profile, int] = {}
        for job, profile in self.turns():
            tasks[profile] = tasks.get(profile, 0) + job.tasks_waiting
        return tasks

    def firsts(self) -> Mapping[Profile, int]:
        """Return by profile a number by which their first jobs are in the order of the queue."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue):
            return waiting.firsts()
        return {profile: at for at, profile in enumerate(self.tasks())}

    def position(self, job: Job) -> int:
        """Return a job's place in the order."""
        waiting = self.free.snapshot.waiting
        if isinstance(waiting, Queue) and not self._order:
            return waiting.place(job.id)
        if not self._position:
            self._position = {job.id: at for at, job in enumerate(self._order or waiting)}
        return self._position[job.id]

    def has_claims(self, job: Job) -> bool:
        """Whether an earlier job of one of this job's queues waits with a claim."""
        return not self._kept.isdisjoint(job.partitions)

    def fill(self, job: Job, profile: Profile, option: Option) -> list[Taken]:
        """Take what as many waiting tasks of ``job`` as possible need in this shape."""
        given: list[Taken] = []
        bound = self.free.bound(job)
        while len(given) < job.tasks_waiting:
            places = self.free.places(profile, option, bound)
            if places is None:
                break
            given.append(self.free.take_places(job, option, places))
        return given

    def tried(self, job: Job, profile: Profile, option: Option) -> int:
        """Return how many waiting tasks of ``job`` could start in this shape; take nothing."""
        with self.free.supposing():
            given = self.fill(job, profile, option)
            for one in given:
                self.free.release(one)
        return len(given)

    def instead(self, old: list[Taken], profile: Profile, option: Option) -> list[Taken]:
        """Give a job another shape for what it has, all its tasks or none.

        Returns what it has then; nothing where that does not fit, and it keeps what it has.
        """
        job = old[0].job
        if not self.free.may_fit_instead(old, profile, option):
            return []
        with self.free.supposing():
            for one in old:
                self.free.release(one)
            new = self.fill(job, profile, option)
            if len(new) == len(old):
                return new
            for one in new:
                self.free.release(one)
            for one in old:
                self.free.retake(one)
        return []

    def start(self, job: Job, given: list[Taken], reason: str) -> None:
        """Write down that ``job`` starts with what it was given (again, to change it)."""
        nodes = [self.free.names(one.places) for one in given]
        start = Start(job, given[0].shape, nodes[0], reason, len(given), tuple(nodes[1:]))
        self._starts[job.id] = start

    def reshape(self, job: Job, option: Option, places: Places, reason: str) -> None:
        """Write down that a running job changes in place of what it has, where that fits."""
        self.free.trade(job, option, places, (job,))
        self.reshapes.append(Reshape(job, option[0], self.free.names(places), reason))

    def opening_s(self, job: Job, profile: Profile, option: Option) -> float:
        """Estimate when an option can start; inf where no opening is in sight.

        Worked out once for all jobs alike, until a claim is made: what starts meanwhile is not
        in it.
        """
        key = (profile, option[0].nodes, option[1])
        known = self._openings.get(key)
        if known is None:
            found = self.free.earliest(job, option[0])
            known = self._openings[key] = float("inf") if found is None else found[0]
        return known

    @property
    def all_kept(self) -> bool:
        """Whether in every queue a job waits with a claim."""
        return self._kept.issuperset(self._queues)

    def may_keep(self, job: Job) -> bool:
        """Whether ``job`` would be the first that waits in one of its queues."""
        return not job.limited and not self._kept.issuperset(job.partitions)

    def end_queue(self, job: Job, shapes: Iterable[Shape]) -> None:
        """Keep the earliest opening for ``job`` where others than those behind it could take it.

        For policies where nobody overtakes.
        """
        if self.free.snapshot.is_plain and len(self._queues) == 1:
            self._kept.update(job.partitions)
        else:
            self.keep(job, shapes)

    def keep(self, job: Job, shapes: Iterable[Shape]) -> bool:
        """Keep the earliest opening for ``job`` where it is the first that waits in its queue.

        A job that waits for a limit keeps nothing: it is not known when the limit lets it start.
        Says whether something was kept.
        """
        if not self.may_keep(job):
            return False
        if not self.free.claim(job, shapes, FIRST):
            return False
        self._kept.update(job.partitions)
        self._openings.clear()
        return True

    def plan(self) -> Plan:
        """Return the decision, in the order of the queue."""
        starts = sorted(self._starts.values(), key=lambda start: self.position(start.job))
        claims = sorted(self.free.claims, key=lambda claim: self.position(claim.job))
        return Plan(
            tuple(starts),
            tuple(claims),
            reshapes=tuple(self.reshapes),
            preempts=tuple(self.preempts),
        )
