"""A malleable job's life: nine states, and what leads from each to the next.

``after`` is a pure function of where a job is and what was seen. What cannot happen in a state is
no error, for reports come late and twice: it leaves the job where it is. ``observed`` says the same
from what is seen now alone: a daemon that has forgotten everything knows where each job is.

Beyond the paper, whose jobs never fail: a run that ends without the job being finished (its node
went down, somebody requeued it) brings it back to where it waits for resources, as does a
preemption; a checkpoint that fails leaves it running as it was; and a job that its program never
said to be launched is left as launching, so that nothing is taken from it.

Source: Seo (paper 003), section 4.2 and figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

PROTECTION = 3.0
"""How many times its last launch a job runs before anything may be taken from it."""


class Phase(StrEnum):
    """Where a malleable job is in its life, in the paper's words."""

    WAITING_FOR_INITIAL_CONTACT = "waiting-for-initial-contact"
    WAITING_FOR_INITIAL_RESOURCE = "waiting-for-initial-resource"
    STANDBY = "standby"  # it has been given resources that others have not left yet
    LAUNCHING = "launching"
    RUNNING_PROTECTED = "running-protected"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    STOPPING = "stopping"
    FINISHED = "finished"


class Event(StrEnum):
    """What is seen of a job."""

    CONTACT = "contact"  # the job is known
    GRANT = "grant"  # resources are set aside for it
    CLEAR = "clear"  # nobody else holds them: its run begins
    LAUNCHED = "launched"  # its program works
    MATURE = "mature"  # its protected time is over
    RESHAPE = "reshape"  # it is to run at another shape, or to make room
    SAVED = "saved"  # its checkpoint is written
    NOT_SAVED = "not-saved"  # its checkpoint failed or came too late
    STOPPED = "stopped"  # its run has ended, and it goes on at another shape
    LOST = "lost"  # its run has ended, and it waits again
    DONE = "done"


_ON: Mapping[Event, Mapping[Phase, Phase]] = {
    Event.CONTACT: {Phase.WAITING_FOR_INITIAL_CONTACT: Phase.WAITING_FOR_INITIAL_RESOURCE},
    Event.GRANT: {Phase.WAITING_FOR_INITIAL_RESOURCE: Phase.STANDBY},
    Event.CLEAR: {Phase.STANDBY: Phase.LAUNCHING},
    Event.LAUNCHED: {Phase.LAUNCHING: Phase.RUNNING_PROTECTED},
    Event.MATURE: {Phase.RUNNING_PROTECTED: Phase.RUNNING},
    Event.RESHAPE: {Phase.RUNNING: Phase.CHECKPOINTING},
    Event.SAVED: {Phase.CHECKPOINTING: Phase.STOPPING},
    Event.NOT_SAVED: {Phase.CHECKPOINTING: Phase.RUNNING},
    Event.STOPPED: {Phase.STOPPING: Phase.STANDBY},
    Event.LOST: {
        phase: Phase.WAITING_FOR_INITIAL_RESOURCE
        for phase in Phase
        if phase not in (Phase.WAITING_FOR_INITIAL_CONTACT, Phase.FINISHED)
    },
    Event.DONE: dict.fromkeys(Phase, Phase.FINISHED),
}
"""Where each event leads, from the states in which it can happen."""

BUSY = frozenset(
    {
        Phase.STANDBY,
        Phase.LAUNCHING,
        Phase.RUNNING_PROTECTED,
        Phase.CHECKPOINTING,
        Phase.STOPPING,
    }
)
"""What a job in these states holds is nobody's to give away."""


@dataclass(frozen=True, slots=True)
class Life:
    """A job's phase, since when (seconds since the epoch), and how long its last launch took."""

    phase: Phase = Phase.WAITING_FOR_INITIAL_CONTACT
    since_s: float = 0.0
    launch_s: float = 0.0

    @property
    def mature_s(self) -> float:
        """When its protected time is over; inf where it has none to wait for."""
        if self.phase is Phase.RUNNING_PROTECTED:
            return self.since_s + PROTECTION * self.launch_s
        return float("inf")

    @property
    def may_reshape(self) -> bool:
        """Whether it may be told to checkpoint now."""
        return self.phase is Phase.RUNNING


def after(life: Life, event: Event, at_s: float) -> Life:
    """Return the job's life after ``event`` at ``at_s``; the same where it cannot happen."""
    phase = _ON[event].get(life.phase)
    if phase is None or phase is life.phase:
        return life
    if event is Event.LAUNCHED:
        return Life(phase, at_s, max(0.0, at_s - life.since_s))
    return replace(life, phase=phase, since_s=at_s)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of a malleable job now. Instants are seconds since the epoch, 0: not yet.

    ``runs``: it has an allocation, since ``start_s``, in which its program works since
    ``launched_s``. ``asked``: its program is asked for a checkpoint, which was written at
    ``saved_s``; while it is handed over it waits for what is set aside for it.
    """

    runs: bool
    start_s: float = 0.0
    launched_s: float = 0.0
    asked: bool = False
    saved_s: float = 0.0


def observed(seen: Seen, now_s: float) -> Life:
    """Return where a job is that has not ended."""
    if not seen.runs:
        handed_over = seen.asked and seen.saved_s > 0
        return Life(Phase.STANDBY if handed_over else Phase.WAITING_FOR_INITIAL_RESOURCE)
    if not seen.launched_s:
        return Life(Phase.LAUNCHING, seen.start_s)
    launch_s = max(0.0, seen.launched_s - seen.start_s)
    if seen.asked:
        phase = Phase.STOPPING if seen.saved_s else Phase.CHECKPOINTING
        return Life(phase, seen.saved_s or seen.launched_s, launch_s)
    return at(Life(Phase.RUNNING_PROTECTED, seen.launched_s, launch_s), now_s)


def at(life: Life, now_s: float) -> Life:
    """Return the job's life at ``now_s``: it matures when its time has come."""
    return after(life, Event.MATURE, life.mature_s) if now_s >= life.mature_s else life
