"""Seo's four jobs, with the fitted speeds and with measured ones."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pliant.errors import BadInput
from pliant.model import Job, Malleable, Request, Shape, Spec
from pliant.policies.static import StaticPartition
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Arrival
from pliant.simulator.workloads.curves import Measured, Table
from pliant.simulator.workloads.seo import fitted, seo

ONE = Shape(1, 1)


RESNET = (1.829, 2.752, 3.309, 3.681, 3.948, 4.148)
INCEPTION = (1.627, 2.466, 2.978, 3.323, 3.571, 3.759)


def test_the_fitted_speeds_within_half_a_thousandth() -> None:
    assert [f for _, f in fitted("ResNet-50").rates] == pytest.approx(RESNET, rel=0.0005)
    assert [f for _, f in fitted("InceptionV3").rates] == pytest.approx(INCEPTION, rel=0.0005)


def test_the_four_jobs() -> None:
    found = seo()
    assert [(a.job.name, a.job.submit_s, a.launch_s, a.save_s) for a in found.arrivals] == [
        ("ResNet-50", 0, 27.4, 23),
        ("InceptionV3", 100, 27.4, 23),
        ("ResNet-50", 200, 27.4, 23),
        ("InceptionV3", 300, 27.4, 23),
    ]
    shapes = tuple(Shape(1, n) for n in range(1, 7))
    of = fitted("InceptionV3")
    request = Request(
        gpus=tuple(map(Fraction, range(1, 7))),
        malleable=Malleable(),
        throughput=of.rates,
        steps=2000,
    )
    job = Job(
        "2", partitions=("all",), submit_s=100, shape=ONE, shapes=shapes, name="InceptionV3",
        spec=Spec(request, own=ONE), grace_s=23, restart_s=50.4,
    )  # fmt: skip
    assert found.arrivals[1] == Arrival(
        job, 2000 / of.rate(ONE), Measured(of, ONE), launch_s=27.4, save_s=23
    )
    runs_s = [found.arrivals[0].run_s(shape) for shape in shapes]
    assert runs_s == pytest.approx([2000 / f for f in RESNET], rel=0.001)
    assert found.nodes[0].pools[0].total == 6


@pytest.mark.parametrize(("slot", "total_s"), [(1, 1557), (2, 1593), (3, 1498), (6, 2138)])
def test_the_static_totals_of_table_2_within_half_a_second(slot: int, total_s: float) -> None:
    replay = Replay(seo(), StaticPartition(slot))
    assert max(task.end_s for task in replay.run()) == pytest.approx(total_s, abs=0.5)


def test_measured_speeds_may_fall_and_what_lies_between_is_interpolated() -> None:
    falls = Table("falls", ((ONE, 2.0), (Shape(1, 2), 4.0), (Shape(1, 4), 3.0), (Shape(1, 8), 1.0)))
    found = seo((falls, fitted("ResNet-50")), launch_s=0, save_s=0)
    first, second = found.arrivals[0], found.arrivals[1]
    assert [first.run_s(Shape(1, n)) for n in range(1, 7)] == [
        1000,
        500,
        2000 / 3.5,
        2000 / 3,
        800,
        1000,
    ]
    assert second.job.name == "ResNet-50"
    assert first.job.spec is not None and first.job.spec.request.throughput[2] == (Shape(1, 3), 3.5)
    assert found.choices[0] == "f as measured, between what was measured interpolated"
    with pytest.raises(BadInput, match="nothing was measured"):
        seo((Table("none", ()), falls))
