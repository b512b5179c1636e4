"""Jobs share a node live, by marks: a pair comes about, a bad one is parted, none after a kill.

GPUs are fake, and their memory is what pliant.toml says of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from asking_helpers import answer_of, ask, wait_for_look
from daemon_helpers import LONG
from release_helpers import Release, from_on
from slurm_helpers import Submit, WaitForState, wait_until

from limits import HANG_S
from pliant.daemon import answers as a
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "sharing_program.py"
Show = Callable[[int | str], dict[str, str]]
Works = Callable[..., int]


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four CPUs, which two jobs may share, under a policy that learns."""
    options = Options(
        nodes=2, gpus=1, shards=4, cpus=4, users=users, policy="cosched-ucb", gpu_memory="40G"
    )
    made = Sandbox(f"pytest-sharing-{os.getpid()}", options)
    made.up()
    words = ("Nodes=ALL", "OverSubscribe=YES:2", "DefaultTime=10", "MaxTime=60")
    made.run(["scontrol", "create", "PartitionName=sharing", *words], check=True)
    wait_for_look(made)
    yield made
    made.down()


@dataclass(frozen=True)
class Case:
    """The cluster, and what a test does there."""

    sandbox: Sandbox
    works: Works
    submit: Submit
    wait_for_state: WaitForState
    show: Show
    folder: Path

    def fill(self) -> int:
        """Let a job that agrees to nothing hold a node."""
        whole = ("--partition=sharing", "-c4", "--mem=100", "--time=60")
        job = self.submit(*whole, script=LONG)
        self.wait_for_state(job, "RUNNING")
        return job

    def alone(self, kind: str, *options: str) -> int:
        """Start a job called ``first`` that nobody will join: without a mark.

        A look of pliantd between its submission and its start would mark it.
        """
        assert answer_of(self.sandbox, "pause").is_ok
        job = self.works(kind, "first", *AGREES, *options)
        self.wait_for_state(job, "RUNNING")
        assert answer_of(self.sandbox, "resume").is_ok
        assert self.mark(job) != "YES"
        return job

    def end(self, *names: str) -> None:
        """Let programs end."""
        for name in names:
            (self.folder / f"end-{name}").touch()

    def mark(self, job: int) -> str:
        """Return what Slurm says: YES with a mark, NO once it was taken back."""
        return self.show(job)["OverSubscribe"]

    def node(self, job: int) -> str:
        """Return where a job runs."""
        return self.show(job)["NodeList"]

    def state(self, job: int) -> str:
        """Return a job's state."""
        return self.show(job)["JobState"]

    def is_measured(self, job: int) -> bool:
        """Whether it is known how fast it is alone."""
        answer = answer_of(self.sandbox, "why", job=str(job))
        assert self.state(job) == "RUNNING"
        return answer.is_ok and "its speed alone is known" in answer.fields["json"]


@pytest.fixture
def works(submit: Submit, workdir: Path, programs: Path) -> Works:
    """Submit a job that takes a whole node and tells its steps; ``name`` is what ends it."""
    shutil.copy(PROGRAM, workdir)

    def begun(kind: str, name: str, *options: str) -> int:
        script = (
            f"exec {programs}/pliant run -- {programs}/python sharing_program.py "
            f"{kind} {workdir} {name}"
        )
        whole = ("--partition=sharing", "-c4", "--mem=100", f"--job-name={kind}")
        return submit(*whole, "--open-mode=append", *options, script=script)

    return begun


AGREES = ("--colocate", "--malleable=grace=30s")


@pytest.fixture
def case(
    *,
    clean: Sandbox,
    works: Works,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Show,
    workdir: Path,
) -> Case:
    """All of it."""
    return Case(clean, works, submit, wait_for_state, show, workdir)


