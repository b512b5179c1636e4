"""A hand-over's steps as commands, and what is taken for a run that was killed at its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.handing import Handing, limit_words
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.lent import owed
from pliant.batch.slurm.refusals import blocked, in_words
from pliant.errors import Infeasible, Refused, Unavailable
from pliant.grammar import put_token
from pliant.handover import PINNED, Do, HandOver, Outcome, Step, next_step
from pliant.model import Footprint, Job, JobState, Kind, Malleable, Request, Shape, Spec

OVER = HandOver("7", 2, Shape(1, 2), 1000.0, 1060.0, saved_s=1030.0, guest="8")
JOB = Job("7", user="alice", nodes=("n1", "n2"))
FENCE = (
    "ReservationName=pliant_7 StartTime=1970-01-01T00:16:40 EndTime=2100-01-01T00:00:00 "
    "Duration=00:02:05 Nodes=n1,n2 NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) "
    "Flags=IGNORE_JOBS,SPEC_NODES TRES=cpu=8 Users=root Groups=(null) Accounts=(null) "
    "Licenses=(null) State=ACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
)


class Slurm:
    """Answers each command by its first words, and notes all."""

    basic = False  # its priorities
    nice = 0  # of every job

    def __init__(self, **answers: Answer) -> None:
        self.answers, self.asked = answers, list[tuple[str, ...]]()

    def run(self, argv: Sequence[str], **_: object) -> Answer:
        self.asked.append(tuple(argv))
        return self.answers.get(argv[0], Answer("", "", 0))


def handing(slurm: Slurm, rows: dict[str, Any] | None = None) -> Handing:
    site = SimpleNamespace(basic_priority=slurm.basic, requeue_delay_s=121)
    queries = SimpleNamespace(
        again=lambda _ids: rows or {},
        site=lambda: site,
        nice=lambda _row: slurm.nice,
        excluded=lambda _ids: {},
    )
    return Handing(cast("Any", slurm), cast("Any", queries), lambda: 1040.0)


ANY = cast("Any", None)
_CLUSTER = Cluster((22, 5), {}, {})


def array(number: int = 8, **said: str) -> JobRow:
    """A row of job 8, or of a task of array 8, which waits."""
    empty = {field.name: "" for field in fields(JobRow)}
    plain = {"job_id": str(number), "array_id": "8", "state": "PENDING", "array_tasks": "N/A"}
    return JobRow(**{**empty, **plain, "priority": "500", **said})


def by_key(*rows: JobRow) -> dict[str, Any]:
    return {row.key: row for row in rows}


NOTED = "AdminComment=pliant-priority=500"
MEMORY = Footprint(mem_per_node_mib=1000)
RAN = {"state": "RUNNING", "start": "1970-01-01T00:17:15"}  # after the checkpoint


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (array(), "8"),
        (array(state="RUNNING"), "8"),
        (array(array_tasks="2-3,5%4"), "8_[2-3,5]"),  # not 8_4, which its user holds
        (array(array_tasks="5"), "8_5"),
    ],
)
def test_of_an_array_only_the_tasks_that_wait_together_are_pinned_and_released(
    row: JobRow, name: str
) -> None:
    slurm = Slurm()
    held = array(12, array_tasks="4", priority="0")
    hands = handing(slurm, by_key(row, held))
    hands.do(Step(Do.PIN_GUEST), OVER, JOB, ANY)
    hands.do(Step(Do.RELEASE_GUEST), OVER, JOB, ANY)
    assert slurm.asked == [
        ("scontrol", "update", f"jobid={name}", "Priority=4294967001", NOTED),
        ("scontrol", "release", name),
    ]


def test_a_guest_that_its_user_holds_is_not_released() -> None:
    for rows, words in (({}, "it has ended"), (by_key(array(priority="0")), "it is held")):
        with pytest.raises(Refused, match=f"job 8: {words}"):
            handing(Slurm(), rows).do(Step(Do.RELEASE_GUEST), OVER, JOB, ANY)


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([array(array_tasks="2-3")], JobState.WAITING),
        ([array(array_tasks="2-3"), array(11, array_tasks="1", **RAN)], JobState.RUNNING),
        ([array(array_tasks="3"), array(11, array_tasks="1", **RAN)], JobState.RUNNING),
        (
            [
                array(array_tasks="2-3"),
                array(11, array_tasks="1", state="RUNNING", start="1970-01-01T00:10:00"),
            ],
            JobState.WAITING,  # that one ran before
        ),
        ([array(array_tasks="2-3", priority="0"), array(11, array_tasks="1", **RAN)], None),
        ([array(11, array_tasks="1", **RAN)], None),
    ],
)
def test_an_array_has_the_room_that_was_made_for_it_once_one_of_its_tasks_runs(
    rows: list[JobRow], state: JobState | None
) -> None:
    guest = handing(Slurm(), by_key(*rows)).scene(OVER, JOB, ANY).guest
    assert guest is not None
    assert (None if guest.held else guest.state) == state


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (Do.PIN, "update jobid=7 Priority=4294967000 AdminComment=pliant-priority=500"),
        (
            Do.FENCE,
            "create reservation ReservationName=pliant_7 StartTime=1970-01-01T00:16:20 "
            "EndTime=1970-01-01T00:19:25 Users=root Nodes=n1,n2 Flags=IGNORE_JOBS,OVERLAP",
        ),
        (Do.RENEW, "update ReservationName=pliant_7 EndTime=1970-01-01T00:19:25"),
        (Do.REQUEUE, "requeue 7"),
        (Do.UNFENCE, "delete ReservationName=pliant_7"),
        (Do.RELEASE, "release 7"),
    ],
)
def test_each_step_is_one_command(do: Do, words: str) -> None:
    slurm = Slurm()
    handing(slurm, by_key(array(7, array_id="7"))).do(Step(do), OVER, JOB, ANY)
    assert slurm.asked == [("scontrol", *words.split())]


ENDS = "1970-01-01T00:47:20"
AGAIN = {**RAN, "time_limit": "30:00", "end": "1970-01-01T00:47:15"}


@pytest.mark.parametrize(
    ("said", "end_s", "told"),
    [
        ({}, 2840.0, [("update", "jobid=7", f"EndTime={ENDS}")]),
        ({}, 2840.9, [("update", "jobid=7", f"EndTime={ENDS}")]),
        ({}, 2835.9, []),  # it is that
        ({}, 2830.0, []),
        ({}, 2835.0 + 60, []),  # somebody lowered its limit
        ({}, 0.0, []),  # it begins anew
        ({"end": "1970-01-01T00:47:00"}, 2840.0, []),  # somebody set its end
        ({"time_limit": "UNLIMITED"}, 2840.0, []),
        ({"state": "PENDING"}, 2840.0, []),
    ],
)
def test_a_job_that_runs_again_ends_when_it_would_have_to_the_second(
    said: dict[str, str], end_s: float, told: list[tuple[str, ...]]
) -> None:
    slurm, row = Slurm(), array(7, array_id="7", **{**AGAIN, **said})
    handing(slurm, by_key(row)).do(Step(Do.RELEASE), replace(OVER, end_s=end_s), JOB, ANY)
    assert slurm.asked == [("scontrol", *words) for words in [("release", "7"), *told]]


def test_of_a_job_that_has_ended_nothing_is_changed() -> None:
    for do in (Do.PIN, Do.RELEASE):
        slurm = Slurm()
        with pytest.raises(Refused, match="job 7: it has ended"):
            handing(slurm).do(Step(do), OVER, JOB, ANY)
        assert slurm.asked == []


def test_with_basic_priorities_a_job_gets_its_own_back() -> None:
    slurm = Slurm()
    slurm.basic = True
    row = array(7, array_id="7", priority=str(PINNED))
    for priority in (4294901700, PINNED):
        handing(slurm, by_key(row)).do(Step(Do.RELEASE), OVER, replace(JOB, priority=priority), ANY)
    assert slurm.asked == [
        ("scontrol", "update", "jobid=7", "Priority=4294901700"),
        ("scontrol", "release", "7"),  # what it was is not known
    ]


PINS = [(Do.PIN, Do.RELEASE, 7, PINNED), (Do.PIN_GUEST, Do.RELEASE_GUEST, 8, PINNED + 1)]


@pytest.mark.parametrize(("pin", "release", "number", "pinned"), PINS)
def test_who_is_pinned_has_its_nice_again_when_it_is_released(
    pin: Do, release: Do, number: int, pinned: int
) -> None:
    """Slurm sets it to 0 at either."""
    slurm, token = Slurm(), put_token("", GPUS)
    slurm.nice = -100
    row = array(number, array_id=str(number), admin_comment=token)
    handing(slurm, by_key(row)).do(Step(pin), OVER, JOB, ANY)
    slurm.nice = 0
    noted = f"{token} pliant-nice=-100 pliant-priority=500"
    row = replace(row, priority=str(pinned), admin_comment=noted)
    handing(slurm, by_key(row)).do(Step(pin), OVER, JOB, ANY)  # once more: what was noted stays
    handing(slurm, by_key(row)).do(Step(release), OVER, JOB, ANY)
    job = f"jobid={number}"
    assert slurm.asked == [
        ("scontrol", "update", job, f"Priority={pinned}", f"AdminComment={noted}"),
        ("scontrol", "update", job, f"Priority={pinned}"),
        ("scontrol", "release", str(number)),
        ("scontrol", "update", job, "Nice=-100", f"AdminComment={token}"),
    ]


@pytest.mark.parametrize(("pin", "release", "number", "pinned"), PINS)
def test_with_basic_priorities_it_has_the_priority_again(
    pin: Do, release: Do, number: int, pinned: int
) -> None:
    slurm, token = Slurm(), put_token("", GPUS)
    slurm.basic, slurm.nice = True, 50  # which the priority has in it
    row = array(number, array_id=str(number), priority="4294901700", admin_comment=token)
    handing(slurm, by_key(row)).do(Step(pin), OVER, JOB, ANY)
    noted = f"{token} pliant-priority=4294901700"
    row = replace(row, priority=str(pinned), admin_comment=noted)
    handing(slurm, by_key(row)).do(Step(pin), OVER, JOB, ANY)  # once more: what was noted stays
    handing(slurm, by_key(row)).do(Step(release), OVER, replace(JOB, priority=PINNED), ANY)
    job = f"jobid={number}"
    assert slurm.asked == [
        ("scontrol", "update", job, f"Priority={pinned}", f"AdminComment={noted}"),
        ("scontrol", "update", job, f"Priority={pinned}"),
        ("scontrol", "update", job, "Priority=4294901700", f"AdminComment={token}"),
    ]


@pytest.mark.parametrize(("footprint", "more"), [(None, " pliant-memory=1000"), (MEMORY, "")])
def test_who_is_pinned_and_asked_for_no_memory_has_noted_what_it_has(
    footprint: Footprint | None, more: str
) -> None:
    slurm, token = Slurm(), put_token("", replace(GPUS, footprint=footprint))
    row = array(7, array_id="7", admin_comment=token, min_memory="1000M")
    handing(slurm, by_key(row)).do(Step(Do.PIN), OVER, JOB, ANY)
    assert slurm.asked[-1][-1] == f"AdminComment={token} pliant-priority=500{more}"
    back = replace(row, priority="4294967000", admin_comment=slurm.asked[-1][-1].partition("=")[2])
    handing(slurm, by_key(back)).do(Step(Do.RELEASE), OVER, JOB, ANY)
    assert slurm.asked[-1][-1] == f"AdminComment={token}"


def test_what_is_noted_where_there_was_no_comment_stands_alone() -> None:
    slurm = Slurm()
    slurm.nice = 70
    row = array(7, array_id="7", admin_comment="(null)")
    handing(slurm, by_key(row)).do(Step(Do.PIN), OVER, JOB, ANY)
    assert slurm.asked[-1][-1] == "AdminComment=pliant-nice=70 pliant-priority=500"


@pytest.mark.parametrize(
    ("priority", "nice", "words"),
    [
        ("500", 0, ("Nice=70", "AdminComment=")),  # a pliantd died after the release
        ("500", 30, ("AdminComment=",)),  # it was given another one since
        (str(PINNED), 0, None),
    ],
)
def test_a_nice_that_was_not_put_back_is_so_later_unless_there_is_a_newer_one(
    priority: str, nice: int, words: tuple[str, ...] | None
) -> None:
    slurm = Slurm()
    slurm.nice = nice
    row = array(7, array_id="7", priority=priority, admin_comment="pliant-nice=70", **RAN)
    assert owed(row) is (words is not None)
    if words is None:
        with pytest.raises(Refused, match="has all that was its own"):
            handing(slurm, by_key(row)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
    else:
        handing(slurm, by_key(row)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
        assert slurm.asked == [("scontrol", "update", "jobid=7", word) for word in words]


@pytest.mark.parametrize("basic", [False, True])
@pytest.mark.parametrize("ran", [{}, RAN])
def test_a_pin_that_somebody_has_changed_is_taken_back_whatever_it_is(
    basic: bool, ran: dict[str, str]
) -> None:
    """Slurm lets owners lower the priorities of their jobs: just below a pin is above all others."""
    slurm, noted = Slurm(), "pliant-nice=30 pliant-priority=500"
    slurm.basic = basic
    row = array(7, array_id="7", priority=str(PINNED - 10), admin_comment=noted, **ran)
    handing(slurm, by_key(row)).do(Step(Do.PIN), OVER, JOB, ANY)  # what was noted first stands
    assert owed(row)
    handing(slurm, by_key(row)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
    pins, *back = slurm.asked
    assert pins == ("scontrol", "update", "jobid=7", f"Priority={PINNED}")
    its_own = ("update", "jobid=7", "Priority=500", "Nice=30", "AdminComment=")
    computed = [("release", "7"), ("update", "jobid=7", "Nice=30", "AdminComment=")]
    assert [words[1:] for words in back] == ([its_own] if basic else computed)
    for lower in ("500", "400"):
        assert owed(replace(row, priority=lower))
    assert not owed(replace(row, priority=str(PINNED)))
    held = replace(row, priority="0", admin_comment="pliant-priority=500")
    handing(slurm, by_key(held)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)  # which stays held
    assert slurm.asked[-1] == ("scontrol", "update", "jobid=7", "AdminComment=")


def test_a_pin_that_was_another_jobs_is_taken_back() -> None:
    """`scontrol top` gives it to another job of its owner's, which has no note of its own."""
    slurm = Slurm()
    row = array(7, array_id="7", priority=str(PINNED))
    assert owed(row)
    assert not owed(replace(row, **RAN))
    handing(slurm, by_key(row)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
    assert slurm.asked == [("scontrol", "release", "7")]


def test_the_nodes_that_a_job_goes_to_are_kept_as_those_that_it_leaves() -> None:
    slurm = Slurm()
    goes = replace(JOB, next_nodes=("n2", "n3"))
    handing(slurm).do(Step(Do.FENCE), OVER, goes, ANY)
    assert "Nodes=n1,n2,n3" in slurm.asked[0]


def test_a_refused_step_is_told_in_slurms_words_and_an_absent_slurm_apart() -> None:
    with pytest.raises(Refused, match="job 7: requeue: Access/permission denied"):
        handing(Slurm(scontrol=Answer("", "Access/permission denied", 1))).do(
            Step(Do.REQUEUE), OVER, JOB, ANY
        )
    away = "slurm_requeue error: Unable to contact slurm controller (connect failure)"
    with pytest.raises(Unavailable):
        handing(Slurm(scontrol=Answer("", away, 1))).do(Step(Do.REQUEUE), OVER, JOB, ANY)


def test_a_job_that_waits_no_more_is_not_reshaped() -> None:
    with pytest.raises(Refused, match="does not wait any more"):
        handing(Slurm()).do(Step(Do.RESHAPE), OVER, JOB, ANY)


@pytest.mark.parametrize(
    ("end_s", "limit", "words"),
    [
        (0.0, "1:00:00", ()),  # it begins anew
        (3600.0, "1:00:00", ("TimeLimit=43",)),
        (3600.0, "", ("TimeLimit=43",)),  # none of its own
        (3600.0, "07:00", ()),  # its owner says less
        (1000.0 + 179, "1:00:00", ("TimeLimit=2",)),
        (1000.0 + 18, "1:00:00", ("TimeLimit=1",)),
        (1000.0 - 18, "1:00:00", ("TimeLimit=1",)),
    ],
)
def test_what_is_left_of_a_time_limit_is_kept_and_never_begins_anew_for_being_little(
    end_s: float, limit: str, words: tuple[str, ...]
) -> None:
    assert limit_words(replace(OVER, end_s=end_s), array(time_limit=limit), 1000.5) == words


def test_a_fence_that_has_ended_stands_no_more() -> None:
    ended = FENCE.replace("2100-01-01T00:00:00", "1970-01-01T00:17:20")  # now
    assert [*handing(Slurm(scontrol=Answer(ended, "", 0))).fences()] == []


def test_only_fences_are_ours() -> None:
    other = FENCE.replace("pliant_7", "maintenance")
    slurm = Slurm(scontrol=Answer(FENCE + other, "", 0))
    assert [*handing(slurm).fences()] == ["7"]


@pytest.mark.parametrize(
    ("theirs_s", "now_s", "ahead_s"),
    [(1039, 1040.0, 0.0), (1041, 1040.0, 0.0), (1010, 1010.0, 30.0), (1070, 1070.0, 0.0)],
)
def test_seconds_are_counted_by_slurmctlds_clock(
    theirs_s: int, now_s: float, ahead_s: float
) -> None:
    said = f"Configuration data as of {theirs_s}\nAccountingStorageBackupHost = (null)\n"
    scene = handing(Slurm(scontrol=Answer(said, "", 0))).scene(OVER, JOB, ANY)
    assert (scene.now_s, scene.ahead_s) == (now_s, ahead_s)


def test_where_slurmctld_does_not_say_the_clocks_are_taken_to_agree() -> None:
    scene = handing(Slurm()).scene(OVER, JOB, ANY)
    assert (scene.now_s, scene.ahead_s) == (1040.0, 0.0)


@pytest.mark.parametrize(
    ("told", "fresh_s"),
    [
        ("2026-01-01T00:00:05", 1767225605.0),
        ("None", 0.0),
        ("Unknown", 0.0),
        ("yesterday", 0.0),
    ],
)
def test_how_fresh_the_slurmds_of_a_job_that_waits_are_is_asked_once(
    told: str, fresh_s: float
) -> None:
    said = f"NodeName=n1 Arch=x86_64 SlurmdStartTime={told} LastBusyTime=None\nNodeName=n2\n"
    slurm = Slurm(scontrol=Answer(said, "", 0))
    hands = handing(slurm, {"7": array(7, array_id="7", submit="2026-01-01T00:00:01")})
    scenes = [hands.scene(replace(OVER, guest=""), JOB, _CLUSTER) for _ in range(2)]
    assert [scene.job.fresh_s for scene in scenes] == [fresh_s, fresh_s]
    assert slurm.asked.count(("scontrol", "-o", "show", "node", "n1,n2")) == 1


def _failed(start: str, end: str, code: int | str) -> str:
    minute = "2026-01-01T00:00:"
    return f"3|{minute}{start}|{minute}04|{minute}{end}|{code}|"


@pytest.mark.parametrize(
    ("told", "killed"),
    [
        ("3|2026-01-01T00:00:05|2026-01-01T00:00:05|", True),
        ("3|2026-01-01T00:00:06|2026-01-01T00:00:05|", False),  # it failed by itself, later
        (_failed("05", "06", 15), True),  # by a kill that was told a second time
        (_failed("05", "06", 9), True),
        (_failed("05", "06", 143 << 8), True),
        (_failed("05", "06", 1 << 8), False),
        (_failed("05", "06", "0:9"), True),  # as squeue writes it from 24.11 on
        (_failed("05", "06", "143:0"), True),
        (_failed("05", "06", "1:0"), False),
        (_failed("05", "08", 15), False),
        ("2|2026-01-01T00:00:05|2026-01-01T00:00:01|", True),  # it had saved: its wrapper died
        ("1|2026-01-01T00:00:05|2026-01-01T00:00:05|", False),
        ("", False),
    ],
)
def test_a_run_that_was_killed_at_its_start_is_known(told: str, killed: bool) -> None:
    slurm = Slurm(squeue=Answer(told, "", 0))
    sight = handing(slurm).scene(OVER, JOB, ANY).job
    assert (sight.state, sight.killed) == (None, killed)


def test_who_is_parted_loses_its_mark_before_it_may_start_again() -> None:
    """Slurm would start it beside the same partner at once."""
    alone = Shape(1, 0, kind=Kind.CPU)
    spec = Spec(Request(colocate=True, malleable=Malleable()), alone, mark="n1")
    job = replace(JOB, nodes=("n1",), shape=alone, spec=spec, shares=True, partitions=("gpu",))
    job = replace(job, nodes_required=("n1",))
    row = array(7, num_nodes="1", num_tasks="1", num_cpus="4", cpus_per_task="4", restarts="3")
    row = replace(row, **{"min_memory": "100M", "oversubscribe": "YES", "nodes_required": "n1"})
    row = replace(row, partition="gpu")
    row = replace(row, admin_comment=put_token("", spec), eligible="1970-01-01T00:17:20")
    over = replace(OVER, shape=alone, guest="")
    slurm = Slurm()
    hands = handing(slurm, by_key(row))
    hands.do(Step(Do.RESHAPE, begin_s=1040.0), over, job, _CLUSTER)
    token = put_token("", replace(spec, set=alone, mark="-", footprint=job.footprint))
    assert slurm.asked[-1] == (
        *("scontrol", "update", "jobid=7", f"AdminComment={token}"),
        *("StartTime=1970-01-01T00:17:20", "OverSubscribe=NO", "ReqNodeList="),
    )


CARRIED = {"num_nodes": "1", "num_tasks": "1", "num_cpus": "1", "restarts": "3"}
GPUS = Spec(Request(malleable=Malleable()), Shape(1, 2))
TAKEN = Shape(1, 1)


def carrying(gpus: int, spec: Spec, **said: str) -> dict[str, Any]:
    note = {"tres_per_node": f"gres:gpu:{gpus}", "admin_comment": put_token("", spec)}
    return by_key(array(7, array_id="7", **{**CARRIED, **note, **said}))


class Picky(Slurm):
    """Refuses what has a word that begins so."""

    def __init__(self, refuses: str) -> None:
        super().__init__()
        self.refuses = refuses

    def run(self, argv: Sequence[str], **more: object) -> Answer:
        said = super().run(argv, **more)
        bad = self.refuses and any(word.startswith(self.refuses) for word in argv)
        return Answer("", "scontrol: error: no", 1) if bad else said


def turning(
    rows: dict[str, Any], refuses: str = "", slurm: Picky | None = None, spec: Spec = GPUS
) -> list[tuple[str, ...]]:
    """What is told to Slurm, which may refuse what begins so, where a hand-over turns back."""
    slurm = slurm or Picky(refuses)
    job = replace(HAD_TWO, spec=spec, footprint=spec.footprint or JOB.footprint)
    over = replace(OVER, shape=TAKEN, before=Shape(1, 2), back_s=1039.0, guest="")
    cluster = SimpleNamespace(
        **vars(_CLUSTER), cores=lambda *_: 1, abilities=SimpleNamespace(gpu_to_cpu=False)
    )
    step = Step(Do.PUT_BACK, begin_s=1040.0)
    handing(slurm, rows).do(step, over, job, cast("Any", cluster))
    return [argv[3:] for argv in slurm.asked if argv[:2] == ("scontrol", "update")]


BEGIN = ("StartTime=1970-01-01T00:17:20",)


def reshaped(rows: dict[str, Any], job: Job) -> tuple[str, ...]:
    """What Slurm is told for the shape of a hand-over."""
    slurm = Slurm()
    rows = {key: replace(row, partition="gpu") for key, row in rows.items()}
    over = replace(OVER, shape=TAKEN, before=Shape(1, 2), guest="", end_s=2500.0)
    step = Step(Do.RESHAPE, begin_s=1040.0)
    handing(slurm, rows).do(step, over, job, _CLUSTER)
    return slurm.asked[-1]


HAD_TWO = replace(
    JOB,
    shape=Shape(1, 2),
    spec=GPUS,
    shapes=(TAKEN, Shape(1, 2)),
    start_s=1000.0,
    partitions=("gpu",),
)


def test_the_call_that_reshapes_notes_the_owners_time_min() -> None:
    """A job has none from its requeue to its start."""
    rows = carrying(2, GPUS, time_limit="25:00", time_min="10:00")
    words = reshaped(rows, HAD_TWO)
    (comment,) = (word for word in words if word.startswith("AdminComment="))
    assert comment.startswith("AdminComment=pliant-time-min=10 pliant=v1:")
    assert {"TimeMin=0", "TimeLimit=24"} <= {*words}


LATER = {"submit": "1970-01-01T00:17:00", "eligible": "1971-01-01T00:00:00"}
"""Slurm itself lets nothing begin so long after its requeue."""


@pytest.mark.parametrize(
    "changed", [{"nodes_required": "n9"}, {"features": "fast"}, {"account": "other"}, LATER]
)
def test_it_is_not_made_where_the_job_was_changed_since_the_last_look(
    changed: dict[str, str],
) -> None:
    with pytest.raises(Refused, match="it was changed since it was asked; its owner wins"):
        reshaped(carrying(2, GPUS, time_limit="24:00", **changed), HAD_TWO)


@pytest.mark.parametrize(("least", "told"), [("1000M", []), ("9G", [("scontrol", "release", "7")])])
def test_who_was_changed_since_the_last_look_has_no_pin_when_its_fence_falls(
    least: str, told: list[tuple[str, ...]]
) -> None:
    """What was noted stays: the next look tells by it that the job was changed."""
    rows = carrying(2, GPUS, min_memory=least, priority="4294967000", time_limit="24:00")
    comment = put_token("pliant-priority=500 pliant-memory=1000", GPUS)
    rows = {"7": replace(rows["7"], admin_comment=comment, partition="gpu")}
    slurm, over = Slurm(), replace(OVER, shape=TAKEN, before=Shape(1, 2), end_s=2500.0)
    handing(slurm, rows).do(Step(Do.UNFENCE), over, HAD_TWO, _CLUSTER)
    did = [argv for argv in slurm.asked if argv[1] in ("release", "delete", "update")]
    assert did == [*told, ("scontrol", "delete", "ReservationName=pliant_7")]


def test_memory_that_was_applied_alone_is_put_back() -> None:
    with_mem = replace(GPUS, footprint=Footprint(mem_per_node_mib=200))
    rows = carrying(2, with_mem, min_memory="100M")
    assert "MinMemoryNode=200" in turning(rows, spec=with_mem)[0]


def test_what_was_not_applied_needs_no_putting_back() -> None:
    assert turning(carrying(2, GPUS)) == [BEGIN]


@pytest.mark.parametrize("refuses", ["", "Gres="])
def test_what_is_half_applied_is_put_back_before_a_begin_time_of_its_own(refuses: str) -> None:
    first, *rest = turning(carrying(1, replace(GPUS, set=TAKEN)), refuses)
    assert first[0] == "Gres=gpu:2"
    assert first[-1] == f"AdminComment={put_token('', GPUS)}"
    assert rest == [BEGIN]  # whatever came of the first


def test_what_slurm_holds_for_its_shape_is_released_once_that_is_put_back() -> None:
    rows = carrying(1, replace(GPUS, set=TAKEN), priority="0", reason="BadConstraints")
    seen = handing(Slurm(), rows).scene(replace(OVER, guest=""), JOB, cast("Any", _CLUSTER)).job
    assert (seen.held, seen.blocked) == (False, "BadConstraints")
    slurm = Picky("")
    first, last, begin = turning(rows, slurm=slurm)[0], *slurm.asked[-2:]
    assert (first[0], last, begin[3:]) == ("Gres=gpu:2", ("scontrol", "release", "7"), BEGIN)


@pytest.mark.parametrize(
    ("reason", "of_shape"),
    [
        ("QOSMaxGRESPerJob", True),
        ("AssocMaxGRESPerJob", True),
        ("PartitionNodeLimit", True),
        ("QOSMaxJobsPerUserLimit", False),
        ("AssocMaxJobsLimit", False),
        ("Resources", False),
        ("PartitionDown", False),
        ("None", False),
    ],
)
def test_only_what_another_shape_may_not_wait_for_blocks_this_one(
    reason: str, of_shape: bool
) -> None:
    assert (blocked(reason) != "") is of_shape


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("QOSMaxGRESPerJob", "QOSMaxGRESPerJob, a limit of its QOS"),
        ("AssocMaxGRESPerJob", "AssocMaxGRESPerJob, a limit of its user or account"),
        ("MaxGRESPerAccount", "MaxGRESPerAccount, a limit of its user or account"),
        ("PartitionNodeLimit", "PartitionNodeLimit, a limit of its partition"),
        ("BadConstraints", "BadConstraints"),
    ],
)
def test_whose_limit_it_is_is_said(reason: str, words: str) -> None:
    assert in_words(reason) == words


