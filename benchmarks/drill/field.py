"""Where faults are tried: a batch system with pliantd, the jobs of one run, and what is left of it.

What is common to all batch systems; what a job shows is told in Slurm's words.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.drill.halting import HALT, REACHED
from pliant.daemon.answers import HistoryAnswer, from_json
from pliant.errors import PliantError
from pliant.sandbox.notified import Notified
from pliant.wire import Message, ask_over_tcp

ROOT = Path(__file__).parents[2]
STEPS, STEP_S = 12_000, 0.02
GPUS = 4
SHAPES = ("1", "2", "4")
KEPT = "kept"
LOOK_S, ASK_S = 0.02, 0.25
"""How often it is looked whether something is so: at a file, or by asking the batch system."""
COME_S = 90.0
"""How long what should come in a second or two may take on a machine that is busy."""
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


def checksum(steps: int) -> str:
    """What count.py prints in the end."""
    total = 0
    for step in range(1, steps + 1):
        total = (total * 31 + step) % (2**61 - 1)
    return f"{steps} {total}"


def runs(process: psutil.Process) -> bool:
    """Whether it does; what has ended may stay in the table where a container has no init."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


class Admin(ABC):
    """What time or an administrator would do for the jobs of a run, so that nobody waits for it.

    ``did``: what of the batch system's own it has put right; ``late``: what was seen to begin later
    than the batch system itself, or a hand-over, would have it.
    """

    did: int = 0
    late: str = ""

    @abstractmethod
    def tend(self) -> Sequence[Mapping[str, str]]:
        """Do what is to be done now; return what is shown of the job and its guest."""


