"""The GPU workload fitted to what Fujiwara et al. print: its counts, means and shapes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import accumulate
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_parts import assert_shared

from pliant.errors import BadInput
from pliant.model import Job, Malleable, Pool, Request, Shape, Spec
from pliant.simulator.metrics import Span, Task, bags
from pliant.simulator.workload import Arrival
from pliant.simulator.workloads.fujiwara import OWN, SENSITIVITY, SHAPES, Curve, Curves, fujiwara
from pliant.simulator.workloads.fujiwara_trace import (
    GPU_MIB,
    GPUS,
    JOBS,
    SPAN_S,
    TASKS,
    TRACES,
    Choices,
    Observed,
    apportioned,
    geometric,
    observed,
)
from pliant.speedup import volume_left_s


@pytest.fixture(scope="module")
def trace() -> list[Observed]:
    return observed(1)


def test_the_counts_are_those_printed(trace: list[Observed]) -> None:
    assert len(trace) == 77_677
    assert len({task.job for task in trace}) == 2_317
    assert len({task.user for task in trace}) == 14
    assert trace == sorted(trace, key=lambda task: (task.start_s, task.job))
    assert trace[0].start_s >= 0 and max(task.start_s + task.run_s for task in trace) <= SPAN_S


def test_the_means_are_those_printed_within_a_percent(trace: list[Observed]) -> None:
    assert fmean(task.concurrency for task in trace) == pytest.approx(3.95, rel=0.01)
    assert max(task.concurrency for task in trace) == 16
    assert min(task.run_s for task in trace) > 300
    assert sum(task.volume_s for task in trace) == pytest.approx(6 * SPAN_S, rel=1e-6)
    shared = [task.mem_mib for task in trace if not task.whole]
    assert fmean(shared) == pytest.approx(0.2 * GPU_MIB, rel=0.1)


def test_memory_fits_the_concurrency_and_whole_tasks_take_over_90_percent(
    trace: list[Observed],
) -> None:
    assert all(task.mem_mib * task.concurrency <= GPU_MIB for task in trace)
    whole = [task for task in trace if task.whole]
    assert {task.concurrency for task in whole} == {1}
    assert min(task.mem_mib for task in whole) >= 0.9 * GPU_MIB


def test_it_fits_on_the_gpus_that_it_was_seen_on(trace: list[Observed]) -> None:
    steps = [(task.start_s, 1 / task.concurrency) for task in trace]
    steps += [(task.start_s + task.run_s, -1 / task.concurrency) for task in trace]
    assert max(accumulate(part for _, part in sorted(steps))) <= GPUS


def test_jobs_are_bags_of_tasks_as_the_paper_defines_them(trace: list[Observed]) -> None:
    tasks = [
        Task(
            str(row),
            str(task.user),
            task.start_s,
            task.volume_s,
            (Span(task.start_s, task.start_s + task.run_s, 1),),
        )
        for row, task in enumerate(trace)
    ]
    found = [*bags(tasks)]
    assert len(found) == JOBS
    sizes = Counter(task.job for task in trace)
    assert sorted(len(bag.tasks) for bag in found) == sorted(sizes.values())


def test_fewer_tasks_are_as_dense() -> None:
    some = observed(3, 5000)
    assert (len(some), len({task.job for task in some})) == (5000, round(JOBS * 5000 / TASKS))
    assert sum(task.volume_s for task in some) == pytest.approx(6 * SPAN_S * 5000 / TASKS, rel=1e-6)
    assert fmean(task.concurrency for task in some) == pytest.approx(3.95, rel=0.05)


@pytest.mark.parametrize("choices", TRACES, ids=str)
def test_other_choices_change_nothing_that_is_printed(choices: Choices) -> None:
    some = observed(2, 8000, choices)
    assert len({task.job for task in some}) == round(JOBS * 8000 / TASKS)
    assert fmean(task.concurrency for task in some) == pytest.approx(3.95, rel=0.05)
    assert sum(task.volume_s for task in some) == pytest.approx(6 * SPAN_S * 8000 / TASKS, rel=1e-6)
    assert min(task.run_s for task in some) > 300


def test_a_seed_gives_the_same_tasks_and_another_seed_others() -> None:
    once, again, other = (fujiwara(seed, tasks=300).arrivals for seed in (1, 1, 2))
    assert [*once] == [*again] != [*other]


def test_a_task_that_leaves_no_memory_to_another_has_its_gpus_alone() -> None:
    for task, arrival in zip(observed(1, 200), fujiwara(1, 8, tasks=200).arrivals, strict=True):
        assert arrival.job.shapes == (SHAPES[3:] if task.whole else SHAPES)


def test_what_a_task_becomes() -> None:
    found = fujiwara(1, 8, tasks=200, overhead_s=150)
    (pool,) = found.nodes[0].pools
    assert [node.pools for node in found.nodes] == [(pool,)] * 8
    assert pool == Pool("", 1, 1, shards_per_gpu=12, mem_mib=12288, counts_mem=True)
    task, arrival = observed(1, 200)[7], found.arrivals[7]
    assert not task.whole
    curve = Curves().mcnn
    request = Request(
        gpus=(Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), *map(Fraction, (1, 2, 3, 4))),
        gpu_mem_mib=-(-task.mem_mib // 64) * 64,
        malleable=Malleable(),
        throughput=tuple((shape, curve(shape)) for shape in SHAPES),
    )
    job = Job(
        "007", f"user{task.user:02}", partitions=("all",), submit_s=task.start_s, shape=OWN,
        shapes=SHAPES, spec=Spec(request, own=OWN), name="mcnn", restart_s=150,
    )  # fmt: skip
    assert arrival == Arrival(job, task.volume_s, curve, restart_s=150)
    told = fujiwara(1, 8, tasks=200, told=True).arrivals[7].job
    assert (told.volume_s, volume_left_s(told)) == (task.volume_s, task.volume_s)


def test_equal_parts_of_jobs_are_one_object() -> None:
    found = [*fujiwara(1, tasks=3000).arrivals]
    assert_shared(found, "job.shapes", "job.spec", "job.footprint", "speed")


@given(st.sampled_from([c for curves in SENSITIVITY for c in (curves.mcnn, curves.opennmt)]))
def test_speed_is_sublinear_and_never_falls(curve: Curve) -> None:
    amounts = [(float(shape.amount), curve(shape)) for shape in SHAPES]
    assert amounts == sorted(amounts)
    assert [speed for _, speed in amounts] == sorted(speed for _, speed in amounts)
    gains = [speed / amount for amount, speed in amounts]
    assert gains == sorted(gains, reverse=True)
    assert curve(OWN) == 1


def test_sharing_gives_more_than_a_share() -> None:
    assert [round(Curves().mcnn(Shape(1, 1, share=n)), 3) for n in (4, 3, 2)] == [
        0.379,
        0.463,
        0.616,
    ]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(BadInput, match="99 tasks: a hundred at least"):
        observed(1, 99)
    with pytest.raises(BadInput, match="0 GPUs: at least one"):
        fujiwara(1, 0)
    with pytest.raises(BadInput, match="exponents from 0 to 1"):
        Curve(1.2, 1)


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=40), st.integers(0, 1000))
def test_whole_numbers_in_proportion(weights: list[float], more: int) -> None:
    found = apportioned(weights, len(weights) + more)
    assert sum(found) == len(weights) + more and min(found) >= 1


@given(st.floats(1.1, 15.9))
def test_a_geometric_distribution_has_the_mean_wanted(mean: float) -> None:
    weights = geometric(mean, 16)
    assert sum(w * n for n, w in enumerate(weights, 1)) / sum(weights) == pytest.approx(mean)
