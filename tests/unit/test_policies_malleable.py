"""Malleable equipartition and F-scheduling: worked examples, and how they come about in steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import pytest
from build import claims, job, node, running, starts
from resizing import amounts, carried_out, elastic, fixpoint, holds, reshapes, runs, snapshot

from pliant.cycle import cycle, explain
from pliant.model import Job, Kind, Shape, Snapshot
from pliant.plan import Plan
from pliant.policies import by_name

FULL = by_name("malleable-equipartition")
CAREFUL = by_name("malleable-equipartition", pays=True)


def big(number: int, most: int = 8, **fields: Any) -> Job:
    return elastic(number, allows=f"gpus=1-{most}", submit_s=float(number), **fields)


# --- malleable equipartition: paper 000, section IV-A ---------------------------------------------


def test_a_running_job_shrinks_so_that_one_that_waits_can_start() -> None:
    view = snapshot([node("n1")], [elastic(2)], [runs(elastic(1), "4", "n1")])
    plan = cycle(view, FULL)
    # Two jobs on four GPUs are two each; what job 1 gives up is not free yet.
    assert (reshapes(plan), starts(plan)) == ({"1": "2 on n1"}, {})
    assert claims(plan) == {"2": "4 on n1 at 3500"}  # its opening, if job 1 never shrank
    after = cycle(carried_out(view, plan), FULL)
    assert (reshapes(after), starts(after)) == ({}, {"2": "2 on n1"})


def test_one_job_shrinks_so_that_another_grows() -> None:
    view = snapshot([node("n1", gpus=8)], [], [runs(big(1), "7", "n1"), runs(big(2), "1", "n1")])
    end, plans = fixpoint(view, FULL)
    assert [reshapes(plan) for plan in plans] == [{"1": "4 on n1"}, {"2": "4 on n1"}]
    assert holds(end) == {"1": "4", "2": "4"}


@pytest.mark.parametrize(
    ("gpus", "most", "now", "expected"),
    [
        # Σ p_max ≤ |A|: each its largest; nothing stands in the way of growing at once
        (8, (4, 4), (1, 2), (4, 4)),
        # |Q| ≤ |A|: one each, the rest by D'Hondt with p_max as votes: 8/2, 8/3, 8/4 = 4/2
        (8, (8, 4, 4), (6, 1, 1), (4, 2, 2)),
        (12, (2, 8, 4), (2, 1, 4), (2, 7, 3)),
        # Σ p_min ≥ Σ available: one each
        (3, (8, 8, 8), (1, 1, 1), (1, 1, 1)),
        (4, (8, 8, 8), (2, 1, 1), (2, 1, 1)),
    ],
)
def test_in_steps_every_job_comes_to_what_the_paper_gives_it(
    gpus: int, most: tuple[int, ...], now: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    jobs = [big(n, at_most) for n, at_most in enumerate(most)]
    busy = [runs(one, str(has), "n1") for one, has in zip(jobs, now, strict=True)]
    end, _ = fixpoint(snapshot([node("n1", gpus=gpus)], [], busy), FULL)
    assert tuple(amounts(end).values()) == expected or amounts(end) == {
        str(n): amount for n, amount in enumerate(expected)
    }


@pytest.mark.parametrize("waiting", [1, 2, 3, 5])
def test_the_end_of_all_steps_is_what_moldable_equipartition_gives_on_an_empty_node(
    waiting: int,
) -> None:
    """The paper's target: the same algorithm, over all jobs and all GPUs."""
    jobs = [big(n) for n in range(waiting + 2)]
    busy = [runs(jobs[0], "6", "n1"), runs(jobs[1], "2", "n1")]
    end, _ = fixpoint(snapshot([node("n1", gpus=8)], jobs[2:], busy), FULL)
    target = by_name("moldable-equipartition")(snapshot([node("n1", gpus=8)], jobs))
    assert amounts(end) == {start.job.id: start.shape.amount for start in target.starts}


def test_a_job_with_less_than_300_s_of_work_on_one_gpu_left_stays_as_it_is() -> None:
    """At 1 step/s on one GPU: 301 or 299 of 1000 steps are left."""
    for done, expected in ((0.699, {"1": "2 on n1"}), (0.701, {})):
        busy = elastic(1, throughput=(1.0, 2.0, 3.0, 4.0), steps=1000, progress=done)
        view = snapshot([node("n1")], [elastic(2)], [runs(busy, "4", "n1")])
        assert reshapes(cycle(view, FULL)) == expected
        assert reshapes(cycle(view, by_name("malleable-equipartition", least_left_s=0.0))) != {}


