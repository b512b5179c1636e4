"""What a policy says of running jobs that could take, once they wait, what is kept for others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import HOUR_S, job, node, running, snapshot

from pliant.cycle import cycle, explain
from pliant.cycle.let_through import STRAYS, let_through
from pliant.grammar import parse
from pliant.model import Job, Shape, Snapshot, Spec
from pliant.plan import Claim, Plan, Preempt, Reshape
from pliant.policies.fitgpp import FitGpp

ONE, TWO, FOUR = (Shape(1, gpus) for gpus in (1, 2, 4))
LONG_S = 10 * HOUR_S
FIRST = job(5, "4")
PLANNED: dict[str, Any] = {"expected_nodes": ("n1",), "expected_s": 180.0}


def mover(gpus: int = 2, **fields: Any) -> Job:
    """The job that is to be changed: on n2, for 10 hours at most."""
    one = running(2, str(gpus), "n2", LONG_S)
    request = parse("gpus=1-4;malleable=grace=60;job-class=best-effort")
    return replace(one, spec=Spec(request, one.shape), preemptible=True, **fields)


def seen(*waiting: Job, busy: int = 2, more: str = "2", **fields: Any) -> Snapshot:
    """On n1 `busy` GPUs until 180 s, on n2 the mover and a job that runs on."""
    nodes = [node("n1", gpus=4), node("n2", gpus=4)]
    on_n1 = running(1, str(busy), "n1", 180.0)
    return snapshot(nodes, [*waiting], [on_n1, mover(**fields), running(3, more, "n2", LONG_S)])


CLAIM = Claim(FIRST, FOUR, 180.0, ("n1",), "it is first")


def shrunk(found: Snapshot, to: Shape = ONE, **plan: Any) -> tuple[Reshape, ...]:
    reshape = Reshape(found.running[1], to, ("n2",), "it is fair")
    plan.setdefault("claims", (CLAIM,))
    return let_through(found, Plan(reshapes=(reshape,), **plan)).reshapes


def test_a_job_that_could_start_on_what_is_kept_for_the_first_stays() -> None:
    assert not shrunk(seen(FIRST))
    assert shrunk(seen(FIRST), claims=())


def test_what_the_batch_system_plans_for_others_is_kept_too() -> None:
    later = replace(FIRST, **PLANNED)
    assert not shrunk(seen(later), claims=())
    assert shrunk(seen(replace(later, eligible=False, reason="JobHeldUser")), claims=())


@pytest.mark.parametrize(
    ("what", "fields"),
    [
        ("nothing is free there", {"busy": 4}),
        ("it is over before", {"time_limit_s": 120}),
        ("it may not be there", {"nodes_excluded": frozenset({"n1"})}),
        ("it is to be on its own node", {"nodes_required": frozenset({"n2"})}),
        ("it needs more", {"gpus": 1, "more": "1"}),
    ],
)
def test_one_that_could_not_or_would_be_gone_by_then_is_changed(
    what: str, fields: dict[str, Any]
) -> None:
    to = TWO if what != "it needs more" else Shape(1, 3)
    assert shrunk(seen(FIRST, **fields), to), what


def test_a_job_on_two_nodes_stays_where_one_of_them_could_be_kept_for_others() -> None:
    found = seen(FIRST)
    both = replace(found.running[1], shape=Shape(2, 1), nodes=("n2", "n3"))
    spread = Reshape(both, Shape(2, 1), ("n2", "n3"), "it is fair")
    assert not let_through(found, Plan(claims=(CLAIM,), reshapes=(spread,))).reshapes


def room(found: Snapshot, **plan: Any) -> tuple[Preempt, ...]:
    preempt = Preempt(found.running[1], "9", "it loses least", None)
    plan.setdefault("claims", (CLAIM,))
    return let_through(found, Plan(preempts=(preempt,), **plan)).preempts


def test_no_room_is_made_for_a_guest_that_could_start_on_what_is_kept() -> None:
    guest = job(9, "2", time_limit_s=LONG_S)
    assert not room(seen(FIRST, guest, gpus=3, more="1"))
    assert room(seen(FIRST, replace(guest, time_limit_s=120), gpus=3, more="1"))
    assert room(seen(guest, FIRST, gpus=3, more="1"))  # it is before that one
    assert room(seen(FIRST, guest, gpus=3, more="1"), claims=())


def test_no_room_is_made_by_one_that_could_then_start_on_what_is_kept() -> None:
    guest = job(9, "4", time_limit_s=LONG_S)
    assert not room(seen(FIRST, guest))
    assert room(seen(FIRST, guest, busy=3))


def test_what_is_kept_for_the_guest_is_not_once_that_has_its_room() -> None:
    guest = job(9, "4", time_limit_s=LONG_S)
    claim = replace(CLAIM, job=guest)
    assert room(seen(guest, FIRST), claims=(claim,))
    assert room(seen(replace(guest, **PLANNED)), claims=())


def test_where_several_make_room_all_do_or_none() -> None:
    found = seen(FIRST, job(9, "4", time_limit_s=LONG_S))
    both = (found.running[1], replace(found.running[2], preemptible=True))
    preempts = tuple(Preempt(one, "9", "it loses least", FOUR) for one in both)
    assert not let_through(found, Plan(claims=(CLAIM,), preempts=preempts)).preempts


def test_a_trial_job_is_told_why_no_room_is_made_for_it() -> None:
    spec = Spec(parse("job-class=trial"), TWO)
    trial = replace(job(9, "2", time_limit_s=LONG_S), spec=spec)
    found = seen(FIRST, trial)
    assert not cycle(found, FitGpp()).preempts
    says = explain(found, FitGpp(), "9").says
    assert says.endswith("; no room is made for it now: " + STRAYS.format("2", "n1"))
    assert cycle(seen(FIRST, trial, busy=4), FitGpp()).preempts
    assert "no room is made" not in explain(seen(FIRST, trial, busy=4), FitGpp(), "9").says
