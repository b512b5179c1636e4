"""A hand-over's steps as commands, and what is taken for a run that was killed at its start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from slurm_hands import Hands

from pliant.batch.clients import Answer
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.handing import limit_words
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.lent import owed
from pliant.batch.slurm.refusals import blocked, in_words
from pliant.errors import Closed, Infeasible, Refused, TooLate, Unavailable
from pliant.grammar import put_token
from pliant.handover import FENCE_S, PINNED, Do, HandOver, Outcome, Step, next_step
from pliant.model import Footprint, Job, JobState, Kind, Malleable, Request, Shape, Spec
from prove.fake_slurm import FakeSlurm, Jobs, Record
from prove.world import TRIAL

OVER = HandOver(
    *("7", 2, Shape(1, 2), 1000.0, 1060.0),
    saved_s=1030.0,
    guest="8",
    before=Shape(1, 2),
    ran_s=1000.0,
)
RESIZE = replace(OVER, guest="", shape=Shape(1, 1))
JOB = Job("7", user="alice", account="lab", qos="normal", nodes=("n1", "n2"))
NOW_S = 1040.0
Also = Iterable[tuple[str, str]]


def waits(number: int = 7, also: Also = (), **said: Any) -> Record:
    """A job that waits; ``also``: what else squeue shows of it."""
    plain = {"gpus": 0, "priority": 500, "own_priority": 500, "also": tuple(also)}
    return Record(number, **{**plain, **said})


RAN: Mapping[str, Any] = {"state": "RUNNING", "start_s": 1035.0}  # after the checkpoint


def handing(*records: Record, fences: Iterable[str] = ("pliant_7",)) -> Hands:
    """The hands on a Slurm that has these jobs, and fences of their names."""
    ends, nodes = dict.fromkeys(fences, 2000.0), dict.fromkeys(fences, ("n1", "n2"))
    jobs = Jobs({job.number: job for job in records}, ends, nodes)
    return Hands(FakeSlurm(jobs, NOW_S))


def row(record: Record) -> JobRow:
    """A job as squeue shows it."""
    (found,) = handing(record)._queries.jobs()
    return found


def job_of(hands: Hands, number: int = 7) -> Record:
    return hands.fake.state.jobs[number]


NOTED = "AdminComment=pliant-priority=500"
MEMORY = Footprint(mem_per_node_mib=1000)


def task(number: int, tasks: str, **said: Any) -> Record:
    """A record of array 8."""
    return waits(number, (("ArrayJobID", "8"), ("ArrayTaskID", tasks)), **said)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (waits(8), "8"),
        (waits(8, **RAN), "8"),
        (task(8, "2-3,5%4"), "8_2"),
        (task(8, "5"), "8_5"),
    ],
)
def test_of_an_array_one_task_is_pinned_and_released_again(record: Record, name: str) -> None:
    """Not 8_4 either, which its user holds."""
    hands, over = handing(record, task(12, "4", priority=0)), replace(OVER, guest=name)
    with pytest.raises(Refused):  # there is nothing that it could be released of
        hands.step(Step(Do.RELEASE_GUEST), over, JOB)
    hands.step(Step(Do.PIN_GUEST), over, JOB)
    priorities = [job.priority for job in hands.fake.state.jobs.values()]
    assert (priorities.count(PINNED + 1), priorities.count(0)) == (1, 1)
    guest = hands.scene(over, JOB).guest
    assert (guest.is_waiting, guest.pinned) == (record.waits, True)
    hands.step(Step(Do.RELEASE_GUEST), over, JOB)
    assert hands.clients.told == [
        ("update", f"jobid={name}", "Priority=4294967001", NOTED),
        ("release", name),
        ("update", f"jobid={name}", "AdminComment="),
    ]
    priorities = [job.priority for job in hands.fake.state.jobs.values()]
    assert {*priorities} == {500, 0}


def test_of_a_task_that_has_its_arrays_number_no_other_task_is_told(  # the last one to be split off
) -> None:
    array = waits(7, (("ArrayJobID", "7"), ("ArrayTaskID", "2-3")), priority=0)
    array = replace(array, number=9)
    runs = waits(7, (("ArrayJobID", "7"), ("ArrayTaskID", "1")), **RAN)
    hands = handing(runs, array)
    over, job = replace(OVER, job="7_1", guest="", end_s=9000.0), replace(JOB, id="7_1")
    for do in (Do.PIN, Do.RELEASE):
        hands.step(Step(do), over, job)
    assert {words[1].removeprefix("jobid=") for words in hands.clients.told} == {"7_1"}
    assert job_of(hands, 9).priority == 0


def test_nor_is_one_told_that_has_no_record_of_its_own() -> None:
    array = waits(7, (("ArrayJobID", "7"), ("ArrayTaskID", "2-3")), priority=PINNED)
    hands = handing(replace(array, comment="pliant-priority=500"))
    with pytest.raises(TooLate, match="job 7_2: it has ended"):
        hands.step(Step(Do.RELEASE), replace(OVER, job="7_2", guest=""), replace(JOB, id="7_2"))
    assert hands.clients.told == []


def test_a_fence_that_has_ended_and_is_listed_yet_is_made_anew() -> None:
    hands = handing(waits(**RAN))
    name = "pliant_7"
    hands.fake.state = hands.fake.state.with_fences({name: NOW_S - 1}, {name: ("n1", "n2")})
    hands.step(Step(Do.FENCE), OVER, JOB)
    deleted, (does, what, named, *_) = hands.clients.told
    reservation = f"ReservationName={name}"
    assert deleted == ("delete", reservation)
    assert (does, what, named) == ("create", "reservation", reservation)


ARRAY = (("ArrayJobID", "8"), ("ArrayTaskID", "2-3"))


@pytest.mark.parametrize("do", [Do.PIN_GUEST, Do.RELEASE_GUEST])
@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "it has ended"),
        ([task(8, "5", **RAN)], "it has ended"),  # by that number its held tasks would go too
        ([waits(8, priority=0)], "it is held"),
    ],
)
def test_a_guest_that_its_user_holds_or_that_has_ended_is_left_alone(
    do: Do, records: list[Record], words: str
) -> None:
    hands = handing(*records)
    with pytest.raises(Refused, match=f"job 8: {words}"):
        hands.step(Step(do), OVER, JOB)
    assert hands.clients.told == []


def test_of_a_guest_that_has_ended_nothing_is_seen_though_its_victim_is_an_arrays_record() -> None:
    victim = waits(7, (("ArrayJobID", "7"), ("ArrayTaskID", "2-3")), priority=PINNED)
    scene = handing(victim).scene(OVER, JOB)
    assert (scene.job.state, scene.guest.state) == (JobState.WAITING, None)


SENT_BACK = (("ArrayJobID", "8"), ("ArrayTaskID", "1"), ("StartTime", "1040"))


@pytest.mark.parametrize(
    ("name", "records", "state"),
    [
        ("8_1", [task(8, "1-3")], JobState.WAITING),
        ("8_1", [task(8, "1-3", priority=0)], None),
        ("8_1", [task(8, "1")], JobState.WAITING),
        ("8_1", [task(8, "2-3")], None),
        ("8_1", [task(8, "2")], None),
        ("8_1", [task(8, "2-3"), task(11, "1", **RAN)], JobState.RUNNING),
        ("8_1", [task(8, "2-3"), task(11, "1", run=1, **RAN)], JobState.RUNNING),  # again
        ("8_2", [task(8, "2-3"), task(11, "1", **RAN)], JobState.WAITING),  # that is another one
        ("8", [task(8, "1-3")], None),  # an array is no guest
        # so squeue says when it expects it to run
        ("8_2", [waits(8, (*ARRAY, ("StartTime", "2000")))], JobState.WAITING),
        ("8", [waits(7, **RAN)], None),
        ("8", [waits(8)], JobState.WAITING),
        ("8", [waits(8, priority=0, reason="BadConstraints")], None),  # it never takes the room
        ("8", [waits(8, begin_s=NOW_S + 60)], None),  # nor would this one, yet
        ("8", [waits(8, dependency="afterok:3(unfulfilled)")], None),
        # it was sent back, and shows as the start of its next run the time of the look
        ("8_1", [task(8, "2-3"), waits(11, SENT_BACK, state="COMPLETING", run=1)], JobState.ENDING),
        (
            "8_1",
            [task(8, "2-3"), task(11, "1", state="COMPLETING", final="COMPLETED", start_s=1035.0)],
            JobState.RUNNING,
        ),
    ],
)
def test_a_guest_is_one_job_and_of_an_array_one_task(
    name: str, records: list[Record], state: JobState | None
) -> None:
    guest = handing(*records).scene(replace(OVER, guest=name), JOB).guest
    assert guest is not None
    assert (None if guest.held else guest.state) == state


@pytest.mark.parametrize(
    ("now", "state"),
    [
        ({}, JobState.WAITING),
        ({"gpus": 3}, None),
        # what it asks counts once its run, which was requeued, is over
        ({"gpus": 3, "state": "COMPLETING", "run": 1}, JobState.ENDING),
    ],
)
def test_a_guest_that_asks_for_more_than_its_room_is_as_good_as_held(
    now: Mapping[str, Any], state: JobState | None
) -> None:
    then = waits(8, gpus=2, comment=put_token("", TRIAL))
    asks = waiting_job(row(then), Cluster((22, 5), {}, {}), NOW_S)
    scene = handing(replace(then, **now)).scene(replace(OVER, asks=asks), JOB)
    assert (None if scene.guest.held else scene.guest.state) == state


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (Do.PIN, "update jobid=7 Priority=4294967000 AdminComment=pliant-priority=500"),
        (
            Do.FENCE,
            "create reservation ReservationName=pliant_7 StartTime=1970-01-01T00:16:20 "
            "EndTime=1970-01-01T00:19:51 Users=root Nodes=n1,n2 Flags=IGNORE_JOBS,OVERLAP",
        ),
        (Do.RENEW, "update ReservationName=pliant_7 EndTime=1970-01-01T00:19:51"),
        (Do.REQUEUE, "requeue 7"),
        (Do.UNFENCE, "delete ReservationName=pliant_7"),
        (Do.RELEASE, "release 7"),
    ],
)
def test_each_step_is_one_command(do: Do, words: str) -> None:
    hands = handing(waits(**RAN), fences=() if do is Do.FENCE else ("pliant_7",))
    hands.fence("3", NOW_S - 1)  # another's, which has ended and is listed yet
    hands.step(Step(do), OVER, JOB)
    assert hands.clients.told == [tuple(words.split())]


def test_a_later_run_than_the_one_that_saved_is_not_ended() -> None:
    """Its wrapper has requeued the job while pliantd stood still between its look and its step."""
    hands = handing(waits(7, run=3, **RAN))
    with pytest.raises(TooLate, match="does not run any more"):
        hands.step(Step(Do.REQUEUE), replace(OVER, run=2), JOB)
    assert hands.clients.told == []
    hands.step(Step(Do.REQUEUE), replace(OVER, run=3), JOB)
    assert hands.clients.told == [("requeue", "7")]


AWAY = ("update", "ReservationName=pliant_7", "Nodes=n4,n5", "EndTime=1970-01-01T00:17:35")


@pytest.mark.parametrize(
    ("nodes", "fenced", "aside"),
    [
        ("n1,n2", True, False),
        ("n1,n2,n4", True, False),
        ("n4", False, True),
        ("n1,n4", False, True),
    ],
)
def test_a_fence_that_is_around_other_nodes_alone_is_aside(
    nodes: str, *, fenced: bool, aside: bool
) -> None:
    hands = handing(waits(**RAN), fences=("pliant_7",))
    hands.fake.told(("update", "ReservationName=pliant_7", f"Nodes={nodes}"))
    seen = hands.scene(OVER, JOB)
    assert (seen.fence_end_s > 0, seen.aside_end_s > 0, seen.behind_s) == (fenced, aside, 0.0)


def test_what_is_seen_is_as_of_when_the_look_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it goes on a kill may still meet what starts then."""
    hands = handing(waits(**RAN))
    run = hands.clients.run

    def takes_long(argv: Sequence[str], **more: Any) -> Answer:
        hands.fake.now_s += 3
        return run(argv, **more)

    monkeypatch.setattr(hands.clients, "run", takes_long)
    assert hands.scene(OVER, JOB).now_s == NOW_S < hands.fake.now_s