def test_a_job_grows_over_nodes_beside_what_it_has() -> None:
    wide = elastic(1, allows="gpus=2:4,nodes=1:2")
    view = snapshot([node("n1", gpus=2), node("n2", gpus=2)], [], [runs(wide, "2", "n2")])
    assert reshapes(cycle(view, FULL)) == {"1": "2x2 on n1+n2"}


def test_a_job_that_may_not_change_stays_as_it_is() -> None:
    spec = elastic(1).spec
    assert spec is not None
    left: list[dict[str, object]] = [
        {"frozen": "it is suspended"},
        {"spec": replace(spec, pinned=True)},
        {"spec": replace(spec, request=replace(spec.request, malleable=None))},
        {"shapes": (runs(elastic(1), "4", "n1").shape,)},  # in its protected time, for one
        {"whole_nodes": True},
        {"room_for": "7"},
    ]
    for fields in left:
        view = snapshot([node("n1")], [elastic(2)], [runs(elastic(1), "4", "n1", **fields)])
        assert not cycle(view, FULL).changes_running, fields


def test_what_is_under_way_counts_as_done() -> None:
    """Else the others would be given too little meanwhile, and be changed twice."""
    shrinks = runs(big(1), "7", "n1")
    shrinks = replace(
        shrinks,
        next_shape=runs(big(1), "4", "n1").shape,
        next_nodes=("n1",),
        shapes=(shrinks.shape,),
    )
    others = [runs(big(2), "1", "n1")]
    view = snapshot([node("n1", gpus=12, free=12)], [], [shrinks, *others])
    assert reshapes(cycle(view, FULL)) == {}  # it should have eight: three are not free yet
    wide = snapshot([node("n1", gpus=20, free=20)], [], [shrinks, *others])
    assert reshapes(cycle(wide, FULL)) == {"2": "8 on n1"}


# --- the first waiting job ------------------------------------------------------------------------


def test_a_running_job_is_not_changed_where_the_first_that_waits_would_start_later() -> None:
    """Job 3 gets the whole node in 1000 s; changed, job 1 would have an hour from now on."""
    busy = [runs(elastic(1, time_limit_s=1100), "2", "n1")]
    view = snapshot([node("n1")], [job(3, "4")], busy)
    assert reshapes(cycle(view, FULL)) == {}
    short = [runs(elastic(1, time_limit_s=900), "2", "n1", start_s=100.0)]
    view = snapshot([node("n1")], [job(3, "4")], [*short])
    assert claims(cycle(view, FULL)) == {"3": "4 on n1 at 1000"}
    assert reshapes(cycle(view, FULL)) == {"1": "4 on n1"}  # it is over by then all the same


def test_nobody_grows_onto_nodes_that_are_kept_for_a_job_that_waits() -> None:
    kept = job(3, "4", expected_s=500.0, expected_nodes=("n1",), reason="Priority")
    busy = [runs(elastic(1), "2", "n1"), running(9, "4", "n2", 500)]
    nodes = [node("n1"), node("n2")]
    assert reshapes(cycle(snapshot(nodes, [], busy), FULL)) == {"1": "4 on n1"}
    assert reshapes(cycle(snapshot(nodes, [kept], busy), FULL)) == {}


# --- resizing must pay ----------------------------------------------------------------------------

LINEAR = (1.0, 2.0, 3.0, 4.0)


def growing(restart_s: float) -> Snapshot:
    """2000 steps at 2, or at 4 a second: 500 s earlier."""
    busy = elastic(1, throughput=LINEAR, steps=2000, restart_s=restart_s)
    return snapshot([node("n1")], [], [runs(busy, "2", "n1")])


def test_a_job_grows_where_that_gains_more_than_its_restart_costs() -> None:
    assert reshapes(cycle(growing(499.0), CAREFUL)) == {"1": "4 on n1"}
    assert reshapes(cycle(growing(500.0), CAREFUL)) == {}
    assert reshapes(cycle(growing(500.0), FULL)) == {"1": "4 on n1"}


