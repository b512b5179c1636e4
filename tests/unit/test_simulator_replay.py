"""What every replay keeps, whatever the workload and the policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from replaying import Counted, Watched, as_plain, replayed
from strategies import workloads
from test_policies_properties import ALL, often

from pliant.model import (
    Footprint,
    Job,
    Malleable,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Snapshot,
    Spec,
)
from pliant.placement import ground, queue
from pliant.placement.ground import Ground, Grounded
from pliant.plan import Plan, Policy, Reshape
from pliant.policies import by_name
from pliant.policies.rigid import RigidFcfs
from pliant.simulator.cluster import CHANGES
from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Arrival, Workload
from pliant.simulator.workloads.fujiwara import fujiwara

every_policy = pytest.mark.parametrize("policy", ALL, ids=repr)
some = settings(often, max_examples=10)
few = settings(often, max_examples=4)


# --- decisions over what is kept from one to the next ---------------------------------------------


def decided_both_ways(snapshot: Snapshot, policy: Policy) -> Plan:
    """The plan, that is the same for a cluster that has kept nothing and leaves no trace."""
    assert isinstance(snapshot, Grounded)
    anew, before = policy(as_plain(snapshot)), state_of(snapshot.ground.restored())
    plan = policy(snapshot)
    assert plan == anew
    assert state_of(snapshot.ground.restored()) == before
    return plan


def state_of(of: Ground) -> object:
    """All that a decision on a ground can see of the cluster."""
    cells = of.cells
    return (
        {place: (cell.kind, cell.state, cell.lefts) for place, cell in cells.of.items()},
        {cell: list(cell.nodes) for cell in cells.filled()},
        {kind: gpus for kind, gpus in cells.vacant.items() if gpus},
        list(cells.claimed),
        [(one.at_s, one.nodes, one.need) for one in of.ends.among((), 0.0)],
    )


@every_policy
@some
@given(workload=workloads())
def test_a_cluster_that_keeps_its_ground_is_planned_as_one_that_is_read_anew(
    policy: Policy, workload: Workload
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "PATIENCE", 1)
        replayed(workload, Watched(policy, decided_both_ways))


@every_policy
@few
@given(workload=workloads())
def test_what_is_forgotten_changes_nothing(policy: Policy, workload: Workload) -> None:
    _, tasks, _ = replayed(workload, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ground, "MOST_KNOWN", 1)
        _, others, _ = replayed(workload, policy)
    assert others == tasks


# --- what happens ---------------------------------------------------------------------------------


@every_policy
@some
@given(workload=workloads())
def test_nothing_is_lost_or_done_twice_and_all_is_given_back(
    policy: Policy, workload: Workload
) -> None:
    """That nothing is given twice is looked after whenever a job starts, changes or stops."""
    replay, tasks, cluster = replayed(workload, policy)
    assert cluster.is_free
    assert cluster.refused == []
    assert cluster.running == {}
    assert sorted(everybody(tasks, replay)) == sorted(
        arrival.job.id for arrival in workload.arrivals for _ in range(arrival.job.tasks_waiting)
    )
    assert len({task.id for task in tasks}) == len(tasks) == replay.finished
    for task in tasks:
        assert wrong(task, workload, cluster) == []
    assert [one.end_s for one in tasks] == sorted(one.end_s for one in tasks)


def everybody(tasks: Sequence[Task], replay: Replay) -> list[str]:
    """The jobs that have ended or wait for ever, an array as often as it has tasks."""
    waiting = [job.id for job in replay.cluster.queue for _ in range(job.tasks_waiting)]
    return [task.id.partition("_")[0] for task in tasks] + waiting


def wrong(task: Task, workload: Workload, cluster: Counted) -> list[str]:
    """What cannot be about how a task has run."""
    arrival = next(a for a in workload.arrivals if a.job.id == task.id.partition("_")[0])
    shapes, spans, limit_s = cluster.shapes[task.id], task.spans, arrival.job.time_limit_s
    worked = [span.end_s - span.start_s - span.lost_s for span in spans]
    done = sum(work / arrival.run_s(shape) for work, shape in zip(worked, shapes, strict=True))
    lost_s = arrival.launch_s + arrival.save_s + arrival.restart_s
    checks = {
        "arrival": task.start_s >= arrival.job.submit_s == task.submit_s,
        "order": all(one.end_s <= other.start_s for one, other in pairwise(spans)),
        "length": all(span.end_s >= span.start_s for span in spans),
        "gpus": [span.gpus for span in spans] == [float(shape.amount) for shape in shapes],
        "lost": all(-1e-6 <= span.lost_s <= lost_s + 1e-6 for span in spans),
        "shapes": all(s in (*arrival.job.shapes, arrival.job.shape) for s in shapes),
        "limit": not task.timed_out or abs(spans[-1].end_s - spans[-1].start_s - limit_s) < 1e-6,
        "within": not limit_s or spans[-1].end_s - spans[-1].start_s <= limit_s + 1e-6,
        "work": done < 1 + 1e-6 if task.timed_out else abs(done - 1) < 1e-6,
        "runs": len(shapes) == len(spans),
    }
    return [what for what, right in checks.items() if not right]


@every_policy
@few
@given(workload=workloads())
def test_the_policy_is_asked_once_for_each_instant(policy: Policy, workload: Workload) -> None:
    """Where something that it says is over at once, that makes an instant of its own."""
    slow = tuple(replace(a, save_s=10.0, launch_s=5.0) for a in workload.arrivals)
    watched = Watched(policy)
    replay, _, _ = replayed(replace(workload, arrivals=slow), watched)
    assert len(watched.asked_s) == replay.cycles
    assert watched.asked_s == sorted(set(watched.asked_s))


@every_policy
@few
@given(workload=workloads())
def test_the_same_workload_gives_the_same_replay(policy: Policy, workload: Workload) -> None:
    assert list(Replay(workload, policy).run()) == list(Replay(workload, policy).run())


def on_one_node(gpus: int, jobs: int) -> Workload:
    """The first of Fujiwara's jobs, with all GPUs on one node: which a share is of is not known."""
    apart = fujiwara(0, gpus, tasks=500, told=True)

    def joined(shape: Shape) -> Shape:
        return Shape(1, shape.nodes * shape.gpus, share=shape.share)

    specs: dict[Spec, Spec] = {}

    def moved(arrival: Arrival) -> Arrival:
        job, spec = arrival.job, arrival.job.spec
        assert spec is not None
        curve = tuple((joined(shape), speed) for shape, speed in spec.request.throughput)
        known = specs.setdefault(
            spec, replace(spec, request=replace(spec.request, throughput=curve))
        )
        shapes = tuple(map(joined, job.shapes))
        return replace(arrival, job=replace(job, shapes=shapes, spec=known))

    first = apart.nodes[0]
    pool = replace(first.pools[0], total=gpus, free=gpus)
    node = replace(first, cpus=gpus * first.cpus, free_cpus=gpus * first.free_cpus, pools=(pool,))
    partition = replace(apart.partitions[0], nodes=(node.name,))
    arrivals = [*map(moved, apart.arrivals[:jobs])]
    return replace(apart, nodes=(node,), partitions=(partition,), arrivals=arrivals)