def test_a_fence_that_is_aside_makes_way_for_the_next() -> None:
    hands = handing(waits(**RAN), fences=("pliant_7",))
    hands.fake.told(("update", *AWAY[1:]))
    hands.step(Step(Do.FENCE), OVER, JOB)
    assert [words[0] for words in hands.clients.told] == ["delete", "create"]
    assert not hands.scene(OVER, JOB).aside_end_s


@pytest.mark.parametrize(
    ("do", "guest", "priority"),
    [
        (Do.PIN, "", PINNED + 2),  # nobody else is to have what is its own
        (Do.PIN, "8", PINNED),
        (Do.PIN_GUEST, "8", PINNED + 1),
    ],
)
def test_who_returns_goes_before_guests_and_they_before_who_waits_for_a_place(
    do: Do, guest: str, priority: int
) -> None:
    hands = handing(waits(7, **RAN), waits(8))
    hands.step(Step(do), replace(OVER, guest=guest), JOB)
    assert job_of(hands, 8 if do is Do.PIN_GUEST else 7).priority == priority


def test_a_pin_that_is_no_more_is_not_lowered() -> None:
    """Its owner has lowered it further since the look, or `pliantd --release` has taken it back."""
    hands = handing(waits(7, priority=PINNED + 2))
    hands.step(Step(Do.LOWER), OVER, JOB)
    assert job_of(hands).priority == PINNED
    hands = handing(waits(7, priority=400))
    with pytest.raises(Refused, match="not pinned so any more"):
        hands.step(Step(Do.LOWER), OVER, JOB)
    assert hands.clients.told == []


ENDS = ("update", "jobid=7", "EndTime=1970-01-01T00:47:20")


@pytest.mark.parametrize(
    ("record", "end_s", "told"),
    [
        (waits(**RAN), 2840.0, [ENDS]),
        (waits(**RAN), 2840.9, [ENDS]),
        (waits(**RAN), 2835.9, []),  # it is that
        (waits(**RAN), 2830.0, []),
        (waits(**RAN), 2835.0 + 60, []),  # somebody lowered its limit
        (waits(**RAN), 0.0, []),  # it begins anew
        (waits(7, [("EndTime", "1970-01-01T00:47:00")], **RAN), 2840.0, []),  # somebody set its end
        (waits(7, [("TimeLimit", "UNLIMITED")], **RAN), 2840.0, []),
        # it waits, and Slurm says when it expects it to run
        (waits(7, [("StartTime", "1035"), ("EndTime", "2835")]), 2840.0, []),
    ],
)
def test_a_job_that_runs_again_ends_when_it_would_have_to_the_second(
    record: Record, end_s: float, told: list[tuple[str, ...]]
) -> None:
    """By its limit of half an hour it would at 2835."""
    hands = handing(record)
    hands.step(Step(Do.RELEASE), replace(OVER, end_s=end_s), JOB)
    assert hands.clients.told == [*told, ("release", "7")]


