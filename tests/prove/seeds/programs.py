"""A job's program and its wrapper, on its node: what the program does, and what is told to pliantd.

What the wrapper decides is decided by the core that ships (:mod:`pliant.node.core`); how it speaks
is as :mod:`pliant.node.door` does, whose threads are tasks here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from pliant.cli.run_door import understood
from pliant.errors import PliantError
from pliant.node import core, words
from pliant.node.core import SILENT_S, TERM
from pliant.node.door import ANSWER_S, END_S, FIRST_S, MOST_S, REPORT_S, TRIES
from pliant.node.words import CHECKPOINTED, Stage
from pliant.wire.runs import WATCH_S, RunAnswer
from prove.fake_slurm import Record
from prove.seeds.loops import Entry, Loop, Time

STEP_S = 1.0
"""How long a program takes for a step on one GPU."""
LAST_S = 0.01
"""A wrapper's line outlasts by so much what it says on its way out."""
LATE_S = 15.0
"""How long after its grace period a program saves that saves late."""


class Habit(StrEnum):
    """What a program does when it is asked for a checkpoint."""

    SAVES = "saves"
    NEVER = "never saves"
    LATE = "saves late"
    FAILS = "fails when it saves"
    REFUSES = "has a checkpoint that is not whole"


@dataclass(slots=True)
class Work:
    """What a job is to do, in seconds on one GPU, and how; ``saved``: what its checkpoint holds.

    ``managed``: whether it runs under a wrapper. ``doomed``: it fails by a fault of its own.
    ``left``: how many checkpoints it has written. ``habits``: of its next ones, the first first.
    """

    total_s: float
    managed: bool = False
    save_s: float = 1.0
    launch_s: float = 2.0
    saved_s: float = 0.0
    checkpoints: int = 0
    doomed: bool = False
    habits: list[Habit] = field(default_factory=list)


class Outside(Protocol):
    """What a node reaches."""

    async def ask(
        self, uid: int, verb: str, fields: Mapping[str, str], timeout_s: float
    ) -> RunAnswer: ...

    def requeue(self, number: int, run: int) -> str:
        """Requeue a job from that run of it; return why that failed."""

    def exits(self, number: int, code: int) -> None:
        """Let the job's script end."""

    def happened(self, what: str) -> None:
        """Note it."""

    def moment(self, moment: str, number: int) -> None:
        """Note that a job has come to a moment of its hand-over."""


class Program:
    """The program of one run, started once or again and again."""

    def __init__(
        self, time: Time, work: Work, gpus: int, ended: Callable[[int, bool], None]
    ) -> None:
        """``gpus``: 0 for cores alone; ``ended``: is told its exit code, and whether it saved."""
        self._time, self._work, self._ended = time, work, ended
        self._rate = float(max(1.0, gpus) ** 0.9)
        self.runs, self.saving = False, False
        self._since_s = 0.0
        self._next: list[Entry] = []
        self.start()

    def start(self) -> None:
        """Begin, from the last checkpoint on."""
        work = self._work
        self.runs, self.saving = True, False
        self._since_s = self._time.now_s + work.launch_s
        left_s = max(0.5, (work.total_s - work.saved_s) / self._rate)
        self._next = [self._time.at(self._since_s + left_s, self._ends, 0, False)]

    @property
    def done_s(self) -> float:
        """How much of its work is done."""
        works_s = max(0.0, self._time.now_s - self._since_s)
        return min(self._work.total_s, self._work.saved_s + works_s * self._rate)

    @property
    def works(self) -> bool:
        """Whether it has begun to work."""
        return self.runs and self._time.now_s >= self._since_s

    def asked(self, left_s: float) -> None:
        """Save within ``left_s``, as its habit is."""
        if not self.runs or self.saving:
            return
        habit = self._work.habits.pop(0) if self._work.habits else Habit.SAVES
        if habit is Habit.NEVER:
            return
        self.saving = True
        within_s = left_s + LATE_S if habit is Habit.LATE else self._work.save_s
        self._next.append(self._time.after(within_s, self._saves, habit))

    def _saves(self, habit: Habit) -> None:
        if not self.runs:
            return
        if habit is Habit.FAILS:
            self._work.doomed = True
            self._ends(1, False)
            return
        self._work.saved_s = self.done_s
        self._work.checkpoints += 1
        self._ends(CHECKPOINTED, True)

    def _ends(self, code: int, saved: bool) -> None:
        self.kill()
        self._ended(code, saved)

    def kill(self) -> None:
        """End, whatever it did."""
        self.runs = False
        for entry in self._next:
            entry.cancel()


