"""The jobs that say something to Pliant, and their changes under way, as the second door answers.

Its rules (:mod:`pliant.daemon.answers`) hold here too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job that says something to Pliant."""

    id: str
    user: str
    partitions: tuple[str, ...]
    state: str  # waiting, running, ending, ended
    reason: str  # the batch system's, why it waits or how it ended
    request: str  # what its owner said: "moldable=gpus=1-4"
    mode: str  # what Pliant may do with it: the least of its partitions' modes
    own: str = ""  # the shape written without Pliant
    carried: str = ""  # the shape that it waits with or runs as
    allowed: tuple[str, ...] = ()  # what it may run as now
    refused: tuple[str, ...] = ()  # shapes that the batch system did not start, left out for now
    frozen: str = ""  # why Pliant leaves it alone; "" where it does not
    pinned: bool = False
    tasks: int = 1  # waiting tasks of an array
    nodes: tuple[str, ...] = ()  # where it runs
    submitted_s: float = 0.0
    started_s: float = 0.0
    ended_s: float = 0.0
    last: str = ""  # what Pliant last decided about it, in words
    last_s: float = 0.0
    changing: str = ""  # what is under way with it, in words

    @property
    def note(self) -> str:
        """The most useful word: what changes, why it is left alone, or what was decided last."""
        if self.changing:
            return self.changing
        if self.pinned:
            return "pinned"
        if self.frozen:
            return f"left alone: {self.frozen}"
        return self.last if self.state == "waiting" else ""


@dataclass(frozen=True, slots=True)
class ResizeRow:
    """A change of a running job that is under way.

    ``guest``: for which job it makes room, "job 4711"; "" where it is resized. ``step``: saving,
    saved, requeued, or started again. ``until_s``: by when its checkpoint is awaited.
    """

    id: str
    user: str
    before: str
    after: str
    guest: str
    step: str
    since_s: float
    until_s: float
    reason: str

    @property
    def words(self) -> str:
        """The change in a few words."""
        what = f"makes room for {self.guest}" if self.guest else f"goes on as {self.after}"
        return f"{self.step}: {what}"