def test_a_job_whose_end_cannot_be_set_is_released_all_the_same() -> None:
    hands = handing(waits(**RAN))
    hands.clients.refuses = {"EndTime=": "Access/permission denied"}
    hands.step(Step(Do.RELEASE), replace(OVER, end_s=2840.0), JOB)
    assert hands.clients.told == [ENDS, ("release", "7")]


@pytest.mark.parametrize("priority", ["multifactor", "basic"])
def test_a_guest_gets_neither_the_priority_nor_the_end_of_its_victim(priority: str) -> None:
    hands = handing(waits(8, priority=PINNED + 1, **RAN))
    hands.fake.priority = priority
    over, job = replace(OVER, end_s=2840.0), replace(JOB, priority=4294901700)
    hands.step(Step(Do.RELEASE_GUEST), over, job)
    assert hands.clients.told == [("release", "8")]


@pytest.mark.parametrize(
    ("record", "carries", "ends_s", "limit_s"),
    [
        (waits(run=2, **RAN), None, 2835.0, 1800.0),
        # it ends in a year, Slurm says
        (waits(7, [("TimeLimit", "UNLIMITED")], run=2, **RAN), None, 0.0, float("inf")),
        (waits(run=2, state="COMPLETING", start_s=1035.0), None, 0.0, 0.0),  # it ended sooner
        (waits(run=3, gpus=2, **RAN), Shape(1, 2), 0.0, 0.0),
        (waits(run=3, gpus=4, **{**RAN, "state": "CONFIGURING"}), Shape(1, 4), 0.0, 0.0),
    ],
)
def test_when_the_run_that_is_asked_ends_and_what_the_next_one_has_is_seen(
    record: Record, carries: Shape | None, ends_s: float, limit_s: float
) -> None:
    sight = handing(record).scene(OVER, JOB).job
    assert (sight.carries, sight.ends_s, sight.limit_s) == (carries, ends_s, limit_s)


def test_of_a_job_that_has_ended_nothing_is_changed() -> None:
    for do in (Do.PIN, Do.RELEASE):
        hands = handing()
        with pytest.raises(Refused, match="job 7: it has ended"):
            hands.step(Step(do), OVER, JOB)
        assert hands.clients.told == []


def test_with_basic_priorities_a_job_gets_its_own_back() -> None:
    hands = handing(waits(priority=PINNED, own_priority=4294901000))
    hands.fake.priority = "basic"
    hands.step(Step(Do.RELEASE), OVER, replace(JOB, priority=4294901700))
    assert job_of(hands).priority == 4294901700
    hands.step(Step(Do.RELEASE), OVER, replace(JOB, priority=PINNED))
    assert hands.clients.told == [
        ("update", "jobid=7", "Priority=4294901700"),
        ("release", "7"),  # what it was is not known
    ]


PINS = [(Do.PIN, Do.RELEASE, 7, PINNED), (Do.PIN_GUEST, Do.RELEASE_GUEST, 8, PINNED + 1)]


@pytest.mark.parametrize(("pin", "release", "number", "pinned"), PINS)
def test_who_is_pinned_has_its_nice_again_when_it_is_released(
    pin: Do, release: Do, number: int, pinned: int
) -> None:
    """Slurm sets it to 0 at either."""
    token = put_token("", GPUS)
    hands = handing(waits(number, nice=-100, comment=token))
    for do in (pin, pin, release):  # what was noted first stays
        hands.step(Step(do), OVER, JOB)
    job, noted = f"jobid={number}", f"{token} pliant-nice=-100 pliant-priority=500"
    assert hands.clients.told == [
        ("update", job, f"Priority={pinned}", f"AdminComment={noted}"),
        ("update", job, f"Priority={pinned}"),
        ("release", str(number)),
        ("update", job, "Nice=-100", f"AdminComment={token}"),
    ]
    assert (job_of(hands, number).nice, job_of(hands, number).comment) == (-100, token)


@pytest.mark.parametrize(("pin", "release", "number", "pinned"), PINS)
def test_with_basic_priorities_it_has_the_priority_again(
    pin: Do, release: Do, number: int, pinned: int
) -> None:
    token = put_token("", GPUS)
    record = waits(number, priority=4294901700, nice=50, comment=token)  # which has that in it
    hands = handing(record)
    hands.fake.priority = "basic"
    for do in (pin, pin, release):  # what was noted first stays
        hands.step(Step(do), OVER, replace(JOB, priority=PINNED))
    job, noted = f"jobid={number}", f"{token} pliant-priority=4294901700"
    assert hands.clients.told == [
        ("update", job, f"Priority={pinned}", f"AdminComment={noted}"),
        ("update", job, f"Priority={pinned}"),
        ("update", job, "Priority=4294901700", f"AdminComment={token}"),
    ]


@pytest.mark.parametrize(("footprint", "more"), [(None, " pliant-memory=1000"), (MEMORY, "")])
def test_who_is_pinned_and_asked_for_no_memory_has_noted_what_it_has(
    footprint: Footprint | None, more: str
) -> None:
    token = put_token("", replace(GPUS, footprint=footprint))
    hands = handing(waits(7, [("MinMemory", "1000M")], comment=token))
    hands.step(Step(Do.PIN), OVER, JOB)
    assert job_of(hands).comment == f"{token} pliant-priority=500{more}"
    hands.step(Step(Do.RELEASE), OVER, JOB)
    assert job_of(hands).comment == token


@pytest.mark.parametrize(
    ("priority", "comment", "noted"),
    [
        # a pliantd died after the release; its owner's nice is not forgotten
        (500, "pliant-nice=70", "pliant-nice=70 pliant-priority=500"),
        (PINNED, "", ""),  # `scontrol top` brought it: it is no priority of its own
    ],
)
def test_what_was_noted_stands_when_it_is_pinned_again(
    priority: int, comment: str, noted: str
) -> None:
    hands = handing(waits(priority=priority, comment=comment))
    hands.step(Step(Do.PIN), OVER, JOB)
    assert job_of(hands).comment == noted


def test_what_is_noted_where_there_was_no_comment_stands_alone() -> None:
    hands = handing(waits(nice=70))
    hands.step(Step(Do.PIN), OVER, JOB)
    assert job_of(hands).comment == "pliant-nice=70 pliant-priority=500"


@pytest.mark.parametrize(
    ("priority", "nice", "words"),
    [
        (500, 0, ("Nice=70", "AdminComment=")),  # a pliantd died after the release
        (500, 30, ("AdminComment=",)),  # it was given another one since
        (PINNED, 0, None),
    ],
)
def test_a_nice_that_was_not_put_back_is_so_later_unless_there_is_a_newer_one(
    priority: int, nice: int, words: tuple[str, ...] | None
) -> None:
    record = waits(priority=priority, nice=nice, comment="pliant-nice=70", **RAN)
    hands = handing(record)
    assert owed(row(record)) is (words is not None)
    if words is None:
        with pytest.raises(Refused, match="has all that was its own"):
            hands.step(Step(Do.GIVE_BACK), OVER, JOB)
    else:
        hands.step(Step(Do.GIVE_BACK), OVER, JOB)
        assert hands.clients.told == [("update", "jobid=7", word) for word in words]
        assert job_of(hands).nice == (nice or 70)


