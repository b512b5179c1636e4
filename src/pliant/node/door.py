"""Speaks with pliantd in threads of its own, so that it delays nothing.

One thread watches by long polls, and begins anew after a silence, with a pause that doubles from
1 s to 60 s. Reports have a thread each. All of them are ended by the end of the process.
"""

from __future__ import annotations

import errno
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from pliant.errors import PliantError
from pliant.node.words import Wish
from pliant.wire.runs import WATCH_S, RunAnswer

Ask = Callable[[str, Mapping[str, str], float], RunAnswer]
"""Asks pliantd a verb with its fields within so many seconds; raises PliantError in one line."""

FIRST_S, MOST_S = 1.0, 60.0
ANSWER_S = 10.0
END_S = 2.0
"""How long a report may delay our end."""
REPORT_S = 4.0
"""The longest pause between two tries of a report."""
TRIES = 100


@dataclass(slots=True)
class Progress:
    """What a watch tells pliantd; written by the wrapper."""

    step: int | None = None
    rate: float | None = None
    beat_s: float = 0.0  # when it was at this step, by this host's clock
    launched: bool = False
    launched_s: float = 0.0  # when, by this host's monotonic clock
    lost: bool = False  # whether a task of its step has lost its wrapper

    def fields(self) -> dict[str, str]:
        """Return it as the wire has it."""
        ago_s = time.monotonic() - self.launched_s if self.launched else 0.0
        return {
            "step": "" if self.step is None else str(self.step),
            "rate": "" if self.rate is None else f"{self.rate:.6g}",
            "beat": f"{max(0.0, time.time() - self.beat_s) if self.beat_s else 0.0:.3f}",
            "launched": "1" if self.launched else "0",
            "ago": f"{ago_s:.3f}",
            "lost": "1" if self.lost else "0",
        }


@dataclass(slots=True)
class Heard:
    """What the threads tell the wrapper; each is called in a thread of its own."""

    wished: Callable[[Wish | None], None]
    answered: Callable[[], None]  # to a saved checkpoint
    stays: Callable[[], None]  # to one that leads to no requeue: the program goes on here
    trouble: Callable[[str], None]
    first: Callable[[], None]  # the first answer of all
    beside: Callable[[bool], None]  # whether another wrapper of this job is heard too
    signal: Callable[[str], None]  # by which the job's program wants to be told; "": none


