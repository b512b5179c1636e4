"""RSA, RSC, ASJF and their baselines, worked out by hand on jobs for one node."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from batch_in_memory import SimulatedCluster
from build import job, node, snapshot, starts
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.grammar import parse
from pliant.model import Abilities, Job, JobState, Kind, Node, Partition, Shape, Spec
from pliant.policies import by_name, optimal
from pliant.policies.optimal import assignment

CPU, GPU = Shape(1, 0, kind=Kind.CPU), Shape(1, 1)
RSA, RSC, ASJF = by_name("rsa"), by_name("rsc"), by_name("asjf")
ROUND_ROBIN, OPTIMAL = by_name("blind-round-robin"), by_name("manual-optimal")


def one(number: int, sequential_s: float, gp: float, mp: float) -> Job:
    """A job for one node: seconds on one core, speedups on a GPU and on seven cores."""
    request = parse("type=gpu:cpu,cores=7")
    table = ((CPU, mp * 1000), (GPU, gp * 1000))
    request = replace(request, throughput=table, steps=round(sequential_s * 1000))
    return replace(job(number, "1"), shapes=(GPU, CPU), spec=Spec(request, GPU), time_limit_s=0)


def runs(found: Job, shape: Shape, since_s: float = 0.0) -> Job:
    """The same running on n1."""
    running = replace(found, state=JobState.RUNNING, shape=shape, shapes=(shape,))
    return replace(running, nodes=("n1",), start_s=since_s)


def nodes(count: int = 1) -> list[Node]:
    return [node(f"n{number}", gpus=1, cpus=8) for number in range(1, count + 1)]


# Figure 1, large data sets.
MONTE_CARLO, KMEANS, KNN = (45.4, 38.4, 7.9), (330.0, 12.1, 7.8), (67.3, 7.8, 6.2)
FDTD, BLACK_SCHOLES = (8.4, 2.2, 7.6), (2.6, 2.1, 7.2)


def test_each_resource_goes_to_the_job_that_gains_most_by_it() -> None:
    # On a GPU: Monte Carlo gains 30.5, Kmeans 4.3; on the cores FDTD 5.4, Black-Scholes 5.1.
    jobs = [one(1, *KMEANS), one(2, *BLACK_SCHOLES), one(3, *MONTE_CARLO), one(4, *FDTD)]
    expected = {"3": "1 on n1", "4": "1x0@cpu on n1"}
    assert starts(RSA(snapshot(nodes(), jobs))) == starts(RSC(snapshot(nodes(), jobs))) == expected


def test_where_nobody_prefers_a_free_resource_rsa_gives_it_to_who_loses_least() -> None:
    # Of Monte Carlo (30.5), Kmeans (4.3) and KNN (1.6), KNN stands at the bottom.
    jobs = [one(1, *KMEANS), one(2, *KNN), one(3, *MONTE_CARLO)]
    assert starts(RSA(snapshot(nodes(), jobs))) == {"3": "1 on n1", "2": "1x0@cpu on n1"}
    assert starts(RSC(snapshot(nodes(), jobs))) == {"3": "1 on n1"}


def test_asjf_lets_the_shorter_go_first() -> None:
    # On a GPU: Kmeans 27.3 s, KNN 8.6 s. On the cores: FDTD 1.1 s, Black-Scholes 0.36 s.
    jobs = [one(1, *KMEANS), one(2, *FDTD), one(3, *KNN), one(4, *BLACK_SCHOLES)]
    assert starts(ASJF(snapshot(nodes(), jobs))) == {"3": "1 on n1", "4": "1x0@cpu on n1"}


def test_asjf_compares_the_penalty_with_the_wait() -> None:
    # On the cores instead of a GPU: KNN 10.9 - 8.6 = 2.2 s longer, Kmeans 42.3 - 27.3 = 15 s.
    jobs = [one(1, *KMEANS), one(2, *KNN)]
    for left_s, expected in (
        (1.0, {}),  # the GPU is free after 1 s: waiting is cheaper
        (3.0, {"2": "1x0@cpu on n1"}),
    ):
        busy = runs(one(9, 100.0, 10.0, 1.0), GPU, since_s=left_s - 10.0)
        assert starts(ASJF(snapshot(nodes(), jobs, [busy]))) == expected


def test_asjf_counts_what_it_has_just_started_as_a_wait() -> None:
    # KNN takes the GPU for 8.6 s; Kmeans would lose 15 s on the cores, and waits.
    # PCA beside Kmeans on the GPU (27.3 s): 25.4 - 14.6 = 10.7 s is less.
    pca = (142.0, 9.7, 5.6)
    assert starts(ASJF(snapshot(nodes(), [one(1, *KMEANS), one(2, *KNN)]))) == {"2": "1 on n1"}
    long = one(3, 330.0, 24.2, 1.0)  # 13.6 s on the GPU: it goes before PCA
    assert starts(ASJF(snapshot(nodes(), [long, one(4, *pca)]))) == {
        "3": "1 on n1",
        "4": "1x0@cpu on n1",
    }


def test_a_job_of_one_sort_runs_nowhere_else() -> None:
    only_gpu = replace(one(1, *KNN), shapes=(GPU,))
    jobs = [only_gpu, replace(only_gpu, id="2")]
    for policy in (RSA, RSC, ASJF):
        assert starts(policy(snapshot(nodes(), jobs))) == {"1": "1 on n1"}


def test_without_speeds_a_gpu_is_preferred_and_arrays_start_as_far_as_they_fit() -> None:
    array = replace(job(1, "1", "type=gpu:cpu,cores=7"), tasks_waiting=5)
    assert starts(RSA(snapshot(nodes(2), [array]))) == {"1": "1 on n1, n2"}


def test_round_robin_looks_at_the_number_alone() -> None:
    # Resources: cores of n1, its GPU, cores of n2, its GPU; job 4 has the turn of job 0.
    jobs = [one(number, *MONTE_CARLO) for number in (1, 2, 4, 5, 8)]
    plan = ROUND_ROBIN(snapshot(nodes(2), jobs))
    assert starts(plan) == {"1": "1 on n1", "2": "1x0@cpu on n2", "4": "1x0@cpu on n1"}


def test_the_optimum_gives_up_what_a_job_prefers_where_all_are_done_sooner() -> None:
    # 6 s on the GPU and 8 s on the cores: two and one take 12 s, three on the GPU 18 s.
    jobs = [one(number, 48.0, 8.0, 6.0) for number in (1, 2, 3)]
    assert len(starts(OPTIMAL(snapshot(nodes(), jobs)))) == 2
    assert sorted(assignment([[8.0, 6.0]] * 3, [0.0, 0.0])) == [0, 1, 1]
    # Cores that are busy for 9 s more take nobody: 9 + 8 = 17 s is more than two on the GPU.
    assert assignment([[8.0, 6.0]] * 2, [9.0, 0.0]) == [1, 1]


def test_the_optimum_of_alike_gpus_comes_to_an_end() -> None:
    # 40 jobs on eight alike GPUs: no proof ends, the best that is found is close to a perfect fit.
    times = [100.0 + 7.3 * (number * number % 41) for number in range(40)]
    chosen = assignment([[time_s] * 8 for time_s in times], [0.0] * 8, branches=20)
    loads = [sum(t for t, at in zip(times, chosen, strict=True) if at == gpu) for gpu in range(8)]
    assert max(loads) < 1.05 * sum(times) / 8


def test_without_a_solution_each_job_in_turn_goes_where_it_is_done_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = lambda **_: SimpleNamespace(x=None)  # noqa: E731  # as the solver that was cut off
    _, bounds, constraint = optimal._solver()
    monkeypatch.setattr(optimal, "_solver", lambda: (nothing, bounds, constraint))
    assert assignment([[8.0, 6.0]] * 3, [0.0, 0.0]) == [1, 0, 1]


def test_the_optimum_counts_what_runs() -> None:
    # The GPU is free after 1 s: 1 + 6 s there is less than 8 s on the cores, so the job waits.
    for left_s, expected in ((1.0, {}), (3.0, {"1": "1x0@cpu on n1"})):
        busy = runs(one(9, 100.0, 10.0, 1.0), GPU, since_s=left_s - 10.0)
        found = OPTIMAL(snapshot(nodes(), [one(1, 48.0, 8.0, 6.0)], [busy]))
        assert starts(found) == expected


def test_jobs_that_are_in_no_program_start_where_something_is_free() -> None:
    wide = job(2, "2x1", time_limit_s=600)
    assert starts(OPTIMAL(snapshot(nodes(2), [wide]))) == {"2": "2x1 on n1+n2"}


def test_without_a_solver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(BadInput) as refused:
        OPTIMAL(snapshot(nodes(), [one(1, *KNN)]))
    assert str(refused.value) == (
        "policy manual-optimal: scipy is not installed: it comes with the extra 'solvers'"
    )


# --- from start to end ----------------------------------------------------------------------------

times = st.integers(1, 60)
tables = st.lists(st.tuples(times, times), min_size=1, max_size=5)


def makespan_s(name: str, table: list[tuple[int, int]]) -> float:
    """How long jobs of so many seconds on the cores and on the GPU take on one node."""
    cluster = SimulatedCluster(
        tuple(nodes()), (Partition("gpu", ("n1",)),), abilities=Abilities(gpu_to_cpu=True)
    )
    for number, (cores_s, gpu_s) in enumerate(table):
        jobs = one(number, 720.0, 720.0 / gpu_s, 720.0 / cores_s)
        cluster.submit(jobs, by_shape(cores_s, gpu_s))
    done = cluster.run(by_name(name))
    assert len(done) == len(table)
    return max(run.end_s for run in done)


def by_shape(cores_s: float, gpu_s: float) -> Callable[[Shape], float]:
    return lambda shape: cores_s if shape.kind is Kind.CPU else gpu_s


def best_s(table: list[tuple[int, int]]) -> float:
    """The least makespan over all assignments, by trying all."""
    return min(
        max(
            sum(pair[side] for pair, at in zip(table, sides, strict=True) if at == side)
            for side in (0, 1)
        )
        for sides in product((0, 1), repeat=len(table))
    )


@settings(max_examples=25, deadline=None)
@given(table=tables)
def test_the_optimum_is_that_of_brute_force_and_below_all_others(
    table: list[tuple[int, int]],
) -> None:
    found = makespan_s("manual-optimal", table)
    assert found == pytest.approx(best_s(table))
    for name in ("rsa", "rsc", "asjf", "blind-round-robin"):
        assert makespan_s(name, table) >= found - 1e-6


@settings(max_examples=25, deadline=None)
@given(table=tables)
def test_rsc_runs_nothing_where_it_is_slower(table: list[tuple[int, int]]) -> None:
    expected = [
        sum(cores for cores, gpu in table if cores < gpu),
        sum(gpu for cores, gpu in table if gpu <= cores),
    ]
    assert makespan_s("rsc", table) == pytest.approx(max(expected))
