"""The batch system in memory keeps account as a real one does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from batch_in_memory import Run, RunTime, SimulatedCluster
from build import HOUR_S, job, node
from hypothesis import given, settings
from resizing import elastic
from strategies import clusters

from pliant.batch.snapshot_file import read_snapshot, write_snapshot
from pliant.cycle import cycle
from pliant.errors import BadInput
from pliant.model import Abilities, Node, Partition, Pool, Shape
from pliant.policies import by_name

EQUI = by_name("moldable-equipartition")
PARTITION = (Partition("gpu", ("n1", "n2"), default=True),)


def cluster(shards: int = 0) -> SimulatedCluster:
    return SimulatedCluster((node("n1", shards=shards), node("n2", shards=shards)), PARTITION)


def speed(shape: Shape) -> float:
    """An hour's work on one GPU."""
    return HOUR_S / float(shape.amount)


def works(hours: float) -> RunTime:
    """So many hours' work on one GPU."""
    return lambda shape: hours * speed(shape)


def test_a_job_runs_as_long_as_its_shape_takes() -> None:
    sim = cluster()
    sim.submit(job(1, "4", "gpus=1-4", user="ada", time_limit_s=2 * HOUR_S), speed)
    sim.submit(job(2, "2x4", user="bob", time_limit_s=2 * HOUR_S), speed)
    assert sim.run(EQUI) == (
        Run("1", "ada", Shape(1, 4), ("n1",), 0.0, 0.0, 900.0),
        Run("2", "bob", Shape(2, 4), ("n1", "n2"), 0.0, 900.0, 1350.0),
    )


def test_a_time_limit_ends_a_job() -> None:
    sim = cluster()
    sim.submit(job(1, "1", time_limit_s=600), speed)
    assert sim.run(EQUI) == (Run("1", "", Shape(1, 1), ("n1",), 0.0, 0.0, 600.0, timed_out=True),)


def test_nothing_starts_where_it_is_not_free() -> None:
    sim = cluster()
    sim.submit(job(1, "3"), 60.0)
    sim.submit(job(2, "2"), 60.0)
    assert [sim.start("1", ["n1"]), sim.start("2", ["n1"]), sim.start("2", ["n2"])] == [
        "1",
        None,
        "2",
    ]


def test_shares_of_one_gpu_are_shown_as_parts_and_who_shares_them() -> None:
    sim = cluster(shards=4)
    for number, own in enumerate(("1/4", "1/4", "2")):
        sim.submit(job(number, own), 60.0)
        sim.start(str(number), ["n1"])
    shown = sim.snapshot().nodes[0]
    assert shown.pools == (Pool("", 4, 1, 4, parts=(2,), sharers=(2,)),)
    assert shown.free_cpus == 13
    sim.advance(60.0)
    assert sim.snapshot().nodes == sim.nodes


def test_a_running_job_goes_on_as_another_shape_with_what_it_has_done() -> None:
    sim = cluster()
    sim.submit(job(1, "1", restart_s=100.0, time_limit_s=2 * HOUR_S), speed)
    sim.start("1", ["n1"])
    sim.advance(1800.0)
    assert sim.snapshot().running[0].progress == 0.5
    assert not sim.reshape("1", Shape(1, 5), ["n1"])  # there is no such thing: it runs on
    assert sim.reshape("1", Shape(1, 2), ["n2"])
    assert [node.pools[0].free for node in sim.snapshot().nodes] == [4, 2]
    assert sim.next_end_s == 1800.0 + 100.0 + 900.0  # a restart, and half an hour's work on two


def test_a_job_that_makes_room_goes_back_to_the_head_of_the_queue() -> None:
    sim = cluster()
    for number, priority in ((1, 0), (2, 7)):
        sim.submit(job(number, "4", priority=priority), speed)
    sim.start("1", ["n1"])
    sim.advance(450.0)
    sim.preempt("1", "2")
    waiting = sim.snapshot().waiting
    assert [(one.id, one.progress, one.preempted, one.room_for) for one in waiting] == [
        ("1", 0.5, 1, "2"),
        ("2", 0.0, 0, ""),
    ]
    sim.start("2", ["n1"])
    assert sim.job("1").room_for == ""


