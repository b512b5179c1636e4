"""FitGpp live on a real Slurm: a trial job gets the GPUs of the best-effort job that loses least."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from asking_helpers import ask
from daemon_helpers import LONG, is_mature
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

BOB = "pliant-bob"
COUNT = Path(__file__).parents[2] / "docs" / "examples" / "count.py"
BEST_EFFORT, TRIAL = "--class=best-effort", "--class=trial"


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four GPUs under FitGpp."""
    options = Options(nodes=2, gpus=4, users=users, policy="fitgpp")
    made = Sandbox(f"pytest-fitgpp-{os.getpid()}", options)
    made.up()
    yield made
    made.down()


@pytest.fixture
def counts(submit: Submit, workdir: Path, programs: Path) -> Callable[[int], int]:
    """Submit a best-effort job under `pliant run` that counts on so many GPUs."""

    def begun(gpus: int) -> int:
        program = shutil.copy(COUNT, workdir)
        script = (
            f"export PLIANT_CHECKPOINT_DIR={workdir}/saves{gpus}\n"
            f"exec {programs}/pliant run -- {programs}/python {program} 100000 count{gpus} 0.02"
        )
        return submit(f"--gres=gpu:{gpus}", BEST_EFFORT, "--time=10", script=script)

    return begun


def test_a_trial_takes_the_room_of_a_best_effort_job_which_goes_on_after_it(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    counts: Callable[[int], int],
) -> None:
    large, small = counts(4), counts(2)
    for job in (large, small):
        wait_until(partial(is_mature, clean, job), f"job {job} to be mature")
    trials = submit(
        *("--array=1-3%1", "--gres=gpu:4", TRIAL, "--time=2"), script="sleep 5", user=BOB
    )
    trial, held, later = (f"{trials}_{task}" for task in (1, 2, 3))
    clean.run(["scontrol", "hold", held], user=BOB, check=True)
    rigid = submit("--gres=gpu:4", "--time=10", script=LONG, user=BOB)
    wait_for_state(trial, "RUNNING")
    wait_until(lambda: show(small)["Restarts"] == "1", "the smaller one to have made room")
    assert show(large)["Restarts"] == "0"
    wait_until(lambda: int(show(later)["Priority"]) < 4_294_901_760, "its turn to be its own")
    assert show(held)["Priority"] == "0"
    clean.run(["scancel", held, later], check=True)
    wait_for_state(trial, "COMPLETED")
    wait_for_state(small, "RUNNING")
    wait_until(lambda: int(show(small)["Priority"]) < 4_294_901_760, "its place to be its own")
    history = ask(clean, a.HistoryAnswer, "history", job=str(small))
    assert [(row.guest, row.outcome) for row in history.handovers] == [(f"job {trials}", "done")]
    wait_for_state(rigid, "PENDING")  # it never came before


def test_a_plain_job_makes_room_for_nobody(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    plain = [submit("--gres=gpu:4", "--time=10", script=LONG) for _ in range(2)]
    for job in plain:
        wait_for_state(job, "RUNNING")
    trial = submit("--gres=gpu:1", TRIAL, "--time=2", script=LONG)
    seen = ask(clean, a.StatusAnswer, "status").cycles
    wait_until(lambda: ask(clean, a.StatusAnswer, "status").cycles > seen + 35, "cycles")
    wait_for_state(trial, "PENDING")
