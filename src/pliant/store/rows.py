"""What the history's rows say."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

LONGEST_REASON = 2000


def clean(text: str) -> str:
    """Cut a reason, and replace what no UTF-8 can say: it may quote a user."""
    return text[:LONGEST_REASON].encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing decided about a job: ``what`` is start, keep, mold, would, refused, failed ..."""

    at_s: float
    job: str
    what: str
    shape: str
    reason: str


@dataclass(frozen=True, slots=True)
class HandOverRow:
    """One hand-over; ``saved_s`` and ``done_s`` are 0 while that has not come.

    ``asked``: the job as it was when it was asked, as JSON; "" in rows of 0.1.0; ``made``: it was
    seen to ask for ``after`` since; ``guest_asks``: the guest as it waited then, "" for none.
    """

    id: int
    at_s: float
    job: str
    user: str
    account: str
    run: int
    before: str
    after: str
    guest: str
    reason: str
    until_s: float
    saved_s: float = 0.0
    done_s: float = 0.0
    outcome: str = ""
    end_s: float = 0.0
    asked: str = ""
    made: bool = False
    guest_asks: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a job; instants are 0 while they have not come.

    ``at_s``: when its program first spoke, 0 where it never did; ``step`` and ``rate``
    (steps/s): what it last said; ``saved_took_s``: from the wish to its
    checkpoint's end; ``code``: how it ended by itself; ``end_s``, ``gpus``: as the batch system
    showed it.
    """

    job: str
    run: int
    user: str
    account: str
    shape: str
    nodes: str
    submit_s: float
    start_s: float
    at_s: float
    launched_s: float = 0.0
    step: int = 0
    rate: float = 0.0
    saved_took_s: float = 0.0
    code: int | None = None
    name: str = ""
    end_s: float = 0.0
    gpus: float = 0.0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that says something to Pliant, or the waiting tasks of one array; instants are 0 while
    they have not come. Shapes are text.

    ``user``, ``account``: at first sight, by which it is decided who may see it for good.
    ``filtered``: the shape that the filter had set at its submission; ``answered``: whether it got
    an answer then. ``tasks``: how many jobs it stands for, of an ``array`` what has not started.
    ``shape``: as which it waits, runs or ran last; ``molded``: what its first run was beside its
    own shape: smaller, larger, other, or "" for the same. ``would``: as what it would have started
    at ``would_s`` where Pliant only observes. ``expected_s``: when the batch system would have
    started it as it was when it was molded. ``start_s``: of its first run; ``run_s``: of the one
    that runs, with ``gpus``. ``gpu_s``: of all runs that have ended; ``own_gpu_s``: had they had
    ``own_gpus``. ``exit``: the batch system's word for its end; "" where it came unseen.
    """

    job: str
    user: str
    account: str
    partition: str
    mode: str
    request: str
    own: str
    filtered: str
    answered: bool
    seen_s: float
    submit_s: float
    state: str
    tasks: int = 1
    array: bool = False
    shape: str = ""
    molded: str = ""
    would: str = ""
    would_s: float = 0.0
    expected_s: float = 0.0
    start_s: float = 0.0
    run: int = 0
    run_s: float = 0.0
    gpus: float = 0.0
    own_gpus: float = 0.0
    gpu_s: float = 0.0
    own_gpu_s: float = 0.0
    end_s: float = 0.0
    exit: str = ""


ENDED = "ended"
"""The state of a job that is not there any more."""


@dataclass(slots=True)
class Tally:
    """What is counted in one hour (or since the start) of one partition; GPUs in seconds.

    ``answered``, ``unanswered``: submissions with Pliant's options; ``refused``: of these, by the
    filter. ``starts``: of flagged jobs, ``molded`` of them in another shape than their own.
    ``updates``, ``failures``: changes of waiting jobs that worked, and that were refused.
    ``avoidable_gpu_s``: free GPUs that a waiting flagged job could have had, a part of no other.
    What names no partition, and the GPUs of all nodes together, are counted under "".
    """

    hour_s: float = 0.0
    partition: str = ""
    answered: int = 0
    unanswered: int = 0
    refused: int = 0
    starts: int = 0
    molded: int = 0
    updates: int = 0
    failures: int = 0
    flagged_gpu_s: float = 0.0
    other_gpu_s: float = 0.0
    idle_gpu_s: float = 0.0
    avoidable_gpu_s: float = 0.0
    down_gpu_s: float = 0.0

    def add(self, other: Tally) -> None:
        """Add what another has counted."""
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def without_gpus(self) -> Tally:
        """Return what happened alone: nodes in two partitions would count twice."""
        found = replace(self)
        for name in OF_GPUS:
            setattr(found, name, 0.0)
        return found


LIVING = "job IN (SELECT job FROM jobs WHERE end_s = 0 AND state != 'ended')"
"""A condition on rows of jobs that are known, and have not ended."""
COUNTED = tuple(field.name for field in fields(Tally))[2:]
OF_GPUS = tuple(name for name in COUNTED if name.endswith("_gpu_s"))
