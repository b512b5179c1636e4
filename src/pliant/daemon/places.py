"""Where running jobs could start again, as far as the last cycle knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pliant.batch import FENCE
from pliant.cycle import (
    caps_of,
    could_follow,
    could_start,
    has_room,
    kept_from,
    starts_anyway,
)
from pliant.daemon.foreseen import foreseen
from pliant.daemon.guests import apart, first_task
from pliant.daemon.handing import Wanted
from pliant.handover import OURS
from pliant.model import Caps, Job, Shape, Snapshot
from pliant.placement import Tiers, is_open, limit_s
from pliant.plan import Plan


class Places:
    """What the last cycle saw and decided, asked after by all that changes running jobs."""

    def __init__(
        self,
        clock: Callable[[], float],
        under_way: Callable[[], Mapping[str, Wanted]],
        fenced: Callable[[], Mapping[str, tuple[str, ...]]],
    ) -> None:
        """``clock`` counts seconds since the epoch; ``under_way``: what jobs are to become.

        ``fenced``: where each of these runs or ran, and is to run.
        """
        self._clock, self._under_way, self._fenced = clock, under_way, fenced
        self._decided: tuple[Snapshot, Plan] | None = None  # last
        self._tiers: Tiers | None = None  # of that
        self._caps: Caps | None = None  # too, once somebody asks

    def decided(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note what a cycle saw and decided: who asks after it is given no more than it leaves."""
        self._decided, self._tiers, self._caps = (snapshot, plan), Tiers(snapshot), None

    def guest(self, job_id: str) -> Job | None:
        """Return who is to have the room made for a job, as it waited then; None: it did not.

        Of an array it is a task, which is reckoned with as a job of its own from then on.
        """
        if self._decided is None:
            return None
        snapshot, plan = self._decided
        job = next((job for job in snapshot.waiting if job.id == job_id), None)
        if job is None:
            return None
        guest = first_task(job)
        self.decided(apart(snapshot, (guest.id,)), plan)
        return guest

    def has_room(self, job: Job, wanted: Wanted) -> bool:
        """Return whether a running job could become that now, as far as the last cycle knows.

        One that shares its node has nothing there that it could come back to.
        """
        if self._decided is None:
            return True
        (seen, plan), limited = self._beside(job), self._limited(job, wanted)
        if self._shares(job):
            return could_start(seen, plan, limited, wanted.shape, wanted.nodes)
        return has_room(seen, plan, limited, wanted.shape)

    def _beside(self, job: Job) -> tuple[Snapshot, Plan]:
        """What was seen, as it will be once what else is under way is over, and decided."""
        assert self._decided is not None  # noqa: S101 - callers see to it
        seen, plan = self._decided
        return foreseen(seen, self._under_way(), job.id), plan

    def kept(self, job: Job, wanted: Wanted) -> frozenset[str]:
        """Return the nodes that are kept for others, where a job could start, or its guest.

        Elsewhere than where it is to, and others that are in a hand-over: two would wait for each
        other. None where its place is not known. Fences are not in the way: they may have fallen
        by then.
        """
        own = wanted.nodes or job.nodes
        if self._decided is None or not own:
            return frozenset()
        seen, plan = self._beside(job)
        seen = apart(_open(seen), (wanted.guest,))
        guest = _guest(seen, wanted)
        seen = _in_its_turn(seen, guest) if guest else seen
        one = guest or self._limited(job, wanted)
        shape = (guest.next_shape or guest.shape) if guest else wanted.shape
        places = own + tuple(n for id_, on in self._fenced().items() if id_ != job.id for n in on)
        return frozenset(kept_from(seen, plan, one, job.id, shape)).difference(places)

    def _shares(self, job: Job) -> bool:
        """Whether another job runs on the same CPUs."""
        running = self._decided[0].running if self._decided is not None else ()
        return job.shares and any(
            one.id != job.id and one.shares and not {*one.nodes}.isdisjoint(job.nodes)
            for one in running
        )

    def is_open(self, job: Job, wanted: Wanted) -> bool:
        """Return whether a job could start now where it is to run, or its guest where it runs.

        And once its guest has ended: a reservation of its nodes may come nearer meanwhile. Fences
        are not in the way.
        """
        if self._decided is None:
            return True
        snapshot, nodes = self._decided[0], wanted.nodes or job.nodes
        guest = _guest(snapshot, wanted) if wanted.guest else None
        later_s = limit_s(guest) if guest is not None else 0.0
        return is_open(_open(snapshot), self._limited(job, wanted), nodes, later_s)

    def overtaken(self, job: Job, wanted: Wanted) -> str:
        """Return who could have its place between its two runs, in words; "" for nobody."""
        tiers = self._tiers
        return tiers.overtaken(job, wanted.shape, wanted.guest) if tiers is not None else ""

    def beyond(self, job: Job, shape: Shape) -> str:
        """Return the limit that it would break as that wherever it may run, or what else keeps it.

        "" for nothing.
        """
        if self._decided is None:
            return ""
        snapshot, _ = self._decided
        known = [p for p in snapshot.partitions if p.name in job.partitions]
        demand, abilities = job.demand(shape), snapshot.abilities
        own = job.spec is not None and job.spec.own == shape
        broken = [
            abilities.beyond(job.qos, one, shape.nodes, demand)
            or (one.keeps_shapes if own else one.keeps_from(shape.nodes))
            for one in known
        ]
        return broken[0] if broken and all(broken) else self._kept_by(job, shape)

    def _kept_by(self, job: Job, shape: Shape) -> str:
        """The limit on what runs that would keep it from starting again as that; "" for none."""
        if self._decided is None:
            return ""
        if self._caps is None:
            self._caps = caps_of(self._decided[0])
        return self._caps.why_not(job, shape)

    def _limited(self, job: Job, wanted: Wanted) -> Job:
        """A job with the time limit that it would have."""
        left_s = int(wanted.end_s - self._clock())
        return replace(job, time_limit_s=max(1, left_s)) if wanted.end_s else job

    def has_place(self, job: Job, wanted: Wanted) -> bool:
        """Return whether a job that has saved could start again so: else it would only wait.

        One that needs no more than it gives up has room there, unless it shares it with another.
        One that was to leave that other has no need to, once it is gone; nor has one whose guest
        could not start in its place, beside what others have taken meanwhile.
        """
        shares = self._shares(job)
        if job.shares and not shares and wanted.shape == job.shape and not wanted.guest:
            return self._decided is None
        less = wanted.shape.amount <= job.shape.amount and wanted.shape.nodes <= job.shape.nodes
        own = less and set(wanted.nodes) <= set(job.nodes) and not shares
        room = self._does_for(wanted, job) if wanted.guest else own
        keeps_it = self.overtaken(job, wanted) or self._kept_by(job, wanted.shape)
        keeps = self.is_open(job, wanted) and not keeps_it
        return keeps and (room or (not wanted.guest and self.has_room(job, wanted)))

    def _does_for(self, wanted: Wanted, job: Job) -> bool:
        """Whether the guest of a job could start once that has left: others may have the rest.

        And only then: it has no need of that room where it will start in what is free by now.
        """
        if self._decided is None:
            return True
        snapshot, plan = self._beside(job)
        snapshot = apart(snapshot, (wanted.guest,))
        guest = _guest(snapshot, wanted)
        if guest is None or all(one.id != job.id for one in snapshot.running):  # it has begun since
            return True
        return could_follow(snapshot, plan, guest, job) and not starts_anyway(snapshot, plan, guest)


def _open(snapshot: Snapshot) -> Snapshot:
    """What was seen without any fence."""
    others = [one for one in snapshot.reservations if not one.name.startswith(FENCE)]
    return replace(snapshot, reservations=tuple(others))


def _in_its_turn(snapshot: Snapshot, guest: Job) -> Snapshot:
    """What was seen with a guest that is pinned by now behind those that were before it."""
    if not any(one.id == guest.id and one.priority in OURS for one in snapshot.waiting):
        return snapshot
    others = [one for one in snapshot.waiting if one.id != guest.id]
    before = [at for at, one in enumerate(others) if one.priority > guest.priority]
    others.insert(max(before, default=-1) + 1, guest)
    return replace(snapshot, waiting=tuple(others))


def _guest(snapshot: Snapshot, wanted: Wanted) -> Job | None:
    """A guest as it waited when room was decided on for it; 0.1.0 did not note that."""
    waits = (one for one in snapshot.waiting if one.id == wanted.guest)
    return wanted.asks or next(waits, None)
