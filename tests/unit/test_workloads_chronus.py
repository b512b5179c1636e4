"""The Philly mix: what its file says, and what in it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_parts import assert_shared

from pliant.errors import BadInput
from pliant.model import Demand, Job, JobClass, Kind, Request, Shape, Spec
from pliant.simulator.workload import Arrival
from pliant.simulator.workloads.chronus import chronus
from pliant.simulator.workloads.records import Linear

HEAD = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,"
    "expect_value_list,best_effort,job_type"
)


def row(
    job: object = 1, gpus: object = 1, submit: object = 5, run: object = 2, best: object = 0
) -> str:
    return f"{job},vc_1,{gpus},{submit},5049,vgg16,{run},14,1105,10,{best},strict"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mix.csv"


def test_jobs_are_read_in_the_order_of_their_submission(file: Path) -> None:
    file.write_text("\n".join((HEAD, row(1, 2, 9), row(2, 12, 5, 3, 1), row(3, 0, 5))))
    found = chronus(file, 2, told=True)
    assert [(a.job.id, a.job.shape, a.work_s) for a in found.arrivals] == [
        ("2", Shape(2, 6), 180),
        ("3", Shape(1, 0, kind=Kind.CPU), 120),
        ("1", Shape(1, 2), 120),
    ]
    best, bare, last = found.arrivals
    assert 0 < best.job.grace_s == best.save_s <= 1200
    assert best.job.spec == Spec(Request(job_class=JobClass.BEST_EFFORT), own=Shape(2, 6))
    two = Shape(1, 2)
    spec = Spec(Request(job_class=JobClass.TRIAL), own=two)
    job = Job(
        "1", "vc_1", partitions=("all",), submit_s=540, shape=two, footprint=last.job.footprint,
        spec=spec, time_limit_s=120, name="vgg16",
    )  # fmt: skip
    assert last == Arrival(job, 120, Linear(2))
    assert (best.volume_s, bare.volume_s, last.volume_s) == (180 * 12, 120, 240)
    assert last.job.demand(two) == Demand(2, 1, "", 8, 65536, 1)
    assert bare.job.demand(bare.job.shape) == Demand(0, 1, "", 4, 32768, 1)


def test_a_seed_gives_the_same_grace_periods_and_equal_parts_are_one_object(file: Path) -> None:
    rows = (row(number, number % 3, number, best=number % 2) for number in range(60))
    file.write_text("\n".join((HEAD, *rows)))
    once, again, other = (chronus(file, seed=seed).arrivals for seed in (1, 1, 2))
    assert once == again != other
    assert_shared(once, "job.shape", "job.spec", "job.footprint")


@pytest.mark.parametrize(
    ("rows", "number", "why"),
    [
        (["job_id,user"], 1, "no column num_gpu"),
        ([HEAD, "1,2"], 2, "2 fields: 12 are expected"),
        ([HEAD, row(), row()], 3, "job_id: '1' stands twice"),
        ([HEAD, row(gpus=1.5)], 2, "num_gpu: '1.5': a whole number is expected"),
        ([HEAD, row(gpus=-1)], 2, "num_gpu: '-1': a whole number is expected"),
        ([HEAD, row(submit=-2)], 2, "submitted at -2.0, runs 2.0 minutes"),
        ([HEAD, row(run=0)], 2, "submitted at 5.0, runs 0.0 minutes"),
        ([HEAD, row(best="yes")], 2, "best_effort: 'yes': a number is expected"),
        ([HEAD, row(best=2)], 2, "best_effort: '2': 0 or 1 is expected"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(
    file: Path, rows: list[str], number: int, why: str
) -> None:
    file.write_text("\n".join(rows))
    with pytest.raises(BadInput) as refused:
        chronus(file)
    assert str(refused.value) == f"{file}, line {number}: {why}"


def test_jobs_must_fit_on_the_nodes(file: Path) -> None:
    file.write_text("\n".join((HEAD, row(gpus=32))))
    with pytest.raises(BadInput, match="job 1 needs 4 nodes, and there are 3"):
        chronus(file, 3)
    file.write_text(HEAD)
    with pytest.raises(BadInput, match="no job"):
        chronus(file)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("chronus") / "any"
    path.write_text(f"{HEAD}\n{text}", encoding="utf-8", errors="replace")
    with pytest.raises(BadInput) as refused:
        chronus(path)
    assert "\n" not in str(refused.value)