def test_a_job_shrinks_where_others_gain_more_than_it_loses() -> None:
    def view(end_s: float) -> Snapshot:
        busy = elastic(1, throughput=LINEAR, steps=4000, restart_s=100.0)
        busy = runs(busy, "4", "n1", start_s=0.0, time_limit_s=int(end_s))
        waits = elastic(2, throughput=LINEAR, steps=2000)
        return snapshot([node("n1")], [waits], [busy])

    # Job 1 loses 2000 − 1000 s and 100 s. Job 2 gains its wait, less 1000 − 500 s.
    assert reshapes(cycle(view(1601.0), CAREFUL)) == {"1": "2 on n1"}
    assert reshapes(cycle(view(1600.0), CAREFUL)) == {}
    assert reshapes(cycle(view(1600.0), FULL)) == {"1": "2 on n1"}


# --- F-scheduling: paper 003, listing 1 -----------------------------------------------------------

RESNET = (1.829, 2.752, 3.309, 3.681, 3.948, 4.148)
INCEPTION = (1.627, 2.466, 2.978, 3.323, 3.571, 3.759)
SIX = [node("n1", gpus=6)]


def learns(number: int, f: tuple[float, ...], **fields: Any) -> Job:
    return big(number, 6, throughput=f, steps=2000, **fields)


def listing_1(f: Sequence[tuple[float, ...]], gpus: int, v_bound: float) -> list[int]:
    """The thesis's own words, its two errata put right; every job takes one GPU at least."""
    has = [1] * min(len(f), gpus)
    while sum(has) < gpus and any(n < len(f[at]) for at, n in enumerate(has)):
        plans = [
            [n + (other == at) for other, n in enumerate(has)]
            for at in range(len(has))
            if has[at] < len(f[at])
        ]

        def variance(plan: list[int]) -> float:
            slow = [f[at][n - 1] / f[at][-1] for at, n in enumerate(plan)]
            mean = sum(slow) / len(slow)
            return sum((s - mean) ** 2 for s in slow) / len(slow)

        def throughput(plan: list[int]) -> float:
            return fsum(f[at][n - 1] for at, n in enumerate(plan))  # no tie is broken by rounding

        fair = [plan for plan in plans if variance(plan) < v_bound]
        has = max(fair, key=throughput) if fair else min(plans, key=variance)
    return has


@pytest.mark.parametrize("v_bound", [0.5, 0.02, 0.01, 0.005, 0.001])
@pytest.mark.parametrize("kinds", ["RI", "RIRI", "IIR", "RRRRRR", "RIX", "XIXR"])
def test_f_scheduling_gives_what_listing_1_gives(kinds: str, v_bound: float) -> None:
    odd = (0.4, 3.0, 2.0, 1.0, 5.0, 4.9)  # no curve may be taken for granted
    f = [{"R": RESNET, "I": INCEPTION, "X": odd}[kind] for kind in kinds]
    jobs = [learns(n, curve) for n, curve in enumerate(f)]
    plan = by_name("f-scheduling", v_bound=v_bound)(snapshot(SIX, jobs))
    got = [int(start.shape.amount) for start in plan.starts]
    assert got == listing_1(f, 6, v_bound)


def test_f_scheduling_leaves_gpus_on_which_a_job_cannot_proceed_to_who_can() -> None:
    """Section 4.1: f(N) = 0 where training cannot proceed on N GPUs."""
    busy = [running(1, "3", "n1", 1000)]
    jobs = [
        elastic(2, throughput=(0.0, 2.0, 3.0, 4.0)),
        elastic(3, throughput=(1.0, 1.5, 1.8, 2.0), time_limit_s=600),
    ]
    assert starts(by_name("f-scheduling")(snapshot([node("n1", 4)], jobs, busy))) == {
        "3": "1 on n1"
    }


def test_the_four_jobs_of_the_thesis_one_after_the_other() -> None:
    policy = by_name("f-scheduling", v_bound=0.5)
    view = snapshot(SIX, [])
    curves = (RESNET, INCEPTION, RESNET, INCEPTION)
    found = []
    for number, curve in enumerate(curves):
        view, _ = fixpoint(replace(view, waiting=(learns(number, curve),)), policy)
        found.append([int(amount) for _, amount in sorted(amounts(view).items())])
    assert found == [[6], [3, 3], [2, 2, 2], [2, 1, 2, 1]]
    assert found == [listing_1(curves[: n + 1], 6, 0.5) for n in range(4)]


EVEN = (1.0, 1.4, 1.8, 2.2, 2.6, 3.0)
STEEP = (1.0, 1.5, 1.6, 1.7, 1.8, 1.9)


