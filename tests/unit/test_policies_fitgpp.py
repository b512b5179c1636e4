"""FitGpp and its baselines, worked out by hand from equations 1 and 2 of paper 001."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import claims, got, job, node, snapshot, starts
from resizing import carried_out, elastic, runs

from pliant.cycle import cycle
from pliant.errors import BadInput
from pliant.model import Job, JobClass, Reservation, Snapshot
from pliant.plan import Plan
from pliant.policies import by_name, live

NODES = [node("n1", gpus=8, cpus=32), node("n2", gpus=8, cpus=32)]


def trial(number: int, gpus: int, **fields: Any) -> Job:
    return elastic(number, str(gpus), f"gpus={gpus}", job_class=JobClass.TRIAL, **fields)


def best_effort(number: int, gpus: int, nodes: str, **fields: Any) -> Job:
    fields.setdefault("preemptible", True)
    waits = elastic(number, str(gpus), f"gpus={gpus}", job_class=JobClass.BEST_EFFORT)
    return runs(waits, str(gpus), nodes, **fields)


def told(plan: Plan) -> dict[str, str]:
    """Who makes room → for whom."""
    return {preempt.job.id: preempt.room_for for preempt in plan.preempts}


def full(*running: Job, waiting: tuple[Job, ...] = (trial(1, 2),)) -> Snapshot:
    return snapshot(NODES, list(waiting), list(running))


def fitgpp(view: Snapshot, **options: Any) -> dict[str, str]:
    return told(cycle(view, by_name("fitgpp", **options)))


def test_the_smallest_job_that_makes_room_enough_is_told() -> None:
    view = full(
        best_effort(90, 6, "n1", grace_s=60.0),
        best_effort(91, 2, "n1", grace_s=60.0),
        best_effort(92, 7, "n2", grace_s=60.0),
        best_effort(93, 1, "n2", grace_s=60.0),  # with nothing free on n2 it is too small
    )
    assert fitgpp(view) == {"91": "1"}


def test_what_is_free_on_the_node_counts() -> None:
    """D_TE ≤ D_j + N: one GPU of its own and one that is free are two."""
    view = full(best_effort(90, 8, "n1"), best_effort(91, 6, "n2"), best_effort(92, 1, "n2"))
    assert fitgpp(view) == {"92": "1"}


def test_s_weighs_the_grace_period_against_the_size() -> None:
    """Scores: 90 is 8/8-ish large and quick, 91 is small and slow."""
    view = full(best_effort(90, 8, "n1", grace_s=60.0), best_effort(91, 8, "n2", grace_s=600.0))
    assert fitgpp(view) == {"90": "1"}
    view = full(
        best_effort(90, 6, "n1", grace_s=100.0),  # 1 + s · 1/6
        best_effort(91, 2, "n1", grace_s=600.0),  # 1/3 and a little + s
        best_effort(92, 6, "n2", grace_s=600.0),
        best_effort(93, 2, "n2", grace_s=600.0, preemptible=False),
    )
    assert [fitgpp(view, s=s) for s in (0.5, 4.0)] == [{"91": "1"}, {"90": "1"}]


def test_a_job_makes_room_at_most_p_times_and_only_while_it_may() -> None:
    once = best_effort(90, 8, "n1", preempted=1)
    protected = best_effort(91, 8, "n2", preemptible=False)
    assert fitgpp(full(once, protected)) == {}
    assert fitgpp(full(once, protected), p=2) == {"90": "1"}


def test_where_nobody_qualifies_the_trial_job_waits_at_the_head_or_takes_several() -> None:
    view = full(
        *(best_effort(90 + n, 4, "n1" if n < 2 else "n2") for n in range(4)),
        waiting=(trial(1, 6), job(2, "1")),
    )
    plan = cycle(view, by_name("fitgpp"))
    assert (told(plan), starts(plan)) == ({}, {})
    assert claims(plan) == {"1": "6 on n1 at 3500"}
    assert fitgpp(view, several=True) == {"90": "1", "91": "1"}


def test_only_trial_jobs_take_room_and_only_of_best_effort_ones() -> None:
    running = [best_effort(90, 8, "n1"), runs(elastic(91, "8", "gpus=8"), "8", "n2")]
    waits = [elastic(1, "2", "gpus=2", job_class=kind) for kind in (None, JobClass.BEST_EFFORT)]
    for one in waits:
        assert fitgpp(full(*running, waiting=(one,))) == {}
    assert fitgpp(full(*running)) == {"90": "1"}


def test_the_trial_job_gets_the_room_and_the_other_goes_on_after_it() -> None:
    policy = by_name("fitgpp")
    view = full(best_effort(90, 8, "n1", grace_s=60.0), best_effort(91, 8, "n2", grace_s=90.0))
    plan = cycle(view, policy)
    assert (told(plan), starts(plan)) == ({"90": "1"}, {})

    leaving = tuple(replace(one, room_for="1") if one.id == "90" else one for one in view.running)
    assert not cycle(replace(view, running=leaving), policy).changes_running  # it is under way

    gone = carried_out(view, plan)
    assert [(one.id, one.preempted) for one in gone.waiting] == [("90", 1), ("1", 0)]
    after = cycle(gone, policy)
    assert (got(after), told(after)) == ({"1": "2"}, {})  # though 90 stands first, and would fit
    assert claims(after).keys() == {"90"}


def test_while_one_that_makes_room_is_between_its_runs_no_other_is_told() -> None:
    """A fence keeps its node, so that the trial job does not fit yet."""
    policy = by_name("fitgpp")
    view = full(best_effort(90, 8, "n1", grace_s=60.0), best_effort(91, 8, "n2", grace_s=90.0))
    gone = carried_out(view, cycle(view, policy))
    fenced = replace(gone, reservations=(Reservation("pliant_90", ("n1",), 0.0, 125.0),))
    assert told(cycle(fenced, policy)) == {"91": "1"}
    between = tuple(
        replace(one, frozen="on its way") if one.id == "90" else one for one in fenced.waiting
    )
    assert told(cycle(replace(fenced, waiting=between), policy)) == {}


def test_two_trial_jobs_take_the_room_of_two() -> None:
    view = full(
        *(best_effort(90 + n, 4, "n1" if n < 2 else "n2") for n in range(4)),
        waiting=(trial(1, 3), trial(2, 3)),
    )
    plan = cycle(view, by_name("fitgpp"))
    assert sorted(told(plan).values()) == ["1", "2"]


def test_fifo_lets_nobody_pass_and_tells_nobody() -> None:
    view = full(
        best_effort(90, 8, "n1"), waiting=(job(1, "9"), job(2, "8"), job(3, "8"), job(4, "1"))
    )
    plan = cycle(view, by_name("fifo"))
    assert (got(plan), told(plan)) == ({"2": "8"}, {})  # no node could ever hold job 1
    assert claims(plan).keys() == {"3"}


def test_under_fifo_trial_jobs_pass_nobody_either() -> None:
    view = full(
        *(best_effort(90 + n, 7, f"n{1 + n}", preemptible=False) for n in range(2)),
        waiting=(job(1, "8"), trial(2, 1)),
    )
    assert got(cycle(view, by_name("fifo"))) == {}
    assert got(cycle(view, by_name("fitgpp"))) == {"2": "1"}


def test_nobody_else_gets_the_room_that_is_made() -> None:
    """90 makes room for trial job 1, which needs its six GPUs and the one beside them."""
    leaves = replace(best_effort(90, 6, "n1", grace_s=60.0), room_for="1")
    others = best_effort(91, 1, "n1", preempted=1), best_effort(92, 8, "n2", preempted=1)
    waiting = (job(3, "8"), trial(1, 7), trial(2, 1))
    policy = by_name("fitgpp")
    plan = cycle(full(leaves, *others, waiting=waiting), policy)
    assert (starts(plan), told(plan)) == ({}, {})

    waits = elastic(90, "6", "gpus=6", job_class=JobClass.BEST_EFFORT)
    back = replace(waits, room_for="1", preempted=1)
    assert got(cycle(full(*others, waiting=(back, *waiting)), policy)) == {"1": "7"}


def test_trial_jobs_alike_are_looked_at_once() -> None:
    """Those of two GPUs find nobody who could make room; one of one GPU still does."""
    some = [best_effort(90 + n, 1, "n1" if n < 8 else "n2") for n in range(16)]
    waiting = (job(1, "8"), trial(2, 2), trial(3, 2), trial(4, 1))
    assert list(fitgpp(full(*some, waiting=waiting)).values()) == ["4"]


def test_lrtp_tells_those_with_the_longest_run_left_until_there_is_room() -> None:
    view = full(
        best_effort(90, 8, "n1", time_limit_s=7200, progress=0.9),
        best_effort(91, 4, "n2", time_limit_s=7200, progress=0.6),
        best_effort(92, 4, "n2", time_limit_s=3600),
    )
    assert told(cycle(view, by_name("lrtp"))) == {"92": "1"}
    wide = replace(view, waiting=(trial(1, 8),))
    assert told(cycle(wide, by_name("lrtp"))) == {"92": "1", "91": "1"}
    assert told(cycle(wide, by_name("fitgpp"))) == {"90": "1"}


@pytest.mark.parametrize("name", ["fitgpp", "lrtp", "rand"])
def test_on_a_real_cluster_one_job_makes_room_for_a_trial_job(name: str) -> None:
    view = full(*(best_effort(90 + n, 4, "n1" if n < 2 else "n2") for n in range(4)))
    policy = live(name, {})
    assert len(told(cycle(view, policy))) == 1
    assert told(cycle(replace(view, waiting=(trial(1, 8),)), policy)) == {}
    with pytest.raises(BadInput, match=f"{name}: several: True: on a real cluster False is expec"):
        live(name, {"several": True})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rand_tells_the_same_ones_for_the_same_seed(seed: int) -> None:
    view = full(*(best_effort(90 + n, 4, "n1" if n < 2 else "n2") for n in range(4)))
    first = told(cycle(view, by_name("rand", seed=seed)))
    assert first == told(cycle(view, by_name("rand", seed=seed)))
    assert len(first) == 1


def test_rand_tells_different_ones_for_different_seeds() -> None:
    view = full(*(best_effort(90 + n, 4, "n1" if n < 2 else "n2") for n in range(4)))
    found = {next(iter(told(cycle(view, by_name("rand", seed=seed))))) for seed in range(1, 20)}
    assert found == {"90", "91", "92", "93"}
