"""Sends what the monitor has seen to pliantd, and keeps it on disk while pliantd is away.

Windows are gathered for a minute, then written to disk as reports with the node's GPUs as they are
now, and sent from there, the oldest first; a minute without a job is a report too, by which pliantd
knows that the monitor lives. A report goes when pliantd has taken it or says that it never will.
Each node has a moment of its own in the minute, drawn at the start, for a thousand are often
started together. While pliantd does not answer, the pauses double up to a minute, and each is drawn
from its later half.

A monitor that is killed loses the minute that it gathers; one that is ended writes it to disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from pliant.errors import BadInput, PliantError
from pliant.monitor.reading import NodeReading
from pliant.monitor.spool import Spool
from pliant.monitor.told import node_gpus, windows
from pliant.wire import monitor as wire

Ask = Callable[[str, Mapping[str, str]], wire.ReportAnswer]
"""Asks pliantd a verb with its fields; raises PliantError in one line."""
Wait = Callable[[float], bool]
"""Wait so many seconds; True where it is time to end."""

EVERY_S = 60.0
FIRST_S, MOST_S = 1.0, 60.0
MOST_GATHERED = 10_000
"""Windows in memory, which a minute never has: where the thread that sends hangs, the oldest go."""


@dataclass(frozen=True, slots=True)
class World:
    """What a sender goes by: the clocks (seconds), and ``draw`` (from 0 to 1)."""

    clock: Callable[[], float]  # since the epoch
    monotonic: Callable[[], float]
    draw: Callable[[], float]
    say: Callable[[str], None]  # one line for the log


@dataclass(slots=True)
class Sender:
    """A node's way to pliantd. ``start``: 32 hexadecimal digits, drawn anew for each."""

    node: str
    start: str
    spool: Spool
    ask: Ask
    world: World
    every_s: float = EVERY_S
    _gathered: list[wire.Window] = field(default_factory=list)
    _last: NodeReading | None = None  # since the last report
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _number: int = 0
    _gather_s: float = 0.0  # when to write next, by the monotonic clock
    _send_s: float = 0.0  # when to send next, where something is kept
    _pause_s: float = 0.0  # after the last failure; 0: pliantd answers
    _lost: int = 0  # of the spool's, when that was said
    _refused: str = ""  # why, as was said last
    _spool_trouble: str = ""

    def __post_init__(self) -> None:
        """Draw this node's moment."""
        self._gather_s = self.world.monotonic() + self.every_s * self.world.draw()
        self._send_s = self._gather_s

    def take(self, reading: NodeReading) -> None:
        """Take what was seen; from any thread, and never in the way."""
        found = list(windows(reading))
        with self._lock:
            self._gathered += found
            del self._gathered[:-MOST_GATHERED]
            self._last = reading

    def run(self, wait: Wait) -> None:
        """Send until ``wait`` says that it is time to end; write what is left to disk then."""
        self.spool.open()
        try:
            while not wait(self.turn()):
                pass
            self._write()
        finally:
            self.spool.close()

    def turn(self) -> float:
        """Do what is due; return for how many seconds nothing is."""
        if self.world.monotonic() >= self._gather_s:
            self._gather_s = self._next(self._gather_s)
            self._write()
        if self.world.monotonic() >= self._send_s:
            self._send()
        due_s = min(self._gather_s, self._send_s) if len(self.spool) else self._gather_s
        return max(0.0, due_s - self.world.monotonic())

    def _next(self, due_s: float) -> float:
        """Return this node's next moment; those that were slept through are left out."""
        behind_s = self.world.monotonic() - due_s
        return due_s + self.every_s * (1 + behind_s // self.every_s)

    def _write(self) -> None:
        with self._lock:
            gathered, self._gathered = self._gathered, []
            last, self._last = self._last, None
        if last is None:
            return
        for part, gpus in wire.parts(gathered, node_gpus(last)):
            self._number += 1
            sent = (self.node, self.start, self._number, self.world.clock())
            seen_s = 0.0 if gpus is None else last.at_s
            report = wire.Report(*sent, part, gpus or (), seen_s)
            self.spool.keep(wire.to_bytes(report))
        self._say_of_spool()

    def _say_of_spool(self) -> None:
        """Say once what is wrong with the disk, and once that reports begin to be lost."""
        trouble, lost = self.spool.trouble, self.spool.lost
        if trouble and trouble != self._spool_trouble:
            self.world.say(f"{trouble}: reports are kept in memory alone")
        self._spool_trouble = trouble
        if lost and not self._lost:
            self.world.say(f"{self.spool.folder}: it is full: the oldest reports are lost")
            self._lost = lost

    def _send(self) -> None:
        """Send what is kept, until all is sent or pliantd does not take it."""
        while (raw := self.spool.oldest()) is not None:
            try:
                answer = self._ask(raw)
            except PliantError as error:
                self._failed(str(error))
                return
            if answer.verdict == "again":
                self._failed(answer.why)
                return
            self.spool.take_off()
            self._told(answer)
        self._worked()

    def _told(self, answer: wire.ReportAnswer) -> None:
        """Say once why reports are refused for good; of one that is taken nothing is said."""
        why = answer.why if answer.verdict == "refused" else ""
        if why and why != self._refused:
            self.world.say(f"pliantd refuses a report for good: {why}")
        self._refused = why

    def _ask(self, raw: bytes) -> wire.ReportAnswer:
        try:
            kept = wire.from_bytes(raw)
        except BadInput as wrong:  # half a file, after a power failure, or of another release
            return wire.ReportAnswer("refused", str(wrong))
        message = wire.request(replace(kept, now_s=self.world.clock()))
        return self.ask(message.word, message.fields)

    def _failed(self, why: str) -> None:
        if not self._pause_s:
            self.world.say(f"pliantd takes no reports: {why}; they are kept in {self.spool.folder}")
        self._pause_s = min(MOST_S, 2 * self._pause_s) or FIRST_S
        pause_s = self._pause_s * (1 + self.world.draw()) / 2
        self._send_s = self.world.monotonic() + pause_s

    def _worked(self) -> None:
        if self._pause_s:
            lost = self.spool.lost
            less = f"; {lost} of them were lost" if lost else ""
            self.world.say(f"pliantd has taken the reports that were kept{less}")
        self._pause_s = 0.0
        self.spool.lost = self._lost = 0
