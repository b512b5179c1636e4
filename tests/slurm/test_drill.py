"""Hand-overs into which faults are injected (see benchmarks/drill), in short."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.drill.record import ROOT
from benchmarks.drill.sitting import Task, drilled
from benchmarks.drill.slurm_faults import FAULTS
from slurm_helpers import wait_until

from limits import HANG_S
from pliant.sandbox.layout import Layout, base_directory
from pliant.sandbox.processes import find
from pliant.sandbox.record import all_names
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


def test_a_sitting_that_is_sent_a_term_ends_its_run_notes_it_and_leaves_nothing(
    users: tuple[str, str], tmp_path: Path
) -> None:
    record, before = tmp_path / "runs.jsonl", {*Path("/tmp").glob("pliant-drill-*")}
    argv = ("--runs", "9", "--at-once", "1", "--only", KINDS[1], "--record", str(record))
    with subprocess.Popen(
        (sys.executable, "-m", "benchmarks.drill", *argv),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as sitting:
        name = f"drill-{sitting.pid}-0"

        def runs() -> bool:
            tops = {*Path("/tmp").glob("pliant-drill-*")} - before
            return any((top / "0").exists() for top in tops) or sitting.poll() is not None

        wait_until(runs, "the first run")
        assert name in all_names(base_directory())
        sitting.terminate()
        said, _ = sitting.communicate(timeout=HANG_S)
    (line,) = record.read_text().splitlines()
    ran = json.loads(line)
    assert (sitting.returncode, ran["fault"], ran["seed"] > 0) == (0, KINDS[1], True)
    assert f"recorded of these files: {len(ran['seen'])} hand-overs" in said.splitlines()[-1]
    assert name not in all_names(base_directory())
    assert find(Layout(base_directory(), name)) == []
    assert {*Path("/tmp").glob("pliant-drill-*")} <= before
