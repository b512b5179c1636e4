"""Rigid FCFS and EASY backfilling, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import HOUR_S, claims, got, job, node, running, snapshot, starts

from pliant.errors import BadInput
from pliant.model import Partition, Shape
from pliant.placement.room import Room
from pliant.plan import Plan
from pliant.policies import by_name, names, options

NODES = [node("n1"), node("n2")]
NUMBER = "0, or a number from 1e-12 to 1e12,"


def test_easy_lets_later_jobs_pass_where_they_delay_no_first_one() -> None:
    plan = by_name("easy-backfill")(
        snapshot(
            NODES,
            [
                job(1, "2"),
                job(2, "2x4"),  # first that waits: from 1800 on, when 9 is over
                job(3, "1", time_limit_s=2 * HOUR_S),  # would run into that
                job(4, "1", time_limit_s=1800),  # is over by then
                job(5, "4"),  # does not fit now
            ],
            [running(9, "4", "n2", 1800)],
        )
    )
    assert starts(plan) == {"1": "2 on n1", "4": "1 on n1"}
    assert claims(plan) == {"2": "2x4 on n1+n2 at 3600"}


def test_easy_lets_a_long_job_use_what_the_claim_leaves() -> None:
    plan = by_name("easy-backfill")(
        snapshot(
            NODES,
            [job(1, "3"), job(2, "1", time_limit_s=0), job(3, "1", time_limit_s=0)],
            [running(9, "3", "n1", 1800), running(8, "3", "n2", 9000)],
        )
    )
    assert starts(plan) == {"2": "1 on n2", "3": "1 on n1"}
    assert claims(plan) == {"1": "3 on n1 at 1800"}


def test_all_that_ends_at_one_instant_is_left_beside_the_claim() -> None:
    ten, busy = node("n1", 10), [running(1, "4", "n1", 3600), running(2, "4", "n1", 3600)]
    waiting = [job(3, "6"), job(4, "2", time_limit_s=2 * HOUR_S)]  # 10 free then, 6 of them kept
    for name in ("easy-backfill", "moldable-equipartition", "moldable-proportional"):
        plan = by_name(name)(snapshot([ten], waiting, busy))
        assert (starts(plan), claims(plan)) == ({"4": "2 on n1"}, {"3": "6 on n1 at 3600"})
    room = Room(0.0, 2)
    assert room.claim([6], [(3600.0, 4), (3600.0, 4)]) == 6
    assert (room.claim_s, room.has(2 * HOUR_S)) == (3600.0, 2)
    room.take(2, 2 * HOUR_S)
    assert room.left == 2


def test_each_partition_has_a_first_waiting_job_of_its_own() -> None:
    view = snapshot(
        [node("n1", free=0), node("n2", free=2), node("n3", free=2)],
        [
            job(1, "4", partitions=("a",)),
            job(2, "4", partitions=("b",)),
            job(3, "2", partitions=("b",)),
            job(4, "1", partitions=("a", "b")),
        ],
        [],
    )
    busy = [
        replace(running(8, "2", "n2", 600), partitions=("a",)),
        replace(running(9, "2", "n3", 700), partitions=("b",)),
    ]
    parts = (Partition("a", ("n1", "n2")), Partition("b", ("n3",)))
    plan = by_name("easy-backfill")(replace(view, partitions=parts, running=tuple(busy)))
    assert starts(plan) == {}
    assert claims(plan) == {"1": "4 on n2 at 600", "2": "4 on n3 at 700"}


def test_a_job_that_the_nodes_could_never_hold_stands_in_nobodys_way() -> None:
    plan = by_name("rigid-fcfs")(snapshot(NODES, [job(1, "5"), job(2, "4")]))
    assert (starts(plan), claims(plan)) == ({"2": "4 on n1"}, {})


def test_nothing_overtakes_in_rigid_fcfs() -> None:
    view = snapshot(NODES, [job(1, "3"), job(2, "2x2"), job(3, "1"), job(4, "1")])
    plan = by_name("rigid-fcfs")(view)
    assert (starts(plan), claims(plan)) == (
        {"1": "3 on n1"},
        {"2": "2x2 on n1+n2 at 3600"},
    )
    passed = by_name("rigid-fcfs", overtaking=True)(view)
    assert (starts(passed), claims(passed)) == (
        {"1": "3 on n1", "3": "1 on n1", "4": "1 on n2"},
        {},
    )


def test_jobs_that_are_held_or_limited_keep_nothing() -> None:
    held, limited = job(1, "4", eligible=False), job(2, "4", limited=True)
    busy = [running(9, "4", "n1", 600)]
    view = snapshot([node("n1"), node("n2", free=1)], [held, limited, job(3, "1")], busy)
    plan = by_name("easy-backfill")(view)
    assert (starts(plan), claims(plan)) == ({"3": "1 on n2"}, {})


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("own", "2"), ("largest", "4"), ("smallest", "1"), ("best", "3")],
)
def test_a_rigid_policy_gives_each_job_one_of_its_shapes(shape: str, expected: str) -> None:
    wants = job(1, "2", "gpus=1-4")
    assert wants.spec is not None
    speeds = tuple(zip((Shape(1, n) for n in range(1, 5)), (1.0, 1.9, 2.5, 2.4), strict=True))
    request = replace(wants.spec.request, throughput=speeds)
    wants = replace(wants, spec=replace(wants.spec, request=request))
    plan = by_name("easy-backfill", shape=shape)(snapshot(NODES, [wants]))
    assert got(plan) == {"1": expected}


def test_what_the_nodes_cannot_hold_is_not_anybodys_largest_shape() -> None:
    plan = by_name("rigid-fcfs")(snapshot(NODES, [job(1, "4", "gpus=4:8,nodes=1-2")]))
    assert starts(plan) == {"1": "2x4 on n1+n2"}


def test_an_array_starts_as_many_tasks_as_fit() -> None:
    plan = by_name("easy-backfill")(snapshot(NODES, [job(1, "3", tasks_waiting=5), job(2, "1")]))
    assert starts(plan) == {"1": "3 on n1, n2", "2": "1 on n2"}
    assert claims(plan) == {"1": "3 on n1 at 3600"}


def test_the_shortest_comes_first_and_ends_the_queue_where_it_does_not_fit() -> None:
    waiting = [
        job(1, "2", volume_s=50.0),
        job(2, "1", volume_s=30.0),
        job(3, "3", volume_s=40.0),
        job(4, "2", volume_s=10.0),
        job(5, "1", volume_s=30.0),
    ]
    view = snapshot([node("n1", 6)], waiting)
    strict, passing = (by_name("rigid-shortest", overtaking=passed) for passed in (False, True))
    assert starts(strict(view)) == {"2": "1 on n1", "4": "2 on n1", "5": "1 on n1"}
    assert starts(passing(view)) == {**starts(strict(view)), "1": "2 on n1"}
    assert strict(replace(view, nodes=(node("n1", 6, free=0),))) == Plan()


def test_nothing_waits_nothing_is_planned() -> None:
    assert [by_name(name)(snapshot(NODES, [])) for name in names()] == [Plan()] * len(names())


def test_every_policy_tells_its_name_and_options() -> None:
    shared = ("least", "across_accounts", "marks")
    assert {name: by_name(name).name for name in names()} == {name: name for name in names()}
    assert {name: tuple(options(name)) for name in names()} == {
        "moldable-equipartition": ("votes", "cpu_speed"),
        "malleable-equipartition": ("votes", "cpu_speed", "least_left_s", "pays"),
        "moldable-proportional": ("order", "target", "cpu_speed"),
        "malleable-proportional": ("order", "target", "cpu_speed", "least_left_s", "pays"),
        "fms": ("order", "times", "sizes", "beside", "high_load", "cpu_speed"),
        "f-scheduling": ("v_bound", "least_rise", "only_gains", "pays"),
        "easy-backfill": ("shape",),
        "rigid-fcfs": ("shape", "overtaking"),
        "rigid-shortest": ("shape", "overtaking"),
        "static-partition": ("slot",),
        "fitgpp": ("s", "p", "several", "shape"),
        "fifo": ("shape",),
        "lrtp": ("times", "several", "shape"),
        "rand": ("seed", "times", "several", "shape"),
        "rsa": ("cpu_speed",),
        "rsc": ("cpu_speed",),
        "asjf": ("cpu_speed",),
        "blind-round-robin": ("cpu_speed",),
        "manual-optimal": ("window", "branches", "cpu_speed"),
        "fms-type": ("order", "times", "sizes", "beside", "high_load", "cpu_speed"),
        "fms-nodes": ("order", "times", "sizes", "beside", "high_load", "cpu_speed"),
        "torque": ("overtaking", "cpu_speed"),
        "mct": ("cpu_speed",),
        "cosched-optimal": ("k",),
        "cosched-fcs": shared,
        "cosched-pi": (*shared, "p", "k", "ends", "window"),
        "cosched-ei": (*shared, "p", "k", "ends", "window"),
        "cosched-ucb": (*shared, "kappa", "p", "k", "ends", "window"),
    }


@pytest.mark.parametrize(
    ("name", "chosen", "words"),
    [
        (
            "fcfs",
            {},
            f"policy: 'fcfs': one of {', '.join(names())} is expected",
        ),
        (
            "rigid-fcfs",
            {"sizes": "all"},
            "policy rigid-fcfs: option 'sizes': one of shape (largest), overtaking (false) is "
            "expected",
        ),
        (
            "easy-backfill",
            {"shape": "biggest"},
            "policy easy-backfill: shape: 'biggest': own or largest or smallest or best is "
            "expected",
        ),
        (
            "rigid-fcfs",
            {"overtaking": 1},
            "policy rigid-fcfs: overtaking: 1: true or false is expected",
        ),
        (
            "static-partition",
            {"slot": -1},
            "policy static-partition: slot: -1: a whole number from 1 to 1e12 is expected",
        ),
        (
            "cosched-pi",
            {"p": 2.0},
            "policy cosched-pi: p: 2.0: a probability above 0.5 and below 1 is expected",
        ),
        *(
            (name, {"k": 0}, f"policy {name}: k: 0: a whole number from 1 to 1e12 is expected")
            for name in ("cosched-optimal", "cosched-pi")
        ),
        *(
            ("fms", {"cpu_speed": speed}, f"policy fms: cpu_speed: {speed}: {NUMBER} is expected")
            for speed in (-1, 1e-320, 1e300)
        ),
    ],
)
def test_a_wrong_policy_or_option_is_refused_in_one_line(
    name: str, chosen: dict[str, object], words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        by_name(name, **chosen)
    assert str(refused.value) == words
