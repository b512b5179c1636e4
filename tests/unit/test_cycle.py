"""What a cycle changes, what it leaves alone, and how it explains itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from build import HOUR_S, changes, claims, got, job, node, running, snapshot, starts

from pliant.cycle import (
    Gate,
    Tried,
    allowed_shapes,
    cycle,
    explain,
    forbidden,
    gate,
    grown,
    leftover,
    taken_back,
    view,
    why_left,
)
from pliant.errors import BadInput
from pliant.grammar import parse, parse_shape
from pliant.model import Abilities, Job, Mode, Node, Partition, Pool, Shape, Snapshot, Spec
from pliant.plan import Mold, Plan, Start
from pliant.policies import by_name

EQUI = by_name("moldable-equipartition")
NODES = [node("n1"), node("n2")]
RANGE = "gpus=1-4"


# --- rule 4's table -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Resources", Gate.MOLD),
        ("Priority", Gate.MOLD),
        ("None", Gate.NEW),
        ("", Gate.NEW),
        ("QOSMaxGRESPerUser", Gate.SMALLER),
        ("QOSGrpCpuLimit", Gate.SMALLER),
        ("QOSGrpCPURunMinutesLimit", Gate.SMALLER),
        ("QOSMaxNodePerUserLimit", Gate.SMALLER),
        ("MaxGRESRunMinsPerUser", Gate.SMALLER),
        ("MaxCpuRunMinsPerAccount", Gate.SMALLER),
        ("MaxLicenseRunMinsPerUser", Gate.LEAVE),
        ("AssocGrpGRES", Gate.SMALLER),
        ("AssocMaxGRESPerJob", Gate.SMALLER),
        ("MaxGRESPerAccount", Gate.SMALLER),
        ("QOSMinGRES", Gate.LEAVE),
        ("QOSMinCpuNotSatisfied", Gate.LEAVE),
        ("QOSMaxJobsPerUserLimit", Gate.LEAVE),
        ("QOSMaxWallDurationPerJobLimit", Gate.LEAVE),
        ("AssocGrpJobsLimit", Gate.LEAVE),
        ("QOSNotAllowed", Gate.LEAVE),
        ("Dependency", Gate.LEAVE),
        ("DependencyNeverSatisfied", Gate.LEAVE),
        ("JobHeldUser", Gate.LEAVE),
        ("JobHeldAdmin", Gate.LEAVE),
        ("BeginTime", Gate.LEAVE),
        ("Licenses", Gate.LEAVE),
        ("JobArrayTaskLimit", Gate.LEAVE),
        ("PartitionTimeLimit", Gate.LEAVE),
        ("PartitionNodeLimit", Gate.LEAVE),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher "
            "priority partitions",
            Gate.MOLD,
        ),
        ("ReqNodeNotAvail, UnavailableNodes:n1", Gate.MOLD),
        ("ReqNodeNotAvail, May be reserved for other job", Gate.MOLD),
        ("ReqNodeNotAvail, Reserved for maintenance", Gate.LEAVE),
        ("Reservation", Gate.LEAVE),
        ("launch failed requeued held", Gate.LEAVE),
        ("SomethingNew", Gate.LEAVE),
    ],
)
def test_the_reason_says_what_may_be_done(reason: str, expected: Gate) -> None:
    assert gate(reason) is expected


def changed(**fields: Any) -> Plan:
    """What is done about one job that asks for 4 of 2 free GPUs and allows 1 to 4."""
    first = replace(job(1, "4", RANGE), **fields)
    return cycle(snapshot([node("n1", free=2)], [first]), EQUI)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reason": "Resources"}, {"1": "2"}),
        ({"reason": "Priority"}, {"1": "2"}),
        ({"reason": "Nodes required for job are DOWN, DRAINED or reserved for jobs"}, {"1": "2"}),
        ({"reason": "ReqNodeNotAvail, UnavailableNodes:n1"}, {"1": "2"}),
        ({"reason": "ReqNodeNotAvail, UnavailableNodes:n1", "nodes_required": ("n1",)}, {}),
        ({"reason": "ReqNodeNotAvail, May be reserved for other job"}, {"1": "2"}),
        ({"reason": "None"}, {}),
        ({"reason": "Dependency"}, {}),
        ({"reason": "JobHeldUser"}, {}),
        ({"eligible": False}, {}),
        ({"frozen": "a heterogeneous job"}, {}),
        ({"spec": Spec(parse(RANGE), Shape(1, 4), pinned=True)}, {}),
        ({"spec": None, "shapes": (Shape(1, 4),)}, {}),
        ({"refused": frozenset({Shape(1, 2)})}, {"1": "1"}),
    ],
)
def test_only_what_waits_for_resources_is_changed(
    fields: dict[str, Any], expected: dict[str, str]
) -> None:
    assert changes(changed(**fields)) == expected


@pytest.mark.parametrize(
    ("mode", "expected"), [(Mode.OFF, {}), (Mode.OBSERVE, {"1": "2"}), (Mode.ENFORCE, {"1": "2"})]
)
def test_jobs_of_a_partition_that_is_off_are_rigid(mode: Mode, expected: dict[str, str]) -> None:
    seen = snapshot([node("n1", free=2)], [job(1, "4", RANGE)])
    partition = replace(seen.partitions[0], mode=mode)
    assert changes(cycle(replace(seen, partitions=(partition,)), EQUI)) == expected


def limited(**fields: Any) -> Job:
    return replace(job(1, "4", RANGE, reason="QOSMaxGRESPerUser"), **fields)


def test_a_limit_lets_a_job_only_become_smaller() -> None:
    free = [node("n1"), node("n2")]
    assert changes(cycle(snapshot(free, [limited()]), EQUI)) == {"1": "3"}
    # Set by Pliant, and nobody has said that it does not start so: it is given time.
    spec = Spec(parse(RANGE), Shape(1, 4), set=Shape(1, 3))
    set_ = limited(shape=Shape(1, 3), spec=spec)
    assert changes(cycle(snapshot(free, [set_]), EQUI)) == {}
    refused = replace(set_, refused=frozenset({Shape(1, 3)}))
    assert changes(cycle(snapshot(free, [refused]), EQUI)) == {"1": "2"}
    # Another Reason: any shape again, and back to what its user wrote while it waits.
    assert changes(cycle(snapshot(free, [replace(set_, reason="Priority")]), EQUI)) == {"1": "4"}


def test_a_job_that_waits_for_a_limit_keeps_nothing() -> None:
    busy = [running(9, "4", "n1", 600), running(8, "4", "n2", 600)]
    plan = cycle(snapshot(NODES, [limited(), job(2, "2")], busy), EQUI)
    assert claims(plan) == {"2": "2 on n1 at 600"}


def chosen(own: str, allows: str, carried: str, reason: str, **fields: Any) -> Job:
    """A waiting job that carries what Pliant chose for it."""
    shape = parse_shape(carried)
    spec = Spec(parse(allows), parse_shape(own), set=shape)
    return replace(job(1, own, allows), shape=shape, spec=spec, reason=reason, **fields)


def said(waits: Job) -> Spec:
    """What a flagged job says."""
    assert waits.spec is not None
    return waits.spec


@pytest.mark.parametrize(
    ("own", "allows", "carried", "reason", "expected"),
    [
        ("4", RANGE, "2", "QOSMinGRES", "1 2"),
        ("4", RANGE, "2", "QOSMinCpuNotSatisfied", "1 2"),
        ("4", RANGE, "2", "AssocMinGRES", "1 2"),
        ("2x4", "gpus=1-8,nodes=1-2", "4", "PartitionNodeLimit", "1 2 3 4 5 6 7 8"),
        ("4", "gpus=4:8,nodes=1-2", "2x2", "PartitionNodeLimit", "2x2 2x4"),
        ("2x2", "gpus=4:8,nodes=1-3", "4", "QOSMinNode", "4 8"),
        ("4", RANGE, "4", "QOSMinGRES", ""),  # what its user wrote is never left out
        *(
            ("4", RANGE, "2", reason, "")
            for reason in (
                *("Resources", "Priority", "None", "", "Dependency", "JobHeldUser", "BeginTime"),
                *("JobArrayTaskLimit", "Licenses", "QOSMinLicense", "QOSMaxGRESPerUser"),
                *("QOSMaxJobsPerUserLimit", "PartitionTimeLimit", "PartitionDown", "Prolog"),
            )
        ),
    ],
)
def test_a_reason_may_forbid_the_shape_that_pliant_chose(
    own: str, allows: str, carried: str, reason: str, expected: str
) -> None:
    waits = chosen(own, allows, carried, reason)
    assert sorted(map(str, forbidden(waits))) == expected.split()
    pinned = replace(waits, spec=replace(said(waits), pinned=True))
    theirs = replace(waits, spec=replace(said(waits), set=None))
    assert [forbidden(one) for one in (pinned, theirs)] == [(), ()]


def test_what_was_forbidden_is_given_back_and_not_chosen_again() -> None:
    busy = [running(9, "2", "n1", 600)]
    waits = chosen("4", RANGE, "2", "QOSMinGRES")
    assert changes(cycle(snapshot([node("n1")], [waits], busy), EQUI)) == {"1": "4"}
    left_out = frozenset(forbidden(waits))
    back = replace(job(1, "4", RANGE, reason="Resources"), refused=left_out)
    again = cycle(snapshot([node("n1")], [back, job(2, "4")], busy), EQUI)
    assert (again.actions, claims(again)) == ((), {"1": "4 on n1 at 600"})


def test_seeing_a_snapshot_twice_changes_nothing_more() -> None:
    jobs = [limited(), job(2, "4", RANGE, reason="None"), job(3, "1", reason="Dependency")]
    seen = view(snapshot(NODES, jobs))
    assert seen == view(seen)
    assert [(j.eligible, j.limited, tuple(map(str, j.shapes))) for j in seen.waiting] == [
        (True, True, ("1", "2", "3")),
        (True, False, ("4",)),
        (False, False, ("1",)),
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"frozen": "a federated job"}, "a federated job"),
        ({"spec": Spec(parse(RANGE), pinned=True)}, "its owner pinned it"),
        ({"shapes": (Shape(1, 4),)}, "it asks for one shape only"),
        ({"reason": "None"}, "the batch system has not said yet why it waits"),
        ({"reason": "None", "expected_nodes": ("n1",)}, ""),
        (
            {"reason": "Dependency"},
            "it waits for another reason than free resources: Dependency",
        ),
    ],
)
def test_why_a_job_is_left_alone_is_said(fields: dict[str, Any], words: str) -> None:
    asked = replace(job(1, "4", RANGE), **fields)
    assert why_left(snapshot(NODES, [asked]), asked) == words


# --- changes --------------------------------------------------------------------------------------


def test_a_job_that_cannot_start_goes_back_to_what_its_user_wrote() -> None:
    small = job(1, "4", RANGE, shape=Shape(1, 2))
    plan = cycle(snapshot([node("n1", free=0)], [small], []), EQUI)
    assert plan.actions == (
        Mold(
            small,
            Shape(1, 4),
            "no shape can start now: while it waits it carries the shape its user wrote",
        ),
    )


def test_or_else_to_its_largest_shape_that_the_nodes_could_hold() -> None:
    spec = Spec(parse("gpus=1:4:8"))
    small = job(1, "1", "gpus=1:4:8", spec=spec)
    plan = cycle(snapshot([node("n1", free=0)], [small]), EQUI)
    assert changes(plan) == {"1": "4"}


def test_a_job_is_not_changed_back_to_where_it_could_not_return_from() -> None:
    small = job(1, "1x0@cpu", "type=gpu:cpu", shape=Shape(1, 1))
    stays = snapshot([node("n1", free=0, free_cpus=0)], [small])
    one_way = replace(stays, abilities=Abilities(gpu_to_cpu=True, cpu_to_gpu=False))
    both_ways = replace(stays, abilities=Abilities(gpu_to_cpu=True, cpu_to_gpu=True))
    assert [changes(cycle(seen, EQUI)) for seen in (one_way, both_ways)] == [
        {},
        {"1": "1x0@cpu"},
    ]


def molded(**fields: Any) -> Job:
    """A job of 4 that Pliant made small, and that now waits for its turn and not for GPUs."""
    spec = Spec(parse(RANGE), Shape(1, 4), set=Shape(1, 1))
    waits = job(1, "4", RANGE, reason="JobArrayTaskLimit", shape=Shape(1, 1), spec=spec)
    return replace(waits, **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"1": "4"}),
        ({"reason": "QOSMaxJobsPerUserLimit"}, {"1": "4"}),
        ({"reason": "BeginTime", "eligible": False}, {"1": "4"}),
        ({"reason": "None"}, {}),
        ({"reason": "QOSMaxGRESPerUser"}, {}),
        ({"frozen": "its owner has changed it"}, {}),
        ({"spec": Spec(parse(RANGE), Shape(1, 4), set=Shape(1, 1), pinned=True)}, {}),
        ({"spec": Spec(parse(RANGE), Shape(1, 4))}, {}),  # not of our making
        ({"shapes": (Shape(1, 1),)}, {}),  # Slurm would not let it
    ],
)
def test_a_job_that_waits_for_its_turn_carries_what_its_user_wrote(
    fields: dict[str, Any], expected: dict[str, str]
) -> None:
    assert changes(cycle(snapshot(NODES, [molded(**fields)]), EQUI)) == expected


def test_a_job_that_waits_for_its_turn_is_left_alone_where_pliant_is_off() -> None:
    seen = snapshot(NODES, [molded()])
    partition = replace(seen.partitions[0], mode=Mode.OFF)
    assert cycle(replace(seen, partitions=(partition,)), EQUI).actions == ()


def test_a_job_that_waits_for_its_turn_is_told_why_it_is_given_its_shape_back() -> None:
    waits = molded()
    assert cycle(snapshot(NODES, [waits]), EQUI).actions == (
        Mold(
            replace(waits, eligible=False),
            Shape(1, 4),
            "it waits for JobArrayTaskLimit: while it waits it carries the shape its user wrote",
        ),
    )


@pytest.mark.parametrize(
    ("reason", "free", "expected"),
    [("Priority", 0, {}), ("BeginTime", 0, {}), ("BeginTime", 2, {}), ("Priority", 2, {"1": "2"})],
)
def test_a_job_that_could_not_give_gpus_up_again_waits_on_cpus(
    reason: str, free: int, expected: dict[str, str]
) -> None:
    allows, on_cpus = "gpus=1-4,type=gpu:cpu", parse_shape("1x0@cpu")
    spec = Spec(parse(allows), Shape(1, 4), set=on_cpus)
    waits = job(1, "4", allows, shape=on_cpus, spec=spec, reason=reason)
    seen = snapshot([node("n1", free=free, free_cpus=free)], [waits])
    assert changes(cycle(seen, EQUI)) == expected


def renewed(allows: str, **fields: Any) -> Job:
    """A job of 4 whose owner has since said what else it may be."""
    spec = Spec(parse(allows), Shape(1, 4), renewed=True)
    found = job(1, "4", allows, spec=spec)
    return replace(found, **fields)


@pytest.mark.parametrize(
    ("allows", "fields", "free", "expected"),
    [
        ("gpus=1", {}, 0, {"1": "1"}),
        ("gpus=1", {}, 2, {"1": "1"}),
        ("gpus=1", {"reason": "Dependency"}, 2, {"1": "1"}),
        ("gpus=1", {"reason": "JobHeldUser", "eligible": False}, 2, {"1": "1"}),
        ("gpus=1-2", {"reason": "QOSMaxGRESPerUser"}, 4, {"1": "2"}),
        ("gpus=1", {"frozen": "it has its nodes alone"}, 2, {}),
        ("gpus=1", {"refused": frozenset({Shape(1, 1)})}, 2, {}),
        ("gpus=1", {"spec": Spec(parse("gpus=1"), Shape(1, 4), pinned=True, renewed=True)}, 0, {}),
        ("gpus=1", {"spec": Spec(parse("gpus=1"), Shape(1, 4))}, 0, {}),  # so it was submitted
        ("gpus=1", {"spec": Spec(parse("gpus=1"), Shape(1, 4))}, 1, {"1": "1"}),
        ("gpus=1:3", {}, 0, {"1": "3"}),
        ("gpus=1:8", {}, 0, {"1": "1"}),  # no node has eight
        ("gpus=2:4", {"shape": Shape(1, 1)}, 0, {"1": "4"}),
    ],
)
def test_a_job_does_not_wait_as_what_its_owner_has_ruled_out(
    allows: str, fields: dict[str, Any], free: int, expected: dict[str, str]
) -> None:
    waits = renewed(allows, **fields)
    seen = snapshot([node("n1", free=free)], [waits])
    plan = cycle(seen, EQUI)
    assert changes(plan) == expected
    spec = replace(said(waits), set=plan.actions[0].shape) if plan.actions else waits.spec
    then = replace(waits, shape=plan.actions[0].shape if plan.actions else waits.shape, spec=spec)
    assert cycle(replace(seen, waiting=(then,)), EQUI).actions == ()


def test_a_limit_does_not_take_it_back_to_what_its_owner_has_ruled_out() -> None:
    waits = renewed("gpus=2-4,nodes=2", reason="QOSMaxGRESPerUser")
    plan = cycle(snapshot(NODES, [waits]), EQUI)
    assert changes(plan) == {"1": "2x2"}
    then = replace(waits, shape=Shape(2, 2), spec=replace(said(waits), set=Shape(2, 2)))
    assert cycle(snapshot(NODES, [then]), EQUI).actions == ()


def test_in_a_partition_that_is_off_it_is_left_as_it_is() -> None:
    seen = snapshot([node("n1", free=0)], [renewed("gpus=1")])
    partition = replace(seen.partitions[0], mode=Mode.OFF)
    assert cycle(replace(seen, partitions=(partition,)), EQUI).actions == ()


@pytest.mark.parametrize(
    ("own", "allows", "carried", "renewed_", "expected"),
    [
        ("4", RANGE, "1", False, ["4"]),
        ("4", RANGE, "1", True, ["4"]),
        ("8", RANGE, "4", False, ["8"]),  # as it was submitted
        ("4", "gpus=2-3", "2", True, ["3"]),
        ("4", "gpus=2-3", "3", True, []),
        ("4", "gpus=1", "1", True, []),
    ],
)
def test_switched_off_a_job_gets_what_its_owner_said_last(
    own: str, allows: str, carried: str, renewed_: bool, expected: list[str]
) -> None:
    waits = chosen(own, allows, carried, "Resources")
    waits = replace(waits, spec=replace(said(waits), renewed=renewed_))
    back = taken_back(snapshot(NODES, [waits]), {"1"})
    assert [str(mold.shape) for mold in back] == expected


def test_few_changes_a_cycle_those_that_start_first_in_the_queues_order() -> None:
    back = [job(n, "4", "gpus=4:8", shape=Shape(1, 8)) for n in (1, 2)]
    jobs = [*back, *(job(n, "4", RANGE) for n in (3, 4, 5))]
    plan = cycle(snapshot([node("n1", free=3)], jobs), EQUI, limit=4)
    assert (changes(plan), plan.deferred) == ({"3": "1", "4": "1", "5": "1", "1": "4"}, 1)


def test_the_second_cycle_changes_nothing() -> None:
    jobs = [job(n, "4", RANGE) for n in range(5)]
    plan = cycle(snapshot(NODES, jobs), EQUI)
    after = [replace(action.job, shape=action.shape) for action in plan.actions]
    assert len(after) == 5
    again = cycle(snapshot(NODES, after), EQUI)
    assert (again.actions, got(again)) == ((), got(plan))


@pytest.mark.parametrize(
    ("own", "carried", "abilities", "expected"),
    [
        ("2", "2", Abilities(), "1 2"),
        ("2", "2", Abilities(gpu_to_cpu=True), "1x0@cpu 1 2"),
        ("2", "2", Abilities(gpu_to_cpu=True, cpu_to_gpu=False), "1 2"),  # there is no way back
        ("2", "2", Abilities(whole_to_share=True), "1 2"),
        ("2", "2", Abilities(whole_to_share=True, share_to_whole=True), "1/2 1 2"),
        ("2", "1/2", Abilities(), "1/2"),
        ("2", "1/2", Abilities(share_to_whole=True), "1/2"),
        ("2", "1/2", Abilities(whole_to_share=True, share_to_whole=True), "1/2 1 2"),
        ("2", "1x0@cpu", Abilities(), "1x0@cpu 1/2 1 2"),
        ("2", "1x0@cpu", Abilities(cpu_to_gpu=False), "1x0@cpu"),
    ],
)
def test_some_changes_of_kind_are_not_possible_on_a_waiting_job(
    own: str, carried: str, abilities: Abilities, expected: str
) -> None:
    request = parse("gpus=1/2-2,type=gpu:cpu")
    found = allowed_shapes(request, parse_shape(own), parse_shape(carried), abilities)
    assert " ".join(map(str, found)) == expected


def test_where_nothing_else_is_possible_the_carried_shape_is_allowed() -> None:
    request = parse("gpus=1-2")
    assert allowed_shapes(request, Shape(1, 2), Shape(1, 1, 4), Abilities()) == (Shape(1, 1, 4),)


# --- what is left over, and why -------------------------------------------------------------------


def busy_hour() -> Snapshot:
    """Job 1 needs two whole nodes, from 1800 on; job 2 is short and fits; job 3 is neither."""
    jobs = [
        job(1, "2x4"),
        job(2, "4", RANGE, time_limit_s=1200),
        job(3, "4", RANGE, time_limit_s=2 * HOUR_S),
    ]
    return snapshot(NODES, jobs, [running(9, "4", "n1", 1800), running(8, "2", "n2", 1700)])


def test_what_is_left_over_is_free_for_a_new_submission_that_delays_nobody() -> None:
    seen = snapshot(
        [*NODES, node("n3")],
        [job(1, "3x4"), job(2, "2", time_limit_s=600)],
        [running(9, "4", "n1", 1800)],
    )
    free = leftover(seen, cycle(seen, EQUI))
    short, long = job(7, "2", time_limit_s=1800), job(8, "2", time_limit_s=1801)
    assert [free.fit(new, new.shape) for new in (short, long)] == [("n2",), None]
    assert free.vacant(short) == 6


def test_a_job_that_names_no_type_of_gpu_leaves_those_that_others_name() -> None:
    types = (Pool("a100", 2, 2), Pool("v100", 2, 2))
    two, other = job(1, "2"), job(2, "2@a100")
    seen = snapshot([replace(node("n1"), pools=types)], [two, other])
    plan = Plan(tuple(Start(one, one.shape, ("n1",), "") for one in (two, other)))
    assert leftover(seen, plan).vacant(two) == 0


def test_a_job_is_told_what_would_start_now_and_when_each_shape_would() -> None:
    told = explain(busy_hour(), EQUI, "3")
    taken = "needs {} on one node, the most free on one node is 0"
    assert told.tried == (
        Tried(Shape(1, 1), False, taken.format("1 GPU"), 1800.0 + HOUR_S, ("n1",)),
        Tried(Shape(1, 2), False, taken.format("2 GPUs"), 1800.0 + HOUR_S, ("n1",)),
        Tried(Shape(1, 3), False, taken.format("3 GPUs"), 1800.0 + HOUR_S, ("n1",)),
        Tried(Shape(1, 4), False, taken.format("4 GPUs"), 1800.0 + HOUR_S, ("n1",)),
    )
    assert (told.left, told.start, told.claim, told.action) == ("", None, None, None)
    assert [kept.job.id for kept in told.before] == ["1"]
    assert told.says == "it waits: no shape fits what is free for it"


def test_a_job_that_can_start_is_told_so() -> None:
    told = explain(busy_hour(), EQUI, "2")
    assert [(str(tried.shape), tried.fits, tried.nodes) for tried in told.tried] == [
        ("1", True, ("n2",)),
        ("2", True, ("n2",)),
        ("3", False, ("n1",)),  # of n2 only 2 are free now, and soon both are kept for job 1
        ("4", False, ("n1",)),
    ]
    assert told.action is not None
    assert told.action.shape == Shape(1, 2)
    assert told.says == (
        "it can start now as 2 on n2: more is asked than there is: each job gets its smallest shape,"
        " and what is left over makes this one larger"
    )


def test_the_first_that_waits_is_told_what_is_kept_for_it() -> None:
    told = explain(busy_hour(), EQUI, "1")
    assert told.left == "it asks for one shape only"
    assert told.says == "it waits, and n1, n2 is kept for it as 2x4 in 30 min"


def test_an_explanation_names_those_who_make_room() -> None:
    seen = busy_hour()
    giver = replace(running(70, "4", "n1", 600), room_for="2")
    before = explain(seen, EQUI, "2").says
    told = explain(replace(seen, running=(*seen.running, giver)), EQUI, "2")
    assert told.says.endswith("; room is made for it by job 70")
    assert "room" not in before
    tasks = replace(giver, room_for="2_1")
    assert "room" not in explain(replace(seen, running=(*seen.running, tasks)), EQUI, "2").says
    array = [replace(job, array_tasks="1-3") if job.id == "2" else job for job in seen.waiting]
    seen = replace(seen, waiting=tuple(array), running=(*seen.running, tasks))
    assert explain(seen, EQUI, "2").says.endswith("; room is made for it by job 70")


def test_what_the_cap_left_for_later_is_said() -> None:
    jobs = [job(n, "4", RANGE) for n in range(3)]
    told = explain(snapshot([node("n1", free=3)], jobs), EQUI, "2", limit=1)
    assert told.deferred
    assert "; the change is left for a later cycle" in told.says


@pytest.mark.parametrize(
    ("id_", "says"),
    [
        ("9", "it runs as 4"),
        ("4", "it does not take part in the queue: JobHeldUser"),
    ],
)
def test_others_are_told_why_not(id_: str, says: str) -> None:
    held = job(4, "1", reason="JobHeldUser", eligible=False)
    seen = snapshot(NODES, [held], [running(9, "4", "n1", 600)])
    assert explain(seen, EQUI, id_).says == says


def test_an_unknown_job_is_an_error_that_says_so() -> None:
    with pytest.raises(BadInput) as refused:
        explain(busy_hour(), EQUI, "77")
    assert (
        str(refused.value) == "job '77': it neither waits nor runs; see `squeue` for those that do"
    )


def test_a_quarter_of_a_gpu_is_told_what_it_lacks() -> None:
    full: Node = node("n1", gpus=1, shards=4, parts=(1,))
    told = explain(snapshot([full], [job(1, "1/2", "gpus=1/4:1/2")]), EQUI, "1")
    assert [(tried.shape.amount, tried.why_not) for tried in told.tried] == [
        (Fraction(1, 4), ""),
        (Fraction(1, 2), "needs 1/2 of one GPU, and no GPU has so much free"),
    ]
    assert starts(cycle(snapshot([full], [job(1, "1/2", "gpus=1/4:1/2")]), EQUI)) == {
        "1": "1/4 on n1"
    }


# --- limits, and what Pliant made larger ----------------------------------------------------------


def narrow(**fields: Any) -> Job:
    """A job of a QOS with a limit that wrote 2 GPUs and allows 1 to 4."""
    return job(1, "2", RANGE, qos="narrow", **fields)


@pytest.mark.parametrize(("free", "becomes"), [(1, "1"), (2, ""), (4, "")])
def test_where_a_limit_may_bound_a_job_it_never_becomes_more_than_its_user_wrote(
    free: int, becomes: str
) -> None:
    seen = snapshot([node("n1", free=free)], [narrow()])
    limited_ = replace(seen, abilities=Abilities(limited_qos=frozenset({"narrow"})))
    plan = cycle(limited_, EQUI)
    assert changes(plan) == ({"1": becomes} if becomes else {})
    assert {str(start.shape) for start in plan.starts} == {becomes or "2"}


@pytest.mark.parametrize(("refused", "becomes"), [((), "3"), (("3",), "2"), (("3", "2"), "1")])
def test_a_job_that_waits_for_a_limit_becomes_the_next_smaller_one(
    refused: tuple[str, ...], becomes: str
) -> None:
    """As it is now; what its user wrote, which the limit has refused, bounds it no less for that."""
    waits = job(1, "4", RANGE, qos="narrow", reason="QOSMaxGRESPerUser")
    left = tuple(shape for shape in waits.shapes if str(shape) not in refused)
    seen = snapshot([node("n1", free=4)], [replace(waits, shapes=left)])
    limited_ = replace(seen, abilities=Abilities(limited_qos=frozenset({"narrow"})))
    assert changes(cycle(limited_, EQUI)) == {"1": becomes}
    assert view(view(limited_)) == view(limited_)


@pytest.mark.parametrize(
    ("reason", "becomes"),
    [
        ("QOSMaxGRESPerUser", "2"),
        ("QOSMaxNodePerUserLimit", "2x1"),
        ("QOSMaxCpuPerUserLimit", ""),
        ("AssocMaxCpuPerNode", ""),
    ],
)
def test_a_job_keeps_the_cores_or_nodes_by_which_a_limit_stops_it(
    reason: str, becomes: str
) -> None:
    """Slurm would hold it to that limit no more (see bounds)."""
    waits = job(1, "2x2", "gpus=2:4,nodes=1-2", reason=reason)
    waits = replace(waits, footprint=replace(waits.footprint, cpus_per_gpu=2))
    assert changes(cycle(snapshot(NODES, [waits]), EQUI)) == ({"1": becomes} if becomes else {})


def test_what_a_limit_stops_and_pliant_made_larger_is_given_back_and_left_out() -> None:
    grown = narrow(shape=Shape(1, 4), reason="QOSMaxGRESPerJob")
    grown = replace(grown, spec=replace(said(grown), set=Shape(1, 4)))
    assert tuple(map(str, forbidden(grown))) == ("3", "4")
    assert changes(cycle(snapshot(NODES, [grown]), EQUI)) == {"1": "2"}
    written = narrow(reason="QOSMaxGRESPerJob")
    assert forbidden(written) == ()
    assert changes(cycle(snapshot([node("n1", free=0)], [written]), EQUI)) == {}


def test_a_shape_of_the_same_size_that_a_limit_stops_is_given_back() -> None:
    own = job(1, "2x2", "gpus=4,nodes=1-2", reason="QOSMaxGRESPerNode")
    moved = replace(own, shape=Shape(1, 4), spec=replace(said(own), set=Shape(1, 4)))
    assert tuple(map(str, forbidden(moved))) == ("4",)
    assert changes(cycle(snapshot(NODES, [moved]), EQUI)) == {"1": "2x2"}


def test_where_a_qos_asks_for_so_much_at_least_no_job_becomes_less_than_its_user_wrote() -> None:
    big = job(1, "2", RANGE, qos="big")
    seen = snapshot([node("n1", free=1)], [big])
    seen = replace(seen, abilities=Abilities(least_qos=frozenset({"big"})))
    assert changes(cycle(seen, EQUI)) == {}


def test_all_that_is_more_than_its_user_wrote_is_given_up_together() -> None:
    larger = job(1, "2", RANGE, shape=Shape(1, 3))
    ours = replace(larger, spec=replace(said(larger), set=Shape(1, 3)))
    assert {str(shape) for shape in grown(ours)} == {"3", "4"}
    assert grown(larger) == ()
    smaller = replace(ours, shape=Shape(1, 1), spec=replace(said(ours), set=Shape(1, 1)))
    assert grown(smaller) == ()


LABS = Abilities(pools=(("lab1", "faculty"), ("lab2", "faculty")))


@pytest.mark.parametrize("own_reason", ["Resources", "QOSGrpGRES", "AssocGrpGRES"])
@pytest.mark.parametrize(
    ("reason", "other", "molded"),
    [
        ("QOSGrpGRES", {"qos": "High"}, False),
        ("QOSGrpJobsLimit", {"qos": "high"}, False),
        ("QOSGrpGRES", {"qos": "low"}, True),
        ("QOSGrpGRES", {"partitions": ("limited",)}, False),
        ("AssocGrpGRES", {"account": "lab1"}, False),
        ("AssocGrpGRESRunMinutes", {"account": "lab2"}, False),
        ("AssocGrpGRES", {"account": "guests"}, True),
        ("MaxGRESPerAccount", {"account": "lab1"}, False),
        ("QOSMaxGRESPerUser", {"user": "alice"}, False),
        ("QOSMaxGRESPerUser", {"user": "bob", "qos": "high", "account": "lab1"}, True),
        ("QOSMaxGRESPerJob", {"qos": "high", "account": "lab1", "user": "alice"}, True),
        ("Dependency", {"qos": "high", "account": "lab1", "user": "alice"}, True),
    ],
)
def test_behind_a_job_that_waits_for_a_limit_none_that_may_share_it_becomes_smaller(
    own_reason: str, reason: str, other: dict[str, Any], molded: bool
) -> None:
    one: dict[str, Any] = {"qos": "high", "account": "lab1", "user": "alice"}
    first = replace(job(1, "3", reason=reason, eligible=False), **one)
    mine = replace(job(2, "2", RANGE, reason=own_reason), qos="", account="none", user="carol")
    mine = replace(mine, **other)
    limited_ = Partition("limited", ("n1",), qos="high")
    seen = snapshot([node("n1", free=1)], [first, mine])
    seen = replace(seen, abilities=LABS, partitions=(*seen.partitions, limited_))
    assert view(view(seen)) == view(seen)
    assert changes(cycle(seen, EQUI)) == ({"2": "1"} if molded else {})
    told = "job 1 before it waits for a limit that may be its own too"
    assert (why_left(seen, mine) == told) is not molded
    turned = replace(seen, waiting=(mine, first))
    assert changes(cycle(turned, EQUI)) == {"2": "1"}


def test_what_was_made_smaller_is_given_back_behind_a_job_that_waits_for_its_limit() -> None:
    first = job(1, "3", reason="QOSGrpGRES", eligible=False, qos="high")
    mine = job(2, "2", RANGE, qos="high", shape=Shape(1, 1))
    mine = replace(mine, spec=replace(said(mine), set=Shape(1, 1)))
    assert changes(cycle(snapshot([node("n1", free=1)], [first, mine]), EQUI)) == {"2": "2"}
