"""What every policy keeps that changes running jobs, beside what all policies keep."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from batch_in_memory import SimulatedCluster
from hypothesis import given, settings
from strategies import clusters
from test_policies_properties import off, often, overfull, started

from pliant.cycle import cycle, view
from pliant.model import Footprint, Job, JobClass, Kind, Shape, Snapshot, why_rests
from pliant.placement import Free
from pliant.plan import Policy, Preempt, Reshape
from pliant.policies import by_name, live_names, names

RESIZING: list[Policy] = [
    *(policy for name in live_names() if (policy := by_name(name)).resizes),
    by_name("malleable-equipartition", pays=True),
    by_name("f-scheduling", pays=True, v_bound=0.005),
    by_name("fitgpp", several=True, p=2),
]
every_resizing_policy = pytest.mark.parametrize("policy", RESIZING, ids=repr)
some = settings(often, max_examples=20)


@every_resizing_policy
@some
@given(cluster=clusters(shares=False, elastic=True))
def test_growth_and_starts_together_never_over_allocate(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    snapshot = view(cluster.snapshot())
    assert overfull(snapshot, policy(snapshot)) == []


@every_resizing_policy
@some
@given(cluster=clusters(elastic=True))
def test_what_running_jobs_are_told_can_be_done_at_once(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    """Nobody counts on what another job gives up in the same cycle."""
    plan = cycle(cluster.snapshot(), policy, limit=1000)
    cluster.apply(replace(plan, reshapes=(), preempts=()))
    one_by_one = copy.deepcopy(cluster)
    for reshape in plan.reshapes:
        given_up = _without_what_others_gave_up(one_by_one, reshape)
        assert given_up, f"{reshape.job.id} as {reshape.shape} on {reshape.nodes}"


def _without_what_others_gave_up(cluster: SimulatedCluster, reshape: Reshape) -> bool:
    """Change a running job; what it gave up stays in use, by a job of its own."""
    job = reshape.job
    before = {node.name: node for node in cluster.snapshot().nodes}
    done = cluster.reshape(job.id, reshape.shape, reshape.nodes)
    for node in cluster.snapshot().nodes:
        cpus = node.free_cpus - before[node.name].free_cpus
        whole = sum(p.free for p in node.pools) - sum(p.free for p in before[node.name].pools)
        if node.name in job.nodes and (whole > 0 or cpus > 0) and not job.shape.is_share:
            rest = Job(
                f"rest of {job.id} on {node.name}",
                partitions=job.partitions,
                shape=Shape(1, max(0, whole), kind=Kind.GPU if whole > 0 else Kind.CPU),
                footprint=Footprint(cpus_per_task=max(1, cpus)),
            )
            cluster.submit(rest, 1e9)
            cluster.start(rest.id, (node.name,))
    return done


@every_resizing_policy
@some
@given(cluster=clusters(elastic=True))
def test_only_running_jobs_that_may_are_changed(policy: Policy, cluster: SimulatedCluster) -> None:
    snapshot = cluster.snapshot()
    plan = cycle(snapshot, policy, limit=1000)
    assert [r for r in plan.reshapes if not may_become(snapshot, r)] == []
    assert [p for p in plan.preempts if not may_stop(snapshot, p)] == []
    told = [r.job.id for r in plan.reshapes] + [p.job.id for p in plan.preempts]
    assert len(set(told)) == len(told)


def may_become(snapshot: Snapshot, reshape: Reshape) -> bool:
    job = next(job for job in snapshot.running if job.id == reshape.job.id)
    nodes = [node for node in snapshot.nodes if node.name in reshape.nodes]
    return bool(
        may_be_touched(snapshot, job)
        and job.spec
        and job.spec.request.malleable
        and reshape.shape in job.shapes
        and reshape.shape not in job.refused
        and reshape.shape != job.shape
        and len(set(reshape.nodes)) == len(nodes) == reshape.shape.nodes
        and all(node.up and job.features <= node.features for node in nodes)
        and set(job.nodes_required) <= set(reshape.nodes)
        and job.nodes_excluded.isdisjoint(reshape.nodes)
        and any(
            set(reshape.nodes) <= set(snapshot.partition_by_name[name].nodes)
            for name in job.partitions
        )
    )


def may_stop(snapshot: Snapshot, preempt: Preempt) -> bool:
    job = next(job for job in snapshot.running if job.id == preempt.job.id)
    other = next(job for job in snapshot.waiting if job.id == preempt.room_for)
    return bool(
        may_be_touched(snapshot, job)
        and job.spec
        and job.spec.request.job_class is JobClass.BEST_EFFORT
        and other.spec
        and other.spec.request.job_class is JobClass.TRIAL
    )


def may_be_touched(snapshot: Snapshot, job: Job) -> bool:
    left = job.frozen or off(snapshot, job) or why_rests(job, snapshot.now_s)
    return not left and not (job.spec and job.spec.pinned)


@every_resizing_policy
@some
@given(cluster=clusters(shares=False, elastic=True))
def test_the_first_waiting_job_is_not_delayed_by_what_running_jobs_are_told(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    plan = policy(view(cluster.snapshot()))
    after = started(cluster, plan)
    for reshape in plan.reshapes:
        assert cluster.reshape(reshape.job.id, reshape.shape, reshape.nodes)
    told = cluster.snapshot()
    delayed = []
    for claim in plan.claims:
        if claim.job.id in {job.id for job in after.waiting}:
            shapes = claim.job.shapes or (claim.job.shape,)
            found = [f for shape in shapes if (f := Free(told).earliest(claim.job, shape))]
            if min((at_s for at_s, _ in found), default=1e18) > claim.at_s:
                delayed.append((claim, found))
    assert delayed == []


@every_resizing_policy
@some
@given(cluster=clusters(elastic=True))
def test_what_is_carried_out_comes_to_an_end(policy: Policy, cluster: SimulatedCluster) -> None:
    """No time passes: jobs that are changed again and again would be so for ever."""
    for _ in range(12):
        plan = cycle(cluster.snapshot(), policy, limit=1000)
        if not (plan.starts or plan.actions or plan.changes_running):
            return
        cluster.apply(plan)
    assert [plan.starts, plan.actions, plan.reshapes, plan.preempts] == []


@pytest.mark.parametrize("name", names())
@some
@given(cluster=clusters(elastic=True))
def test_only_those_that_say_so_change_running_jobs(name: str, cluster: SimulatedCluster) -> None:
    policy = by_name(name)
    plan = cycle(cluster.snapshot(), policy, limit=1000)
    assert policy.resizes or not plan.changes_running


@every_resizing_policy
@some
@given(cluster=clusters(elastic=True))
def test_no_cycle_does_more_than_its_cap(policy: Policy, cluster: SimulatedCluster) -> None:
    everything = cycle(cluster.snapshot(), policy, limit=1000)
    capped = cycle(cluster.snapshot(), policy, limit=1)
    done = [len(p.actions) + len(p.reshapes) + len(p.preempts) for p in (everything, capped)]
    assert done[1] == min(1, done[0])
    assert capped.deferred == done[0] - done[1]