@pytest.mark.parametrize("carries", [2, 1])
def test_a_job_that_turns_back_has_no_less_than_its_time_limit(carries: int) -> None:
    """And its owner's --time-min is noted, which no request puts out of the way."""
    rows = carrying(carries, GPUS, time_limit="29:00", time_min="10:00")
    noted = f"AdminComment={put_token('', GPUS)} pliant-time-min=10"
    first, *others = turning(rows)
    assert first == ("TimeMin=0", noted)
    assert all("pliant-time-min=10" in words[-1] for words in others[:-1])
    assert (len(others), others[-1]) == (3 - carries, BEGIN)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Access/permission denied for job 7", True),
        ("Invalid time-min specification (exceeds job's time or other limits) for job 7", True),
        ("Invalid generic resource (gres) specification for job 7", True),
        ("Invalid GRES specification (with and without type identification) for job 7", True),
        ("Invalid feature specification for job 7", True),
        ("Invalid qos specification for job 7", True),
        (
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
            " for job 7",
            True,
        ),
        ("Requested node configuration is not available for job 7", True),
        ("Requested time limit is invalid (missing or exceeds some limit) for job 7", True),
        ("Update of this parameter is not supported: AdminComment for job 7", True),
        ("Job resizing not supported for job arrays for job 7", True),
        ("Job is pending execution", False),
        ("Transport endpoint is already connected", False),
    ],
)
def test_what_is_refused_for_good_is_told_apart(words: str, kind: bool) -> None:
    with pytest.raises(Refused) as told:
        handing(Slurm(scontrol=Answer("", words, 1))).do(Step(Do.REQUEUE), OVER, JOB, ANY)
    assert isinstance(told.value, Infeasible) is kind


