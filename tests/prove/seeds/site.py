"""A site: its cluster, the pliantd that runs or does not, the programs on its nodes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import pwd
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pliant.errors import BadConfig, Unavailable
from pliant.node import slurm
from pliant.wire import CHALLENGE, HELLO, Message, decode, encode
from pliant.wire.runs import RunAnswer
from prove.fake_slurm import Record, array_task
from prove.seeds.cluster import Cluster
from prove.seeds.commands import Armed, Commands
from prove.seeds.loops import BEGAN_S, Loop, Time
from prove.seeds.pliantd import CONF, Halting, Inline, Process, credential_of
from prove.seeds.programs import Run, Work, understood
from prove.world import Rejected

USERS = ("daemon", "bin", "sys", "games")
"""Users that every Debian has: whose job it is, pliantd asks the machine."""
AGAIN_S = 5.0
"""After how long systemd starts again what could not start."""
UIDS = {name: pwd.getpwnam(name).pw_uid for name in USERS}


class Trace(logging.Handler):
    """What has happened, line by line; what pliantd logs is among it."""

    def __init__(self, time: Time, folder: Path, *, shown: bool) -> None:
        super().__init__()
        self._time, self._shown, self.folder = time, shown, str(folder)
        self._hash = hashlib.sha256()
        self.internal: list[str] = []  # errors that should not be
        self.lines: list[str] = []

    def note(self, what: str) -> None:
        line = f"{self._time.now_s - BEGAN_S:9.3f} {what}"
        self._hash.update(line.encode() + b"\n")
        self.lines.append(line)
        if self._shown:
            print(line, flush=True)

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.internal.append(f"{record.getMessage()}: {record.exc_info[1]!r}")
        self.note(f"  pliantd: {record.getMessage().replace(self.folder, 'DIR')}")
        if record.exc_info:
            self.note(f"  pliantd: {record.exc_info[0]}: {record.exc_info[1]}")

    @property
    def hash(self) -> str:
        """What two runs of one seed have in common."""
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Halt:
    """That pliantd is to stand still, once, just before such a step of a hand-over.

    ``came``: is told of which job's.
    """

    step: str
    for_s: float
    came: Callable[[str], None]


class Site:
    """All that a seed moves. ``folder`` is on tmpfs."""

    def __init__(self, folder: Path, time: Time, cluster: Cluster, trace: Trace) -> None:
        self.folder, self.time, self.cluster, self.trace = folder, time, cluster, trace
        self.nodes = Loop(time)
        self.work: dict[int, Work] = {}
        self.runs: dict[int, Run] = {}
        self.process: Process | None = None
        self.ahead_s = 0.0  # pliantd's clock
        self.takes_s: Callable[[bool], float] = lambda _is_look: 0.05
        self.armed: list[Armed] = []
        self.halts: list[Halt] = []
        self.stood: list[tuple[float, float]] = []  # from when to when pliantd stood still
        self.says: dict[int, str] = {}  # what each job says to Pliant
        self.excused: set[int] = set()  # jobs that Slurm alone would have lost, too
        self.unreached: set[int] = set()  # jobs whose node does not reach pliantd
        self.moments: list[Callable[[str, int], None]] = []
        self.policy, self.options, self.mode, self.cycle_s = "rigid-fcfs", "", "enforce", 5.0
        self.told: list[Callable[[str, Sequence[str], str], None]] = []
        self.starts = 0
        self.steps: Counter[str] = Counter()
        self._killed_s = self.started_s = self._stands_s = 0.0  # the last time
        self.began_s = 0.0  # when pliantd began the command that is told of: it takes a while
        self._dead: list[Process] = []
        self._older: Path | None = None
        self._state = folder / "state-0"
        self._state.mkdir()
        cluster.changed = self._changed
        self.restarts_s: Callable[[], float] = lambda: 2.0
        self.disturbed: Callable[[], None] = lambda: None
        self.left = set[int]()  # the jobs of which Slurm may not learn that a run has ended
        self.has_aged = False  # whether pliantd was given a store of a while ago
        self.lasting = 0  # faults that last yet
        self._is_over = False
        self.watches: list[Callable[[Record | None, Record], None]] = []

    # --- pliantd ---------------------------------------------------------------------------

    @property
    def conf(self) -> Path:
        return self.folder / "pliant.toml"

    def configure(self) -> None:
        """Write pliant.toml."""
        text = CONF.format(
            folder=self.folder,
            state=self._state,
            policy=self.policy,
            options=self.options,
            mode=self.mode,
            cycle_s=self.cycle_s,
        )
        self.conf.write_text(text)

    def start(self) -> None:
        """Start pliantd, from its store as it is on disk."""
        if self.process is not None or self._is_over:
            return
        self.starts += 1
        self.configure()
        commands = Commands(
            self.time,
            Loop(self.time),
            self.cluster,
            self._takes_s,
            self.kill,
            self._done,
            self.armed,
        )
        slurm = Halting(commands, self.clock, threads=Inline, monotonic=lambda: self.time.now_s)
        try:
            process = self.process = Process(self.time, self.conf, slurm, self.clock)
        except BadConfig:
            self.trace.note("pliantd does not start: its configuration is wrong")
            self.time.after(AGAIN_S, self.start)  # as systemd has it, until that is mended
            return
        commands.loop = process.loop
        slurm.halts = partial(self._halts, process.loop)
        process.loop.on_error = self._internal
        self.trace.note("pliantd starts")
        self.started_s = self.time.now_s

    def _halts(self, loop: Loop, step: str, job: str) -> None:
        """Let pliantd stand still before this step, if that is to be; the cluster goes on."""
        halt = next((one for one in self.halts if one.step == step), None)
        if halt is None:
            return
        self.halts.remove(halt)
        halt.came(job)
        self._stands_s = self._killed_s = self.time.now_s
        self.lasting += 1
        try:
            loop.stands_still_for(halt.for_s)
        finally:
            self.lasting -= 1
            if not loop.is_dead:
                self.stood.append((self._stands_s, self.time.now_s))
            self.disturbed()
        self.trace.note("pliantd goes on")
        self.started_s = self.time.now_s

    def _takes_s(self, is_look: bool) -> float:
        return self.takes_s(is_look)

    def _internal(self, context: Mapping[str, object]) -> None:
        self.trace.note(
            f"an internal error: {context.get('message')}: {context.get('exception')!r}"
        )

    def clock(self) -> float:
        """What pliantd's host takes for now."""
        return self.time.now_s + self.ahead_s

    def kill(self, why: str, for_s: float | None = None) -> None:
        """Kill pliantd, as it is, with its store as it is; ``for_s``: until it is started again."""
        if self.process is None:
            return
        self.trace.note(f"pliantd is killed {why}")
        self._killed_s = self.time.now_s
        process, self.process = self.process, None
        if process.loop.stands_still:  # until now: another one runs soon
            self.stood.append((self._stands_s, self.time.now_s))
        process.dies()
        self._keep_store(process.state)
        self._dead.append(process)
        self.disturbed()
        self.time.after(self.restarts_s() if for_s is None else for_s, self.start)

    def _keep_store(self, before: Path) -> None:
        """What it has written is there for the next one, and what the dead one does is not."""
        self._state = self.folder / f"state-{self.starts}"
        shutil.copytree(before, self._state, ignore=shutil.ignore_patterns("*-shm"))

    def worked_s(self, since_s: float) -> float:
        """For how long a pliantd has run since then, but for its last pause."""
        is_away = self.started_s < self._killed_s
        back_s = self.time.now_s if is_away else self.started_s
        away_s = back_s - max(self._killed_s, since_s)
        return self.time.now_s - since_s - max(0.0, away_s)

    def was_away(self, since_s: float) -> bool:
        """Whether pliantd has not run for some time since then."""
        return max(self.started_s, self._killed_s) >= since_s

    def ages(self) -> bool:
        """Let the store be as it was a while ago; False where no copy is of then."""
        if self._older is None or self._older == self._state:
            return False
        self.has_aged = True
        shutil.rmtree(self._state)
        shutil.copytree(self._older, self._state, ignore=shutil.ignore_patterns("*-shm"))
        return True

    def keeps_a_copy(self) -> None:
        """Copy the store, as a backup does."""
        if self.process is not None:
            older = self.folder / "older"
            shutil.rmtree(older, ignore_errors=True)
            shutil.copytree(self.process.state, older, ignore=shutil.ignore_patterns("*-shm"))
            self._older = older

    def knows(self, number: int) -> bool:
        """Whether pliantd's last look has shown a job."""
        seen = self.process.daemon._cycling.seen if self.process and self.process.listens else None
        jobs = (*seen.snapshot.waiting, *seen.snapshot.running) if seen is not None else ()
        return any(job.id == str(number) for job in jobs)

    def unnoted(self, number: int) -> str:
        """What a job had before a hand-over of which pliantd has not noted yet what came; or ""."""
        found = self._last(number)
        return str(found[1]) if found and not found[0] and found[2] is None else ""

    def becomes(self, number: int) -> str:
        """What a job is to be by the hand-over that is under way; "" without one."""
        found = self._last(number)
        return found[3] if found and found[2] is None else ""

    def outcome(self, number: int) -> str | None:
        """What came of the last hand-over of a job; None while it is under way, "" without one."""
        found = self._last(number)
        return found[2] if found else ""

    def guests(self) -> frozenset[str]:
        """For whom room is made by the hand-overs that are under way, as scontrol names them."""
        if self.process is not None and self.process.listens:
            rows = self.process.daemon._cycling.store.handovers()
            return frozenset(row.guest for row in rows)
        last = "SELECT guest FROM handovers WHERE done_s IS NULL"
        with closing(sqlite3.connect(self._state / "pliant.db")) as db:
            return frozenset(guest for (guest,) in db.execute(last))

    def _last(self, number: int) -> tuple[int, str, str | None, str] | None:
        """The last one that is stored: whether it was made, before, what came of it, and after."""
        if self.process is not None and self.process.listens:  # it may keep what no disk takes
            rows = self.process.daemon._cycling.store.handovers(str(number))
            told = [
                (row.made, row.before, row.outcome if row.done_s else None, row.after)
                for row in rows
            ]
            return told[-1] if told else None
        last = (
            "SELECT made, before, outcome, after FROM handovers WHERE job = ?"
            " ORDER BY id DESC LIMIT 1"
        )
        with closing(sqlite3.connect(self._state / "pliant.db")) as db:
            found: tuple[int, str, str | None, str] | None = db.execute(
                last, (str(number),)
            ).fetchone()
        return found

    @property
    def looks(self) -> int:
        """How many cycles this pliantd has come through."""
        return (
            self.process.daemon._cycling.counts.cycles
            if self.process and self.process.listens
            else 0
        )

    def stop(self) -> bool:
        """End pliantd as systemd does; False where there is none that hears it."""
        if self.process is None or signal.SIGTERM not in self.process.loop.signals:
            return False
        self.trace.note("pliantd is told to end")
        self.process.loop.signal(signal.SIGTERM)
        return True

    def reload(self) -> None:
        """Let pliantd read its configuration again."""
        self.configure()
        if self.process is not None and signal.SIGHUP in self.process.loop.signals:
            self.process.loop.signal(signal.SIGHUP)

    def ends(self) -> None:
        """Let it be over."""
        self._is_over = True
        self.kill("at the end")
        self.tidy()

    def tidy(self) -> None:
        """Let go of pliantds that are no more; nothing of theirs may be running."""
        if self.process is not None and self.process.has_ended:
            self.kill("by itself: it has ended")
        while self._dead:
            process = self._dead.pop()
            process.loop.bury()
            shutil.rmtree(process.state)

    def _done(self, step: str, argv: Sequence[str], complaint: str, began_s: float) -> None:
        self.steps[step] += 1
        self.began_s = began_s
        words = " ".join(word for word in argv[1:] if not word.startswith("AdminComment="))
        self.trace.note(f"  {words}{': ' + complaint if complaint else ''}")
        for tell in self.told:
            tell(step, argv, complaint)

    # --- how it is reached -----------------------------------------------------------------

    async def ask(
        self, uid: int, verb: str, fields: Mapping[str, str], timeout_s: float
    ) -> RunAnswer:
        """Ask as a wrapper does. Raises PliantError."""
        if int(fields["job"]) in self.unreached:
            raise Unavailable("pliantd: no route to host")
        return understood(await self.say(uid, Message(verb, fields), timeout_s))

    async def say(self, uid: int, message: Message, timeout_s: float) -> Message:
        """Ask pliantd something at its second door. Raises Unavailable."""
        if self.process is None:
            raise Unavailable("pliantd: connection refused")
        line = self.process.connect(self.nodes)
        try:
            async with asyncio.timeout(timeout_s):
                hello = decode(await line.say(HELLO.encode()))
                fields = {**message.fields, CHALLENGE: hello.fields[CHALLENGE]}
                payload = encode(Message(message.word, fields))
                return decode(await line.say(b"munge " + credential_of(uid, payload)))
        except TimeoutError:
            raise Unavailable("pliantd: no answer in time") from None
        finally:
            line.hang_up()

    # --- its nodes -------------------------------------------------------------------------

    def _changed(self, before: Record | None, now: Record) -> None:
        """Follow a job on its nodes."""
        if before is None and now.number not in self.work:  # a task of an array
            array = int(array_task(now)[0])
            self.work[now.number] = replace(self.work[array])
            self.says[now.number] = self.says[array]
        if not (before is not None and before == now):
            for watch in self.watches:
                watch(before, now)
        if before is not None and before.state == now.state:
            return
        self.trace.note(_line(now))
        run = self.runs.get(now.number)
        if now.state == "RUNNING":
            self.runs[now.number] = Run(
                self.nodes, self, now, self.work[now.number], UIDS[now.user]
            )
        elif run is not None and now.state == "COMPLETING":
            run.termed()
        elif run is not None:
            run.killed()
            del self.runs[now.number]
            if now.waits:
                self.moment("waits", now.number)

    def requeue(self, number: int, run: int) -> str:
        """Requeue a job from its node, as pliant.node.slurm does; return why that failed."""
        if self.time.now_s < self.cluster.away_until_s:
            return "Unable to contact slurm controller (connect failure)"
        job = self.cluster.state.jobs.get(number)
        row = f"{job.state}|{job.reason}|1:00|{job.run}|" if job is not None else ""
        if slurm.is_over(row, run):
            return ""
        if job is not None and job.run > run:
            self.trace.internal.append(f"job {number}: its run {run} sends run {job.run} back")
        try:
            self.cluster.tell("requeue", str(number))
        except Rejected as error:
            return str(error)
        return ""

    def exits(self, number: int, code: int) -> None:
        self.cluster.exits(number, code)

    def moment(self, moment: str, number: int) -> None:
        for tell in self.moments:
            tell(moment, number)

    def happened(self, what: str) -> None:
        self.trace.note(f"  {what}")


def _line(job: Record) -> str:
    on = f" on {','.join(job.on)}" if job.has_gpus else ""
    return f"job {job.number}: {job.state} run {job.run}, {job.nodes}x{job.gpus}{on}"
