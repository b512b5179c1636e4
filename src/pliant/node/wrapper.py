"""The shell around the core: one program, signals, files, and what the door's threads say.

The main thread waits for signals alone (sigtimedwait(2)): the program's end is one, the threads
wake it by another, and once a second it looks at the files. Nothing is done in a signal handler.
It never waits for a file system that all nodes share, which may hang: see pliant.node.others.
Where anything of ours fails, the program runs on as if it had been started without us.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pliant.node import guarded, pbs
from pliant.node import words as w
from pliant.node.aside import Aside
from pliant.node.copies import Copies
from pliant.node.core import step
from pliant.node.door import END_S, Ask, Door
from pliant.node.files import Pace, Private
from pliant.node.hearing import Hearing
from pliant.node.named import NamedCheckpoint
from pliant.node.others import Others, Seen, complain
from pliant.node.program import FAILS, Program, Witness, why_not
from pliant.node.ranks import NONE, Ranks
from pliant.node.run import Run
from pliant.node.saying import say

LAUNCHED_S = 60.0
"""A program that tells no steps counts as working after so long."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What the wrapper reaches beyond its node."""

    ask: Ask
    requeue: Callable[[str, int], str]
    why_ended: Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a wrapper is made of; ``caught``: the blocked signals that are waited for."""

    program: Program
    witness: Witness
    files: Private | None  # None: it could not be made
    outside: Outside
    caught: frozenset[int]


def _decision(now_s: float, decided: str) -> w.Decided:
    word, _, code = decided.partition(" ")
    again = word == "again"
    return w.Decided(now_s, again, int(code)) if code.isdecimal() else w.Decided(now_s, again)


class Wrapper:
    """One run of one program."""

    def __init__(self, this: Run, parts: Parts, tick_s: float) -> None:
        """``tick_s``: how often it looks at files and deadlines."""
        self._this, self._tick_s = this, tick_s
        self._program, self._witness, self._files = parts.program, parts.witness, parts.files
        self._outside, self._caught = parts.outside, parts.caught
        self._state = w.State(
            leads=this.leads, ranks=this.ranks, signal=this.signal, returns=this.returns
        )
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._main = threading.get_ident()
        self._code: int | None = None
        self._running = True
        self._started_s = time.monotonic()
        self._pace = Pace()
        self._is_away = False  # the directory by which the program is told and heard
        self._others: Others | None = None
        self._door: Door | None = None
        self._requeues, self._checks, self._whys = Aside(), Aside(), Aside()
        self._copies = Copies()
        self._named = NamedCheckpoint(this.directory)
        self._mom = pbs.Mom() if this.returns else None
        self._guardian = guarded.link[0] if guarded.link is not None else -1

    def run(self) -> int:
        """Watch until the program has ended for good; return the exit code to end with."""
        if self._files is not None:
            self._open()
        tick_at = time.monotonic()
        while self._code is None:
            got = signal.sigtimedwait(
                {*self._caught, signal.SIGCHLD}, max(0.0, tick_at - time.monotonic())
            )
            if got is not None and got.si_signo in self._caught:
                self._signalled(got.si_signo, got.si_pid)
            self._look()
            now_s = time.monotonic()
            if now_s >= tick_at:
                self._tick(now_s)
                tick_at = now_s + self._tick_s
        self._close()
        return self._code

    # What happens

    def _signalled(self, number: int, sender: int) -> None:
        now_s = time.monotonic()
        if self._copies.is_second(number, sender == self._guardian, now_s):
            return
        reached = self._running and self._witness.saw(number)
        self._feed(w.Signalled(now_s, number, reached))

    def _feed(self, event: w.Event) -> None:
        self._state, effects = step(self._state, event)
        for effect in effects:
            self._do(effect)

    def _post(self, event: w.Event) -> None:
        """Take an event from another thread."""
        self._soon(partial(self._feed, event))

    def _soon(self, does: Callable[[], None]) -> None:
        """Let the main thread do what another one says."""
        self._events.put(does)
        signal.pthread_kill(self._main, signal.SIGCHLD)

    def _look(self) -> None:
        """See whether the program has ended, and what the threads say."""
        self._see_mom()
        with contextlib.suppress(queue.Empty):
            while self._code is None:
                self._events.get_nowait()()
        if self._code is None and self._program.is_orphan():
            self._feed(w.Orphaned(time.monotonic()))
        code = self._program.ended() if self._running else None
        if code is None or self._code is not None:
            return
        self._running = False
        saved = code == w.CHECKPOINTED
        if self._files is not None:
            saved = self._files.take_saved() or saved
            self._files.take_requeued()  # it has ended: nothing is to be told to the next one
        if self._others is not None and not self._this.leads:
            self._follow(self._others.told_now())
        self._feed(w.Ended(time.monotonic(), code, saved))

    def _see_mom(self) -> None:
        """See, before anything leads to our own end, whether that would send the job back."""
        if self._mom is None or self._running or not self._state.returns:
            return
        if not self._mom.waits():
            self._feed(w.Parted(time.monotonic()))

    def _tick(self, now_s: float) -> None:
        self._witness.tend(now_s)
        self._keep(now_s)
        self._end_requeued()
        self._beat(now_s)
        self._look_round()
        self._feed(w.Ticked(now_s))

    def _keep(self, now_s: float) -> None:
        """See that the directory stands; what was asked in one that is gone is asked again."""
        if self._files is None:
            return
        try:
            is_new = self._files.keep(now_s)
        except OSError as error:
            why = error.strerror or str(error)
            if not self._is_away:
                what = "is gone and cannot be made again"
                say(f"{self._files.path} {what} ({why}): the program is neither told nor heard")
            self._is_away = True
            self._feed(w.Untold(now_s, why))
            return
        self._is_away = False
        state = self._state
        if is_new and state.stage is w.Stage.ASKED and state.told and state.wish is not None:
            self._ask(replace(state.wish, left_s=state.until_s - now_s))

    def _end_requeued(self) -> None:
        """Tell a program that believes it has requeued its job what a requeue would tell it."""
        if self._files is not None and self._files.take_requeued() and self._running:
            self._program.send(signal.SIGTERM)

    def _beat(self, now_s: float) -> None:
        beat = self._files.beat() if self._files is not None else None
        if beat is not None:
            if beat[0] != self._pace.step:
                self._feed(w.Beaten(now_s))
            self._pace.add(*beat)
        if self._door is not None:
            progress = self._door.progress
            heard = (self._pace.step, self._pace.rate)
            # a step that is told again and again is one of a program that hangs
            progress.step, progress.rate = (None, None) if self._is_away else heard
            progress.beat_s = beat[1] if beat is not None else progress.beat_s
            works = progress.step is not None or now_s - self._started_s >= LAUNCHED_S
            if works and not progress.launched:
                progress.launched, progress.launched_s = True, time.monotonic()
                self._door.launched()

    # Other tasks of the step

    def _look_round(self) -> None:
        if self._others is None:
            return
        gathers = self._state.stage is w.Stage.GATHERING and self._state.wish is not None
        then = self._lead if self._this.leads else self._follow
        self._others.look(self._state.seen if gathers else "", then)

    def _follow(self, seen: Seen) -> None:
        """Do what the first task tells."""
        if seen.told is None:
            return
        wish, decided, number = seen.told
        now_s = time.monotonic()
        if wish is not None and decided:
            if wish.id == self._state.seen:  # else it is over for one that comes late
                self._feed(_decision(now_s, decided))
            return
        if wish is not None:
            self._feed(w.Learnt(now_s, number))
        self._feed(w.Wished(now_s, wish))

    def _lead(self, seen: Seen) -> None:
        """See how the other tasks have ended, and whether one has lost its wrapper.

        While one has, nothing is asked: it would not hear of it.
        """
        now_s, state = time.monotonic(), self._state
        if seen.wish and seen.wish == state.seen and (seen.failed is not None or seen.ended):
            self._feed(w.Gathered(now_s, seen.failed))
        if self._door is not None and (seen.lost is not None) != state.deaf:
            self._feed(w.Lost(now_s, seen.lost))
            self._door.lost(is_one=seen.lost is not None)

    def _tell(self, wish: w.Wish | None, decided: str = "") -> None:
        if self._others is not None and self._this.leads:
            self._others.tell(wish, decided, self._state.signal, complain)

    # What is to be done

    def _do(self, effect: w.Effect) -> None:
        try:
            self._perform(effect)
        except OSError as error:  # a full disk, a directory that is gone
            say(f"{type(effect).__name__.lower()}: {error.strerror or error}")

    def _perform(self, effect: w.Effect) -> None:
        match effect:
            case w.Prompt():
                if self._program.survives(self._state.signal):
                    self._program.send(self._state.signal)
                    self._feed(w.Prompted(time.monotonic()))
            case w.Pass(number):
                self._program.send(number)
            case w.Start():
                self._start()
            case w.Say(words):
                say(words)
            case w.Exit(code):
                self._code = code
            case w.Spread() | w.Ask() | w.Withdraw() | w.Gather() | w.Tell():
                self._write(effect)
            case _:
                self._reach_out(effect)

    def _start(self) -> None:
        if self._door is not None:
            self._door.give_up()
        if self._others is not None:
            self._others.resumed()
        try:
            self._program.start()
        except FAILS as error:
            self._feed(w.NotStarted(time.monotonic(), *why_not(error)))
            return
        self._running, self._started_s = True, time.monotonic()
        self._feed(w.Started(self._started_s))

    def _write(self, effect: w.Effect) -> None:
        """Do what is done by files."""
        state = self._state
        match effect:
            case w.Spread(wish):
                self._remember(wish)
                self._spread(wish)
            case w.Ask(wish):
                if state.ranks == 1:
                    self._remember(wish)
                self._ask(wish)
            case w.Withdraw():
                if state.stage is w.Stage.RUNNING:
                    self._tell(None, "again")
                if self._files is not None:
                    self._files.withdraw()
            case w.Gather(code) if self._others is not None:
                self._others.ended(code, NONE if state.wish is None else state.seen)
                if state.stage is w.Stage.GATHERING:  # it may have been withdrawn meanwhile
                    self._tell(state.wish)
            case w.Tell(again, code):
                self._tell(w.Wish(state.seen), "again" if again else f"end {code}")
            case _:
                pass

    def _remember(self, wish: w.Wish) -> None:
        if wish.checkpoint and self._this.leads:
            self._named.remember(wish.checkpoint)

    def _spread(self, wish: w.Wish) -> None:
        """Tell the other tasks first: they look only once a second."""

        def told(trouble: str) -> None:
            self._feed(w.Told(time.monotonic(), wish.id, trouble))

        if self._others is None:  # the first task alone is asked
            told("")
        else:
            self._others.tell(wish, "", self._state.signal, told)

    def _ask(self, wish: w.Wish) -> None:
        if self._files is None:
            return
        try:
            self._files.ask(wish)
        except OSError as error:
            self._feed(w.Untold(time.monotonic(), error.strerror or str(error)))

    def _reach_out(self, effect: w.Effect) -> None:
        """Do what goes beyond this node, in threads of its own."""
        job, door = self._this.called, self._door
        over = self._state.stage is w.Stage.OVER
        match effect:
            case w.Requeue():
                if door is not None:
                    door.give_up()
                self._requeues.do(lambda: self._requeue(job))
            case w.AskWhy() if job and self._this.leads:
                self._whys.do(lambda: self._say_why(job))
            case w.Check(wish):
                self._checks.do(lambda: self._check(wish))
            case w.ReportSaved(wish, took_s, last=True) if door is not None:
                self._report_last(door, wish, took_s)
            case w.ReportSaved(wish, took_s) if door is not None:
                door.saved(wish, took_s)
            case w.ReportFailed(wish, words, untold) if door is not None:
                (door.last_failed if over else door.failed)(wish, words, untold=untold)
            case w.ReportEnd(code, termed) if door is not None:
                door.end(code, termed)
            case _:
                pass

    def _requeue(self, job: str) -> None:
        try:
            trouble = self._outside.requeue(job, self._run)
        except Exception as fault:  # no file can be opened here, say, not even to import
            trouble = f"{type(fault).__name__}: {fault}"
        self._post(w.Requeued(time.monotonic(), trouble))

    def _check(self, wish: w.Wish) -> None:
        trouble = self._named.trouble(wish.checkpoint)
        self._post(w.Checked(time.monotonic(), trouble))

    def _report_last(self, door: Door, wish: w.Wish, took_s: float) -> None:
        trouble = self._named.trouble_soon(wish.checkpoint) if wish.checkpoint else ""
        if trouble:
            say(f"the checkpoint is not new and whole: {trouble}")
            door.last_failed(wish, trouble)
        else:
            door.last_saved(wish, took_s)

    def _say_why(self, job: str) -> None:
        why = self._outside.why_ended(job, self._run)
        say(f"the program was sent TERM{': ' if why else ''}{why}")

    @property
    def _run(self) -> int:
        """How often the job was requeued before."""
        return int(self._door.who["run"]) if self._door is not None else self._this.restarts

    # The door

    def _open(self) -> None:
        this = self._this
        if this.ranks > 1 and this.directory is not None:
            self._join(this, this.directory)
        if not this.leads:
            return
        heard = Hearing(self._post, typed=this.typed).heard()
        who = {"job": this.job, "run": str(this.restarts), "word": os.urandom(8).hex()}
        self._door = Door(self._outside.ask, who, heard)
        name = signal.Signals(this.signal).name.removeprefix("SIG") if this.signal else ""
        self._door.watch({"host": this.host, "grace": str(this.grace_s), "signal": name})

    def _join(self, this: Run, directory: Path) -> None:
        step = f"{this.job}-{this.restarts}-{this.step}"
        ranks = Ranks(directory, step, this.rank, this.ranks)
        self._others = Others(ranks, this.leads, self._soon)
        self._others.join(partial(self._joined, ranks))

    def _joined(self, ranks: Ranks, trouble: str) -> None:
        if not trouble:
            with contextlib.suppress(OSError):  # a guardian that was killed
                self._program.tell("lost", ranks.mark)
            return
        if self._this.leads:
            say(f"{ranks.path}: {trouble}: only task 0 is told of checkpoints")
        self._others = None

    def _close(self) -> None:
        if self._others is not None and not self._others.leave():
            say("the directory by which tasks agree does not answer: it is left as it is")
        deadline_s = time.monotonic() + END_S
        if self._door is not None:
            self._door.close()
        # why it was ended is known shortly after the program's end
        self._whys.wait(max(0.0, deadline_s - time.monotonic()))
