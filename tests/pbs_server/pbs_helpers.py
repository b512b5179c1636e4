"""What the tests do with a running PBS."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S
from pliant.filter.pbs.fences import Fence, read_fences
from pliant.filter.pbs.state import MAX_AGE_S

NAMES = ("PLIANT_PBS_BIN", "PLIANT_PBS_USER", "PLIANT_PBS_HOME", "PLIANT_PBS_PLIANT")
SHARE, TYPE = "gpu_share", "gpu_model"
"""Resources that only some of the tests need, and that a site may have."""
STARTING = 41
"""A job's substate while its nodes are told of it."""
CYCLE_S = 1.0
FENCED = "the fence stands"
"""One of the steps after which pliantd is killed; the others are what its log says."""
PROGRAM = """\
import json, os, pathlib, sys, time
import pliant  # as pliant run lets it be found
directory = pathlib.Path(os.environ["PLIANT_CHECKPOINT_DIR"])
directory.mkdir(exist_ok=True)
kept, log = directory / "step.json", open(directory / "log", "a")
step = json.loads(kept.read_text()) if kept.exists() else 0
says = {name: os.environ.get("PLIANT_" + name) for name in ("SHAPE", "GPUS", "RESTART_COUNT")}
print(json.dumps({"start": step, **says}), file=log, flush=True)
while not (directory / "enough").exists():
    time.sleep(0.2)
    step += 1
    pliant.heartbeat(step)
    print(json.dumps({"step": step}), file=log, flush=True)
    if pliant.checkpoint_wanted():
        kept.write_text(json.dumps(step))
        sys.exit(85)
"""


def needs_server() -> None:
    """Skip a module where no server is pointed at; all from one place, so that it is one line."""
    if not all(os.environ.get(name) for name in NAMES):
        pytest.skip(f"no PBS is pointed at: {', '.join(NAMES)}", allow_module_level=True)


def until(what: Callable[[], Any]) -> Any:
    """Wait for something to be true, and return it."""
    end_s = time.monotonic() + HANG_S
    while time.monotonic() < end_s:
        found = what()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"it has not come true within {HANG_S:g} s: {what()}")


