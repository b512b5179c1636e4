"""Running jobs that may change: what policies are shown of them, and what is begun and tidied up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from build import job as waiting
from build import node, snapshot
from slurm_hands import NOW_S, Hands, slurm_of

from fake_door import stays
from pliant.batch import FENCE
from pliant.cycle import view
from pliant.daemon.elastic import MUTE_S, UNMANAGED, Elastic, _fenced_alone
from pliant.daemon.handing import REST_S, STALE_S, Wanted, name_of
from pliant.daemon.munge import Munge, Proof
from pliant.daemon.munge_door import MungeDoor, Watches
from pliant.daemon.rights import Asker
from pliant.daemon.run_verbs import RunVerbs
from pliant.daemon.watching import Watching
from pliant.errors import Refused
from pliant.grammar import parse
from pliant.handover import GIVE_UP_S, GUEST, OURS, PINNED, RETURNS, Do, Outcome
from pliant.model import (
    ALL_CORES,
    ARRAY_LIMIT,
    BEGUN_ARRAY,
    ONE_OF_ARRAY,
    Footprint,
    Job,
    JobClass,
    JobState,
    Kind,
    Malleable,
    Partition,
    Request,
    Reservation,
    Shape,
    Snapshot,
    Spec,
    asks_otherwise,
)
from pliant.node.door import ANSWER_S, MOST_S
from pliant.plan import Claim, Plan, Preempt, Reshape, Start
from pliant.policies.easy import EasyBackfill
from pliant.store import HandOverRow, Store
from pliant.wire import Message, decode, encode
from pliant.wire.runs import WATCH_S

FOUR, TWO, ONE = Shape(1, 4), Shape(1, 2), Shape(1, 1)
GPUS = (Fraction(1), Fraction(2), Fraction(4))
MALLEABLE = Request(gpus=GPUS, malleable=Malleable(30), steps=100)
BEST_EFFORT = Request(gpus=GPUS, job_class=JobClass.BEST_EFFORT)
JOB = Job(
    "7",
    user="alice",
    account="lab",
    qos="normal",
    partitions=("gpu",),
    state=JobState.RUNNING,
    shape=FOUR,
    shapes=(ONE, TWO, FOUR),
    footprint=Footprint(cpus_per_gpu=2),
    spec=Spec(MALLEABLE, own=FOUR),
    start_s=1000.0,
    nodes=("n1",),
)
EFFORT = replace(JOB, spec=Spec(BEST_EFFORT, own=FOUR))
BY_NODES = Request(nodes=(1, 2), malleable=Malleable(30))
PLAIN = replace(JOB, spec=Spec(Request(gpus=GPUS), own=FOUR))
TRIAL = replace(waiting(8, "4"), spec=Spec(Request(job_class=JobClass.TRIAL), own=FOUR))


class Bench:
    """What is known of running jobs, with a clock that tests set."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.hands = directory, Hands(slurm_of(JOB))
        self.told: list[str] = []
        self.woken = 0
        self.decided: tuple[Snapshot, Plan] | None = None
        self.start()

    def start(self) -> None:
        self.store = Store(self.directory)
        self.elastic = Elastic(
            *(self.hands, self.store, lambda: self.now_s, lambda: self.now_s),
            changed=self.told.append,
            wake=self.wake,
        )
        self.counted: list[tuple[HandOverRow, Outcome]] = []
        self.elastic.count = lambda row, outcome: self.counted.append((row, outcome))

    @property
    def now_s(self) -> float:
        return self.hands.fake.now_s

    @now_s.setter
    def now_s(self, now_s: float) -> None:
        self.hands.fake.pass_to(now_s)

    def slurm_has(self, *jobs: Job) -> None:
        """Let these be all jobs of Slurm's."""
        self.hands.fake.state = slurm_of(*jobs).state

    def wake(self) -> None:
        self.woken += 1

    def look(self, *running: Job, waiting: tuple[Job, ...] = ()) -> None:
        """As after a look that saw these."""
        self.elastic.looking()
        seen = self.seen(*running, waiting=waiting)
        self.elastic.looked(seen, always)
        self.elastic.give_back(seen)

    def close(self, closed: Callable[[Snapshot], Snapshot]) -> None:
        """As if the last cycle had seen it so."""
        assert self.decided is not None
        seen, plan = self.decided
        self.elastic.decided(closed(seen), plan)

    def name(self) -> str:
        """How what is wanted of job 7 is called, or was last."""
        row = self.store.handovers("7")[-1]
        return f"{row.run}.{row.at_s:.3f}"

    def preempted(self, job: Job) -> None:
        """It was asked, has saved and waits; pliantd was started again since."""
        self.look(job)
        self.listens(job)
        self.elastic.overs.begin(job, Wanted(job.shape, guest="8"), self.now_s + 60, "room")
        (row,) = self.store.handovers(job.id)
        self.store.handed_over(row.id, self.now_s, Outcome.DONE)
        self.store.close()
        self.start()

    def stays(self) -> bool:
        """Whether job 7 is told to go on where it is once it has saved."""
        self.elastic.overs.saved("7", 0, self.name())
        return self.elastic.overs.stays("7", 0, self.name())

    def listens(self, job: Job = JOB) -> None:
        """Its program launched at once, and works since."""
        self.elastic.runs.heard(job, job.restarts, launched=True, step=50)

    def seen(self, *running: Job, waiting: tuple[Job, ...] = ()) -> Snapshot:
        return self.elastic.known(Snapshot(self.now_s, (), (), running=running, waiting=waiting))

    def one(self, job: Job = JOB) -> Job:
        (found,) = self.seen(job).running
        return found


def always(_job: Job) -> bool:
    return True


def never(_job: Job) -> bool:
    return False


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_policies_may_change_a_malleable_job_once_its_program_listens(bench: Bench) -> None:
    assert (bench.one().shapes, bench.one().preemptible) == ((FOUR,), False)
    bench.listens()
    job = bench.one()
    assert (job.shapes, job.preemptible) == ((ONE, TWO, FOUR), False)
    assert (job.grace_s, job.progress, job.next_shape) == (30.0, 0.5, None)


def test_what_its_wrapper_was_told_of_its_checkpoints_counts(bench: Bench) -> None:
    bench.listens()
    bench.elastic.runs.may_take(JOB, 0, 10.0)
    bench.now_s += 500.0
    bench.listens()
    assert bench.one().grace_s == 10.0
    assert [*bench.elastic.begin(reshape(bench.one()), always)]
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert over.until_s == bench.now_s + 10.0


def test_what_is_shown_of_one_that_does_not_listen_yet_or_has_lost_its_wrapper(
    bench: Bench,
) -> None:
    assert (bench.one().grace_s, bench.one().frozen) == (0.0, "")
    bench.listens()
    bench.elastic.runs.heard(JOB, 0, lost=True)
    assert bench.one().frozen == UNMANAGED
    assert bench.one(replace(JOB, frozen="it is held")).frozen == "it is held"


def test_a_shape_that_was_refused_is_not_offered_again(bench: Bench) -> None:
    bench.listens()
    row = HandOverRow(0, NOW_S, "7", "alice", "lab", 0, "4", "2", "", "it fits", NOW_S + 60)
    bench.store.handed_over(bench.store.hand_over(row), NOW_S, f"{Outcome.REFUSED}: no")
    assert bench.one().shapes == (ONE, FOUR)


def test_one_that_has_just_started_is_not_mute_however_long_others_were_heard(
    bench: Bench,
) -> None:
    bench.look(EFFORT)
    bench.now_s += MUTE_S + 1
    bench.look(EFFORT)
    assert bench.one(EFFORT).preemptible
    assert not bench.one(replace(EFFORT, restarts=1, start_s=bench.now_s)).preemptible
    assert not bench.one(EFFORT).preemptible  # it did not run meanwhile


def test_one_that_has_just_started_is_not_mute_however_long_its_run_before_took_to_end(
    bench: Bench,
) -> None:
    """Slurm shows the next run's number from the requeue on."""
    bench.look(EFFORT)
    again = replace(EFFORT, restarts=1)
    bench.look(replace(again, state=JobState.ENDING))
    bench.now_s += MUTE_S + 1
    bench.look(again)
    assert not bench.one(again).preemptible


def test_one_that_has_just_started_is_not_mute_by_a_clock_that_was_set_ahead(bench: Bench) -> None:
    bench.look()
    bench.now_s += MUTE_S + 1
    bench.look()
    assert not bench.one(replace(EFFORT, start_s=bench.now_s - 4000.0)).preemptible


def test_a_job_that_never_changes_is_awaited_for_nothing(bench: Bench) -> None:
    bench.now_s += 50.0
    bench.listens(PLAIN)
    assert bench.now_s < bench.elastic.matures_s(bench.seen(JOB)) < float("inf")
    assert bench.elastic.matures_s(bench.seen(PLAIN)) == float("inf")


def test_who_makes_room_is_on_its_way_to_no_other_place(bench: Bench) -> None:
    bench.look(EFFORT)
    bench.now_s += MUTE_S + 1
    [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]
    assert (bench.one(EFFORT).room_for, bench.one(EFFORT).next_nodes) == ("8", ())
    back = waiting(7, "4", spec=EFFORT.spec, frozen="it is held")
    (shown,) = bench.seen(waiting=(back,)).waiting
    assert (shown.frozen, shown.room_for) == ("it is held", "8")
    seen = snapshot([node("n1", gpus=4)], [back], [])
    assert bench.elastic.arriving(seen) == seen


def test_a_job_that_says_nothing_of_it_is_shown_as_it_was_seen(bench: Bench) -> None:
    assert bench.one(PLAIN) is PLAIN
    assert bench.one(replace(JOB, spec=None)).spec is None


def test_what_heartbeats_told_is_shown_of_every_job_of_that_name_unless_its_owner_said_it(
    bench: Bench,
) -> None:
    named = replace(JOB, name="train")
    bench.elastic.runs.heard(named, 0, launched=True, rate=2.0)
    waits = replace(named, id="8", state=JobState.WAITING)
    given = replace(MALLEABLE, throughput=((ONE, 1.0),))
    told = replace(waits, id="9", spec=Spec(given, own=FOUR))
    plain = replace(waits, id="10", spec=None)
    seen = bench.seen(named, waiting=(waits, told, plain))
    assert [job.measured for job in seen.running] == [((FOUR, 2.0),)]
    assert [job.measured for job in seen.waiting] == [((FOUR, 2.0),), (), ()]


def test_a_best_effort_job_makes_room_where_it_listens_or_nobody_is_there_to_ask(
    bench: Bench,
) -> None:
    bench.look(EFFORT)
    seen = [bench.one(EFFORT).preemptible]
    bench.now_s += MUTE_S + 1
    seen.append(bench.one(EFFORT).preemptible)
    bench.listens(EFFORT)
    seen.append(bench.one(EFFORT).preemptible)  # it has just been launched
    bench.now_s += 3 * MUTE_S + 10
    seen.append(bench.one(EFFORT).preemptible)  # it has been silent since
    bench.start()
    seen.append(bench.one(EFFORT).preemptible)  # what it once said is known to the next pliantd
    bench.listens(EFFORT)
    seen.append(bench.one(EFFORT).preemptible)
    assert seen == [False, True, False, False, False, True]
    assert bench.one(EFFORT).shapes == (FOUR,)


