"""FitGpp's mix: what is drawn, when jobs arrive at a load, and what equal jobs share."""

from __future__ import annotations

from array import array
from dataclasses import replace
from statistics import NormalDist, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_parts import assert_shared

from pliant.errors import BadInput
from pliant.model import Footprint, Job, JobClass, Kind, Request, Shape, Spec
from pliant.simulator.workload import Arrival
from pliant.simulator.workloads.closed_loop import Cluster, Needs, closed_loop
from pliant.simulator.workloads.fitgpp import (
    CLUSTER,
    MIXES,
    TRIALS,
    Class,
    Mix,
    Normal,
    draw,
    fitgpp,
)
from pliant.simulator.workloads.records import Linear

MANY = 20_000
SMALL = Cluster(nodes=2, cpus=4, mem_gib=8, gpus=2)


def mean_within(normal: Normal) -> float:
    """The mean of a truncated normal distribution (Johnson, Kotz, Balakrishnan, chapter 13)."""
    unit, sd = NormalDist(), normal.sd
    low, high = (normal.low - normal.mean) / sd, (normal.high - normal.mean) / sd
    return normal.mean + sd * (unit.pdf(low) - unit.pdf(high)) / (unit.cdf(high) - unit.cdf(low))


def test_the_marginals_are_what_is_printed_within_three_percent() -> None:
    mix, drawn = Mix(), draw(1, MANY)
    assert fmean(drawn.trial) == pytest.approx(TRIALS, abs=0.01)
    for trial, one in ((1, mix.trial), (0, mix.best_effort)):
        run_s = [
            r
            for r, is_trial in zip(drawn.needs.run_s, drawn.trial, strict=True)
            if is_trial == trial
        ]
        assert fmean(run_s) == pytest.approx(mean_within(one.run_s), rel=0.03)
        assert one.run_s.low <= min(run_s) and max(run_s) <= one.run_s.high
    grace = [g for g, is_trial in zip(drawn.grace_s, drawn.trial, strict=True) if not is_trial]
    assert fmean(grace) == pytest.approx(mean_within(mix.grace_s), rel=0.03)
    assert max(grace) <= 1200


def test_printed_means_and_cuts_stand_in_every_mix() -> None:
    for mix in MIXES.values():
        assert (mix.trial.run_s.mean, mix.trial.run_s.high) == (300, 1800)
        assert (mix.best_effort.run_s.mean, mix.best_effort.run_s.high) == (1800, 86400)
        assert (mix.grace_s.mean, mix.grace_s.high) == (180, 1200)
    assert len({replace(mix, name="") for mix in MIXES.values()}) == len(MIXES) == 10


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    once, again, other = (fitgpp(seed, jobs=300) for seed in (1, 1, 2))
    assert [*once.arrivals] == [*again.arrivals] != [*other.arrivals]
    assert draw(1, 100).needs.run_s == draw(1, 300).needs.run_s[:100]


def test_what_a_job_becomes() -> None:
    three = Normal(3, 0, 1, 8)
    one = Class(Normal(60.5, 0, 1, 100), three, Normal(16, 0, 1, 256), Normal(2, 0, 0, 8))
    found = fitgpp(1, jobs=40, mix=Mix("one", one, one, Normal(90, 0, 0, 100)), told=True)
    by_class = {a.job.spec.request.job_class: a for a in found.arrivals if a.job.spec}
    two, footprint = Shape(1, 2), Footprint(cpus_per_task=3, mem_per_node_mib=16384)
    for which, grace_s in ((JobClass.TRIAL, 0), (JobClass.BEST_EFFORT, 90)):
        arrival = by_class[which]
        spec = Spec(Request(job_class=which), own=two)
        job = Job(
            arrival.job.id, partitions=("all",), submit_s=0, shape=two, footprint=footprint,
            spec=spec, time_limit_s=61, grace_s=grace_s,
        )  # fmt: skip
        assert arrival == Arrival(job, 60.5, Linear(2), save_s=grace_s)
    assert [a.job.id for a in found.arrivals][::13] == ["00", "13", "26", "39"]
    assert len(found.nodes) == len(found.partitions[0].nodes) == 84