class Run:
    """One run of a job on its node."""

    def __init__(self, nodes: Loop, outside: Outside, job: Record, work: Work, uid: int) -> None:
        self._loop, self._outside, self._uid = nodes, outside, uid
        self._time = nodes._time
        self.number, self.run = job.number, job.run
        self.is_over, self.has_saved, self.saved_s = False, False, 0.0
        self.is_left = False  # its slurmstepd was killed: nobody ends it, nor learns of its end
        self.wrapper: words.State | None = words.State() if work.managed else None
        self.was_managed = work.managed
        self._tasks: list[asyncio.Task[Any]] = []
        self._saving: asyncio.Task[Any] | None = None
        self._who = {"job": str(job.number), "run": str(job.run), "word": f"{job.number}.{job.run}"}
        self._known, self._reached, self._born_s = "", False, self._time.now_s
        self.program = Program(self._time, work, job.gpus * job.nodes, self._ended)
        self._work = work
        if self.wrapper is not None:
            self._later(self._watch())
            self._time.after(work.launch_s, self._launched)

    def _later(self, does: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(does)
        self._tasks.append(task)
        return task

    # --- what happens ----------------------------------------------------------------------

    def _ended(self, code: int, saved: bool) -> None:
        """Its program has ended."""
        if saved:
            self.has_saved, self.saved_s = True, self._time.now_s
            self._outside.moment("saved", self.number)
        if self.wrapper is not None:
            self._happens(words.Ended(self._time.now_s, code, saved))
        elif saved and self.was_managed:
            self._time.after(SILENT_S, self._alone)
        else:
            self._exits(code)

    def _alone(self) -> None:
        """Its guardian requeues it, or becomes its wrapper: see pliant.node.alone."""
        if self.is_over:
            return
        trouble = self._outside.requeue(self.number, self.run)
        if not trouble:
            self._outside.happened(f"job {self.number}: its guardian requeues it")
            return
        self._outside.happened(f"job {self.number}: its guardian goes on: {trouble}")
        self.wrapper, self.has_saved, self._reached = words.State(), False, False
        self.program.start()
        self._later(self._watch())

    @property
    def seems_saved(self) -> bool:
        """Whether pliantd must take it to have saved and to wait: its guardian was not heard yet."""
        return self.has_saved or (self.saved_s > 0 and not self._reached)

    def _exits(self, code: int) -> None:
        if not self.is_over:
            self.is_over = True
            self._time.after(LAST_S, self._stop)
            if not self.is_left:
                self._outside.exits(self.number, code)

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def termed(self) -> None:
        """Slurm ends it: its processes are told to end."""
        if self.is_left:
            return
        if self.wrapper is not None:
            self._happens(words.Signalled(self._time.now_s, TERM, reached=self.program.runs))
        if self.program.runs:
            self.program.kill()
            if self.wrapper is not None:
                self._happens(words.Ended(self._time.now_s, -TERM, saved=False))

    def killed(self) -> None:
        """All its processes are gone."""
        if self.is_left:
            return
        self.is_over = True
        self.program.kill()
        self._stop()

    def loses_its_wrapper(self) -> None:
        """Its wrapper is killed: its guardian waits for its program."""
        self.wrapper = None
        self._stop()
        if not self.program.runs:  # it had saved
            self._ended(CHECKPOINTED, True)

    def _launched(self) -> None:
        if self.wrapper is not None and not self.is_over:
            self._later(self._insist("run-launched", {**self._who, **self._progress()}))

    def _happens(self, event: words.Event) -> None:
        if self.wrapper is None or self.is_over:
            return
        self.wrapper, effects = core.step(self.wrapper, event)
        for effect in effects:
            self._does(effect)
        self._ticks()

    def _ticks(self) -> None:
        """Let time pass for the wrapper, as it looks at its deadlines."""
        until_s = self.wrapper.until_s if self.wrapper is not None else float("inf")
        if until_s != float("inf"):
            self._time.at(until_s, self._tick, until_s)

    def _tick(self, until_s: float) -> None:
        if self.wrapper is not None and self.wrapper.until_s == until_s:
            self._happens(words.Ticked(self._time.now_s))

    # --- what is done ----------------------------------------------------------------------

    def _does(self, effect: words.Effect) -> None:
        match effect:
            case words.Ask(wish):
                self._outside.moment("asked", self.number)
                self.program.asked(wish.left_s)
            case words.Start():
                self._give_up()
                self.has_saved = False
                self.program.start()
            case words.ReportSaved(wish, took_s, last):
                fields = {**self._who, "wish": wish.id, "took": f"{took_s:.3f}", "step": ""}
                if last:
                    self._once("run-saved", fields)
                else:
                    self._saving = self._later(self._insist_saved(fields))
            case words.ReportFailed(wish, why):
                self._later(
                    self._insist("run-failed", {**self._who, "wish": wish.id, "words": why})
                )
            case words.ReportEnd(code, termed):
                self._once("run-end", {**self._who, "code": str(code), "termed": str(int(termed))})
            case words.Requeue():
                self._give_up()
                self._time.after(0.3, self._requeues)
            case words.Say(said):
                self._outside.happened(f"job {self.number}: pliant run: {said}")
            case words.Exit(code):
                self._exits(code)
            case _:
                pass

    def _give_up(self) -> None:
        if self._saving is not None:
            self._saving.cancel()

    def _requeues(self) -> None:
        if not self.is_over and self.wrapper is not None:
            trouble = self._outside.requeue(self.number, self.run)
            self._happens(words.Requeued(self._time.now_s, trouble))

    # --- what is said: see pliant.node.door ------------------------------------------------

    async def _ask(self, verb: str, fields: Mapping[str, str], timeout_s: float) -> RunAnswer:
        return await self._outside.ask(self._uid, verb, fields, timeout_s)

    async def _watch(self) -> None:
        begun, pause_s = False, FIRST_S
        while True:
            since_s = self._time.now_s
            try:
                answer = await self._once_more(begun)
            except PliantError:
                begun = False
                await asyncio.sleep(0.75 * pause_s)
                pause_s = min(MOST_S, 2 * pause_s)
                continue
            self._reached = True
            fresh = answer.wish not in ("", self._known)
            if not begun:
                self._who["run"] = str(answer.run)
            if answer.stays:
                self._happens(words.Stays(self._time.now_s))
            self._wished(answer)
            if not fresh and begun and self._time.now_s - since_s < FIRST_S:
                await asyncio.sleep(FIRST_S)
            begun, pause_s = True, FIRST_S

    async def _once_more(self, begun: bool) -> RunAnswer:
        if begun:
            fields = {**self._who, "known": self._known, **self._progress()}
            return await self._ask("run-watch", fields, WATCH_S + ANSWER_S)
        age = f"{self._time.now_s - self._born_s:.3f}"
        begin = {"host": "n", "grace": "", "signal": "", "others": "0", "lost": "0", "age": age}
        return await self._ask("run-begin", {**self._who, **begin}, ANSWER_S)

    def _progress(self) -> dict[str, str]:
        step = str(int(self.program.done_s / STEP_S)) if self.program.works else ""
        return {"step": step, "launched": "1" if self.program.works else "0", "lost": "0"}

    def _wished(self, answer: RunAnswer) -> None:
        self._known = answer.wish
        wish = None
        if answer.wish:
            left_s = answer.until_s - answer.now_s
            wish = words.Wish(answer.wish, answer.why, answer.shape, left_s, answer.checkpoint)
        self._happens(words.Wished(self._time.now_s, wish))

    async def _insist(self, verb: str, fields: Mapping[str, str]) -> RunAnswer | None:
        pause_s = FIRST_S
        for _ in range(TRIES):
            try:
                return await self._ask(verb, fields, ANSWER_S)
            except PliantError:
                await asyncio.sleep(pause_s)
                pause_s = min(REPORT_S, 2 * pause_s)
        return None

    async def _insist_saved(self, fields: Mapping[str, str]) -> None:
        while (answer := await self._insist("run-saved", fields)) is not None:
            if answer.stays:
                self._happens(words.Stays(self._time.now_s))
                return
            self._happens(words.Answered(self._time.now_s))
            await asyncio.sleep(REPORT_S)

    def _once(self, verb: str, fields: Mapping[str, str]) -> None:
        """Say something on the way out: no longer than is waited for it."""
        if self._reached:
            self._loop.create_task(self._say(verb, fields))

    async def _say(self, verb: str, fields: Mapping[str, str]) -> None:
        try:
            await self._ask(verb, fields, END_S)
        except PliantError:
            return


__all__ = ["Habit", "Outside", "Program", "Run", "Stage", "Work", "understood"]
