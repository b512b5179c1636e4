"""What every policy keeps, whatever the cluster and the jobs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import pytest
from batch_in_memory import SimulatedCluster
from hypothesis import HealthCheck, given, settings
from strategies import clusters

from pliant.cycle import Gate, cycle, gate_of, leftover, view
from pliant.cycle.gate import excluded
from pliant.model import ALL_CORES, Demand, Job, Mode, Node, Snapshot
from pliant.placement import Free
from pliant.plan import Plan, Policy, Reshape, Start
from pliant.policies import by_name, live, live_names, names

LIVE: list[Policy] = [
    *(live(name, {}) for name in live_names()),
    live("fms", {"sizes": "all"}),
    by_name("easy-backfill", shape="best"),
]
ALL: list[Policy] = [
    *(by_name(name) for name in names() if not name.startswith("cosched-")),
    by_name("cosched-fcs"),  # where nobody shares, as here, all of its kind decide alike
    by_name("fms", beside="later"),
    by_name("torque", overtaking=True),
]
POLICIES = [*LIVE, *(policy for policy in ALL if policy not in LIVE)]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
keeps_the_queue = pytest.mark.parametrize(
    "policy",
    [
        policy
        for policy in POLICIES
        if policy.name in live_names() and getattr(policy, "times", "") != "expected"
    ],
    ids=repr,
)
often = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
seldom = settings(often, max_examples=15)

# --- a second opinion: what fits, worked out without placement ------------------------------------

Gpu = tuple[str, int, int, int]  # type, shards in all (0: whole only), shards free, memory


def gpus_of(node: Node) -> list[Gpu]:
    return [
        (pool.gpu_type, pool.shards_per_gpu, free, pool.mem_mib)
        for pool in node.pools
        for free in (*[pool.shards_per_gpu or 1] * pool.free, *pool.parts)
    ]


def places_for(demand: Demand, gpus: list[Gpu], gpu_mem_mib: int) -> Iterator[list[Gpu]]:
    """Every way to take a demand from single GPUs; those left over."""
    suitable = [at for at, gpu in enumerate(gpus) if demand.gpu_type in ("", gpu[0])]
    if demand.share > 1:
        for at in suitable:
            name, shards, free, mem = gpus[at]
            divides = shards and shards % demand.share == 0 and shards // demand.share <= free
            if divides and (not mem or gpu_mem_mib * demand.share <= mem):
                rest = (name, shards, free - shards // demand.share, mem)
                yield [*gpus[:at], rest, *gpus[at + 1 :]]
        return
    whole = [at for at in suitable if gpus[at][2] == (gpus[at][1] or 1)]
    typed = sorted(whole, key=lambda at: gpus[at][0])
    if len(whole) >= demand.gpus:
        for start in range(len(typed) - demand.gpus + 1):
            used = set(typed[start : start + demand.gpus])
            yield [gpu for at, gpu in enumerate(gpus) if at not in used]


def all_fit(demands: list[tuple[Demand, int]], gpus: list[Gpu]) -> bool:
    """Whether GPUs hold all demands at once, by trying every way."""
    if not demands:
        return True
    (demand, gpu_mem_mib), *rest = demands
    if not demand.gpus:
        return all_fit(rest, gpus)
    return any(all_fit(rest, left) for left in places_for(demand, gpus, gpu_mem_mib))


def demand_of(start: Start) -> tuple[Demand, int]:
    spec = start.job.spec
    return (start.job.demand(start.shape), spec.request.gpu_mem_mib if spec else 0)


def beyond_own(reshape: Reshape, node: Node) -> tuple[Demand, int]:
    """What a running job takes of a node beyond what it has there, of whole GPUs."""
    job = reshape.job
    new = job.demand(reshape.shape)
    if node.name not in job.nodes:
        return (new, 0)
    own = job.demand(job.shape)
    cpus = [node.cpus if d.cpus == ALL_CORES else d.cpus for d in (new, own)]
    more = replace(
        new,
        gpus=max(0, new.gpus - own.gpus),
        cpus=max(0, cpus[0] - cpus[1]),
        mem_mib=max(0, new.mem_mib - own.mem_mib),
    )
    return (more, 0)


def overfull(snapshot: Snapshot, plan: Plan) -> list[str]:
    """The nodes that the plan's starts and growth do not fit on together."""
    found = []
    for node in snapshot.nodes:
        demands = [
            demand_of(start)
            for start in plan.starts
            for nodes in start.all_nodes
            if node.name in nodes
        ]
        demands += [beyond_own(r, node) for r in plan.reshapes if node.name in r.nodes]
        cpus = sum(node.cpus if d.cpus == ALL_CORES else d.cpus for d, _ in demands)
        mem = sum(d.mem_mib for d, _ in demands)
        shares_last = sorted(demands, key=lambda item: (item[0].share, -item[0].gpus))
        if (
            cpus > node.free_cpus
            or (node.mem_mib and mem > node.free_mem_mib)
            or not all_fit(shares_last, gpus_of(node))
        ):
            found.append(node.name)
    return found


