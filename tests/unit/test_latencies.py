"""ANL, AQL and MIT, worked out by hand."""

from __future__ import annotations

import pytest

from pliant.model import Kind, Shape
from pliant.simulator.latencies import (
    Ran,
    assignment_latency_s,
    completion_s,
    most_idle_s,
    queuing_latency_s,
    resources_of,
)

CPU, GPU = Shape(1, 0, kind=Kind.CPU), Shape(1, 1)
RAN = [
    Ran(0.0, 0.0, 10.0, GPU, ("n1",), 10.0),
    Ran(0.0, 0.0, 16.0, CPU, ("n1",), 10.0),  # 6 s longer than on a GPU
    Ran(0.0, 10.0, 15.0, GPU, ("n1",), 5.0),  # 10 s in the queue
    Ran(5.0, 5.0, 20.0, Shape(2, 1, kind=Kind.BOTH), ("n2", "n3"), 15.0),
]


def test_what_is_beyond_running_at_once_at_the_best_is_queuing_or_assignment() -> None:
    assert (completion_s(RAN), assignment_latency_s(RAN), queuing_latency_s(RAN)) == (20, 1.5, 2.5)


@pytest.mark.parametrize(
    ("nodes", "idle_s"),
    [
        (("n1", "n2", "n3"), 5.0),  # the GPU of n1 is busy for 15 of 20 s, and so are n2 and n3
        (("n1", "n2", "n3", "n4"), 20.0),  # n4 is not used at all
    ],
)
def test_the_least_occupied_resource_counts(nodes: tuple[str, ...], idle_s: float) -> None:
    assert most_idle_s(RAN, resources_of(nodes)) == idle_s


def test_a_job_has_the_cores_the_gpus_or_both_of_its_nodes() -> None:
    assert [one.resources for one in RAN[1:]] == [
        (("n1", "cpu"),),
        (("n1", "gpu"),),
        (("n2", "cpu"), ("n2", "gpu"), ("n3", "cpu"), ("n3", "gpu")),
    ]