@pytest.mark.parametrize("basic", [False, True])
@pytest.mark.parametrize("ran", [{}, RAN])
def test_a_pin_that_somebody_has_changed_is_taken_back_whatever_it_is(
    basic: bool, ran: Mapping[str, Any]
) -> None:
    """Slurm lets owners lower the priorities of their jobs: just below a pin is above all others."""
    hands = handing(
        waits(priority=PINNED - 10, comment="pliant-nice=30 pliant-priority=500", **ran)
    )
    hands.fake.priority = "basic" if basic else "multifactor"
    hands.step(Step(Do.PIN), OVER, JOB)  # what was noted first stands
    assert not owed(row(job_of(hands)))
    lower = ("update", "jobid=7", f"Priority={PINNED - 10}")
    hands.fake.told(lower, by_owner=True)
    assert owed(row(job_of(hands)))
    hands.step(Step(Do.GIVE_BACK), OVER, JOB)
    pins, *back = hands.clients.told
    assert pins == ("update", "jobid=7", f"Priority={PINNED}")
    its_own = ("update", "jobid=7", "Priority=500", "Nice=30", "AdminComment=")
    computed = [("release", "7"), ("update", "jobid=7", "Nice=30", "AdminComment=")]
    assert back == ([its_own] if basic else computed)
    assert (job_of(hands).priority, job_of(hands).nice) == (500, 30)


@pytest.mark.parametrize(("priority", "is_owed"), [(500, True), (400, True), (PINNED, False)])
def test_who_has_its_own_priority_or_less_has_the_note_taken_away(
    priority: int, is_owed: bool
) -> None:
    noted = waits(priority=priority, comment="pliant-nice=30 pliant-priority=500")
    assert owed(row(noted)) is is_owed


def test_who_is_held_stays_so_when_the_note_is_taken_away() -> None:
    hands = handing(waits(priority=0, comment="pliant-priority=500"))
    hands.step(Step(Do.GIVE_BACK), OVER, JOB)
    assert hands.clients.told == [("update", "jobid=7", "AdminComment=")]


def test_a_pin_that_was_another_jobs_is_taken_back() -> None:
    """`scontrol top` gives it to another job of its owner's, which has no note of its own."""
    pinned = waits(priority=PINNED)
    assert owed(row(pinned))
    assert not owed(row(replace(pinned, state="RUNNING")))
    hands = handing(pinned)
    hands.step(Step(Do.GIVE_BACK), OVER, JOB)
    assert hands.clients.told == [("release", "7")]


def test_the_nodes_that_a_job_goes_to_are_kept_as_those_that_it_leaves() -> None:
    hands = handing(fences=())
    hands.step(Step(Do.FENCE), OVER, replace(JOB, next_nodes=("n2", "n3")))
    assert hands.fake.state.fenced == {"pliant_7": ("n1", "n2", "n3")}


def test_a_refused_step_is_told_in_slurms_words_and_an_absent_slurm_apart() -> None:
    hands = handing(waits(**RAN))
    for words, kind in (
        ("Access/permission denied", Refused),
        ("slurm_requeue error: Unable to contact slurm controller (connect failure)", Unavailable),
    ):
        hands.clients.refuses = {"requeue": words}
        with pytest.raises(kind, match=f"job 7: requeue: {re.escape(words)}"):
            hands.step(Step(Do.REQUEUE), OVER, JOB)


@pytest.mark.parametrize("do", [Do.RESHAPE, Do.PUT_BACK])
@pytest.mark.parametrize("records", [[], [waits(**RAN)]])
def test_the_request_of_a_job_that_waits_no_more_stays(do: Do, records: list[Record]) -> None:
    hands = handing(*records)
    with pytest.raises(Refused, match="does not wait any more"):
        hands.step(Step(do), OVER, HAD_TWO)
    assert hands.clients.told == []


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
    limited = row(waits(7, [("TimeLimit", limit)]))
    assert limit_words(replace(OVER, end_s=end_s), limited, 1000.5) == words


def test_a_fence_that_has_ended_stands_no_more() -> None:
    hands = handing()
    hands.fake.now_s = 2000.0
    assert hands.fences() == {}


def test_a_fence_that_has_ended_and_is_listed_yet_makes_way_for_the_next() -> None:
    """Slurm lists it for up to half a minute, and no other may have its name meanwhile."""
    hands = handing(waits(**RAN))
    hands.fence("7", NOW_S - 1)
    hands.step(Step(Do.FENCE), OVER, JOB)
    assert hands.clients.told[0] == ("delete", "ReservationName=pliant_7")
    assert hands.fence_end_s > NOW_S + 60


def test_only_where_another_is_wanted_is_one_deleted_that_has_ended() -> None:
    hands = handing(waits(**RAN))
    hands.fence("7", NOW_S - 1)
    hands.step(Step(Do.PIN), OVER, JOB)
    assert [words[0] for words in hands.clients.told] == ["update"]


def test_of_several_fences_its_own_one_says_when_it_ends() -> None:
    hands = handing(waits(), fences=("pliant_3", "pliant_7"))
    hands.fence("3", NOW_S + 5)
    assert hands.scene(OVER, JOB).fence_end_s == 2000.0


def test_another_jobs_fence_around_its_nodes_is_seen_for_as_long_as_it_stands() -> None:
    hands = handing(waits(), fences=("pliant_7", "pliant_9"))
    assert hands.scene(OVER, JOB).behind_s == NOW_S
    assert hands.scene(OVER, replace(JOB, nodes=("n3",))).behind_s == 0.0
    assert hands.scene(OVER, replace(JOB, nodes=("n3",), next_nodes=("n2",))).behind_s == NOW_S
    hands.fence("9", NOW_S - 1)
    assert hands.scene(OVER, JOB).behind_s == 0.0


def test_a_fence_that_stands_makes_way_for_none() -> None:
    hands = handing(waits(**RAN))
    with pytest.raises(Refused, match="Duplicate reservation name"):
        hands.step(Step(Do.FENCE), OVER, JOB)
    assert hands.fence_end_s


def test_where_slurm_does_not_say_which_fences_stand_that_is_not_known() -> None:
    hands = handing()
    hands.clients.refuses = {"reservation": "slurm_load_reservations error: Invalid argument"}
    with pytest.raises(Unavailable, match="Invalid argument"):
        hands.fences()


def test_where_none_stands_slurmctld_is_not_asked_for_its_time() -> None:
    hands = handing(fences=())
    assert not hands.fences()
    assert [argv[1:] for argv in hands.clients.asked] == [("-o", "show", "reservation")]


def test_only_fences_are_ours() -> None:
    assert [*handing(fences=("pliant_7", "maintenance", "pliant_course")).fences()] == ["7"]


@pytest.mark.parametrize(
    ("theirs_s", "now_s", "ahead_s"),
    [(1039, 1040.0, 0.0), (1041, 1041.0, 0.0), (1010, 1010.0, 30.0), (1070, 1070.0, 0.0)],
)
def test_seconds_are_counted_by_slurmctlds_clock(
    theirs_s: int, now_s: float, ahead_s: float
) -> None:
    hands = handing()
    hands.fake.now_s, hands.fake.ahead_s = theirs_s, NOW_S - theirs_s
    scene = hands.scene(OVER, JOB)
    assert (scene.now_s, scene.ahead_s) == (now_s, ahead_s)


def test_clocks_that_differ_by_less_than_a_second_are_told_apart_in_time() -> None:
    """Slurmctld says its time in whole seconds; each answer says a little more."""
    hands, found = handing(), list[float]()
    hands.fake.ahead_s = 0.7
    for now_s in (1039.9, 1100.2, 1160.2):
        hands.fake.now_s = now_s
        found.append(hands.scene(OVER, JOB).ahead_s)
    hands.fake.now_s, hands.fake.ahead_s = 1220.9, 1.1  # it has drifted
    found.append(hands.scene(OVER, JOB).ahead_s)
    assert found == pytest.approx([1.6, 0.9, 0.9, 2.0])


