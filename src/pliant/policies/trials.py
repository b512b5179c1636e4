"""Turns of trial and best-effort jobs: one decision over the queue in its order.

What FitGpp and its baselines have in common; see :mod:`pliant.policies.fitgpp`, which says whose
room a trial job may take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pliant.model import Job, JobClass, JobState, Snapshot
from pliant.placement import Option, Profile, Tiers
from pliant.placement.giving_up import certain_holders
from pliant.placement.queue import Alike
from pliant.plan import Plan, Preempt
from pliant.policies.desk import Desk
from pliant.policies.shapes import Fixed, FixedShapes


@dataclass(frozen=True, slots=True)
class Wish:
    """A trial job that does not fit, and the running BE jobs that could make room for it."""

    snapshot: Snapshot
    job: Job
    running: list[Job]


class Taking(Protocol):
    """A policy that says whose room a trial job may take, if any."""

    @property
    def shape(self) -> Fixed:
        """Which of its shapes a job gets."""

    @property
    def resizes(self) -> bool:
        """Whether anybody is told to make room at all; else trial jobs are as all others."""

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield sets of running BE jobs, best first: the first that makes room enough is told."""


class Turns:
    """One decision over the queue in its order."""

    def __init__(self, snapshot: Snapshot, policy: Taking) -> None:
        self._snapshot, self._policy = snapshot, policy
        self._desk, self._fixed = Desk(snapshot), FixedShapes(policy.shape)
        self._tiers = Tiers(snapshot)
        self._gone: set[str] = set()
        self._served: set[str] = set()

    @cached_property
    def _running(self) -> list[Job]:
        """The BE jobs that run, of which it is known what they leave."""
        running = (job for job in self._snapshot.running if job.state is JobState.RUNNING)
        return certain_holders(self._snapshot, (job for job in running if is_best_effort(job)))

    @cached_property
    def _told(self) -> set[str]:
        """The trial jobs for which room is being made."""
        leaving = (job for job in self._desk.makers() if job.frozen)  # between its two runs
        return {job.room_for for job in (*self._snapshot.running, *leaving) if job.room_for}

    def plan(self) -> Plan:
        """Return the decision."""
        self._keep_room()
        for job, profile in in_turn(self._desk):
            trial = job.is_trial and self._policy.resizes
            if job.id not in self._served and (trial or not self._desk.has_claims(job)):
                self._consider(job, profile, trial=trial)
            if self._desk.all_kept:
                self._trials_behind(job)
                break
        return self._desk.plan()

    def _keep_room(self) -> None:
        """Give trial jobs the room that is, or was, made for them, before anybody else has it."""
        trials = list(self._desk.trials()) if self._policy.resizes else []
        if not trials:
            return
        leaving: dict[str, list[Job]] = {}
        for one in self._snapshot.running:
            if one.room_for:
                leaving.setdefault(one.room_for, []).append(one)
        wanted = leaving.keys() | {one.room_for for one in self._desk.makers()}
        if not wanted:
            return
        for job, profile in trials:
            if job.id in wanted:
                self._keep_room_of(job, profile, leaving.get(job.id, ()))

    def _keep_room_of(self, job: Job, profile: Profile, leaving: Sequence[Job]) -> None:
        """Start a trial job in its room; where some who make it are still there, set it aside."""
        option = self._fixed.of(job, profile)
        if option is None:
            return
        given = self._desk.fill(job, profile, option)
        if given:
            self._desk.start(job, given, f"{option[0]} is free: room was made for it")
            self._served.add(job.id)
            return
        free = self._desk.free
        places = free.room(job, option, leaving, beside=frozenset({job.id})) if leaving else None
        if places is not None:
            free.trade(job, option, places, leaving)

    def _trials_behind(self, job: Job) -> None:
        """Let trial jobs pass those that wait, but under FIFO, which knows of no classes.

        Where nothing could be done for one, nothing can for those alike: room only shrinks here.
        """
        if not self._policy.resizes:
            return
        hopeless: set[Alike] = set()
        for other, profile in self._desk.trials_behind(job):
            alike = (profile, other.time_limit_s)
            if other.id in self._served or alike in hopeless:
                continue
            if not self._consider(other, profile, trial=True):
                hopeless.add(alike)

    def _consider(self, job: Job, profile: Profile, *, trial: bool) -> bool:
        """Start a job, or take room for it; False: nobody alike could start or be made room for."""
        option = self._fixed.of(job, profile)
        if option is None:
            return False
        given = self._desk.fill(job, profile, option)
        if given:
            self._desk.start(job, given, f"{option[0]} is free, and it is this job's turn")
        if len(given) < job.tasks_waiting:
            self._desk.keep(job, (option[0],))
            wishes = trial and not given and not job.limited and self._policy.resizes
            if wishes and job.id not in self._told:
                return self._take_room(job, option)
        return True

    def _take_room(self, job: Job, option: Option) -> bool:
        """Tell running BE jobs to make room for a trial job; False: that does not help."""
        free, mine = self._desk.free, frozenset({job.id})
        free_to_go = (one for one in self._running if one.id not in self._gone)
        left = [one for one in free_to_go if not self._tiers.overtaken(one, one.shape, job.id)]
        for victims in self._policy.victims(Wish(self._snapshot, job, left)):
            places = free.room(job, option, victims, beside=mine)
            if places is None:
                continue
            free.trade(job, option, places, victims)
            reason = f"it makes room for trial job {job.id}, which needs {option[0]}"
            self._desk.preempts += [Preempt(one, job.id, reason, option[0]) for one in victims]
            self._gone.update(one.id for one in victims)
            return True
        return False


def in_turn(desk: Desk) -> Iterator[tuple[Job, Profile]]:
    """Yield the queue with each job that has made room behind the one that it was for."""
    behind: dict[str, list[tuple[Job, Profile]]] = {}
    seen: set[str] = set()
    for job, profile in desk.turns():
        seen.add(job.id)
        target = job.room_for
        if target and target not in seen and desk.waits(target):
            behind.setdefault(target, []).append((job, profile))
        else:
            yield job, profile
            yield from behind.pop(job.id, ())


def is_best_effort(job: Job) -> bool:
    """Return whether a job is of the class whose jobs make room."""
    said = job.spec.request.job_class if job.spec is not None else None
    return said is JobClass.BEST_EFFORT
