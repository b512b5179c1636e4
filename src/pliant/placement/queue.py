"""The waiting jobs of a cluster that keeps its ground: in order, and those that are alike together.

What a decision costs should not depend on how many wait behind those that it looks at. So jobs
that are alike (of one profile and time limit) are found together: where one of them cannot start,
none can.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence, Set
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple, overload

from pliant.model import Job
from pliant.placement.profiles import Profile, Profiles

PATIENCE = 32
"""How many jobs are passed over one by one before whole profiles are."""


Alike = tuple[Profile, int]
"""What jobs have in common of which either all fit now or none: profile and time limit."""


class _Entry(NamedTuple):
    place: int
    job: Job
    alike: Alike


class Queue(Sequence[Job]):
    """Jobs in the order in which they came, those put back at the head before them."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._alike: dict[Alike, OrderedDict[str, _Entry]] = {}
        self._trials: OrderedDict[str, _Entry] = OrderedDict()
        self._makers: dict[str, _Entry] = {}  # that have made room for another
        self._orders: dict[Callable[[Job], float], list[tuple[float, int, str]]] = {}
        self.tasks: dict[Profile, int] = {}  # that wait, by profile
        self.all_tasks = 0
        self._first, self._last = 0, 0

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Job]:
        """Yield the jobs in order."""
        return (entry.job for entry in self._entries.values())

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | Sequence[Job]:
        """Return a job by its place: not a quick way to look at all."""
        return [entry.job for entry in self._entries.values()][at]

    def __contains__(self, job: object) -> bool:
        """Whether a job waits, as it is."""
        entry = self._entries.get(job.id) if isinstance(job, Job) else None
        return entry is not None and entry.job == job

    def has(self, job_id: str) -> bool:
        """Whether a job of this id waits."""
        return job_id in self._entries

    def place(self, job_id: str) -> int:
        """Return a number by which the jobs that wait are in order."""
        return self._entries[job_id].place

    def get(self, job_id: str) -> Job:
        """Return a job that waits."""
        return self._entries[job_id].job

    def firsts(self) -> dict[Profile, int]:
        """Return the place of the first job of each profile."""
        found: dict[Profile, int] = {}
        for (profile, _), alike in self._alike.items():
            place = next(iter(alike.values())).place
            found[profile] = min(place, found.get(profile, place))
        return found

    # --- what really happens ----------------------------------------------------------------

    def append(self, job: Job) -> None:
        """Let a job wait behind all others."""
        self._last += 1
        self._put(_Entry(self._last, job, self._alike_of(job)))

    def push(self, job: Job) -> None:
        """Let a job wait before all others."""
        self._first -= 1
        entry = _Entry(self._first, job, self._alike_of(job))
        self._put(entry)
        self._entries.move_to_end(job.id, last=False)
        self._alike[entry.alike].move_to_end(job.id, last=False)
        if job.id in self._trials:
            self._trials.move_to_end(job.id, last=False)

    def _alike_of(self, job: Job) -> Alike:
        return (self._profiles.of(job), job.time_limit_s)

    def _put(self, entry: _Entry) -> None:
        self._entries[entry.job.id] = entry
        alike = self._alike.get(entry.alike)
        if alike is None:
            alike = self._alike[entry.alike] = OrderedDict()
        alike[entry.job.id] = entry
        if entry.job.is_trial:
            self._trials[entry.job.id] = entry
        if entry.job.room_for:
            self._makers[entry.job.id] = entry
        self._count(entry, entry.job.tasks_waiting)
        for key, order in self._orders.items():
            insort(order, _at(entry, key))

    def _count(self, entry: _Entry, more: int) -> None:
        profile = entry.alike[0]
        self.all_tasks += more
        count = self.tasks.get(profile, 0) + more
        if count:
            self.tasks[profile] = count
        else:
            del self.tasks[profile]

    def remove(self, job_id: str) -> Job:
        """Take a job out; return it."""
        entry = self._entries.pop(job_id)
        alike = self._alike[entry.alike]
        del alike[job_id]
        if not alike:
            del self._alike[entry.alike]
        self._trials.pop(job_id, None)
        self._makers.pop(job_id, None)
        self._count(entry, -entry.job.tasks_waiting)
        for key, order in self._orders.items():
            del order[bisect_left(order, _at(entry, key))]
        return entry.job

    def replace(self, job: Job) -> None:
        """Put another in the place of the job with its id: fewer tasks of an array."""
        old = self._entries[job.id]
        entry = _Entry(old.place, job, old.alike)
        self._entries[job.id] = self._alike[old.alike][job.id] = entry
        if job.id in self._trials:
            self._trials[job.id] = entry
        if job.id in self._makers:
            self._makers[job.id] = entry
        self._count(entry, job.tasks_waiting - old.job.tasks_waiting)

    # --- as a decision goes through it ------------------------------------------------------

    def turns(self, passed: Set[Alike]) -> Iterator[tuple[Job, Profile]]:
        """Yield jobs with their profiles in order, but those that were passed over.

        ``passed`` may grow in between.
        """
        skipped = 0
        for place, job, alike in self._entries.values():
            if alike not in passed:
                yield job, alike[0]
            else:
                skipped += 1
                if skipped > PATIENCE:
                    yield from self._behind(place, passed)
                    return

    def ordered(self, key: Callable[[Job], float]) -> Iterator[tuple[Job, Profile]]:
        """Yield all jobs with their profiles, the least by a key first, then in order.

        ``key`` depends on nothing that changes while a job waits, its number of tasks neither: from
        the first time on, the order is kept as jobs come and go.
        """
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = sorted(_at(e, key) for e in self._entries.values())
        entries = (self._entries[id_] for _, _, id_ in order)
        return ((entry.job, entry.alike[0]) for entry in entries)

    def trials(self) -> Iterator[tuple[Job, Profile]]:
        """Yield all trial jobs, in order."""
        return ((entry.job, entry.alike[0]) for entry in self._trials.values())

    def makers(self) -> Iterator[Job]:
        """Yield the jobs that have made room for another, in no order."""
        return (entry.job for entry in self._makers.values())

    def trials_behind(self, job_id: str) -> Iterator[tuple[Job, Profile]]:
        """Yield the trial jobs behind a job, in order."""
        place = self._entries[job_id].place
        return (
            (entry.job, entry.alike[0]) for entry in self._trials.values() if entry.place > place
        )

    def _behind(self, place: int, passed: Set[Alike]) -> Iterator[tuple[Job, Profile]]:
        """The same for those behind a place, without looking at those passed over."""
        heads = []
        for key, alike in self._alike.items():
            if key not in passed:
                rest = iter(alike.values())
                entry = next((entry for entry in rest if entry.place > place), None)
                if entry is not None:
                    heads.append((entry.place, entry, rest))
        heapify(heads)
        while heads:
            _, entry, rest = heads[0]
            if entry.alike in passed:
                heappop(heads)
                continue
            yield entry.job, entry.alike[0]
            following = next(rest, None)
            if following is None:
                heappop(heads)
            else:
                heapreplace(heads, (following.place, following, rest))


def _at(entry: _Entry, key: Callable[[Job], float]) -> tuple[float, int, str]:
    return (key(entry.job), entry.place, entry.job.id)