def test_a_clock_that_is_set_is_compared_with_slurmctlds_at_once() -> None:
    hands = handing()
    for set_to_s in (0.0, -3.0, 0.0, 40.0, 0.0):  # ahead of slurmctld's
        hands.fake.ahead_s = set_to_s
        assert hands.scene(OVER, JOB).now_s == NOW_S


def test_until_its_program_has_saved_seconds_are_counted_by_the_clock_that_it_was_asked_by() -> (
    None
):
    hands = handing()
    hands.fake.ahead_s = 30.0
    assert hands.scene(replace(OVER, saved_s=0.0), JOB).now_s == NOW_S + 30


@pytest.mark.parametrize(
    ("ahead_s", "begin_s", "changed"),
    [(30.0, 1071.0, False), (30.0, 1074.0, True), (-30.0, 1041.0, False), (-30.0, 1044.0, True)],
)
def test_a_time_to_begin_that_is_past_by_either_clock_is_nobodys(
    ahead_s: float, begin_s: float, changed: bool
) -> None:
    hands = handing(carrying(2, GPUS, submit_s=1001.0, begin_s=begin_s))
    hands.fake.ahead_s = ahead_s
    assert hands.scene(replace(OVER, guest=""), HAD_TWO).job.changed is changed


@pytest.mark.parametrize(
    ("auth", "stands_s"), [("cred_expire=5", FENCE_S), ("(null)", 151), ("cred_expire=600", 631)]
)
def test_a_fence_stands_until_a_job_that_was_requeued_could_start(
    auth: str, stands_s: float
) -> None:
    hands = handing(fences=())
    hands.fake.auth = auth
    hands.step(Step(Do.FENCE), OVER, JOB)
    (fence_end_s,) = hands.fake.state.fences.values()
    assert fence_end_s == NOW_S + stands_s


@pytest.mark.parametrize("ahead_s", [-200.0, -3.0, 0.0, 3.0, 200.0])
def test_a_fence_begins_and_ends_by_slurmctlds_clock(ahead_s: float) -> None:
    hands = handing(fences=())
    hands.fake.ahead_s = ahead_s
    hands.step(Step(Do.FENCE), OVER, JOB)
    (words,) = hands.clients.took
    assert words[3] == "StartTime=1970-01-01T00:16:20"  # a minute before NOW_S
    (fence_end_s,) = hands.fake.state.fences.values()
    assert fence_end_s >= NOW_S + FENCE_S


def test_a_fence_stands_until_it_has_ended_by_slurmctlds_clock() -> None:
    hands = handing(fences=("pliant_7",))
    hands.fake.ahead_s = 4000.0
    assert [*hands.fences()] == ["7"]
    hands = handing(fences=("pliant_7",))
    hands.fake.state = replace(hands.fake.state, fences={"pliant_7": NOW_S - 1.0})
    hands.fake.ahead_s = -4000.0
    assert not hands.fences()


def test_where_slurmctld_does_not_say_the_clocks_are_taken_to_agree() -> None:
    hands = handing()
    hands.fake.ahead_s = 30.0
    hands.site()  # known from before
    hands.clients.refuses = {"config": "slurm_load_ctl_conf error: Invalid argument"}
    scene = hands.scene(OVER, JOB)
    assert (scene.now_s, scene.ahead_s) == (NOW_S + 30, 0.0)


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
    hands = handing(waits(submit_s=1031.0))
    hands.fake.slurmd = told
    scenes = [hands.scene(replace(OVER, guest=""), JOB) for _ in range(2)]
    assert [scene.job.fresh_s for scene in scenes] == [fresh_s, fresh_s]
    assert hands.clients.asked.count(("scontrol", "-o", "show", "node", "n1,n2")) == 1


def test_where_nobody_says_so_they_may_have_been_started_just_now() -> None:
    hands = handing(waits(submit_s=1031.0))
    hands.clients.refuses = {"node": "slurm_load_node error: Socket timed out"}
    assert hands.scene(replace(OVER, guest=""), JOB).job.fresh_s == 1031.0


@pytest.mark.parametrize(
    ("records", "saved_s", "nodes", "asked"),
    [
        ([waits()], 1030.0, ("n1", "n2"), ["slurmds"]),
        ([waits()], 1030.0, (), []),  # where it ran an earlier pliantd has not stored
        ([waits()], 0.0, ("n1", "n2"), []),
        ([waits(**RAN)], 1030.0, ("n1", "n2"), []),
        ([], 1030.0, ("n1", "n2"), ["killed"]),
        ([], 0.0, ("n1", "n2"), []),
    ],
)
def test_a_look_asks_for_no_more_than_it_needs(
    records: list[Record], saved_s: float, nodes: tuple[str, ...], asked: list[str]
) -> None:
    hands = handing(*records)
    hands.scene(replace(OVER, guest="", saved_s=saved_s), replace(JOB, nodes=nodes))
    named = {"node": "slurmds", "FAILED": "killed"}
    words = [word for argv in hands.clients.asked for word in argv]
    assert [named[word] for word in words if word in named] == asked


def failed(
    start_s: float, end_s: float, code: str, run: int = 3, submit_s: float = 1034.0
) -> Record:
    """It was put back into the queue at 1034."""
    failed = Record(7, "FAILED", run=run, code=code, submit_s=submit_s)
    return replace(failed, start_s=start_s, end_s=end_s)


@pytest.mark.parametrize(
    ("records", "killed"),
    [
        ([failed(1034.0, 1034.0, "1:0")], True),  # in the second of its requeue
        ([failed(1036.0, 1036.0, "1:0")], False),  # it failed by itself, later
        ([failed(1035.0, 1036.0, "15")], True),  # by a kill that was told a second time
        ([failed(1035.0, 1036.0, "9")], True),
        ([failed(1035.0, 1036.0, str(143 << 8))], True),
        ([failed(1035.0, 1036.0, str(1 << 8))], False),
        ([failed(1035.0, 1036.0, "0:9")], True),  # as squeue writes it from 24.11 on
        ([failed(1035.0, 1036.0, "143:0")], True),
        ([failed(1035.0, 1036.0, "1:0")], False),
        ([failed(1035.0, 1040.0, "15")], True),  # what it ran took some seconds to end
        ([failed(1035.0, 1041.0, "15")], False),
        *[  # it had saved: its wrapper died
            ([failed(1010.0, 1035.0, code, run=2, submit_s=1009.0)], True)
            for code in (str(85 << 8), "85:0", "9", "0:9", "0:15", "137:0", "143:0")
        ],
        ([failed(1010.0, 1035.0, "1:0", run=2, submit_s=1009.0)], False),  # it went on, and failed
        ([failed(10_000.0, 10_001.0, "1:0", submit_s=9_999.0)], False),  # a digit more
        ([failed(1034.0, 1034.0, "1:0", run=1)], False),
        # its node went down as its run ended: it was submitted long ago still
        ([failed(1032.0, 1032.0, "1:0", submit_s=998.0)], True),
        ([failed(1032.0, 1033.0, "1:0", submit_s=998.0)], True),
        ([failed(1032.0, 1034.0, "1:0", submit_s=998.0)], False),
        ([failed(1032.0, 1032.0, "1:0", submit_s=999.0)], False),
        ([failed(1033.0, 1033.0, "1:0", submit_s=998.0)], False),
        ([], False),
    ],
)
def test_a_run_that_was_killed_at_its_start_is_known(records: list[Record], killed: bool) -> None:
    sight = handing(*records).scene(OVER, JOB).job
    assert (sight.state, sight.killed) == (None, killed)


