"""How tasks, CPUs and memory follow the GPUs."""

from __future__ import annotations

import pytest

from pliant.model import ALL_CORES, Demand, Footprint, Kind, Shape

PER_GPU = Footprint(tasks_per_gpu=1, cpus_per_gpu=4, mem_per_gpu_mib=1000)
PER_NODE = Footprint(tasks_per_node=2, cpus_per_task=3, mem_per_node_mib=5000)


@pytest.mark.parametrize(
    ("footprint", "shape", "demand"),
    [
        (Footprint(), Shape(1, 4), Demand(4, cpus=1)),
        (PER_GPU, Shape(1, 1), Demand(1, cpus=4, mem_mib=1000, tasks=1)),
        (PER_GPU, Shape(2, 4), Demand(4, cpus=16, mem_mib=4000, tasks=4)),
        (PER_NODE, Shape(2, 4), Demand(4, cpus=6, mem_mib=5000, tasks=2)),
        (PER_NODE, Shape(1, 1, 4), Demand(1, 4, cpus=6, mem_mib=5000, tasks=2)),
        (
            Footprint(mem_per_cpu_mib=100, cpus_per_task=2),
            Shape(1, 0, kind=Kind.CPU),
            Demand(cpus=16, mem_mib=1600),
        ),
    ],
)
def test_what_was_asked_per_gpu_stays_in_proportion(
    footprint: Footprint, shape: Shape, demand: Demand
) -> None:
    assert footprint.demand(shape, cores=16) == demand


def test_a_cpu_shape_may_take_every_core() -> None:
    shape = Shape(1, 0, kind=Kind.CPU)
    assert PER_NODE.demand(shape, ALL_CORES) == Demand(cpus=ALL_CORES, mem_mib=5000, tasks=2)


def test_as_many_tasks_as_gpus_follow_the_gpus() -> None:
    assert Footprint(tasks_per_node=4).by_gpu(4) == Footprint(tasks_per_gpu=1)
    assert Footprint(tasks_per_node=4).by_gpu(4).demand(Shape(1, 2)).tasks == 2


def test_other_numbers_of_tasks_stay_as_they_are() -> None:
    for tasks, gpus in ((1, 1), (1, 4), (2, 4), (8, 4), (4, 0)):
        footprint = Footprint(tasks_per_node=tasks)
        assert footprint.by_gpu(gpus) == footprint
    assert PER_GPU.by_gpu(1) == PER_GPU
