"""No sentence names a job of somebody else to users who may not see it (PrivateData=jobs)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from build import job, node, running, snapshot
from hypothesis import given
from hypothesis import strategies as st
from resizing import elastic
from strategies import Cluster, clusters
from test_policies_cosched import N1, PAIRS, on
from test_policies_cosched import here as movable
from test_policies_cosched import sharing as together
from test_policies_fitgpp import best_effort, trial
from test_policies_malleable import _stepless, three_and_three
from test_policies_marks import here, leaving, seen, sharing
from test_policies_properties import POLICIES, seldom

from pliant.cycle import cycle, explain
from pliant.cycle.bounds import kept_within_limits
from pliant.daemon import answers as a
from pliant.daemon.private import without_private
from pliant.daemon.rights import Asker
from pliant.model import Company, Job, Snapshot, Together
from pliant.plan import Policy
from pliant.policies import by_name, live

OWNERS = ("alice", "bob")
BASE = 470_000
"""Numbers from here on are jobs' and nothing else's."""
NUMBER = re.compile(r"\b47[0-9]{4}\b")


def of_two(found: Snapshot) -> Snapshot:
    """The same with large numbers, every other job alice's, the rest bob's."""
    jobs = sorted(int(one.id) for one in (*found.waiting, *found.running))
    owners = {str(number): OWNERS[at % 2] for at, number in enumerate(jobs)}

    def named(one: Job) -> Job:
        room_for = _new(one.room_for) if one.room_for else ""
        return replace(one, id=_new(one.id), room_for=room_for, user=owners[one.id])

    known = (
        Together(tuple((_new(name), speed) for name, speed in one.speeds))
        for one in found.company.known
    )
    return replace(
        found,
        waiting=tuple(map(named, found.waiting)),
        running=tuple(map(named, found.running)),
        company=Company(tuple(known)),
    )


def _new(job_id: str) -> str:
    return str(BASE + int(job_id))


def sentences(found: Snapshot, policy: Policy) -> Iterator[str]:
    """Whatever is said of what is decided, and of each job to who asks why."""
    plan = cycle(found, policy)
    for some in (plan.starts, plan.claims, plan.actions, plan.preempts, plan.reshapes, plan.marks):
        yield from (one.reason for one in some)
    for one in (*found.waiting, *found.running):
        why = explain(found, policy, one.id)
        yield from (one.frozen, why.says, why.left, *(tried.why_not for tried in why.tried))


def shown(found: Snapshot, text: str, user: str) -> str:
    """A sentence as a user sees it who may see the own jobs alone."""
    asker = Asker(1001, user, admin=False, sees_all=False)
    row = without_private(a.DecisionRow(0.0, "start", "1", text), asker, found)
    assert isinstance(row, a.DecisionRow)
    return row.reason


def check(found: Snapshot, text: str) -> None:
    for user in OWNERS:
        own = {one.id for one in (*found.waiting, *found.running) if one.user == user}
        told = shown(found, text, user)
        assert {*NUMBER.findall(told)} <= own, (user, text)
        others = {*NUMBER.findall(text)} - own
        nodes = {one.name for one in found.nodes}
        assert not others or nodes.isdisjoint(re.split(r"[ ,:;]+", told)), (user, told)


FULL = [here(8, "n1"), here(9, "n2")]
SLOW = "7.3 8.4"
LIMITED: dict[str, Any] = {"reason": "QOSGrpGRES", "eligible": False}
FCS, FSCHED = live("cosched-fcs", {}), by_name("f-scheduling", v_bound=0.5, pays=True)


def without_steps() -> Snapshot:
    found = three_and_three()
    waiting, busy = (tuple(map(_stepless, jobs)) for jobs in (found.waiting, found.running))
    return replace(found, waiting=waiting, running=busy)


def for_a_trial() -> Snapshot:
    told = [best_effort(number, 4, "n1", grace_s=60.0) for number in (90, 91)]
    return snapshot([node("n1", gpus=8)], [trial(92, 2)], told)


def behind_a_limit() -> Snapshot:
    """One that waits, and one that runs, after one that waits for a limit."""
    runs = replace(elastic(4, "2"), state=running(4, "2", "n1", 9000).state, nodes=("n1",))
    waiting = [job(1, "4", **LIMITED), job(2, "2", "gpus=1-4", reason="QOSGrpGRES")]
    return snapshot([node("n1", gpus=8)], waiting, [runs])


def after_a_claim() -> Snapshot:
    busy = running(1, "2", "n1", 3600)
    return snapshot([node("n1")], [job(2, "4"), job(3, "1", time_limit_s=9000)], [busy])


@pytest.mark.parametrize(
    ("words", "found", "policy"),
    [
        ("cosched-fcs runs it with job", seen([sharing(1)], *FULL, speeds="1.9 8.9; 1.4 9.4"), FCS),
        ("it is parted from job", seen([], leaving(7), leaving(8), speeds=SLOW), FCS),
        ("(job 470007 at 0.30, job 470008", seen([], leaving(7), leaving(8), speeds=SLOW), FCS),
        ("it shares n1 with job", seen([], here(8, "n1"), here(7, "n1"), speeds=SLOW), FCS),
        ("could be made smaller", without_steps(), FSCHED),
        ("makes room for trial job", for_a_trial(), by_name("fitgpp")),
        ("it with job", on([N1], [together(1), together(2)], speeds=PAIRS), by_name("cosched-fcs")),
        ("without it", on([N1], [together(2)], movable(1), movable(3), speeds=PAIRS), by_name("cosched-fcs")),
        ("job 470001 before it waits for a limit", behind_a_limit(), by_name("moldable-equipartition")),
        ("and would start in its place", behind_a_limit(), by_name("moldable-equipartition")),
        ("is kept for job", after_a_claim(), by_name("moldable-equipartition")),
        ("both are done soonest", snapshot([node("n1")], [job(1, "4"), job(2, "4")]), by_name("fms")),
    ],
)  # fmt: skip
def test_whatever_is_said_names_no_job_of_somebody_else(
    words: str, found: Snapshot, policy: Policy
) -> None:
    """``words`` are of a sentence with such a job, which must be among those that are said."""
    found = kept_within_limits(of_two(found))
    said = [*sentences(found, policy)]
    assert [text for text in said if words in text and NUMBER.search(text)]
    for text in said:
        check(found, text)


@seldom
@given(clusters(), st.sampled_from(POLICIES))
def test_nor_does_it_whatever_the_cluster_and_the_policy(cluster: Cluster, policy: Policy) -> None:
    found = kept_within_limits(of_two(cluster.snapshot()))
    for text in sentences(found, policy):
        check(found, text)


def test_the_node_of_another_is_not_named_without_its_number() -> None:
    found = of_two(seen([sharing(1, mark="n1")], here(8, "n1"), here(9, "n2")))
    says = explain(found, FCS, "470001").says
    assert says.endswith("; it may start beside another job, on n1")
    assert shown(found, says, "alice").endswith("; it may start beside another job, on 1 node")


@pytest.mark.parametrize("other", ["7", "7_3", "7[3]", "7[]"])
def test_all_of_an_arrays_number_is_left_out(other: str) -> None:
    found = snapshot([node("n1")], [replace(job(1), id="8[3]", user="alice")])
    text = f"beside job {other} and job 8[3] both are done soonest"
    assert shown(found, text, "alice") == "beside another job and job 8[3] both are done soonest"


@pytest.mark.parametrize(("array", "task"), [("8", "8_1"), ("8[]", "8[1]"), ("8_1", "8_1")])
def test_a_task_is_known_to_whom_its_array_is(array: str, task: str) -> None:
    found = snapshot([node("n1")], [replace(job(1), id=array, user="alice")])
    text = f"makes room for job {task}"
    assert shown(found, text, "alice") == text
    assert shown(found, text, "bob") == "makes room for another job"