# --- the properties -------------------------------------------------------------------------------


@every_policy
@often
@given(cluster=clusters())
def test_never_over_allocates(policy: Policy, cluster: SimulatedCluster) -> None:
    snapshot = view(cluster.snapshot())
    plan = policy(snapshot)
    assert overfull(snapshot, plan) == []


@every_policy
@often
@given(cluster=clusters())
def test_starts_only_what_may_start_and_where_it_may(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    snapshot = cluster.snapshot()
    plan = cycle(snapshot, policy)
    assert [wrong(snapshot, start) for start in plan.starts if wrong(snapshot, start)] == []
    assert len({start.job.id for start in plan.starts}) == len(plan.starts)


def wrong(snapshot: Snapshot, start: Start) -> list[str]:
    job = next(job for job in snapshot.waiting if job.id == start.job.id)
    nodes = [node for node in snapshot.nodes if node.name in start.nodes]
    end_s = snapshot.now_s + (job.time_limit_s or 365 * 86400)
    checks = {
        "shape": start.shape in job.shapes or start.shape == job.shape,
        "owner": start.shape in job.shapes or not molded(snapshot, job),
        "refused": start.shape not in job.refused,
        "frozen": start.shape == job.shape or not job.frozen,
        "reason": gate_of(job) is not Gate.LEAVE,
        "new": gate_of(job) is not Gate.NEW or start.shape == job.shape,
        "smaller": gate_of(job) is not Gate.SMALLER or start.shape.amount < job.shape.amount,
        "mode": start.shape == job.shape or not off(snapshot, job),
        "tasks": 1 <= start.tasks <= job.tasks_waiting,
        "number": len(set(start.nodes)) == len(nodes) == start.shape.nodes,
        "others": start.tasks == len(start.all_nodes),
        "up": all(node.up for node in nodes),
        "features": all(job.features <= node.features for node in nodes),
        "required": set(job.nodes_required) <= set(start.nodes),
        "excluded": job.nodes_excluded.isdisjoint(start.nodes),
        "partition": any(allows(snapshot, name, job, start) for name in job.partitions),
        "reservation": all(
            reservation.end_s <= snapshot.now_s
            or reservation.start_s >= end_s
            or set(reservation.nodes).isdisjoint(start.nodes)
            for reservation in snapshot.reservations
        ),
    }
    return [what for what, right in checks.items() if not right]


def molded(snapshot: Snapshot, job: Job) -> bool:
    """Whether a job's shape may be changed: then it starts as none that its owner excludes."""
    return gate_of(job) is not Gate.NEW and not job.frozen and not off(snapshot, job)


def off(snapshot: Snapshot, job: Job) -> bool:
    return any(snapshot.partition_by_name[name].mode is Mode.OFF for name in job.partitions)


def allows(snapshot: Snapshot, name: str, job: Job, start: Start) -> bool:
    partition = snapshot.partition_by_name[name]
    return (
        set(start.nodes) <= set(partition.nodes)
        and (not partition.max_nodes or len(start.nodes) <= partition.max_nodes)
        and (not partition.max_time_s or job.time_limit_s <= partition.max_time_s)
    )


@every_policy
@often
@given(cluster=clusters())
def test_the_same_cluster_gives_the_same_plan(policy: Policy, cluster: SimulatedCluster) -> None:
    snapshot = cluster.snapshot()
    assert cycle(snapshot, policy) == cycle(copy.deepcopy(snapshot), policy)


@every_policy
@often
@given(cluster=clusters())
def test_a_second_cycle_changes_nothing(policy: Policy, cluster: SimulatedCluster) -> None:
    # Who carries what its owner has ruled out, and waits for a limit, needs two: a share becomes
    # what its user wrote by way of cores, where it cannot directly.
    astray = any(excluded(j) and gate_of(j) is Gate.SMALLER for j in cluster.snapshot().waiting)
    for _ in range(2 if astray else 1):
        cluster.change(cycle(cluster.snapshot(), policy, limit=1000))
    assert cycle(cluster.snapshot(), policy, limit=1000).actions == ()


@every_policy
@often
@given(cluster=clusters())
def test_what_the_cap_defers_is_done_by_the_next_cycles(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    at_once = cycle(cluster.snapshot(), policy, limit=1000)
    running = len(at_once.reshapes) + len(at_once.preempts)  # they are not carried out here
    for left in range(len(at_once.actions), 0, -1):
        plan = cycle(cluster.snapshot(), policy, limit=1)
        assert (len(plan.actions), plan.deferred) == (1, left - 1 + running)
        cluster.change(plan)
    assert cycle(cluster.snapshot(), policy, limit=1).actions == ()


@every_policy
@often
@given(cluster=clusters(shares=False))
def test_what_is_kept_for_a_first_waiting_job_stays_free_for_it(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    plan = policy(view(cluster.snapshot()))
    after = started(cluster, plan)
    delayed = []
    for claim in plan.claims:
        found = Free(after).earliest(claim.job, claim.shape)
        if found is None or found[0] > claim.at_s:
            delayed.append((claim, found))
    assert delayed == []


def started(cluster: SimulatedCluster, plan: Plan) -> Snapshot:
    """The cluster once exactly the plan's starts run, whatever their run times.

    Those that name a type of GPU come first: which GPUs others get is the cluster's own choice.
    """
    starts = tuple(sorted(plan.starts, key=lambda start: not start.shape.gpu_type))
    for start in starts:
        job = cluster.job(start.job.id)
        cluster.submit(replace(job, shape=start.shape), 1e9)
    assert len(cluster.apply(replace(plan, starts=starts, actions=()))) == sum(
        start.tasks for start in starts
    )
    return cluster.snapshot()


@keeps_the_queue
@often
@given(cluster=clusters(shares=False))
def test_the_first_job_of_the_queue_starts_or_keeps_its_earliest_opening(
    policy: Policy, cluster: SimulatedCluster
) -> None:
    snapshot = view(cluster.snapshot())
    plan = policy(snapshot)
    first = next((job for job in snapshot.waiting if job.eligible and not job.limited), None)
    if first is None or any(start.job.id == first.id for start in plan.starts):
        return
    free = Free(snapshot)
    openings = {shape: free.earliest(first, shape) for shape in free.profile(first).shapes}
    claim = next((claim for claim in plan.claims if claim.job.id == first.id), None)
    if claim is None:
        # Only where none of its shapes ever fits, or not the one that a rigid policy gives it.
        assert list(filter(None, openings.values())) == [] or not molds(policy)
    else:
        opening = openings[claim.shape]
        assert opening is not None
        assert claim.at_s == opening[0]


def molds(policy: Policy) -> bool:
    """Whether a policy looks at more than one shape of a job."""
    return policy.molds


@often
@given(cluster=clusters())
def test_equipartition_leaves_nothing_free_that_a_waiting_job_could_use(
    cluster: SimulatedCluster,
) -> None:
    snapshot = view(cluster.snapshot())
    plan = by_name("moldable-equipartition")(snapshot)
    free = leftover(snapshot, plan)
    busy = {start.job.id for start in plan.starts} | {claim.job.id for claim in plan.claims}
    idle = [
        (job.id, shape, free.fit(job, shape))
        for job in snapshot.waiting
        if job.eligible and job.id not in busy
        for shape in free.profile(job).shapes
        if shape.gpus and free.fit(job, shape)
    ]
    assert idle == []


@every_policy
@seldom
@given(cluster=clusters())
def test_every_job_that_can_run_comes_to_its_end(policy: Policy, cluster: SimulatedCluster) -> None:
    cluster.reservations = ()
    possible = {job.id for job in view(cluster.snapshot()).waiting if can_run(cluster, job)}
    done = {run.id.split("_")[0] for run in cluster.run(policy)}
    assert possible <= done


def can_run(cluster: SimulatedCluster, job: Job) -> bool:
    return (
        job.eligible
        and not job.limited
        and job.shape in Free(cluster.snapshot()).profile(job).shapes
    )
