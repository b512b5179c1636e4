"""FitGpp live on a real Slurm: a trial job gets the GPUs of the best-effort job that loses least."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from daemon_helpers import LONG, ask
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

BEST_EFFORT, TRIAL = "--class=best-effort", "--class=trial"


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four GPUs under FitGpp."""
    options = Options(nodes=2, gpus=4, users=users, policy="fitgpp")
    made = Sandbox(f"pytest-fitgpp-{os.getpid()}", options)
    made.up()
    yield made
    made.down()


def test_a_trial_takes_the_room_of_a_best_effort_job_which_goes_on_after_it(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    users: tuple[str, str],
) -> None:
    large = submit("--gres=gpu:4", BEST_EFFORT, "--time=10", script=LONG)
    small = submit("--gres=gpu:2", BEST_EFFORT, "--time=10", script=LONG)
    wait_for_state(large, "RUNNING", 60)
    wait_for_state(small, "RUNNING", 60)
    trial = submit("--gres=gpu:4", TRIAL, "--time=2", script="sleep 5", user=users[1])
    rigid = submit("--gres=gpu:4", "--time=10", script=LONG, user=users[1])
    wait_for_state(trial, "RUNNING", 120)  # a best-effort job without `pliant run` runs 30 s first
    wait_until(lambda: show(small)["Restarts"] == "1", "the smaller one to have made room", 60)
    assert show(large)["Restarts"] == "0"
    wait_for_state(trial, "COMPLETED", 60)
    wait_for_state(small, "RUNNING", 60)
    wait_until(lambda: int(show(small)["Priority"]) < 4_294_901_760, "its place to be its own", 60)
    history = ask(clean, a.HistoryAnswer, "history", job=str(small))
    assert [(row.guest, row.outcome) for row in history.handovers] == [(f"job {trial}", "done")]
    wait_for_state(rigid, "PENDING")  # it never came before


def test_a_plain_job_makes_room_for_nobody(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    plain = [submit("--gres=gpu:4", "--time=10", script=LONG) for _ in range(2)]
    for job in plain:
        wait_for_state(job, "RUNNING", 60)
    trial = submit("--gres=gpu:1", TRIAL, "--time=2", script=LONG)
    seen = ask(clean, a.StatusAnswer, "status").cycles
    wait_until(lambda: ask(clean, a.StatusAnswer, "status").cycles > seen + 35, "cycles", 120)
    wait_for_state(trial, "PENDING")
