"""What is an owner's update of a job between two of its runs, and what Slurm does by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import running_job
from pliant.batch.slurm.lent import has_its_memory
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.standing import begins_by_others, stands
from pliant.grammar import parse, put_token
from pliant.handover import HandOver
from pliant.model import Footprint, Job, Shape, Spec

CLUSTER = Cluster((22, 5), {}, {})
FOUR, TWO = Shape(1, 4), Shape(1, 2)
SPEC = Spec(parse("gpus=1-4;malleable"), FOUR, FOUR, Footprint(cpus_per_gpu=2))
JOB = Job(
    *("7", "alice", "lab", "normal", ("gpu",)),
    shape=FOUR,
    footprint=Footprint(cpus_per_gpu=2),
    spec=SPEC,
    time_limit_s=1800,
    start_s=10_000.0,
    nodes=("n1",),
)
OVER = HandOver("7", 0, TWO, 10_100.0, 10_160.0, 10_110.0, before=FOUR)
KEEPS = replace(OVER, end_s=10_000.0 + 1800)
"""By its owner's wish: it keeps what is left of its time limit."""
QUEUED_S = 10_112


def instant(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def row(**said: str) -> JobRow:
    """Job 7 as it was requeued: with what it asked when it ran."""
    plain = {
        **{field.name: "" for field in fields(JobRow)},
        **{"job_id": "7", "array_id": "7", "state": "PENDING", "array_tasks": "N/A"},
        **{"priority": "9", "submit": instant(QUEUED_S), "eligible": instant(QUEUED_S + 121)},
        **{"account": "lab", "qos": "normal", "partition": "gpu", "oversubscribe": "OK"},
        **{"num_nodes": "1", "num_tasks": "1", "num_cpus": "8", "cpus_per_task": "8"},
        **{"min_cpus": "8", "tres_per_node": "gres:gpu:4", "time_limit": "30:00"},
        **{"het_id": "0", "contiguous": "0", "batch": "1", "restarts": "1"},
        "admin_comment": put_token("", SPEC),
    }
    return JobRow(**{**plain, **said})


NEW = {
    **{"tres_per_node": "gres/gpu:2", "num_cpus": "4", "cpus_per_task": "4", "min_cpus": "4"},
    "admin_comment": put_token("of others", replace(SPEC, set=TWO)),
}
"""What a reshape makes of it, as later releases write it."""
LESS = {"tres_per_node": "gres:gpu:2"}
"""What a reshape makes of it that was refused halfway."""


@pytest.mark.parametrize(
    "said",
    [
        {},
        NEW,
        LESS,
        {"admin_comment": NEW["admin_comment"]},
        {**NEW, "num_cpus": "8"},
        {"partition": "gpu,cpu"},  # it was submitted to both, and ran in one
        {"time_limit": "28:00"},  # what is left, or less: that stands anyway
        {"reason": "BeginTime", "priority": "4294967000", "comment": "his", "name": "his"},
        {"nodes_expected": "n2", "start": instant(QUEUED_S + 900), "licenses": "(null)"},
        {"dependency": "(null)"},
        {**LESS, "min_memory": "20000M"},  # the site's own: none was asked
    ],
)
@pytest.mark.parametrize("over", [OVER, KEEPS])
def test_what_it_was_what_it_is_to_be_and_anything_between_stands(
    said: dict[str, str], over: HandOver
) -> None:
    assert stands(row(**said), JOB, over, CLUSTER)


@pytest.mark.parametrize(
    "said",
    [
        {"tres_per_node": "gres:gpu:3"},
        {**NEW, "tres_per_node": "gres:gpu:3"},
        {**NEW, "tres_per_node": "gres:gpu:2,gres:license:1"},
        {"tres_per_node": "gres:gpu:a100:4"},
        {"tres_per_node": "gres:gpu:4|x:4"},  # it cannot even be read
        {**NEW, "num_tasks": "2", "num_nodes": "2"},
        {**NEW, "num_cpus": "6", "cpus_per_task": "6"},
        {"partition": "cpu"},
        {"features": "fast"},
        {"nodes_required": "n2"},
        {"nodes_excluded": "n3"},
        {"reservation": "course"},
        {"account": "other"},
        {"qos": "high"},
        {"dependency": "afterok:3(unfulfilled)"},
        {"licenses": "tool:1"},
        {"time_limit": "31:00"},
        {"time_limit": "1-00:00:00"},
        {"time_limit": "UNLIMITED"},
        {"admin_comment": put_token("", replace(SPEC, pinned=True))},
        {"admin_comment": put_token("", replace(SPEC, request=parse("gpus=1;malleable")))},
        {"admin_comment": ""},
    ],
)
@pytest.mark.parametrize("over", [OVER, KEEPS])
def test_what_is_neither_is_its_owners(said: dict[str, str], over: HandOver) -> None:
    assert not stands(row(**said), JOB, over, CLUSTER)


@pytest.mark.parametrize(
    ("said", "is_as_we_left_it"),
    [
        ({}, True),  # a slurmctld that was killed forgets the token too
        (NEW, True),
        ({"admin_comment": NEW["admin_comment"]}, False),
        ({**NEW, "num_cpus": "8", "cpus_per_task": "8"}, False),
        ({**NEW, "tres_per_node": "gres:gpu:4"}, False),
    ],
)
@pytest.mark.parametrize("over", [OVER, KEEPS])
def test_once_a_reshape_was_seen_what_the_job_had_before_is_its_owners(
    said: dict[str, str], over: HandOver, is_as_we_left_it: bool
) -> None:
    assert stands(row(**said), JOB, replace(over, made=True), CLUSTER) is is_as_we_left_it
    back = replace(over, made=True, back_s=QUEUED_S + 5.0)
    assert stands(row(**said), JOB, back, CLUSTER)  # by us: it turns back


UNANSWERED = Spec(SPEC.request)
TWO_TASKS = {"num_tasks": "2", "num_cpus": "16", "min_cpus": "16"}


@pytest.mark.parametrize(
    ("said", "as_it_was"),
    [
        ({}, True),
        (LESS, True),
        ({"num_cpus": "6"}, True),  # it had whole cores
        ({"num_cpus": "6", "cpus_per_task": "6", "min_cpus": "6"}, False),
        ({"cpus_per_task": "6"}, False),
        ({"min_cpus": "6"}, False),
        ({"tres_per_node": "gres:gpu:3"}, False),
        ({"tres_per_node": "gres:gpu:a100:4"}, False),
        ({"tres_per_node": "gres:gpu:4,gres:fast:1"}, False),
        ({"num_cpus": "12"}, False),
        ({"min_cpus": "12"}, False),
        (TWO_TASKS, False),
    ],
)
@pytest.mark.parametrize("over", [OVER, KEEPS])
def test_so_it_is_with_a_job_that_was_submitted_without_an_answer(
    said: dict[str, str], over: HandOver, as_it_was: bool
) -> None:
    """Its token has no shape of its own: what it had when it was asked to save is what counts."""
    token = put_token("", UNANSWERED)
    runs = row(
        **{"state": "RUNNING", "nodes": "n1", "tres": "cpu=8,node=1", "requeue": "1"},
        **{"start": instant(10_000), "end": instant(11_800), "admin_comment": token},
    )
    job = running_job(runs, CLUSTER)
    assert stands(row(**{"admin_comment": token, **said}), job, over, CLUSTER) is as_it_was
    assert stands(row(**NEW), job, over, CLUSTER)
    forgot = row(
        admin_comment=token
    )  # a slurmctld that was killed: the shape, and that it was made
    assert stands(forgot, job, replace(over, made=True), CLUSTER)
    by_gpu = replace(job, footprint=Footprint(cpus_per_gpu=2))
    half = {**LESS, "admin_comment": token, "cpus_per_task": "4"}
    assert stands(row(**half), by_gpu, over, CLUSTER)


@pytest.mark.parametrize(
    ("said", "as_it_was"),
    [
        ({}, True),
        ({"min_cpus": "8"}, True),  # by half of a reshape back to what it had
        ({"cpus_per_task": "6"}, False),
        ({"min_cpus": "6"}, False),
    ],
)
def test_what_it_asked_is_known_of_a_job_that_had_whole_cores(
    said: dict[str, str], as_it_was: bool
) -> None:
    """Seven CPUs of cores of two threads: it runs with eight."""
    asks = {"cpus_per_task": "7", "min_cpus": "7", "admin_comment": put_token("", UNANSWERED)}
    runs = {"state": "RUNNING", "nodes": "n1", "requeue": "1", "num_cpus": "8"}
    job = running_job(row(**asks, **runs, start=instant(10_000), end=instant(11_800)), CLUSTER)
    waits = {**asks, "num_cpus": "7", **said}
    assert stands(row(**waits), job, OVER, CLUSTER) is as_it_was
    older = replace(job, cpus_asked=())
    assert stands(row(**waits), older, OVER, CLUSTER)


def test_nor_is_it_a_change_where_slurm_chose_its_nodes_and_types() -> None:
    token = put_token("", UNANSWERED)
    job = replace(JOB, shape=Shape(2, 2, gpu_type="a100"), nodes=("n1", "n2"))
    waits = {"admin_comment": token, "max_nodes": "2"}
    assert stands(row(**waits), job, OVER, CLUSTER)  # four GPUs on one node or two
    asks_type = row(**waits, tres_per_node="gres:gpu:a100:2")
    assert stands(asks_type, job, OVER, CLUSTER)
    typed = replace(OVER, shape=Shape(1, 2, gpu_type="a100"))
    assert stands(row(**waits), job, typed, CLUSTER)
    assert not stands(row(**waits, tres_per_node="gres:gpu:h100:2"), job, typed, CLUSTER)
    assert stands(row(**waits, tres_per_node="gres:gpu:2"), job, OVER, CLUSTER)
    assert not stands(row(**waits, tres_per_node="gres:gpu:3"), job, OVER, CLUSTER)
    to_one = replace(OVER, shape=Shape(1, 1))
    assert stands(row(**waits, tres_per_node="gres:gpu:2"), job, to_one, CLUSTER)  # as on each


def test_a_job_that_says_nothing_to_pliant_is_not_what_was_asked() -> None:
    assert not stands(row(), replace(JOB, spec=None), OVER, CLUSTER)
    assert not stands(row(admin_comment=""), replace(JOB, spec=None), OVER, CLUSTER)


@pytest.mark.parametrize(
    ("mark", "required", "said", "same"),
    [
        ("n1", "n1", "", True),  # our mark named it
        ("n1", "n1", "n9", False),
        ("n1", "n1", "n1", True),
        ("", "n1", "", False),
        ("", "n1", "n1", True),
    ],
)
def test_the_nodes_that_its_owner_names_are_the_same_but_for_what_a_mark_named(
    mark: str, required: str, said: str, same: bool
) -> None:
    spec = replace(SPEC, mark=mark)
    job = replace(JOB, spec=spec, shares=True, nodes_required=(required,))
    waits = row(admin_comment=put_token("", spec), nodes_required=said)
    assert stands(waits, job, OVER, CLUSTER) is same


PINNED = put_token("pliant-priority=9 pliant-memory=1000", SPEC)
BY_GPU = {"min_memory": "0", "mem_per_tres": "gpu:500"}


@pytest.mark.parametrize(
    ("said", "as_it_was"),
    [
        ({"admin_comment": PINNED, "min_memory": "1000M"}, True),
        ({"admin_comment": PINNED, "min_memory": "20000M"}, False),
        ({"admin_comment": PINNED, "min_memory": "0"}, False),  # all of a node
        ({"admin_comment": PINNED, **BY_GPU}, True),  # while Slurm tries to start it
        ({"admin_comment": PINNED, **BY_GPU, "min_memory": "20000M"}, False),
        ({"admin_comment": put_token("pliant-priority=9", SPEC), "min_memory": "20000M"}, False),
        ({"min_memory": "20000M"}, True),  # it has no place before others
    ],
)
def test_memory_of_a_pinned_job_that_asked_for_none_is_what_it_had(
    said: dict[str, str], as_it_was: bool
) -> None:
    """Else its owner could let it take before all others what they wait for."""
    assert stands(row(**said), JOB, OVER, CLUSTER) is as_it_was


def test_memory_of_who_was_pinned_by_0_1_0_is_the_sites() -> None:
    """It noted none."""
    bare = put_token("pliant-priority=9", SPEC)
    assert has_its_memory(row(admin_comment=bare, min_memory="500M"), 500)
    assert not has_its_memory(row(admin_comment=bare, min_memory="600M"), 500)
    assert not has_its_memory(row(admin_comment=PINNED, min_memory="500M"), 500)


@pytest.mark.parametrize("each", ["mem_per_node_mib", "mem_per_cpu_mib", "mem_per_gpu_mib"])
def test_memory_that_its_owner_asked_for_is_in_its_token(each: str) -> None:
    asks = replace(SPEC, footprint=replace(Footprint(), **{each: 200}))
    noted = put_token("pliant-priority=9", asks)
    assert has_its_memory(row(admin_comment=noted, min_memory="300M"), 0)


@pytest.mark.parametrize(
    ("mib", "as_it_was_or_is_to_be"), [(400, True), (200, True), (300, False), (800, False)]
)
def test_memory_that_is_neither_is_its_owners_too(mib: int, as_it_was_or_is_to_be: bool) -> None:
    by_gpu = Footprint(cpus_per_gpu=2, mem_per_gpu_mib=100)
    spec = replace(SPEC, footprint=by_gpu)
    said = row(admin_comment=put_token("", spec), min_memory=f"{mib}M")
    job = replace(JOB, footprint=by_gpu, spec=spec)
    assert stands(said, job, OVER, CLUSTER) is as_it_was_or_is_to_be


def test_a_limit_between_what_is_left_and_what_it_was_is_more_than_the_resize_leaves() -> None:
    assert not stands(row(time_limit="29:00"), JOB, KEEPS, CLUSTER)
    assert stands(row(time_limit="29:00"), JOB, OVER, CLUSTER)


def test_a_run_that_ends_sooner_or_later_than_its_limit_says_was_given_no_more_time() -> None:
    """It was resized before, which sets its end to the second; or it was suspended."""
    sooner = replace(JOB, time_limit_s=1793, limit_shown_s=1800)
    assert stands(row(), sooner, OVER, CLUSTER)
    assert not stands(row(time_limit="31:00"), sooner, OVER, CLUSTER)
    later, keeps = replace(sooner, time_limit_s=1875), replace(KEEPS, end_s=10_000.0 + 1875)
    assert stands(row(), later, keeps, CLUSTER)
    assert not stands(row(time_limit="31:00"), later, keeps, CLUSTER)


def test_of_a_resize_that_0_1_0_began_no_limit_is_an_owners_update() -> None:
    """It stored what is asked and when, and not the job as it ran: that is known as it waits."""
    waits = replace(JOB, nodes=(), start_s=0.0)
    assert stands(row(), waits, KEEPS, CLUSTER)


@pytest.mark.parametrize(
    "said", [{"tres_per_node": "gres:gpu:4,gres:fast:1"}, {"licenses": "tool:1"}]
)
def test_what_was_odd_before_is_no_change(said: dict[str, str]) -> None:
    assert stands(row(**said), replace(JOB, frozen="it asks for that too"), OVER, CLUSTER)


@pytest.mark.parametrize(
    ("begins_s", "now_s", "theirs"),
    [
        (QUEUED_S + 121, QUEUED_S, False),  # Slurm's own, at the requeue
        (QUEUED_S + 120, QUEUED_S, False),
        (QUEUED_S + 1, QUEUED_S, False),  # ours
        (QUEUED_S + 5, QUEUED_S, False),
        (QUEUED_S + 31, QUEUED_S + 30, False),  # ours, by a clock that is ahead
        (QUEUED_S + 40, QUEUED_S + 60, False),  # it is over
        (QUEUED_S + 7, QUEUED_S + 1, True),
        (QUEUED_S + 60, QUEUED_S + 2, True),
        (QUEUED_S + 130, QUEUED_S + 2, True),
        (QUEUED_S + 86_400, QUEUED_S + 2, True),
    ],
)
def test_a_begin_time_that_neither_slurm_nor_we_have_set_is_its_owners(
    begins_s: float, now_s: float, theirs: bool
) -> None:
    assert begins_by_others(row(eligible=instant(begins_s)), OVER, 121.0, now_s) is theirs


SEEN = replace(OVER, begin_s=QUEUED_S + 1.0)
"""Its time to begin was set since it was requeued, and seen so."""


@pytest.mark.parametrize(
    ("over", "said", "later_s", "theirs"),
    [
        (SEEN, NEW, 121, True),
        (SEEN, NEW, 5, True),
        (SEEN, {}, 121, False),  # a slurmctld that was killed has forgotten it
        (SEEN, {"admin_comment": "(null)"}, 121, False),  # and what it was to become
        (SEEN, {}, 5, True),
        (replace(SEEN, begin_s=QUEUED_S + 5.0), NEW, 5, False),
        (
            replace(SEEN, shape=FOUR),
            {"admin_comment": put_token("", replace(SPEC, set=FOUR))},
            121,
            False,
        ),
        (replace(SEEN, back_s=10_115.0), NEW, 121, False),  # what is half put back
        (replace(SEEN, begin_s=QUEUED_S - 30.0), NEW, 121, False),  # it was requeued once more
        (replace(SEEN, begin_s=QUEUED_S - 30.0), NEW, 5, False),
    ],
)
def test_once_ours_was_seen_another_time_to_begin_is_its_owners(
    over: HandOver, said: dict[str, str], later_s: int, *, theirs: bool
) -> None:
    begins = row(eligible=instant(QUEUED_S + later_s), **said)
    assert begins_by_others(begins, over, 121.0, QUEUED_S + 1) is theirs


@pytest.mark.parametrize(("told_s", "theirs"), [(0.0, True), (6.0, True), (7.0, False)])
def test_what_it_was_told_is_ours_before_it_was_seen(told_s: float, *, theirs: bool) -> None:
    """It waits since before its SubmitTime: a run whose node goes down as it ends keeps that."""
    over = replace(OVER, told_s=QUEUED_S + told_s)
    begins = row(eligible=instant(QUEUED_S + 7.0))
    assert begins_by_others(begins, over, 121.0, QUEUED_S + 2) is theirs


@pytest.mark.parametrize(
    ("auth", "parameters", "delay_s"),
    [
        ("(null)", {}, 121),
        ("socket=/run/munge", {}, 121),
        ("socket=/run/munge,cred_expire=5", {}, 6),
        ("(null)", {"requeue_delay": "0"}, 0),
    ],
)
def test_how_much_later_a_requeued_job_may_begin_is_read_from_the_configuration(
    auth: str, parameters: dict[str, str], delay_s: int
) -> None:
    options = {"AuthInfo": auth}
    site = Site(
        (22, 5), "22.05.8", "slurm", "c", "", parameters, frozenset(), (), counts_memory=False
    )
    assert replace(site, options=options).requeue_delay_s == delay_s


@pytest.mark.parametrize(("priority", "state"), [("0", "RUNNING"), ("0", "SUSPENDED")])
def test_one_that_was_held_when_it_was_asked_is_looked_at_as_any_other(
    priority: str, state: str
) -> None:
    """Its checkpoint came late, after its owner had held it, who has let it go on since."""
    nodes = {"nodes": "n1", "start": instant(10_000), "end": instant(11_800)}
    was = running_job(row(state=state, priority=priority, **nodes), CLUSTER)
    assert (was.frozen != "", was.footprint) == (True, Footprint(cpus_per_gpu=2))
    assert stands(row(**NEW), was, OVER, CLUSTER)
    assert not stands(row(**{**NEW, "tres_per_node": "gres:gpu:3"}), was, OVER, CLUSTER)