def test_nobody_is_taken_for_mute_who_could_not_be_heard_yet(bench: Bench) -> None:
    """Its `pliant run` looks for a pliantd that was away after a pause of a minute."""
    bench.now_s += 5000.0
    seen = [bench.one(EFFORT).preemptible]  # before the first look
    bench.look(EFFORT)
    bench.now_s += MUTE_S - 1
    bench.look(EFFORT)
    seen.append(bench.one(EFFORT).preemptible)
    bench.elastic.stood_by()
    bench.look(EFFORT)
    bench.now_s += MUTE_S - 1
    seen.append(bench.one(EFFORT).preemptible)
    bench.now_s += 2
    seen.append(bench.one(EFFORT).preemptible)
    assert seen == [False, False, False, True]


def test_a_program_has_longer_to_speak_than_it_ever_pauses() -> None:
    assert MUTE_S > WATCH_S + ANSWER_S + MOST_S + ANSWER_S


def shrink(job: Job, guest: str = "") -> Plan:
    if guest:
        return Plan(preempts=(Preempt(job, guest, "it loses least"),))
    return reshape(job, ONE)


def reshape(job: Job, to: Shape = TWO) -> Plan:
    return Plan(reshapes=(Reshape(job, to, ("n1",), "it fits better"),))


def test_a_reshape_is_asked_of_the_program_and_shown_to_the_next_cycle(bench: Bench) -> None:
    bench.listens()
    (decision,) = bench.elastic.begin(reshape(bench.one()), always)
    assert (decision.what, decision.shape, decision.reason) == ("reshape", "2", "it fits better")
    job = bench.one()
    assert (job.next_shape, job.next_nodes, job.shapes) == (TWO, ("n1",), (FOUR,))
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert (over.until_s, bench.told) == (bench.now_s + 30.0, ["7"])
    assert [*bench.elastic.begin(reshape(job), always)] == []  # one at a time
    waiting = replace(JOB, state=JobState.WAITING, restarts=1)
    (shown,) = bench.seen(waiting=(waiting,)).waiting
    assert (shown.shapes, shown.frozen) == ((FOUR,), "it is on its way to another shape")


@pytest.mark.parametrize(
    ("job", "acts"),
    [(JOB, never), (replace(JOB, state=JobState.ENDING), always)],
)
def test_nothing_is_begun_where_pliant_does_not_act_or_the_job_ends(
    bench: Bench, job: Job, acts: Any
) -> None:
    bench.listens()
    assert [*bench.elastic.begin(reshape(job), acts)] == []
    assert bench.elastic.overs.all() == {}


def test_nothing_is_begun_of_a_job_that_makes_room_where_pliant_does_not_act(
    bench: Bench,
) -> None:
    bench.listens(EFFORT)
    assert [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), never)] == []
    assert bench.elastic.overs.all() == {}


def test_a_job_that_may_not_change_is_never_stopped(bench: Bench) -> None:
    """Whatever a policy says; nor where nobody could be asked."""
    bench.look(PLAIN)
    bench.now_s += MUTE_S + 1
    assert [*bench.elastic.begin(shrink(PLAIN, "8"), always)] == []


def test_one_that_nobody_can_ask_makes_room_though_its_program_would_not_go_back(
    bench: Bench,
) -> None:
    """The batch system requeues it: its program ends nothing by itself."""
    bench.look(EFFORT)
    bench.now_s += MUTE_S + 1
    bench.hands.stranded = True
    assert [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]


def test_why_nothing_is_begun_is_logged_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """It is chosen again in each cycle."""
    bench.hands.stranded = True
    for job_id in "7789987":
        job = replace(JOB, id=job_id)
        bench.listens(job)
        assert [*bench.elastic.begin(reshape(bench.one(job)), always)] == []
    words = [record.message for record in caplog.records if record.name == "pliant.elastic"]
    assert words == [f"job {job_id}: nothing would send it back" for job_id in "78987"]


def test_nothing_is_asked_of_a_program_that_does_not_listen(bench: Bench) -> None:
    bench.elastic.runs.heard(JOB, 0)
    bench.now_s += 500.0
    assert [*bench.elastic.begin(reshape(JOB), always)] == []


def test_a_preemption_names_the_guest_and_counts(bench: Bench) -> None:
    bench.look(EFFORT)
    bench.now_s += MUTE_S + 1
    plan = Plan(preempts=(Preempt(bench.one(EFFORT), "8", "it loses least"),))
    (decision,) = bench.elastic.begin(plan, always)
    assert (decision.what, decision.reason) == (
        "preempt",
        "makes room for job 8: it loses least",
    )
    assert (bench.one(EFFORT).room_for, bench.one(EFFORT).next_shape) == ("8", None)
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert (over.saved_s, over.until_s) == (bench.now_s, 0.0)  # nothing is awaited
    bench.start()
    assert bench.one(EFFORT).preempted == 1


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.CHANGED, Outcome.SLOW])
def test_who_does_not_start_in_the_room_made_for_it_is_no_trial_job_for_a_while(
    bench: Bench, outcome: Outcome
) -> None:
    """Also where the owner of the job that made room has changed that, or pliantd stood still."""
    trial = Spec(Request(job_class=JobClass.TRIAL), own=FOUR)
    guest = replace(JOB, id="8", state=JobState.WAITING, nodes=(), spec=trial, time_limit_s=600)
    bench.look(EFFORT, waiting=(guest,))
    bench.now_s += MUTE_S + 1
    [*bench.elastic.begin(Plan(preempts=(Preempt(bench.one(EFFORT), "8", "loses least"),)), always)]
    bench.slurm_has(EFFORT, guest)
    bench.hands.fake.told(("hold", "8"), by_owner=True)
    while bench.elastic.overs.of("7") is not None:
        bench.hands.pass_time(1)
        bench.elastic.overs.turn()
        if bench.hands.job.waits and outcome is Outcome.CHANGED:
            bench.hands.has(gpus=3)
        elif bench.hands.job.waits and outcome is Outcome.SLOW:
            bench.hands.fake.state = replace(bench.hands.fake.state, down=frozenset({"n1"}))
            bench.hands.pass_time(GIVE_UP_S)
        assert bench.now_s < 3000, "it does not end"
    assert bench.store.handovers("7")[-1].outcome == outcome
    bench.now_s += 1
    seen = Snapshot(bench.now_s, (), (), waiting=(guest,))
    assert bench.elastic.known(seen).waiting == (guest,)
    bench.elastic.looked(seen, always)
    (shown,) = bench.elastic.known(seen).waiting
    assert (shown.is_trial, shown.ordinary.partition(":")[0]) == (
        False,
        "a job has saved to make room for it, and it did not start there",
    )


def asked_for(bench: Bench, guest: Job) -> None:
    """Job 7 is asked to make room for a trial job that the last cycle saw."""
    bench.look(EFFORT, waiting=(guest,))
    bench.listens(EFFORT)
    cluster(bench, bench.one(EFFORT), 0, guest)
    assert [*bench.elastic.begin(shrink(bench.one(EFFORT), guest.id), always)]


@pytest.mark.parametrize(
    ("now", "is_wanted"),
    [
        ({}, True),
        ({"shape": ONE}, True),
        ({"frozen": ONE_OF_ARRAY}, True),
        ({"frozen": BEGUN_ARRAY}, True),
        ({"reason": "Priority"}, True),
        ({"reason": ARRAY_LIMIT}, False),  # as many tasks as may of its array run
        ({"shape": Shape(1, 8)}, False),
        ({"shape": Shape(2, 1)}, False),
        ({"shape": replace(Shape(1, 2), gpu_type="h100")}, False),
        ({"spec": Spec(Request(job_class=JobClass.BEST_EFFORT))}, False),
        ({"licenses": "matlab:1"}, False),
        ({"footprint": Footprint(mem_per_node_mib=900)}, True),
        ({"footprint": Footprint()}, False),  # all memory of a node
        ({"time_limit_s": 601}, False),
        ({"nodes_required": ("n1",)}, False),
        ({"frozen": "its owner or another tool has changed it: 3 CPUs"}, False),
    ],
)
def test_no_room_is_made_for_a_trial_job_that_asks_for_more_meanwhile(
    bench: Bench, now: dict[str, object], is_wanted: bool
) -> None:
    guest = replace(TRIAL, time_limit_s=600, footprint=Footprint(mem_per_node_mib=1000))
    asked_for(bench, guest)
    bench.look(EFFORT, waiting=(replace(guest, **now),))  # type: ignore[arg-type]  # as parametrized
    assert bench.stays() is not is_wanted


def test_room_is_made_for_what_a_trial_job_asks_when_that_is_decided(bench: Bench) -> None:
    assert TRIAL.spec == Spec(Request(job_class=JobClass.TRIAL), own=FOUR)
    guest = replace(TRIAL, shape=ONE, shapes=(ONE,))
    asked_for(bench, guest)
    bench.look(EFFORT, waiting=(guest,))
    assert bench.stays() is False


@pytest.mark.parametrize(("free", "stays"), [(2, False), (1, True)])
def test_nobody_leaves_for_a_guest_that_could_not_start_in_its_place_any_more(
    bench: Bench, free: int, stays: bool
) -> None:
    """It needs four GPUs: the victim's two, and two of which somebody may have taken one.

    What is kept for those who are next is no less its room: it is pinned before them.
    """
    guest, victim = replace(TRIAL, shape=FOUR, shapes=(FOUR,)), replace(EFFORT, shape=TWO)
    first = waiting(9, "4", expected_nodes=("n1",), expected_s=bench.now_s + 1)
    bench.look(victim, waiting=(guest,))
    bench.listens(victim)
    cluster(bench, bench.one(victim), 2, guest)
    assert [*bench.elastic.begin(shrink(bench.one(victim), guest.id), always)]
    cluster(bench, bench.one(victim), free, first, guest)
    assert bench.stays() is stays


def test_what_a_guest_asked_when_room_was_decided_on_is_known_to_the_next_pliantd(
    bench: Bench,
) -> None:
    guest = replace(TRIAL, time_limit_s=600, features=frozenset(("a100",)))
    asked_for(bench, guest)
    bench.start()
    bench.look(EFFORT, waiting=(guest,))
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert over.asks == guest
    assert not asks_otherwise(guest, over.asks)


def test_room_is_made_for_the_shape_in_which_the_guest_is_to_start(bench: Bench) -> None:
    guest = replace(TRIAL, shapes=(TWO, FOUR))
    bench.look(EFFORT, waiting=(guest,))
    bench.listens(EFFORT)
    cluster(bench, bench.one(EFFORT), 0, guest)
    plan = Plan(preempts=(Preempt(bench.one(EFFORT), guest.id, "it loses least", TWO),))
    assert [*bench.elastic.begin(plan, always)]
    (wanted,) = bench.elastic.overs.all().values()
    assert wanted.asks == replace(guest, next_shape=TWO)


