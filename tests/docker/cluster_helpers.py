"""Clusters of containers, and what tests do with them.

Needs root, or a Docker engine that answers; `docker/cluster` installs and starts what is missing.
SUITE names the Debian release: bookworm (Slurm 22.05), trixie (24.11), forky (26.05).
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from docs_helpers import TOP, Terminal
from limits import HANG_S

ALICE, BOB = "pliant-alice", "pliant-bob"
NODES = ("n1", "n2", "n3")
SUITE = os.environ.get("SUITE", "trixie")
SHOWN = "trixie"
"""The release that the pages show; on another it is not compared what commands print."""
COMPOSE = TOP / "docker" / "compose.yaml"


@dataclass(frozen=True)
class Cluster:
    """A project of docker compose. ``stage``: ``pliant``, or ``slurm`` without Pliant."""

    project: str
    stage: str

    @property
    def backups(self) -> str:
        """How many backup controllers there are."""
        return "1" if self.stage == "pliant" else "0"

    def compose(
        self, *words: str, timeout_s: float = 900, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run docker compose. ``env``: what compose.yaml asks for beside the suite."""
        return subprocess.run(
            ["docker", "compose", "-f", str(COMPOSE), "-p", self.project, *words],
            env={
                **os.environ,
                **{"SUITE": SUITE, "STAGE": self.stage, "BACKUP": self.backups, **env},
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def on(self, host: str, *command: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Run a command on a host."""
        return self.compose("exec", "-T", "-u", user, host, *command, timeout_s=300)

    @contextmanager
    def typing(self, *where: str, **env: str) -> Iterator[Terminal]:
        """Type in the folder docker/, or in a shell of a host: ``login``, ``-u``, ``USER``."""
        host, *user = where or ("",)
        argv = ("docker", "compose", "-p", self.project, "exec", "-T", *user, host, "bash")
        says = {"SUITE": SUITE, "STAGE": self.stage, "BACKUP": self.backups, **env}
        terminal = Terminal(
            *(argv if host else ()),
            cwd=COMPOSE.parent,
            env={**os.environ, **says},
            limit_s=600,
            compares=SUITE == SHOWN,
        )
        try:
            yield terminal
        finally:
            terminal.close()

    def out(self, host: str, *command: str, user: str = "root") -> str:
        """Run a command on a host, which must not fail, and return what it printed."""
        done = self.on(host, *command, user=user)
        assert done.returncode == 0, f"{host}: {command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, host: str, user: str, *options: str, script: str = "true") -> str:
        """Submit a job whose output goes to ``job-NUMBER.out`` in its user's home."""
        where = ("-D", f"/home/{user}", "-o", "job-%j.out", "-t", "20")
        text = ("sbatch", "--parsable", *where, *options, "--wrap", script)
        return self.out(host, *text, user=user)

    def state(self, job: str) -> str:
        """Return a job's state, PENDING and the like; "" once squeue has forgotten it."""
        done = self.on("login", "squeue", "-h", "-t", "all", "-o", "%T", "-j", job)
        return done.stdout.strip()

    def wait(self, job: str, *states: str) -> None:
        """Wait until a job is in one of some states."""
        wait_until(
            lambda: self.state(job) in states,
            lambda: self.on("login", "scontrol", "show", "job", job).stdout,
        )

    def said(self, job: str, user: str) -> list[str]:
        """Wait for a job's end, and return what it printed, in order."""
        self.wait(job, "COMPLETED")
        return sorted(self.out("login", "cat", f"/home/{user}/job-{job}.out").splitlines())

    def answers(self) -> bool:
        """Whether slurmctld is there."""
        return " UP" in self.on("login", "scontrol", "ping").stdout

    def spread(self) -> None:
        """Copy slurm.conf to every host, as `pliant install slurm` asks for."""
        self.out("controller", "cp", "-p", "/etc/slurm/slurm.conf", "/home/slurm.conf")
        for host in ("login", *NODES):
            self.out(host, "cp", "/home/slurm.conf", "/etc/slurm/slurm.conf")
        self.out("controller", "scontrol", "reconfigure")
        wait_until(self.answers, "slurmctld is away")

    def no_jobs(self) -> None:
        """End every job."""
        for user in (ALICE, BOB):
            self.out("controller", "scancel", "-u", user)
        wait_until(lambda: not self.out("login", "squeue", "-h"), "jobs do not end")

    # Faults

    def plug(self, host: str, state: str) -> None:
        """Pull a host's network cable (``down``), or put it back (``up``).

        Its names and addresses stay as they are, as with a host that lost its power.
        """
        image = f"pliant-cluster-pliant:{SUITE}"
        python = ("--entrypoint", "/usr/lib/pliant/venv/bin/python", image, "-c", PLUG, state)
        where = ("--cap-add", "NET_ADMIN", "--network", f"container:{self.project}-{host}-1")
        subprocess.run(["docker", "run", "--rm", *where, *python], timeout=HANG_S, check=True)

    def start_slurmctld(self) -> None:
        """Let the first controller's slurmctld run again."""
        self.out("controller", "rm", "-f", STOPPED)

    def acting(self) -> str:
        """Return which controller answers first; "" for none."""
        ping = self.on("login", "scontrol", "ping").stdout
        return next((line.split()[2] for line in ping.splitlines() if line.endswith("UP")), "")


STOPPED = "/run/slurm/slurmctld.stopped"
PLUG = """
import fcntl, socket, struct, sys
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def flags(call, value):
    return struct.unpack("16sh", fcntl.ioctl(any_socket, call, struct.pack("16sh", b"eth0", value)))[1]
now = flags(SIOCGIFFLAGS, 0)
flags(SIOCSIFFLAGS, now | IFF_UP if sys.argv[1] == "up" else now & ~IFF_UP)
"""


def wait_until(
    condition: Callable[[], object], what: str | Callable[[], str], limit_s: float = 180
) -> None:
    """Wait for a condition; where it stays away the test fails with ``what``.

    Slurm is slow where hosts fail: a node that had been cut off took 80 s to be used again.
    """
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"within {limit_s:.0f} s: {what() if callable(what) else what}")
        time.sleep(0.3)
