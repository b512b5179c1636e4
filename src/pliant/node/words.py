"""The nouns of :mod:`pliant.node.core`: where a run stands, what happens, what is to be done.

Times are seconds of a clock that only goes forward (time.monotonic); signals are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

CHECKPOINTED = 85
"""The exit code by which a program says: I have saved as I was asked, run me again."""


class Stage(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    ASKED = "asked"  # the program has been told to checkpoint
    CHECKING = "checking"  # all have saved: is what the owner named new and whole?
    GATHERING = "gathering"  # ours has saved and ended; other tasks of the step have not yet
    HANDING = "handing"  # saved: reported to pliantd, which requeues the job
    REQUEUING = "requeuing"  # pliantd is silent: we requeue the job
    LEAVING = "leaving"  # requeued by us: waiting to be ended
    FOLLOWING = "following"  # a task that is not the first: waiting for what the first decides
    STARTING = "starting"  # the program is to go on in place, and could not be started so far
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Wish:
    """A checkpoint that pliantd wants within ``left_s``; ``checkpoint``: which its owner named."""

    id: str
    why: str = ""
    shape: str = ""
    left_s: float = 0.0
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """All that the core remembers."""

    stage: Stage = Stage.RUNNING
    leads: bool = True  # speaks with pliantd: the only task, or the first of a step
    ranks: int = 1  # tasks of this step that are wrapped
    signal: int = 0  # by which the program wants to be told, 0: by the file alone
    wish: Wish | None = None  # what the program was last asked for, met or not
    seen: str = ""  # id of the last wish
    asked_s: float = 0.0
    until_s: float = float("inf")  # when this stage is over at the latest
    most_s: float = float("inf")  # until when pliantd, which has taken it over, may still do it
    prompted: bool = False  # whether the signal was sent
    beat_s: float = 0.0  # when the program was last heard to be further than before, 0: never
    termed: bool = False  # whether somebody has sent us a TERM
    late: bool = False  # it saved, but others may not: the wish is withdrawn, or one is lost
    deaf: bool = False  # no wish is taken any more: not every task would hear of it
    alone: bool = True  # no other wrapper of this job speaks to pliantd
    returns: bool = False  # a job that ends with CHECKPOINTED goes back to the queue (PBS)
    told: bool = True  # every other task has been told of the wish: before, no program is asked
    unstarted: int = 0  # what to end with where nobody takes a job whose program cannot be started
    rounds: int = 0  # how often that could not be requeued either


# What happens


@dataclass(frozen=True, slots=True)
class Wished:
    """Pliantd wants a checkpoint, or (None) none any more."""

    at_s: float
    wish: Wish | None


@dataclass(frozen=True, slots=True)
class Told:
    """The other tasks can see the wish of this id, or (``trouble``) cannot be told of it."""

    at_s: float
    wish: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Prompted:
    """The program was sent the signal of its choice."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Untold:
    """The file by which the program is asked cannot be written, or stand: ``trouble`` says why."""

    at_s: float
    trouble: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The program ended with ``code``, negative for a signal; ``saved``: it said so."""

    at_s: float
    code: int
    saved: bool


@dataclass(frozen=True, slots=True)
class Signalled:
    """We got a signal; ``reached``: the program got it as well."""

    at_s: float
    number: int
    reached: bool


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The guardian was killed: the program is told to end, and its exit code reaches nobody."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Beaten:
    """The program was heard to be further than before."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Gathered:
    """The programs of all other tasks have ended, or (``failed``) one could not save.

    ``failed``: which task, and its exit code.
    """

    at_s: float
    failed: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The named checkpoint is new and whole, or (``trouble``) is not, in words."""

    at_s: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """Pliantd knows of the checkpoint and takes the job over."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Lost:
    """A task's wrapper is lost, so that its program hears of no wish; None: none is any more."""

    at_s: float
    task: int | None


@dataclass(frozen=True, slots=True)
class Beside:
    """Pliantd hears another wrapper of this job too (``others``), or none any more."""

    at_s: float
    others: bool


@dataclass(frozen=True, slots=True)
class Parted:
    """PBS would not learn how the job's script ends, nor send it back for that."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Requeued:
    """Our own requeue was done, or failed: ``trouble`` says why."""

    at_s: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Stays:
    """The job could not start again now, or is to stay, pliantd says."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Started:
    """The program was started again."""

    at_s: float


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The program could not be started again: ``trouble`` says why; ``code``: what a shell makes
    of that.
    """

    at_s: float
    trouble: str
    code: int


@dataclass(frozen=True, slots=True)
class Decided:
    """The first task says what all do: start their programs again, or end with ``code``."""

    at_s: float
    again: bool
    code: int = CHECKPOINTED


@dataclass(frozen=True, slots=True)
class Learnt:
    """Pliantd says by which signal the program wants to be told."""

    at_s: float
    signal: int


Event = (
    Wished
    | Told
    | Prompted
    | Untold
    | Ended
    | Signalled
    | Orphaned
    | Ticked
    | Beaten
    | Gathered
    | Checked
    | Answered
    | Beside
    | Requeued
    | Stays
    | Started
    | NotStarted
    | Decided
    | Learnt
    | Lost
    | Parted
)


# What is to be done


@dataclass(frozen=True, slots=True)
class Spread:
    """Tell the other tasks that a checkpoint is wanted, and say Told."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class Ask:
    """Tell the program, by the file, that a checkpoint is wanted."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Take the file away."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Send the program the signal of its choice, unless that would kill it; say Prompted."""


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass a signal on to the program."""

    number: int


@dataclass(frozen=True, slots=True)
class Check:
    """Look whether the named checkpoint is new and whole, and say Checked."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class ReportSaved:
    """Tell pliantd until it answers; where ``last``, once and shortly, if a named one is whole."""

    wish: Wish
    took_s: float
    last: bool = False


@dataclass(frozen=True, slots=True)
class ReportFailed:
    """Tell pliantd that there is no checkpoint; ``untold``: for the program was not asked."""

    wish: Wish
    words: str
    untold: bool = False


@dataclass(frozen=True, slots=True)
class ReportEnd:
    """Tell pliantd how the program ended, once and shortly."""

    code: int
    termed: bool


@dataclass(frozen=True, slots=True)
class Gather:
    """Say that our program has ended, saved or with ``code``, and look for the other tasks'."""

    code: int = CHECKPOINTED


@dataclass(frozen=True, slots=True)
class Tell:
    """Say to the other tasks what all do: start again, or end with ``code``."""

    again: bool
    code: int = CHECKPOINTED


@dataclass(frozen=True, slots=True)
class Requeue:
    """Requeue the job, and say Requeued."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start the program again, and say Started or NotStarted."""


@dataclass(frozen=True, slots=True)
class AskWhy:
    """Find out why we were sent a TERM, and say it in one line."""


@dataclass(frozen=True, slots=True)
class Say:
    """Say one line to the user."""

    words: str


@dataclass(frozen=True, slots=True)
class Exit:
    """End with this exit code."""

    code: int


Effect = (
    Spread
    | Ask
    | Withdraw
    | Prompt
    | Pass
    | Check
    | ReportSaved
    | ReportFailed
    | ReportEnd
    | Gather
    | Tell
    | Requeue
    | Start
    | AskWhy
    | Say
    | Exit
)
