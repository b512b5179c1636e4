"""Traces as workloads: what a job becomes on a machine, and what equal jobs share."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.model import Footprint, Job, Kind, Malleable, Node, Pool, Request, Shape, Spec
from pliant.simulator.traces import Record
from pliant.simulator.workload import Arrival, alike
from pliant.simulator.workloads.hpc2n import hpc2n
from pliant.simulator.workloads.records import Linear, Machine, from_records
from pliant.simulator.workloads.rows import Kinds, Rows, Words
from pliant.simulator.workloads.site import Site, on_site
from pliant.speedup import run_time_s

RECORDS = [
    Record("11", 100, 50, width=4, asked=8, limit_s=60, user="anna"),
    Record("12", 100, 30, width=4, asked=4, limit_s=20, user="ben"),
    Record("13", 160, 70.5, width=9, asked=9, user="anna"),
]
ANY = ("all",)


def test_rigid_jobs_keep_their_width() -> None:
    found = from_records(RECORDS, Machine(8), "three")
    assert found.nodes == (Node("machine", 8, 8, 0, 0, (Pool("", 8, 8),)),)
    four, eight = Shape(1, 4), Shape(1, 8)
    assert [*found.arrivals] == [
        Arrival(
            Job("11", "anna", partitions=ANY, submit_s=100, shape=four, shapes=(four,)),
            50,
            Linear(4),
        ),
        Arrival(
            Job("12", "ben", partitions=ANY, submit_s=100, shape=four, shapes=(four,)),
            30,
            Linear(4),
        ),
        Arrival(
            Job("13", "anna", partitions=ANY, submit_s=160, shape=eight, shapes=(eight,)),
            70.5,
            Linear(8),
        ),
    ]
    assert (
        "a job that is wider than the machine is cut to all of it, and runs as long as it did"
        in found.choices
    )


@pytest.mark.parametrize("limits", [True, False])
def test_what_a_cluster_of_nodes_makes_of_a_job_is_said(limits: bool) -> None:
    site = Site(2, 4, by_processor=True, limits=limits)
    seven, wide = replace(RECORDS[0], width=7), replace(RECORDS[1], width=99)
    found = on_site([seven, wide], site, "two")
    assert [(one.job.shape, one.job.time_limit_s) for one in found.arrivals] == [
        (Shape(2, 4), 60 * limits),
        (Shape(2, 4), 30 * limits),
    ]
    said = "\n".join(found.choices)
    assert "7 GPUs on two nodes of 4 are 2 x 4" in said
    assert "larger than the cluster is cut to all of it" in said
    assert ("a time limit shorter than the run is as long as the run" in said) is limits


def test_moldable_jobs_share_what_they_have_in_common() -> None:
    first, second, third = from_records(RECORDS, Machine(8, (1, 240)), "three").arrivals
    shapes = tuple(Shape(1, gpus) for gpus in range(1, 9))
    request = Request(gpus=tuple(map(Fraction, range(1, 9))), malleable=Malleable())
    assert first.job.shapes == shapes
    assert first.job.spec == Spec(request, own=Shape(1, 4))
    assert third.job.spec == Spec(request, own=Shape(1, 8))
    assert first.job.shapes is second.job.shapes is third.job.shapes
    assert first.job.shape is second.job.shape is shapes_of(first)[3]
    assert first.job.spec is second.job.spec and first.speed is second.speed
    assert first.job.footprint is second.job.footprint is third.job.footprint
    assert first.job.spec.request is third.job.spec.request


def shapes_of(arrival: Arrival) -> tuple[Shape, ...]:
    return arrival.job.shapes


def test_the_speed_is_linear() -> None:
    first, _, third = from_records(RECORDS, Machine(8, (1, 8)), "three").arrivals
    assert [first.run_s(Shape(1, gpus)) for gpus in (1, 4, 8)] == [200, 50, 25]
    assert third.run_s(Shape(1, 1)) == 8 * 70.5
    assert Linear(1)(Shape(1, 1, share=4)) == 0.25


def test_what_was_asked_for_may_be_the_width_and_all_may_be_there_at_once() -> None:
    found = from_records(RECORDS, Machine(240, width="asked", offline=True), "three").arrivals
    assert [(a.job.shape.gpus, a.job.submit_s, a.work_s) for a in found] == [
        (8, 0, 50),
        (4, 0, 30),
        (9, 0, 70.5),
    ]


def test_processors_may_be_cpus() -> None:
    found = from_records(RECORDS, Machine(8, cpus=True), "three")
    assert found.nodes == (Node("machine", 8, 8, 0, 0),)
    one = Shape(1, 0, kind=Kind.CPU)
    first, second, third = found.arrivals
    expected = Job(
        "11",
        "anna",
        partitions=ANY,
        submit_s=100,
        shape=one,
        shapes=(one,),
        footprint=Footprint(cpus_per_task=4),
    )
    assert first == Arrival(expected, 50, alike)
    assert first.job.footprint is second.job.footprint
    assert third.job.demand(third.job.shape).cpus == 8


def test_a_limit_ends_nobody_early_and_volumes_are_told_on_demand() -> None:
    limits = [
        a.job.time_limit_s for a in from_records(RECORDS, Machine(8, limits=True), "").arrivals
    ]
    assert limits == [60, 30, 0]
    for bounds in (None, (1, 8)):
        told = from_records(RECORDS, Machine(8, bounds, told=True), "").arrivals
        assert [a.job.volume_s for a in told] == [a.volume_s for a in told] == [200, 120, 564]
        assert [run_time_s(a.job, a.job.shape) for a in told] == [50, 30, 70.5]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(
        BadInput, match="job 12 was submitted before the one that is read before it"
    ):
        from_records(RECORDS[::-1], Machine(8), "")
    assert len(from_records(RECORDS[::-1], Machine(8, offline=True), "").arrivals) == 3
    for wrong, why in (
        ({"processors": 0}, "0 processors: at least one"),
        ({"bounds": (4, 2)}, "4 to 2 processors for a job"),
        ({"bounds": (1, 2), "cpus": True}, "jobs on CPUs keep their width"),
    ):
        with pytest.raises(BadInput, match=why):
            replace(Machine(8), **wrong)


def test_hpc2n_is_read_from_its_file(tmp_path: Path) -> None:
    trace = tmp_path / "a.swf"
    trace.write_text("; HPC2N\n 7 10 3 60 2 -1 -1 4 90 -1 1 5 1 -1 1 -1 -1 -1\n")
    found = hpc2n(trace, 480)
    (only,) = found.arrivals
    assert (only.job.id, only.job.user, only.work_s, only.job.shape) == ("7", "5", 60, Shape(1, 2))
    assert (only.job.shapes[0], only.job.shapes[-1]) == (Shape(1, 1), Shape(1, 240))
    assert found.name == "HPC2N on 480 CPUs, online"
    (offline,) = hpc2n(trace, 60, width="asked", offline=True).arrivals
    assert (offline.job.submit_s, offline.job.shape, len(offline.job.shapes)) == (
        0,
        Shape(1, 4),
        60,
    )


def test_rows_are_made_where_they_are_read() -> None:
    read: list[int] = []

    def build(row: int) -> Arrival:
        read.append(row)
        return Arrival(Job(str(row)), row)

    rows = Rows(5, build)
    assert (len(rows), read) == (5, [])
    assert (rows[-1].job.id, [a.job.id for a in rows[1:3]], read) == ("4", ["1", "2"], [4, 1, 2])
    assert [a.job.id for a in rows] == ["0", "1", "2", "3", "4"]
    with pytest.raises(IndexError):
        rows[5]


@given(st.lists(st.text(max_size=5)))
def test_words_and_kinds_give_back_what_they_got(words: list[str]) -> None:
    texts, kinds = Words(), Kinds[str]()
    for word in words:
        texts.append(word)
        kinds.append(word)
    assert [*texts] == [texts[at] for at in range(len(texts))] == words
    assert [kinds[at] for at in range(len(words))] == words
    assert len(kinds.values) == len(set(words))