def test_equal_parts_of_jobs_are_one_object() -> None:
    found = [*fitgpp(1, jobs=3000).arrivals]
    assert_shared(found, "job.shape", "job.spec", "job.footprint", "speed")
    assert {a.job.shape for a in found} == {
        Shape(1, 0, kind=Kind.CPU),
        *(Shape(1, n) for n in range(1, 9)),
    }


sizes = st.tuples(st.integers(1, 4), st.integers(0, 8), st.integers(0, 2), st.floats(0.5, 50))


@given(st.lists(sizes, min_size=1, max_size=60), st.floats(0.2, 3))
def test_the_load_is_kept_and_fifo_is_fifo(
    jobs: list[tuple[int, int, int, float]], load: float
) -> None:
    cpus, mem, gpus, run_s = zip(*jobs, strict=True)
    needs = Needs(array("d", run_s), cpus, mem, gpus)
    loop = closed_loop(needs, SMALL, load)
    assert len(loop.submit_s) == len(loop.start_s) == len(loop.node) == len(jobs)
    assert [*loop.start_s] == sorted(loop.start_s)
    for at in sorted({*loop.submit_s, *loop.start_s}):
        running = [j for j, start in enumerate(loop.start_s) if start <= at < start + run_s[j]]
        there = [
            j for j, submit in enumerate(loop.submit_s) if submit <= at < loop.start_s[j] + run_s[j]
        ]
        for needed, size in ((cpus, SMALL.cpus), (mem, SMALL.mem_gib), (gpus, SMALL.gpus)):
            for node in range(SMALL.nodes):
                assert sum(needed[j] for j in running if loop.node[j] == node) <= size
            # without the job that came last there was less than the load
            assert sum(needed[j] for j in there if j != max(there)) < load * SMALL.nodes * size
        if (
            max(there, default=len(jobs)) < len(jobs) - 1
        ):  # more are to come: then the load is there
            assert any(
                sum(needed[j] for j in there) >= load * SMALL.nodes * size
                for needed, size in ((cpus, SMALL.cpus), (mem, SMALL.mem_gib), (gpus, SMALL.gpus))
            )


def test_a_head_that_waits_lets_nobody_pass() -> None:
    needs = Needs(array("d", (10, 5, 1, 1)), (3, 3, 4, 1), (1, 1, 1, 1), (0, 0, 0, 0))
    loop = closed_loop(needs, SMALL, 9)
    assert ([*loop.start_s], [*loop.node]) == ([0, 0, 5, 5], [0, 1, 1, 0])


def test_the_load_of_the_paper_is_about_two() -> None:
    drawn = draw(1, 4000)
    loop = closed_loop(drawn.needs, CLUSTER, 2.0)
    middle = loop.submit_s[3000]
    there = [
        j
        for j in range(4000)
        if loop.submit_s[j] <= middle < loop.start_s[j] + drawn.needs.run_s[j]
    ]
    loads = [
        sum(needed[j] for j in there) / (CLUSTER.nodes * size)
        for needed, size in zip(drawn.needs[1:], CLUSTER[1:], strict=True)
    ]
    assert 2.0 <= max(loads) < 2.02


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: Normal(5, 1, 6, 9), "a mean from low to high"),
        (lambda: Normal(5, -1, 0, 9), "a deviation of 0 or more"),
        (
            lambda: Mix(trial=replace(Mix().trial, gpus=Normal(1, 1, 0, 9))),
            "no node has more than 32 CPUs, 256 GiB and 8 GPUs",
        ),
        (
            lambda: Mix(trial=replace(Mix().trial, cpus=Normal(1, 1, 0, 9))),
            "a job has a CPU and a run time at least",
        ),
        (lambda: fitgpp(1, jobs=0), "0 jobs at a load of 2.0"),
        (lambda: fitgpp(1, jobs=5, load=0), "5 jobs at a load of 0"),
    ],
)
def test_what_cannot_be_is_refused(wrong: object, why: str) -> None:
    assert callable(wrong)
    with pytest.raises(BadInput, match=why):
        wrong()
