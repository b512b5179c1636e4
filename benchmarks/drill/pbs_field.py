"""Where PBS's faults are tried: a server that the environment points at, as in tests/pbs_server.

PLIANT_PBS_BIN: where its commands lie, on the server's own host; PLIANT_PBS_USER: a user whose jobs
may run. It has one node with four GPUs and four cores, whose pbs_mom runs here too, and no jobs;
munge, and /etc/pliant/pliant.toml with ``batch = "pbs"`` and ``listen = "0.0.0.0:6830"``. Pliant is
installed into it, and taken out again.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import os
import pwd
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.drill.field import COME_S, GPUS, SHAPES, Admin, Field, runs
from benchmarks.drill.installing import script
from pliant.batch.pbs.job_rows import DELETES
from pliant.errors import Unavailable
from pliant.filter.pbs.fences import read_fences

NAMES = ("PLIANT_PBS_BIN", "PLIANT_PBS_USER")
PORT = 6830
STATE_FILE = Path("/run/pliant-drill/pbs_state.json")
SELECT = f"select=1:ncpus=1:ngpus={GPUS}"
_STATES = {"R": "RUNNING", "E": "COMPLETING", "S": "SUSPENDED", "U": "SUSPENDED"}
_PROCESSES = {"pbs_server": "pbs_server.bin"}
_DELETED, _STARTING = 91, 41
"""Substates: qstat's, of a job that was deleted, and of one of which its nodes are being told."""
ROUNDED_S = 2.0
EMPTY_S = 30.0
"""How long a job may be said to run of which nothing does."""
AGAIN_S = 30.0
"""How long a job that was deleted has to end."""
HOOK_S = 60.0
"""So long after it went back our hook lets a job begin (wait_s)."""
FAR_S = 10.0
"""No time to begin of a hand-over's is so far ahead."""
_TOML = """\
[daemon]
batch = "pbs"
socket = "{directory}/pliantd.sock"
state_dir = "{directory}/state"
listen = "0.0.0.0:{port}"
cycle_s = 1.0
policy = "easy-backfill"
[policy]

[pbs]
bin_dir = "{bin_dir}"
state = "{state_file}"
[partitions]
default = "enforce"
"""