def test_an_owner_has_the_time_min_again_that_a_hand_over_borrowed() -> None:
    comment = f"{put_token('', GPUS)} pliant-time-min=20"
    slurm = Slurm()
    row = array(7, array_id="7", time_limit="30:00", time_min="0:00", admin_comment=comment)
    handing(slurm, by_key(row)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
    words = ("TimeMin=20", f"AdminComment={put_token('', GPUS)}")
    assert slurm.asked == [("scontrol", "update", "jobid=7", word) for word in words]
    newer = replace(row, time_min="5:00")  # its owner's since
    handing(slurm, by_key(newer)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)
    assert slurm.asked[-1] == ("scontrol", "update", "jobid=7", words[1])
    short = replace(row, time_limit="19:00")
    with pytest.raises(Refused, match="has all that was its own"):
        handing(Slurm(), by_key(short)).do(Step(Do.GIVE_BACK), OVER, JOB, ANY)


@pytest.mark.parametrize(
    ("said", "may_be_put_back"),
    [
        ({"time_limit": "20:00"}, True),
        ({"time_limit": "UNLIMITED"}, True),
        ({"time_limit": "19:00"}, False),  # Slurm refuses it, and its owner may lengthen that yet
        ({"time_limit": "19:00", "time_min": "5:00"}, True),  # what was noted is only forgotten
        ({"time_limit": "20:00", "state": "RUNNING"}, False),  # it would do nothing
    ],
)
def test_a_time_min_is_owed_where_slurm_takes_it(
    said: dict[str, str], may_be_put_back: bool
) -> None:
    assert owed(array(7, admin_comment="pliant-time-min=20", **said)) is may_be_put_back


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("launch failed requeued held", Outcome.NOT_LAUNCHED),
        ("launch_failed_requeued_held", Outcome.NOT_LAUNCHED),
        ("JobHeldUser", Outcome.HELD),
        ("JobHeldAdmin", Outcome.HELD_BY_ADMIN),
    ],
)
def test_who_holds_a_job_is_said(reason: str, outcome: Outcome) -> None:
    row = array(7, array_id="7", reason=reason, priority="0", restarts="4")
    scene = handing(Slurm(), {"7": replace(row, submit="1970-01-01T00:17:15")}).scene(
        replace(OVER, guest=""), JOB, _CLUSTER
    )
    assert scene.job.held
    assert next_step(OVER, replace(scene, fence_end_s=0.0)) == Step(Do.END, outcome=outcome)


def test_a_job_that_is_suspended_is_not_taken_for_one_that_is_only_held() -> None:
    row = array(7, array_id="7", state="SUSPENDED", priority="0", nodes="n1", restarts="0")
    scene = handing(Slurm(), {"7": row}).scene(replace(OVER, guest=""), JOB, _CLUSTER)
    assert (scene.job.held, scene.job.suspended) == (True, True)
