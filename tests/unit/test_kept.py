"""No job is changed for a start that the batch system would not make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import HOUR_S, changes, job, node, running, snapshot, starts
from hypothesis import given
from hypothesis import strategies as st
from strategies import Cluster, clusters

from pliant.cycle import cycle, explain, leftover, view
from pliant.model import Job, Snapshot
from pliant.placement import limit_s
from pliant.plan import Policy
from pliant.policies import by_name, live

EQUI = by_name("moldable-equipartition")
POLICIES = [EQUI, live("fms", {}), by_name("easy-backfill")]
NODES = [node("n1"), node("n2")]
BUSY = [running(90, "3", "n1", HOUR_S), running(91, "4", "n2", HOUR_S / 2)]
"""One GPU is free, on n1."""


def wide(**fields: Any) -> Job:
    """The first that waits: it carries two nodes, though one would do, and Slurm expects both."""
    expected = {"expected_s": HOUR_S, "expected_nodes": ("n1", "n2")} | fields
    return job(1, "2x4", "gpus=4:8,nodes=1-2", **expected)


def small(number: int, **fields: Any) -> Job:
    """A job that could start on the one free GPU."""
    return job(number, "4", "gpus=1-4", **fields)


def test_a_job_is_not_changed_where_it_would_run_into_what_is_kept_for_an_earlier_one() -> None:
    seen = snapshot(NODES, [wide(), small(2, time_limit_s=2 * HOUR_S)], BUSY)
    assert changes(cycle(seen, EQUI)) == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"expected_s": 3 * HOUR_S},  # it ends before
        {"expected_nodes": ("n2",)},  # other nodes
        {"expected_s": 0.0, "expected_nodes": ()},  # backfill has not come so far
        {"eligible": False, "reason": "JobHeldUser"},  # what it said then is of no more use
    ],
)
def test_it_is_changed_where_nothing_is_in_the_way(fields: dict[str, Any]) -> None:
    seen = snapshot(NODES, [wide(**fields), small(2, time_limit_s=2 * HOUR_S)], BUSY)
    assert changes(cycle(seen, EQUI)) == {"2": "1"}


def test_what_is_kept_for_a_later_job_stops_no_earlier_one() -> None:
    seen = snapshot(NODES, [small(2, time_limit_s=2 * HOUR_S), wide()], BUSY)
    assert changes(cycle(seen, EQUI)) == {"2": "1"}


def test_what_is_kept_for_a_job_that_starts_itself_is_free() -> None:
    first = job(1, "2", "gpus=1-2", expected_s=HOUR_S, expected_nodes=("n1",))
    third = job(3, "2", "gpus=1-2", time_limit_s=2 * HOUR_S)
    free = [node("n1", free=1), node("n2", free=1)]
    assert starts(cycle(snapshot(free, [first, third]), EQUI)) == {"1": "1 on n1", "3": "1 on n2"}


def test_a_job_is_given_other_nodes_instead() -> None:
    free = [node("n1", free=1), node("n2", free=1)]
    first = job(1, "4", expected_s=HOUR_S, expected_nodes=("n1",))
    seen = snapshot(free, [first, small(2, time_limit_s=2 * HOUR_S)])
    assert starts(cycle(seen, EQUI)) == {"2": "1 on n2"}


def test_who_cannot_use_what_is_free_leaves_it_to_who_can() -> None:
    waiting = [wide(), small(2, time_limit_s=2 * HOUR_S), small(3, time_limit_s=HOUR_S // 2)]
    assert changes(cycle(snapshot(NODES, waiting, BUSY), EQUI)) == {"3": "1"}


def test_why_names_the_job_that_it_is_kept_for() -> None:
    seen = snapshot(NODES, [wide(), small(2, time_limit_s=2 * HOUR_S)], BUSY)
    told = explain(seen, EQUI, "2").tried[0]
    assert (str(told.shape), told.fits, told.why_not) == (
        "1",
        False,
        "n1, n2 are kept for job 1 in 60 min, and its time limit would run into that",
    )


def test_a_submission_does_not_find_free_what_is_kept() -> None:
    seen = snapshot(NODES, [wide()], BUSY)
    free = leftover(seen, cycle(seen, EQUI))
    fits = {
        hours: free.fit(small(9, time_limit_s=hours * HOUR_S), small(9).shapes[0])
        for hours in (1, 2)
    }
    assert fits == {1: ("n1",), 2: None}


# --- over any cluster ---------------------------------------------------------------------------


@st.composite
def expecting(draw: st.DrawFn) -> Cluster:
    """A cluster whose batch system says of some waiting jobs where and when they will start."""
    cluster: Cluster = draw(clusters())
    snapshot_ = cluster.snapshot()
    names = [node_.name for node_ in snapshot_.nodes]
    for waiting in snapshot_.waiting:
        where = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
        if where:
            at_s = snapshot_.now_s + draw(st.sampled_from([-20.0, 0.0, 30.0, 900.0, 5000.0]))
            expected = replace(waiting, expected_s=at_s, expected_nodes=tuple(where))
            cluster.withdraw(waiting.id)
            cluster.submit(expected, 600.0)
    return cluster


def in_the_way(seen: Snapshot, policy: Policy) -> list[str]:
    """Flagged jobs that start where a node is kept for an earlier job before they would end."""
    plan = cycle(seen, policy)
    started = {start.job.id: start for start in plan.starts}
    found = []
    waiting = view(seen).waiting
    for place, later in enumerate(waiting):
        if later.id not in started or len(later.shapes) < 2:
            continue
        nodes = {name for names in started[later.id].all_nodes for name in names}
        found += [
            later.id
            for earlier in waiting[:place]
            if earlier.eligible
            and earlier.id not in started
            and nodes & set(earlier.expected_nodes)
            and earlier.expected_s < seen.now_s + limit_s(later)
        ]
    return found


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(cluster=expecting())
def test_no_start_runs_into_what_is_kept_for_an_earlier_job(
    policy: Policy, cluster: Cluster
) -> None:
    assert in_the_way(cluster.snapshot(), policy) == []


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(cluster=expecting())
def test_a_second_cycle_changes_nothing_there_either(policy: Policy, cluster: Cluster) -> None:
    cluster.change(cycle(cluster.snapshot(), policy, limit=1000))
    assert cycle(cluster.snapshot(), policy, limit=1000).actions == ()