def test_one_for_whom_a_job_saved_twice_in_vain_is_looked_after_as_one_that_had_room(
    bench: Bench,
) -> None:
    for outcome in (Outcome.NOT_SAVED, Outcome.NOT_SAVED, Outcome.STAYS):
        bench.elastic._ended(EFFORT, "8", outcome, "it stays")
    assert bench.elastic._unserved.expected == frozenset()
    bench.elastic._ended(EFFORT, "8", Outcome.STAYS, "it stays")
    assert bench.elastic._unserved.expected == {"8"}


def test_of_an_array_the_task_that_is_pinned_is_the_guest(bench: Bench) -> None:
    array = replace(TRIAL, tasks_waiting=4, array_tasks="1-4")
    asked_for(bench, array)
    one = replace(TRIAL, id="8_1", priority=GUEST)
    rest = replace(array, tasks_waiting=3, array_tasks="2-4")
    for now in ((array,), (one, rest)):
        seen = bench.seen(EFFORT, waiting=now)
        assert [job.room_for for job in seen.running] == ["8_1"]
        assert [job.id for job in seen.waiting] == [job.id for job in now]
        seen = bench.elastic.arriving(seen)
        assert [(job.id, job.tasks_waiting) for job in seen.waiting] == [("8_1", 1), ("8", 3)]
    bench.look(EFFORT, waiting=(one, rest))
    assert bench.hands.tried == set()  # its pin is not one that was left
    bench.elastic.overs.turn()
    assert bench.elastic.overs.of("7") is not None
    bench.look(EFFORT, waiting=(rest,))  # it has started, by itself say
    assert bench.stays()


def test_one_that_was_not_asked_for_long_is_nobodys_to_choose(bench: Bench) -> None:
    bench.look(EFFORT, waiting=(TRIAL,))
    bench.listens(EFFORT)
    assert bench.one(EFFORT).preemptible
    bench.elastic.overs._rests["7"] = float("inf")
    assert not bench.one(EFFORT).preemptible


def test_no_room_is_made_for_one_who_had_it_as_the_look_was_made(bench: Bench) -> None:
    bench.look(EFFORT, waiting=(TRIAL,))
    bench.listens(EFFORT)
    plan = shrink(bench.one(EFFORT), "8")
    bench.elastic.overs._ended_since.add("8")
    assert [*bench.elastic.begin(plan, always)] == []
    bench.elastic.looking()
    assert [one.job for one in bench.elastic.begin(plan, always)] == ["7"]


def test_who_waits_for_room_that_was_not_made_is_a_trial_job_yet(bench: Bench) -> None:
    bench.look(EFFORT, waiting=(TRIAL,))
    bench.listens(EFFORT)
    [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]
    bench.elastic.overs.failed("7", 0, bench.name())
    bench.elastic.overs.turn()
    assert bench.elastic.overs.all() == {}
    bench.now_s += 1
    bench.look(EFFORT, waiting=(TRIAL,))
    assert bench.seen(waiting=(TRIAL,)).waiting == (TRIAL,)


def test_a_wish_is_withdrawn_where_pliant_does_not_act_any_more(bench: Bench) -> None:
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.elastic.looked(Snapshot(bench.now_s, (), (), running=(JOB,)), never)
    bench.elastic.overs.turn()
    assert (bench.elastic.overs.all(), bench.woken) == ({}, 1)
    (decision,) = bench.store.decisions("7")
    assert decision.what == "not handed over"


@pytest.mark.parametrize(
    "now",
    [
        replace(JOB, spec=Spec(MALLEABLE, own=FOUR, pinned=True)),
        replace(JOB, frozen="job 8 waits for a limit that may be its own too"),
        replace(JOB, requeues=False),  # its owner says so since
        replace(JOB, spec=None),  # somebody has taken its token
        replace(JOB, spec=Spec(parse("gpus=1-4"), own=FOUR)),
    ],
)
def test_a_wish_is_withdrawn_once_the_job_is_to_stay_as_it_is(bench: Bench, now: Job) -> None:
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.elastic.looked(Snapshot(bench.now_s, (), (), running=(now,)), always)
    bench.elastic.overs.turn()
    assert bench.elastic.overs.all() == {}


@pytest.mark.parametrize(
    ("guests", "stands"),
    [
        ((TRIAL,), True),
        ((replace(TRIAL, id="8_5"),), False),
        # 0.1.0 made room for arrays as they are
        ((replace(TRIAL, tasks_waiting=4, array_tasks="1-4"),), False),
        ((replace(TRIAL, id="9"),), False),  # it was cancelled, or has found room elsewhere
        ((replace(TRIAL, eligible=False),), False),  # its user holds it
        ((replace(TRIAL, ordinary="beyond its cap"),), False),  # made longer since
        ((replace(TRIAL, spec=None),), False),  # its owner says so no more
    ],
)
def test_a_wish_is_withdrawn_once_nobody_waits_for_the_room(
    bench: Bench, guests: tuple[Job, ...], stands: bool
) -> None:
    bench.look(EFFORT)
    bench.listens(EFFORT)
    plan = Plan(preempts=(Preempt(bench.one(EFFORT), "8", "it loses least"),))
    [*bench.elastic.begin(plan, always)]
    bench.look(EFFORT, waiting=guests)
    bench.elastic.overs.turn()
    assert bool(bench.elastic.overs.all()) is stands


BOTH = Spec(replace(BEST_EFFORT, malleable=Malleable(30)), own=FOUR)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize(
    ("guest", "now", "acts"),
    [
        ("", replace(JOB, spec=replace(BOTH, pinned=True)), True),
        ("", replace(JOB, spec=BOTH, frozen="job 8 waits for a limit that is its own too"), True),
        ("", replace(JOB, spec=BOTH), False),  # `pliant pause`, or its partition is observed
        ("8", replace(JOB, spec=BOTH), True),  # its guest was cancelled
    ],
)
def test_a_program_that_was_saving_when_its_wish_was_withdrawn_goes_on_where_it_is(
    bench: Bench, guest: str, now: Job, acts: bool, ended: bool
) -> None:
    running = replace(JOB, spec=BOTH)
    bench.look(running, waiting=(waiting(8, "4"),))
    bench.listens(running)
    [*bench.elastic.begin(shrink(bench.one(running), guest), always)]
    bench.elastic.looked(Snapshot(bench.now_s, (), (), running=(now,)), lambda _job: acts)
    if ended:
        bench.elastic.overs.turn()
    name = bench.name()
    assert bench.elastic.overs.saved("7", 0, name) or bench.elastic.overs.saved_late(now, 0, name)
    assert bench.elastic.overs.stays("7", 0, name)
    bench.elastic.overs.turn()
    assert (bench.elastic.overs.all(), bench.hands.did) == ({}, [])


def test_a_program_that_saves_after_its_time_is_handed_over_only_where_it_still_may_be(
    bench: Bench,
) -> None:
    bench.look(JOB)
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.elastic.overs.withdraw("7")
    bench.elastic.overs.turn()
    now = replace(JOB, spec=Spec(MALLEABLE, own=FOUR, pinned=True))
    bench.look(now)
    assert bench.elastic.overs.saved_late(now, 0, bench.name())
    assert (bench.stays(), bench.elastic.overs.all()) == (True, {})


HAD = replace(
    JOB,
    spec=Spec(BEST_EFFORT, own=FOUR),
    time_limit_s=3600,
    footprint=Footprint(mem_per_node_mib=100),
    partitions=("gpu",),
    nodes_excluded=frozenset({"n9"}),
)
OTHERWISE: Sequence[tuple[str, object]] = (
    ("shape", Shape(2, 4)),
    ("time_limit_s", 7200),
    ("time_limit_s", 0),  # none
    ("footprint", Footprint(cpus_per_task=8, mem_per_node_mib=100)),
    ("footprint", Footprint(mem_per_node_mib=200)),
    ("nodes_excluded", frozenset({"n1"})),
    ("nodes_required", ("n2",)),
    ("features", frozenset({"fast"})),
    ("partitions", ("short",)),
    ("reservation", "lecture"),
    ("qos", "high"),
    ("account", "other"),
    ("eligible", False),
    ("reason", "DependencyNeverSatisfied"),
    ("reason", "Licenses"),
    ("spec", Spec(BEST_EFFORT, own=FOUR, set=TWO)),  # it was made smaller since, and has grown
    ("frozen", "its owner or another tool has changed it: 16 CPUs a node instead of 1"),
)


@pytest.mark.parametrize(
    ("changes", "did"),
    [
        ({}, []),
        ({"shape": ONE}, []),
        ({"time_limit_s": 600}, []),
        *(({name: value}, [("7", Do.RELEASE)]) for name, value in OTHERWISE),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_who_waits_for_the_next_run_keeps_its_place_for_what_it_had(
    bench: Bench, changes: dict[str, Any], did: list[tuple[str, Do]], at_once: bool
) -> None:
    """Also where that is changed before the first look at it."""
    bench.preempted(HAD)
    pinned = replace(HAD, state=JobState.WAITING, nodes=(), restarts=1, priority=PINNED)
    bench.slurm_has(pinned)
    if not at_once:
        bench.look(waiting=(pinned,))
        assert bench.hands.did == []
    bench.look(waiting=(replace(pinned, **changes),))
    assert bench.hands.did == did
    assert (bench.hands.job.priority in OURS) is (did == [])


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (HAD, {"eligible": False, "priority": 0}),  # its user's hold: a release would end it
        (HAD, {"shape": Shape(2, 4)}),
    ],
)
def test_who_has_no_pin_of_ours_is_not_released(
    bench: Bench, before: Job, now: dict[str, Any]
) -> None:
    waits = replace(before, state=JobState.WAITING, nodes=())
    bench.look(waiting=(waits,))
    bench.look(waiting=(replace(waits, **now),))
    assert bench.hands.did == []


SHARED = replace(HAD, shares=True, nodes_required=("n3",))
MARKED = Spec(BEST_EFFORT, own=FOUR, mark="n1")
EVERY_CORE = replace(BEST_EFFORT, cores=ALL_CORES)
WHOLE = Shape(1, 0, kind=Kind.CPU)
FEW_CORES = replace(HAD, shape=WHOLE, spec=Spec(replace(BEST_EFFORT, cores=4), own=WHOLE))


@pytest.mark.parametrize(
    ("had", "changes", "did"),
    [
        (replace(HAD, time_limit_s=0), {"time_limit_s": 7200}, []),
        (HAD, {"time_limit_s": 7200, "time_min_s": 600}, [("7", Do.RELEASE)]),
        (HAD, {"spec": None}, [("7", Do.RELEASE)]),  # an administrator took its token away
        (replace(HAD, frozen="it has its nodes alone"), {}, []),
        (replace(HAD, footprint=Footprint()), {"footprint": HAD.footprint}, []),  # unknown before
        (SHARED, {"spec": MARKED, "nodes_required": ("n1",)}, []),  # the mark's node: by us
        (SHARED, {"nodes_required": ("n1",)}, [("7", Do.RELEASE)]),
        (FEW_CORES, {"spec": Spec(EVERY_CORE, own=WHOLE)}, [("7", Do.RELEASE)]),
    ],
)
def test_only_more_than_it_had_and_by_its_owner_is_a_change(
    bench: Bench, had: Job, changes: dict[str, Any], did: list[tuple[str, Do]]
) -> None:
    bench.preempted(had)
    pinned = replace(had, state=JobState.WAITING, nodes=(), restarts=1, priority=PINNED)
    bench.slurm_has(pinned)
    bench.look(waiting=(replace(pinned, **changes),))
    assert bench.hands.did == did