@pytest.mark.parametrize(
    ("start_s", "submit_s", "ahead_s", "over", "killed"),
    [
        (1032.0, 998.0, 0.0, RESIZE, True),
        (1032.0, 998.0, 0.0, replace(RESIZE, made=True), False),  # it was told when to begin
        (1032.0, 998.0, 0.0, replace(OVER, made=True), True),  # it asks for no other shape
        (1002.0, 968.0, 30.0, RESIZE, True),  # by a clock that is behind ours
        (1003.0, 968.0, 30.0, RESIZE, False),
        (1002.0, 969.0, 30.0, RESIZE, False),
        (1038.0, 998.0, 0.0, replace(RESIZE, ran_s=1036.0), True),  # it was requeued later
        (1039.0, 998.0, 0.0, replace(RESIZE, ran_s=1036.0), False),
        (1500.0, 998.0, 0.0, replace(RESIZE, ran_s=0.0), True),  # pliantd was dead, and cannot know
        (1001.0, 998.0, 0.0, replace(RESIZE, saved_s=1000.0), False),  # it waited before
        (1032.0, 998.0, 0.0, replace(RESIZE, made=True, told_s=1033.0), True),  # which is forgotten
        (1033.0, 998.0, 0.0, replace(RESIZE, made=True, told_s=1033.0, ran_s=1033.0), False),
    ],
)
def test_so_is_one_that_began_elsewhere_as_its_node_went_down(
    start_s: float, submit_s: float, ahead_s: float, over: HandOver, *, killed: bool
) -> None:
    """Slurm has noted no new SubmitTime for it."""
    hands = handing(failed(start_s, start_s, "1:0", submit_s=submit_s))
    hands.fake.now_s, hands.fake.ahead_s = NOW_S - ahead_s, ahead_s
    assert hands.scene(over, JOB).job.killed is killed


def test_who_is_parted_loses_its_mark_before_it_may_start_again() -> None:
    """Slurm would start it beside the same partner at once."""
    alone = Shape(1, 0, kind=Kind.CPU)
    spec = Spec(Request(colocate=True, malleable=Malleable()), alone, mark="n1")
    job = replace(JOB, nodes=("n1",), shape=alone, spec=spec, shares=True, partitions=("gpu",))
    job = replace(job, nodes_required=("n1",))
    also = [("MinMemory", "100M"), ("OverSubscribe", "YES"), ("ReqNodes", "n1")]
    marked = waits(7, also, cpus=4, run=3, comment=put_token("", spec), begin_s=NOW_S)
    hands = handing(marked)
    assert hands.scene(replace(OVER, guest=""), job).job.carries is None
    hands.step(Step(Do.RESHAPE, begin_s=NOW_S), replace(OVER, shape=alone, guest=""), job)
    token = put_token("", replace(spec, set=alone, mark="-", footprint=job.footprint))
    assert hands.clients.told == [
        (
            *("update", "jobid=7", f"AdminComment={token}"),
            *("StartTime=1970-01-01T00:17:20", "OverSubscribe=NO", "ReqNodeList="),
        )
    ]


GPUS = Spec(Request(malleable=Malleable()), Shape(1, 2))
TAKEN = Shape(1, 1)
HAD_TWO = replace(
    JOB,
    shape=Shape(1, 2),
    spec=GPUS,
    shapes=(TAKEN, Shape(1, 2)),
    start_s=1000.0,
    partitions=("gpu",),
)


def carrying(gpus: int, spec: Spec, also: Also = (), **said: Any) -> Record:
    """The job between two runs, which asks for GPUs and has a core for all of them."""
    plain = {"cpus": 1, "min_cpus": 1, "run": 3, "comment": put_token("", spec), "submit_s": 1034.0}
    return waits(7, also, gpus=gpus, **{**plain, **said})


BEGIN = ("StartTime=1970-01-01T00:17:20",)


def turning(hands: Hands, spec: Spec = GPUS) -> list[tuple[str, ...]]:
    """What is told to Slurm of the job where a hand-over turns back."""
    job = replace(HAD_TWO, spec=spec, footprint=spec.footprint or JOB.footprint)
    over = replace(OVER, shape=TAKEN, before=Shape(1, 2), back_s=1039.0, guest="")
    hands.step(Step(Do.PUT_BACK, begin_s=NOW_S), over, job)
    return [words[2:] for words in hands.clients.told if words[0] == "update"]


def reshaped(record: Record, job: Job = HAD_TWO, shape: Shape = TAKEN) -> tuple[str, ...]:
    """What Slurm is told for the shape of a hand-over."""
    hands = handing(record)
    over = replace(OVER, shape=shape, before=job.shape, guest="", end_s=2500.0)
    hands.step(Step(Do.RESHAPE, begin_s=NOW_S), over, job)
    (words,) = hands.clients.told
    return words


ALONE = Shape(1, 0, kind=Kind.CPU)


def test_nodes_that_an_owner_names_stay_named_and_only_a_mark_of_ours_is_taken_away() -> None:
    named = [("ReqNodes", "n1"), ("MinMemory", "100M")]
    words = reshaped(
        carrying(2, GPUS, named, limit_min=24), replace(HAD_TWO, nodes_required=("n1",))
    )
    assert not any(word.startswith(("ReqNodeList", "OverSubscribe")) for word in words)
    token = put_token("", replace(GPUS, set=TAKEN, footprint=HAD_TWO.footprint))
    assert f"AdminComment={token}" in words
    spec = Spec(Request(colocate=True, malleable=Malleable()), ALONE, mark="*")
    job = replace(HAD_TWO, shape=ALONE, spec=spec, shares=True, nodes_required=("n1",))
    marked = carrying(0, spec, [*named, ("OverSubscribe", "YES")], limit_min=24)
    words = reshaped(marked, job, ALONE)
    assert "OverSubscribe=NO" in words
    assert "ReqNodeList=" not in words


def test_what_is_half_taken_of_a_shape_is_asked_again() -> None:
    """Its GPUs are those of it already, and its CPUs are not."""
    footprint = Footprint(cpus_per_gpu=1)
    spec = replace(GPUS, set=TAKEN, footprint=footprint)
    half = carrying(1, spec, cpus=2, min_cpus=2, limit_min=24)
    job = replace(HAD_TWO, spec=replace(spec, set=None), footprint=footprint)
    assert {"NumCPUs=1", "MinCPUsNode=1"} <= {*reshaped(half, job)}


def test_of_a_shape_without_gpus_that_cannot_be_asked_not_even_the_token_is_written() -> None:
    spec = Spec(Request(malleable=Malleable()), ALONE)
    job = replace(HAD_TWO, shape=ALONE, spec=spec)
    with pytest.raises(Refused, match="cannot give up its GPUs"):
        reshaped(carrying(0, spec, limit_min=24), job, replace(ALONE, nodes=2))


def test_the_call_that_reshapes_notes_the_owners_time_min() -> None:
    """A job has none from its requeue to its start."""
    words = reshaped(carrying(2, GPUS, [("MinTime", "10:00")], limit_min=25))
    (comment,) = (word for word in words if word.startswith("AdminComment="))
    assert comment.startswith("AdminComment=pliant-time-min=10 pliant=v1:")
    assert {"TimeMin=0", "TimeLimit=24"} <= {*words}


