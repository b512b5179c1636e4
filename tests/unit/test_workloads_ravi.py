"""The jobs of paper 004: what the paper prints of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from build import job

from pliant.grammar import shapes
from pliant.model import ALL_CORES, Kind, Shape
from pliant.policies import by_name
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Neighbour, Workload
from pliant.simulator.workloads.ravi import MIXES, Bias, multi_node, single_node, slowed
from pliant.simulator.workloads.ravi_tables import (
    LARGE,
    MULTI,
    POOL,
    POOL_OF_18,
    long,
    sharing_penalty,
    small,
)
from pliant.speedup import run_time_s


def test_six_of_the_large_and_three_of_the_small_data_sets_are_faster_on_a_gpu() -> None:
    assert sum(one.prefers_gpu for one in LARGE) == 6
    assert sum(small(one).prefers_gpu for one in LARGE) == 3
    assert all(long(one).gpu > one.gpu for one in LARGE)
    assert (len(POOL), len(POOL_OF_18)) == (30, 18)


@pytest.mark.parametrize(("bias", "on_gpu"), [("uniform", 12), ("cpu", 6), ("gpu", 18)])
def test_so_many_of_24_jobs_are_faster_on_a_gpu(bias: Bias, on_gpu: int) -> None:
    work = single_node(bias, seed=3)
    prefer = [
        one.run_s(Shape(1, 1)) < one.run_s(Shape(1, 0, kind=Kind.CPU)) for one in work.arrivals
    ]
    assert (sum(prefer), len(prefer), len(work.nodes)) == (on_gpu, 24, 2)
    assert work.name == f"ravi single-node {bias}"


def test_a_jobs_table_is_the_papers() -> None:
    knn = next(
        one
        for seed in range(9)
        for one in single_node("gpu", seed).arrivals
        if one.job.name == "KNN"
    )
    assert [knn.run_s(shape) for shape in knn.job.shapes] == [
        pytest.approx(67.3 / 7.8),
        pytest.approx(67.3 / 6.2),
    ]


@pytest.mark.parametrize("work", [single_node("cpu", 1), *(multi_node(mix, 1) for mix in MIXES)])
def test_what_jobs_are_told_is_what_is_true_of_them_alone(work: Workload) -> None:
    for one in work.arrivals:
        for shape in one.job.shapes:
            told = run_time_s(one.job, shape)
            assert told == pytest.approx(one.run_s(shape))
            assert 1.068 * told < one.job.time_limit_s
        assert one.job.spec is not None
        assert set(one.job.shapes) <= set(shapes(one.job.spec.request, one.job.shape))
    assert work.arrivals == tuple(sorted(work.arrivals, key=lambda one: one.job.submit_s))


def test_a_gpu_takes_one_core_and_leaves_the_others_to_a_job_on_the_cpus() -> None:
    work = multi_node("50 SJ/50 LJ", 1)
    job, node = work.arrivals[0].job, work.nodes[0]
    cpus = {shape.kind: job.demand(shape).cpus for shape in job.shapes}
    assert ALL_CORES not in cpus.values()
    assert cpus[Kind.GPU] + cpus[Kind.CPU] == node.cpus


@pytest.mark.parametrize("mix", MIXES)
def test_32_jobs_come_in_batches_of_8(mix: str) -> None:
    work = multi_node(mix, seed=2)
    batches = Counter(one.job.submit_s for one in work.arrivals)
    assert (list(batches.values()), min(batches), len(work.nodes)) == ([8] * 4, 0.0, 16)
    again = multi_node(mix, seed=2)
    assert [one.job for one in work.arrivals] == [one.job for one in again.arrivals]
    assert [one.job for one in work.arrivals] != [
        one.job for one in multi_node(mix, seed=3).arrivals
    ]


@pytest.mark.parametrize(("mix", "first"), [("25 SR/75 LR", 8), ("75 SR/25 LR", 24)])
def test_a_mix_of_sizes_has_so_many_jobs_on_few_nodes(mix: str, first: int) -> None:
    assert sum(one.job.shape.nodes < 8 for one in multi_node(mix, 5).arrivals) == first


def test_jobs_run_at_the_sizes_for_which_there_are_times() -> None:
    arrivals = [one for seed in range(5) for one in multi_node("25 SR/75 LR", seed).arrivals]
    allowed = {one.job.shape.nodes: {s.nodes for s in one.job.shapes} for one in arrivals}
    assert allowed == {2: {2}, 4: {2, 4}, 8: {2, 4, 8}}


@pytest.mark.parametrize("pagerank_s", [0.38, 0.28])
def test_pagerank_is_as_printed_or_as_it_probably_was(pagerank_s: float) -> None:
    both = Shape(8, 1, kind=Kind.BOTH)
    arrivals = multi_node("25 SR/75 LR", 1, pagerank_s=pagerank_s).arrivals
    found = {
        round(one.run_s(both), 9)
        for one in arrivals
        if one.job.name == "PR 900 MB" and both in one.job.shapes
    }
    assert found == {pagerank_s}
    assert (
        f"PageRank, 900 MB, 8 nodes, CPU+GPU: {pagerank_s} s"
        in multi_node("25 SR/75 LR", 1, pagerank_s=pagerank_s).choices
    )


def test_more_nodes_and_both_resources_are_never_slower_but_for_one_value() -> None:
    odd = [
        (name, nodes)
        for name, table in MULTI.items()
        for nodes, (cpu_s, gpu_s, both_s) in table.items()
        if both_s > min(cpu_s, gpu_s)
    ]
    assert odd == [(("PR", "900 MB"), 8)]


def test_company_costs_what_figure_8_says() -> None:
    assert sharing_penalty("EM 450 MB", "GK 2.7 GB") == 0.043
    assert sharing_penalty("PR 3.6 GB", "GK 680 MB") == 0.024
    assert sharing_penalty("GK 680 MB", "GK 680 MB") == pytest.approx(0.045)


def test_a_penalty_is_for_two_resources_of_a_node_and_the_worst_one_counts() -> None:
    em, gk, pr = (replace(job(n), name=f"{name} 1 GB") for n, name in enumerate(("EM", "GK", "PR")))
    cpu, gpu, both = (Shape(1, 0, kind=Kind.CPU), Shape(1, 1), Shape(1, 1, kind=Kind.BOTH))
    beside = [Neighbour(gk, gpu, False), Neighbour(pr, gpu, False)]
    assert slowed(em, cpu, beside) == 1 / 1.068
    assert slowed(gk, gpu, [Neighbour(em, cpu, False)]) == 1 / 1.043
    assert slowed(em, gpu, beside) == slowed(em, both, beside) == 1.0


def test_with_penalties_a_replay_takes_longer_and_policies_are_told_the_same() -> None:
    plain, slow = (single_node("uniform", 1, penalty=penalty) for penalty in (False, True))
    assert [one.job for one in plain.arrivals] == [one.job for one in slow.arrivals]
    assert len(slow.choices) == len(plain.choices) + 1
    ends_s = [
        max(task.end_s for task in Replay(work, by_name("torque")).run()) for work in (plain, slow)
    ]
    assert 1.0 < ends_s[1] / ends_s[0] < 1.068
