"""The examples as they stand, resized at random moments beside a fake pliantd: nothing is lost."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from limits import HANG_S
from wrapped_job import EXAMPLES, Job, ended, wrapped_job

STEPS, MANY = 400, 20_000
SUBMITTED = """
import sys
from submitit.core.utils import DelayedSubmission
from with_submitit import Count
delayed = DelayedSubmission(Count(), {steps}, 0.01)
delayed.set_timeout(60, 3)
delayed.dump("4711_submitted.pkl")
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        yield one


def counted(last: int) -> int:
    """Return the checksum after so many steps."""
    checksum = 0
    for step in range(1, last + 1):
        checksum = (checksum * 31 + step) % (2**61 - 1)
    return checksum


@pytest.mark.parametrize("seed", range(3))
def test_a_plain_loop_counts_rightly_however_it_is_resized(job: Job, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  # a draw, no secret
    job.knows("python", sys.executable)
    moments_s = [draw.uniform(0.0, 1.0) for _ in range(2)]
    # Far too slow to be done before it is resized; the last run does not sleep.
    script, *words = "count.sh", str(MANY), "count.txt"
    printed = job.sized(script, *words, gpus=[1, 4, 2], moments_s=moments_s, last=("0",))
    assert printed == f"{MANY} {counted(MANY)}\n"


def test_submitits_own_checkpointing_takes_part_unchanged(job: Job) -> None:
    job.environment["PYTHONPATH"] += f":{EXAMPLES}"
    job.environment["SUBMITIT_EXECUTOR"] = "slurm"
    make = [sys.executable, "-c", SUBMITTED.format(steps=STEPS)]
    subprocess.run(make, cwd=job.folder, env=job.environment, check=True, timeout=HANG_S)
    submitit = [sys.executable, "-u", "-m", "submitit.core._submit", str(job.folder)]
    codes = []
    for run, gpus in enumerate((1, 4, 2)):
        has = {"SLURM_RESTART_COUNT": str(run), "SLURM_GPUS_ON_NODE": str(gpus)}
        process = job.start_argv(["--signal", "USR2", "--", *submitit], has)
        if run < 2:
            job.door.wait_for("run-begin", run + 1)
            job.door.want(f"w{run}")
            job.door.wait_for("run-saved", run + 1)
            job.door.want("")
            process.terminate()
        codes.append(ended(process)[0])
    assert codes == [85, 85, 0]
    assert not job.requeues.exists()
    said = pickle.loads((job.folder / "4711_0_result.pkl").read_bytes())  # noqa: S301  # our own
    assert said == ("success", (STEPS, counted(STEPS), [1, 4, 2]))