@dataclass(slots=True)
class Field(ABC):
    """One batch system, and the jobs of one run in it; ``lib``: what its job needs."""

    lib: Path
    place: Path = Path()  # of this run
    job: str = ""
    rival: str = ""
    guest: str = ""
    skew_s: int = 0
    dead: list[str] = field(default_factory=list)
    trouble: str = ""  # pliantd's last no
    passed_by: bool = False  # the last fault came to nothing: too late, or it was refused
    ends: tuple[str, ...] = ()  # how the job may; a fault may change it
    has_ended: bool = False
    daemon: subprocess.Popen[bytes] | None = None  # the last pliantd
    later: list[threading.Timer] = field(default_factory=list)  # what ends a fault in a while
    told: tuple[str, ...] = ()  # one of these its output or pliantd's log is to say where it failed

    # --- what a batch system has to tell ---------------------------------------------------------

    @property
    @abstractmethod
    def toml(self) -> Path:
        """The file pliant.toml."""

    @property
    @abstractmethod
    def state(self) -> Path:
        """Where pliantd keeps its store."""

    @property
    @abstractmethod
    def logs(self) -> Path:
        """Where the daemons log, pliantd to pliantd.out."""

    @property
    @abstractmethod
    def door(self) -> tuple[int, str]:
        """The port at which pliantd answers, and munge's socket; "": the usual."""

    @abstractmethod
    def spawn(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start pliantd so, with this beside what its environment is."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the batch system may ask pliantd about a submission."""

    @abstractmethod
    def pid(self, part: str) -> int | None:
        """Return the process of a daemon that runs."""

    @abstractmethod
    def start(self, part: str) -> None:
        """Start a daemon of the batch system that died."""

    @abstractmethod
    def resume_nodes(self) -> int:
        """Take nodes back that are down or drained; return how many."""

    @abstractmethod
    def admin(self, *, hurries: bool = False) -> Admin:
        """Return who looks after the jobs; with him no job waits long for its time to begin."""

    @abstractmethod
    def submit(self, how: Sequence[str], *, best_effort: bool, grace_s: int) -> None:
        """Submit the job that counts."""

    @abstractmethod
    def submit_rival(self) -> None:
        """Submit who waits for all GPUs of the job's node."""

    @abstractmethod
    def submit_guest(self) -> None:
        """Submit a trial job that needs as many."""

    @abstractmethod
    def show(self, job: str) -> Mapping[str, str]:
        """Return a job's fields, JobState among them; {} where nothing answers."""

    @abstractmethod
    def gpus(self) -> int:
        """Return how many GPUs the job asks for."""

    @abstractmethod
    def cancel(self, job: str, user: str | None = None) -> None:
        """End a job."""

    @abstractmethod
    def fences(self) -> int:
        """How many fences of Pliant's there are."""

    @abstractmethod
    def pins(self, *jobs: str) -> int:
        """How many of these jobs have not ended and carry a priority of Pliant's; "": no job."""

    @staticmethod
    @abstractmethod
    def is_held(shown: Mapping[str, str]) -> bool:
        """Whether a job of which this is shown is held by its owner."""

    @abstractmethod
    def clear(self) -> None:
        """End all jobs and fences."""

    def is_forgotten(self) -> bool:
        """Whether the batch system has ended the job by itself, for it had forgotten its start."""
        return False

    def has_forgotten_a_run(self, _shown: Mapping[str, str]) -> bool:
        """Whether the batch system counts fewer runs of the job than there were."""
        return False

    def has_forgotten_a_fence(self) -> bool:
        """Whether the batch system has lost the last hand-over's before the job's run ended."""
        return False

    def recount(self) -> bool:
        """Let it count its GPUs anew, where it has miscounted them; return whether so."""
        return False

    # --- pliantd ---------------------------------------------------------------------------------

    def begin(self, place: Path, ends: str) -> None:
        """Begin a run with nothing of the last; what it leaves lies in ``place``."""
        self.place, self.job, self.ends, self.has_ended = place, "", (ends,), False
        self.told = ()
        for directory in (place, place / KEPT):  # the job's user writes there
            directory.mkdir()
            directory.chmod(0o777)

    def deciding(self, policy: str, *options: str) -> None:
        """Let the next pliantd decide by this policy."""
        text = re.sub(r'(?m)^policy = ".*"$', f'policy = "{policy}"', self.toml.read_text())
        own = "\n".join(("[policy]", *options, "", ""))
        self.toml.write_text(re.sub(r"(?m)^\[policy\]$[^\[]*", own, text))

    def halt_at(self, moment: str) -> None:
        """Let pliantd halt when it comes to this moment, once."""
        (self.place / HALT).write_text(moment)

    def is_halted(self) -> bool:
        """Whether it has come to it."""
        return (self.place / REACHED).exists()

    def let_go(self) -> None:
        """Let it go on, or not halt any more."""
        for name in (HALT, REACHED):
            (self.place / name).unlink(missing_ok=True)

    def pliantd(self) -> None:
        """Start pliantd, and wait until it answers."""
        argv = [sys.executable, "-m", "benchmarks.drill.halting", str(self.place)]
        notified = Notified(self.logs / "notify.socket")
        env = {"NOTIFY_SOCKET": str(notified.path), "PYTHONPATH": str(ROOT)}
        if self.skew_s:
            env["DRILL_SKEW_S"] = str(self.skew_s)
        try:
            child = self.daemon = self.spawn([*argv, "--config", str(self.toml)], env)
            come = "pliantd to start"
            self.wait(lambda: notified.ready() or child.poll() is not None, come, COME_S, LOOK_S)
        finally:
            notified.close()

    def stop_pliantd(self) -> None:
        """End it, and wait until it is gone."""
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait(COME_S)

    def said(self, since: int = 0) -> str:
        """What pliantd said from this byte of its log on."""
        log = self.logs / "pliantd.out"
        return log.read_text(errors="replace")[since:] if log.exists() else ""

    def ask(self, verb: str, **fields: str) -> Any:
        """Ask pliantd at its second door; None on a no, or where it does not answer."""
        port, socket = self.door
        try:
            answer = ask_over_tcp("127.0.0.1", port, Message(verb, fields), munge_socket=socket)
        except PliantError:
            return None
        self.trouble = "" if answer.is_ok else answer.message
        return answer if answer.is_ok else None

    @property
    def number(self) -> str:
        """The job's, as Pliant has it: without PBS's server."""
        return self.job.partition(".")[0]

    def history(self) -> HistoryAnswer | None:
        """What Pliant knows of the job."""
        answer = self.ask("history", job=self.number)
        return from_json(HistoryAnswer, answer.fields["json"]) if answer else None

    def is_under_way(self) -> bool:
        """Whether the job is in a hand-over, as far as pliantd says."""
        told = self.history()
        return told is not None and not all(row.outcome for row in told.handovers)

    def is_over(self) -> bool:
        """Whether pliantd says that the job is in none."""
        told = self.history()
        return told is not None and all(row.outcome for row in told.handovers)

    # --- daemons ---------------------------------------------------------------------------------

    def kill(self, part: str) -> None:
        """Kill a daemon, and wait until it is gone."""
        process = self._process(part)
        is_ours = process.ppid() == os.getpid()  # asked now: any thread's Popen may reap it then
        process.kill()
        if is_ours:
            process.wait(COME_S)
        self.wait(lambda: not runs(process), f"{part} to end", COME_S, LOOK_S)
        self.dead.append(part)

    def signal(self, part: str, number: signal.Signals) -> None:
        """Send a signal to a daemon that runs."""
        self._process(part).send_signal(number)

    def _process(self, part: str) -> psutil.Process:
        """Return what runs of a daemon; raises PliantError where it has ended by itself."""
        with contextlib.suppress(psutil.NoSuchProcess):
            pid = self.pid(part)  # of none psutil would take us
            if pid is not None and runs(process := psutil.Process(pid)):
                return process
        self.dead.append(part)
        raise PliantError(f"{part} has ended by itself")

    def restore(self) -> None:
        """Start what died, take nodes back, but for what lasts yet for a while."""
        for part in self.dead:
            if part != "pliantd":
                self.start(part)
        self.dead = []
        if self.daemon is None or self.daemon.poll() is not None:
            self.pliantd()
        if not self.is_disturbed:
            self.resume_nodes()

    @property
    def is_disturbed(self) -> bool:
        """Whether something lasts yet that is to last for a while."""
        return any(timer.is_alive() for timer in self.later)

    def have_passed(self) -> None:
        """Wait until what was to last for a while is over."""
        for timer in self.later:
            timer.join()
        self.later = []

    # --- the job ---------------------------------------------------------------------------------

    def state_of(self, job: str) -> str:
        """Return a job's state; "" where nothing answers."""
        return self.show(job).get("JobState", "")

    def program(self) -> tuple[int, psutil.Process]:
        """Return the program that counts, which may have ended, and its wrapper.

        Both are children of the guardian, which has the wrapper's command line.
        """
        own, guardian = int((self.place / "pid").read_text().split()[0]), self.guardian()
        same = (one for one in guardian.children() if one.cmdline() == guardian.cmdline())
        return own, next(same)

    def guardian(self) -> psutil.Process:
        """Return what the job's script has become."""
        return psutil.Process(int((self.place / "pid").read_text().split()[1]))

    def has_saved(self) -> bool:
        """Whether the job's last run has written its checkpoint."""
        return (self.place / "log").read_text().splitlines()[-1].startswith("saved")

    def worked_s(self) -> float:
        """Return when the job's program last wrote that it began or saved; 0.0: it never did."""
        log = self.place / "log"
        return log.stat().st_mtime if log.exists() else 0.0

    def works(self) -> bool:
        """Whether the program counts, below a wrapper: without one it is about to be ended."""
        with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
            pid, wrapper = self.program()
            return not self.has_saved() and runs(psutil.Process(pid)) and runs(wrapper)
        return False

    @staticmethod
    def wait(is_so: Callable[[], bool], what: str, timeout_s: float, poll_s: float = ASK_S) -> None:
        """Wait until it is so; raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
            time.sleep(poll_s)
