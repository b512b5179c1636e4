"""Hand-overs into which faults are injected (see benchmarks/drill), in short."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.drill.sitting import Task, drilled
from benchmarks.drill.slurm_faults import FAULTS

from prove.traced import traced

pytestmark = pytest.mark.slurm

KINDS = (
    "pliantd killed while the program saves",
    "pliantd killed before fence",
    "pliantd killed after requeue",
    "pliantd killed after reshape",
    "pliantd killed before unfence",
    "slurmctld killed",
    "wrapper killed, checkpoint written",
    "guardian killed at any time",
    "guardian killed, checkpoint written",
    "program killed while it saves",
    "user cancels",
    "user holds",
    "user updates",
    "user updates GPUs",
    "user updates memory",
    "user updates begin time",
    "user updates partition",
    "user updates time limit",
)


def test_nothing_is_lost_or_left_whatever_dies_in_a_hand_over(
    users: tuple[str, str], tmp_path: Path
) -> None:
    faults = [fault for fault in FAULTS if fault.name in KINDS]
    tasks = [Task(fault, seed) for seed, fault in enumerate(faults, 1)]
    ran = [ran for _, ran in drilled(tasks, at_once=3, logs=tmp_path)]
    assert [one for one in ran if not one.is_good] == []
    assert sorted(one.fault for one in ran) == sorted(KINDS)
    logs = [*tmp_path.glob("all-*/slurmctld.log")]
    assert len(logs) == 3
    held = [traced(log.read_text(errors="replace").splitlines()) for log in logs]
    assert [unlike for _, unlike in held] == [[]] * 3
    assert sum(seen["a job starts after its requeue, as it was told to"] for seen, _ in held)
