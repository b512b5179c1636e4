"""Jobs that slow each other in a replay: ends worked out by hand as neighbours come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from build import job, node
from hypothesis import given, settings
from resizing import elastic
from strategies import workloads
from test_policies_properties import often
from test_simulator_examples import Script, spans

from pliant.model import Job, Node, Partition, Shape
from pliant.plan import Policy
from pliant.policies import by_name
from pliant.policies.rigid import RigidFcfs
from pliant.simulator.cluster import Cluster
from pliant.simulator.metrics import Span, Task
from pliant.simulator.replay import Replay
from pliant.simulator.workload import Arrival, Beside, Neighbour, Workload

BY_NUMBER = {1: 0.6, 2: 0.4}
"""How fast a job is beside so many on its GPU."""


def on_gpu(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
    return BY_NUMBER.get(sum(one.on_gpu for one in neighbours), 1.0)


def on_node(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
    return 0.5


def replayed(
    nodes: list[Node], arrivals: list[Arrival], beside: Beside, policy: Policy | None = None
) -> list[Task]:
    parts = (Partition("gpu", tuple(one.name for one in nodes), default=True),)
    workload = Workload("by hand", tuple(nodes), parts, tuple(arrivals), beside=beside)
    return [*Replay(workload, policy or RigidFcfs("own")).run()]


def ends(tasks: list[Task]) -> dict[str, float]:
    return {task.id: round(task.end_s, 9) for task in tasks}


def asks(number: int, submit_s: float, shape: str = "1/4", limit_s: int = 0) -> Job:
    return replace(job(number, shape, time_limit_s=limit_s), submit_s=submit_s)


ONE_GPU = [node("n1", 1, shards=4)]


def test_a_neighbour_that_leaves_lets_the_other_go_on_alone() -> None:
    """Both at 0.6: the first has done its 60 s at 100; then the other has 60 of 120 s left."""
    arrivals = [Arrival(asks(1, 0), 60), Arrival(asks(2, 0), 120)]
    assert ends(replayed(ONE_GPU, arrivals, on_gpu)) == {"1": 100, "2": 160}


def test_what_was_done_alone_is_kept_as_a_neighbour_comes() -> None:
    """40 s alone; 50 s at 0.6, in which the second does its 30; then 30 s are left."""
    arrivals = [Arrival(asks(1, 0), 100), Arrival(asks(2, 40), 30)]
    assert ends(replayed(ONE_GPU, arrivals, on_gpu)) == {"1": 120, "2": 90}


def test_a_third_slows_both() -> None:
    """At 20 they have done 16, 6 and 0 s; the second does its 24 at 0.4 until 80, and so on."""
    arrivals = [Arrival(asks(n, at_s), work_s) for n, at_s, work_s in THREE]
    assert ends(replayed(ONE_GPU, arrivals, on_gpu)) == {"1": 180, "2": 80, "3": 196}


THREE = ((1, 0, 100), (2, 10, 30), (3, 20, 100))


def test_jobs_on_different_gpus_share_a_node_alone() -> None:
    two = [node("n1", 2, shards=4)]
    arrivals = [Arrival(asks(n, 0, shape), 60) for n, shape in ((1, "1/4"), (2, "1"))]
    assert ends(replayed(two, arrivals, on_gpu)) == {"1": 60, "2": 60}
    assert ends(replayed(two, arrivals, on_node)) == {"1": 120, "2": 120}


def test_whole_gpus_are_nobody_elses() -> None:
    arrivals = [Arrival(asks(n, 0, "2"), 60) for n in (1, 2)]
    assert ends(replayed([node("n1", 4)], arrivals, on_gpu)) == {"1": 60, "2": 60}


def test_a_job_on_two_nodes_has_the_neighbours_of_both() -> None:
    seen: list[tuple[str, list[str]]] = []

    def noted(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
        seen.append((job.id, [one.job.id for one in neighbours]))
        return 0.5 if job.id == "1" else 1.0

    nodes = [node("n1", 2), node("n2", 2)]
    arrivals = [Arrival(asks(1, 0, "2x1"), 50), *(Arrival(asks(n, 10, "1"), 20) for n in (2, 3))]
    # 10 s alone, 20 at half speed beside both, and the 30 that are left alone again
    assert ends(replayed(nodes, arrivals, noted)) == {"1": 60, "2": 30, "3": 30}
    assert ("1", ["2", "3"]) in seen
    assert ("2", ["1"]) in seen


def test_a_limit_counts_however_slow_a_job_is_and_is_kept_once_it_is_fast_again() -> None:
    """Beside another 60 s take 100: too long for 90, but not where that one leaves at 50."""
    for other_s, end_s in ((60, 90), (30, 80)):
        arrivals = [Arrival(asks(1, 0, limit_s=90), 60), Arrival(asks(2, 0), other_s)]
        tasks = {task.id: task for task in replayed(ONE_GPU, arrivals, on_gpu)}
        assert (tasks["1"].end_s, tasks["1"].timed_out) == (end_s, end_s == 90)


def test_who_stands_still_beside_another_goes_on_when_it_has_left() -> None:
    def stands(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
        return 0.0 if job.id == "1" else 1.0

    arrivals = [Arrival(asks(1, 0), 60), Arrival(asks(2, 10), 30)]
    assert ends(replayed(ONE_GPU, arrivals, stands)) == {"1": 90, "2": 40}


def test_who_launches_is_a_neighbour_and_is_slow_once_it_works() -> None:
    """The first does 10 s until 10, 12 until the other works at 30, and 18 until its end."""
    arrivals = [Arrival(asks(1, 0), 40), Arrival(asks(2, 10), 18, launch_s=20)]
    assert ends(replayed(ONE_GPU, arrivals, on_gpu)) == {"1": 60, "2": 60}


def test_a_job_saves_what_it_has_done_in_company() -> None:
    """30 of 100 s until 50; saved at 60, working again from 65, 70 s are left at 0.6."""
    changes = replace(elastic(1, "1/4", "gpus=1/4-1", time_limit_s=0), submit_s=0.0)
    others = [Arrival(asks(2, 0), 200), Arrival(asks(3, 50, "1/4"), 0.0)]
    arrivals = [Arrival(changes, 100, save_s=10, restart_s=5), *others]
    tasks = replayed(ONE_GPU, arrivals, on_gpu, Script("1/4", "1/2"))
    first, second = spans(tasks)["1"]
    assert first == Span(0, 60, 0.25, 10)
    assert (second.start_s, second.lost_s) == (60, 5)
    assert second.end_s == pytest.approx(65 + 70 / 0.6)


def test_a_job_that_changes_where_it_is_stays_as_slow_beside_its_neighbours() -> None:
    """25 of 100 s until 50, saved at 60; from 65 on 75 s are left, still at half speed."""
    changes = replace(elastic(1, "1", time_limit_s=0), submit_s=0.0)
    others = [Arrival(asks(2, 0, "1"), 200), Arrival(asks(3, 50, "1"), 0.0)]
    arrivals = [Arrival(changes, 100, save_s=10, restart_s=5), *others]
    tasks = replayed([node("n1", 4)], arrivals, on_node, Script("1", "2"))
    assert spans(tasks)["1"] == [Span(0, 60, 1, 10), Span(60, 215, 2, 5)]
    assert ends(tasks)["2"] == 215 + (200 - 107.5)


def test_who_is_alone_on_its_node_is_not_asked_about() -> None:
    def never(job: Job, shape: Shape, neighbours: Sequence[Neighbour]) -> float:
        raise AssertionError(f"{job.id} is alone")

    arrivals = [Arrival(asks(n, 0, "4"), 60) for n in (1, 2)]
    assert ends(replayed([node("n1", 4)], arrivals, never)) == {"1": 60, "2": 120}


def test_where_nobody_is_slowed_the_cluster_keeps_no_books_of_neighbours() -> None:
    workload = Workload("by hand", tuple(ONE_GPU), (Partition("gpu", ("n1",)),), ())
    assert type(Replay(workload, RigidFcfs()).cluster) is Cluster


@pytest.mark.parametrize("name", ["rigid-fcfs", "malleable-equipartition", "fitgpp"])
@settings(often, max_examples=5)
@given(workload=workloads())
def test_whoever_is_slowed_ends_all_the_same_and_at_the_same_whenever_it_is_replayed(
    name: str, workload: Workload
) -> None:
    slowed, policy = replace(workload, beside=on_node), by_name(name)
    found = [*Replay(slowed, policy).run()]
    assert found == [*Replay(slowed, policy).run()]
    assert {one.id for one in found} == {one.id for one in Replay(workload, policy).run()}
