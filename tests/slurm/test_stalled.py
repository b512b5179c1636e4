"""A program that hangs once it is asked for a checkpoint, or cannot be: a job of a real Slurm."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking_helpers import answer_of
from resizing_helpers import Place
from slurm_helpers import WaitForState, wait_until

from pliant.daemon import answers as a

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

HANGS = """
import itertools, os, time, pliant
for step in itertools.count(1):
    time.sleep(0.05)
    pliant.heartbeat(step)
    if pliant.checkpoint_wanted():
        time.sleep(10**6)
    if os.path.exists("seen"):
        break
print("finished")
"""
LOSES = """
import itertools, os, pathlib, shutil, time, pliant
if os.environ.get("SLURM_RESTART_COUNT", "0") == "0":
    shutil.rmtree(os.path.dirname(os.environ["PLIANT_CHECKPOINT_REQUESTED"]))
    for step in itertools.count(1):
        time.sleep(0.05)
        pliant.heartbeat(step)
        if pliant.checkpoint_wanted():
            pathlib.Path("saved").touch()
            pliant.checkpointed()
while not os.path.exists("seen"):
    time.sleep(0.05)
print("goes on" if os.path.exists("saved") else "has lost everything")
"""
SCRIPT = """#!/bin/bash
#SBATCH --nodes=1 --gres=gpu:4 --time=1:00:00 --open-mode=append
#SBATCH --moldable=gpus=1-4 --malleable=grace=5s,stalled=requeue
exec pliant run -- python hangs.py
"""


def test_a_program_that_hangs_by_the_request_is_requeued_as_it_was(
    place: Place,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    show: Callable[[int], dict[str, str]],
) -> None:
    (place.folder / "hangs.py").write_text(HANGS)
    (place.folder / "hangs.sh").write_text(SCRIPT)
    job = place.submit("hangs.sh")

    def is_asked() -> bool:
        return place.sandbox.run(["pliant", "resize", str(job.job), "2"]).returncode == 0

    wait_until(is_asked, "the job to be asked")
    wait_until(lambda: len(job.changes()) == 2, "the job to be requeued")
    asked, requeued = job.changes()
    assert asked.outcome.startswith("no heartbeat came since its checkpoint was requested")
    assert (requeued.before, requeued.after, requeued.outcome) == ("4", "4", "done")
    (place.folder / "seen").touch()
    wait_for_state(job.job, "COMPLETED")
    assert show(job.job)["Restarts"] == "1"
    assert "the program's last heartbeat was" in output(job.job)
    told = answer_of(place.sandbox, "history", job=str(job.job))
    said = a.from_json(a.HistoryAnswer, told.fields["json"]).decisions
    assert any(one.reason.startswith("no heartbeat since ") for one in said)


def test_a_job_that_has_removed_its_private_directory_is_asked_and_saves(
    place: Place,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
) -> None:
    """As a cleaner of /tmp does after ten days."""
    (place.folder / "loses.py").write_text(LOSES)
    (place.folder / "loses.sh").write_text(SCRIPT.replace("hangs.py", "loses.py"))
    job = place.submit("loses.sh")
    job.becomes("2")
    (place.folder / "seen").touch()
    wait_for_state(job.job, "COMPLETED")
    assert "goes on" in output(job.job)