def after(has: tuple[int, int], waiting: list[Job] | None = None) -> Plan:
    curves = zip(has, (EVEN, STEEP), strict=True)
    busy = [runs(learns(n, f), str(gpus), "n1") for n, (gpus, f) in enumerate(curves)]
    return cycle(snapshot(SIX, waiting or [], busy), by_name("f-scheduling", v_bound=0.5))


def test_a_new_plan_is_applied_where_throughput_rises_by_a_step_a_second_or_a_job_starts() -> None:
    assert reshapes(after((2, 2))) == {}  # four and two: 0.8 more
    on_cores = replace(job(9, "1", "type=cpu,cores=2"), shapes=(Shape(1, 0, kind=Kind.CPU),))
    plan = after((2, 2), [on_cores])  # it needs none of their GPUs
    assert (reshapes(plan), starts(plan)) == ({}, {"9": "1x0@cpu on n1"})
    assert reshapes(after((1, 2))) == {"0": "4 on n1"}  # 1.2 more
    # Job 7 starts on the two GPUs that it should have, for what the others lose.
    assert starts(after((2, 2), [learns(7, STEEP)])) == {"7": "2 on n1"}


def test_only_running_jobs_give_up_gpus() -> None:
    protected = runs(learns(0, RESNET), "5", "n1")
    protected = replace(protected, shapes=(protected.shape,))
    view = snapshot(SIX, [learns(2, RESNET)], [protected, runs(learns(1, RESNET), "1", "n1")])
    plan = cycle(view, by_name("f-scheduling"))
    assert (reshapes(plan), starts(plan)) == ({}, {})


def three_and_three() -> Snapshot:
    """Two of the thesis's jobs that run on three GPUs each, and two more that wait."""
    jobs = [learns(n, f, own="6") for n, f in enumerate((RESNET, INCEPTION) * 2)]
    busy = [runs(one, "3", "n1", start_s=-100.0 + n) for n, one in enumerate(jobs[:2])]
    return snapshot(SIX, jobs[2:], busy)


def test_room_is_made_for_jobs_that_wait_as_far_as_run_times_are_known() -> None:
    """The thesis looks at throughput alone: 6.3 step/s become 8.8. The sum of flow times may rise:
    four jobs of an hour each on six GPUs, as their time limits say, are done later if they share.
    """
    thesis = by_name("f-scheduling", v_bound=0.5)
    careful = by_name("f-scheduling", v_bound=0.5, pays=True)
    known, unknown = three_and_three(), three_and_three()
    unknown = replace(
        unknown,
        running=tuple(_stepless(one) for one in unknown.running),
        waiting=tuple(_stepless(one) for one in unknown.waiting),
    )
    smaller = {"0": "2 on n1", "1": "1 on n1"}
    assert reshapes(cycle(known, thesis)) == reshapes(cycle(unknown, thesis)) == smaller
    assert reshapes(cycle(known, careful)) == smaller
    assert reshapes(cycle(unknown, careful)) == {}
    why = "all jobs together would be done no earlier, as far as their run times are known"
    assert explain(unknown, careful, "1").says == f"it runs as 3; it could go on as 1, but {why}"
    for waiting in ("2", "3"):
        told = explain(unknown, careful, waiting).says
        words = f"; job 0, job 1 could be made smaller for those that wait, but {why}"
        assert told.endswith(words)
    assert why not in explain(known, careful, "2").says
    assert why not in explain(unknown, thesis, "2").says


def _stepless(one: Job) -> Job:
    assert one.spec is not None
    return replace(one, spec=replace(one.spec, request=replace(one.spec.request, steps=0)))


# --- static partition -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slot", "expected"),
    [(1, "1 1 1 1"), (2, "2 2 2"), (3, "3 3"), (6, "6")],
)
def test_a_static_partition_gives_each_job_a_slot(slot: int, expected: str) -> None:
    jobs = [learns(n, RESNET) for n in range(4)]
    plan = by_name("static-partition", slot=slot)(snapshot(SIX, jobs))
    assert " ".join(str(start.shape) for start in plan.starts) == expected


def test_what_a_job_leaves_of_its_slot_stays_free_and_a_large_one_takes_several() -> None:
    policy = by_name("static-partition", slot=2)
    small = [job(n, "1") for n in range(4)]
    assert len(policy(snapshot(SIX, small)).starts) == 3
    assert starts(policy(snapshot(SIX, [job(1, "3"), job(2, "1"), job(3, "1")]))) == {
        "1": "3 on n1",
        "2": "1 on n1",
    }


# --- proportional: paper 000, section IV-B --------------------------------------------------------


