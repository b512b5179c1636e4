"""Running jobs that are left alone: requeued, they would end, or lose their place to another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from build import job, node, running, snapshot
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.snapshot import NEXT_TASK, SINGLETON, snapshot_of
from pliant.cycle import explain, kept_within_limits, view, why_stays
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import EVERYBODY, Abilities, Job, Partition, Snapshot, Spec
from pliant.policies import by_name

SLURM = Cluster((22, 5), {}, {})
TOKENS = {
    words: token_text(Spec(parse(words), parse_shape("1")))
    for words in ("gpus=1-4;malleable", "gpus=1-4;job-class=best-effort", "gpus=1-4")
}
MALLEABLE = TOKENS["gpus=1-4;malleable"]
ROW = replace(
    parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))[1],
    tres_per_node="gres:gpu:1",
    admin_comment=MALLEABLE,
)
DEADLINE = "it has a deadline: its time limit would begin anew, and Slurm could end it for that"
LICENCES = "it holds licences, which another job could take meanwhile"


def seen(*rows: JobRow) -> Snapshot:
    return snapshot_of(rows, SLURM, {}, 0.0)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize(
    ("deadline", "licenses", "words"),
    [
        ("N/A", "(null)", ""),
        ("NONE", "", ""),
        ("1795353941", "(null)", DEADLINE),
        ("2026-11-22T12:00:00", "(null)", DEADLINE),
        ("N/A", "matlab:2", LICENCES),
    ],
)
def test_a_job_with_a_deadline_or_licences_is_left_alone_while_it_runs(
    token: str, deadline: str, licenses: str, words: str
) -> None:
    row = replace(ROW, deadline=deadline, licenses=licenses, admin_comment=token)
    (found,) = seen(row).running
    assert found.frozen == (words if token != TOKENS["gpus=1-4"] else "")
    waits = replace(row, state="PENDING", nodes="", reason="Priority")
    assert seen(waits).waiting[0].frozen == ""


@pytest.mark.parametrize("stops", ["SchedulerType=sched/builtin", ""])
def test_no_job_is_taken_from_its_place_where_one_that_waits_stops_all_behind_it(
    stops: str,
) -> None:
    cluster = replace(SLURM, stops_behind=stops)
    (found,) = snapshot_of([ROW], cluster, {}, 0.0).running
    words = "while it waits for its next run, nobody behind it in its partition would start"
    assert found.frozen == (f"{stops}: {words}" if stops else "")
    waits = replace(ROW, state="PENDING", nodes="", reason="Priority")
    assert snapshot_of([waits], cluster, {}, 0.0).waiting[0].frozen == ""


HIGH, LOW = (Partition(name, ("n1", "n2"), tier=tier) for name, tier in (("high", 10), ("low", 1)))
ENDS = "between its two runs Slurm could end jobs of others for it: {} may preempt (PreemptType)"


@pytest.mark.parametrize(
    ("partition", "preempts", "ending", "who"),
    [
        ("high", True, (), "partition high"),
        ("low,high", True, (), "partition high"),
        ("low", True, (), ""),
        ("high", False, (), ""),
        ("low", False, ("urgent",), "QOS urgent"),
        ("low", False, (EVERYBODY,), "QOS urgent"),  # slurmdbd is away
        ("low", False, ("other",), ""),
    ],
)
def test_a_job_for_which_slurm_would_end_others_is_left_alone_while_it_runs(
    partition: str, ending: tuple[str, ...], who: str, *, preempts: bool
) -> None:
    cluster = Cluster((22, 5), {}, {"high": HIGH, "low": LOW}, preempts=preempts)
    cluster = replace(cluster, ending_qos=frozenset(ending))
    row = replace(ROW, partition=partition, qos="Urgent")
    (found,) = snapshot_of([row], cluster, {}, 0.0).running
    assert found.frozen == (ENDS.format(who) if who else "")


@pytest.mark.parametrize(
    ("dependency", "waits"),
    [
        ("after:{}+10(unfulfilled)", True),
        ("afterany:3(unfulfilled),after:{}+10(unfulfilled)", True),
        ("afterany:{}(unfulfilled)", False),
        ("after:3+10(unfulfilled)", False),
    ],
)
def test_a_job_after_whose_start_another_one_counts_minutes_is_left_alone(
    dependency: str, *, waits: bool
) -> None:
    other = replace(ROW, job_id="77", state="PENDING", nodes="", admin_comment="")
    other = replace(other, dependency=dependency.format(ROW.key))
    (found,) = seen(ROW, other).running
    words = "job 77 starts so long after it (--dependency=after), and would wait for that anew"
    assert found.frozen == (words if waits else "")


ENFORCED = {"AccountingStorageEnforce": "associations,limits"}
ASSOC_STOP = {"SchedulerParameters": "bf_interval=5,Assoc_Limit_Stop"}


@pytest.mark.parametrize(
    ("options", "stops"),
    [
        ({}, ""),
        ({"SchedulerType": "sched/backfill"}, ""),
        ({"SchedulerType": "sched/builtin"}, "SchedulerType=sched/builtin"),
        ({**ASSOC_STOP, **ENFORCED}, "SchedulerParameters=assoc_limit_stop"),
        (ASSOC_STOP, ""),
        (ENFORCED, ""),
    ],
)
def test_by_its_configuration_slurm_starts_nobody_behind_one_that_cannot(
    options: dict[str, str], stops: str
) -> None:
    site = Site((22, 5), "22.05.8", "slurm", "c", "", {}, frozenset(), (), counts_memory=False)
    assert replace(site, options=options).stops_behind == stops


@pytest.mark.parametrize(
    ("options", "scheduler", "late_s"),
    [
        ({}, {}, 0),
        ({"CompleteWait": "0 sec"}, {"batch_sched_delay": "20"}, 0),
        ({"CompleteWait": "30 sec"}, {}, 30),
        ({"CompleteWait": "65533 sec"}, {}, 60),
        ({}, {"defer": ""}, 3),
        ({"CompleteWait": ""}, {"defer_batch": "", "batch_sched_delay": "20"}, 20),
    ],
)
def test_for_how_long_slurm_may_start_nobody_is_known(
    options: dict[str, str], scheduler: dict[str, str], late_s: int
) -> None:
    site = Site(
        (22, 5), "22.05.8", "slurm", "c", "", scheduler, frozenset(), (), counts_memory=False
    )
    assert replace(site, options=options).late_s == late_s


TASK = replace(ROW, job_id="31", array_id="30", array_tasks="1")
REST = replace(ROW, job_id="30", array_id="30", array_tasks="2-9", state="PENDING", nodes="")


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        ((), ""),
        ((REST,), ""),
        ((replace(REST, array_tasks="2-9%1"),), NEXT_TASK),
        ((replace(REST, array_tasks="9", reason="JobArrayTaskLimit"),), NEXT_TASK),
        ((replace(REST, job_id="40", array_id="40", array_tasks="2-9%1"),), ""),
    ],
)
def test_a_task_is_left_alone_where_the_next_of_its_array_waits_for_it(
    waiting: tuple[JobRow, ...], words: str
) -> None:
    (found,) = seen(TASK, *waiting).running
    assert (found.id, found.frozen) == ("30_1", words)


SINGLE = replace(ROW, job_id="3", state="PENDING", nodes="", dependency="singleton(unfulfilled)")


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        (SINGLE, SINGLETON),
        (replace(SINGLE, job_id="99"), ""),  # it counts ours as earlier also while that waits
        (replace(SINGLE, user="bob"), ""),
        (replace(SINGLE, name="another"), ""),
        (replace(SINGLE, dependency="afterany:7(unfulfilled)"), ""),
        (replace(SINGLE, reason="JobHeldUser"), ""),  # it starts in nobody's place
    ],
)
def test_a_job_is_left_alone_whose_end_an_earlier_singleton_waits_for(
    waits: JobRow, words: str
) -> None:
    (found,) = seen(replace(ROW, job_id="31", array_id="31"), waits).running
    assert found.frozen == words


def lab(number: int, **fields: str) -> Job:
    known: dict[str, Any] = {"user": "alice", "account": "lab", "qos": "normal", **fields}
    return replace(job(number, "2", reason="Resources"), **known)


ELASTIC = replace(
    running(7, "2", "n1", 3600.0),
    user="alice",
    account="lab",
    qos="normal",
    shapes=(parse_shape("1"), parse_shape("2")),
    spec=Spec(parse("gpus=1-2;malleable"), parse_shape("2")),
)


@pytest.mark.parametrize(
    ("reason", "other", "stays"),
    [
        ("Resources", {}, False),
        ("Dependency", {}, False),
        ("AssocMaxJobsLimit", {"account": "theirs"}, True),
        ("AssocMaxJobsLimit", {"user": "bob"}, False),
        ("AssocGrpJobsLimit", {"user": "bob"}, True),
        ("AssocGrpGRESRunMinutes", {"user": "bob"}, True),
        ("AssocGrpGRES", {"account": "theirs", "user": "bob"}, False),
        ("AssocGrpGRES", {"account": "sister", "user": "bob"}, True),
        ("QOSGrpJobsLimit", {"account": "theirs", "user": "bob"}, True),
        ("QOSGrpGRES", {"qos": "high"}, False),
        ("QOSMaxJobsPerUserLimit", {"account": "theirs"}, True),
        ("QOSMaxGRESPerUser", {"user": "bob"}, False),
        ("MaxJobsPerAccount", {"user": "bob"}, True),
        ("AssocMaxWallDurationPerJobLimit", {}, False),
        ("Not Running: Queue gpu job limit has been reached.", {"user": "bob"}, True),
        (
            "Not Running: Queue other job limit has been reached.",
            {"user": "bob", "partitions": ("other",)},
            False,
        ),
        ("Not Running: Server job limit has been reached.", {"partitions": ("other",)}, True),
        ("Not Running: User has reached queue gpu running job limit.", {}, True),
        ("Not Running: User has reached server running job limit.", {"user": "bob"}, False),
        ("Not Running: Group has reached queue gpu running limit.", {"user": "bob"}, True),
        ("Not Running: Project has reached server running limit.", {"user": "bob"}, True),
        ("Not Running: Queue not started.", {}, False),
        ("Not Running: Node has reached job run limit", {}, False),
    ],
)
def test_a_running_job_is_left_alone_while_another_waits_for_a_limit_that_they_may_share(
    reason: str, other: dict[str, str], stays: bool
) -> None:
    first = replace(lab(9, **other), reason=reason, eligible=False)
    whole = snapshot([node("n1")], [lab(8), first], [ELASTIC])
    pools = (("lab", "faculty"), ("sister", "faculty"))
    kept = kept_within_limits(replace(whole, abilities=Abilities(pools=pools)))
    words = "job 9 waits for a limit that may be its own too, and would start in its place"
    (found,) = kept.running
    assert found.frozen == (words if stays else "")
    assert why_stays(found) == (f"it is not resized: {words}" if stays else "")
    assert (len(view(kept).running[0].shapes) == 1) is stays
    assert kept_within_limits(kept) == kept


@pytest.mark.parametrize(
    ("abilities", "stays"),
    [
        (Abilities(timed_accounts=frozenset({"lab"})), True),
        (Abilities(timed_accounts=frozenset({"theirs"})), False),
        (Abilities(timed_qos=frozenset({EVERYBODY})), True),
        (Abilities(timed_qos=frozenset({"short"})), False),
    ],
)
def test_a_running_job_under_a_limit_on_minutes_is_left_alone(
    abilities: Abilities, stays: bool
) -> None:
    """Its time limit would begin anew: it asks for more of them than it has left."""
    found = kept_within_limits(replace(snapshot([], [], [ELASTIC]), abilities=abilities))
    words = "requeued, it might not start again: a limit on minutes holds for its account or QOS"
    (job,) = found.running
    assert why_stays(job) == (f"it is not resized: {words}" if stays else "")
    assert (len(view(found).running[0].shapes) == 1) is stays


@pytest.mark.parametrize(
    ("says", "job", "words"),
    [
        ("max-resizes=0", {}, "its owner's max-resizes=0: only `pliant resize` does"),
        ("max-resizes=2", {"changes": 1}, ""),
        (
            "max-resizes=2",
            {"changes": 2},
            "its owner's max-resizes=2: it has been resized or made room 2 times",
        ),
        ("max-resizes=1", {"changes": 1}, "its owner's max-resizes=1: it has been resized or made room once"),
        ("min-run=2h", {}, ""),
        ("min-run=2h", {"restarts": 1}, "its owner's min-run=2h: this run has worked 2 min"),
        ("min-run=90s", {"restarts": 1}, ""),
        ("min-run=90s", {"restarts": 1, "works_s": -60.0}, "its owner's min-run=90s: this run has worked 1 min"),
        ("min-run=5m", {"restarts": 1, "works_s": -300.0}, ""),
    ],
)  # fmt: skip
def test_a_policy_keeps_to_what_the_owner_says_of_how_often_and_how_soon(
    says: str, job: dict[str, Any], words: str
) -> None:
    spec = Spec(parse(f"gpus=1-2;malleable={says};job-class=best-effort"), parse_shape("2"))
    found = replace(ELASTIC, spec=spec, preemptible=True, grace_s=30.0, **job)
    whole = snapshot([node("n1")], [], [found])
    (shown,) = view(whole).running
    assert (len(shown.shapes) == 1, shown.preemptible, shown.grace_s) == (
        (True, False, 0.0) if words else (False, True, 30.0)
    )
    told = (
        f"it runs as 2; it is neither resized nor preempted: {words}" if words else "it runs as 2"
    )
    assert explain(whole, by_name("fitgpp"), "7").says == told
    assert view(view(whole)) == view(whole)


def test_jobs_that_are_never_requeued_are_not_said_to_be_left_alone() -> None:
    rigid = replace(ELASTIC, id="6", spec=None)
    moldable = replace(ELASTIC, id="5", spec=Spec(parse("gpus=1-2"), parse_shape("2")))
    first = replace(lab(9), reason="AssocGrpGRES")
    kept = kept_within_limits(snapshot([node("n1", 8)], [first], [rigid, moldable]))
    assert [found.frozen for found in kept.running] == ["", ""]