def test_jobs_that_share_gpus_are_not_changed_to_and_fro() -> None:
    """Whose GPU is whose decides who may be changed: here two decisions took turns for ever."""
    some = on_one_node(12, 60)
    assert starts_in_one_instant(some, by_name("malleable-proportional", order="volume")) == 1


def starts_in_one_instant(workload: Workload, policy: Policy) -> int:
    """How often a job is started in one instant, at most."""
    tasks = Replay(workload, policy).run()
    return max(Counter((t.id, span.start_s) for t in tasks for span in t.spans).values())


class ToAndFro(RigidFcfs):
    """Gives every running job that may be changed its other shape."""

    resizes = True

    def __call__(self, snapshot: Snapshot) -> Plan:
        reshapes = tuple(
            Reshape(job, shape, job.nodes, "")
            for job in snapshot.running
            for shape in job.shapes
            if len(job.shapes) == 2 and shape != job.shape
        )
        return replace(super().__call__(snapshot), reshapes=reshapes)


def test_no_job_is_changed_for_ever_in_one_instant() -> None:
    whole = on_one_node(12, 3)
    both = tuple(
        replace(one, job=replace(one.job, shape=Shape(1, 1), shapes=(Shape(1, 1), Shape(1, 2))))
        for one in whole.arrivals
    )
    started = 1
    often = starts_in_one_instant(replace(whole, arrivals=both), ToAndFro("own"))
    assert often == started + CHANGES