def server_here() -> str:
    """Return which release of PBS it is."""
    argv = [f"{os.environ[NAMES[0]]}/qstat", "--version"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.rpartition("=")[2].strip()


@dataclass(slots=True)
class PbsAdmin(Admin):
    """``hurries``: no job waits for a time to begin that our hook gave it when it went back.

    A pbs_mom that is killed as a job starts may know nothing of it afterwards: PBS shows that it
    runs, for ever, and `qrerun` alone gets no answer.
    """

    area: PbsField
    hurries: bool = False
    did: int = 0
    late: str = ""
    _hurried: set[tuple[str, str]] = field(default_factory=set)
    _empty_s: dict[str, float] = field(default_factory=dict)  # since when nothing of it runs

    def tend(self) -> Sequence[Mapping[str, str]]:
        """Do what is to be done now; return what is shown of the job and its guest."""
        every = {job: self.area.show(job) for job in (self.area.job, self.area.guest) if job}
        for job, shown in every.items():
            self._rerun(job, shown)
            start = (job, shown.get("Execution_Time", ""))
            ahead_s = _instant(start[1]) - time.time() if shown.get("job_state") == "W" else 0.0
            far = ahead_s > FAR_S
            if ahead_s > HOOK_S + ROUNDED_S:
                self.late = f"it begins at {start[1]}, in {ahead_s:.0f} s"
            waits = self.hurries and far and start not in self._hurried
            if waits and not self.area.is_under_way():
                self.area.tell("qalter", "-a", f"{datetime.now(UTC):%Y%m%d%H%M.%S}", job)
                self._hurried.add(start)
        return [*every.values()]

    def _rerun(self, job: str, shown: Mapping[str, str]) -> None:
        """Send one back by force of which nothing runs, though it is said to."""
        now_s = time.monotonic()
        if shown.get("job_state") != "R" or _processes_of(job):
            self._empty_s.pop(job, None)
        elif now_s - self._empty_s.setdefault(job, now_s) > EMPTY_S:
            is_deleted = DELETES in shown.get("comment", "")  # by its user, too
            self.area.tell("qdel" if is_deleted else "qrerun", "-W", "force", job)
            self._empty_s.pop(job)
            self.did += 1


@dataclass(slots=True)
class PbsField(Field):
    """The server, and the jobs of one run in it; ``directory``: what pliantd has."""

    directory: Path = Path()
    bin_dir: str = ""
    user: str = ""
    started_s: float = 0.0  # the last pliantd
    _cancelled_s: dict[str, float] = field(default_factory=dict)  # each job, last

    @classmethod
    @contextlib.contextmanager
    def up(cls, lib: Path, _number: int) -> Iterator[Field]:
        """Install Pliant there for as long as it takes."""
        missing = [name for name in NAMES if name not in os.environ]
        if missing:
            raise Unavailable(f"no PBS is pointed at: {', '.join(missing)} is not set")
        bin_dir, user = (os.environ[name] for name in NAMES)
        with tempfile.TemporaryDirectory(prefix="pliant-drill-pbs-") as directory:
            made = cls(lib, directory=Path(directory), bin_dir=bin_dir, user=user)
            made.directory.chmod(0o755)
            for name in ("log", "state"):
                (made.directory / name).mkdir()
            words = {"directory": directory, "port": PORT, "bin_dir": bin_dir}
            made.toml.write_text(_TOML.format(**words, state_file=STATE_FILE))
            made.pliant("install", "pbs", "--apply")
            try:
                yield made
            finally:
                made.clear()
                made.pliant("install", "pbs", "--remove")

    # --- pliantd ---------------------------------------------------------------------------------

    @property
    def toml(self) -> Path:
        """The file pliant.toml."""
        return self.directory / "pliant.toml"

    @property
    def state(self) -> Path:
        """Where pliantd keeps its store."""
        return self.directory / "state"

    @property
    def logs(self) -> Path:
        """Where pliantd logs."""
        return self.directory / "log"

    @property
    def door(self) -> tuple[int, str]:
        """The port at which pliantd answers, and munge's usual socket."""
        return PORT, ""

    def spawn(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start pliantd so."""
        self.started_s = time.time()
        with (self.logs / "pliantd.out").open("ab") as out:
            return subprocess.Popen(argv, env={**os.environ, **env}, stdout=out, stderr=out)

    def pliant(self, *words: str) -> None:
        """Run `pliant` as root, here."""
        argv = [sys.executable, "-c", "from pliant.cli import main; main()", *words]
        argv += ["--record", str(self.directory / "record")]
        env = {**os.environ, "PLIANT_CONFIG": str(self.toml)}
        subprocess.run(argv, env=env, capture_output=True, timeout=120, check=True)

    def answers(self) -> bool:
        """Whether the hooks know what pliantd has seen since it started."""
        return STATE_FILE.exists() and STATE_FILE.stat().st_mtime > self.started_s

    # --- daemons ---------------------------------------------------------------------------------

    def pid(self, part: str) -> int | None:
        """Return the process of a daemon that runs; children of a pbs_mom have its name, too."""
        if part == "pliantd":
            return self.daemon.pid if self.daemon else None
        name = _PROCESSES.get(part, part)
        some = [one for one in psutil.process_iter(["name"]) if one.info["name"] == name]
        alive = [one for one in some if runs(one)]
        return min(alive, key=lambda one: float(one.create_time())).pid if alive else None

    def start(self, part: str, *how: str) -> None:
        """Start a daemon that died."""
        argv = [f"{self.bin_dir}/../sbin/{part}", *how]
        subprocess.run(argv, capture_output=True, timeout=COME_S, check=False)

    def resume_nodes(self) -> int:
        """Take nodes back that are offline; return how many."""
        tired = [
            line.split()[0] for line in self.out("pbsnodes", "-l").splitlines() if "offline" in line
        ]
        for node in tired:
            self.tell("pbsnodes", "-r", node)
        return len(tired)

    def nodes(self) -> Sequence[str]:
        """Return all vnodes."""
        return [*json.loads(self.out("pbsnodes", "-a", "-v", "-F", "json"))["nodes"]]

    def admin(self, *, hurries: bool = False) -> PbsAdmin:
        """Return who looks after the jobs."""
        return PbsAdmin(self, hurries)

    def has_forgotten_a_run(self, _shown: Mapping[str, str]) -> bool:
        """Whether a pbs_server that was killed has forgotten that the job runs, and sent it back.

        It then has pbs_mom discard that run.
        """
        discards = f";{self.job};Discard running job"
        days = sorted((_home() / "server_logs").iterdir())[-2:]
        return any(discards in day.read_text(errors="replace") for day in days)

    # --- commands --------------------------------------------------------------------------------

    def run(self, *argv: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run one of PBS's commands, as root or as a user."""
        who: dict[str, Any] = {}
        if user:
            found = pwd.getpwnam(user)
            who = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        return subprocess.run(
            [f"{self.bin_dir}/{argv[0]}", *argv[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={**os.environ, "TZ": "UTC"},
            timeout=60,
            **who,
        )

    def tell(self, *argv: str, user: str | None = None) -> str:
        """Have something done; return what was complained of."""
        done = self.run(*argv, user=user)
        return done.stderr.strip() if done.returncode else ""

    def out(self, *argv: str) -> str:
        """Ask something; "" where nobody answers."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.run(*argv).stdout
        return ""

    # --- jobs ------------------------------------------------------------------------------------

    def submit(self, how: Sequence[str], *, best_effort: bool, grace_s: int) -> None:
        """Submit the job that counts."""
        what = "job_class=best-effort" if best_effort else f"moldable=gpus={':'.join(SHAPES)}"
        lines = f"exec >>{self.place}/out 2>&1\n{script(self.lib, self.place)}"
        words = ("-l", "walltime=30:00", "-l", what, "-l", f"malleable=grace={grace_s}")
        self.job = self._qsub(self.user, lines, *words, *how)

    def submit_rival(self) -> None:
        """Submit who waits for all GPUs."""
        self.rival = self._qsub(self.user, "sleep 600", "-l", "walltime=20:00")

    def submit_guest(self) -> None:
        """Submit a trial job that needs as many."""
        trial = ("-l", "job_class=trial", "-l", "walltime=2:00")
        self.guest = self._qsub(self.user, "sleep 2", *trial)

    def _qsub(self, user: str, lines: str, *words: str) -> str:
        file = self.place / "job.sh"
        file.write_text(f"#!/bin/sh\n{lines}\n")
        out = ("-j", "oe", "-o", "/dev/null")
        done = self.run("qsub", "-l", SELECT, *out, *words, str(file), user=user)
        if done.returncode:
            raise Unavailable(f"qsub: {done.stderr.strip()}")
        return done.stdout.strip()

    def show(self, job: str) -> Mapping[str, str]:
        """Return a job's fields as qstat has them, and some as Slurm would name them."""
        try:
            told = json.loads(self.out("qstat", "-x", "-f", "-F", "json", job))["Jobs"][job]
        except (ValueError, KeyError):
            return {}
        asked = told.pop("Resource_List", {})
        shown = {**told, **{f"Resource_List.{name}": value for name, value in asked.items()}}
        shown |= {
            "JobId": job,
            "JobState": _state(told),
            "Reason": told.get("comment", ""),
            "Restarts": told.get("run_count", 0),
            "TresPerNode": f"gpu:{asked.get('ngpus', 0)}",
            "EligibleTime": told.get("Execution_Time", ""),
            "TimeLimit": asked.get("walltime", ""),
        }
        return {name: str(value) for name, value in shown.items()}

    def gpus(self) -> int:
        """Return how many GPUs the job asks for."""
        return int(self.show(self.job)["Resource_List.ngpus"])

    def cancel(self, job: str, user: str | None = None) -> None:
        """End a job, and give it time: at each qdel pbs_mom begins anew, and never comes to it."""
        now_s = time.monotonic()
        if now_s - self._cancelled_s.get(job, -AGAIN_S) >= AGAIN_S:
            self._cancelled_s[job] = now_s
            self.tell("qdel", job, user=user)

    # --- what is left ----------------------------------------------------------------------------

    def fences(self) -> int:
        """How many fences of Pliant's stand."""
        path, now_s = STATE_FILE.with_name("pbs_fences.json"), time.time()
        some = read_fences(path.read_text()) if path.exists() else ()
        return sum(one.stands(now_s) for one in some)

    def pins(self, *jobs: str) -> int:
        """How many of these jobs are held by our hook, which nobody would end; "": no job."""
        shown = [self.show(job) for job in jobs if job]
        return sum("s" in one.get("Hold_Types", "") for one in shown)

    @staticmethod
    def is_held(shown: Mapping[str, str]) -> bool:
        """Whether a job of which this is shown is held by its owner."""
        return "u" in shown.get("Hold_Types", "")

    def clear(self) -> None:
        """End all jobs; what one has that is deleted by force as it starts is never free again."""

        def jobs() -> Mapping[str, Mapping[str, Any]]:
            told = json.loads(self.out("qstat", "-x", "-f", "-F", "json"))
            return dict(told.get("Jobs", {}))

        def all_gone() -> bool:
            """One that is ending is refused, and is history then: it is deleted once more."""
            for job in jobs():
                self.tell("qdel", "-W", "force", "-x", job)
            return not jobs()

        self.tell("qmgr", "-c", "set server scheduling = False")
        try:
            self.wait(
                lambda: all(one.get("substate") != _STARTING for one in jobs().values()),
                "no job to be starting",
                COME_S,
            )
            self.wait(all_gone, "all jobs to end", COME_S)
        finally:
            self.tell("qmgr", "-c", "set server scheduling = True")
        self.rival = self.guest = ""


def _home() -> Path:
    """Return where PBS keeps what it knows and logs, as pbs.conf(8) says."""
    conf = Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")).read_text()
    said = dict(line.split("=", 1) for line in conf.splitlines() if "=" in line)
    return Path(said["PBS_HOME"])


def _processes_of(job: str) -> Sequence[psutil.Process]:
    """Return what runs of a job, by what PBS gives each of its processes."""
    some = psutil.process_iter(["environ"])
    return [one for one in some if (one.info["environ"] or {}).get("PBS_JOBID") == job]


def _instant(text: str) -> float:
    """Read an instant of qstat's, whose commands run in UTC."""
    return calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y"))


def _state(told: Mapping[str, Any]) -> str:
    """Return a job's state in Slurm's words."""
    if told["job_state"] not in "FX":
        return _STATES.get(told["job_state"], "PENDING")
    if told.get("substate") == _DELETED:
        return "CANCELLED"
    return "COMPLETED" if told.get("Exit_status") == 0 else "FAILED"
