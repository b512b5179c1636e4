"""A job, waiting or running."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import repeat
from operator import attrgetter, call
from typing import Any

from pliant.model.footprints import Demand, Footprint
from pliant.model.requests import ANYWHERE, UNMARKED, JobClass, Spec
from pliant.model.shapes import Kind, Shape

_ONE_NODE = Shape(1, 0, kind=Kind.CPU)
_ONE_TASK = Footprint()


class JobState(StrEnum):
    """As far as scheduling cares."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDING = "ending"  # still holds its allocation (COMPLETING)


@dataclass(frozen=True, slots=True)
class Job:
    """One job, or the waiting tasks of one array (``tasks_waiting`` of them).

    ``shape`` is what it carries now (or runs as); ``shapes`` what it may run as now, by the table
    of reasons (cycle.gate): one element means that nothing may be changed. ``demand``: what the
    carried shape takes per node. ``frozen``: why Pliant leaves the job alone, in words; ""
    otherwise. ``refused``: shapes that the batch system did not start although they seemed to fit.

    A running job's ``shapes`` say what it may run as from now on. Its own alone: nothing may be
    changed. More only where it is malleable, in phase running (see :mod:`pliant.lifecycle`), not
    frozen, not pinned, and its partitions are enforced. ``submit_s`` is its first submission.
    """

    id: str
    user: str = ""
    account: str = ""
    qos: str = ""
    partitions: tuple[str, ...] = ()
    state: JobState = JobState.WAITING
    reason: str = ""
    priority: int = 0
    submit_s: float = 0.0
    eligible: bool = True  # waiting for resources only: it takes part in the queue
    limited: bool = False  # waits for a limit: it may start smaller, but keeps no claim
    shape: Shape = _ONE_NODE
    shapes: tuple[Shape, ...] = ()
    footprint: Footprint = _ONE_TASK
    spec: Spec | None = None
    time_limit_s: int = 0  # 0: no limit
    time_min_s: int = 0
    answered: bool = True  # not so where the submit filter got no answer for it in time
    owed: bool = False  # it lent something of its owner's to a hand-over, and may have it back
    tasks_waiting: int = 1
    array_tasks: str = ""  # which tasks of an array it stands for, like 3-9,12; "": no array
    name: str = ""
    features: frozenset[str] = frozenset()
    nodes_required: tuple[str, ...] = ()
    nodes_excluded: frozenset[str] = frozenset()
    reservation: str = ""
    licenses: str = ""  # as the batch system writes them
    frozen: str = ""
    refused: frozenset[Shape] = frozenset()
    # where and when the batch system expects to start it, as it is; 0.0: it does not say
    expected_s: float = 0.0
    expected_nodes: tuple[str, ...] = ()
    nodes_kept: frozenset[str] = frozenset()  # kept for jobs before it: it cannot start there now
    shares: bool = False  # the batch system may let it share CPUs with others of which this is so
    # running jobs
    number: str = ""  # what the batch system calls it in the job itself; "": as ``id`` says
    start_s: float = 0.0
    nodes: tuple[str, ...] = ()
    whole_nodes: bool = False  # it has all that is on them, whatever its shape says
    restarts: int = 0
    cpus_asked: tuple[int, ...] = ()  # the least CPUs of a task and of a node; (): not known
    limit_shown_s: int = 0  # its time limit as its request says it; 0: not known, or none
    requeues: bool = True  # the batch system would start it again once it is requeued
    # what was measured, of this job or of earlier ones of its user and name: steps per second
    measured: tuple[tuple[Shape, float], ...] = ()
    # malleable and best-effort jobs
    # its work, in seconds alone on one GPU, where that is known otherwise than by steps (as in a
    # simulation); 0.0: it is not
    volume_s: float = 0.0
    progress: float = 0.0  # the part of its work that is done, from 0 to 1
    grace_s: float = 0.0  # how long it may take to save what it has
    restart_s: float = 0.0  # what one change costs it, as measured: saving, waiting, launching
    ordinary: str = ""  # why it is no trial job here although it says so; "" where it does not
    preemptible: bool = False  # running, best-effort, and may be told now to make room
    preempted: int = 0  # how often it has made room
    changes: int = 0  # how often it was resized or has made room
    works_s: float = 0.0  # since when the program of this run works; 0.0: since its start
    room_for: str = ""  # the waiting job that it makes room for, or has made and waits itself
    next_shape: Shape | None = None  # what it is being changed to, while it still runs
    next_nodes: tuple[str, ...] = ()

    @property
    def is_trial(self) -> bool:
        """Whether it is a trial job of FitGpp's, and the site lets it be one."""
        said = self.spec.request.job_class if self.spec is not None else None
        return said is JobClass.TRIAL and not self.ordinary

    @property
    def colocates(self) -> bool:
        """Whether its owner lets it share a node."""
        return self.spec is not None and bool(self.spec.request.colocate)

    @property
    def mark(self) -> str:
        """What Pliant's own mark on it says (see :attr:`Spec.mark`); "" where it has none."""
        mark = self.spec.mark if self.spec is not None and self.shares else ""
        return ANYWHERE if mark == UNMARKED else mark  # taking it back was refused halfway

    @property
    def end_s(self) -> float:
        """When its time limit ends it at the latest, from its start; inf without a limit."""
        return self.start_s + self.time_limit_s if self.time_limit_s else float("inf")

    @property
    def limit_s(self) -> int:
        """Its time limit as the batch system judges it at a start; 0: not known, or none."""
        return self.limit_shown_s or self.time_limit_s

    @property
    def longest_s(self) -> float:
        """The most that its time limit may be for nobody having made it longer; inf without one.

        That of a run may end sooner than its request says, or later where it was suspended.
        """
        return max(self.time_limit_s, self.limit_shown_s) or float("inf")

    def at(self, progress: float) -> Job:
        """Return the job with so much of its work done: asked for thousands of times a second."""
        return self if progress == self.progress else self.but(progress=progress)

    def but(self, **changed: Any) -> Job:
        """Return the job with other values, as ``replace`` does, but sooner.

        Raises KeyError for a name that no field has.
        """
        values = [*_values(self)]
        for name, value in changed.items():
            values[_PLACE[name]] = value
        other = object.__new__(Job)
        _consume(map(call, _PUT, repeat(other), values))
        return other

    @property
    def flag(self) -> Spec:
        """What the token of a flagged job says."""
        assert self.spec is not None  # noqa: S101  # only flagged jobs are ever changed
        return self.spec

    def noted(self, shape: Shape) -> Spec:
        """What the token of a flagged job says once it carries ``shape``."""
        own = self.flag.own if self.flag.own is not None else self.shape
        footprint = self.flag.footprint or self.footprint
        return replace(self.flag, own=own, set=shape, footprint=footprint)

    def demand(self, shape: Shape) -> Demand:
        """What ``shape`` takes on each node for this job."""
        return self.footprint.demand(shape, self.spec.request.cores if self.spec else 0)


def jobs_text(ids: Iterable[str]) -> str:
    """Write jobs as sentences name them: ``job 4711, job 4712``.

    Each has the word before its number: by it pliantd finds whom to leave out of what is said to
    users who may not see others' jobs.
    """
    return ", ".join(f"job {one}" for one in ids)


_NAMES = [one.name for one in fields(Job)]
_values = attrgetter(*_NAMES)
_PLACE = {name: place for place, name in enumerate(_NAMES)}
_PUT = [getattr(Job, name).__set__ for name in _NAMES]  # the slots themselves
_consume = deque[None](maxlen=0).extend