def test_of_the_partitions_that_it_may_run_in_a_job_that_runs_shows_one(bench: Bench) -> None:
    bench.preempted(HAD)
    pinned = replace(HAD, state=JobState.WAITING, nodes=(), restarts=1, priority=PINNED)
    for partitions, did in ((("gpu", "long"), []), (("gpu",), [("7", Do.RELEASE)])):
        bench.look(waiting=(replace(pinned, partitions=partitions),))
        assert bench.hands.did == did


def test_nor_is_it_made_larger_by_pliant_while_it_has_that_place(bench: Bench) -> None:
    bench.preempted(replace(HAD, shape=ONE))
    waits = replace(HAD, shape=ONE, state=JobState.WAITING, nodes=(), restarts=1)
    offered = [
        bench.seen(waiting=(replace(waits, priority=priority),)).waiting[0].shapes
        for priority in (PINNED, 500)
    ]
    assert offered == [(ONE,), HAD.shapes]
    larger = replace(waits, priority=PINNED, shape=FOUR, shapes=(TWO, FOUR))
    assert bench.seen(waiting=(larger,)).waiting[0].shapes == (FOUR,)  # by its owner: it stays so


def test_an_owner_has_again_what_its_job_lent_once_that_is_outside_a_hand_over(
    bench: Bench,
) -> None:
    owed = replace(JOB, state=JobState.WAITING, nodes=(), restarts=1, owed=True)
    bench.slurm_has(*(replace(owed, id=number) for number in "789"))
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.look(waiting=(owed,))
    assert bench.hands.did == []  # it is in one
    runs = replace(JOB, id="9", owed=True)
    bench.look(runs, waiting=(replace(owed, id="8"),))
    assert bench.hands.did == [("8", Do.GIVE_BACK), ("9", Do.GIVE_BACK)]


@pytest.mark.parametrize(
    ("changes", "did"),
    [
        ({}, []),
        ({"shape": Shape(2, 4)}, [("8", Do.RELEASE)]),
        ({"ordinary": "beyond its cap"}, [("8", Do.RELEASE)]),
    ],
)
def test_nor_does_a_guest_that_its_user_makes_larger_or_longer_than_a_trial_may_be(
    bench: Bench, changes: dict[str, Any], did: list[tuple[str, Do]]
) -> None:
    guest = replace(JOB, id="8", state=JobState.WAITING, nodes=(), priority=PINNED + 1)
    bench.slurm_has(EFFORT, guest)
    bench.look(EFFORT, waiting=(replace(guest, priority=500),))
    bench.listens(EFFORT)
    [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]
    bench.look(EFFORT, waiting=(replace(guest, **changes),))
    assert bench.hands.did == did


def test_a_guest_has_its_place_for_what_it_asked_when_it_was_pinned(bench: Bench) -> None:
    """Not for what it asked when it was seen first."""
    guest = replace(JOB, id="8", state=JobState.WAITING, nodes=())
    bench.look(EFFORT, waiting=(replace(guest, shape=ONE),))
    bench.look(EFFORT, waiting=(guest,))
    bench.listens(EFFORT)
    [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]
    bench.look(EFFORT, waiting=(replace(guest, priority=PINNED + 1),))
    assert bench.hands.did == []


def test_a_guest_of_whose_room_nobody_remembers_anything_keeps_no_pin(bench: Bench) -> None:
    guest = replace(JOB, id="8", state=JobState.WAITING, nodes=(), priority=PINNED + 1)
    bench.slurm_has(JOB, guest)
    bench.look(JOB, waiting=(guest,))
    assert bench.hands.did == [("8", Do.RELEASE_GUEST)]
    assert bench.hands.fake.state.jobs[8].priority not in OURS


def test_a_job_that_returns_to_a_place_of_which_nobody_remembers_goes_before_no_guest(
    bench: Bench,
) -> None:
    """Also where backfill has written the pin back, or a Slurm that was killed has forgotten."""
    waits = replace(JOB, state=JobState.WAITING, nodes=(), restarts=1, priority=RETURNS)
    bench.slurm_has(waits)
    bench.look(waiting=(waits,))
    assert bench.hands.did == [("7", Do.LOWER)]
    assert bench.hands.job.priority == PINNED


def test_a_guest_that_waits_with_its_pin_loses_it_once_nobody_makes_room(bench: Bench) -> None:
    """Also where a Slurm that was killed has forgotten that it was taken back."""
    waits = replace(TRIAL, priority=GUEST)
    bench.slurm_has(EFFORT, waits)
    bench.look(EFFORT, waiting=(TRIAL,))
    bench.listens(EFFORT)
    [*bench.elastic.begin(shrink(bench.one(EFFORT), TRIAL.id), always)]
    bench.look(EFFORT, waiting=(waits,))
    assert bench.hands.did == []
    bench.elastic.overs.failed("7", 0, bench.name())
    while bench.elastic.overs.all():
        bench.elastic.overs.turn()
        bench.hands.pass_time(1)
    bench.slurm_has(EFFORT, waits)
    bench.hands.did.clear()
    bench.look(EFFORT, waiting=(waits,))
    assert bench.hands.did == [(TRIAL.id, Do.RELEASE_GUEST)]


@pytest.mark.parametrize(
    ("running", "waiting"),
    [
        ((replace(JOB, priority=RETURNS),), ()),
        ((), (replace(JOB, state=JobState.WAITING, nodes=(), restarts=1, priority=RETURNS),)),
        ((), (replace(TRIAL, priority=GUEST),)),
        ((replace(JOB, owed=True),), ()),
    ],
)
def test_a_look_that_shows_a_hand_over_which_has_ended_since_takes_nothing_of_it(
    bench: Bench, running: tuple[Job, ...], waiting: tuple[Job, ...]
) -> None:
    """It may have taken long; what that hand-over has left, it has left for good reasons."""
    bench.slurm_has(*(running or waiting))
    bench.look(JOB, waiting=(TRIAL,))
    bench.listens()
    bench.elastic.overs.begin(JOB, Wanted(TWO, guest=TRIAL.id), bench.now_s + 60, "room")
    bench.elastic.looking()
    seen = bench.seen(*running, waiting=waiting)
    bench.elastic.overs.withdraw("7")
    (active,) = bench.elastic.overs._active.values()
    bench.elastic.overs._end(active, Outcome.NOT_SAVED)
    bench.hands.did.clear()
    bench.elastic.looked(seen, always)
    bench.elastic.give_back(seen)
    assert bench.hands.did == []
    bench.look(*running, waiting=waiting)
    assert len(bench.hands.tried) == 1


def test_a_fence_that_is_left_is_looked_after_until_it_has_ended(bench: Bench) -> None:
    """On PBS that of a job which may not begin yet is opened once it may."""
    bench.hands.fence("7")
    bench.hands.idle = {Do.UNFENCE}
    for _ in range(3):
        bench.look(JOB)
    assert bench.hands.did == [("7", Do.UNFENCE)] * 3
    bench.hands.idle = set()
    bench.hands.clients.refuses = {"reservation": "slurm_load_reservations error: Invalid argument"}
    bench.look(JOB)  # it is not known whether one is
    bench.hands.clients.refuses = {}
    bench.look(JOB)
    assert (bench.hands.did[3:], bench.hands.fence_end_s) == ([("7", Do.UNFENCE)], 0.0)
    asked = len(bench.hands.clients.asked)
    bench.look(JOB)  # it has
    bench.look(JOB)
    fences = [argv for argv in bench.hands.clients.asked[asked:] if "reservation" in argv]
    assert len(fences) == 1


def test_one_that_waits_without_a_pin_is_not_lowered(bench: Bench) -> None:
    waits = replace(JOB, state=JobState.WAITING, nodes=(), restarts=1, priority=500)
    bench.slurm_has(waits)
    bench.look(waiting=(waits,))
    assert bench.hands.tried == set()


def test_one_whose_place_is_kept_yet_goes_before_guests(bench: Bench) -> None:
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    waits = replace(JOB, state=JobState.WAITING, nodes=(), restarts=1, priority=RETURNS)
    bench.slurm_has(waits)
    bench.look(waiting=(waits,))
    assert bench.hands.did == []


def test_what_an_earlier_pliantd_left_is_tidied_up(bench: Bench) -> None:
    pinned = replace(JOB, id="8", priority=PINNED)
    bench.slurm_has(JOB, pinned)
    bench.hands.fence("7")
    bench.hands.fence("9")
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.start()
    snapshot = Snapshot(
        bench.now_s, (), (), running=(JOB, pinned, replace(JOB, id="6", priority=99))
    )
    bench.elastic.looked(snapshot, always)
    assert bench.hands.did == [("9", Do.UNFENCE), ("8", Do.RELEASE)]
    assert set(bench.elastic.overs.all()) == {"7"}  # gone on with
    bench.elastic.looked(replace(snapshot, running=(JOB,)), always)  # and sees that none is left
    bench.hands.did.clear()
    bench.hands.fence("9")  # which this look does not show
    bench.elastic.looked(replace(snapshot, running=(JOB,)), always)
    assert bench.hands.did == []


def test_fences_are_asked_for_where_a_look_shows_one_of_ours_alone(bench: Bench) -> None:
    bench.look(JOB)
    bench.hands.clients.asked.clear()
    course = Reservation("course", ("n1",), 900.0, 2000.0)
    seen = replace(bench.seen(JOB), reservations=(course,))
    bench.elastic.looked(seen, always)
    assert bench.hands.clients.asked == []


def test_a_job_that_runs_behind_a_fence_that_nobody_remembers_runs_on(bench: Bench) -> None:
    runs = replace(JOB, restarts=1, priority=PINNED)
    bench.slurm_has(runs)
    bench.hands.fence("7")
    bench.look(runs)
    assert bench.hands.did == [("7", Do.UNFENCE), ("7", Do.RELEASE)]
    assert not bench.store.handovers("7")


def test_where_pliant_does_not_act_a_fence_that_nobody_remembers_only_falls(bench: Bench) -> None:
    waits = replace(JOB, state=JobState.WAITING, restarts=1, priority=PINNED, nodes=())
    bench.slurm_has(waits)
    bench.hands.fence("7")
    bench.elastic.looked(bench.seen(waiting=(waits,)), never)
    assert bench.hands.did == [("7", Do.UNFENCE)]
    assert not bench.store.handovers("7")


def test_a_guest_that_runs_is_released_once(bench: Bench) -> None:
    runs = replace(TRIAL, state=JobState.RUNNING, priority=GUEST)
    bench.slurm_has(runs)
    bench.look(runs)
    assert bench.hands.did == [("8", Do.RELEASE)]


