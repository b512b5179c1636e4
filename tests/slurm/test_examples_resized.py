"""The examples as jobs of a real Slurm, resized at random moments: they end as if undisturbed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from resizing_helpers import STEP_S, STEPS, Place, Resizable
from slurm_helpers import WaitForState

from limits import HANG_S

pytestmark = pytest.mark.slurm

SHAPES = ("1", "2")
"""After the four GPUs that they begin with."""


def counted(last: int) -> int:
    """Return the checksum after so many steps."""
    checksum = 0
    for step in range(1, last + 1):
        checksum = (checksum * 31 + step) % (2**61 - 1)
    return checksum


def resize_at_random_moments(job: Resizable, seed: int) -> None:
    """Resize a job a few times."""
    draw = random.Random(seed)  # noqa: S311  # a draw, no secret
    for shape in SHAPES:
        time.sleep(draw.uniform(0.0, 1.0))
        job.becomes(shape)
    assert [change.after for change in job.changes()] == list(SHAPES)


def test_a_plain_loop_counts_rightly(
    place: Place, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    counting = place.submit("count.sh", str(STEPS), "count.txt", str(STEP_S))
    resize_at_random_moments(counting, seed=1)
    place.hurry()
    wait_for_state(counting.job, "COMPLETED")
    assert output(counting.job).splitlines()[-1] == f"{STEPS} {counted(STEPS)}"


def test_submitits_own_checkpointing_takes_part_unchanged(place: Place) -> None:
    with subprocess.Popen(
        [sys.executable, "with_submitit.py", str(STEPS), "logs", str(STEP_S)],
        cwd=place.folder,
        env=dict(place.environment),
        stdout=subprocess.PIPE,
        text=True,
    ) as submits:
        assert submits.stdout is not None
        job = int(submits.stdout.readline().split()[-1])
        resize_at_random_moments(Resizable(place.sandbox, job), seed=2)
        place.hurry()
        printed, _ = submits.communicate(timeout=HANG_S)
    assert printed == f"{STEPS} {counted(STEPS)} [4, 1, 2]\n"
