"""What the tests on a real Slurm say to each other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from limits import HANG_S
from pliant.batch.slurm import Commands, Native, Slurm, Worker
from pliant.sandbox import Sandbox

POLL_S = 0.1
ACCESS = os.environ.get("PLIANT_TEST_ACCESS", "commands")
"""``native``: the tests of the adapter ask pyslurm where it fits, as pliant.toml can choose."""


def adapter(sandbox: Sandbox, *, access: str = ACCESS, timeout_s: float = 10.0) -> Slurm:
    """Return the adapter under test for a sandbox."""
    path = {"PATH": sandbox.env["PATH"]}
    commands = Commands(conf=sandbox.env["SLURM_CONF"], timeout_s=timeout_s, env=path)
    worker = Worker(commands.environment({}), timeout_s)
    return Slurm(commands, native=Native(worker) if access == "native" else None)


class Submit(Protocol):
    """`submit("--gres=gpu:2", script="sleep 5", user="pliant-alice")` returns the job's id."""

    def __call__(self, *options: str, script: str = ..., user: str | None = ...) -> int: ...


class WaitForState(Protocol):
    """`wait_for_state(job, "COMPLETED")`; states as squeue's %T, several joined by `|`."""

    def __call__(self, job: int | str, states: str) -> str: ...


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Ask again and again until it is so; fail after the time limit."""
    deadline = time.monotonic() + HANG_S
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {HANG_S:g} s for {what}")
        time.sleep(POLL_S)


def restart_with(sandbox: Sandbox, changes: Mapping[str, str]) -> None:
    """Replace words of slurm.conf, start Slurm anew, and wait until all its nodes are idle.

    Raises Unavailable with what a part that does not come up says in its log.
    """
    nodes = sandbox.record.options.nodes
    parts = ("slurmctld", *(f"slurmd-n{number + 1}" for number in range(nodes)))
    for part in parts:
        sandbox.stop(part)
    path = sandbox.layout.slurm_conf
    text = path.read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    for part in parts:
        sandbox.start(part)

    def all_idle() -> bool:
        states = sandbox.run(["sinfo", "-h", "-N", "-p", "gpu", "-o", "%T"]).stdout.split()
        return set(states) == {"idle"}

    wait_until(all_idle, "the nodes")