def test_a_guest_keeps_its_pin_while_its_room_is_made(bench: Bench) -> None:
    guest = replace(TRIAL, priority=GUEST)
    bench.listens(EFFORT)
    [*bench.elastic.begin(shrink(bench.one(EFFORT), "8"), always)]
    bench.start()
    bench.slurm_has(EFFORT, guest)
    bench.look(EFFORT, waiting=(guest,))
    assert bench.hands.did == []


def test_a_fence_that_comes_back_with_a_killed_batch_system_falls_at_the_next_look(
    bench: Bench,
) -> None:
    """One that is killed forgets its last seconds, and with them that a fence was taken down."""
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.look(JOB)
    known = [
        Reservation(name, ("n1",), 900.0, 2000.0) for name in ("pliant_7", "pliant_9", "course")
    ]
    seen = Snapshot(bench.now_s, (), (), running=(JOB,), reservations=tuple(known))
    bench.hands.fence("7")
    bench.hands.fence("9")
    bench.elastic.looked(seen, always)
    assert bench.hands.did == [("9", Do.UNFENCE)]
    bench.elastic.looked(seen, always)  # a look of before: it is gone
    assert bench.hands.did == [("9", Do.UNFENCE)]


@pytest.mark.parametrize(("submit_s", "knows"), [(5000.0, False), (1050.0, True)])
def test_what_was_told_of_an_earlier_job_of_the_same_number_is_forgotten(
    bench: Bench, submit_s: float, knows: bool
) -> None:
    """Slurm's clock may be a minute before ours."""
    bench.listens(EFFORT)
    asked = Preempt(bench.one(EFFORT), "9", "a trial waits")
    bench.store.decide(bench.elastic.begin(Plan(preempts=(asked,)), always))
    bench.elastic.overs.saved("7", 0, "0.1000.000")
    bench.start()
    bench.now_s = 5000.0
    other = replace(EFFORT, start_s=EFFORT.start_s if knows else 5000.0, submit_s=submit_s)
    now = bench.one(other)
    assert (now.preempted, bench.elastic.runs.speaks(other)) == (knows, knows)
    bench.elastic.looked(Snapshot(bench.now_s, (), (), running=(other,)), always)
    assert [*bench.elastic.overs.all()] == (["7"] if knows else [])
    assert bool(bench.store.decisions("7")) is knows


def test_of_a_number_that_is_another_jobs_nothing_is_remembered(bench: Bench) -> None:
    """Neither that it listened, nor that it made room, nor that it rests or hung."""
    says = replace(MALLEABLE, malleable=Malleable(30, checkpoint="ckpt"))
    job = replace(JOB, spec=Spec(says, own=FOUR), submit_s=NOW_S)
    asked = HandOverRow(0, NOW_S, "7", "alice", "lab", 0, "4", "4", "8", "room", NOW_S + 60)
    for outcome in (Outcome.DONE, Outcome.STALLED):
        number = bench.store.hand_over(asked)
        bench.store.saved(number, NOW_S)
        bench.store.handed_over(number, NOW_S, outcome)
    bench.listens(job)
    bench.look(job)
    bench.elastic.overs.begin(job, Wanted(TWO), NOW_S + 60, "it fits better")
    bench.elastic.overs.failed("7", 0, bench.name())
    bench.elastic.overs.turn()
    assert (bench.one(job).preempted, bench.one(job).shapes) == (2, (FOUR,))  # it hung
    bench.seen()
    bench.look()
    bench.now_s += 200
    other = replace(job, submit_s=bench.now_s, start_s=bench.now_s)
    assert (bench.one(other).preempted, bench.one(other).shapes) == (0, (FOUR,))  # it is mute yet
    bench.listens(other)
    assert bench.one(other).shapes == (ONE, TWO, FOUR)
    assert [*bench.elastic.begin(reshape(bench.one(other)), always)]


def test_the_program_of_another_job_of_a_number_is_not_taken_to_listen(bench: Bench) -> None:
    bench.listens()
    bench.look(JOB)
    bench.look()
    other = replace(JOB, submit_s=bench.now_s, start_s=bench.now_s)
    assert bench.one(other).shapes == (FOUR,)


def test_what_becomes_of_a_hand_over_whose_number_is_another_jobs_is_not_counted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.elastic.count = lambda *_: pytest.fail("it is counted")
    bench.listens()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    bench.look()
    other = replace(JOB, submit_s=5000.0, start_s=5000.0, state=JobState.WAITING)
    bench.slurm_has(other)
    bench.look(waiting=(other,))
    bench.elastic.overs.turn()
    assert bench.elastic.overs.all() == {}
    assert "mistake" not in caplog.text


def test_what_was_told_of_a_job_that_was_requeued_since_is_kept(bench: Bench) -> None:
    bench.listens()
    bench.start()
    again = replace(JOB, restarts=1, submit_s=5000.0, start_s=5000.0)
    bench.one(again)
    assert len(bench.store.runs("7")) == 1


def test_a_job_behind_a_fence_that_nobody_remembers_starts_as_it_is(bench: Bench) -> None:
    waits = replace(JOB, state=JobState.WAITING, restarts=1, priority=PINNED, nodes=())
    rival = replace(waits, id="8", restarts=0, priority=1000, spec=None)
    bench.slurm_has(waits, rival)
    bench.hands.has(submit_s=NOW_S - 1, begin_s=NOW_S + 120)
    bench.hands.fence("7")
    bench.elastic.looked(Snapshot(bench.now_s, (), (), waiting=(waits,), running=()), always)
    for _ in range(20):
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
    assert [do for _, do in bench.hands.did] == [Do.RESHAPE, Do.UNFENCE, Do.RELEASE]
    job = bench.hands.job
    assert (job.state, job.gpus, bench.hands.rival) == ("RUNNING", 4, "PENDING")


@pytest.mark.parametrize("was_refused", [False, True])
def test_so_does_one_whose_fence_a_killed_batch_system_has_brought_back(
    bench: Bench, was_refused: bool
) -> None:
    """Its hand-over is over, and Slurm has forgotten that, and the start."""
    if was_refused:
        row = HandOverRow(0, NOW_S, "7", "alice", "lab", 0, "2", "4", "", "room", NOW_S + 60)
        bench.store.handed_over(bench.store.hand_over(row), NOW_S, f"{Outcome.REFUSED}: a limit")
    bench.slurm_has(JOB)
    bench.listens()
    assert [*bench.elastic.begin(reshape(bench.one()), always)]
    assert bench.elastic.overs.saved("7", 0, bench.name())
    while bench.elastic.overs.of("7") is not None:
        if bench.hands.fake.state.fences and bench.hands.job.waits:
            stored = bench.hands.fake.state
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
    bench.hands.fake.state = stored
    waits = replace(JOB, state=JobState.WAITING, restarts=1, priority=PINNED, nodes=())
    bench.elastic.looking()
    bench.elastic.looked(Snapshot(bench.now_s, (), (), waiting=(waits,), running=()), always)
    for _ in range(20):
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
    assert (bench.hands.job.state, bench.hands.fake.state.fences) == ("RUNNING", {})


def test_a_look_from_before_the_end_of_a_hand_over_begins_none(bench: Bench) -> None:
    """Slurm has brought its fence back meanwhile: that falls, and nothing else is done."""
    bench.slurm_has(JOB)
    bench.listens()
    assert [*bench.elastic.begin(reshape(bench.one()), always)]
    assert bench.elastic.overs.saved("7", 0, bench.name())
    while not bench.hands.job.waits:
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
    bench.elastic.looking()
    waits = replace(JOB, state=JobState.WAITING, restarts=1, priority=PINNED, nodes=())
    while bench.elastic.overs.of("7") is not None:
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
    bench.hands.fence("7")
    bench.hands.did.clear()
    bench.elastic.looked(Snapshot(bench.now_s, (), (), waiting=(waits,), running=()), always)
    assert bench.elastic.overs.of("7") is None
    assert [do for _, do in bench.hands.did] == [Do.UNFENCE]


@pytest.mark.parametrize(
    ("job", "shape", "words"),
    [
        (replace(JOB, spec=Spec(BEST_EFFORT, own=FOUR)), TWO, "was not submitted with --malleable"),
        (replace(JOB, spec=None), TWO, "was not submitted with --malleable"),
        (JOB, Shape(1, 3), "3: it may be 1, 2, 4"),
        (replace(JOB, shape=TWO, spec=Spec(BY_NODES, own=FOUR)), Shape(1, 3), "may be 4, 2x4"),
        (replace(JOB, shape=TWO, spec=Spec(BY_NODES)), Shape(1, 3), "it may be 2, 2x2"),
        (JOB, FOUR, "4: it has that shape"),
        (replace(JOB, frozen="it is suspended"), TWO, "it is left alone: it is suspended"),
        (replace(JOB, restarts=1), TWO, "nothing can be asked of it now: it is launching"),
    ],
)
def test_what_cannot_be_resized_by_hand_is_refused_in_one_line(
    bench: Bench, job: Job, shape: Shape, words: str
) -> None:
    bench.listens()
    with pytest.raises(Refused, match=words):
        bench.elastic.resize(bench.one(job), shape, "alice")


@pytest.mark.parametrize(
    ("so", "words"),
    [
        ({"spec": Spec(MALLEABLE, own=FOUR, pinned=True)}, "its owner pinned it"),
        ({"requeues": False}, "the batch system may not requeue it"),
        ({"shapes": (ONE, FOUR)}, "the batch system cannot change it so"),
    ],
)
def test_one_that_may_not_change_now_is_not_resized_by_hand(
    bench: Bench, so: dict[str, Any], words: str
) -> None:
    job = replace(JOB, **so)
    bench.listens(job)
    with pytest.raises(Refused, match=f"job 7: 2: {words}"):
        bench.elastic.resize(bench.one(job), TWO, "alice")


def test_what_was_refused_before_is_not_tried_by_hand(bench: Bench) -> None:
    row = HandOverRow(0, NOW_S, "7", "alice", "lab", 0, "4", "2", "", "room", NOW_S + 60)
    bench.store.handed_over(bench.store.hand_over(row), NOW_S, f"{Outcome.REFUSED}: a limit")
    bench.listens()
    with pytest.raises(Refused, match="it was tried before, and refused: a limit"):
        bench.elastic.resize(replace(bench.one(), shapes=(ONE, TWO, FOUR)), TWO, "alice")


def test_nor_is_what_a_limit_forbids(bench: Bench) -> None:
    bench.listens()
    seen = snapshot([node("n1", gpus=4)], [], [bench.one()])
    kept = tuple(replace(one, name="gpu", keeps_shapes="a limit") for one in seen.partitions)
    bench.elastic.decided(replace(seen, now_s=bench.now_s, partitions=kept), Plan())
    with pytest.raises(Refused, match="job 7: 2: a limit"):
        bench.elastic.resize(bench.one(), TWO, "alice")