@dataclass(slots=True)
class Door:
    """One run's way to pliantd."""

    ask: Ask
    who: Mapping[str, str]  # the fields of every request
    heard: Heard
    progress: Progress = field(default_factory=Progress)
    clock: Callable[[], float] = time.time
    known: str = ""
    reached: bool = False
    several: bool = False
    _born_s: float = field(default_factory=time.monotonic)
    _closed: threading.Event = field(default_factory=threading.Event)
    _begin: Mapping[str, str] = field(default_factory=dict)
    _saving: threading.Event = field(default_factory=threading.Event)
    _failing: threading.Event = field(default_factory=threading.Event)
    _last: list[threading.Thread] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def watch(self, begin: Mapping[str, str]) -> None:
        """Begin, and watch for wishes until the end; ``begin`` is what run-begin says."""
        self._begin = begin
        _thread(self._watch)

    def _watch(self) -> None:
        begun, pause_s, failed = False, FIRST_S, False
        while not self._closed.is_set():
            since = time.monotonic()
            try:
                answer = self._once(begun)
            except PliantError as error:
                if failed:  # the first time pliantd may not have seen yet that the job runs
                    self.heard.trouble(str(error))
                failed = True
                begun = False  # it may be another pliantd, which knows nothing of us
                self._closed.wait(pause_s * random.uniform(0.5, 1.0))  # noqa: S311  # a pause
                pause_s = min(MOST_S, 2 * pause_s)
                continue
            if not self.reached:
                self.reached = True
                self.heard.first()
            fresh = answer.wish not in ("", self.known)
            if not begun:
                self._begun(answer)
            self._beside(answer)
            if answer.stays:  # it was refused since its checkpoint was answered
                self.heard.stays()
            self._wished(answer)
            if not fresh and begun and time.monotonic() - since < FIRST_S:
                self._closed.wait(FIRST_S)  # a long poll that is none must not become a busy loop
            begun, pause_s, failed = True, FIRST_S, False

    def _once(self, begun: bool) -> RunAnswer:
        if not begun:
            return self.ask("run-begin", self._beginning(), ANSWER_S)
        fields = {**self.who, "known": self.known, **self.progress.fields()}
        return self.ask("run-watch", fields, WATCH_S + ANSWER_S)

    def _beginning(self) -> dict[str, str]:
        said = {"others": "1" if self.several else "0", "lost": "1" if self.progress.lost else "0"}
        age = f"{time.monotonic() - self._born_s:.3f}"
        return {**self.who, **self._begin, **said, "age": age}

    def _begun(self, answer: RunAnswer) -> None:
        """Go by what pliantd knows of the run: our environment may be another job's."""
        if answer.run >= 0:  # else it is of an earlier release
            self.who = {**self.who, "run": str(answer.run)}
            self.heard.signal(answer.signal)

    def _beside(self, answer: RunAnswer) -> None:
        if answer.several != self.several:
            self.several = answer.several
            self.heard.beside(answer.several)

    def _wished(self, answer: RunAnswer) -> None:
        if not answer.wish:
            self.known = ""
            self.heard.wished(None)
            return
        self.known = answer.wish
        left_s = answer.until_s - (answer.now_s or self.clock())
        self.heard.wished(Wish(answer.wish, answer.why, answer.shape, left_s, answer.checkpoint))

    # Reports

    def lost(self, *, is_one: bool) -> None:
        """Say at once whether a task has lost its wrapper: the watch under way may take its time.

        A ``run-begin`` says so, which earlier releases answer too.
        """
        self.progress.lost = is_one
        fields = self._beginning()
        _thread(lambda: self._insist("run-begin", fields, self._closed))

    def launched(self) -> None:
        """Report that the program works now: the watch that is under way may take its time."""
        fields = {**self.who, **self.progress.fields()}
        _thread(lambda: self._insist("run-launched", fields, self._closed))

    def saved(self, wish: Wish, took_s: float) -> None:
        """Report a checkpoint until :meth:`give_up`: each answer says that pliantd still lives.

        What is not heard yet of one that failed is not so any more.
        """
        self._failing.set()
        self._saving = stop = threading.Event()
        fields = self._saved_fields(wish, took_s)

        def insist() -> None:
            while (answer := self._insist("run-saved", fields, stop)) is not None:
                if answer.several:  # it is not taken over
                    self.heard.beside(True)
                elif answer.stays:
                    self.heard.stays()
                else:
                    self.heard.answered()
                    stop.wait(REPORT_S)
                    continue
                return

        _thread(insist)

    def give_up(self) -> None:
        """Report the checkpoint no more."""
        self._saving.set()

    def failed(self, wish: Wish, words: str, *, untold: bool = False) -> None:
        """Report that there is no checkpoint, again and again where nobody answers."""
        self._failing = stop = threading.Event()
        fields = self._failed_fields(wish, words, untold)
        _thread(lambda: self._insist("run-failed", fields, stop))

    def _insist(
        self, verb: str, fields: Mapping[str, str], stop: threading.Event
    ) -> RunAnswer | None:
        """Ask until there is an answer; None where it is wanted no more by then."""
        pause_s = FIRST_S
        for _ in range(TRIES):
            if stop.is_set():
                return None
            try:
                answer = self.ask(verb, fields, ANSWER_S)
            except PliantError:
                stop.wait(pause_s)
                pause_s = min(REPORT_S, 2 * pause_s)
            else:
                return None if stop.is_set() else answer
        return None

    def last_saved(self, wish: Wish, took_s: float) -> None:
        """Report a checkpoint once, on our way out."""
        self._report("run-saved", self._saved_fields(wish, took_s))

    def end(self, code: int, termed: bool) -> None:
        """Report the end once, on our way out."""
        self._report("run-end", {**self.who, "code": str(code), "termed": str(int(termed))})

    def last_failed(self, wish: Wish, words: str, *, untold: bool = False) -> None:
        """Report that there is no checkpoint once, on our way out."""
        self._report("run-failed", self._failed_fields(wish, words, untold))

    def _saved_fields(self, wish: Wish, took_s: float) -> dict[str, str]:
        step = self.progress.fields()["step"]
        return {**self._numbered(wish), "took": f"{took_s:.3f}", "step": step}

    def _failed_fields(self, wish: Wish, words: str, untold: bool) -> dict[str, str]:
        return {**self._numbered(wish), "words": words, "untold": str(int(untold))}

    def _numbered(self, wish: Wish) -> dict[str, str]:
        return {**self.who, "wish": wish.id, "number": str(next(self._numbers))}

    def _report(self, verb: str, fields: Mapping[str, str]) -> None:
        """Say it where pliantd was ever heard: no job ends later for one that is not there."""
        if not self.reached:
            return

        def say() -> None:
            try:
                self.ask(verb, fields, END_S)
            except PliantError:
                return  # pliantd sees in the queue what became of the job

        self._last.append(_thread(say))

    def close(self) -> None:
        """Wait for the last reports, shortly, and end the others."""
        for event in (self._closed, self._saving, self._failing):
            event.set()
        deadline = time.monotonic() + END_S
        for thread in self._last:
            thread.join(max(0.0, deadline - time.monotonic()))


def _thread(work: Callable[[], object]) -> threading.Thread:
    """Begin it. Raises OSError where no thread can be made (`ulimit -u`): for Python a mistake."""
    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise BlockingIOError(errno.EAGAIN, "no thread can be made here") from None
    return thread
