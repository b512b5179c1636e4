"""The example for Lightning as a job of a real Slurm, resized: no rank hangs, no step is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from resizing_helpers import LONG_STEP_S, Place
from slurm_helpers import WaitForState

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

STEPS = 2500


def test_the_world_follows_the_allocation_and_no_step_is_lost(
    place: Place, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    training = place.submit("lightning_ranks.sh", str(STEPS), str(LONG_STEP_S))
    for shape in ("2", "4"):
        training.becomes(shape)
    place.hurry()
    wait_for_state(training.job, "COMPLETED")
    printed = output(training.job)
    steps = re.findall(rf"^(\d+) of {STEPS} world size (\d+)$", printed, re.MULTILINE)
    assert [int(step) for step, _ in steps] == list(range(1, STEPS + 1))
    worlds = [int(world) for _, world in steps]
    assert [world for n, world in enumerate(worlds) if n == 0 or worlds[n - 1] != world] == [
        4,
        2,
        4,
    ]
