"""Jobs with measured curves, and that no policy fails, gives out too much or loops on them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.errors import BadInput
from pliant.model import JobClass, Shape, Snapshot
from pliant.plan import Plan, Start
from pliant.policies import names
from pliant.policies.rigid import RigidFcfs
from pliant.simulator.reproduce import curves
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.curves import Came, Point, reproduce, run_point
from pliant.simulator.workloads.measured import COST, FREE, Cost, measured, tables_in

SIA = """placement,local_bsz,step_time,sync_time
1,16,0.5,0.1
2,16,0.4,0.1
11,16,1.25,0.9
4,16,0.5,0.2
22,16,0.9,0.6
44,16,0.7,0.5
"""
LM = "('LM (batch size 5)', {})"
ONE = Shape(1, 1)
GAVEL = {
    "v100": {LM.format(1): {"null": 32.0}, LM.format(2): {"null": 100.0}},
    "v100_unconsolidated": {LM.format(2): {"null": 35.0}},
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as ``--data`` names it."""
    sia, gavel = (tmp_path / where for _, where in curves.WHERE)
    (sia / "bert").mkdir(parents=True)
    (sia / "bert" / "placements.csv").write_text(SIA)
    gavel.mkdir()
    (gavel / "simulation_throughputs.json").write_text(json.dumps(GAVEL))
    (gavel / "LICENSE").write_text("free")
    return tmp_path


def test_jobs_may_be_what_was_measured_and_run_as_fast_as_that(data: Path) -> None:
    found = measured(tables_in(data / "gpu"), 3, jobs=8, nodes=2, gpus=2)
    jobs = {arrival.job.name: arrival for arrival in found.arrivals}
    assert set(jobs) == {"bert (placements, local batch 16)", "LM (batch size 5) on v100"}
    one = jobs["LM (batch size 5) on v100"]
    assert one.job.shapes == (ONE, Shape(1, 2), Shape(2, 1))
    alone, beside, apart = (one.run_s(shape) for shape in one.job.shapes)
    assert (alone / apart, alone / beside) == pytest.approx((35 / 32, 100 / 32))
    spec = one.job.spec
    assert spec is not None and spec.request.malleable is not None
    assert one.job.time_limit_s >= 2 * alone
    classes = [
        arrival.job.spec and arrival.job.spec.request.job_class for arrival in found.arrivals
    ]
    assert classes == 2 * [None, JobClass.BEST_EFFORT, JobClass.TRIAL, JobClass.BEST_EFFORT]
    assert found == measured(tables_in(data / "gpu"), 3, jobs=8, nodes=2, gpus=2)


def test_what_cannot_be_drawn_from_is_refused(data: Path) -> None:
    for path, why in (
        (data / "none", "none: no such file or folder: measured curves are expected"),
        (data / "gpu" / "gavel" / "LICENSE", "LICENSE: no curve: Sia's *.csv or Gavel's"),
    ):
        with pytest.raises(BadInput, match=re.escape(why)):
            tables_in(path)
    wide = [replace(table, rates=table.rates[-1:]) for table in tables_in(data / "gpu")]
    with pytest.raises(BadInput, match="1 nodes of 1 GPUs: none of the curves has a shape that"):
        measured(wide, 1, nodes=1, gpus=1)


def point(data: Path, policy: str, cost: Cost = COST) -> Point:
    return Point(policy, "Sia", data / "gpu" / "sia-models", 2, 4, cost, 12, 1)


@pytest.mark.parametrize("policy", names())
def test_no_policy_fails_on_curves_that_fall(policy: str, data: Path) -> None:
    for cost in (COST, FREE):
        came = run_point(point(data, policy, cost))
        assert (came.ended, came.overfull, came.loops, came.failed) == (12, 0, 0, "")


def test_a_policy_that_gives_out_too_much_is_found(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crowding(RigidFcfs):
        """Starts every job on the first node, whoever is there."""

        def __call__(self, snapshot: Snapshot) -> Plan:
            node = snapshot.nodes[0].name
            return Plan(starts=tuple(Start(job, ONE, (node,), "") for job in snapshot.waiting))

    monkeypatch.setattr(curves, "by_name", lambda _name: Crowding())
    came = run_point(point(data, "rigid-fcfs"))
    assert (came.ended, came.failed) == (12, "") and came.overfull > 0
    said = curves.claims_of([(point(data, "rigid-fcfs"), came)])
    assert [claim.holds for claim in said] == [True, False, True]


def test_what_a_policy_raises_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(RigidFcfs):
        def __call__(self, _snapshot: Snapshot) -> Plan:
            raise ZeroDivisionError("no GPU")

    monkeypatch.setattr(curves, "by_name", lambda _name: Broken())
    assert run_point(point(data, "rigid-fcfs")) == Came(
        cycles=1, failed="ZeroDivisionError: no GPU"
    )


def test_the_section_says_what_was_not_there(tmp_path: Path) -> None:
    section = reproduce(Asked(quick=True, data=tmp_path))
    assert [claim.kind for claim in section.claims] == 3 * ["not testable"]
    assert "Sia: not run, as its curves are not there. Gavel: not run" in section.sizes
