"""Where faults are tried: one sandbox, a job that counts, and who waits for exactly its GPUs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.drill.halting import HALT, REACHED
from pliant.daemon.answers import HistoryAnswer, from_json
from pliant.errors import PliantError
from pliant.handover import OURS
from pliant.sandbox import Options, Sandbox, accounts, environment, parts, processes
from pliant.sandbox.notified import Notified
from pliant.wire import Message, ask_over_tcp

ROOT = Path(__file__).parents[2]
USER = "pliant-alice"
STEPS, STEP_S = 6000, 0.02
KEPT = "kept"
PYTHON = "/usr/bin/python3"
LOOK_S, ASK_S = 0.02, 0.25
"""How often it is looked whether something is so: at a file, or by asking the batch system."""
COME_S = 90.0
"""How long what should come in a second or two may take on a machine that is busy."""
_LEFT_OUT = (
    "pliant",
    "mypy*",
    "pip*",
    "ruff*",
    "hypothesis*",
    "pytest*",
    "*.pth",
    "__pycache__",
    "grimp*",
)


def checksum(steps: int) -> str:
    """What count.py prints in the end."""
    total = 0
    for step in range(1, steps + 1):
        total = (total * 31 + step) % (2**61 - 1)
    return f"{steps} {total}"


def install(place: Path) -> Path:
    """Copy what an ordinary user's job needs to where that user may read it; return the folder."""
    left_out = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(sysconfig.get_path("purelib"), place / "lib", ignore=left_out)
    shutil.copytree(ROOT / "src" / "pliant", place / "lib" / "pliant")
    for file in (
        ROOT / "docs" / "examples" / "count.py",
        Path(__file__).parent / "faulty_count.py",
    ):
        shutil.copy(file, place / "lib")
    program = place / "lib" / "pliant-run"
    program.write_text(
        f"#!{PYTHON}\nimport sys\nfrom pliant.entry import main\n"
        "sys.argv[1:1] = ['run']\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return place / "lib"


@dataclass(slots=True)
class Field:
    """One sandbox, and the jobs of one run in it."""

    sandbox: Sandbox
    lib: Path
    place: Path = Path()  # of this run
    job: int = 0
    rival: int = 0
    guest: int = 0
    skew_s: int = 0
    submitted_s: float = 0.0  # the last job
    dead: list[str] = field(default_factory=list)
    log_read: int = 0  # of slurmctld's log
    trouble: str = ""  # pliantd's last no
    ends: tuple[str, ...] = ()  # how the job may; a fault may change it
    has_ended: bool = False
    daemon: subprocess.Popen[bytes] | None = None  # the last pliantd
    later: list[threading.Timer] = field(default_factory=list)  # what ends a fault in a while
    told: tuple[str, ...] = ()  # one of these its output or pliantd's log is to say where it failed

    # --- parts -----------------------------------------------------------------------------

    @classmethod
    def up(cls, name: str, lib: Path) -> Field:
        """Bring a cluster of two nodes with four GPUs each up."""
        made = Sandbox(name, Options(nodes=2, gpus=4, users=(USER,)))
        made.up()
        made.stop("pliantd")
        return cls(made, lib)

    def begin(self, place: Path, ends: str) -> None:
        """Begin a run with nothing of the last; what it leaves lies in ``place``."""
        self.place, self.job, self.ends, self.has_ended = place, 0, (ends,), False
        self.told = ()
        for directory in (place, place / KEPT):  # the job's user writes there
            directory.mkdir()
            directory.chmod(0o777)

    def deciding(self, policy: str, *options: str) -> None:
        """Let the next pliantd decide by this policy."""
        path = self.sandbox.layout.pliant_toml
        before, named, after = re.split(r'^(policy = )".*"$', path.read_text(), flags=re.M)
        after = re.sub(
            r"^\[policy\]$[^\[]*", "\n".join(["[policy]", *options, "\n"]), after, flags=re.M
        )
        path.write_text(f'{before}{named}"{policy}"{after}')

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
        layout = self.sandbox.layout
        argv = [sys.executable, "-m", "benchmarks.drill.halting", str(self.place)]
        env = {
            **environment.for_daemons(layout),
            "NOTIFY_SOCKET": str(layout.notify_socket),
            "PYTHONPATH": str(ROOT),
        }
        if self.skew_s:
            env["DRILL_SKEW_S"] = str(self.skew_s)
        notified = Notified(layout.notify_socket)
        try:
            argv += ["--config", str(layout.pliant_toml)]
            child = self.daemon = processes.start(layout, "pliantd", argv, env)
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
        log = self.sandbox.layout.output("pliantd")
        return log.read_text(errors="replace")[since:] if log.exists() else ""

    def restore(self) -> None:
        """Start what died, take nodes back."""
        for part in self.dead:
            self._start(part)
        self.dead = []
        if self.daemon is None or self.daemon.poll() is not None:
            self.pliantd()
        self.resume_nodes()

    def have_passed(self) -> None:
        """Wait until what was to last for a while is over."""
        for timer in self.later:
            timer.join()
        self.later = []

    def resume_nodes(self) -> int:
        """Take nodes back that are down or drained; return how many."""
        tired = self.scontrol_out("sinfo", "-h", "-N", "-p", "gpu", "-t", "drain,down", "-o", "%N")
        nodes = set(tired.split())
        for node in nodes:
            self.scontrol("update", f"nodename={node}", "state=resume")
        return len(nodes)

    def _start(self, part: str) -> None:
        """Start a part that died; the steps of a slurmd live on, and could be taken for it."""
        if part == "pliantd":
            self.pliantd()
            return
        layout, options = self.sandbox.layout, self.sandbox.record.options
        command = parts.command(part, layout, options, accounts.current())
        env = {**environment.for_daemons(layout), **command.env}
        processes.start(layout, part, command.argv, env, command.user)

    def is_forgotten(self) -> bool:
        """Whether slurmctld has ended the job by itself.

        One that was killed had forgotten that it had started the job, and started it a second time.
        """
        log = self.sandbox.layout.log("slurmctld").read_text(errors="replace")
        job = f"JobId={self.job} "
        ended = any(f"non-startable batch {job[:-1]}{after}" in log for after in " :")
        return ended and f"Registered PENDING {job}" in log

    def recount(self) -> bool:
        """Let slurmctld count its GPUs anew, where it has miscounted them; return whether so.

        One that was killed while a job completed did not free what the job had.
        """
        log = self.sandbox.layout.log("slurmctld").read_text(errors="replace")
        miscounted = any(words in log[self.log_read :] for words in _MISCOUNTED)
        if miscounted:
            self.scontrol("reconfigure")
        self.log_read = len(log)
        return miscounted

    def kill(self, part: str) -> None:
        """Kill a part, and wait until it is gone; slurmctld not before it has saved all jobs."""
        if part == "slurmctld":
            self.wait(self._is_saved, "slurmctld to save its jobs", COME_S)
        process = psutil.Process(self.sandbox.pid(part))
        process.kill()
        process.wait(COME_S)
        self.dead.append(part)

    def _is_saved(self) -> bool:
        """Whether slurmctld would know the last job again; it saves within 5 s."""
        saved = self.sandbox.layout.ctld_state / "job_state"
        known = saved.exists() and saved.stat().st_mtime > self.submitted_s
        return known or time.time() > self.submitted_s + 6.0

    # --- jobs ------------------------------------------------------------------------------

    def submit(self, *options: str) -> None:
        """Submit the job that counts."""
        script = (
            f"export PYTHONPATH={self.lib} PLIANT_CHECKPOINT_DIR={self.place}/saves\n"
            f"exec {self.lib}/pliant-run -- {PYTHON} {self.lib}/faulty_count.py "
            f"{STEPS} {self.place} {STEP_S}"
        )
        own = ("--gres=gpu:4", "--open-mode=append", f"--output={self.place}/out", "--time=30")
        self.job = self.sbatch(USER, script, *own, *options)

    def submit_rival(self) -> None:
        """Submit who waits for all GPUs of the job's node."""
        self.rival = self.sbatch(None, "sleep 600", "--gres=gpu:4", "--time=20")

    def sbatch(self, user: str | None, script: str, *options: str) -> int:
        """Submit a job to n1."""
        argv = ["sbatch", "--parsable", "-N1", "--nodelist=n1", "--output=/dev/null", *options]
        done = self.sandbox.run(argv, user=user, stdin=f"#!/bin/sh\n{script}\n", check=True)
        self.submitted_s = time.time()
        return int(done.stdout)

    def show(self, job: int) -> dict[str, str]:
        """Return a job's fields; {} where nothing answers."""
        told = self.scontrol_out("scontrol", "-o", "show", "job", str(job))
        fields = (word.partition("=") for word in told.split() if "=" in word)
        return {key: value for key, _, value in fields}

    def state(self, job: int) -> str:
        """Return a job's state; "" where nothing answers."""
        return self.show(job).get("JobState", "")

    def gpus(self) -> int:
        """Return how many GPUs the job asks for."""
        return int(self.show(self.job)["TresPerNode"].rpartition(":")[2])

    def cancel(self, job: int, user: str | None = None) -> None:
        """End a job."""
        self.sandbox.run(["scancel", str(job)], user=user)

    def scontrol(self, *words: str, user: str | None = None) -> str:
        """Run scontrol; return what it complained of."""
        try:
            done = self.sandbox.run(["scontrol", *words], user=user, timeout=20)
        except subprocess.TimeoutExpired:
            return "no answer"
        return done.stderr.strip() if done.returncode else ""

    def scontrol_out(self, *argv: str) -> str:
        """Run a command that only asks."""
        try:
            return self.sandbox.run(argv, timeout=20).stdout
        except subprocess.TimeoutExpired:
            return ""

    def ask(self, verb: str, **fields: str) -> Any:
        """Ask pliantd at its second door; None on a no, or where it does not answer."""
        socket = str(self.sandbox.layout.munge_socket)
        port = self.sandbox.record.ports.pliant
        try:
            answer = ask_over_tcp("127.0.0.1", port, Message(verb, fields), munge_socket=socket)
        except PliantError:
            return None
        self.trouble = "" if answer.is_ok else answer.message
        return answer if answer.is_ok else None

    def history(self) -> HistoryAnswer | None:
        """What Pliant knows of the job."""
        answer = self.ask("history", job=str(self.job))
        return from_json(HistoryAnswer, answer.fields["json"]) if answer else None

    def is_under_way(self) -> bool:
        """Whether the job is in a hand-over, as far as pliantd says."""
        told = self.history()
        return told is not None and not all(row.outcome for row in told.handovers)

    # --- what is left ----------------------------------------------------------------------

    def fences(self) -> int:
        """How many reservations of Pliant's there are."""
        told = self.scontrol_out("scontrol", "-o", "show", "reservation")
        return sum(line.startswith("ReservationName=pliant_") for line in told.splitlines())

    def pins(self) -> int:
        """How many jobs that have not ended carry a priority of Pliant's."""
        jobs = [job for job in (self.job, self.rival, self.guest) if job]
        shown = [self.show(job) for job in jobs]
        return sum(
            int(one.get("Priority", "0")) in OURS and one.get("JobState") in _ALIVE for one in shown
        )

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

    def works(self) -> bool:
        """Whether the program counts."""
        pid = int((self.place / "pid").read_text().split()[0])
        return not self.has_saved() and psutil.pid_exists(pid)

    def clear(self) -> None:
        """End all jobs and fences."""

        def none_left() -> bool:
            jobs = self.scontrol_out("squeue", "-h", "-o", "%A").split()
            if jobs:
                self.sandbox.run(["scancel", *jobs])
            return not jobs

        self.wait(none_left, "all jobs to end", COME_S)
        for line in self.scontrol_out("scontrol", "-o", "show", "reservation").splitlines():
            if line.startswith("ReservationName="):
                self.scontrol("delete", line.split()[0])
        self.rival = self.guest = 0

    @staticmethod
    def wait(is_so: Callable[[], bool], what: str, timeout_s: float, poll_s: float = ASK_S) -> None:
        """Wait until it is so; raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
            time.sleep(poll_s)


_MISCOUNTED = ("job_res_rm_job: plugin still initializing", "gres count underflow")
_ALIVE = ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED")
