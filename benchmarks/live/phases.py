"""A malleable job's states as they followed each other, from what `pliant history` tells of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from benchmarks.live.jobs import Change
from pliant.daemon.answers import HandOverHistory, HistoryAnswer
from pliant.lifecycle import PROTECTION, Event, Life, Phase, after


def phases(
    history: HistoryAnswer,
    submit_s: float,
    end_s: float,
    changes: Sequence[Change],
    promised_s: float,
) -> list[tuple[Phase, float]]:
    """Return a job's phases, each with when it began, from what `pliant history` tells of it.

    ``changes``: its states in Slurm as they were seen: when a run that was checkpointed has ended.
    ``promised_s``: when others were first told to make room after it came: from then on it stands
    by, if it does not run yet.
    """
    life, found, last_s = Life(), [(Phase.WAITING_FOR_INITIAL_CONTACT, submit_s)], submit_s
    for event, at_s in sorted(
        _events(history, submit_s, end_s, changes, promised_s), key=lambda one: one[1]
    ):
        last_s = min(end_s, max(at_s, last_s))
        new = after(life, event, last_s)
        if new.phase is not life.phase:
            found.append((new.phase, last_s))
        life = new
    return found


def _events(
    history: HistoryAnswer,
    submit_s: float,
    end_s: float,
    changes: Sequence[Change],
    promised_s: float,
) -> Iterator[tuple[Event, float]]:
    stopped: dict[int, float] = {}
    yield Event.CONTACT, submit_s
    first_s = history.runs[0].start_s if history.runs else end_s
    yield Event.GRANT, min(promised_s, max(first_s, submit_s))
    for row in history.runs:
        if row.launched_s:
            yield Event.LAUNCHED, row.launched_s
            yield Event.MATURE, row.launched_s + PROTECTION * (row.launched_s - row.start_s)
    for over in history.handovers:
        yield Event.RESHAPE, over.at_s
        if over.outcome == "done":
            yield Event.SAVED, over.saved_s
            stopped[over.run] = _stopped_s(over, changes)
            yield Event.STOPPED, stopped[over.run]
        else:
            yield Event.NOT_SAVED, over.done_s
    for row in history.runs:  # Slurm's start is a whole second: it may lie before what came first
        before = (at_s for run, at_s in stopped.items() if run < row.run)
        yield Event.CLEAR, max(row.start_s, submit_s, *before)
    yield Event.DONE, end_s


def _stopped_s(over: HandOverHistory, changes: Sequence[Change]) -> float:
    waits = (one.at_s for one in changes if one.state == "PENDING" and one.at_s >= over.saved_s)
    return min(next(waits, over.saved_s), over.done_s)


QUEUING = frozenset({Phase.WAITING_FOR_INITIAL_CONTACT, Phase.WAITING_FOR_INITIAL_RESOURCE})
RUNNING = frozenset({Phase.RUNNING, Phase.RUNNING_PROTECTED})


def parts(log: Sequence[tuple[Phase, float]]) -> tuple[float, float, float]:
    """Return the seconds of queuing, launching delay and running, as figure 3 divides them."""
    queuing = launching = running = 0.0
    for (phase, at_s), (_, next_s) in pairwise(log):
        if phase in QUEUING:
            queuing += next_s - at_s
        elif phase in RUNNING:
            running += next_s - at_s
        else:
            launching += next_s - at_s
    return queuing, launching, running
