"""What the second door answers, field by field: the interface of `pliant status`, `jobs`, `why` ...

Each is a frozen dataclass that travels as JSON (:func:`to_json`, :func:`from_json`). Shapes are
text as users write them (``2x4``, ``1/4``, ``1x0@cpu``; "" where not known). Instants end in
``_s`` and are seconds since the epoch; 0 means never or not known. A newer daemon may send more
fields than an older client knows: they are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from pliant.daemon.counting import ResizeCount, Took
from pliant.daemon.flagged import JobRow
from pliant.daemon.watched import MonitorsRow
from pliant.decoding import Decoder
from pliant.store import Tally

NOT_SHOWN = -1
"""For a number that the asker may not see."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition and what Pliant may do there. Numbers may be NOT_SHOWN."""

    name: str
    mode: str  # off, observe, enforce
    up: bool = True
    nodes: int = 0
    gpus: int = 0  # whole GPUs of its nodes
    gpus_free: int = 0


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """How the daemon is. Everybody may ask."""

    version: str
    host: str
    policy: str
    started_s: float
    now_s: float
    paused: bool
    observed_s: float = 0.0  # when the last snapshot was taken
    observe_took_s: float = 0.0
    cycle_took_s: float = 0.0  # deciding alone
    cycles: int = 0
    submissions: int = 0  # answered by the filter since the start
    unanswered: int = 0  # flagged jobs that got no answer in time at their submission, seen since
    updates: int = 0  # changes of jobs that worked, since the start
    failures: int = 0  # changes that the batch system refused, since the start
    deferred: int = 0  # changes that the cap left for the next cycle, now
    waiting: int = 0  # jobs waiting now, arrays counted once
    waiting_flagged: int = 0  # ... of which Pliant may change
    running: int = 0
    running_flagged: int = 0  # ... with Pliant's options
    partitions: tuple[PartitionRow, ...] = ()
    troubles: tuple[str, ...] = ()  # what is wrong now, one line each; empty: all is well
    stands_by: str = ""  # which other host acts, in words; "" where this one does
    monitors: MonitorsRow = field(default_factory=MonitorsRow)
    refused_credentials: Mapping[str, int] = field(default_factory=dict)  # by kind, since the start


@dataclass(frozen=True, slots=True)
class JobsAnswer:
    """The flagged jobs that the asker may see, in queue order, running ones last."""

    observed_s: float
    jobs: tuple[JobRow, ...] = ()
    more: int = 0  # jobs that did not fit into one answer


