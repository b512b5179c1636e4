"""Replays on one node of whole GPUs, decided over numbers and by placing jobs: both are the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replaying import Watched, as_plain, replayed

from pliant.model import Snapshot
from pliant.placement.ground import Grounded
from pliant.plan import Plan, Policy
from pliant.policies import by_name, equipartition, malleable, proportional
from pliant.policies.crowd import crowd_of
from pliant.simulator import replay
from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.traces import Record
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.records import Machine, from_records

POLICIES = [
    by_name("moldable-equipartition"),
    by_name("moldable-proportional", order="volume"),
    by_name("malleable-equipartition", least_left_s=30.0),
    by_name("malleable-proportional", order="volume", least_left_s=30.0),
    by_name("f-scheduling"),
]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
few = settings(max_examples=15, suppress_health_check=list(HealthCheck))


@st.composite
def machines(draw: st.DrawFn) -> Workload:
    """Some jobs on one machine, whose changes cost something or nothing."""
    rows = draw(st.lists(st.tuples(*[st.integers(0, 40)] * 2, st.integers(1, 6)), max_size=14))
    records, now_s = [], 0.0
    for number, (gap_s, run_s, width) in enumerate(rows):
        now_s += gap_s * (gap_s > 15)
        records.append(Record(str(number), now_s, 5.0 * run_s + 1, width, width, 100.0))
    machine = Machine(
        draw(st.integers(1, 9)),
        draw(st.sampled_from([(1, 9), (1, 4), (2, 6)])),
        limits=draw(st.booleans()),
        told=draw(st.booleans()),
    )
    workload = from_records(records, machine, "a machine")
    save_s, launch_s, restart_s = draw(st.sampled_from([(0.0,) * 3, (0.0,) * 3, (4.0, 3.0, 2.0)]))
    arrivals = [
        replace(one, save_s=save_s, launch_s=launch_s, restart_s=restart_s)
        for one in workload.arrivals
    ]
    return replace(workload, arrivals=arrivals)


def by_placing(snapshot: Snapshot, policy: Policy) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        for module in (equipartition, proportional, malleable):
            patch.setattr(module, "crowd_of", lambda _: None)
        return policy(snapshot)


def both_ways(snapshot: Snapshot, policy: Policy) -> Plan:
    """The plan, that is the same where jobs are placed, and for a cluster that is read anew."""
    assert isinstance(snapshot, Grounded)
    placed = by_placing(snapshot, policy)
    assert policy(as_plain(snapshot)) == placed
    plan = policy(snapshot)
    assert plan == placed
    return plan


@every_policy
@few
@given(workload=machines())
def test_what_is_decided_over_numbers_is_what_placing_jobs_decides(
    policy: Policy, workload: Workload
) -> None:
    replayed(workload, Watched(policy, both_ways))


@every_policy
@few
@given(workload=machines())
def test_runs_that_go_on_in_place_are_those_that_are_started_anew(
    policy: Policy, workload: Workload
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "FEW", 1)
        tasks = list(Replay(workload, policy).run())
    anew = Replay(workload, Watched(policy, by_placing))
    assert tasks == _all_anew(anew)


def _all_anew(anew: Replay) -> list[Task]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anew.cluster, "change", lambda _run: False)
        return list(anew.run())


def test_where_changes_cost_nothing_every_decision_is_over_numbers() -> None:
    records = [Record(str(n), 30.0 * n, 500.0, 2, 2) for n in range(20)]
    workload = from_records(records, Machine(8, (1, 8), told=True), "a machine")
    seen: list[bool] = []

    def asked(snapshot: Snapshot, policy: Policy) -> Plan:
        seen.append(crowd_of(snapshot) is not None)
        return policy(snapshot)

    policy = by_name("malleable-equipartition")
    tasks = list(Replay(workload, Watched(policy, asked)).run())
    assert len(tasks) == 20
    assert any(task.restarts for task in tasks)
    assert all(seen)
