"""The policies that choose which jobs run together on a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from batch_in_memory import SimulatedCluster
from build import job, node, snapshot, starts
from hypothesis import given
from hypothesis import strategies as st
from resizing import carried_out, runs
from strategies import Cluster
from test_policies_properties import often, overfull

from pliant.batch.snapshot_file import read_snapshot, write_snapshot
from pliant.cycle import cycle, view
from pliant.errors import BadInput
from pliant.model import (
    Combination,
    Company,
    Footprint,
    Job,
    JobClass,
    Node,
    Partition,
    Pool,
    Request,
    Shape,
    Snapshot,
    Spec,
    Together,
)
from pliant.plan import Plan
from pliant.policies import by_name, has_classes, live, live_names, names, options, preempts
from pliant.policies.marks import WINDOW

NAMES = [name for name in names() if name.startswith("cosched-")]
every_policy = pytest.mark.parametrize("name", NAMES)
LEARNING = NAMES[2:]

N1, N2 = node("n1", 4), node("n2", 4)


def sharing(number: int, own: str = "1", **fields: Any) -> Job:
    """A waiting job that may share, and may be set aside once it runs."""
    found = job(number, own, **fields)
    request = Request(colocate=True, job_class=JobClass.BEST_EFFORT)
    return replace(found, spec=Spec(request, found.shape))


def here(number: int, nodes: str = "n1", own: str = "1", **fields: Any) -> Job:
    """Such a job, running."""
    fields.setdefault("preemptible", True)
    return runs(sharing(number, own), own, nodes, **fields)


def known(text: str) -> Company:
    """Speeds of jobs: "1.9 2.8; 3.5 1.5" is job 1 at .9 with job 2 at .8, and so on."""
    rows = [[word.split(".") for word in part.split()] for part in text.split(";")]
    return Company(
        tuple(Together(tuple((name, float(f"0.{speed}")) for name, speed in row)) for row in rows)
    )


def on(nodes: list[Node], waiting: list[Job], *running: Job, speeds: str = "") -> Snapshot:
    found = snapshot(nodes, waiting, list(running))
    return replace(found, company=known(speeds)) if speeds else found


def aside(plan: Plan) -> dict[str, str]:
    """Who is set aside → for whom."""
    return {preempt.job.id: preempt.room_for for preempt in plan.preempts}


def decided(name: str, seen: Snapshot, **options: Any) -> tuple[dict[str, str], dict[str, str]]:
    plan = cycle(seen, by_name(name, **options))
    return (starts(plan), aside(plan))


PAIRS = "1.9 2.9; 1.8 3.8; 2.5 3.4"

# --- what the strategies say is done -------------------------------------------------------------


def test_fcs_starts_the_fastest_known_combination_and_no_more() -> None:
    """Four GPUs are free; 1 and 2 do 1.8, 1 and 3 only 1.6, all three nobody knows."""
    waiting = [sharing(number) for number in (1, 2, 3)]
    seen = on([N1], waiting, speeds=PAIRS)
    assert decided("cosched-fcs", seen) == ({"1": "1 on n1", "2": "1 on n1"}, {})
    plan = cycle(seen, by_name("cosched-fcs"))
    assert [start.reason for start in plan.starts] == [
        "cosched-fcs runs it with job 2 on n1",
        "cosched-fcs runs it with job 1 on n1",
    ]


def test_a_job_starts_beside_one_that_runs_where_that_is_the_fastest() -> None:
    seen = on([N1], [sharing(2), sharing(3)], here(1), speeds=PAIRS)
    assert decided("cosched-fcs", seen) == ({"2": "1 on n1"}, {})
    slow = on([N1], [sharing(2)], here(1), speeds="1.4 2.5")
    assert decided("cosched-fcs", slow) == ({}, {})


def test_who_is_not_in_the_next_combination_is_set_aside_before_others_start() -> None:
    seen = on([N1], [sharing(2)], here(1), here(3), speeds=PAIRS)
    plan = cycle(seen, by_name("cosched-fcs"))
    assert (starts(plan), aside(plan)) == ({}, {"3": "2"})
    assert plan.preempts[0].reason == "cosched-fcs runs job 1, job 2 on n1 without it"
    after = carried_out(seen, plan)
    assert [waits.id for waits in after.waiting] == ["3", "2"]
    assert decided("cosched-fcs", after) == ({"2": "1 on n1"}, {})
    done = carried_out(after, cycle(after, by_name("cosched-fcs")))
    assert decided("cosched-fcs", done) == ({}, {})


def test_two_that_hinder_each_other_are_parted() -> None:
    seen = on([N1], [], here(1), here(2), speeds="1.4 2.3")
    assert decided("cosched-fcs", seen) == ({}, {"2": "1"})
    assert decided("cosched-fcs", carried_out(seen, cycle(seen, by_name("cosched-fcs")))) == (
        {},
        {},
    )


def test_nothing_changes_on_a_node_that_somebody_is_leaving() -> None:
    seen = on([N1], [sharing(2)], here(1), here(3, room_for="2"), speeds=PAIRS)
    assert decided("cosched-fcs", seen) == ({}, {})


def test_nobody_is_set_aside_before_it_is_known_how_fast_those_are_that_run() -> None:
    waiting, running = [sharing(2)], (here(1), here(3))
    assert decided("cosched-pi", on([N1], waiting, *running, speeds="1.9 2.9")) == (
        {"2": "1 on n1"},  # all at once are measured first
        {},
    )
    full = node("n1", 2)
    assert decided("cosched-pi", on([full], waiting, *running, speeds="1.9 2.9")) == ({}, {})
    seen = on([full], waiting, *running, speeds="1.9 2.9; 1.3 3.3")
    assert decided("cosched-pi", seen) == ({}, {"3": "2"})


def test_a_job_that_may_not_be_set_aside_stays_in_every_combination() -> None:
    """2 and 3 alone would be the fastest; 1 is not best-effort."""
    speeds = "1.5 2.6; 1.5 3.5; 2.9 3.9"
    seen = on([N1], [sharing(2), sharing(3)], here(1, preemptible=False), speeds=speeds)
    assert decided("cosched-fcs", seen) == ({"2": "1 on n1"}, {})
    free = on([N1], [sharing(2), sharing(3)], here(1), speeds=speeds)
    assert decided("cosched-fcs", free) == ({}, {"1": "2"})


def test_only_jobs_that_fit_together_are_combined() -> None:
    seen = on([N1], [sharing(1, "3"), sharing(2, "2"), sharing(3)], speeds=PAIRS)
    assert decided("cosched-fcs", seen)[0] == {"1": "3 on n1", "3": "1 on n1"}


def test_shares_of_one_gpu_are_combined_and_parted_like_whole_ones() -> None:
    pool = node("n1", 1, shards=4)
    seen = on([pool], [sharing(1, "1/2"), sharing(2, "1/2"), sharing(3, "1/2")], speeds=PAIRS)
    assert decided("cosched-fcs", seen)[0] == {"1": "1/2 on n1", "2": "1/2 on n1"}
    full = node("n1", 1, free=0, shards=4)
    running = (here(1, own="1/2"), here(3, own="1/2"))
    seen = replace(on([full], [sharing(2, "1/2")], speeds=PAIRS), running=running)
    assert decided("cosched-fcs", seen) == ({}, {"3": "2"})


def test_nodes_choose_one_after_the_other_from_what_still_waits() -> None:
    waiting = [sharing(number) for number in (1, 2, 3)]
    seen = on([N1, N2], waiting, speeds=PAIRS)
    assert decided("cosched-fcs", seen)[0] == {"1": "1 on n1", "2": "1 on n1", "3": "1 on n2"}


def test_the_optimum_begins_with_what_keeps_everybody_company() -> None:
    """1 and 2 do the most, and 3 would be left: all three at once are done the soonest."""
    speeds = "1.99 2.99; 1.9 3.5; 2.9 3.5; 1.8 2.8 3.3"
    waiting = [sharing(n, time_limit_s=limit) for n, limit in ((1, 8000), (2, 8000), (3, 3000))]
    seen = on([N1], waiting, speeds=speeds)
    assert decided("cosched-fcs", seen)[0].keys() == {"1", "2"}
    assert decided("cosched-optimal", seen)[0].keys() == {"1", "2", "3"}


def test_the_optimum_parts_what_it_runs_one_after_the_other() -> None:
    seen = on([N1], [], here(1), here(2), speeds="1.4 2.3")
    assert decided("cosched-optimal", seen) == ({}, {"2": "1"})


@pytest.mark.parametrize("name", LEARNING)
def test_those_that_learn_try_all_at_once_first_and_go_on_with_the_best(name: str) -> None:
    waiting = [sharing(number) for number in (1, 2, 3)]
    assert decided(name, on([N1], waiting))[0].keys() == {"1", "2", "3"}
    running = [here(number) for number in (1, 2, 3)]
    assert decided(name, on([N1], [], *running, speeds="1.9 2.9 3.9")) == ({}, {})
    bad = on([N1], [], *running, speeds="1.1 2.1 3.1; 1.4 2.4; 1.4 3.4; 2.4 3.4")
    assert decided(name, bad) == ({}, {"2": "1", "3": "1"})


def test_those_that_learn_differ_by_what_they_expect_of_the_unknown() -> None:
    """Of four at once 2.0 is known; of the threes they expect less, but not surely."""
    speeds = "1.5 2.5 3.5 4.5; 1.95 2.95; 1.7 3.7; 1.7 4.7; 2.7 3.7; 2.7 4.7; 3.7 4.7"
    seen = on([N1], [], *(here(number) for number in (1, 2, 3, 4)), speeds=speeds)
    assert [decided(name, seen)[1] for name in LEARNING] == [{}, {"4": "1"}, {"4": "1"}]


def test_a_job_that_does_not_share_is_placed_as_by_easy_backfill() -> None:
    """The first that waits keeps its opening; what shares starts only where it delays it not."""
    long, short = sharing(2, time_limit_s=7200), sharing(3, time_limit_s=600)
    runs_now = replace(runs(job(90, "2"), "2", "n1"), time_limit_s=3600)
    seen = on([N1], [job(1, "4"), long, short], runs_now, speeds="2.9 3.9")
    assert decided("cosched-fcs", seen) == ({"3": "1 on n1"}, {})


def test_without_consent_nobody_shares_and_nobody_is_set_aside() -> None:
    lone = [replace(sharing(n), spec=Spec(Request(), Shape(1, 1))) for n in (1, 2)]
    for name in NAMES:
        plan = cycle(on([N1], lone, speeds="1.1 2.1"), by_name(name))
        assert starts(plan) == {"1": "1 on n1", "2": "1 on n1"}


def test_a_snapshot_in_a_file_keeps_what_is_known_of_speeds() -> None:
    seen = on([N1], [sharing(1)], speeds=PAIRS)
    assert read_snapshot(write_snapshot(seen)) == seen
    assert seen.company.table[frozenset("12")] == {"1": 0.9, "2": 0.9}


# --- options, and where they may decide ----------------------------------------------------------


@pytest.mark.parametrize("name", LEARNING)
def test_a_probability_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"a probability above 0\.5 and below 1 is expected"):
        by_name(name, p=0.5)


def test_a_real_cluster_has_all_but_the_one_that_goes_by_all_speeds() -> None:
    assert set(NAMES) - set(live_names()) == {"cosched-optimal"}


def test_where_the_batch_system_pairs_jobs_they_go_by_marks() -> None:
    assert all(getattr(live(name, {}), "marks", False) for name in NAMES if name in live_names())
    with pytest.raises(BadInput, match="marks: False: on a real cluster True is expected"):
        live("cosched-fcs", {"marks": False})


@pytest.mark.parametrize("name", LEARNING)
def test_options_that_do_nothing_on_a_real_cluster_are_refused_there(name: str) -> None:
    for option, value in (("window", 20), ("k", 2)):
        expected = f"{option}: {value}: on a real cluster {options(name)[option]} is expected"
        with pytest.raises(BadInput, match=expected):
            live(name, {option: value})
    assert options(name)["window"] == WINDOW
    assert live(name, {"p": 0.9, "ends": False}).name == name


def test_no_real_cluster_may_have_the_optimal_one() -> None:
    name = "cosched-optimal"
    with pytest.raises(BadInput) as raised:
        live(name, {})
    assert str(raised.value) == (
        f"policy {name}: it is for simulations only: one of {', '.join(live_names())} is expected"
    )


@every_policy
def test_they_know_no_classes_of_trial_jobs(name: str) -> None:
    assert not has_classes(by_name(name))
    assert not preempts(by_name(name))


# --- whatever the jobs and what is known ---------------------------------------------------------


@st.composite
def companies(draw: st.DrawFn, jobs: list[str]) -> Company:
    """Speeds of some combinations, whether they make sense together or not."""
    speeds = st.sampled_from([0.0, 0.3, 0.5, 0.5, 0.7, 0.9, 1.0, 1.1])
    groups = st.lists(st.sampled_from(jobs), min_size=2, max_size=4, unique=True)
    some: list[Combination] = [frozenset(group) for group in draw(st.lists(groups, max_size=8))]
    return Company(
        tuple(Together(tuple((name, draw(speeds)) for name in sorted(one))) for one in some)
    )


@st.composite
def machines(draw: st.DrawFn) -> tuple[SimulatedCluster, Company]:
    """One to three nodes, jobs of which most share, some of them running."""
    shards = draw(st.sampled_from([0, 4]))
    nodes = tuple(
        Node(f"n{n}", 8, 8, 0, 0, (Pool("", gpus, gpus, shards),))
        for n, gpus in enumerate(draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=3)))
    )
    cluster = Cluster(nodes, (Partition("gpu", tuple(n.name for n in nodes)),))
    numbers = range(1, draw(st.integers(2, 7)))
    for number in numbers:
        own = draw(st.sampled_from(["1", "1", "2", "1/2"] if shards else ["1", "1", "2"]))
        kind = draw(st.sampled_from([JobClass.BEST_EFFORT, JobClass.BEST_EFFORT, None]))
        request = Request(colocate=draw(st.sampled_from([True, True, True, None])), job_class=kind)
        found = job(number, own, time_limit_s=draw(st.sampled_from([600, 3600, 0])))
        spec = Spec(request, found.shape)
        cluster.submit(replace(found, spec=spec, footprint=Footprint()), 300.0 * number)
        for name in draw(st.permutations([n.name for n in nodes])):
            if draw(st.booleans()) and cluster.start(found.id, (name,)):
                break
    return cluster, draw(companies([str(number) for number in range(1, 8)]))


@every_policy
@often
@given(drawn=machines())
def test_they_never_over_allocate_and_decide_the_same_again(
    name: str, drawn: tuple[SimulatedCluster, Company]
) -> None:
    cluster, company = drawn
    seen = view(replace(cluster.snapshot(), company=company))
    plan = by_name(name)(seen)
    assert overfull(seen, plan) == []
    assert by_name(name)(seen) == plan
    assert {one.job.id for one in plan.preempts} <= {j.id for j in seen.running if j.preemptible}
    assert len({start.job.id for start in plan.starts}) == len(plan.starts)


@every_policy
@often
@given(drawn=machines())
def test_at_one_moment_they_come_to_rest_and_every_job_is_done(
    name: str, drawn: tuple[SimulatedCluster, Company]
) -> None:
    cluster, company = drawn
    possible = {job.id for job in view(cluster.snapshot()).waiting if can_run(cluster, job)}
    policy = by_name(name)
    for _ in range(40):
        for _ in range(40):
            plan = cycle(replace(cluster.snapshot(), company=company), policy)
            started = cluster.apply(plan)
            if not (started or plan.actions or plan.changes_running):
                break
        else:
            pytest.fail("it changes again and again")
        if cluster.next_end_s is None:
            break
        cluster.advance(cluster.next_end_s)
    assert possible <= {run.id for run in cluster.finished}


def can_run(cluster: SimulatedCluster, waits: Job) -> bool:
    sizes = [pool.total for row in cluster.nodes for pool in row.pools]
    return waits.shape.gpus <= max(sizes)