@dataclass(frozen=True, slots=True)
class StartRow:
    """A job that can start now."""

    id: str
    user: str
    carried: str
    shape: str  # what it would start as
    nodes: tuple[str, ...]
    reason: str
    tasks: int = 1
    change: str = ""  # "will be changed", "would be changed", or "" where nothing is changed


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """What is kept for a first waiting job."""

    id: str
    user: str
    shape: str
    at_s: float
    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change of a job that the last decision asks for; ``shape`` "": it is to make room."""

    id: str
    user: str
    carried: str
    shape: str
    reason: str
    done: bool  # whether Pliant makes it: enforcing there, and not paused


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The last decision. A user who may not see others' jobs sees the own ones."""

    observed_s: float
    policy: str
    paused: bool
    starts: tuple[StartRow, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    changes: tuple[ChangeRow, ...] = ()
    deferred: int = 0
    more: int = 0  # rows that did not fit into one answer


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """One shape of a waiting job: whether it could start now, when it would, and why not."""

    shape: str
    now: bool
    at_s: float = 0.0  # when it would start, by time limits; 0: not known
    reason: str = ""  # why not now
    nodes: tuple[str, ...] = ()  # where it would start


@dataclass(frozen=True, slots=True)
class CannotRow:
    """Shapes that a job's owner asked for and that a waiting job cannot be changed to here."""

    shapes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """Something decided earlier: ``what`` is start, keep, mold, would, refused, rescue ...

    Or, of its submission, filter (what was set) or unanswered (nothing was).
    """

    at_s: float
    what: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class CostRow:
    """What changes have cost a job so far, as far as that was measured."""

    asked: int = 0  # how often its program was asked for a checkpoint, or it was requeued for one
    resized: int = 0
    made_room: int = 0
    lost_s: float = 0.0  # by its checkpoints, and from these until its next runs worked
    lost_gpu_s: float = 0.0  # the same, times the GPUs that it held or that were kept for it


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """Why a job waits, or runs as it does."""

    observed_s: float
    job: JobRow
    text: str = ""  # the answer in one sentence
    left: str = ""  # why its shape is not changed; "" where it may be
    shapes: tuple[ShapeRow, ...] = ()
    before: tuple[ClaimRow, ...] = ()  # what is kept for others that stand before it
    decisions: tuple[DecisionRow, ...] = ()  # latest first
    cannot: tuple[CannotRow, ...] = ()
    cost: CostRow = field(default_factory=CostRow)


@dataclass(frozen=True, slots=True)
class RunHistory:
    """One run of a job; what its program says is there where it spoke with Pliant."""

    run: int  # how often it had been restarted before
    shape: str
    nodes: tuple[str, ...] = ()
    start_s: float = 0.0
    launched_s: float = 0.0  # since when its program worked
    step: int = 0  # the last that was heard of
    rate: float = 0.0  # steps per second
    saved_took_s: float = 0.0  # from the wish to the checkpoint's end; 0: none was made
    code: int | None = None  # how its program ended by itself
    end_s: float = 0.0  # 0: it runs, or nobody saw its end
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class HandOverHistory:
    """One change of a running job.

    A run's checkpoint counts once, with the last change that its program was asked for.
    """

    at_s: float  # when its program was asked
    run: int
    before: str
    after: str
    guest: str  # for which job room was made, "job 4711"; "" where it was resized
    reason: str
    saved_s: float = 0.0  # when its checkpoint was written
    done_s: float = 0.0
    outcome: str = ""  # "" while it is under way
    lost_s: float = 0.0  # from the checkpoint until the next run's program worked
    lost_gpu_s: float = 0.0  # the same and its checkpoint, times the GPUs that it had


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """What became of one job: all its runs, and what changed it."""

    job: str
    user: str
    submit_s: float = 0.0  # its first submission, as far as Pliant knows
    runs: tuple[RunHistory, ...] = ()
    handovers: tuple[HandOverHistory, ...] = ()
    decisions: tuple[DecisionRow, ...] = ()  # latest first
    lost_s: float = 0.0  # by changes, in all: checkpoints and the times between
    lost_gpu_s: float = 0.0  # the same, times the GPUs that it had
    partition: str = ""
    state: str = ""  # waiting, running, ending, ended; "": Pliant knows only what its program said
    request: str = ""
    own: str = ""  # the shape that its owner wrote
    filtered: str = ""  # the shape that was set at its submission, in place of that; "": none
    answered: bool = True  # whether its submission got an answer in time
    would: str = ""  # as what it would have started where Pliant only observes
    would_s: float = 0.0  # and when
    start_s: float = 0.0  # of its first run
    end_s: float = 0.0
    exit: str = ""  # the batch system's word for its end
    tasks: str = ""  # of an array, which have a history of their own, in words


@dataclass(frozen=True, slots=True)
class CountsAnswer:
    """What was counted since the start, for metrics.

    ``partitions``: one row each; none for who may not see them. ``total``: of all.
    """

    total: Tally
    partitions: tuple[Tally, ...] = ()
    resizes: tuple[ResizeCount, ...] = ()
    took: Took = field(default_factory=Took)


@dataclass(frozen=True, slots=True)
class DoneAnswer:
    """Something was done, in one line."""

    message: str


_T = TypeVar("_T")


def to_json(answer: object) -> str:
    """Write an answer."""
    return msgspec.json.encode(answer).decode()


def from_json(kind: type[_T], text: str) -> _T:
    """Read an answer of ``kind``.

    Raises msgspec.DecodeError, msgspec.ValidationError.
    """
    return Decoder(kind).json(text)