def works(number: int, steps: int, **fields: Any) -> Job:
    """A job that runs linearly at 1 step/s on each of one to eight GPUs."""
    return big(number, throughput=tuple(float(n) for n in range(1, 9)), steps=steps, **fields)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # Σv = 8000 on 8 GPUs: 1000 s
        ((5000, 2000, 1000), "5 2 1"),
        # Σv = 12000: 1500 s. 6000/4 is that, 4000/3 closer than 4000/2, 2000/1 as close as 2000/2
        ((6000, 4000, 2000), "4 3 1"),
        # Σ p_min ≥ Σ available: one each
        ((900,) * 8, "1 1 1 1 1 1 1 1"),
    ],
)
def test_each_job_gets_what_lets_all_be_done_at_once(steps: tuple[int, ...], expected: str) -> None:
    jobs = [works(n, left) for n, left in enumerate(steps)]
    plan = by_name("moldable-proportional")(snapshot([node("n1", gpus=8)], jobs))
    assert " ".join(str(start.shape) for start in plan.starts) == expected


def test_proportional_gives_all_their_largest_where_there_is_enough() -> None:
    jobs = [works(0, 100), works(1, 9000)]
    plan = by_name("moldable-proportional")(
        snapshot([node("n1", gpus=8), node("n2", gpus=8)], jobs)
    )
    assert [str(start.shape) for start in plan.starts] == ["8", "8"]


def test_in_descending_volume_the_largest_is_served_first() -> None:
    """Target 2500 s: the small ones may have one GPU each, which leaves one less than nine."""
    jobs = [works(0, 1000), works(1, 1000), works(2, 8000)]
    view = snapshot([node("n1", gpus=4)], jobs)
    orders = {
        order: {start.job.id: str(start.shape) for start in plan.starts}
        for order in ("queue", "volume")
        if (plan := by_name("moldable-proportional", order=order)(view))
    }
    assert orders == {"queue": {"0": "1", "1": "1", "2": "2"}, "volume": {"0": "1", "2": "3"}}


@pytest.mark.parametrize("order", ["queue", "volume"])
def test_where_there_is_too_little_each_gets_its_smallest_in_the_order_of_the_queue(
    order: str,
) -> None:
    """Step 1 names no order: descending volumes are of step 3."""
    jobs = [big(n, volume_s=volume_s) for n, volume_s in enumerate((900.0, 1000.0, 9000.0))]
    plan = by_name("moldable-proportional", order=order)(snapshot([node("n1", gpus=2)], jobs))
    assert starts(plan) == {"0": "1 on n1", "1": "1 on n1"}


@pytest.mark.parametrize(
    ("target", "has", "changes"),
    [
        ("left", {"0": "5", "1": "2", "2": "1"}, 2),  # 1000 s on five, two and one GPU
        ("whole", {"0": "3", "1": "4", "2": "1"}, 0),  # 19000 s on eight: nobody needs more
    ],
)
def test_malleable_proportional_looks_at_the_work_that_is_left(
    target: str, has: dict[str, str], changes: int
) -> None:
    """5000, 2000 and 1000 s are left."""
    busy = [
        runs(works(0, 10000, progress=0.5), "3", "n1"),
        runs(works(1, 8000, progress=0.75), "4", "n1"),
        runs(works(2, 1000), "1", "n1"),
    ]
    policy = by_name("malleable-proportional", target=target)
    end, plans = fixpoint(snapshot([node("n1", gpus=8)], [], busy), policy)
    assert (holds(end), len(plans)) == (has, changes)


# --- malleable proportional: paper 000, section IV-B ----------------------------------------------


@pytest.mark.parametrize("order", ["queue", "volume"])
def test_what_is_free_is_not_kept_for_a_small_job_that_gets_no_part(order: str) -> None:
    """Three large jobs would be done at the same time with 4 GPUs each: nothing is left of 12.

    The small ones could start now. Their claim on that must not keep the others from growing
    without being taken.
    """
    large = [runs(big(n, 12, volume_s=40_000.0), "1", "n1") for n in (1, 2, 3)]
    small = [big(n, 12, volume_s=10.0) for n in (4, 5)]
    view = snapshot([node("n1", gpus=12)], small, large)
    policy = by_name("malleable-proportional", order=order)
    end, plans = fixpoint(view, policy)
    assert [starts(plan) for plan in plans if starts(plan)] == [{"4": "1 on n1", "5": "1 on n1"}]
    assert sum(amounts(end).values()) == 12
