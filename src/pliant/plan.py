"""The verbs: what a policy decides and what is done about it, each with its reason.

A policy is called with a snapshot and returns a ``Plan`` without actions: which waiting jobs can
start now, as what and where, what is kept for the first waiting job of each queue, and which
running jobs are to change (``Reshape``) or to make room (``Preempt``). The cycle derives the
``Mold`` actions from the starts. Live, starts are the batch system's; pliantd carries out the rest:
``Mold``, ``Mark``, and what running jobs are to do. The simulated cluster carries out all of it.

What a ``Reshape`` gives a job is free now or its own: what other jobs give up is free only when it
is really gone, and then a later cycle gives it away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from pliant.model import Job, Shape, Snapshot


@dataclass(frozen=True, slots=True)
class Start:
    """A waiting job can start now as ``shape`` on ``nodes``.

    ``tasks``: how many waiting tasks of an array this start stands for; nodes then names those of
    the first, ``others`` those of each further task. ``nodes`` has one name per node of the shape.
    """

    job: Job
    shape: Shape
    nodes: tuple[str, ...]
    reason: str
    tasks: int = 1
    others: tuple[tuple[str, ...], ...] = ()

    @property
    def all_nodes(self) -> tuple[tuple[str, ...], ...]:
        """The nodes of each task."""
        return (self.nodes, *self.others)


@dataclass(frozen=True, slots=True)
class Claim:
    """What is kept for a first waiting job: from ``at_s`` on, ``shape`` on ``nodes``."""

    job: Job
    shape: Shape
    at_s: float
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Mold:
    """Change the request of a waiting job from ``job.shape`` to ``shape``."""

    job: Job
    shape: Shape
    reason: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Let a waiting job share its CPUs with others that are marked, or no longer.

    ``mark``: as :attr:`~pliant.model.Spec.mark`: the node where it starts beside another,
    :data:`~pliant.model.ANYWHERE`, or :data:`~pliant.model.UNMARKED`.
    """

    job: Job
    mark: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reshape:
    """A running malleable job is to save, be requeued, and go on as ``shape`` on ``nodes``.

    What it does not take of its own again is free for others when its old run is gone. As the shape
    that it has and without ``nodes`` it goes on alone, wherever the batch system starts it.
    """

    job: Job
    shape: Shape
    nodes: tuple[str, ...]
    reason: str

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.job.id


@dataclass(frozen=True, slots=True)
class Preempt:
    """A running best-effort job is to save, and go back to the head of the queue.

    It makes room for ``room_for``, the id of a waiting job (with FitGpp a trial job), which is to
    start before it as ``shape``; or of a running one, which is to go on without it.
    """

    job: Job
    room_for: str
    reason: str
    shape: Shape | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One decision. ``deferred`` changes of any kind were left for a later cycle by the cap."""

    starts: tuple[Start, ...] = ()
    claims: tuple[Claim, ...] = ()
    actions: tuple[Mold, ...] = ()
    deferred: int = 0
    reshapes: tuple[Reshape, ...] = ()
    preempts: tuple[Preempt, ...] = ()
    marks: tuple[Mark, ...] = ()
    pairs: bool = False  # its policy gives and takes all marks; else there should be none

    def with_actions(self, actions: tuple[Mold, ...], deferred: int) -> Plan:
        """The same decision with what is to be done about it."""
        return replace(self, actions=actions, deferred=deferred)

    @property
    def changes_running(self) -> bool:
        """Whether it asks anything of jobs that run."""
        return bool(self.reshapes or self.preempts)


class Policy(Protocol):
    """A frozen dataclass of options; calling it decides. It has no memory, clock or log."""

    @property
    def name(self) -> str:
        """The name users choose it by, as in POLICIES: ``moldable-equipartition``."""
        ...

    @property
    def molds(self) -> bool:
        """Whether it chooses among a job's shapes; else it gives each job one that is known."""
        ...

    @property
    def resizes(self) -> bool:
        """Whether it may change or stop jobs that run."""
        ...

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims, and what running jobs are to do; never actions."""
        ...
