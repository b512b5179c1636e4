"""FMS as printed, its halves, TORQUE and MCT, worked out by hand on figure 2 of paper 004."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import claims, job, node, running, snapshot, starts
from test_policies_fms import app, nodes

from pliant.errors import BadInput
from pliant.model import Job, Kind, Shape
from pliant.policies import by_name, live, live_names, names
from pliant.simulator.replay import Replay
from pliant.simulator.workloads.ravi import MIXES, multi_node

FMS, TYPE, NODES = by_name("fms"), by_name("fms-type"), by_name("fms-nodes")
TORQUE, MCT = by_name("torque"), by_name("mct")


def busy(name: str, nodes: str, left_s: float, count: int = 2) -> Job:
    """An application that runs on the CPUs and GPUs of nodes, for so long from now."""
    found = app(9, name, (count,))
    shape = found.shapes[-1]
    assert shape.kind is Kind.BOTH
    assert found.spec is not None
    speeds = dict(found.spec.request.throughput)
    run_s = found.spec.request.steps / speeds[shape]
    return replace(
        running(9, str(shape), nodes, 9999), spec=found.spec, start_s=round(left_s - run_s)
    )


def test_pairs_are_of_as_many_nodes_and_sorted_by_their_time_on_both() -> None:
    # 2 nodes: EM 37 s, GK 221 s, GK 703 s; so the pair is EM and GK, one after the other in 258 s.
    jobs = [app(number, f"GK {size}") for number, size in ((1, "2.7 GB"), (2, "680 MB"))]
    plan = FMS(snapshot(nodes(2), [*jobs, app(3, "EM 450 MB")]))
    assert starts(plan) == {"3": "2x1@both on n1+n2"}
    # Who asks 4 nodes comes after those who ask 2, as short as it may be.
    plan = FMS(snapshot(nodes(4), [app(1, "EM 450 MB", (2, 4)), app(2, "GK 2.7 GB")]))
    assert starts(plan) == {"1": "2x1@both on n3+n4", "2": "2x1@both on n1+n2"}


def test_one_after_the_other_where_that_is_soonest() -> None:
    # 37 + 221 = 258 s, against 314 s with GK on CPUs and 311 s with GK on GPUs.
    plan = FMS(snapshot(nodes(2), [app(1, "GK 680 MB"), app(2, "EM 450 MB")]))
    assert (starts(plan), claims(plan)) == ({"2": "2x1@both on n1+n2"}, {})


def test_one_on_the_cores_and_one_on_the_gpus_where_that_is_soonest() -> None:
    # 314 s, against 442 s one after the other.
    plan = FMS(snapshot(nodes(2), [app(1, "GK 680 MB"), app(2, "GK 680 MB")]))
    assert starts(plan) == {"1": "2x0@cpu on n1+n2", "2": "2x1 on n1+n2"}
    assert starts(NODES(snapshot(nodes(2), [app(1, "GK 680 MB"), app(2, "GK 680 MB")]))) == {
        "1": "2x1@both on n1+n2"
    }


def test_side_by_side_where_there_are_nodes_for_both() -> None:
    for policy in (FMS, TYPE, NODES):
        plan = policy(snapshot(nodes(4), [app(1, "GK 680 MB"), app(2, "EM 450 MB")]))
        assert starts(plan) == {"2": "2x1@both on n1+n2", "1": "2x1@both on n3+n4"}


def test_side_by_side_later_is_no_way_of_the_papers() -> None:
    # n1 and n2 are free after 30 s. Side by side then 703 and 733 s; now only one of the two fits:
    # one after the other 1406 s, on cores and GPUs 1280 s.
    pair = [app(1, "GK 2.7 GB"), app(2, "GK 2.7 GB")]
    view = snapshot(nodes(4), pair, [busy("GK 680 MB", "n1 n2", 30.0)])
    assert starts(FMS(view)) == {"1": "2x0@cpu on n3+n4", "2": "2x1 on n3+n4"}
    assert starts(by_name("fms", beside="later")(view)) == {"1": "2x1@both on n3+n4"}


def test_on_half_the_nodes_where_the_load_is_high_and_that_is_soonest() -> None:
    # On 4 of 4 nodes each: 740 s one after the other, 638 s on cores and GPUs; on halves 703 s.
    pair = [app(1, "GK 2.7 GB", (2, 4)), app(2, "GK 2.7 GB", (2, 4))]
    shared = {"1": "4x0@cpu on n1+n2+n3+n4", "2": "4x1 on n1+n2+n3+n4"}
    assert starts(FMS(snapshot(nodes(4), pair))) == shared
    assert starts(TYPE(snapshot(nodes(4), pair))) == shared
    halves = {"1": "2x1@both on n1+n2", "2": "2x1@both on n3+n4"}
    assert starts(NODES(snapshot(nodes(4), pair))) == halves
    light = by_name("fms-nodes", high_load=9.0)(snapshot(nodes(4), pair))
    assert starts(light) == {"1": "4x1@both on n1+n2+n3+n4"}


def test_a_single_job_takes_fewer_nodes_where_waiting_takes_longer() -> None:
    one = app(1, "EM 900 MB", (2, 4))
    for left_s, expected in (
        (60.0, {"1": "2x1@both on n3+n4"}),  # 73 s, against 60 + 33 s
        (30.0, {}),  # 30 + 33 s
    ):
        view = snapshot(nodes(4), [one], [busy("GK 680 MB", "n1 n2", left_s)])
        assert starts(FMS(view)) == starts(NODES(view)) == expected
        assert starts(TYPE(view)) == {}


def faster(found: Job, times: float) -> Job:
    assert found.spec is not None
    table = tuple((shape, f * times) for shape, f in found.spec.request.throughput)
    request = replace(found.spec.request, throughput=table)
    return replace(found, spec=replace(found.spec, request=request))


def test_what_is_booked_is_not_delayed_by_what_comes_after() -> None:
    # 4 nodes, free after 30 s, are booked for 1 and 2: EM on both runs beyond that, at twice its
    # speed it does not (18.5 s).
    on_both = replace(app(1, "EM 900 MB", (4,)), shapes=(Shape(4, 1, kind=Kind.BOTH),))
    held = [busy("GK 680 MB", "n1 n2", 30.0)]
    for policy in (by_name("fms", order="queue"), by_name("fms-nodes", order="queue"), MCT):
        for speed, expected in ((1, {}), (2, {"3": "2x1@both on n3+n4"})):
            last = replace(
                faster(app(3, "EM 450 MB"), speed), shapes=(Shape(2, 1, kind=Kind.BOTH),)
            )
            jobs = [on_both, replace(on_both, id="2"), last]
            assert starts(policy(snapshot(nodes(4), jobs, held))) == expected


def test_torque_gives_what_a_knowing_user_asks() -> None:
    jobs = [app(1, "GK 680 MB"), app(2, "GK 680 MB", (2, 4)), app(3, "EM 450 MB")]
    view = snapshot(nodes(4), jobs)
    strict, passed = TORQUE(view), by_name("torque", overtaking=True)(view)
    assert (starts(strict), list(claims(strict))) == ({"1": "2x1@both on n1+n2"}, ["2"])
    assert starts(passed) == {"1": "2x1@both on n1+n2", "3": "2x1@both on n3+n4"}


def test_mct_takes_another_kind_where_the_wait_is_longer() -> None:
    # GK runs on the GPUs of both nodes, 300 s more. EM on both: 300 + 37 s, on the CPUs 109 s.
    gk = busy("GK 680 MB", "n1 n2", 300.0)
    on_gpus = replace(gk, shape=Shape(2, 1), start_s=-11.0)
    view = snapshot(nodes(2), [app(1, "EM 450 MB")], [on_gpus])
    assert starts(MCT(view)) == {"1": "2x0@cpu on n1+n2"}
    nearly = snapshot(nodes(2), [app(1, "EM 450 MB")], [replace(on_gpus, start_s=-300.0)])
    assert starts(MCT(nearly)) == {}  # 11 + 37 s
    assert starts(TORQUE(view)) == {}


def test_what_runs_longer_than_expected_may_end_at_any_moment() -> None:
    late = busy("EM 450 MB", "n1 n2", -500.0)
    assert starts(MCT(snapshot(nodes(2), [app(1, "EM 450 MB")], [late]))) == {}


def test_an_array_has_one_shape() -> None:
    array = job(1, "2", "gpus=1-2", tasks_waiting=3)
    for policy in (FMS, MCT, TORQUE):
        assert starts(policy(snapshot([node("n1")], [array]))) == {"1": "2 on n1, n1"}


@pytest.mark.parametrize("mix", ["25 SJ/75 LJ", "75 SR/25 LR"])
def test_every_job_of_the_papers_mixes_is_done(mix: str) -> None:
    work = multi_node(mix, seed=1)
    for policy in (FMS, TYPE, NODES, TORQUE, MCT):
        done = list(Replay(work, policy).run())
        assert len(done) == len(work.arrivals), policy.name
        assert not any(task.timed_out for task in done)
    assert mix in MIXES


# --- on a real cluster ----------------------------------------------------------------------------


def test_policies_that_choose_who_is_next_are_for_simulations_only() -> None:
    only = tuple(name for name in names() if name not in live_names())
    paper = ("rsa", "rsc", "asjf", "blind-round-robin", "manual-optimal", "torque", "mct")
    assert set(only) == {"rigid-shortest", "cosched-optimal", *paper}
    for name in only:
        with pytest.raises(BadInput) as refused:
            live(name, {})
        assert str(refused.value) == (
            f"policy {name}: it is for simulations only: one of {', '.join(live_names())} is"
            " expected"
        )


def test_fms_keeps_the_queue_and_counts_on_time_limits_on_a_real_cluster() -> None:
    for name in ("fms", "fms-type", "fms-nodes"):
        assert live(name, {}) == by_name(name, order="queue", times="limits")
    with pytest.raises(BadInput) as refused:
        live("fms", {"order": "grouped"})
    assert (
        str(refused.value) == "policy fms: order: 'grouped': on a real cluster 'queue' is expected"
    )


def test_each_half_molds_one_dimension_by_limits_too() -> None:
    pair = [app(1, "GK 2.7 GB", (2, 4)), app(2, "GK 2.7 GB", (2, 4))]
    kinds, sizes = live("fms-type", {}), live("fms-nodes", {})
    assert starts(kinds(snapshot(nodes(4), pair))) == {
        "1": "4x1 on n1+n2+n3+n4",
        "2": "4x0@cpu on n1+n2+n3+n4",
    }
    assert starts(sizes(snapshot(nodes(4), pair))) == {
        "1": "2x1@both on n1+n2",
        "2": "2x1@both on n3+n4",
    }
