"""When what runs gives back what it has, by the time limits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pliant.model import ALL_CORES, Job, JobState
from pliant.placement.needs import replaced
from pliant.placement.profiles import Profiles
from pliant.placement.scopes import limit_s
from pliant.placement.timeline import Release


class Ends:
    """The ends of the jobs that run, in order; looked at once for all who wait.

    CPUs that jobs of one node share (:attr:`Job.shares`) are free when the last of these ends.
    """

    def __init__(
        self, running: Sequence[Job], profiles: Profiles, number: Mapping[str, int]
    ) -> None:
        self._running, self._profiles, self._number = running, profiles, number
        self._order: list[tuple[float, int]] | None = None
        self._releases: dict[int, Release] = {}
        self._left_out: set[str] = set()
        self._shared: dict[int, int] | None = None

    # --- what really happens ----------------------------------------------------------------

    def begin(self, number: int, release: Release) -> None:
        """A job has started: ``number`` is its own among those that run."""
        insort(self._known(), (release.at_s, number))
        self._releases[number] = release

    def end(self, number: int) -> None:
        """A job that was begun here runs no longer."""
        release, order = self._releases.pop(number), self._known()
        del order[bisect_left(order, (release.at_s, number))]

    # --- as a decision sees it --------------------------------------------------------------

    def restore(self) -> None:
        """Count on all of them again."""
        if self._left_out:
            self._left_out.clear()

    def leave_out(self, running: Iterable[Job]) -> None:
        """Leave out the ends of these jobs from now on."""
        self._left_out.update(job.id for job in running)

    def among(self, others: Iterable[Release], now_s: float) -> Iterator[Release]:
        """Yield these ends and ``others``, the earliest first, as those come; none before now."""
        rest = iter(others)
        other = next(rest, None)
        for end_s, number in self._known():
            release = self._release(end_s, number)
            if release.job in self._left_out:
                continue
            if end_s < now_s:
                release = release._replace(at_s=now_s)
            while other is not None and other.at_s < release.at_s:
                yield other
                other = next(rest, None)
            yield release
        if other is not None:
            yield other
        yield from rest

    def _known(self) -> list[tuple[float, int]]:
        if self._order is None:
            self._order = sorted((_end_s(job), at) for at, job in enumerate(self._running))
        return self._order

    def _release(self, end_s: float, number: int) -> Release:
        known = self._releases.get(number)
        if known is None:
            job = self._running[number]
            places = tuple(self._number[name] for name in job.nodes if name in self._number)
            need = self._profiles.need(job, job.shape)
            if number in self._shared_cpus():
                need = replaced(need, cpus=self._shared_cpus()[number])
            known = self._releases[number] = Release(end_s, places, need, job.whole_nodes, job.id)
        return known

    def _shared_cpus(self) -> dict[int, int]:
        """The CPUs that are free at the end of each job that shares its node: none, or all's.

        Only of jobs of one node: so are all that share by Pliant's marks.
        """
        if self._shared is None:
            self._shared = {}
            on: dict[str, list[tuple[float, int]]] = {}
            for number, job in enumerate(self._running):
                if job.shares and len(job.nodes) == 1:
                    on.setdefault(job.nodes[0], []).append((_end_s(job), number))
            for ends in on.values():
                if len(ends) > 1:
                    numbers = [number for _, number in sorted(ends)]
                    self._shared |= dict.fromkeys(numbers, 0) | {numbers[-1]: self._cpus(numbers)}
        return self._shared

    def _cpus(self, numbers: Iterable[int]) -> int:
        """What these jobs have together; more than there are on their node is all of them."""
        jobs = (self._running[number] for number in numbers)
        cpus = [self._profiles.need(job, job.shape).cpus for job in jobs]
        return ALL_CORES if ALL_CORES in cpus else sum(cpus)


def _end_s(job: Job) -> float:
    return -float("inf") if job.state is JobState.ENDING else job.start_s + limit_s(job)