@pytest.mark.parametrize(
    ("of", "keeps", "most", "words"),
    [
        (("gpu",), {"gpu": "a limit"}, 4, "a limit"),
        (("gpu", "other"), {"gpu": "a limit"}, 4, ""),  # it may start in the other one
        (("gpu", "other"), {"gpu": "a limit", "other": "another"}, 4, "a limit"),
        (("gpu",), {"other": "another"}, 4, ""),
        (("unknown",), {"gpu": "a limit"}, 4, ""),
        (("gpu",), {}, 1, "its QOS lets one job have 1 GPUs at most"),
    ],
)
def test_what_keeps_a_job_from_another_shape_is_asked_of_all_its_partitions(
    bench: Bench, of: tuple[str, ...], keeps: dict[str, str], most: int, words: str
) -> None:
    parts = [
        Partition(name, ("n1",), keeps_shapes=keeps.get(name, "")) for name in ("gpu", "other")
    ]
    seen = Snapshot(bench.now_s, (node("n1", gpus=4),), tuple(parts))
    abilities = replace(seen.abilities, most=(("normal", (("ngpus", most),)),))
    bench.elastic.decided(replace(seen, abilities=abilities), Plan())
    assert bench.elastic._places.beyond(replace(bench.one(), partitions=of), TWO) == words


@pytest.mark.parametrize(("own", "nodes", "kept"), [(2, 2, False), (2, 1, False), (1, 2, True)])
def test_over_several_nodes_a_job_may_be_what_its_owner_wrote(
    bench: Bench, own: int, nodes: int, *, kept: bool
) -> None:
    parts = (Partition("gpu", ("n1", "n2"), sets="it is in two halves"),)
    bench.elastic.decided(Snapshot(bench.now_s, (), parts), Plan())
    job = replace(bench.one(), spec=Spec(MALLEABLE, Shape(own, 2)), partitions=("gpu",))
    assert bool(bench.elastic._places.beyond(job, Shape(nodes, 2))) is kept
    assert bench.elastic._places.beyond(replace(job, spec=None), Shape(2, 2))


@pytest.mark.parametrize(
    ("wanted", "down", "is_open"),
    [
        (Wanted(ONE), "n1", False),
        (Wanted(ONE), "n2", True),
        (Wanted(ONE, ("n2",)), "n2", False),
        (Wanted(ONE, ("n2",)), "n1", True),
    ],
)
def test_a_job_is_to_start_where_it_is_decided_or_else_where_it_is(
    bench: Bench, wanted: Wanted, down: str, *, is_open: bool
) -> None:
    nodes = [node(name, gpus=4, up=name != down) for name in ("n1", "n2")]
    bench.elastic.decided(replace(snapshot(nodes, [], []), now_s=bench.now_s), Plan())
    assert bench.elastic._places.is_open(bench.one(LIMITED), wanted) is is_open


@pytest.mark.parametrize(
    ("begins_s", "guest_s", "is_open"),
    [(3600 + 300, 200, True), (3600 + 300, 400, False), (3600 + 300, 0, False), (3500, 0, False)],
)
def test_a_job_makes_room_only_where_no_reservation_comes_too_near_meanwhile(
    bench: Bench, begins_s: int, guest_s: int, *, is_open: bool
) -> None:
    """``guest_s``: its guest's time limit; 0: it has none."""
    one, start_s = bench.one(LIMITED), bench.now_s + begins_s
    maintenance = Reservation("maintenance", ("n1",), start_s, start_s + 60)
    seen = replace(snapshot([node("n1", gpus=4)], [], []), now_s=bench.now_s)
    bench.elastic.decided(replace(seen, reservations=(maintenance,)), Plan())
    guest = replace(TRIAL, time_limit_s=guest_s)
    to = Wanted(FOUR, ("n1",), guest.id, asks=guest)
    assert bench.elastic._places.is_open(one, to) is is_open
    resized = bench.elastic._places.is_open(one, Wanted(ONE, ("n1",)))
    assert resized is (begins_s > LIMITED.time_limit_s)


def test_a_program_that_is_silent_is_not_resized_by_hand(bench: Bench) -> None:
    bench.listens()
    bench.now_s += 500.0
    with pytest.raises(Refused, match="asked of it now: it does not run under `pliant run`"):
        bench.elastic.resize(bench.one(), TWO, "alice")


def test_an_owner_resizes_by_hand(bench: Bench) -> None:
    bench.listens()
    job = bench.one()
    bench.elastic.resize(job, TWO, "alice")
    (row,) = bench.store.handovers("7")
    assert (row.after, row.reason, row.end_s) == ("2", "alice asked for it", 0.0)
    with pytest.raises(Refused, match="checkpointing"):
        bench.elastic.resize(job, ONE, "alice")


def test_none_is_asked_to_save_that_would_not_come_back(bench: Bench) -> None:
    bench.listens()
    bench.hands.stranded = True
    with pytest.raises(Refused, match="nothing would send it back"):
        bench.elastic.resize(bench.one(), TWO, "alice")
    plan = Plan(reshapes=(Reshape(bench.one(), TWO, ("n1",), "it fits"),))
    assert list(bench.elastic.begin(plan, always)) == []
    assert not bench.store.handovers("7")


def test_one_that_has_saved_goes_on_where_nothing_would_send_it_back_any_more(
    bench: Bench,
) -> None:
    bench.listens()
    bench.elastic.resize(bench.one(), TWO, "alice")
    bench.hands.stranded = True
    over = bench.elastic.overs.of("7")
    assert over
    assert bench.elastic.overs.saved("7", over.run, name_of(over))
    assert bench.elastic.overs.stays("7", over.run, name_of(over))


def saying(*, max_resizes: int | None = None, min_run_s: int = 0) -> Job:
    """Job 7, and what its owner leaves to policies."""
    says = Malleable(30, max_resizes=max_resizes, min_run_s=min_run_s)
    return replace(JOB, spec=Spec(replace(MALLEABLE, malleable=says), own=FOUR))


def after_a_resize(bench: Bench, job: Job) -> Job:
    """It is resized by a policy, comes back as two GPUs, and works."""
    bench.slurm_has(job)
    bench.look(job)
    bench.listens(job)
    assert [*bench.elastic.begin(reshape(bench.one(job)), always)]
    assert bench.elastic.overs.saved("7", job.restarts, bench.name())
    while bench.elastic.overs.of("7") is not None:
        bench.elastic.overs.turn()
        bench.hands.pass_time(0.5)
        assert bench.now_s < 2000, "it does not end"
    (row,) = bench.store.handovers("7")
    assert (row.outcome, bench.counted) == (Outcome.DONE, [(row, Outcome.DONE)])
    assert bench.store.decisions("7")[-1].what == "handed over"
    again = replace(job, restarts=job.restarts + 1, shape=TWO, start_s=bench.now_s)
    bench.look(again)
    bench.listens(again)
    return again


def for_policies(bench: Bench, job: Job) -> tuple[Shape, ...]:
    """As what policies may let it run."""
    (shown,) = view(bench.seen(job)).running
    return shown.shapes


@pytest.mark.parametrize("restarted", [False, True])
def test_a_policy_resizes_a_job_as_often_as_its_owner_says_and_its_owner_more_often(
    bench: Bench, restarted: bool
) -> None:
    job = after_a_resize(bench, saying(max_resizes=2))
    assert for_policies(bench, job) == (ONE, TWO, FOUR)
    job = saying(max_resizes=1).but(restarts=1, shape=TWO, start_s=bench.now_s)
    if restarted:
        bench.store.close()
        bench.start()
        bench.listens(job)
    assert for_policies(bench, job) == (TWO,)
    bench.elastic.resize(bench.one(job), ONE, "alice")
    assert bench.store.handovers("7")[-1].reason == "alice asked for it"


@pytest.mark.parametrize("checkpoint", ["", "ckpt"])
def test_a_job_whose_named_checkpoint_was_not_whole_is_left_alone_for_a_while(
    bench: Bench, checkpoint: str
) -> None:
    """Its program was started again for it, and would be in every cycle."""
    says = replace(MALLEABLE, malleable=Malleable(30, checkpoint=checkpoint))
    job = replace(JOB, spec=Spec(says, own=FOUR))
    bench.listens(job)
    assert [*bench.elastic.begin(reshape(bench.one(job)), always)]
    bench.elastic.overs.failed("7", 0, bench.name())
    bench.elastic.overs.turn()
    again = [*bench.elastic.begin(reshape(bench.one(job)), always)]
    assert bool(again) is (checkpoint == "")
    bench.now_s += REST_S + 1
    bench.listens(job)
    assert bool([*bench.elastic.begin(reshape(bench.one(job)), always)]) is (checkpoint != "")


def test_a_resize_that_came_to_nothing_is_none_that_its_owner_counts(bench: Bench) -> None:
    job = saying(max_resizes=1)
    bench.listens(job)
    assert [*bench.elastic.begin(reshape(bench.one(job)), always)]
    bench.elastic.overs.failed("7", 0, bench.name())
    bench.elastic.overs.turn()
    assert bench.elastic.overs.of("7") is None
    assert for_policies(bench, job) == (ONE, TWO, FOUR)


def test_a_run_works_as_long_as_its_owner_says_before_a_policy_resizes_it_again(
    bench: Bench,
) -> None:
    first = saying(min_run_s=600)
    bench.listens(first)
    assert for_policies(bench, first) == (ONE, TWO, FOUR)
    job = after_a_resize(bench, first)
    until_s = bench.now_s + 600
    assert for_policies(bench, job) == (TWO,)
    assert bench.elastic.matures_s(bench.seen(job)) == until_s  # a cycle is made then
    bench.now_s = until_s - 1
    bench.listens(job)
    assert for_policies(bench, job) == (TWO,)
    bench.now_s = until_s
    bench.listens(job)
    assert for_policies(bench, job) == (ONE, TWO, FOUR)
    assert bench.elastic.matures_s(bench.seen(job)) == float("inf")


NODES = (node("n1", gpus=4, free=0, free_cpus=8),)
LIMITED = replace(JOB, shape=TWO, time_limit_s=3600, partitions=("gpu",))


def cluster(bench: Bench, job: Job, free: int, *waiting: Job, **more: Any) -> None:
    """Let a cycle have seen a job on a node with so many free GPUs."""
    nodes = tuple(replace(n, pools=tuple(replace(p, free=free) for p in n.pools)) for n in NODES)
    seen = snapshot([], [], [])
    seen = replace(seen, now_s=bench.now_s, nodes=nodes, running=(job,), waiting=waiting, **more)
    partition = replace(seen.partitions[0], nodes=("n1",))
    seen = bench.elastic.arriving(replace(seen, partitions=(partition,)))
    bench.decided = (seen, EasyBackfill()(view(seen)))
    bench.elastic.decided(*bench.decided)


def test_by_hand_a_job_grows_into_what_is_free_and_keeps_the_end_of_its_time_limit(
    bench: Bench,
) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 1)
    with pytest.raises(Refused, match="4: there is no room for that now"):
        bench.elastic.resize(job, FOUR, "alice")
    cluster(bench, job, 2)
    bench.elastic.resize(job, FOUR, "alice")
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert (over.shape, over.end_s) == (FOUR, 1000.0 + 3600)


def test_by_hand_a_job_may_shrink_whoever_waits_for_its_end(bench: Bench) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2, waiting(8, "4"))
    bench.elastic.resize(job, ONE, "alice")
    assert bench.elastic.overs.of("7") is not None