def test_a_pair_comes_about_and_one_that_is_slow_is_parted(case: Case) -> None:
    first = case.alone("heavy")
    other = case.fill()
    pair = [case.works("heavy", name, *AGREES) for name in ("one", "two")]
    plain = case.works("heavy", "plain")
    wait_until(partial(case.is_measured, first), "the first to be measured alone")
    wait_until(lambda: case.mark(pair[1]) == "YES", "a mark")
    assert case.mark(plain) == "OK"
    case.end("first")
    for job in pair:
        case.wait_for_state(job, "RUNNING")
    assert {case.node(job) for job in pair} == {"n1", "n2"} - {case.node(other)}

    def left() -> list[int]:
        return [job for job in pair if case.show(job)["Restarts"] == "1"]

    case.sandbox.run(["scancel", str(other)], check=True)
    case.wait_for_state(plain, "RUNNING")  # it is its turn: nobody leaves the pair for that node
    assert (left(), case.mark(plain)) == ([], "OK")
    assert case.node(plain) != case.node(pair[0])
    case.sandbox.run(["scancel", str(plain)], check=True)
    wait_until(lambda: left() != [], "the pair to be parted")
    (leaves,) = left()  # the later one, as soon as it may be asked; else the other
    (stays,) = {*pair} - {leaves}
    case.wait_for_state(leaves, "RUNNING")
    assert case.mark(leaves) == "NO"
    assert case.state(stays) == "RUNNING"
    assert case.node(leaves) != case.node(stays)
    told = ask(case.sandbox, a.HistoryAnswer, "history", job=str(leaves))
    assert f"it is parted from job {stays}" in told.handovers[0].reason


def test_once_pliantd_is_killed_no_pair_comes_about_and_nothing_is_stuck(case: Case) -> None:
    first = case.alone("light")
    case.fill()
    one, two, three = (case.works("light", name, *AGREES) for name in ("one", "two", "three"))
    wait_until(partial(case.is_measured, first), "the first to be measured alone")
    wait_until(lambda: case.mark(two) == "YES", "a mark")
    case.end("first")
    for job in (one, two):
        case.wait_for_state(job, "RUNNING")
    wait_until(lambda: case.mark(three) == "YES", "the next one's mark")

    case.sandbox.signal("pliantd", signal.SIGKILL)
    _as_its_unit_does(case.sandbox)
    assert case.mark(three) == "NO"
    case.end("two")
    case.wait_for_state(two, "COMPLETED")
    later = case.works("light", "later", *AGREES)
    _wait_for_backfill(case.sandbox)
    assert [case.state(job) for job in (one, three, later)] == ["RUNNING", "PENDING", "PENDING"]
    case.end("one", "three", "later")
    for job in (one, three, later):
        case.wait_for_state(job, "COMPLETED")


def test_two_share_a_gpu_that_has_the_memory_for_both(case: Case, release: Release) -> None:
    def half(gib: int) -> tuple[str, ...]:
        return ("--gres=shard:2", f"--moldable=gpus=1/2,gpu-mem={gib}G", *AGREES)

    first = case.alone("light", *half(20))
    case.fill()
    pair = [case.works("light", name, *half(20)) for name in ("one", "two")]
    large = case.works("light", "large", *half(21))
    wait_until(partial(case.is_measured, first), "the first to be measured alone")
    wait_until(lambda: case.mark(pair[1]) == "YES", "a mark")
    case.end("first")
    for job in pair:
        case.wait_for_state(job, "RUNNING")
    assert case.node(pair[0]) == case.node(pair[1])
    given = [case.show(job)["GRES"] for job in pair]
    one_gpu = from_on({"22.05": "(IDX:0)", "24.11": "(2/4)"}, release)
    assert given == [given[0]] * 2 and given[0].endswith(one_gpu)
    assert (case.mark(large), case.state(large)) == ("OK", "PENDING")


def _as_its_unit_does(sandbox: Sandbox) -> None:
    """What systemd runs once pliantd is gone, however it went (ExecStopPost)."""
    pliantd = Path(sys.executable).with_name("pliantd")
    argv = [str(pliantd), "--config", str(sandbox.layout.pliant_toml), "--unmark"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=True)
    assert "starts beside nobody" in done.stdout


def _wait_for_backfill(sandbox: Sandbox) -> None:
    """Wait until Slurm has looked twice at all that waits."""

    def passes() -> int:
        told = sandbox.run(["sdiag"], check=True).stdout.partition("Backfilling stats")[2]
        return int(told.partition("Total cycles:")[2].split()[0])

    before = passes()
    wait_until(lambda: passes() >= before + 2, "two passes of backfill")