def test_a_malleable_job_is_done_sooner_as_it_grows_into_what_another_has_left() -> None:
    def ends(policy: str) -> list[float]:
        sim = SimulatedCluster((node("n1"),), PARTITION)
        for number, hours in enumerate((4, 1)):
            sim.submit(elastic(number, time_limit_s=0, restart_s=100.0), works(hours))
        return [run.end_s for run in sim.run(by_name(policy))]

    # Two GPUs each; after half an hour three of four hours are left, on two GPUs or on four.
    assert ends("moldable-equipartition") == [1800.0, 7200.0]
    assert ends("malleable-equipartition") == [1800.0, 1800.0 + 100.0 + 2700.0]


def test_the_tasks_of_an_array_start_one_by_one() -> None:
    sim = cluster()
    sim.submit(job(1, "4", tasks_waiting=3), 60.0)
    assert [sim.start("1", ["n1"]), sim.start("1", ["n2"]), sim.start("1", ["n2"])] == [
        "1_0",
        "1_1",
        None,
    ]
    assert [(left.id, left.tasks_waiting) for left in sim.snapshot().waiting] == [("1", 1)]
    sim.advance(60.0)
    assert sim.start("1", ["n2"]) == "1_2"
    assert sim.waiting == 0


def test_a_change_of_kind_that_goes_one_way_only_is_remembered() -> None:
    sim = cluster(shards=4)
    sim.abilities = Abilities(share_to_whole=True)
    sim.submit(job(1, "1/2", "gpus=1/4-2"), 60.0)
    sim.mold("1", Shape(1, 1))
    changed = sim.job("1")
    assert changed.spec is not None
    assert (changed.shape, changed.spec.set) == (Shape(1, 1), Shape(1, 1))
    assert " ".join(map(str, changed.shapes)) == "1 2"
    assert sim.molds == 1


def test_the_queue_is_by_priority_then_by_arrival() -> None:
    sim = cluster()
    for number, priority in ((1, 0), (2, 5), (3, 5)):
        sim.submit(job(number, "1", priority=priority, reason=""), 60.0)
        sim.advance(float(number))
    queue = sim.snapshot().waiting
    assert [(waiting.id, waiting.reason) for waiting in queue] == [
        ("2", "Resources"),
        ("3", "Priority"),
        ("1", "Priority"),
    ]


def test_what_was_to_be_changed_first_is_not_started_before() -> None:
    sim = cluster()
    for number in range(3):
        sim.submit(job(number, "4", "gpus=1-4"), 60.0)
    assert sim.apply(cycle(sim.snapshot(), EQUI, limit=1)) != ()
    assert sim.molds == 1


@settings(max_examples=40, deadline=None)
@given(cluster=clusters())
def test_a_snapshot_survives_its_file(cluster: SimulatedCluster) -> None:
    seen = cluster.snapshot()
    assert read_snapshot(write_snapshot(seen)) == seen


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not a snapshot: Input data was truncated"),
        (b"[]", "not a snapshot: Expected `object`, got `array`"),
        (b'{"now_s": 0}', "not a snapshot: Object missing required field `nodes`"),
        (
            b'{"now_s":0,"nodes":[],"partitions":[],"waiting":[{"id":"1","spec":{"request":'
            b'{"gpus":["1/0"]}}}]}',
            "not a snapshot: '1/0' is no amount of GPUs; write 4 or 1/4",
        ),
        (b"[" * 100_000, "not a snapshot: "),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(text: bytes, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_snapshot(text)
    assert str(refused.value).startswith(words)
    assert "\n" not in str(refused.value)


def test_a_down_node_starts_nothing() -> None:
    down: Node = replace(node("n1"), up=False)
    sim = SimulatedCluster((down,), PARTITION)
    sim.submit(job(1), 60.0)
    assert sim.start("1", ["n1"]) is None