@pytest.mark.parametrize(
    ("says", "lengths_s"),
    [
        (Malleable(max_resizes=0), [1000.0]),
        (Malleable(max_resizes=2), [110.0, 10.0, 900.0]),
        (Malleable(min_run_s=200), [110.0, 210.0, 210.0, 210.0, 210.0, 100.0]),
        (Malleable(max_resizes=2, min_run_s=200), [110.0, 210.0, 700.0]),
    ],
)
def test_a_job_is_resized_as_often_and_as_soon_again_as_its_owner_says(
    says: Malleable, lengths_s: list[float]
) -> None:
    """Its other shape is wanted whenever something happens: another job comes after 100 s."""
    both, large = (Shape(1, 1), Shape(1, 2)), Shape(1, 4)
    other = Job("2", partitions=("all",), submit_s=100.0, shape=large, shapes=(large,))
    spec = Spec(Request(gpus=(Fraction(1), Fraction(2)), malleable=says))
    first = replace(other, id="1", submit_s=0.0, shape=both[0], shapes=both, spec=spec)
    arrivals = (Arrival(first, 1000.0, save_s=10.0), Arrival(other, 1.0))
    node = Node("n1", 16, 16, 0, 0, (Pool("", 4, 4),))
    workload = Workload("often", (node,), (Partition("all", ("n1",), default=True),), arrivals)
    tasks = {task.id: task for task in Replay(workload, ToAndFro("own")).run()}
    assert [span.end_s - span.start_s for span in tasks["1"].spans] == lengths_s


def at_once(pools: tuple[Pool, ...], *asks: tuple[Shape, int]) -> Replay:
    """Replay jobs that wait for one node from the beginning; each asks so much memory of a GPU."""
    jobs = [
        Job(
            *(str(number), ""),
            partitions=("all",),
            shape=shape,
            shapes=(shape,),
            spec=Spec(Request(gpus=(shape.amount,), gpu_mem_mib=mem_mib), own=shape),
            footprint=Footprint(cpus_per_task=1),
        )
        for number, (shape, mem_mib) in enumerate(asks)
    ]
    node = Node("n1", 16, 16, 0, 0, pools)
    partition = Partition("all", ("n1",), default=True)
    arrivals = tuple(Arrival(job, 100.0) for job in jobs)
    return Replay(Workload("at once", (node,), (partition,), arrivals), RigidFcfs())


def test_all_that_was_decided_is_carried_out_whichever_gpus_of_a_node_it_was_meant_for() -> None:
    quarter, half, one = Shape(1, 1, 4), Shape(1, 1, 2), Shape(1, 1)
    counted = (Pool("", 2, 2, 12, mem_mib=16_000, counts_mem=True),)
    shares = ((quarter, 8000), (quarter, 9000), (half, 8000), (half, 7000))
    two = (Pool("large", 1, 1, 4), Pool("small", 1, 1, 4))
    typed = ((replace(half, gpu_type="large"), 0), (one, 0), (half, 0))
    for replay in (at_once(counted, *shares), at_once(two, *typed)):
        starts = {task.id: task.spans[0].start_s for task in replay.run()}
        assert (set(starts.values()), replay.refused) == ({0.0}, 0)
