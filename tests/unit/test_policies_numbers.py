"""Where GPUs are just a number, what is decided over numbers is what would be by placing jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pliant.model import (
    Abilities,
    Footprint,
    Job,
    JobState,
    Malleable,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Snapshot,
    Spec,
)
from pliant.plan import Policy
from pliant.policies import by_name, crowd, equipartition, malleable, proportional
from pliant.policies.dhondt import Bidder, divided, divided_alike
from pliant.policies.numbers import ENDLESS_S, closest

POLICIES = [
    by_name("moldable-equipartition"),
    by_name("malleable-equipartition"),
    by_name("malleable-equipartition", votes="equal", least_left_s=0.0),
    by_name("moldable-proportional"),
    by_name("moldable-proportional", order="volume"),
    by_name("malleable-proportional"),
    by_name("malleable-proportional", order="volume", target="left"),
]
NOW_S = 10_000.0
LADDERS = ((1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4), (1, 2, 4, 8), (2, 3, 6), (3,), (1, 5, 6))
LIMITS_S = (0, 600, 1_800, 7_200)
SHARED = Pool("", 4, 2, shards_per_gpu=4)
ONE_CORE, TWO_CORES = Footprint(), Footprint(cpus_per_gpu=2)


@st.composite
def machines(draw: st.DrawFn) -> Snapshot:
    """One node of whole GPUs, jobs that run there and jobs that wait."""
    total = draw(st.integers(1, 9))
    alike = draw(st.sampled_from([None, *LADDERS]))
    free, running = total, []
    for number in range(draw(st.integers(0, 5))):
        gpus = draw(st.integers(1, 4))
        if gpus <= free:
            free -= gpus
            job = draw(jobs(f"r{number}", alike))
            since_s = NOW_S - draw(st.sampled_from([0, 5, 500, 1_700, 9_000]))
            now = replace(job, state=JobState.RUNNING, shape=Shape(1, gpus), nodes=("n1",))
            now = replace(now, start_s=since_s, progress=draw(st.sampled_from([0.0, 0.3, 0.99])))
            stays = replace(now, shapes=(now.shape,))
            running.append(draw(st.sampled_from([now, now, stays])))
    waiting = [draw(jobs(f"w{number}", alike)) for number in range(draw(st.integers(0, 6)))]
    cpus = sum(job.demand(job.shape).cpus for job in running)
    node = Node("n1", 2 * total, 2 * total - cpus, 0, 0, (Pool("", total, free),))
    abilities = Abilities(claims_whole_nodes=draw(st.booleans()))
    parts = (Partition("gpu", ("n1",), default=True),)
    return Snapshot(NOW_S, (node,), parts, tuple(waiting), tuple(running), abilities=abilities)


@st.composite
def jobs(draw: st.DrawFn, id_: str, alike: tuple[int, ...] | None) -> Job:
    amounts = alike or draw(st.sampled_from(LADDERS))
    shapes = tuple(Shape(1, gpus) for gpus in amounts)
    table = draw(
        st.sampled_from(
            [
                (),
                ((Shape(1, 1), 10.0), (Shape(1, 4), 20.0)),
                ((Shape(1, 1), 10.0), (Shape(1, 4), 5.0)),
            ]
        )
    )
    request = Request(tuple(map(Fraction, amounts)), malleable=Malleable(), throughput=table)
    return Job(
        id_,
        partitions=("gpu",),
        submit_s=draw(st.sampled_from([0.0, 10.0, 20.0])),
        shape=shapes[-1],
        shapes=shapes,
        footprint=draw(st.sampled_from([ONE_CORE, TWO_CORES])),
        spec=Spec(request, own=shapes[-1]),
        time_limit_s=draw(st.sampled_from(LIMITS_S)),
        volume_s=draw(st.sampled_from([0.0, 250.0, 1_000.0, 1_001.0, 50_000.0])),
    )


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Policy, Snapshot], object]:
    """What a policy decides by placing jobs."""

    def decide(policy: Policy, snapshot: Snapshot) -> object:
        with monkeypatch.context() as patch:
            for module in (equipartition, proportional, malleable):
                patch.setattr(module, "crowd_of", lambda _: None)
            return policy(snapshot)

    return decide


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@settings(suppress_health_check=list(HealthCheck))
@given(snapshot=machines())
def test_it_is_what_is_decided_by_placing_jobs(
    policy: Policy, snapshot: Snapshot, placed: Callable[[Policy, Snapshot], object]
) -> None:
    assume(crowd.crowd_of(snapshot) is not None)  # but for running jobs that nothing is left to
    assert policy(snapshot) == placed(policy, snapshot)


@pytest.mark.parametrize(
    "change",
    [
        lambda seen: replace(seen, nodes=(*seen.nodes, Node("n2", 8, 8, 0, 0))),
        lambda seen: replace(seen, nodes=(replace(seen.nodes[0], free_cpus=6),)),
        lambda seen: replace(seen, waiting=(replace(seen.waiting[0], tasks_waiting=2),)),
        lambda seen: replace(seen, waiting=(replace(seen.waiting[0], limited=True),)),
        lambda seen: replace(seen, running=(replace(seen.running[0], next_shape=Shape(1, 1)),)),
        lambda seen: replace(seen, nodes=(replace(seen.nodes[0], pools=(SHARED,)),)),
    ],
)
def test_where_more_than_numbers_matters_jobs_are_placed(
    change: Callable[[Snapshot], Snapshot],
) -> None:
    request = Request(malleable=Malleable())
    job = Job("1", partitions=("gpu",), shape=Shape(1, 2), shapes=(Shape(1, 1), Shape(1, 2)))
    job = replace(job, spec=Spec(request))
    runs = replace(job, id="2", state=JobState.RUNNING, nodes=("n1",))
    node = Node("n1", 8, 7, 0, 0, (Pool("", 4, 2),))
    seen = Snapshot(NOW_S, (node,), (Partition("gpu", ("n1",)),), (job,), (runs,))
    assert crowd.crowd_of(seen) is not None
    assert crowd.crowd_of(change(seen)) is None


@given(
    least=st.integers(1, 4),
    rungs=st.integers(1, 12),
    count=st.integers(1, 9),
    left=st.integers(0, 60),
)
def test_equal_bidders_get_equal_parts_and_the_first_one_more(
    least: int, rungs: int, count: int, left: int
) -> None:
    amounts = range(least, least + rungs)
    each, more = divided_alike(amounts, count, left)
    expected = divided([Bidder(amounts, 0, amounts[-1])] * count, left)
    assert [each + 1] * more + [each] * (count - more) == expected


@given(
    left_s=st.floats(1e-3, 1e15),
    speeds=st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=9).map(sorted),
    target_s=st.floats(0, 1e13),
)
def test_the_closest_run_time_is_found_by_halving(
    left_s: float, speeds: list[float], target_s: float
) -> None:
    away = [abs(min(ENDLESS_S, left_s / speed) - target_s) for speed in speeds]
    assert closest(left_s, speeds, target_s) == away.index(min(away))
