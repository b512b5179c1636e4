"""Equipartition against an independent loop that follows the printed rule."""

from __future__ import annotations

from statistics import fmean

import as_printed
import pytest

from pliant.policies import by_name
from pliant.simulator.replay import Replay
from pliant.simulator.workloads.fujiwara import fujiwara


@pytest.mark.parametrize(
    ("policy", "gpus"),
    [
        ("moldable-equipartition", 6),
        ("moldable-equipartition", 12),
        ("moldable-equipartition", 24),
        ("malleable-equipartition", 12),
        ("malleable-equipartition", 24),
    ],
)
def test_mean_flow_times_are_about_those_of_the_printed_rule(policy: str, gpus: int) -> None:
    """Within 4 %: tasks that keep their amount stay where they are, and free GPUs are offered."""
    workload = fujiwara(0, gpus, tasks=200, told=True)
    ours = fmean(task.flow_s for task in Replay(workload, by_name(policy)).run())
    printed = fmean(as_printed.flows_s(workload, malleable=policy.startswith("mall")))
    assert ours == pytest.approx(printed, rel=0.04)
