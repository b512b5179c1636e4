"""What the tests of pliantd share: asking it, its configuration, and a cluster of one node."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from asking_helpers import answer_of, ask, wait_for_look
from lua_helpers import answered
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.lifecycle import PROTECTION
from pliant.sandbox import Sandbox

T = TypeVar("T")


def is_mature(sandbox: Sandbox, job: int | str) -> bool:
    """Whether it may be asked to save: not while it has just been launched."""
    runs = (told := _history(sandbox, job)) and told.runs
    if not runs or not runs[-1].launched_s:
        return False
    launch_s = runs[-1].launched_s - runs[-1].start_s
    return time.time() > runs[-1].launched_s + PROTECTION * launch_s


def has_saved(sandbox: Sandbox, job: int | str) -> bool:
    """Whether its program has made the checkpoint that it was asked for last."""
    told = _history(sandbox, job)
    return told is not None and bool(told.handovers) and told.handovers[-1].saved_s > 0


def _history(sandbox: Sandbox, job: int | str) -> a.HistoryAnswer | None:
    """What became of a job; None where pliantd has only begun, and looked at no job yet."""
    answer = answer_of(sandbox, "history", job=str(job))
    return a.from_json(a.HistoryAnswer, answer.fields["json"]) if answer.is_ok else None


def why(sandbox: Sandbox, job: int | str) -> a.WhyAnswer:
    """Ask why a job waits."""
    return ask(sandbox, a.WhyAnswer, "why", job=str(job))


@contextmanager
def configured(sandbox: Sandbox, **changes: str) -> Iterator[None]:
    """Let pliantd read a changed pliant.toml for a while: ``default='"observe"'`` and the like."""
    path = sandbox.layout.pliant_toml
    before = path.read_text()
    lines = before.splitlines()
    for key, value in changes.items():
        lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in lines]
    path.write_text("\n".join(lines) + "\n")
    try:
        sandbox.signal("pliantd", signal.SIGHUP)
        wait_for_look(sandbox)
        yield
    finally:
        path.write_text(before)
        sandbox.signal("pliantd", signal.SIGHUP)


@contextmanager
def slurm_says(sandbox: Sandbox, *lines: str) -> Iterator[None]:
    """Let slurm.conf say more for a while: ``PriorityType=priority/basic`` and the like.

    Of what it says twice the last counts.
    """
    path = sandbox.layout.slurm_conf
    before = path.read_text()

    def again() -> None:
        sandbox.restart("slurmctld")
        sandbox.signal("pliantd", signal.SIGHUP)
        wait_for_look(sandbox)

    path.write_text("\n".join((before, *lines, "")))
    try:
        again()
        yield
    finally:
        path.write_text(before)
        again()


LONG = "sleep 3600"


@dataclass(frozen=True)
class OneNode:
    """A cluster of one free node, n1 (four GPUs, 16 cores), and what a test does there."""

    sandbox: Sandbox
    submit: Submit
    wait_for_state: WaitForState
    show: Callable[[int | str], dict[str, str]]
    output: Callable[[int], str]

    def fill(self, gres: str, *options: str, time_min: int = 60) -> int:
        """Let a job of root run here that has some of the GPUs."""
        where = (f"--gres={gres}", "--nodelist=n1", f"--time={time_min}", "--mem=100")
        job = self.submit(*where, *options, script=LONG, user=None)
        self.wait_for_state(job, "RUNNING")
        return job

    def cancel(self, *jobs: int) -> None:
        """End jobs: what they had is free then."""
        ids = ",".join(map(str, jobs))
        self.run("scancel", *map(str, jobs))
        there = ("squeue", "-h", "-j", ids)
        wait_until(lambda: not self.sandbox.run(there).stdout, f"{ids} to leave the queue")

    def run(self, *argv: str, user: str | None = None) -> str:
        """Run a command that must work."""
        return self.sandbox.run(argv, user=user, check=True).stdout

    def wait_in_line(self, *options: str, script: str = "true") -> int:
        """Submit a job once pliantd knows what is free, and see it wait for resources."""
        wait_for_look(self.sandbox)
        job = answered(self.sandbox, lambda: self.submit("--time=10", *options, script=script))
        self.wait_for_reason(job, "Resources", "Priority")
        return job

    def wait_for_reason(self, job: int, *reasons: str) -> None:
        """Wait until Slurm says why a job waits."""
        wait_until(lambda: self.show(job)["Reason"] in reasons, f"job {job} to wait for {reasons}")

    def look(self) -> None:
        """Wait until pliantd has seen what is so now, and has done what it will do."""
        wait_for_look(self.sandbox)

    def gpus(self, job: int) -> str:
        """Return what a job asks for on each node: gres:gpu:2."""
        return self.show(job).get("TresPerNode", "")

    def states(self, *jobs: int) -> list[str]:
        """Return the states of jobs."""
        return [self.show(job)["JobState"] for job in jobs]

    def changed(self, job: int, before: dict[str, str]) -> set[str]:
        """Return the fields of a job that are not as before, but for what Slurm reckons anew."""
        after = self.show(job)
        names = {name for name in before | after if before.get(name) != after.get(name)}
        return names - {
            *("LastSchedEval", "StartTime", "EndTime", "SchedNodeList"),
            *("Reason", "Scheduler", "AccrueTime"),
        }