@pytest.mark.parametrize(
    "changed",
    [
        carrying(2, GPUS, [("ReqNodes", "n9")], limit_min=24),
        carrying(2, GPUS, [("Feature", "fast")], limit_min=24),
        carrying(2, GPUS, [("Account", "other")], limit_min=24),
        # Slurm itself lets nothing begin so long after its requeue
        carrying(2, GPUS, limit_min=24, begin_s=31_536_000.0),
    ],
)
def test_it_is_not_made_where_the_job_was_changed_since_the_last_look(changed: Record) -> None:
    with pytest.raises(Refused, match="it was changed since it was asked; its owner wins"):
        reshaped(changed)
    words = reshaped(carrying(2, GPUS, [("ReqNodes", "")], limit_min=24))
    assert words[2] == "Gres=gpu:1"
    assert "ReqNodeList=" not in words


@pytest.mark.parametrize(
    ("least", "priority", "told"),
    [
        ("1000M", PINNED, []),
        ("9G", PINNED, [("release", "7")]),
        ("9G", 500, []),
    ],
)
def test_who_was_changed_since_the_last_look_has_no_pin_when_its_fence_falls(
    least: str, priority: int, told: list[tuple[str, ...]]
) -> None:
    """What was noted stays: the next look tells by it that the job was changed."""
    noted = put_token("pliant-priority=500 pliant-memory=1000", GPUS)
    also = [("MinMemory", least)]
    hands = handing(carrying(2, GPUS, also, priority=priority, limit_min=24, comment=noted))
    over = replace(OVER, shape=TAKEN, before=Shape(1, 2), end_s=2500.0)
    hands.step(Step(Do.UNFENCE), over, HAD_TWO)
    assert hands.clients.told == [*told, ("delete", "ReservationName=pliant_7")]
    kept = 500 if told else priority
    assert (job_of(hands).priority, job_of(hands).comment) == (kept, noted)


@pytest.mark.parametrize(
    ("saved_s", "ran"),
    [
        (0.0, {}),  # a fence that is left of a hand-over from before
        (1030.0, RAN),  # it is released next
    ],
)
def test_a_pin_is_left_by_the_fall_of_a_fence_otherwise(
    saved_s: float, ran: Mapping[str, Any]
) -> None:
    hands = handing(carrying(2, GPUS, [("Feature", "fast")], priority=PINNED, **ran))
    hands.step(Step(Do.UNFENCE), replace(OVER, saved_s=saved_s), HAD_TWO)
    assert hands.clients.told == [("delete", "ReservationName=pliant_7")]


def test_what_is_left_of_hand_overs_is_taken_back() -> None:
    """A fence first: until it is open to all, the pin keeps the job before them."""
    pinned = waits(7, priority=PINNED, comment="pliant-priority=500")
    owes = waits(8, comment="pliant-nice=70")
    hands = handing(pinned, owes, waits(9))
    assert hands.release() == {"7": "", "8": ""}
    assert hands.clients.told == [
        ("delete", "ReservationName=pliant_7"),
        ("release", "7"),
        ("update", "jobid=7", "AdminComment="),
        ("update", "jobid=8", "Nice=70"),
        ("update", "jobid=8", "AdminComment="),
    ]
    hands = handing(pinned, owes)
    hands.clients.refuses = {"delete": "no fence", "Nice=": "no nice"}
    assert hands.release() == {
        "7": "job 7: unfence: no fence",
        "8": "job 8: give back: no nice",
    }
    assert job_of(hands).priority == PINNED


def test_memory_that_was_applied_alone_is_put_back() -> None:
    with_mem = replace(GPUS, footprint=Footprint(mem_per_gpu_mib=100))
    hands = handing(carrying(2, with_mem, [("MinMemory", "100M")]))
    assert "MinMemoryNode=200" in turning(hands, with_mem)[0]


@pytest.mark.parametrize(
    "said", [{"also": [("Feature", "fast")]}, {"dependency": "after:6"}, {"nodes": 2}]
)
def test_what_its_owner_has_said_since_the_last_look_is_not_put_back(said: dict[str, Any]) -> None:
    hands = handing(carrying(2, GPUS, **said))
    with pytest.raises(TooLate, match="it was changed since it was asked; its owner wins"):
        turning(hands)
    assert hands.clients.told == []


def test_what_was_not_applied_needs_no_putting_back() -> None:
    hands = handing(carrying(2, GPUS))
    turning(hands)
    assert hands.clients.told == [("update", "jobid=7", *BEGIN)]


@pytest.mark.parametrize("refuses", [{}, {"Gres=": "no"}])
def test_what_is_half_applied_is_put_back_before_a_begin_time_of_its_own(
    refuses: dict[str, str],
) -> None:
    hands = handing(carrying(1, replace(GPUS, set=TAKEN)))
    hands.clients.refuses = refuses
    first, *rest = turning(hands)
    assert first[0] == "Gres=gpu:2"
    assert first[-1] == f"AdminComment={put_token('', GPUS)}"
    assert rest == [BEGIN]  # whatever came of the first
    assert (job_of(hands).gpus, job_of(hands).begin_s) == (1 if refuses else 2, NOW_S)


def test_a_pin_is_refused_by_slurm_where_that_holds_a_job_for_its_shape() -> None:
    """It is given up in time, as all that is refused: the next look shows nothing else."""
    for reason, kind in (("BadConstraints", Refused), ("JobHeldUser", TooLate)):
        hands = handing(carrying(1, replace(GPUS, set=TAKEN), priority=0, reason=reason))
        with pytest.raises(Refused) as told:
            hands.step(Step(Do.PIN), replace(OVER, guest=""), HAD_TWO)
        assert (type(told.value), hands.clients.told) == (kind, [])


@pytest.mark.parametrize(
    ("then", "rest"),
    [
        ({}, [BEGIN]),  # 22.05 frees a job by the update
        ({"priority": 0, "reason": "BadConstraints"}, [("release", "7"), BEGIN]),
        ({"priority": 0, "reason": "JobHeldUser"}, [BEGIN]),  # its owner has spoken in between
    ],
)
def test_what_slurm_holds_for_its_shape_is_freed_once_that_is_put_back(
    then: dict[str, Any], rest: Sequence[object]
) -> None:
    hands = handing(carrying(1, replace(GPUS, set=TAKEN), priority=0, reason="BadConstraints"))
    seen = hands.scene(replace(OVER, guest=""), HAD_TWO).job
    assert (seen.held, seen.blocked) == (False, "BadConstraints")
    run = hands.clients.run

    def updated(argv: Sequence[str], **how: Any) -> Answer:
        answer = run(argv, **how)
        if "Gres=gpu:2" in argv:
            hands.has(**then)
        return answer

    hands.clients.run = updated  # type: ignore[method-assign]  # speaks in between
    turning(hands)
    put_back, *told = hands.clients.told
    assert put_back[2] == "Gres=gpu:2"
    assert [words[2:] if words[0] == "update" else words for words in told] == rest


