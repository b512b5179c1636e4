"""FMS as on a real cluster, on the applications of paper 004, figure 2, with its measured times."""

from __future__ import annotations

from dataclasses import replace

from build import HOUR_S, changes, claims, job, node, running, snapshot, starts

from pliant.cycle import cycle
from pliant.grammar import parse
from pliant.model import Job, Kind, Node, Shape, Spec
from pliant.policies import by_name, live

STEPS = 1_000_000
TIMES_S = {
    # seconds on CPUs, on GPUs, on both, for 2 and 4 nodes
    "GK 680 MB": {2: (314, 311, 221), 4: (179, 173, 123)},
    "GK 2.7 GB": {2: (1280, 1152, 703), 4: (638, 591, 370)},
    "EM 450 MB": {2: (109, 39, 37), 4: (55, 19, 18)},
    "EM 900 MB": {2: (215, 74, 73), 4: (106, 36, 33)},
}
KINDS = (Kind.CPU, Kind.GPU, Kind.BOTH)


def app(number: int, name: str, nodes: tuple[int, ...] = (2,), limit_s: int = 3000) -> Job:
    """An application that runs on CPUs (7 of 8 cores), on one GPU of each node, or on both."""
    shapes = [
        (Shape(count, 0 if kind is Kind.CPU else 1, kind=kind), TIMES_S[name][count][place])
        for count in nodes
        for place, kind in enumerate(KINDS)
    ]
    counts = ":".join(map(str, nodes))
    request = parse(f"gpus={counts},nodes={counts},type=gpu:cpu:both,cores=7;steps={STEPS}")
    speeds = tuple(sorted((shape, STEPS / time_s) for shape, time_s in shapes))
    request = replace(request, throughput=speeds)
    own = shapes[-1][0]
    asked = job(number, str(own), time_limit_s=limit_s)
    spec = Spec(request, own)
    return replace(asked, shapes=tuple(shape for shape, _ in shapes), spec=spec)


def nodes(count: int) -> list[Node]:
    """Nodes of eight cores and one GPU, as the paper's."""
    return [node(f"n{number}", gpus=1, cpus=8) for number in range(1, count + 1)]


FMS = live("fms", {})


def test_one_after_the_other_on_both_where_that_is_soonest() -> None:
    # 221 + 37 = 258 s, against 314 s (CPUs and GPU) and 311 s (GPU and CPUs) on the same nodes.
    plan = FMS(snapshot(nodes(2), [app(1, "GK 680 MB"), app(2, "EM 450 MB")]))
    assert starts(plan) == {"1": "2x1@both on n1+n2"}
    assert claims(plan) == {"2": "2x1@both on n1+n2 at 3000"}


def test_one_on_the_cores_and_one_on_the_gpus_of_the_same_nodes_where_that_is_soonest() -> None:
    # 314 s, against 442 s one after the other.
    plan = FMS(snapshot(nodes(2), [app(1, "GK 680 MB"), app(2, "GK 680 MB")]))
    assert starts(plan) == {"1": "2x1 on n1+n2", "2": "2x0@cpu on n1+n2"}


def test_side_by_side_where_there_are_nodes_for_both() -> None:
    plan = FMS(snapshot(nodes(4), [app(1, "GK 680 MB"), app(2, "EM 450 MB")]))
    assert starts(plan) == {"1": "2x1@both on n1+n2", "2": "2x1@both on n3+n4"}


def test_half_the_nodes_where_the_load_is_high() -> None:
    # Two jobs ask for 4 of 4 nodes each: on halves side by side 703 s, on all four one after the
    # other 370 + 370 = 740 s, on cores and GPUs of all four 638 s.
    pair = [app(1, "GK 2.7 GB", (2, 4)), app(2, "GK 2.7 GB", (2, 4))]
    assert starts(FMS(snapshot(nodes(4), pair))) == {
        "1": "4x1 on n1+n2+n3+n4",
        "2": "4x0@cpu on n1+n2+n3+n4",
    }
    # Without the shapes on cores or GPUs alone: 703 s on halves.
    both = [
        replace(one, shapes=tuple(s for s in one.shapes if s.kind is Kind.BOTH)) for one in pair
    ]
    assert starts(FMS(snapshot(nodes(4), both))) == {
        "1": "2x1@both on n1+n2",
        "2": "2x1@both on n3+n4",
    }


def test_where_the_load_is_low_only_the_largest_size_is_tried() -> None:
    pair = [app(1, "GK 2.7 GB", (2, 4)), app(2, "GK 2.7 GB", (2, 4))]
    both = [
        replace(one, shapes=tuple(s for s in one.shapes if s.kind is Kind.BOTH)) for one in pair
    ]
    plan = live("fms", {"high_load": 2.0})(snapshot(nodes(4), both))
    assert starts(plan) == {"1": "4x1@both on n1+n2+n3+n4"}
    assert claims(plan) == {"2": "4x1@both on n1+n2+n3+n4 at 3000"}


def test_a_smaller_size_now_where_the_largest_is_not_free_and_waiting_takes_longer() -> None:
    busy = [running(9, "1", "n4", 1000)]
    one = app(1, "EM 900 MB", (2, 4))
    plan = FMS(snapshot(nodes(4), [one], busy))
    assert starts(plan) == {"1": "2x1@both on n1+n2"}  # 73 s, against 1000 + 33 s


