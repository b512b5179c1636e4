"""When what runs gives back what it has, by the time limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pliant.model import Job, JobState, Snapshot
from pliant.placement.profiles import Profiles
from pliant.placement.scopes import limit_s
from pliant.placement.timeline import Release


class Ends:
    """The ends of the jobs that run, looked at once for all who wait."""

    def __init__(self, snapshot: Snapshot, profiles: Profiles, number: Mapping[str, int]) -> None:
        self._now_s, self._running = snapshot.now_s, snapshot.running
        self._profiles, self._number = profiles, number
        self._order: list[tuple[float, int]] | None = None
        self._releases: dict[int, Release] = {}
        self._left_out: set[str] = set()

    def leave_out(self, running: Iterable[Job]) -> None:
        """Leave out the ends of these jobs from now on."""
        self._left_out.update(job.id for job in running)
        self._order = None

    def among(self, others: Iterable[Release]) -> Iterator[Release]:
        """Yield these ends and ``others``, the earliest first, as those come."""
        if self._order is None:
            self._order = sorted(
                (self._end_s(job), number)
                for number, job in enumerate(self._running)
                if job.id not in self._left_out
            )
        rest = iter(others)
        other = next(rest, None)
        for entry in self._order:
            while other is not None and other.at_s < entry[0]:
                yield other
                other = next(rest, None)
            yield self._release(entry)
        if other is not None:
            yield other
        yield from rest

    def _end_s(self, job: Job) -> float:
        if job.state is JobState.ENDING:
            return self._now_s
        return max(self._now_s, job.start_s + limit_s(job))

    def _release(self, entry: tuple[float, int]) -> Release:
        end_s, number = entry
        known = self._releases.get(number)
        if known is None:
            job = self._running[number]
            places = tuple(self._number[name] for name in job.nodes if name in self._number)
            need = self._profiles.need(job, job.shape)
            known = self._releases[number] = Release(end_s, places, need, job.whole_nodes)
        return known