@pytest.mark.parametrize(
    ("half", "carries"),
    [({}, TAKEN), ({"cpus": 2}, None), ({"min_cpus": 2}, None), ({"gpus": 2}, Shape(1, 2))],
)
def test_what_is_half_made_of_a_shape_is_not_that_shape(
    half: dict[str, Any], carries: Shape | None
) -> None:
    """Else what is left of it would be taken for what its owner asks since."""
    footprint = Footprint(cpus_per_gpu=1)
    spec = replace(GPUS, set=TAKEN, footprint=footprint)
    hands = handing(carrying(**{"gpus": 1, "spec": spec, **half}))
    over = replace(OVER, guest="", shape=TAKEN, before=Shape(1, 2))
    job = replace(HAD_TWO, spec=replace(spec, set=None), footprint=footprint)
    assert hands.scene(over, job).job.carries == carries


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
    hands = handing(carrying(carries, GPUS, [("MinTime", "10:00")], limit_min=29))
    noted = f"AdminComment={put_token('', GPUS)} pliant-time-min=10"
    first, *others = turning(hands)
    assert first == ("TimeMin=0", noted)
    assert all("pliant-time-min=10" in words[-1] for words in others[:-1])
    assert (len(others), others[-1]) == (3 - carries, BEGIN)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Access/permission denied for job 7", Infeasible),
        (
            "Invalid time-min specification (exceeds job's time or other limits) for job 7",
            Infeasible,
        ),
        ("Invalid generic resource (gres) specification for job 7", Infeasible),
        ("Invalid GRES specification (with and without type identification) for job 7", Infeasible),
        ("Invalid feature specification for job 7", Infeasible),
        ("Invalid qos specification for job 7", Infeasible),
        (
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
            " for job 7",
            Infeasible,
        ),
        ("Requested node configuration is not available for job 7", Infeasible),
        ("Requested time limit is invalid (missing or exceeds some limit) for job 7", Infeasible),
        ("Update of this parameter is not supported: AdminComment for job 7", Infeasible),
        ("Job resizing not supported for job arrays for job 7", Infeasible),
        ("Requested partition configuration not available now for job 7", Closed),
        ("Job is pending execution", Refused),
        ("Transport endpoint is already connected", Refused),
    ],
)
def test_what_is_refused_for_good_is_told_apart(words: str, kind: type[Refused]) -> None:
    hands = handing(waits(**RAN))
    hands.clients.refuses = {"requeue": words}
    with pytest.raises(Refused) as told:
        hands.step(Step(Do.REQUEUE), OVER, JOB)
    assert type(told.value) is kind


def lent(also: Also = (), **said: Any) -> Record:
    """A job that lent its --time-min of 20 minutes."""
    return waits(7, also, comment=f"{put_token('', GPUS)} pliant-time-min=20", **said)


def test_an_owner_has_the_time_min_again_that_a_hand_over_borrowed() -> None:
    words = ("TimeMin=20", f"AdminComment={put_token('', GPUS)}")
    newer = lent([("MinTime", "5:00")], limit_min=30)  # its owner's since
    for record, told in ((lent(limit_min=30), words), (newer, words[1:])):
        hands = handing(record)
        hands.step(Step(Do.GIVE_BACK), OVER, JOB)
        assert hands.clients.told == [("update", "jobid=7", word) for word in told]
    with pytest.raises(Refused, match="has all that was its own"):
        handing(lent(limit_min=19)).step(Step(Do.GIVE_BACK), OVER, JOB)


@pytest.mark.parametrize(
    ("record", "may_be_put_back"),
    [
        (lent(limit_min=20), True),
        (lent([("TimeLimit", "UNLIMITED")]), True),
        (lent(limit_min=19), False),  # Slurm refuses it, and its owner may lengthen that yet
        (lent([("MinTime", "5:00")], limit_min=19), True),  # what was noted is only forgotten
        (lent(limit_min=20, state="RUNNING"), False),  # it would do nothing
    ],
)
def test_a_time_min_is_owed_where_slurm_takes_it(record: Record, may_be_put_back: bool) -> None:
    assert owed(row(record)) is may_be_put_back


@pytest.mark.parametrize(
    ("comment", "ran", "is_owed"),
    [
        (put_token("", GPUS), {}, True),
        (put_token("", GPUS), RAN, False),  # Slurm changes it of no job that runs
        (put_token("", replace(GPUS, set=TAKEN)), {}, False),
        ("of others", {}, False),
    ],
)
def test_least_cpus_are_owed_to_one_that_waits_in_its_own_shape(
    comment: str, ran: Mapping[str, Any], is_owed: bool
) -> None:
    assert owed(row(waits(comment=f"{comment} pliant-min-cpus=2", **ran))) is is_owed


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
    held = waits(reason=reason, priority=0, run=4, submit_s=1035.0)
    scene = handing(held, fences=()).scene(replace(OVER, guest=""), JOB)
    assert scene.job.held
    assert next_step(OVER, scene) == Step(Do.END, outcome=outcome)


@pytest.mark.parametrize("state", ["SUSPENDED", "STOPPED"])
def test_a_job_that_is_suspended_is_not_taken_for_one_that_is_only_held(state: str) -> None:
    """STOPPED: by a signal, as `scontrol` shows it."""
    hands = handing(waits(**RAN))
    hands.fake.told(("suspend", "7"))
    job = replace(hands.fake.state.jobs[7], state=state)
    hands.fake.state = hands.fake.state.with_job(job)
    scene = hands.scene(replace(OVER, guest=""), JOB)
    assert (scene.job.held, scene.job.suspended) == (True, True)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (waits(run=2, **RAN), ""),
        (waits(run=2, **{**RAN, "state": "SUSPENDED"}), "does not run any"),  # Slurm would hold it
        (waits(run=2, state="FAILED", code="0:9", start_s=1000.0, end_s=1036.0), ""),  # killed
        (waits(run=2, state="COMPLETING", start_s=1035.0, final="CANCELLED"), "does not run any"),
        (waits(run=2, state="CANCELLED", start_s=1035.0, end_s=1036.0), "does not run any"),
    ],
)
def test_a_run_is_requeued_that_its_owner_has_not_just_cancelled_or_suspended(
    record: Record, words: str
) -> None:
    """Slurm would let it come back."""
    hands = handing(record)
    if words:
        with pytest.raises(TooLate, match=words):
            hands.step(Step(Do.REQUEUE), OVER, JOB)
    else:
        hands.step(Step(Do.REQUEUE), OVER, JOB)
    assert hands.clients.told == ([] if words else [("requeue", "7")])


AROUND = ("update", "ReservationName=pliant_7", "Nodes=n1,n2,n4,n5")
BEGINS = replace(OVER, shape=TAKEN, guest="")


@pytest.mark.parametrize(
    ("do", "over", "told"),
    [
        (Do.UNFENCE, BEGINS, [AWAY]),
        (Do.RESHAPE, BEGINS, [AROUND, ("update", "jobid=7")]),
        (Do.PUT_BACK, replace(BEGINS, back_s=1039.0), [AROUND, ("update", "jobid=7")]),
        (Do.PIN_GUEST, OVER, [AROUND, ("update", "jobid=8")]),
    ],
)
def test_a_job_is_kept_from_other_nodes_before_it_may_start_and_until_it_has(
    do: Do, over: HandOver, told: Sequence[tuple[str, ...]]
) -> None:
    hands = handing(carrying(2, GPUS), waits(8))
    step = Step(do, begin_s=NOW_S + 1, aside=frozenset(("n5", "n4")))
    hands.step(step, over, HAD_TWO)
    seen = hands.clients.told
    assert [words[: len(of)] for of, words in zip(told, seen, strict=True)] == [*told]


@pytest.mark.parametrize("do", [Do.UNFENCE, Do.RESHAPE])
def test_where_its_fence_may_not_be_around_other_nodes_it_starts_all_the_same(do: Do) -> None:
    hands = handing(carrying(2, GPUS))
    hands.clients.refuses = {"Nodes=": "Requested nodes are busy"}
    hands.step(Step(do, begin_s=NOW_S + 1, aside=frozenset({"n4"})), BEGINS, HAD_TWO)
    last = hands.clients.told[-1]
    assert last[:2] == ("update", "jobid=7") if do is Do.RESHAPE else last[0] == "delete"