def test_a_job_whose_room_has_gone_while_it_saved_goes_on_where_it_is(bench: Bench) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2)
    bench.elastic.resize(job, FOUR, "alice")
    cluster(bench, job, 1)
    assert bench.stays()


def drained(seen: Snapshot) -> Snapshot:
    return replace(seen, nodes=tuple(replace(node, up=False) for node in seen.nodes))


def switched_off(seen: Snapshot) -> Snapshot:
    return replace(seen, partitions=tuple(replace(p, up=False) for p in seen.partitions))


def reserved(
    seen: Snapshot, in_s: float = 1800.0, for_s: float = 7200.0, name: str = "work"
) -> Snapshot:
    """Maintenance: the job would have ended before it, without a requeue."""
    start_s = seen.now_s + in_s
    some = (Reservation(name, ("n1",), start_s, start_s + for_s),)
    return replace(seen, reservations=some)


def reserved_soon_over(seen: Snapshot) -> Snapshot:
    """It would stand idle until then."""
    return reserved(seen, in_s=-60.0, for_s=100.0)


CLOSED = [drained, switched_off, reserved, reserved_soon_over]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("guest", ["", "8"])
def test_a_job_that_could_not_start_again_goes_on_where_it_is(
    bench: Bench, closed: Callable[[Snapshot], Snapshot], guest: str
) -> None:
    request = replace(BEST_EFFORT, malleable=Malleable(30))
    running = replace(LIMITED, spec=Spec(request, own=FOUR))
    bench.listens(running)
    job = bench.one(running)
    cluster(bench, job, 2)
    assert [*bench.elastic.begin(shrink(job, guest), always)]
    cluster(bench, job, 2)
    bench.close(closed)
    assert bench.stays()
    bench.elastic.overs.turn()
    assert bench.store.handovers("7")[0].outcome == Outcome.STAYS.value
    assert bench.stays()  # it is said until it is heard
    bench.start()
    assert bench.stays()
    assert bench.hands.did == []


def test_a_job_that_saved_in_vain_is_not_asked_again_at_once(bench: Bench) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2)
    [*bench.elastic.begin(shrink(job), always)]
    seen = bench.decided
    bench.close(drained)
    assert bench.stays()
    bench.elastic.overs.turn()
    assert seen is not None
    bench.elastic.decided(*seen)
    with pytest.raises(Refused, match="or saved in vain"):
        bench.elastic.resize(job, ONE, "alice")
    bench.now_s += REST_S
    bench.listens(LIMITED)
    assert [*bench.elastic.begin(shrink(job), always)]


def test_a_fence_however_long_is_not_in_the_way(bench: Bench) -> None:
    """Where requeued jobs wait for longer, it is longer (AuthInfo=cred_expire=)."""
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2)
    bench.close(lambda seen: reserved(seen, in_s=-60.0, for_s=400.0, name="pliant_9"))
    assert [*bench.elastic.begin(shrink(job), always)]


@pytest.mark.parametrize("closed", CLOSED)
def test_a_job_that_could_not_start_again_is_not_asked(
    bench: Bench, closed: Callable[[Snapshot], Snapshot]
) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2)
    bench.close(closed)
    assert [*bench.elastic.begin(shrink(job), always)] == []
    with pytest.raises(Refused, match="1: it could not start again: a node of it is down"):
        bench.elastic.resize(job, ONE, "alice")


def tiers(seen: Snapshot) -> Snapshot:
    """Another job, of a partition of a higher tier, waits for all that is there."""
    top = Partition("top", ("n1",), tier=5)
    first = replace(waiting(9, "4"), partitions=("top",))
    return replace(seen, partitions=(*seen.partitions, top), waiting=(first,))


@pytest.mark.parametrize("guest", ["", "8"])
def test_a_job_that_would_lose_its_place_to_one_of_a_higher_tier_is_not_asked(
    bench: Bench, guest: str
) -> None:
    running = replace(LIMITED, spec=Spec(replace(BEST_EFFORT, malleable=Malleable(30)), own=FOUR))
    bench.listens(running)
    job = bench.one(running)
    cluster(bench, job, 2)
    open_ = bench.decided
    bench.close(tiers)
    assert [*bench.elastic.begin(shrink(job, guest), always)] == []
    with pytest.raises(Refused, match="1: job 9, of a partition of a higher PriorityTier, could"):
        bench.elastic.resize(job, ONE, "alice")
    assert open_ is not None
    bench.elastic.decided(*open_)
    assert [*bench.elastic.begin(shrink(job, guest), always)]
    bench.close(tiers)  # it was submitted meanwhile
    assert bench.stays()


def test_a_late_checkpoint_of_a_job_that_could_not_start_again_leaves_it_where_it_is(
    bench: Bench,
) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    cluster(bench, job, 2)
    [*bench.elastic.begin(shrink(job), always)]
    name = bench.name()
    bench.elastic.overs.withdraw("7")
    bench.elastic.overs.turn()
    bench.close(drained)
    assert bench.elastic.overs.saved_late(job, 0, name)
    assert bench.elastic.overs.stays("7", 0, name)
    assert bench.elastic.overs.all() == {}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("asked", [True, False])
def test_a_job_grows_beside_one_that_is_between_two_runs(
    bench: Bench, *, asked: bool, known: bool
) -> None:
    """The batch system expects that one on the node, which for whoever waits is kept whole; and its
    fence closes that. Where it is not known what a fence is for, what is behind it is nobody's.
    """
    bench.listens(LIMITED)
    other = replace(LIMITED, id="9")
    bench.listens(other)
    wanted = Plan(reshapes=(Reshape(other, ONE, ("n1",), "it is fair"),))
    [*bench.elastic.begin(wanted, always)]
    back = waiting(9, "1", spec=LIMITED.spec, expected_nodes=("n1",), expected_s=bench.now_s + 1)
    bench.elastic.runs.heard(LIMITED, 0, launched=True, step=60)
    job = bench.one(LIMITED)
    fence = Reservation(f"{FENCE}{9 if known else 10}", ("n1",), bench.now_s, bench.now_s + 60)
    cluster(bench, job, 2, back, reservations=(fence,))

    def grows() -> bool:
        if asked:
            with suppress(Refused):
                bench.elastic.resize(job, FOUR, "alice")
            return bench.elastic.overs.of("7") is not None
        return bench.elastic._places.has_place(job, Wanted(FOUR, ("n1",)))

    assert not grows()  # one of the two is the other's
    cluster(bench, job, 3, back, reservations=(fence,))
    assert grows() is known


def kept_on(name: str, *others: Job) -> Snapshot:
    """Two nodes with two free GPUs each, of which one is kept for a job that waits."""
    first = waiting(9, "4", expected_nodes=(name,), expected_s=NOW_S + 60)
    nodes = [node("n1", gpus=8, free=2), node("n2", gpus=8, free=2)]
    return replace(snapshot(nodes, [first], []), running=others, now_s=NOW_S)


@pytest.mark.parametrize(
    ("on", "wanted", "aside"),
    [
        ("n1", Wanted(ONE), ""),  # where it runs
        ("n2", Wanted(ONE), "n2"),
        ("n1", Wanted(FOUR, ("n2",)), "n1"),
        ("n2", Wanted(FOUR, ("n2",)), ""),
        ("n1", Wanted(Shape(1, 5), ("n2",)), ""),  # nor there
        ("n2", Wanted(TWO, ("n1",), "8"), "n2"),  # the guest is not known
        ("n2", Wanted(Shape(1, 3)), ""),  # it has no room there
        ("n2", Wanted(ONE, end_s=NOW_S + 50), ""),  # it is over before
    ],
)
def test_kept_for_others_is_what_is_elsewhere_than_where_a_job_is_to_be(
    bench: Bench, on: str, wanted: Wanted, aside: str
) -> None:
    job = bench.one(LIMITED)
    bench.elastic.decided(kept_on(on, job), Plan())
    assert bench.elastic._places.kept(job, wanted) == frozenset(filter(None, [aside]))


@pytest.mark.parametrize(
    ("of", "kept"),
    [
        ({}, True),  # once it waits it may be in others, too
        ({"nodes_required": frozenset({"n1"})}, False),
        ({"nodes_excluded": frozenset({"n2"})}, False),
        ({"features": frozenset({"fast"})}, False),
    ],
)
def test_of_other_partitions_than_its_own_what_a_job_may_have_is_kept_from_it(
    bench: Bench, of: dict[str, Any], *, kept: bool
) -> None:
    job = replace(bench.one(LIMITED), **of)
    parts = (Partition("gpu", ("n1",), default=True), Partition("more", ("n2",)))
    seen = kept_on("n2", job)
    first = replace(seen.waiting[0], partitions=("more",))
    bench.elastic.decided(replace(seen, partitions=parts, waiting=(first,)), Plan())
    assert bench.elastic._places.kept(job, Wanted(ONE)) == frozenset({"n2"} if kept else {})


def test_nothing_is_kept_from_a_job_of_which_nobody_knows_where_it_ran(bench: Bench) -> None:
    """What was meant is forgotten; it would be kept from its own place, too."""
    job = replace(bench.one(LIMITED), state=JobState.WAITING, nodes=())
    bench.elastic.decided(kept_on("n1"), Plan())
    assert bench.elastic._places.kept(job, Wanted(TWO)) == frozenset()
    assert bench.elastic._places.kept(job, Wanted(TWO, ("n2",))) == {"n1"}


def test_what_a_plan_starts_somebody_on_is_kept_for_it(bench: Bench) -> None:
    """The job has left its node for another; it is in the look as if it were there already."""
    job = replace(bench.one(LIMITED), nodes=("n1",))
    first = waiting(9, "4")
    seen = replace(kept_on("n2", replace(job, nodes=("n2",))), waiting=(first,))
    start = Start(first, FOUR, ("n1",), "it has its turn")
    bench.elastic.decided(seen, Plan(starts=(start,)))
    assert bench.elastic._places.kept(job, Wanted(ONE, ("n2",))) == {"n1"}
    bench.elastic.decided(seen, Plan())
    assert bench.elastic._places.kept(job, Wanted(ONE, ("n2",))) == frozenset()


def test_who_moves_is_kept_from_where_it_was(bench: Bench) -> None:
    """Once something is decided: before, nobody knows what is kept."""
    bench.listens(LIMITED)
    job, to = bench.one(LIMITED), Wanted(ONE, ("n2",))
    assert bench.elastic._places.kept(job, to) == frozenset()
    bench.elastic.overs.begin(job, to, NOW_S + 60, "it is fair")
    bench.elastic.decided(kept_on("n1", job), Plan())
    assert bench.elastic._places.kept(job, to) == {"n1"}


def test_what_is_planned_for_a_job_itself_is_kept_for_nobody_else(bench: Bench) -> None:
    job = replace(bench.one(LIMITED), expected_nodes=("n2",), expected_s=NOW_S + 60)
    waits = replace(job, state=JobState.WAITING, nodes=())
    claim = Claim(waits, TWO, NOW_S + 60, ("n2",), "it is first")
    bench.elastic.decided(replace(kept_on("n1"), waiting=(waits,)), Plan(claims=(claim,)))
    assert bench.elastic._places.kept(job, Wanted(TWO, ("n1",))) == frozenset()


