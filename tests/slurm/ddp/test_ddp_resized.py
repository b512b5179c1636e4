"""The example for PyTorch as a job of a real Slurm, resized: the losses are those of one long run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from resizing_helpers import LONG_STEP_S, Place
from slurm_helpers import WaitForState

from limits import HANG_S
from losses import AS_IN_ONE_RUN, losses, world_sizes
from wrapped_job import EXAMPLES, ROOT

pytestmark = pytest.mark.slurm

STEPS = 2500


@pytest.fixture
def undisturbed(tmp_path: Path) -> list[float]:
    """The losses of one process that nobody disturbs, outside a job."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, str(EXAMPLES / "ddp.py"), str(STEPS)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return losses(done.stdout)


def test_the_world_follows_the_allocation_and_the_losses_are_the_same(
    place: Place,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    undisturbed: list[float],
) -> None:
    training = place.submit("ddp.sh", str(STEPS), str(LONG_STEP_S))
    for shape in ("1", "2"):
        training.becomes(shape)
    place.hurry()
    wait_for_state(training.job, "COMPLETED")
    printed = output(training.job)
    assert world_sizes(printed) == [4, 1, 2]
    assert losses(printed) == pytest.approx(undisturbed, **AS_IN_ONE_RUN)
