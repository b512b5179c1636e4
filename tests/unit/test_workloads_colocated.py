"""Jobs of which two share a GPU, as fast as Gavel measured them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pliant.errors import BadInput
from pliant.model import Job, Shape
from pliant.policies import by_name
from pliant.simulator.replay import Replay
from pliant.simulator.sources import Asked, workload_of
from pliant.simulator.workload import Neighbour
from pliant.simulator.workloads.colocated import HALF, WHOLE, Measured, colocated, measured

TABLE = {
    "v100": {
        "A": {"null": 10.0, "A": [6.0, 5.0], "B": [9.0, 18.0], "C": [0.0, 0.0]},
        "B": {"null": 20.0, "A": [16.0, 8.0]},
        "C": {"null": 5.0, "C": [4.0, 4.0]},
    }
}
PAIRS = {("A", "A"): 0.55, ("A", "B"): 0.85, ("B", "A"): 0.85, ("C", "C"): 0.8}
"""The mean of both orders; A and C did not fit."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "throughputs.json.gz"
    path.write_bytes(gzip.compress(json.dumps(TABLE).encode()))
    return path


def test_pairs_are_as_fast_as_measured_and_take_turns_where_they_did_not_fit(table: Path) -> None:
    found = measured(table, "v100")
    assert found.models == ("A", "B", "C")
    assert found.pairs == {pair: pytest.approx(speed) for pair, speed in PAIRS.items()}
    three = colocated(table, 1, jobs=3).arrivals
    jobs = {name: replace(one.job, name=name) for name, one in zip("ABC", three, strict=True)}
    beside = [Neighbour(jobs["B"], HALF, True)]
    assert found(jobs["A"], HALF, beside) == pytest.approx(0.85)
    assert found(jobs["C"], HALF, beside) == 0.5
    assert found(jobs["A"], HALF, [replace(beside[0], on_gpu=False)]) == 1.0
    known = found.company([jobs["A"], jobs["B"], jobs["C"]]).known
    assert [together.jobs for together in known] == [{jobs["A"].id, jobs["B"].id}]
    assert found.beside_others("A") == pytest.approx(0.7)


def test_jobs_ask_for_half_a_gpu_and_are_drawn_by_their_seed(table: Path) -> None:
    one = workload_of(Asked("gavel", trace=str(table), jobs=20, nodes=3), 1)
    assert len(one.nodes) == 3
    assert {(job.job.shape, job.job.shapes) for job in one.arrivals} == {(HALF, (HALF, WHOLE))}
    assert all(10**1.5 * 60 <= job.work_s <= 10**3 * 60 for job in one.arrivals)
    again, other = (colocated(table, seed, jobs=20, nodes=3) for seed in (1, 2))
    assert [a.job for a in one.arrivals] == [a.job for a in again.arrivals]
    assert [a.job for a in one.arrivals] != [a.job for a in other.arrivals]
    told = colocated(table, 1, jobs=20, nodes=3, told=True)
    assert [a.job.volume_s for a in told.arrivals] == [a.work_s for a in one.arrivals]


def test_fcs_pairs_what_is_fast_together_and_nobody_else(table: Path) -> None:
    """It is told of the pairs; those that did not fit never share a GPU."""
    workload = colocated(table, 3, jobs=40, nodes=4, load=3.0)
    speeds = workload.beside
    assert isinstance(speeds, Measured)
    seen: list[tuple[str, str]] = []

    def noted(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
        seen.extend((job.name, one.job.name) for one in neighbours if one.on_gpu)
        return speeds(job, shape, neighbours)

    policy = by_name("cosched-fcs")
    tasks = [*Replay(replace(workload, beside=noted), policy).run()]
    assert len(tasks) == 40
    assert seen
    assert set(seen) <= set(PAIRS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"gpu_type": "h100"}, "type of GPU: 'h100': one of v100 is expected"),
        ({"load": 0.0}, "workload gavel: load: 0.0: a number above 0 is expected"),
    ],
)
def test_what_cannot_be_is_refused(table: Path, words: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        colocated(table, 1, **words)


def test_a_file_without_any_type_of_gpu_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "x_throughputs.json"
    empty.write_text("{}")
    with pytest.raises(BadInput, match="type of GPU: 'v100': the file has none"):
        colocated(empty, 1)
