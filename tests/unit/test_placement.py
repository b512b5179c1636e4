"""What is free for a job: now, later, and under the claims of others."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from build import HOUR_S, PER_GPU, job, node, running, snapshot

from pliant.grammar import parse_shape
from pliant.model import (
    Abilities,
    Footprint,
    Job,
    JobState,
    Kind,
    Node,
    Partition,
    Pool,
    Reservation,
    Shape,
    Snapshot,
)
from pliant.placement import Free, why_not
from pliant.placement.needs import Need, find, freed, need_key
from pliant.placement.states import node_in, state_of, taken


def fit(view: Snapshot, asked: Job, shape: str = "") -> tuple[str, ...] | None:
    return Free(view).fit(asked, parse_shape(shape) if shape else asked.shape)


def test_a_job_goes_where_it_leaves_the_fewest_gpus_alone() -> None:
    view = snapshot([node("n1", free=4), node("n2", free=2), node("n3", free=3)], [])
    assert [fit(view, job(1, own)) for own in ("1", "2", "3", "4")] == [
        ("n2",),
        ("n2",),
        ("n3",),
        ("n1",),
    ]


def test_what_is_taken_is_gone_and_what_is_released_is_back() -> None:
    free = Free(snapshot([node("n1", gpus=4)], []))
    one, two = job(1, "3"), job(2, "2")
    given = free.take(one, one.shape, ("n1",))
    assert (free.fit(two, two.shape), free.vacant(two)) == (None, 1)
    free.release(given)
    free.forget_failures()
    assert (free.fit(two, two.shape), free.vacant(two)) == (("n1",), 4)


@pytest.mark.parametrize("shards", [0, 4])
def test_a_claim_takes_what_is_free_only_later_first(shards: int) -> None:
    """Three GPUs from 900 s on: the two that are in use until then, and one of the others."""
    busy = running(9, "2", "n1", 900.0)
    free = Free(snapshot([node("n1", shards=shards)], [], [busy]))
    assert free.claim(job(1, "3"), (Shape(1, 3),)) is not None
    long = job(2, time_limit_s=0)
    assert [free.fit(long, Shape(1, gpus)) for gpus in (1, 2)] == [("n1",), None]


def test_cores_and_memory_go_with_the_gpus() -> None:
    view = snapshot([node("n1", gpus=4, free_cpus=8)], [])
    asked = job(1, "1", footprint=PER_GPU)
    assert [fit(view, asked, shape) for shape in ("2", "3")] == [("n1",), None]
    small = replace(view.nodes[0], mem_mib=10_000, free_mem_mib=7_000)
    with_memory = replace(view, nodes=(small,))
    per_gpu = replace(asked, footprint=replace(PER_GPU, cpus_per_gpu=1, mem_per_gpu_mib=3_000))
    assert [fit(with_memory, per_gpu, shape) for shape in ("2", "3")] == [("n1",), None]


def test_every_node_of_a_shape_needs_its_gpus() -> None:
    view = snapshot([node("n1", free=2), node("n2", free=1), node("n3", free=2)], [])
    assert [fit(view, job(1), shape) for shape in ("2x2", "3x1", "3x2", "1x4")] == [
        ("n1", "n3"),
        ("n2", "n1", "n3"),
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"up": False}, False),
        ({"features": frozenset({"ib"})}, True),
    ],
)
def test_only_nodes_that_are_up_count(changes: dict[str, Any], fits: bool) -> None:
    view = snapshot([node("n1", **changes)], [])
    assert (fit(view, job(1)) is not None) is fits


@pytest.mark.parametrize(
    ("wishes", "nodes"),
    [
        ({"features": frozenset({"ib"})}, ("n2",)),
        ({"features": frozenset({"ib", "fast"})}, None),
        ({"nodes_excluded": frozenset({"n1"})}, ("n2",)),
        ({"nodes_required": ("n2",)}, ("n2",)),
        ({"nodes_required": ("n1", "n2")}, None),
        ({"nodes_required": ("elsewhere",)}, None),
        ({"partitions": ("nowhere",)}, None),
        ({"partitions": ()}, ("n1",)),
    ],
)
def test_a_job_uses_the_nodes_that_it_asked_for(
    wishes: dict[str, Any], nodes: tuple[str, ...] | None
) -> None:
    view = snapshot([node("n1"), node("n2", features=frozenset({"ib"}))], [])
    assert fit(view, replace(job(1), **wishes)) == nodes


def test_two_required_nodes_are_both_used() -> None:
    view = snapshot([node("n1"), node("n2"), node("n3")], [])
    asked = job(1, "2x4", nodes_required=("n3", "n2"))
    assert fit(view, asked) == ("n2", "n3")


@pytest.mark.parametrize(
    ("rules", "fits"),
    [
        ({}, True),
        ({"up": False}, False),
        ({"max_nodes": 1}, False),
        ({"max_nodes": 2}, True),
        ({"max_time_s": HOUR_S - 1}, False),
        ({"max_time_s": HOUR_S}, True),
    ],
)
def test_a_partition_has_rules(rules: dict[str, Any], fits: bool) -> None:
    view = snapshot([node("n1"), node("n2")], [])
    partition = replace(view.partitions[0], **rules)
    asked = job(1, "2x1")
    assert (fit(replace(view, partitions=(partition,)), asked) is not None) is fits


def test_all_nodes_of_a_job_are_in_one_of_its_partitions() -> None:
    view = snapshot([node("n1"), node("n2")], [])
    apart = (Partition("a", ("n1",)), Partition("b", ("n2",)))
    view = replace(view, partitions=apart)
    asked = job(1, partitions=("a", "b"))
    assert [fit(view, asked, shape) for shape in ("1", "2x1")] == [("n1",), None]


@pytest.mark.parametrize(
    ("start_s", "end_s", "own", "nodes"),
    [
        (HOUR_S, 2 * HOUR_S, "", ("n1",)),  # begins when the job ends
        (HOUR_S - 1, 2 * HOUR_S, "", None),  # begins before that
        (-10, 0, "", ("n1",)),  # is over
        (-10, 2 * HOUR_S, "mine", ("n1",)),  # is the job's own
        (-10, HOUR_S - 1, "mine", None),  # ... but too short
        (10, 2 * HOUR_S, "mine", None),  # ... but not yet open
    ],
)
def test_a_reservation_closes_its_nodes_to_others(
    start_s: float, end_s: float, own: str, nodes: tuple[str, ...] | None
) -> None:
    view = snapshot([node("n1")], [])
    view = replace(view, reservations=(Reservation("mine", ("n1",), start_s, end_s),))
    assert fit(view, job(1, reservation=own)) == nodes


def test_a_job_without_a_limit_runs_into_any_reservation() -> None:
    later = Reservation("maintenance", ("n1",), 30 * 24 * HOUR_S, 31 * 24 * HOUR_S)
    view = replace(snapshot([node("n1")], []), reservations=(later,))
    assert [fit(view, job(1)), fit(view, job(1, time_limit_s=0))] == [("n1",), None]


def test_gpus_of_the_asked_type_count_and_any_where_none_is_asked() -> None:
    pools = (Pool("a100", 2, 2), Pool("v100", 2, 1))
    view = snapshot([], [])
    view = replace(
        view,
        nodes=(Node("n1", 16, 16, 0, 0, pools),),
        partitions=(Partition("gpu", ("n1",)),),
    )
    shapes = ("2@a100", "3@a100", "1@v100", "2@v100", "3", "4")
    assert [fit(view, job(1), shape) for shape in shapes] == [
        ("n1",),
        None,
        ("n1",),
        None,
        ("n1",),
        None,
    ]


# --- shares ---------------------------------------------------------------------------------------


def test_a_share_lies_on_one_gpu_and_a_gpu_in_parts_is_not_whole() -> None:
    view = snapshot([node("n1", gpus=2, shards=4, parts=(1, 1))], [])
    assert [fit(view, job(1), shape) for shape in ("1/4", "1/2", "1")] == [("n1",), None, None]


def test_shares_fill_a_gpu_before_they_break_another() -> None:
    free = Free(snapshot([node("n1", gpus=2, shards=4)], []))
    quarter, one = job(1, "1/4"), job(2, "1")
    for _ in range(4):
        free.take(quarter, quarter.shape, ("n1",))
    assert (free.fit(one, one.shape), free.vacant(one)) == (("n1",), 1)


def test_a_share_must_divide_the_shards_of_a_gpu() -> None:
    view = snapshot([node("n1", gpus=1, shards=4)], [])
    assert [fit(view, job(1), shape) for shape in ("1/2", "1/3")] == [("n1",), None]


def test_the_memory_of_a_gpu_bounds_how_many_share_it() -> None:
    view = snapshot([node("n1", gpus=1, shards=4, mem_mib=16_000)], [])
    asked = job(1, "1/4", "gpus=1/4:1/2,gpu-mem=8G")
    assert [fit(view, asked, shape) for shape in ("1/4", "1/2")] == [None, None]
    asked = job(1, "1/4", "gpus=1/4:1/2,gpu-mem=6G")
    assert [fit(view, asked, shape) for shape in ("1/4", "1/2")] == [None, ("n1",)]


def counted(*parts: int, left_mib: tuple[int, ...] = ()) -> Snapshot:
    """One GPU of 16,000 MiB; it is counted what those that share it take of that."""
    pool = Pool("", 1, 1 - len(parts), 12, parts, 16_000, (), True, left_mib)
    return snapshot([replace(node("n1"), pools=(pool,))], [])


def test_where_a_gpus_memory_is_counted_those_that_share_it_take_what_they_need_of_it() -> None:
    large, small = (job(n, "1/4", f"gpus=1/4:1/2,gpu-mem={gib}G") for n, gib in ((1, 10), (2, 5)))
    view = counted()
    assert [fit(view, large, shape) for shape in ("1/4", "1/2")] == [("n1",), ("n1",)]
    free = Free(view)
    held = free.take(large, large.shape, ("n1",))
    assert (free.fit(large, large.shape), free.fit(small, small.shape)) == (None, ("n1",))
    free.take(small, small.shape, ("n1",))
    assert free.fit(small, small.shape) is None  # half of its shards are free
    free.release(held)
    free.forget_failures()
    assert free.fit(large, large.shape) == ("n1",)


def test_a_node_shows_what_is_left_of_its_gpus_memory_and_is_read_so_again() -> None:
    quarter = job(1, "1/4", "gpus=1/4:1/2,gpu-mem=5G")
    (row,) = counted().nodes
    (kind,) = Free(counted()).kinds()
    state = state_of(row)
    for parts in ((9,), (6,), (3,)):
        receipt = find(kind, state, Need(*need_key(quarter, quarter.shape)))
        assert receipt is not None
        state = taken(state, receipt)
        seen = node_in(row, state)
        left = 16_000 - (4 - parts[0] // 3) * 5 * 1024
        assert (seen.pools[0].parts, seen.pools[0].parts_mem_mib) == (parts, (left,))
        assert state_of(seen) == state
    need = Need(*need_key(quarter, quarter.shape))
    for _ in range(3):
        state = freed(kind, state, need)
    assert state == kind.empty


def test_a_job_ahead_waits_for_the_memory_of_a_gpu_that_runs_out_of_it() -> None:
    needs = job(1, "1/4", "gpus=1/4:1/2,gpu-mem=12G")
    holder = replace(
        running(9, "1/4", "n1", HOUR_S), spec=job(9, "1/4", "gpus=1/4:1/2,gpu-mem=8G").spec
    )
    view = replace(counted(9, left_mib=(16_000 - 8 * 1024,)), running=(holder,))
    free = Free(view)
    assert free.fit(needs, needs.shape) is None
    assert free.earliest(needs, needs.shape) == (HOUR_S, ("n1",))


def test_what_is_available_counts_parts_of_gpus() -> None:
    free = Free(snapshot([node("n1", gpus=4, shards=4, parts=(3, 1))], []))
    assert (free.vacant(job(1)), free.available(job(1))) == (2, Fraction(3))


def test_a_gpu_without_a_core_beside_it_is_not_vacant() -> None:
    free = Free(snapshot([node("n1", free_cpus=0), node("n2", free=1)], []))
    assert (free.vacant(job(1)), free.available(job(1))) == (1, Fraction(1))


# --- later ----------------------------------------------------------------------------------------


def test_a_job_that_has_its_nodes_alone_gives_back_all_that_is_on_them() -> None:
    holder = replace(running(9, "1x0@cpu", "n1", HOUR_S), whole_nodes=True)
    view = snapshot([node("n1", free=0, free_cpus=1)], [job(1, "4")], [holder])
    assert Free(view).earliest(job(1, "4"), Shape(1, 4)) == (HOUR_S, ("n1",))


def test_the_earliest_start_follows_from_the_time_limits_of_what_runs() -> None:
    view = snapshot(
        [node("n1"), node("n2")],
        [],
        [running(8, "3", "n1", 600), running(9, "4", "n2", 300), running(10, "1", "n1", 900)],
    )
    free = Free(view)
    found = [free.earliest(job(1), parse_shape(text)) for text in ("1", "4", "2x1", "2x4", "5")]
    assert found == [
        (300.0, ("n2",)),
        (300.0, ("n2",)),
        (600.0, ("n1", "n2")),
        (900.0, ("n1", "n2")),
        None,
    ]


def test_what_running_jobs_have_is_free_when_all_are_over_whichever_gpus_they_have() -> None:
    pools = (Pool("a100", 4, 1), Pool("v100", 2, 0))
    view = replace(
        snapshot([], []),
        nodes=(Node("n1", 16, 13, 0, 0, pools),),
        partitions=(Partition("gpu", ("n1",)),),
        running=(
            running(8, "4", "n1", 100),  # of any type: three of the one and one of the other
            running(9, "1@v100", "n1", 300),
        ),
    )
    free = Free(view)
    assert [free.earliest(job(1), parse_shape(text)) for text in ("4@a100", "5", "6")] == [
        (100.0, ("n1",)),
        (100.0, ("n1",)),
        (300.0, ("n1",)),
    ]


def test_shares_are_whole_gpus_again_when_all_are_over() -> None:
    view = snapshot([node("n1", gpus=2, shards=4, parts=(1, 0))], [])
    ends = [("1/2", 100), ("1/4", 200), ("1/2", 300), ("1/2", 400)]
    busy = tuple(running(number, own, "n1", end_s) for number, (own, end_s) in enumerate(ends))
    free = Free(replace(view, running=busy))
    assert [free.earliest(job(1), parse_shape(text)) for text in ("1/2", "1", "2")] == [
        (100.0, ("n1",)),
        (300.0, ("n1",)),
        (400.0, ("n1",)),
    ]


def test_what_is_overdue_or_ending_is_free_about_now() -> None:
    view = snapshot([node("n1")], [], [running(9, "4", "n1", -50)])
    assert Free(view).earliest(job(1, "4"), Shape(1, 4)) == (0.0, ("n1",))


@pytest.mark.parametrize("ends_s", [(100.0, 900.0), (900.0, 100.0), (900.0, 900.0)])
def test_cpus_that_two_jobs_share_are_free_at_the_last_end(ends_s: tuple[float, float]) -> None:
    whole, here = Footprint(cpus_per_task=4), node("n1", 0, cpus=4, free_cpus=0)
    cpus = Shape(1, 0, kind=Kind.CPU)
    fields: dict[str, Any] = {"shape": cpus, "footprint": whole, "shares": True}
    pair = [replace(running(at, "1", "n1", end_s), **fields) for at, end_s in enumerate(ends_s)]
    view = replace(snapshot([here], []), running=tuple(pair))
    asked = replace(job(9), shape=cpus, shapes=(cpus,), footprint=whole)
    assert Free(view).earliest(asked, cpus) == (900.0, ("n1",))
    half = replace(asked, footprint=Footprint(cpus_per_task=2))
    assert Free(view).earliest(half, cpus) == (900.0, ("n1",))
    ending = replace(view, running=(replace(pair[0], state=JobState.ENDING), pair[1]))
    assert Free(ending).earliest(asked, cpus) == (ends_s[1], ("n1",))


def test_a_claim_lets_those_pass_that_end_before_it_or_need_what_it_leaves() -> None:
    view = snapshot([node("n1"), node("n2")], [], [running(9, "3", "n1", HOUR_S)])
    free = Free(view)
    first = job(1, "2x2")
    claim = free.claim(first, (first.shape,))
    assert claim is not None
    assert (claim.at_s, claim.nodes) == (HOUR_S, ("n1", "n2"))
    short, long = job(2, time_limit_s=HOUR_S), job(3, time_limit_s=HOUR_S + 1)
    found = {
        (other.id, text): free.fit(other, parse_shape(text))
        for other in (short, long)
        for text in ("1", "2", "3", "4")
    }
    assert found == {
        ("2", "1"): ("n1",),
        ("2", "2"): ("n2",),
        ("2", "3"): ("n2",),
        ("2", "4"): ("n2",),
        ("3", "1"): ("n1",),
        ("3", "2"): ("n2",),
        ("3", "3"): None,
        ("3", "4"): None,
    }


def test_what_a_long_job_takes_beside_a_claim_is_gone_for_the_next_one() -> None:
    view = snapshot([node("n1")], [], [running(9, "2", "n1", 600)])
    free = Free(view)
    free.claim(job(1, "3"), (Shape(1, 3),))
    long = job(2, "1")
    given = free.take(long, long.shape, free.fit(long, long.shape) or ())
    assert free.fit(long, long.shape) is None
    free.release(given)
    free.forget_failures()
    assert free.fit(long, long.shape) == ("n1",)


def test_what_could_not_be_had_instead_is_tried_again_once_another_gives_back() -> None:
    free = Free(snapshot([node("n1", gpus=2), node("n2")], []))
    one, two = job(1, "2", "gpus=2:4"), job(2, "4")
    mine = free.take(one, one.shape, ("n1",))
    other = free.take(two, two.shape, ("n2",))
    profile = free.profile(one)
    four = profile.options[1]
    assert not free.may_fit_instead([mine], profile, four)
    free.release(other)
    assert free.may_fit_instead([mine], profile, four)


WHOLE_NODES = Abilities(claims_whole_nodes=True)


def test_where_claims_close_whole_nodes_only_those_pass_that_end_before() -> None:
    busy = [running(9, "2", "n1", HOUR_S), running(8, "4", "n2", 3 * HOUR_S)]
    view = replace(snapshot([node("n1"), node("n2")], [], busy), abilities=WHOLE_NODES)
    free = Free(view)
    claim = free.claim(job(1, "3"), (Shape(1, 3),))
    assert claim is not None
    assert (claim.at_s, claim.nodes) == (HOUR_S, ("n1",))
    short, long = job(2, time_limit_s=HOUR_S), job(3, time_limit_s=HOUR_S + 1)
    assert [free.fit(other, Shape(1, 1)) for other in (short, long)] == [("n1",), None]
    assert why_not(free, long, Shape(1, 1)) == (
        "n1 is kept for job 1 in 60 min, and its time limit would run into that"
    )
    # Later, too: not beside the claim, but once its job is over.
    assert [free.earliest(long, Shape(1, gpus)) for gpus in (1, 4)] == [
        (2 * HOUR_S, ("n1",)),
        (2 * HOUR_S, ("n1",)),
    ]


def test_a_closed_node_stays_closed_when_a_job_gives_back_what_it_took_there() -> None:
    view = replace(snapshot([node("n1")], [], [running(9, "2", "n1", 600)]), abilities=WHOLE_NODES)
    free = Free(view)
    early, long = job(2, "1"), job(3, "1")
    given = free.take(early, early.shape, ("n1",))
    free.claim(job(1, "3"), (Shape(1, 3),))
    before = free.cell(0)
    free.release(given)
    free.forget_failures()
    assert free.fit(long, long.shape) is None
    free.retake(given)
    assert free.cell(0) is before


def test_of_equal_openings_a_claim_takes_the_largest_shape() -> None:
    view = snapshot([node("n1")], [], [running(9, "4", "n1", 600)])
    claim = Free(view).claim(job(1), (Shape(1, 1), Shape(1, 4), Shape(1, 2), Shape(1, 8)))
    assert claim is not None
    assert (claim.shape, claim.at_s, claim.nodes) == (Shape(1, 4), 600.0, ("n1",))


# --- in words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("1", ""),
        ("3", "needs 3 GPUs on one node, the most free on one node is 2"),
        ("2x2", "needs 2 GPUs on each of 2 nodes, only 1 has them free"),
        ("8", "the nodes that it may use could not hold it even if they were empty"),
        ("1/2", "the nodes that it may use could not hold it even if they were empty"),
        ("1@h100", "the nodes that it may use could not hold it even if they were empty"),
    ],
)
def test_why_a_shape_does_not_fit_is_said_in_words(shape: str, words: str) -> None:
    view = snapshot([node("n1", free=2), node("n2", free=1)], [])
    asked = parse_shape(shape)
    assert why_not(Free(view), job(1, shape), asked) == words


def test_why_says_that_cores_are_missing_or_a_claim_is_in_the_way() -> None:
    free = Free(snapshot([node("n1", free_cpus=6)], [], [running(9, "1", "n1", 1200)]))
    needy = job(1, "2", footprint=PER_GPU)
    assert why_not(free, needy, needy.shape) == (
        "needs 8 cores beside its GPUs on one node, the most free on one node is 5"
    )
    free.claim(job(2, "4"), (Shape(1, 4),))
    assert why_not(free, job(3), Shape(1, 1)) == (
        "n1 is kept for job 2 in 20 min, and its time limit would run into that"
    )
