"""Trial jobs that did not start in the room that was made for them.

What keeps a job from starting may be what we do not see: on PBS a limit of its user is said only
once there is room. Another best-effort job would make room in vain, and one more after that. So
such a trial job is an ordinary one for a while, each time for twice as long as before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from pliant.daemon.records import array_of
from pliant.model import Job, Snapshot

log = logging.getLogger("pliant.elastic")

FIRST_S = 600.0
MOST_S = 86_400.0
"""For how long such a job is an ordinary one: the first time, and at most."""

_What = tuple[str, tuple[str, ...], object, int]
"""A job as its owner wants it: its id or its array's, partitions, shape and time limit."""


@dataclass(slots=True)
class Unserved:
    """Who waits although room was made; a job that is changed since is another one."""

    _asked: set[str] = field(default_factory=set)  # for whom room began to be made
    _made_s: dict[str, float] = field(default_factory=dict)  # when room was there
    _in_vain: set[str] = field(default_factory=set)  # for whom a job has saved, and not left
    _rests: dict[_What, tuple[float, float]] = field(default_factory=dict)  # until, for

    def asked(self, guest: str) -> None:
        """Note that a job is asked to make room for another one."""
        self._asked.add(guest)

    def made_room(self, guest: str, now_s: float) -> None:
        """Note that room was made for a job, from any thread; whether it starts is to be seen."""
        self._made_s[guest] = now_s

    def had_none(self, guest: str, now_s: float) -> None:
        """Note that a job has saved for another one, and stays: once others may have come before.

        The second time in a row it is as if there had been room, and it had not started.
        """
        if guest in self._in_vain:
            self.made_room(guest, now_s)
        elif guest:
            self._in_vain.add(guest)

    @property
    def expected(self) -> frozenset[str]:
        """For whom room was made, of whom no look has shown yet whether they started."""
        return frozenset(self._made_s)

    def looked(self, snapshot: Snapshot, still: Iterable[str]) -> None:
        """See who waits all the same; ``still``: those for whom more room is being made."""
        now_s, still = snapshot.now_s, frozenset(still)
        waiting = {job.id: job for job in snapshot.waiting if job.is_trial}
        there = {_what(job) for job in waiting.values()}
        self._rests = {what: rest for what, rest in self._rests.items() if what in there}
        for guest, at_s in [*self._made_s.items()]:
            if at_s >= now_s or guest in still:
                continue
            del self._made_s[guest]
            job = waiting.get(guest)
            if job is not None and job.eligible and guest in self._asked:
                self._refused(job, now_s)
            self._asked.discard(guest)
            self._in_vain.discard(guest)
        self._asked &= {*waiting, *still, *self._made_s}
        self._in_vain &= waiting.keys()

    def _refused(self, job: Job, now_s: float) -> None:
        until_s, before_s = self._rests.get(_what(job), (0.0, 0.0))
        rest_s = min(MOST_S, 2 * before_s or FIRST_S)
        if now_s >= until_s:  # else it is another task of the same array
            self._rests[_what(job)] = (now_s + rest_s, rest_s)
        log.warning("job %s: %s", job.id, self.why(job, now_s))

    def why(self, job: Job, now_s: float) -> str:
        """Return why no more room is made for a job that waits; "" where it may be."""
        until_s, rest_s = self._rests.get(_what(job), (0.0, 0.0))
        if now_s >= until_s:
            return ""
        return (
            "a job has saved to make room for it, and it did not start there: none is made again"
            f" for {rest_s / 60:.0f} minutes"
        )


def _what(job: Job) -> _What:
    return (array_of(job) or job.id, job.partitions, job.shape, job.time_limit_s)
