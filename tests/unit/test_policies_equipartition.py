"""Moldable equipartition, branch by branch as in paper 000, section IV-A, and what it leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import HOUR_S, claims, got, job, node, running, snapshot, starts

from pliant.model import Footprint, Node, Partition, Snapshot
from pliant.plan import Plan
from pliant.policies import by_name

RANGE = "gpus=1-4"
FINE = "gpus=1/4-4"


def decide(view: Snapshot, votes: str = "largest") -> Plan:
    return by_name("moldable-equipartition", votes=votes)(view)


def shares(*parts: int, gpus: int = 2, sharers: tuple[int, ...] = ()) -> Node:
    """A node whose GPUs have 12 shards each; ``parts``: what is free of those in use."""
    return node("n1", gpus=gpus, shards=12, parts=parts, sharers=sharers)


def test_tasks_share_a_gpu_whose_memory_is_enough_for_all_of_them() -> None:
    asks = "gpus=1/4:1/3:1/2:1,gpu-mem="
    two = [job(1, "1", f"{asks}8G"), job(2, "1", f"{asks}3G")]
    seen = node("n1", gpus=1, shards=12, mem_mib=12_288)
    assert got(decide(snapshot([seen], two))) == {"1": "1"}  # 1/2 has half of the memory
    counts = replace(seen, pools=(replace(seen.pools[0], counts_mem=True),))
    assert got(decide(snapshot([counts], two))) == {"1": "1/2", "2": "1/2"}
    too_large = [two[0], job(3, "1", f"{asks}5G")]
    assert got(decide(snapshot([counts], too_large))) == {"1": "1"}


# --- the paper's branches -------------------------------------------------------------------------


def test_all_get_their_smallest_amount_where_more_is_asked_than_there_is() -> None:
    plan = decide(snapshot([shares(gpus=1)], [job(n, "1", FINE) for n in range(6)]))
    assert got(plan) == {"0": "1/4", "1": "1/4", "2": "1/4", "3": "1/4"}
    assert {start.reason for start in plan.starts} == {
        "more is asked than there is: each job gets its smallest shape"
    }


def test_what_was_decided_for_all_is_told_a_job_only_as_far_as_it_is_true_of_it() -> None:
    alone, three = [node("n1", free=2)], [node(f"n{n}", free=1) for n in range(3)]
    wide = job(1, "1", "gpus=2:3,nodes=1:3")
    smallest = "more is asked than there is: each job gets its smallest shape"
    expected = [
        # what two jobs leave goes to the first of them
        (snapshot(alone, [job(1, "1", RANGE), job(2, "4")]), "2", f"{smallest}, and what is left"),
        # two GPUs are free on no node, three are on three
        (
            snapshot(three, [wide, job(2, "4")]),
            "3x1",
            "more is asked than there is, and nothing sm",
        ),
        # of four free GPUs no node has three
        (
            snapshot([node("n1", free=2), node("n2", free=2)], [job(1, "1", RANGE)]),
            *("2", "there is enough for all, but nothing larger of it fits now"),
        ),
    ]
    for seen, shape, words in expected:
        (start,) = decide(seen).starts
        assert (str(start.shape), start.reason[: len(words)]) == (shape, words)


def test_all_get_their_largest_amount_where_there_is_enough() -> None:
    plan = decide(snapshot([node("n1"), node("n2")], [job(1, "1", RANGE), job(2, "2", RANGE)]))
    assert got(plan) == {"1": "4", "2": "4"}
    assert {start.reason for start in plan.starts} == {
        "there is enough for all: each job gets its largest shape"
    }


@pytest.mark.parametrize(
    ("gpus", "asked", "expected"),
    [
        # One each, then the most votes per GPU that the job would then hold.
        (5, ("1-4", "1-3"), "3 2"),  # 4/2, 3/2, 4/3
        (6, ("1-4", "1-2", "1"), "4 1 1"),  # 4/2, 4/3, then 4/4 before 2/2: the queue's order
        (8, ("1-8", "1-4", "1-4"), "4 2 2"),  # 8/2, 8/3, 8/4 = 4/2 = 4/2
        (7, ("1-2", "1-8"), "1 6"),  # 8/2 … 8/6 are all more than 2/2
        (12, ("1-2", "1-8", "1-4"), "2 7 3"),
        (3, ("1-4", "1-4", "1-4"), "1 1 1"),
    ],
)
def test_one_gpu_each_and_the_rest_by_dhondt(
    gpus: int, asked: tuple[str, ...], expected: str
) -> None:
    jobs = [job(number, "1", f"gpus={text}") for number, text in enumerate(asked)]
    plan = decide(snapshot([node("n1", gpus=gpus)], jobs))
    assert " ".join(got(plan).values()) == expected


def test_equal_votes_are_an_option() -> None:
    view = snapshot([node("n1", gpus=7)], [job(1, "1", "gpus=1-2"), job(2, "1", "gpus=1-8")])
    assert [got(decide(view, votes)) for votes in ("largest", "equal")] == [
        {"1": "1", "2": "6"},
        {"1": "2", "2": "5"},
    ]


def test_more_jobs_than_gpus_share_each_on_the_gpu_with_the_fewest_tasks() -> None:
    plan = decide(snapshot([shares(gpus=2)], [job(n, "1", FINE) for n in range(3)]))
    assert got(plan) == {"0": "1/2", "1": "1", "2": "1/2"}
    plan = decide(snapshot([shares(gpus=2)], [job(n, "1", FINE) for n in range(5)]))
    assert got(plan) == {"0": "1/3", "1": "1/2", "2": "1/3", "3": "1/2", "4": "1/3"}


def test_tasks_that_run_on_a_gpu_count_and_keep_their_part() -> None:
    # One GPU is vacant; half of the other is in use by one job.
    view = snapshot([shares(6, sharers=(1,))], [job(n, "1", FINE) for n in range(3)])
    assert got(decide(view)) == {"0": "1/2", "1": "1/2", "2": "1/2"}
    # Of the other, three jobs have three quarters: all three go to the vacant one.
    view = snapshot([shares(3, sharers=(3,))], [job(n, "1", FINE) for n in range(3)])
    assert got(decide(view)) == {"0": "1/3", "1": "1/3", "2": "1/3"}


def test_what_the_shards_of_a_gpu_do_not_divide_into_is_offered_again() -> None:
    four = node("n1", gpus=2, shards=4)
    plan = decide(snapshot([four], [job(n, "1", FINE) for n in range(5)]))
    assert got(plan) == {"0": "1/2", "1": "1/2", "2": "1/4", "3": "1/2", "4": "1/4"}


def test_nobody_is_pushed_below_its_smallest_share() -> None:
    jobs = [job(1, "1", "gpus=1/2:1"), *(job(n, "1", FINE) for n in (2, 3))]
    plan = decide(snapshot([shares(gpus=2)], jobs))
    assert got(plan) == {"1": "1/2", "2": "1", "3": "1/2"}


def test_a_job_that_cannot_share_gets_its_gpu_whole_among_those_that_do() -> None:
    jobs = [job(1, "1", FINE), job(2, "1"), job(3, "1", FINE), job(4, "1", FINE)]
    plan = decide(snapshot([shares(gpus=3)], jobs))
    assert got(plan) == {"1": "1/2", "2": "1", "3": "1", "4": "1/2"}


# --- beyond the paper -----------------------------------------------------------------------------


def test_totals_are_rounded_down_to_what_the_request_allows_and_the_rest_is_offered_again() -> None:
    jobs = [job(1, "1", "gpus=1:2:4"), job(2, "1", "gpus=1:2:4"), job(3, "1", "gpus=1-2")]
    # D'Hondt's totals are 3, 3 and 1; of the 3 each list job takes 2, and 2 GPUs are left.
    plan = decide(snapshot([node("n1", gpus=7)], jobs))
    assert got(plan) == {"1": "4", "2": "2", "3": "1"}


def test_totals_fit_nodes() -> None:
    plan = decide(snapshot([node("n1"), node("n2")], [job(n, "1", RANGE) for n in range(3)]))
    assert sorted(got(plan).values()) == ["2", "2", "4"]
    spread = decide(snapshot([node("n1"), node("n2")], [job(1, "4", "gpus=4:8,nodes=1-2")]))
    assert starts(spread) == {"1": "2x4 on n1+n2"}


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_job_grows_onto_gpus_whose_cores_are_all_its_own(tasks: int) -> None:
    cores = Footprint(cpus_per_task=16 // tasks)
    greedy = job(1, "1", "gpus=1-2", footprint=cores, tasks_waiting=tasks)
    jobs = [greedy, job(2, "1", RANGE), job(3, "1", RANGE)]
    plan = decide(snapshot([node("n1"), node("n2")], jobs))
    assert got(plan) == {"1": "2" if tasks == 1 else "2 times 2", "2": "2", "3": "2"}


def test_a_smallest_amount_above_one_counts_as_it_is() -> None:
    jobs = [job(1, "2", "gpus=2-4"), job(2, "3", "gpus=3-4"), job(3, "1", RANGE)]
    plan = decide(snapshot([node("n1", gpus=8)], jobs))
    assert got(plan) == {"1": "3", "2": "3", "3": "2"}


def test_jobs_that_can_use_the_same_nodes_are_divided_among_and_others_apart() -> None:
    view = snapshot([node("n1", gpus=2), node("n2", gpus=8)], [])
    parts = (Partition("a", ("n1",)), Partition("b", ("n2",)))
    waiting = (
        job(1, "1", RANGE, partitions=("a",)),
        job(2, "1", RANGE, partitions=("b",)),
        job(3, "1", RANGE, partitions=("a",)),
        job(4, "1", RANGE, partitions=("b",)),
    )
    plan = decide(replace(view, partitions=parts, waiting=waiting))
    assert got(plan) == {"1": "1", "2": "4", "3": "1", "4": "4"}


def hole(limit_s: int) -> Snapshot:
    """A rigid job of 8 GPUs is first; until it can start, in half an hour, 3 GPUs are free."""
    jobs = [job(1, "2x4"), job(2, "4", RANGE, time_limit_s=limit_s)]
    busy = [running(9, "4", "n1", 1800), running(8, "1", "n2", 1700)]
    return snapshot([node("n1"), node("n2")], jobs, busy)


def test_the_hole_bounds_what_a_job_gets() -> None:
    short, long = decide(hole(1800)), decide(hole(HOUR_S))
    assert (starts(short), claims(short)) == ({"2": "3 on n2"}, {"1": "2x4 on n1+n2 at 1800"})
    assert (starts(long), claims(long)) == ({}, {"1": "2x4 on n1+n2 at 1800"})


def test_an_array_gets_one_shape_for_all_its_tasks() -> None:
    nodes = [node("n1"), node("n2")]
    assert starts(decide(snapshot(nodes, [job(1, "4", RANGE, tasks_waiting=3)]))) == {
        "1": "2 on n1, n1, n2"
    }
    some = decide(snapshot(nodes, [job(1, "4", RANGE, tasks_waiting=30)]))
    assert got(some) == {"1": "8 times 1"}


def test_jobs_that_ask_for_one_shape_get_that_or_nothing() -> None:
    jobs = [job(1, "2"), job(2, "1", RANGE), job(3, "4"), job(4, "1")]
    plan = decide(snapshot([node("n1"), node("n2", gpus=2)], jobs))
    # Job 3 would need all of a node, and n1 is shared by 2 and 4 until it could start there.
    assert got(plan) == {"1": "2", "2": "3", "4": "1"}


def test_a_job_takes_cores_only_where_it_is_done_sooner_so() -> None:
    allows = "type=gpu:cpu,cores=8"
    busy = [running(9, "4", "n1", 1800)]
    view = snapshot([node("n1")], [job(1, "1", allows)], busy)
    assert starts(decide(view)) == {}
    # At half the speed of its GPU: done in 2 h, against 30 min of waiting and 1 h.
    assert starts(by_name("moldable-equipartition", cpu_speed=0.5)(view)) == {}
    # At two thirds: both in 1 h 30 min.
    assert starts(by_name("moldable-equipartition", cpu_speed=0.7)(view)) == {"1": "1x0@cpu on n1"}


def test_a_job_that_does_without_free_cores_keeps_the_gpus_that_it_waits_for() -> None:
    # On cores it would be done in 10 h, on GPUs in 10 min and 1 h. Job 2 would be in its way.
    first = job(1, "4", "gpus=4,type=gpu:cpu,cores=8")
    busy = [running(9, "2", "n1", 600), running(8, "1x0@cpu", "n1", 100)]
    view = snapshot([node("n1")], [first, job(2, "2")], busy)
    assert (starts(decide(view)), claims(decide(view))) == ({}, {"1": "4 on n1 at 600"})
    # Where it is done sooner on cores, and they are not free either, it keeps those.
    full = snapshot(
        [node("n1", cpus=9)],
        [first],
        [running(9, "4", "n1", 36_000), running(8, "1x0@cpu", "n1", 600)],
    )
    eager = by_name("moldable-equipartition", cpu_speed=0.9)
    assert claims(eager(full)) == {"1": "1x0@cpu on n1 at 600"}


def test_what_a_growing_job_leaves_behind_is_offered_to_those_that_got_nothing() -> None:
    first = job(1, "4", nodes_required=("n3",))
    jobs = [first, job(2, "2", "gpus=2:4"), job(3, "2", nodes_required=("n1",))]
    nodes = [node("n1", gpus=2), node("n2"), node("n3")]
    plan = decide(snapshot(nodes, jobs, [running(9, "4", "n3", 600)]))
    assert starts(plan) == {"2": "4 on n2", "3": "2 on n1"}


def test_a_larger_shape_is_taken_where_a_smaller_one_is_not_allowed() -> None:
    jobs = [job(n, "2", "gpus=2:4") for n in range(3)]
    plan = decide(snapshot([node("n1", free=3), node("n2", free=2)], jobs))
    assert got(plan) == {"0": "2", "1": "2"}
