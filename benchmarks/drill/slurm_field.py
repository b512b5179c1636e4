"""Where Slurm's faults are tried: one sandbox of two nodes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.drill.field import COME_S, GPUS, SHAPES, Field
from benchmarks.drill.installing import script
from benchmarks.drill.slurm_admin import SlurmAdmin, instant
from pliant.demo.users import users
from pliant.handover import OURS
from pliant.sandbox import Options, Sandbox, accounts, environment, parts, processes
from pliant.sandbox.layout import base_directory
from pliant.sandbox.record import all_names

USER = "pliant-alice"
_MISCOUNTED = ("job_res_rm_job: plugin still initializing", "gres count underflow")
_BY_OWNER = ("JobHeldUser", "job_requeued_in_held_state")
"""Why a job waits that its owner holds: by `scontrol hold`, or `requeuehold`."""
_ALIVE = ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED")


@dataclass(slots=True)
class SlurmField(Field):
    """One sandbox, and the jobs of one run in it."""

    sandbox: Sandbox = None  # type: ignore[assignment]  # what it inherits has defaults
    told_s: float = 0.0  # when it was last told what a slurmctld that is killed is to know again
    log_read: int = 0  # of slurmctld's log

    @classmethod
    @contextlib.contextmanager
    def up(cls, lib: Path, number: int) -> Iterator[Field]:
        """Have a cluster of two nodes with four GPUs each."""
        _remove_dead()
        name, options = f"drill-{os.getpid()}-{number}", Options(nodes=2, gpus=GPUS, users=(USER,))
        with users([USER]):
            made = Sandbox(name, options)
            made.up()
            made.stop("pliantd")
            try:
                yield cls(lib, sandbox=made)
            finally:
                made.down()

    # --- pliantd ---------------------------------------------------------------------------------

    @property
    def toml(self) -> Path:
        """The file pliant.toml."""
        return self.sandbox.layout.pliant_toml

    @property
    def state(self) -> Path:
        """Where pliantd keeps its store."""
        return self.sandbox.layout.pliant_state

    @property
    def logs(self) -> Path:
        """Where the daemons log."""
        return self.sandbox.layout.logs

    @property
    def door(self) -> tuple[int, str]:
        """The port at which pliantd answers, and munge's socket."""
        return self.sandbox.record.ports.pliant, str(self.sandbox.layout.munge_socket)

    def spawn(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start pliantd so."""
        layout = self.sandbox.layout
        return processes.start(layout, "pliantd", argv, {**environment.for_daemons(layout), **env})

    def answers(self) -> bool:
        """Whether slurmctld may ask pliantd: it learns whose that is by its first look."""
        return self.sandbox.layout.pliant_socket.stat().st_mode & 0o060 == 0o060

    # --- daemons ---------------------------------------------------------------------------------

    def pid(self, part: str) -> int | None:
        """Return the process of a daemon that runs."""
        return self.sandbox.pid(part)

    def start(self, part: str) -> None:
        """Start a daemon that died; the steps of a slurmd live on, and could be taken for it."""
        layout, options = self.sandbox.layout, self.sandbox.record.options
        command = parts.command(part, layout, options, accounts.current())
        env = {**environment.for_daemons(layout), **command.env}
        processes.start(layout, part, command.argv, env, command.user)

    def kill(self, part: str) -> None:
        """Kill a daemon; slurmctld not before it has saved what it is to know again."""
        if part == "slurmctld":
            self.wait(self._is_saved, "slurmctld to save its jobs", COME_S)
        super(SlurmField, self).kill(part)  # slots: the bare form knows another class

    def _is_saved(self) -> bool:
        """Whether slurmctld would know the last job again; it saves within 5 s."""
        saved = self.sandbox.layout.ctld_state / "job_state"
        known = saved.exists() and saved.stat().st_mtime > self.told_s
        return known or time.time() > self.told_s + 6.0

    def resume_nodes(self) -> int:
        """Take nodes back that are down or drained; return how many."""
        tired = self.scontrol_out("sinfo", "-h", "-N", "-p", "gpu", "-t", "drain,down", "-o", "%N")
        nodes = set(tired.split())
        for node in nodes:
            self.scontrol("update", f"nodename={node}", "state=resume")
        return len(nodes)

    def admin(self, *, hurries: bool = False) -> SlurmAdmin:
        """Return who looks after the jobs."""
        return SlurmAdmin(self, hurries)

    def is_forgotten(self) -> bool:
        """Whether slurmctld has ended the job by itself.

        One that was killed had forgotten that it had started the job, and started it a second time.
        """
        log = self.sandbox.layout.log("slurmctld").read_text(errors="replace")
        job = f"JobId={self.job} "
        ended = any(f"non-startable batch {job[:-1]}{after}" in log for after in " :")
        return ended and f"Registered PENDING {job}" in log

    def has_forgotten_a_run(self, shown: Mapping[str, str]) -> bool:
        """Whether one that was killed has forgotten that the job was requeued, and ran again.

        What that run then says of itself is refused.
        """
        log = self.place / "log"
        began = log.read_text().count("began ") if log.exists() else 0
        return shown.get("JobState") == "PENDING" and int(shown.get("Restarts", began)) < began

    def has_forgotten_a_fence(self) -> bool:
        """Whether one that was killed has, between pliantd's look and the requeue.

        Then pliantd has made it twice in the last hand-over: before the requeue, and after.
        """
        last = self.said().rpartition(f"job {self.job}: to ")[2]
        steps = re.findall(rf"job {self.job}: (fence|requeue)$", last, re.MULTILINE)
        before, requeue, after = " ".join(steps).partition("requeue")
        return requeue != "" and "fence" in before and "fence" in after

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

    # --- jobs ------------------------------------------------------------------------------------

    def submit(self, how: Sequence[str], *, best_effort: bool, grace_s: int) -> None:
        """Submit the job that counts."""
        what = "--class=best-effort" if best_effort else f"--moldable=gpus={':'.join(SHAPES)}"
        own = (
            f"--gres=gpu:{GPUS}",
            "--open-mode=append",
            f"--output={self.place}/out",
            "--time=30",
        )
        words = (*own, what, f"--malleable=grace={grace_s}", *how)
        self.job = self._sbatch(USER, script(self.lib, self.place), *words)

    def submit_rival(self) -> None:
        """Submit who waits for all GPUs of the job's node."""
        self.rival = self._sbatch(None, "sleep 600", f"--gres=gpu:{GPUS}", "--time=20")

    def submit_guest(self) -> None:
        """Submit a trial job that needs as many."""
        trial = (f"--gres=gpu:{GPUS}", "--class=trial", "--time=2")
        self.guest = self._sbatch(None, "sleep 2", *trial)

    def _sbatch(self, user: str | None, lines: str, *options: str) -> str:
        """Submit a job to n1."""
        argv = ["sbatch", "--parsable", "-N1", "--nodelist=n1", "--output=/dev/null", *options]
        done = self.sandbox.run(argv, user=user, stdin=f"#!/bin/sh\n{lines}\n", check=True)
        self.told_s = time.time()
        return done.stdout.strip()

    def show(self, job: str) -> Mapping[str, str]:
        """Return a job's fields; {} where nothing answers."""
        told = self.scontrol_out("scontrol", "-o", "show", "job", job)
        fields = (word.partition("=") for word in told.split() if "=" in word)
        shown = {key: value for key, _, value in fields}
        if "TresPerNode" in shown:
            shown["TresPerNode"] = shown["TresPerNode"].replace("gres/", "gres:")  # from 23.02 on
        return shown

    def gpus(self) -> int:
        """Return how many GPUs the job asks for."""
        return int(self.show(self.job)["TresPerNode"].rpartition(":")[2])

    def cancel(self, job: str, user: str | None = None) -> None:
        """End a job."""
        self.sandbox.run(["scancel", job], user=user)

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

    # --- what is left ----------------------------------------------------------------------------

    def fences(self) -> int:
        """How many reservations of Pliant's stand; ended ones are listed for a while."""
        told = self.scontrol_out("scontrol", "-o", "show", "reservation")
        ends = re.findall(r"(?m)^ReservationName=pliant_.* EndTime=(\S+)", told)
        return sum(instant(end) > time.time() for end in ends)

    def pins(self, *jobs: str) -> int:
        """How many of these jobs have not ended and carry a priority of Pliant's; "": no job."""
        shown = [self.show(job) for job in jobs if job]
        return sum(
            int(one.get("Priority", "0")) in OURS and one.get("JobState") in _ALIVE for one in shown
        )

    @staticmethod
    def is_held(shown: Mapping[str, str]) -> bool:
        """Whether a job of which this is shown is held by its owner; one that runs says not why."""
        by_owner = shown.get("JobState") != "PENDING" or shown.get("Reason") in _BY_OWNER
        return by_owner and shown.get("Priority") == "0"

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
        self.rival = self.guest = ""


def _remove_dead() -> None:
    """Remove what drills have left that were killed, as their machine was perhaps."""
    base = base_directory()
    for name in all_names(base):
        drill = re.fullmatch(r"drill-(\d+)-\d+", name)
        if drill and not psutil.pid_exists(int(drill[1])):
            for disk in psutil.disk_partitions(all=True):
                if Path(disk.mountpoint).is_relative_to(base / name):
                    subprocess.run(["umount", "--lazy", disk.mountpoint], check=True, timeout=10)
            Sandbox(name).down()