class Server:
    """A running PBS, its user, and our pliantd."""

    def __init__(self, bin_dir: str, user: str, home: str, pliant: str) -> None:
        self.bin_dir, self.user, self.home, self.on_nodes = bin_dir, user, Path(home), pliant
        self.directory = Path()
        self._daemon: subprocess.Popen[bytes] | None = None

    # --- commands --------------------------------------------------------------------------

    def run(self, *argv: str, user: str = "", check: bool = True) -> str:
        """Run one of PBS's commands, as root or as ``user``."""
        who: dict[str, Any] = {}
        if user:
            found = pwd.getpwnam(user)
            who = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
        done = subprocess.run(
            [f"{self.bin_dir}/{argv[0]}", *argv[1:]],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
            timeout=60,
            env={**os.environ, "TZ": "UTC", "HOME": str(self.home)},
            **who,
        )
        assert not check or not done.returncode, done.stderr
        return str(done.stderr if done.returncode else done.stdout)

    def says(self) -> str:
        """Return all that qmgr prints of the server."""
        return "".join(
            self.run("qmgr", "-c", f"print {kind}") for kind in ("server", "resource", "hook")
        )

    def jobs(self, *words: str) -> dict[str, Any]:
        """Return all jobs as qstat has them; ``-x``: also those that have ended."""
        jobs: dict[str, Any] = json.loads(self.run("qstat", *words, "-f", "-F", "json")).get(
            "Jobs", {}
        )
        return jobs

    def job(self, job_id: str) -> dict[str, Any]:
        """Return one job, also one that has ended where the server remembers it."""
        found: dict[str, Any] = self.jobs("-x").get(job_id, {})
        return found

    def submit(self, script: str, *words: str) -> str:
        """Submit a script as the user; return the job's id."""
        file = self.home / "job.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        return self.run("qsub", *words, str(file), user=self.user).strip()

    def empty(self) -> None:
        """End all jobs, and forget those that have ended.

        What one has that is deleted by force while it starts is never free again (OpenPBS 23.06).
        """
        self.run("qmgr", "-c", "set server scheduling = False")
        try:
            until(lambda: not any(one.get("substate") == STARTING for one in self.jobs().values()))
            for job_id in self.jobs("-x"):
                self.run("qdel", "-W", "force", "-x", job_id, check=False)
            until(lambda: not self.jobs())
        finally:
            self.run("qmgr", "-c", "set server scheduling = True")
        if self._daemon is not None:
            self.until_seen()

    def until_seen(self) -> None:
        """Wait until the hooks are told of what is free now: after a whole look since."""
        since_s = time.time() + 2 * CYCLE_S
        until(lambda: self.state_file.stat().st_mtime > since_s)

    def until_old(self) -> None:
        """Wait until the hooks do not believe any more what pliantd told them last."""
        until(lambda: time.time() > self.state_file.stat().st_mtime + MAX_AGE_S + 1)

    def nodes(self) -> dict[str, Any]:
        """Return all vnodes as pbsnodes has them."""
        found: dict[str, Any] = json.loads(self.run("pbsnodes", "-a", "-v", "-F", "json"))["nodes"]
        return found

    def takes(self, vnode: str, gpus: int, *words: str) -> str:
        """Take ``gpus`` of a vnode for 20 minutes; return the job's id."""
        asked = f"select=1:ncpus=1:ngpus={gpus}:vnode={vnode}"
        return self.submit("sleep 600", "-l", asked, *(words or ("-l", "walltime=20:00")))

    def fill(self, gpus: int = 4) -> list[str]:
        """Take ``gpus`` of every node, by one job on each."""
        jobs = [self.takes(name, gpus) for name in self.nodes()]
        self.run_all(*jobs)
        return jobs

    def vnode_of(self, job_id: str) -> str:
        """Return the first vnode of a job that runs."""
        return str(self.job(job_id)["exec_vnode"]).strip("(").split(":")[0]

    def run_all(self, *jobs: str) -> None:
        """Wait until some jobs run."""
        until(lambda: all(self.job(one).get("job_state") == "R" for one in jobs))

    def tell(self, *statements: str) -> None:
        """Tell qmgr something."""
        for statement in statements:
            self.run("qmgr", "-c", statement)

    # --- Pliant ----------------------------------------------------------------------------

    @property
    def env(self) -> dict[str, str]:
        """What our own commands find."""
        return {**os.environ, "PLIANT_CONFIG": str(self.directory / "pliant.toml")}

    def configure(self, directory: Path, policy: str = "moldable-equipartition") -> None:
        """Write pliant.toml; what the site has no resource for is not said."""
        self.directory = directory
        directory.chmod(0o755)
        created = self.run("qmgr", "-c", "print resource")
        known = (("type", TYPE), ("share", SHARE))
        (directory / "pliant.toml").write_text(
            "[daemon]\n"
            'batch = "pbs"\n'
            f'socket = "{directory}/pliantd.sock"\n'
            f'state_dir = "{directory}/state"\n'
            'listen = "0.0.0.0:6830"\n'
            f"cycle_s = {CYCLE_S}\n"
            f'policy = "{policy}"\n'
            "[pbs]\n"
            + "".join(f'{k}_resource = "{n}"\n' for k, n in known if f"resource {n}\n" in created)
            + 'gpu_vnode = "{host}-gpu{gpu}"\n'
            + f'bin_dir = "{self.bin_dir}"\n'
            f'state = "{self.state_file}"\n'
            "[partitions]\n"
            'default = "enforce"\n'
        )

    @property
    def state_file(self) -> Path:
        """What the hooks are told; where all but its owner may read alone."""
        return Path("/run/pliant-test/pbs_state.json")

    def pliant(self, *words: str, check: bool = True) -> str:
        """Run `pliant` here, as root."""
        record = ["--record", str(self.directory / "record")] if words[0] == "install" else []
        done = subprocess.run(
            [sys.executable, "-c", "from pliant.cli import main; main()", *words, *record],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=self.env,
        )
        assert not check or not done.returncode, done.stdout + done.stderr
        return done.stdout + ("" if check else done.stderr)

    def resize(self, job_id: str, shape: str) -> None:
        """Ask a running job for another shape, as soon as anything can be asked of it."""
        until(lambda: "to go on as" in self.pliant("resize", number(job_id), shape, check=False))

    def start_pliantd(self) -> None:
        """Start pliantd, and wait for its first look."""
        log, since_s = (self.directory / "log").open("ab"), time.time()
        self._daemon = subprocess.Popen(
            [sys.executable, "-m", "pliant.daemon.main"], env=self.env, stderr=log
        )
        until(lambda: self.state_file.exists() and self.state_file.stat().st_mtime >= since_s)

    def stop_pliantd(self, *, kill: bool = False) -> None:
        """End pliantd."""
        if self._daemon is not None:
            (self._daemon.kill if kill else self._daemon.terminate)()
            self._daemon.wait(60)
            self._daemon = None

    def logged(self) -> int:
        """Return how much pliantd has logged."""
        return len((self.directory / "log").read_text())

    def kill_after(self, step: str, lets: str, logged: int) -> bool:
        """Kill pliantd as soon as it has done a step since then; whether it has.

        ``lets``: the job that a fence lets in.
        """
        log, end_s = self.directory / "log", time.monotonic() + HANG_S
        while time.monotonic() < end_s:
            done = f": {step}\n" in log.read_text()[logged:]
            if self.fences(lets) if step == FENCED else done:
                self.stop_pliantd(kill=True)
                return True
            time.sleep(0.005)
        return False

    def fences(self, job_id: str) -> list[Fence]:
        """Return the fences that stand for a job."""
        path, now_s = self.state_file.with_name("pbs_fences.json"), time.time()
        some = read_fences(path.read_text()) if path.exists() else ()
        return [one for one in some if one.lets == (number(job_id),) and one.stands(now_s)]

    def halt_at_fence(self, job_id: str) -> None:
        """Halt pliantd as soon as a job's program has saved."""
        end_s = time.monotonic() + HANG_S
        while not self.fences(job_id):
            assert time.monotonic() < end_s, "nothing has saved"
            time.sleep(0.005)
        self.halt()

    def halt(self) -> None:
        """Halt pliantd: what it wrote last is believed for a while."""
        assert self._daemon
        self._daemon.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let pliantd go on."""
        assert self._daemon
        self._daemon.send_signal(signal.SIGCONT)

    def log(self, job_id: str) -> list[dict[str, Any]]:
        """Return what PROGRAM wrote in a job."""
        path = self.home / f"pliant-{number(job_id)}" / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def train(self, *words: str, program: str = PROGRAM, argv: Sequence[str] = ()) -> str:
        """Submit a job that counts steps, saves when it is asked, and goes on; return its id."""
        (self.home / "train.py").write_text(program)
        command = shlex.join([self.on_nodes, "run", "--", "python3", "train.py", *argv])
        return self.submit(f"cd {self.home} && exec {command}", *words)

    def enough(self, job_id: str, word: str = "enough") -> None:
        """Let such a job end by itself; ``word``: what else its program looks for."""
        (self.home / f"pliant-{number(job_id)}" / word).touch()


def number(job_id: str) -> str:
    """Return a job's id without its server."""
    found = re.match(r"[0-9]+", job_id)
    assert found
    return found[0]


def type_qsub(server: Server, *words: str, script: str) -> subprocess.CompletedProcess[str]:
    """Type `pliant qsub` as the user, with a script's name at the end."""
    found = pwd.getpwnam(server.user)
    file = server.home / "typed.sh"
    file.write_text(f"#!/bin/sh\n{script}\n")
    return subprocess.run(
        [server.on_nodes, "qsub", *words, str(file)],
        capture_output=True,
        text=True,
        check=False,
        cwd=server.home,
        timeout=60,
        env={
            "PATH": f"{server.bin_dir}:{os.environ['PATH']}",
            "HOME": str(server.home),
            "TZ": "UTC",
        },
        user=found.pw_uid,
        group=found.pw_gid,
        extra_groups=[],
    )
