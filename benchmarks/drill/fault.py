"""What a fault of the drill is, and when it comes.

A moment is a step of the hand-over, ``before:requeue`` or ``after:requeue``, at which pliantd halts
while the fault is injected, or ``asked``: while the program saves, or ``any time`` from then until
it should run again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Act = Callable[[Any], object]
"""What is done in a field: one of Slurm's, or of PBS's, whose faults they are."""
Around = Callable[[Any], contextlib.AbstractContextManager[None]]

ASKED, ANY_TIME = "asked", "any time"
UNHALTED_S = {ASKED: (0.2, 0.7), ANY_TIME: (0.0, 2.5)}
"""How long after the wish a fault comes that no step of pliantd is halted for: from, to."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault; ``moments`` is drawn from.

    ``checkpoint``: how it fails (see faulty_count.py). ``ends``: how the job ends if all is well.
    ``guest``: it is preempted for a trial job, else resized. ``rival``: another job waits for its
    GPUs. ``around``: what holds from before pliantd starts until all is over. ``after``: what the
    user does when all is quiet. ``first``: the batch system or its user sends the job back, behind
    whoever may start at once. ``stands``: a field of the
    job, and what it must say once all is quiet. ``limit_s``: its time limit, which its owner has
    lowered, is then no more than that. ``held``: its owner has held it, and it must be
    held yet when all is quiet, before ``after``. ``options``: more of its submission.
    ``guest_ends``: how the trial job ends. ``once``: the next hand-over would not begin as this.
    ``made``: nothing keeps the job from getting what is asked for it. ``as_was``: it may start
    again as it was before. ``redoes``: why steps that were not saved may be done again: the fault
    itself ends a run. Where it says nothing, not one may be: a program ends with what it has saved.
    """

    name: str
    moments: Sequence[str]
    inject: Act = lambda _field: None
    checkpoint: str = ""
    grace_s: int = 20
    ends: str = "COMPLETED"
    guest: bool = False
    rival: bool = True
    skew_s: int = 0
    around: Around = lambda _field: contextlib.nullcontext()
    after: Act = lambda _field: None
    first: bool = False
    stands: tuple[str, str] = ("", "")
    limit_s: int = 0
    held: bool = False
    options: tuple[str, ...] = ()
    guest_ends: str = "COMPLETED"
    once: bool = False
    made: bool = False
    as_was: bool = True
    redoes: str = ""

    @property
    def hand_overs(self) -> int:
        """How many a run makes at most: one where the job ends, or keeps what its user said."""
        return 1 if self.once or self.stands[0] or self.ends != "COMPLETED" else 3


def around(*steps: str) -> tuple[str, ...]:
    """Return the moments before and after these steps."""
    return tuple(f"{when}:{step}" for step in steps for when in ("before", "after"))
