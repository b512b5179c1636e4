"""What every replay keeps, whatever the workload and the policy."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from replaying import Watched, as_plain, replayed
from strategies import workloads
from test_policies_properties import ALL, often

from pliant.model import Snapshot
from pliant.plan import Plan, Policy
from pliant.simulator.workload import Workload

every_policy = pytest.mark.parametrize("policy", ALL, ids=repr)
some = settings(often, max_examples=20)


def decided_both_ways(snapshot: Snapshot, policy: Policy) -> Plan:
    anew = policy(as_plain(snapshot))
    plan = policy(snapshot)
    assert plan == anew
    return plan


@every_policy
@some
@given(workload=workloads())
def test_a_cluster_that_keeps_its_ground_is_planned_as_one_that_is_read_anew(
    policy: Policy, workload: Workload
) -> None:
    replayed(workload, Watched(policy, decided_both_ways))