def test_the_first_job_waits_where_it_is_done_sooner_so_and_keeps_its_opening() -> None:
    busy = [running(9, "1", "n4", 30)]
    first, second = app(1, "EM 900 MB", (2, 4)), app(2, "EM 450 MB", limit_s=3000)
    only_both = replace(first, shapes=tuple(s for s in first.shapes if s.kind is Kind.BOTH))
    plan = FMS(snapshot(nodes(4), [only_both], busy))
    assert (starts(plan), claims(plan)) == ({}, {"1": "4x1@both on n1+n2+n3+n4 at 30"})  # 30 + 33
    # Of a pair the last completion counts, but the second may not run into what the first keeps.
    pair = FMS(snapshot(nodes(4), [only_both, second], busy))
    assert (starts(pair), claims(pair)) == ({}, {"1": "4x1@both on n1+n2+n3+n4 at 30"})


def test_pairs_are_neighbours_in_the_queue_or_in_the_papers_order() -> None:
    names = ("GK 2.7 GB", "EM 450 MB", "GK 680 MB")
    jobs = [app(number, name) for number, name in enumerate(names, start=1)]
    queue = FMS(snapshot(nodes(2), jobs))
    grouped = by_name("fms", times="limits")(snapshot(nodes(2), jobs))
    assert starts(queue) == {"1": "2x1@both on n1+n2"}  # 703 + 37 s: job 2 after it
    assert starts(grouped) == {"2": "2x1@both on n1+n2"}  # the shortest first, then job 3


def test_where_nobody_says_how_fast_gpus_count_linearly() -> None:
    # Four GPUs each, one after the other, or two each: both done at the same time, and the first
    # of them earlier if it has all four.
    pair = [job(1, "4", "gpus=1-4"), job(2, "4", "gpus=1-4")]
    plan = FMS(snapshot([node("n1")], pair))
    assert (starts(plan), claims(plan)) == ({"1": "4 on n1"}, {"2": "4 on n1 at 3600"})


def test_of_ways_that_are_done_at_the_same_time_the_one_on_fewer_nodes_is_chosen() -> None:
    view = snapshot([node("n1"), node("n2")], [job(1, "2x1", "gpus=2,nodes=1-2")])
    spread = live("fms", {"sizes": "all"})(view)
    assert (starts(FMS(view)), starts(spread)) == ({"1": "2 on n1"}, {"1": "2 on n1"})


def test_the_hole_bounds_a_later_job() -> None:
    busy = [running(9, "4", "n1", 1800), running(8, "1", "n2", 1700)]
    jobs = [job(1, "2x4"), job(2, "4", "gpus=1-4", time_limit_s=1800)]
    view = snapshot([node("n1"), node("n2")], jobs, busy)
    assert (starts(FMS(view)), claims(FMS(view))) == (
        {"2": "2 on n2"},
        {"1": "2x4 on n1+n2 at 1800"},
    )
    assert starts(live("fms", {"sizes": "all"})(view)) == {"2": "3 on n2"}
    long = snapshot([node("n1"), node("n2")], [jobs[0], replace(jobs[1], time_limit_s=1801)], busy)
    assert starts(FMS(long)) == {}


def test_an_array_takes_the_shape_by_which_all_its_tasks_are_done_first() -> None:
    # Eight tasks at one GPU each take one wave of 4 h on 8 GPUs; at four GPUs four waves of 1 h.
    jobs = [job(1, "4", "gpus=1:4;throughput=1:1.0,4:2.0", tasks_waiting=8)]
    plan = FMS(snapshot([node("n1"), node("n2")], jobs))
    assert starts(plan) == {"1": "1 on n1, n1, n1, n1, n2, n2, n2, n2"}


def test_a_gpu_form_is_chosen_for_a_job_that_waits_in_its_cpu_form() -> None:
    view = snapshot([node("n1", cpus=8)], [job(1, "1x0@cpu", "type=gpu:cpu,cores=8")])
    plan = cycle(view, FMS)
    assert (starts(plan), changes(plan)) == ({"1": "1 on n1"}, {"1": "1"})
    slow = replace(view, nodes=(node("n1", cpus=8, free=0),))
    assert starts(cycle(slow, FMS)) == {"1": "1x0@cpu on n1"}


def test_a_job_that_makes_no_progress_anywhere_still_runs() -> None:
    stuck = job(1, "1", "gpus=1-2;throughput=1:0,2:0;steps=10", time_limit_s=HOUR_S)
    assert starts(FMS(snapshot([node("n1")], [stuck]))) == {"1": "2 on n1"}


def test_what_is_stuck_beside_a_claim_is_tried_where_the_claim_does_not_bind() -> None:
    half = running(1, "2", "n1", end_s=600)
    first = job(2, "4")
    long = job(3, "2", "gpus=1-2", time_limit_s=2 * HOUR_S)
    short = replace(long, id="4", time_limit_s=300)
    plan = FMS(snapshot([node("n1")], [first, long, short], [half]))
    assert claims(plan) == {"2": "4 on n1 at 600"}
    assert starts(plan) == {"4": "2 on n1"}