def test_who_decides_does_not_take_what_is_kept_from_one_job_for_closed(bench: Bench) -> None:
    """Other jobs would be molded for it, or make room."""
    bench.listens(LIMITED)
    bench.elastic.overs.begin(bench.one(LIMITED), Wanted(ONE, ("n1",)), NOW_S + 60, "it is fair")
    around = {"7": ("n1", "n2"), "5": ("n2",)}
    fences = [Reservation(f"{FENCE}{j}", on, NOW_S, NOW_S + 9) for j, on in around.items()]
    others = Reservation("maintenance", ("n2",), NOW_S, NOW_S + 9)
    seen = replace(kept_on("n1"), reservations=(*fences, others))
    (own, *rest) = bench.elastic.arriving(seen).reservations
    assert (own.nodes, rest) == (("n1",), [fences[1], others])
    aside = replace(fences[0], nodes=("n2",))
    assert bench.elastic.arriving(replace(seen, reservations=(aside,))).reservations == ()


def test_what_others_return_to_is_not_kept_from_a_job(bench: Bench) -> None:
    """Two would wait for each other. Their fences are in nobody's way: they may have fallen."""
    job, other = bench.one(LIMITED), replace(LIMITED, id="12", nodes=("n2",))
    fence = Reservation(f"{FENCE}5", ("n2",), NOW_S, NOW_S + 60)
    seen = replace(kept_on("n2", job), reservations=(fence,))
    bench.elastic.decided(seen, Plan())
    assert bench.elastic._places.kept(job, Wanted(ONE)) == {"n2"}
    bench.listens(other)
    bench.elastic.overs.begin(other, Wanted(ONE, ("n2",)), NOW_S + 60, "it is fair")
    bench.elastic.decided(seen, Plan())
    assert bench.elastic._places.kept(job, Wanted(ONE)) == frozenset()


@pytest.mark.parametrize("before", [True, False])
def test_kept_from_a_guest_is_what_those_before_it_wait_for(bench: Bench, *, before: bool) -> None:
    victim = replace(bench.one(LIMITED), shape=FOUR)
    guest = waiting(8, "1", time_limit_s=7200, next_shape=TWO)
    seen = kept_on("n2", victim)
    waits = (*seen.waiting, guest) if before else (guest, *seen.waiting)
    bench.elastic.decided(replace(seen, waiting=waits), Plan())
    wanted = Wanted(FOUR, ("n1",), "8", asks=guest)
    assert bench.elastic._places.kept(victim, wanted) == frozenset({"n2"} if before else {})
    pinned = (replace(guest, priority=GUEST), *seen.waiting)  # it is behind who was before it
    bench.elastic.decided(replace(seen, waiting=pinned), Plan())
    asks = replace(guest, priority=guest.priority - 1) if before else guest
    wanted = replace(wanted, asks=asks)
    assert bench.elastic._places.kept(victim, wanted) == frozenset({"n2"} if before else {})
    risen = (*seen.waiting, guest) if before else (guest, *seen.waiting)  # by its age, say
    bench.elastic.decided(replace(seen, waiting=risen), Plan())
    wanted = replace(wanted, asks=replace(guest, priority=guest.priority - 1))
    assert bench.elastic._places.kept(victim, wanted) == frozenset({"n2"} if before else {})
    wanted = replace(wanted, asks=asks)
    bench.elastic.decided(replace(seen, waiting=(*seen.waiting, guest)), Plan())
    plain = replace(wanted, asks=replace(asks, shape=TWO, next_shape=None))
    assert bench.elastic._places.kept(victim, plain) == {"n2"}
    larger = replace(wanted, asks=replace(guest, next_shape=Shape(1, 3)))
    assert bench.elastic._places.kept(victim, larger) == frozenset()


def test_of_a_job_that_goes_back_to_its_own_shape_late_it_is_not_known_where_that_will_be(
    bench: Bench,
) -> None:
    """Decided was where it was to have the other one: stored, and read by the next pliantd."""
    two = replace(JOB, shape=Shape(2, 4), nodes=("n1", "n2"))
    bench.look(two)
    bench.elastic.overs.begin(two, Wanted(FOUR, ("n1",)), bench.now_s, "it is fair")
    bench.elastic.overs.withdraw("7")
    bench.elastic.overs.turn()
    bench.now_s += STALE_S + 1
    assert bench.elastic.overs.saved_late(two, 0, bench.name())
    bench.store.close()
    bench.start()
    back = waiting(7, "4", nodes=2, spec=two.spec)
    bench.look(waiting=(back,))
    seen = snapshot([node("n1", gpus=4), node("n2", gpus=4)], [back], [])
    assert bench.elastic.overs.all()["7"] == Wanted(two.shape, ("n1",))
    assert bench.elastic.arriving(seen) == seen


def test_a_job_has_room_beside_what_others_are_on_their_way_to(bench: Bench) -> None:
    bench.listens(LIMITED)
    job = bench.one(LIMITED)
    other = replace(LIMITED, id="9", shape=ONE, shapes=(ONE,), next_nodes=("n1",))

    def grows(other: Job) -> None:
        seen = snapshot([node("n1", gpus=6)], [], [job, other])
        seen = replace(seen, now_s=bench.now_s)
        bench.elastic.decided(seen, Plan())
        bench.elastic.resize(job, FOUR, "alice")

    with pytest.raises(Refused, match="there is no room"):
        grows(replace(other, next_shape=Shape(1, 3)))
    grows(replace(other, next_shape=TWO))


def test_a_job_that_gives_something_up_needs_no_room_once_it_has_saved(bench: Bench) -> None:
    bench.listens(LIMITED)
    bench.now_s += 60.0  # its time limit begins anew: later than who waits counts on
    job = bench.one(LIMITED)
    cluster(bench, job, 2, waiting(8, "4"))
    [*bench.elastic.begin(Plan(reshapes=(Reshape(job, ONE, ("n1",), "it is fair"),)), always)]
    over = bench.elastic.overs.of("7")
    assert over is not None
    assert bench.elastic.overs.saved("7", 0, name_of(over))
    saved = bench.elastic.overs.of("7")
    assert saved is not None
    assert saved.shape == ONE


TWO_NODES = ("n1", "n2")


@pytest.fixture
def parts(bench: Bench) -> Callable[..., bool]:
    """Let one of two leave their node for another, and return whether it does once it has saved.

    ``others``: who runs by then beside it or elsewhere.
    """
    whole = Footprint(cpus_per_task=4)
    spec = Spec(Request(colocate=True, malleable=Malleable(30)), own=WHOLE)
    one = replace(JOB, shape=WHOLE, shapes=(WHOLE,), spec=spec, footprint=whole, shares=True)

    def parted(*others: tuple[str, str]) -> bool:
        def look(*others: tuple[str, str]) -> None:
            jobs = [one, *(replace(one, id=name, nodes=(on,)) for name, on in others)]
            busy = {name for job in jobs for name in job.nodes}
            nodes = [
                replace(node(n, 0, cpus=4), free_cpus=0 if n in busy else 4) for n in TWO_NODES
            ]
            seen = replace(snapshot(nodes, []), running=tuple(jobs), now_s=bench.now_s)
            bench.elastic.decided(bench.elastic.known(seen), Plan())

        bench.listens(one)
        look(("8", "n1"))
        reshape = Reshape(bench.one(one), WHOLE, ("n2",), "it is parted from job 8")
        [*bench.elastic.begin(Plan(reshapes=(reshape,)), always)]
        over = bench.elastic.overs.of("7")
        assert over is not None
        look(*others)
        assert bench.elastic.overs.saved("7", 0, name_of(over))
        saved = bench.elastic.overs.of("7")
        assert saved is not None
        return saved.saved_s > 0

    return parted


@pytest.mark.parametrize(
    ("others", "leaves"),
    [
        ([("8", "n1")], True),
        ([("8", "n1"), ("9", "n2")], False),  # it would wait, before all others
        ([], False),  # it is alone by now
    ],
)
def test_one_that_is_parted_leaves_only_while_its_other_node_is_idle(
    parts: Callable[..., bool], others: list[tuple[str, str]], leaves: bool
) -> None:
    assert parts(*others) is leaves


def test_shortly_before_its_end_a_job_is_not_resized_by_hand(bench: Bench) -> None:
    bench.listens(LIMITED)
    bench.now_s = 1000.0 + 3600 - 100
    bench.listens(LIMITED)
    with pytest.raises(Refused, match="less than two minutes"):
        bench.elastic.resize(bench.one(LIMITED), ONE, "alice")


class Alice(Munge):
    """Believes every credential."""

    async def prove(self, credential: bytes) -> Proof:
        return Proof(1001, credential)


async def watched(bench: Bench) -> list[dict[str, Any]]:
    """Watch twice: until a wish comes, and what is there at once."""
    watching = Watching()
    bench.elastic = Elastic(
        *(bench.hands, bench.store, lambda: bench.now_s, lambda: bench.now_s),
        changed=watching.tell,
    )
    seen = SimpleNamespace(snapshot=SimpleNamespace(running=(JOB,)))
    cycling = cast("Any", SimpleNamespace(seen=seen))
    overs = bench.elastic.overs
    verbs = RunVerbs(cycling, bench.elastic.runs, overs, lambda: bench.now_s)
    other = cast("Any", SimpleNamespace(stands_by=lambda: ""))
    alice = Asker(1001, "alice", admin=False, sees_all=True)
    door = MungeDoor(Alice(""), other, lambda _uid: alice, Watches(verbs, watching))

    async def ask() -> dict[str, Any]:
        answer = door.begin()
        hello = decode(await answer(b"hello", stays))
        fields = {"job": "7", "run": "0", "launched": "1", "known": "", **hello.fields}
        line = encode(Message("run-watch", fields))
        said = decode(await answer(b"munge " + line, stays))
        assert said.is_ok, said.message
        return cast("dict[str, Any]", json.loads(said.fields["json"]))

    async def hear() -> dict[str, Any]:
        """Watch until a wish comes: that a program was launched may end a watch, too."""
        while not (said := await ask())["shape"]:
            pass
        return said

    first = asyncio.create_task(hear())
    while not len(watching):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert not first.done()
    [*bench.elastic.begin(reshape(bench.one()), always)]
    async with asyncio.timeout(10):
        return [await first, await ask()]


def test_a_watch_is_answered_as_soon_as_something_is_wanted(bench: Bench) -> None:
    answers = asyncio.run(watched(bench))
    assert [answer["shape"] for answer in answers] == ["2", "2"]
    assert {answer["why"] for answer in answers} == {"resize"}


@pytest.mark.parametrize(("name", "kept"), [("pliant_7", ("n1",)), ("7", ("n1", "n2"))])
def test_of_fences_alone_the_nodes_are_looked_at(name: str, kept: tuple[str, ...]) -> None:
    """A site's own reservation may have a job's number for a name."""
    one = Reservation(name, ("n1", "n2"), 0.0, 2000.0)
    seen = _fenced_alone(Snapshot(1000.0, (), (), reservations=(one,)), {"7": ("n1",)})
    assert [each.nodes for each in seen.reservations] == [kept]
