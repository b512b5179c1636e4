"""Steps of several tasks on a real Slurm that lose a wrapper: no task loses what it has done."""

from __future__ import annotations

import json
from collections.abc import Callable

import psutil
import pytest
from asking_helpers import answer_of, wait_for_look
from resizing_helpers import Place, Resizable
from slurm_helpers import WaitForState, wait_until

from pliant.daemon import answers as a

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

SCRIPT = """#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --gres=gpu:4 --time=1:00:00 --open-mode=append
#SBATCH --moldable=gpus=1-4 --malleable=grace=30s
srun pliant run -- python ranks.py
"""
RANKS = """
import os, time, pliant
with open("rank" + os.environ["SLURM_PROCID"], "a") as file: print(os.getpid(), file=file)
step = 0
while not os.path.exists("go"):
    time.sleep(0.05)
    step += 1
    pliant.heartbeat(step)
    if pliant.checkpoint_wanted(): pliant.checkpointed()
"""
HANGS = """
import os, time, pliant
me = "rank" + os.environ["SLURM_PROCID"]
first = not os.path.exists(me)
with open(me, "a") as file: print(os.getpid(), file=file)
step = 0
while not os.path.exists("go"):
    time.sleep(0.05)
    step += 1
    pliant.heartbeat(step)
    if first and pliant.checkpoint_wanted():
        if me == "rank2": pliant.checkpointed()
        time.sleep(10**6)
"""
"""One task sees the request a step before the others, which wait for it in their all-reduce."""


class Step:
    """A job of four tasks, each with a wrapper, that may be asked."""

    def __init__(self, place: Place, program: str = RANKS, script: str = SCRIPT) -> None:
        self.place, self.folder = place, place.folder
        (place.folder / "ranks.py").write_text(program)
        (place.folder / "ranks.sh").write_text(script)
        wait_for_look(place.sandbox)  # with what is in use still it would have fewer GPUs
        self.job: Resizable = place.submit("ranks.sh")
        wait_until(lambda: self.starts() == [1, 1, 1, 1], "all tasks to begin")
        wait_until(self._is_known, "pliantd to know it")

    def _is_known(self) -> bool:
        answer = answer_of(self.place.sandbox, "history", job=str(self.job.job))
        if not answer.is_ok:
            return False
        told = a.from_json(a.HistoryAnswer, answer.fields["json"])
        return any(run.launched_s for run in told.runs)

    def pids(self, rank: int) -> list[int]:
        path = self.folder / f"rank{rank}"
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    def starts(self) -> list[int]:
        """How often each task's program was started."""
        return [len(self.pids(rank)) for rank in range(4)]

    def saved(self) -> int:
        """How many tasks have saved for a wish and ended."""
        return len(list(self.folder.glob("pliant-*/.pliant-*/ended-*")))

    def wrapper(self, rank: int) -> psutil.Process:
        guardian = psutil.Process(self.pids(rank)[-1]).parent()
        assert guardian is not None
        return next(one for one in guardian.children() if one.cmdline() == guardian.cmdline())

    def why(self) -> str:
        said = self.place.sandbox.run(["pliant", "why", "--json", str(self.job.job)], check=True)
        return str(json.loads(said.stdout)["job"]["frozen"])

    def resize(self, shape: str) -> str:
        """Ask for another shape; return what is refused, or ""."""
        return self.place.sandbox.run(["pliant", "resize", str(self.job.job), shape]).stderr


@pytest.fixture
def step(place: Place) -> Step:
    return Step(place)


def test_a_step_without_one_wrapper_is_unmanaged_and_not_resized(
    step: Step, wait_for_state: WaitForState, show: Callable[[int], dict[str, str]]
) -> None:
    step.wrapper(2).kill()
    wait_until(lambda: step.why().startswith("it is unmanaged"), "it to be unmanaged")
    assert "it is unmanaged" in step.resize("2")
    (step.folder / "go").touch()
    wait_for_state(step.job.job, "COMPLETED")
    assert (step.starts(), show(step.job.job)["Restarts"]) == ([1, 1, 1, 1], "0")


def test_a_wrapper_lost_while_the_others_save_costs_no_task_its_work(
    step: Step, wait_for_state: WaitForState, show: Callable[[int], dict[str, str]]
) -> None:
    step.wrapper(2).suspend()
    wait_until(lambda: step.resize("2") == "", "it to be asked")
    wait_until(lambda: step.saved() == 3, "the others to save")
    step.wrapper(2).kill()
    wait_until(lambda: step.starts() == [2, 2, 1, 2], "the others to go on in place")
    wait_until(lambda: len(step.job.changes()) == 1, "the resize to be given up")
    (step.folder / "go").touch()
    wait_for_state(step.job.job, "COMPLETED")
    assert (step.starts(), show(step.job.job)["Restarts"]) == ([2, 2, 1, 2], "0")


def test_tasks_that_hang_by_the_request_are_requeued_as_they_were(
    place: Place, wait_for_state: WaitForState, show: Callable[[int], dict[str, str]]
) -> None:
    step = Step(place, HANGS, SCRIPT.replace("grace=30s", "grace=5s,stalled=requeue"))
    wait_until(lambda: step.resize("2") == "", "it to be asked")
    wait_until(lambda: len(step.job.changes()) == 2, "it to be requeued")
    asked, requeued = step.job.changes()
    assert asked.outcome.startswith("no heartbeat came since its checkpoint was requested")
    assert (requeued.before, requeued.after, requeued.outcome) == ("4", "4", "done")
    (step.folder / "go").touch()
    wait_for_state(step.job.job, "COMPLETED")
    assert show(step.job.job)["Restarts"] == "1"
