"""Jobs on a sandbox: what is submitted, and what is seen of it until all have ended."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pliant.sandbox import Sandbox

STAND_IN = Path(__file__).with_name("stand_in.py")
LOOK_S = 0.2
ENDED = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"}
)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a program's log; ``lost``: steps that are to be made again."""

    what: str  # start, saved, end
    at_s: float
    step: int = 0
    gpus: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A state of a job that was seen first at ``at_s``, seconds since the epoch."""

    at_s: float
    state: str


@dataclass(slots=True)
class Seen:
    """What was seen of one job."""

    submit_s: float
    changes: list[Change] = field(default_factory=list)
    restarts: int = 0

    @property
    def state(self) -> str:
        """The last one."""
        return self.changes[-1].state if self.changes else "PENDING"

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self.state in ENDED


class Jobs:
    """The jobs of one cluster, by Slurm's number."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.seen: dict[int, Seen] = {}
        self.place = sandbox.layout.top / "live"
        self.place.mkdir()

    def submit(self, script: str, *options: str) -> int:
        """Submit a batch script; return the job's number."""
        argv = ["sbatch", "--parsable", f"--output={self.place}/%j.out", *options]
        at_s = time.time()
        done = self.sandbox.run(argv, stdin=f"#!/bin/bash\n{script}\n", check=True)
        job = int(done.stdout)
        self.seen[job] = Seen(at_s)
        return job

    def look(self) -> None:
        """Note what has changed."""
        argv = ["squeue", "-h", "-t", "all", "-O", "JobID:12,State:16,RestartCnt:8"]
        told = self.sandbox.run(argv).stdout
        at_s = time.time()
        for line in told.splitlines():
            job, state, restarts = line.split()
            seen = self.seen.get(int(job))
            if seen is not None:
                seen.restarts = int(restarts)
                if seen.state != state or not seen.changes:
                    seen.changes.append(Change(at_s, state))

    def wait(self, deadline_s: float) -> bool:
        """Look until all have ended; return whether they have by ``deadline_s``."""
        while not all(seen.is_over for seen in self.seen.values()):
            if time.time() > deadline_s:
                return False
            time.sleep(LOOK_S)
            self.look()
        return True

    def file(self, name: str) -> Path:
        """Return where a program keeps what it saves."""
        return self.place / name

    def events(self, name: str) -> list[Event]:
        """Return what a program has logged."""
        path = self.place / f"{name}.log"
        return [*read_log(path.read_text())] if path.exists() else []


def read_log(text: str) -> Iterator[Event]:
    """Read a program's log; a line that is not whole is left out."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5:
            what, at_s, step, gpus, lost = words
            yield Event(what, float(at_s), int(step), int(gpus), int(lost))


def training(
    file: Path, steps: int, speeds: Sequence[float], launch_s: float, save_s: float
) -> str:
    """Return the command that runs the stand-in for training."""
    asked: Mapping[str, object] = {
        "steps": steps,
        "speeds": list(speeds),
        "launch_s": launch_s,
        "save_s": save_s,
        "file": str(file),
    }
    return shlex.join([sys.executable, str(STAND_IN), json.dumps(asked)])
