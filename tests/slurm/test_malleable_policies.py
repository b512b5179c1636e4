"""Policies that change running jobs, live on a real Slurm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking_helpers import ask
from daemon_helpers import LONG
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

COUNT = Path(__file__).parents[2] / "docs" / "examples" / "count.py"
MALLEABLE = ("--malleable=grace=20", "--moldable=gpus=1:2:4", "--open-mode=append", "--time=30")


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """One node of four GPUs, divided among all jobs, whether it pays or not."""
    options = Options(
        nodes=1,
        gpus=4,
        users=users,
        policy="malleable-equipartition",
        policy_with={"pays": False, "least_left_s": 0},
    )
    made = Sandbox(f"pytest-equal-{os.getpid()}", options)
    made.up()
    yield made
    made.down()


def shapes(sandbox: Sandbox, job: int) -> list[str]:
    """The shapes of a job's runs."""
    runs = ask(sandbox, a.HistoryAnswer, "history", job=str(job)).runs
    return [run.shape for run in runs]


def test_gpus_are_divided_anew_when_jobs_come_and_go(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path, programs: Path
) -> None:
    program = shutil.copy(COUNT, workdir)

    def count(name: str, steps: int) -> int:
        script = (
            f"export PLIANT_CHECKPOINT_DIR={workdir}/{name}-saves\n"
            f"exec {programs}/pliant run -- {programs}/python {program} {steps} {workdir}/{name}"
        )
        return submit("--gres=gpu:4", *MALLEABLE, script=script)

    first = count("first", 20_000)
    wait_for_state(first, "RUNNING")
    wait_until(lambda: shapes(clean, first) == ["4"], "the first job to have all GPUs")
    second = count("second", 1000)
    wait_for_state(second, "RUNNING")
    wait_until(lambda: shapes(clean, first) == ["4", "2"], "the first job to go on with 2")
    wait_until(lambda: shapes(clean, second) == ["2"], "the second job to run")
    wait_for_state(second, "COMPLETED")
    wait_until(lambda: shapes(clean, first)[-1] == "4", "the first job to have all GPUs again")


def test_a_job_that_is_not_malleable_is_left_alone(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    first = submit("--gres=gpu:4", "--moldable=gpus=1:2:4", "--time=5", script=LONG)
    wait_for_state(first, "RUNNING")
    second = submit("--gres=gpu:2", "--moldable=gpus=1:2", "--time=5", script=LONG)
    seen = ask(clean, a.StatusAnswer, "status").cycles
    wait_until(lambda: ask(clean, a.StatusAnswer, "status").cycles > seen + 3, "cycles")
    wait_for_state(second, "PENDING")
    assert ask(clean, a.HistoryAnswer, "history", job=str(first)).handovers == ()
