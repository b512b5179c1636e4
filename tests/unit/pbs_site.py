"""What the hooks for PBS find where they run: a state file, a configuration, a job."""

from __future__ import annotations

import json
import os
import time
import types
from functools import cache
from pathlib import Path
from typing import Any

from pbs_double import Event, Job, Pbs, run
from pliant.filter.pbs.state import (
    Ground,
    Room,
    State,
    state_text,
)
from pliant.grammar import find_token, spec_text
from pliant.hooks import hook_text
from pliant.model import Mode

QUEUE = Ground(
    kinds=(Room(4, 4, 64, 256_000, "a100"),),
    rooms=(Room(1, 2, 32, 128_000, "a100"), Room(2, 1, 16, 64_000, "a100")),
)
ASKED = {"select": "1:ncpus=8:ngpus=1:mem=16gb", "moldable": "gpus=1-4"}


@cache
def hook(name: str) -> types.CodeType:
    return compile(hook_text(name), f"<{name}>", "exec")


class Site:
    """A state file and a configuration, as pliantd and the installer write them."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / "pbs_state.json"
        self.taken = directory / "pbs_taken"
        self.config = directory / "hook.json"
        self.options: dict[str, object] = {}
        self.limits: dict[str, dict[str, Any]] = {}  # the server's ("") and queues'
        self.says()

    def says(self, mode: Mode = Mode.ENFORCE, age_s: float = 0.0, **more: Any) -> None:
        queues = (("workq", QUEUE),)
        said = State(time.time() - age_s, mode, default_queue="workq", queues=queues)
        self.write(state_text(State(**{**{n: getattr(said, n) for n in said.__slots__}, **more})))

    def write(self, text: str) -> None:
        self.state.unlink(missing_ok=True)
        self.state.write_text(text)
        self.state.chmod(0o644)

    def forget(self) -> None:
        """Let nobody have been submitted or started so far."""
        self.taken.unlink(missing_ok=True)

    def configured(self) -> str:
        files = {"state": str(self.state), "taken": str(self.taken)}
        said = {**files, "owner": os.geteuid(), **self.options}
        self.config.write_text(json.dumps(said))
        self.config.chmod(0o644)
        return str(self.config)

    def queuejob(self, resources: dict[str, Any], *, alarm_at: int = 0, **job: Any) -> Seen:
        return self.seen("queuejob", Job("queuejob", resources, **job), alarm_at=alarm_at)

    def seen(self, name: str, job: Job, *, alarm_at: int = 0, **more: Any) -> Seen:
        pbs = Pbs(Event(name, job=job, **more), config=self.configured(), limits=self.limits)
        return Seen(run(hook(name), pbs, alarm_at), job, pbs)


class Seen:
    """What a hook said, and the job after it."""

    def __init__(self, verdict: tuple[str, str], job: Job, pbs: Pbs) -> None:
        self.verdict = verdict
        self.pbs = pbs
        self.job: Any = job
        values = job.Resource_List.values
        self.resources = {name: str(v) for name, v in values.items() if v is not None}
        self.variables = {n: v for n, v in self.job.Variable_List.items() if "PBS_O_" not in n}
        found = find_token(self.resources.get("pliant", ""))
        self.token = spec_text(found) if found else ""
