"""What pliantd remembers of flagged jobs: from their first sight to their end and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from slurm_queue import Queue
from test_daemon import ALICE, BOB, ENFORCE, FOUR, ONE, ROOT, SHY_BOB, TWO

from pliant.batch import Ended
from pliant.cli.history import print_history
from pliant.daemon import answers as a
from pliant.daemon.config import parse
from pliant.daemon.counting import Took
from pliant.daemon.cycling import Cycling
from pliant.daemon.idling import ALL, Use, gpu_use
from pliant.daemon.patience import Patience
from pliant.daemon.remembering import REGULARLY_S
from pliant.daemon.reporting import ReportAnswer
from pliant.daemon.rights import Asker
from pliant.daemon.seen import Seen
from pliant.daemon.verbs import Verbs
from pliant.errors import PliantError, Unavailable
from pliant.grammar import UNANSWERED, note
from pliant.handover import Outcome
from pliant.model import Job, JobState, Node, Partition, Pool, Shape, Snapshot, Spec
from pliant.plan import Plan, Start
from pliant.policies import by_name
from pliant.store import HandOverRow, Store, Tally

OBSERVE = {"partitions": {"default": "observe"}}


@dataclass(slots=True)
class Remembers:
    """A cluster of one node of four GPUs, and pliantd's cycles over it; time is moved by hand."""

    directory: Path
    mode: dict[str, dict[str, str]] = field(default_factory=lambda: ENFORCE)
    batch: Queue = field(default_factory=Queue)
    away: str = ""
    asked: int = 0
    takes_s: float = 0.0
    cycling: Cycling = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start pliantd, again."""
        self.cycling = Cycling(
            self.batch,
            Store(self.directory),
            parse(self.mode),
            by_name("moldable-equipartition"),
            patience=Patience(backfill_s=10.0),
            clock=self.batch.clock,
            monotonic=self.batch.clock,
            ended=self.ask_ended,
        )

    def ask_ended(self) -> Sequence[Ended]:
        self.asked += 1
        self.batch.clock.now_s += self.takes_s
        if self.away:
            raise Unavailable(self.away)
        return self.batch.ended()

    @property
    def now_s(self) -> float:
        return self.batch.clock()

    def look(self, after_s: float = 10.0) -> None:
        self.batch.clock.now_s += after_s
        self.cycling.run()

    def submit(
        self,
        number: str,
        text: str = "gpus=1-4",
        own: Shape = FOUR,
        *,
        answered: bool = True,
        **more: Any,
    ) -> None:
        """Let a job wait, as the filter left it where it was ``answered``."""
        self.batch.submit(number, text, own, **more)
        if not answered:
            comment = self.batch.record(number).comment
            self.batch.has(number, comment=note(comment, UNANSWERED, 1))

    def start(self, number: str) -> None:
        """Let a waiting job run as it is."""
        self.batch.has(number, state="RUNNING", start_s=self.now_s)

    def end(self, number: str, state: str = "COMPLETED") -> None:
        """Let a running job end; Slurm remembers how."""
        self.batch.has(number, state=state, end_s=self.now_s)

    def ask(self, who: Asker, verb: str, job: str = "", **fields: str) -> object:
        verbs = Verbs(
            self.cycling,
            wake=lambda: None,
            clock=self.batch.clock,
            troubles=tuple,
            submissions=lambda: 0,
            started_s=0.0,
        )
        try:
            return verbs.answer(verb, {"job": job, **fields}, who)
        except PliantError as error:
            return str(error)

    def history(self, job: str, who: Asker = ROOT) -> a.HistoryAnswer:
        answer = self.ask(who, "history", job)
        assert isinstance(answer, a.HistoryAnswer), answer
        return answer

    @property
    def seen(self) -> Seen:
        """What the last cycle saw."""
        assert self.cycling.seen is not None
        return self.cycling.seen

    def counted(self) -> Tally:
        """What is counted since the start in partition gpu."""
        return self.cycling.remembering.counting.since_start.get("gpu", Tally())


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.daemon.verbs.NEW_LOOK_S", 0.0)


@pytest.fixture
def at(tmp_path: Path) -> Remembers:
    return Remembers(tmp_path)


def test_what_the_filter_set_leaves_a_trace(at: Remembers) -> None:
    at.submit("7", gpus=2)
    at.batch.says("7", set=TWO)
    at.start("7")
    at.look()
    told = at.history("7")
    assert (told.own, told.filtered, told.answered, told.state) == ("4", "2", True, "running")
    assert [(d.what, d.shape, d.reason) for d in told.decisions] == [
        ("filter", "2", "at its submission, in place of 4")
    ]
    assert at.counted() == Tally(0.0, "gpu", answered=1, starts=1, molded=1)


def test_a_run_of_which_a_killed_slurmctld_knows_nothing_goes_on(at: Remembers) -> None:
    at.submit("7")
    at.start("7")
    at.look()
    before = at.batch.record("7")
    at.look(90.0)
    at.batch.has("7", state="PENDING", run=1, submit_s=at.now_s, start_s=0.0)
    at.look()
    at.start("7")
    at.look()
    known = at.history("7").runs
    at.batch.has("7", run=0, submit_s=before.submit_s, start_s=before.start_s)
    at.look(50.0)
    assert at.history("7").runs == known


def test_a_job_that_has_ended_has_a_history_and_a_why(at: Remembers) -> None:
    at.submit("7", "gpus=2:4", own=FOUR)
    at.look(0.0)
    at.look(20.0)
    at.start("7")
    at.look(10.0)
    at.look(30.0)
    at.end("7", "FAILED")
    at.look(5.0)
    told = at.history("7", ALICE)
    (run,) = told.runs
    assert (told.state, told.exit, told.request) == ("ended", "FAILED", "moldable=gpus=2:4")
    assert told.start_s - told.submit_s == 20.0
    assert (run.shape, run.nodes, run.gpus) == ("4", ("n1",), 4.0)
    assert run.end_s - run.start_s == told.end_s - told.start_s == 40.0
    why = at.ask(ALICE, "why", "7")
    assert isinstance(why, a.WhyAnswer)
    assert (why.job.state, why.job.reason) == ("ended", "FAILED")
    assert why.text == "it has ended: FAILED; it started as 4"
    record = at.cycling.store.jobs.job("7")
    assert record is not None
    assert (record.gpu_s, record.own_gpu_s) == (160.0, 160.0)


def test_who_may_not_see_others_jobs_sees_no_ended_ones(at: Remembers) -> None:
    at.submit("7")
    at.look()
    at.start("7")
    at.look()
    at.end("7")
    at.look()
    at.begin()
    at.look()
    for verb in ("why", "history"):
        assert "no waiting or running job" in str(at.ask(SHY_BOB, verb, "7"))
        assert not isinstance(at.ask(BOB, verb, "7"), str)
        assert not isinstance(at.ask(replace(ALICE, sees_all=False), verb, "7"), str)


def test_a_job_that_came_and_went_between_two_looks_is_remembered(at: Remembers) -> None:
    at.look()
    at.submit("7", own=TWO, answered=False)
    at.start("7")
    at.end("7")
    at.look(REGULARLY_S)
    told = at.history("7")
    assert (told.state, told.exit, told.answered) == ("ended", "COMPLETED", False)
    assert [run.gpus for run in told.runs] == [2.0]
    counted = at.counted()
    assert (counted.answered, counted.unanswered, counted.starts) == (0, 1, 1)
    at.look(REGULARLY_S)
    at.begin()
    at.look(REGULARLY_S)
    assert at.counted().unanswered == 0  # it is not met again


def test_status_says_how_many_submissions_got_no_answer(at: Remembers) -> None:
    at.submit("7", answered=False)
    at.submit("8")
    at.look()
    at.look()
    status = at.ask(ROOT, "status", "")
    assert isinstance(status, a.StatusAnswer)
    assert status.unanswered == 1


def test_an_array_is_one_submission_though_it_ends_with_its_first_tasks_unseen(
    at: Remembers,
) -> None:
    at.look()
    for task in ("7_0", "7_1"):
        at.submit(task, own=ONE, text="gpus=1-2")
        at.start(task)
        at.end(task)
    at.submit("7", own=ONE, text="gpus=1-2", also=[("ArrayTaskID", "2-4")])
    at.end("7", "CANCELLED")
    at.look(REGULARLY_S)
    assert at.counted().answered == 1
    array = at.cycling.store.jobs.job("7")
    assert array is not None
    assert (array.state, array.exit, array.tasks) == ("ended", "CANCELLED", 3)


def test_what_happened_while_pliantd_was_dead_is_found_at_the_start(at: Remembers) -> None:
    at.submit("7")
    at.submit("8")
    at.look()
    at.start("7")
    at.end("7", "TIMEOUT")
    at.start("8")
    at.submit("9", answered=False)
    at.start("9")
    at.end("9")
    at.begin()
    at.look()
    assert [at.history(job).state for job in "789"] == ["ended", "running", "ended"]
    assert [at.history(job).exit for job in "789"] == ["TIMEOUT", "", "COMPLETED"]
    assert (at.counted().answered, at.counted().unanswered) == (0, 1)


def test_a_change_that_was_made_as_pliantd_was_killed_is_told_once_the_job_runs(
    at: Remembers,
) -> None:
    at.batch.run("1", TWO)
    at.submit("7", "gpus=2:4", own=FOUR)
    at.submit("8", "gpus=4", own=FOUR)
    at.look()
    store = at.cycling.store
    store._db.write("DELETE FROM decisions WHERE job = ?", ("7",))  # as if killed before
    at.begin()
    at.start("7")
    at.look()
    (told,) = at.history("7").decisions
    assert (told.what, told.shape) == ("mold", "2")
    assert told.reason.endswith(" (pliantd ended before it was noted)")
    assert not told.reason.startswith("it is not known why")
    at.look()
    assert len(at.history("7").decisions) == 1


def test_a_job_that_started_before_it_was_changed_is_no_refusal(at: Remembers) -> None:
    at.batch.run("1", TWO)
    at.submit("7", "gpus=2:4", own=FOUR)
    at.batch.between = lambda: at.start("7")
    at.look()
    assert [start.job.id for start in at.seen.plan.starts] == ["7"]  # as two GPUs
    assert at.batch.changes == []
    assert at.cycling.counts.failures == at.counted().failures == 0
    assert "refused" not in [d.what for d in at.history("7").decisions]


def test_while_the_batch_system_does_not_say_how_it_ended_a_job_is_not_closed(
    at: Remembers,
) -> None:
    at.submit("7")
    at.look()
    at.start("7")
    at.look()
    at.end("7")
    at.away = "slurmctld hangs"
    at.look()
    why = at.ask(ROOT, "why", "7")
    assert isinstance(why, a.WhyAnswer)
    assert why.text == "it has ended: how is not known yet; it started as 4"
    at.away = ""
    at.look()
    assert at.history("7").exit == "COMPLETED"


def test_a_job_that_the_batch_system_has_forgotten_ended_nobody_knows_how(at: Remembers) -> None:
    at.submit("7")
    at.look()
    at.batch.gone("7")
    at.look()
    told = at.history("7")
    assert (told.state, told.exit, told.end_s) == ("ended", "", at.now_s)
    why = at.ask(ROOT, "why", "7")
    assert isinstance(why, a.WhyAnswer)
    assert why.text == "it has ended before it started: how is not known"


@pytest.mark.parametrize("is_seen", [True, False], ids=["its end is seen", "not seen"])
def test_each_run_of_a_job_that_is_requeued_is_kept(at: Remembers, is_seen: bool) -> None:
    at.batch.run("1", TWO)
    at.submit("7", "gpus=1:2", own=TWO)
    at.look()
    at.start("7")
    at.look(10.0)
    at.look(30.0)
    at.batch.has("1", gpus=3)
    if is_seen:  # Slurm shows its next run from the requeue on, as if it began now
        at.batch.has("7", state="COMPLETING", run=1, start_s=at.now_s, cleaned_s=at.now_s + 60)
        at.batch.has("7", gpus=4)  # as its owner asks since
        at.look(0.0)
    at.batch.has("7", state="PENDING", run=1, submit_s=at.now_s, start_s=0.0, gpus=1)
    at.batch.says("7", set=ONE)
    at.look(5.0)
    at.start("7")
    at.look(5.0)
    at.batch.clock.now_s += 10.0
    at.end("7")
    at.look(5.0)
    told = at.history("7")
    assert [(run.run, run.shape, run.end_s - run.start_s) for run in told.runs] == [
        (0, "2", 40.0),
        (1, "1", 15.0),
    ]
    record = at.cycling.store.jobs.job("7")
    assert record is not None
    assert (record.gpu_s, record.own_gpu_s) == (2 * 40.0 + 15.0, 2 * 55.0)
    assert at.counted().starts == 1


def begin_as_two(at: Remembers) -> None:
    """Let job 7 run for ten seconds."""
    at.submit("7", "gpus=1:2", own=TWO)
    at.look()
    at.start("7")
    at.look(10.0)


def test_a_job_that_is_cancelled_while_it_goes_back_to_the_queue_has_had_no_other_run(
    at: Remembers,
) -> None:
    begin_as_two(at)
    at.batch.has("7", run=1)
    at.end("7", "CANCELLED")
    at.look(5.0)
    assert [run.run for run in at.history("7").runs] == [0]


def test_a_run_of_which_only_the_end_is_seen_is_not_taken_for_the_next(at: Remembers) -> None:
    at.submit("7", "gpus=1:2", own=TWO)
    at.look()
    at.batch.has("7", state="COMPLETING", run=1, start_s=at.now_s, cleaned_s=at.now_s + 60)
    at.look(5.0)
    at.batch.has("7", state="PENDING", run=1, submit_s=at.now_s, start_s=0.0)
    at.look(5.0)
    at.start("7")
    began_s = at.now_s
    at.look(5.0)
    assert [(run.run, run.start_s) for run in at.history("7").runs] == [(1, began_s)]


def test_one_that_is_cancelled_before_it_was_seen_to_wait_again_has_run_until_its_requeue(
    at: Remembers,
) -> None:
    begin_as_two(at)
    at.batch.has("7", state="PENDING", run=1, submit_s=at.now_s + 30.0, start_s=0.0)
    at.batch.clock.now_s += 35.0
    at.end("7", "CANCELLED")
    at.look(5.0)
    told = at.history("7")
    assert [(run.run, run.end_s - run.start_s) for run in told.runs] == [(0, 40.0)]
    record = at.cycling.store.jobs.job("7")
    assert record is not None
    assert (record.exit, record.run, record.gpu_s) == ("CANCELLED", 1, 2 * 40.0)


def test_a_job_that_failed_and_came_and_went_again_between_two_looks_has_ended_as_it_did_then(
    at: Remembers,
) -> None:
    at.submit("7", "gpus=1:2", own=TWO)
    at.start("7")
    at.look()
    at.end("7", "FAILED")
    at.look()
    at.batch.has("7", run=1, submit_s=at.now_s, start_s=at.now_s + 2.0)
    at.batch.clock.now_s += 20.0
    at.end("7")
    at.look(REGULARLY_S)
    told = at.history("7")
    assert (told.state, told.exit, [run.run for run in told.runs]) == ("ended", "COMPLETED", [0, 1])


def test_a_number_that_comes_again_is_another_job(at: Remembers) -> None:
    at.submit("7")
    at.look()
    at.look(1000.0)
    at.submit("7", "gpus=2:4", own=TWO)
    at.look()
    assert at.history("7").request == "moldable=gpus=2:4"
    assert at.counted().answered == 2


def test_a_number_that_comes_again_unseen_has_nothing_of_the_other_job(at: Remembers) -> None:
    at.submit("7", gpus=2)
    at.batch.says("7", set=TWO)
    at.start("7")
    at.look()
    at.end("7")
    at.look()
    at.batch.gone("7")
    at.look(1000.0)
    at.submit("7", "gpus=1", own=ONE, user="bob", also=[("Account", "chemistry")])
    at.start("7")
    at.end("7")
    at.look(REGULARLY_S)
    told = at.history("7", SHY_BOB)
    assert (told.user, told.own, told.filtered, told.decisions) == ("bob", "1", "", ())
    (run,) = told.runs
    assert (run.shape, run.gpus, run.start_s) == ("1", 1.0, told.start_s)
    assert run.end_s == told.end_s
    (stored,) = at.cycling.store.runs("7", silent=True)
    assert (stored.user, stored.account) == ("bob", "chemistry")


def test_tasks_of_an_array_are_one_submission(
    at: Remembers, capsys: pytest.CaptureFixture[str]
) -> None:
    at.submit("7", own=ONE, text="gpus=1-2", also=[("ArrayTaskID", "0-2")])
    at.look()
    record = at.cycling.store.jobs.job("7")
    assert record is not None
    assert (record.array, record.tasks) == (True, 3)
    for task in "01":
        at.submit(f"7_{task}", own=ONE, text="gpus=1-2")
        at.start(f"7_{task}")
    at.batch.has("7", [("ArrayTaskID", "2")])  # which is how task 2 is named from now on
    at.look()
    array = at.cycling.store.jobs.job("7")
    assert array is not None
    assert (array.state, array.tasks) == ("ended", 0)
    assert (at.counted().answered, at.counted().starts) == (1, 2)
    assert at.history("7_2").state == "waiting"
    at.submit("70", own=ONE)
    at.look()
    why = at.ask(ROOT, "why", "7")
    assert isinstance(why, a.WhyAnswer)
    tasks = "it is an array, whose tasks are asked for one by one: 7_0, 7_1, 7_2"
    assert why.text == tasks
    assert at.history("7").tasks == tasks
    print_history(at.history("7"))
    told = capsys.readouterr().out
    assert f"\n{tasks}\n" in told
    assert "it ended" not in told


def test_where_pliant_observes_it_is_remembered_what_would_have_been(tmp_path: Path) -> None:
    at = Remembers(tmp_path, OBSERVE)
    at.batch.run("1", TWO)
    at.submit("7", "gpus=2:4", own=FOUR)
    at.look(0.0)
    told = at.history("7")
    assert (told.would, told.would_s) == ("2", at.now_s)
    at.look(60.0)
    total = at.cycling.remembering.counting.since_start[ALL]
    assert (total.avoidable_gpu_s, total.other_gpu_s, total.idle_gpu_s) == (120.0, 120.0, 0.0)
    assert at.counted().avoidable_gpu_s == 120.0


def test_changes_are_counted_and_so_is_when_a_job_would_have_started_unchanged(
    at: Remembers,
) -> None:
    at.batch.run("1", TWO)
    expected = [("SchedNodes", "n1"), ("StartTime", "5000")]
    at.submit("7", "gpus=2:4", own=FOUR, also=expected)
    at.look(0.0)
    at.look(1.0)
    record = at.cycling.store.jobs.job("7")
    assert record is not None
    assert record.expected_s == 5000.0
    at.batch.refuses = "no"
    at.batch.gone("1")
    at.look(1.0)
    assert (at.counted().updates, at.counted().failures) == (1, 1)


def test_a_mistake_in_remembering_stops_no_cycle(
    at: Remembers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    at.batch.run("1", TWO)
    at.submit("7", "gpus=2:4", own=FOUR)
    monkeypatch.setattr("pliant.daemon.remembering.gpu_use", lambda *_some: 1 / 0)
    at.look()
    assert at.batch.changes == [("7", "2")]
    assert "a mistake of Pliant's own" in caplog.text
    monkeypatch.undo()
    at.look()
    assert at.history("7").state == "waiting"


def test_a_look_that_shows_nothing_new_writes_nothing(at: Remembers) -> None:
    at.submit("7", "gpus=4", own=FOUR)
    at.look()
    at.look()
    written: list[object] = []
    at.cycling.store.jobs.keep = lambda *some, **_more: written.append(some)  # type: ignore[method-assign]  # spied on
    for _ in range(5):
        at.look(1.0)
    assert written == []


def test_the_batch_system_is_not_asked_for_ended_jobs_all_the_time(at: Remembers) -> None:
    for _ in range(60):
        at.look(1.0)
    assert at.asked == 60 / REGULARLY_S
    at.submit("7")
    at.look(1.0)
    at.start("7")
    at.look(1.0)
    at.end("7")
    at.look(1.0)
    assert at.asked == 60 / REGULARLY_S + 2  # the next of these, and one because it is gone


@pytest.mark.parametrize(("slow", "asked"), [(1, 3), (2, 2)])
def test_it_is_asked_again_soon_unless_two_answers_were_slow(
    at: Remembers, slow: int, asked: int
) -> None:
    at.submit("7")
    at.start("7")
    at.look()
    at.end("7")
    at.asked, at.takes_s, at.away = 0, 10.0, "no answer within 10 s"
    for _ in range(slow):
        at.look()
    at.takes_s = 0.0
    for _ in range(3 - slow):
        at.look()
    assert at.asked == asked


def test_counts_outlast_a_restart_by_the_hour(at: Remembers) -> None:
    at.submit("7")
    at.look()
    at.begin()
    at.submit("8")
    at.look()
    with at.cycling.store.jobs._db.reading() as read:
        rows = read("SELECT hour_s, answered FROM hours WHERE partition = 'gpu'", ())
    assert rows == [(0.0, 2)]


def test_a_report_is_for_administrators_and_adds_up(at: Remembers) -> None:
    at.submit("7", own=TWO)
    at.look()
    at.start("7")
    at.look(30.0)
    at.end("7")
    at.look(30.0)
    found = at.ask(ROOT, "report", since="3600")
    assert isinstance(found, ReportAnswer)
    (part,) = found.report.partitions
    assert (part.partition, part.mode) == ("gpu", "enforce")
    assert (part.sums.jobs, part.sums.ended, part.counted.answered) == (1, 1, 1)
    assert "only an administrator" in str(at.ask(ALICE, "report", since="3600"))
    for wrong in ("0", "x", "-1", "9" * 12):
        assert "a number of seconds is expected" in str(at.ask(ROOT, "report", since=wrong))


def test_an_administrator_lets_a_users_ended_jobs_be_forgotten(at: Remembers) -> None:
    at.submit("7", own=TWO)
    at.start("7")
    at.look()
    at.end("7")
    at.look()
    assert "only an administrator" in str(at.ask(ALICE, "forget", user="alice"))
    told = at.ask(ROOT, "forget", user="alice")
    assert told == a.DoneAnswer("1 jobs of alice that have ended are forgotten")
    assert "no waiting or running job" in str(at.ask(ROOT, "history", "7"))
    at.look(REGULARLY_S)
    assert "no waiting or running job" in str(at.ask(ROOT, "history", "7"))  # though Slurm knows it


def test_what_was_counted_is_told_for_metrics(at: Remembers) -> None:
    at.submit("7", own=TWO, answered=False)
    at.start("7")
    at.look(0.0)
    at.look(30.0)
    row = HandOverRow(1, 0.0, "7", "alice", "", 0, "4", "2", "", "it fits", 0.0, 10.0, 14.0)
    counting = at.cycling.remembering.counting
    counting.resized(row, Outcome.DONE)
    counting.resized(replace(row, guest="9"), Outcome.NOT_SAVED)
    told = at.ask(ALICE, "counts")
    assert isinstance(told, a.CountsAnswer)
    assert (told.total.unanswered, told.total.starts) == (1, 1)
    assert (told.total.flagged_gpu_s, told.total.idle_gpu_s) == (60.0, 60.0)
    assert [(row.why, row.result, row.count) for row in told.resizes] == [
        ("policy", "done", 1),
        ("room", "not_saved", 1),
    ]
    assert told.took == Took([0, 0, 1, 1, 1, 1, 1, 1, 1], 1, 4.0)
    assert [row.partition for row in told.partitions] == ["gpu"]
    blind = at.ask(replace(ALICE, sees_partitions=False), "counts")
    assert blind == replace(told, partitions=())


def test_gpus_are_flagged_others_idle_avoidable_or_down() -> None:
    def node(name: str, free: int, *, up: bool = True, parts: tuple[int, ...] = ()) -> Node:
        pool = Pool("a100", 4, free, 4 if parts else 0, parts)
        return Node(name, 16, 16, 1000, 1000, (pool,), up=up)

    flagged = Job("1", shape=TWO, state=JobState.RUNNING, nodes=("n1",), spec=Spec(None))  # type: ignore[arg-type]  # any will do
    other = Job("2", shape=ONE, state=JobState.RUNNING, nodes=("n1",))
    waits = Job("3", shape=FOUR, spec=Spec(None))  # type: ignore[arg-type]  # any will do
    snapshot = Snapshot(
        0.0,
        (node("n1", 1), node("n2", 4, up=False), node("n3", 3, parts=(1,)), Node("n4", 1, 1, 1, 1)),
        (Partition("gpu", ("n1", "n2", "n4")), Partition("all", ("n1", "n2", "n3"))),
        (waits,),
        (flagged, other),
    )
    use = gpu_use(snapshot, Plan(starts=(Start(waits, ONE, ("n1",), "fits"),)))
    assert use["gpu"] == Use(2.0, 1.0, 0.0, 1.0, 4.0)
    assert use["all"] == Use(2.0, 1.75, 3.25, 1.0, 4.0) == use[ALL]
