"""What a job's program may say to pliantd: its own user alone, of the run that is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from slurm_hands import Hands, begun

from fake_door import stays
from pliant.daemon.handing import ONCE_MORE_S, HandOvers, Wanted, name_of
from pliant.daemon.rights import Asker
from pliant.daemon.run_verbs import RunVerbs
from pliant.daemon.runs import Runs
from pliant.daemon.speakers import MOST, SILENT_S, Speakers
from pliant.daemon.watching import MOST_OF_JOB, Watching, news
from pliant.errors import PliantError
from pliant.model import Job, JobState, Malleable, Request, Shape, Spec
from pliant.store import Store
from pliant.wire.runs import RunAnswer

JOB = Job("7", user="alice", state=JobState.RUNNING, shape=Shape(1, 4), start_s=1000.0)
ALICE = Asker(1001, "alice", admin=False, sees_all=True)
BOB = Asker(1002, "bob", admin=False, sees_all=True)
ROOT = Asker(0, "root", admin=True, sees_all=True)


class Bench:
    """The verbs over one running job."""

    def __init__(self, directory: Path) -> None:
        self.now_s = 1010.0
        self.store = Store(directory)
        self.has_place = True
        self.overs = HandOvers(
            *(Hands(begun()), self.store, lambda: self.now_s, lambda: self.now_s),
            has_place=lambda _job, _to: self.has_place,
        )
        self.runs = Runs(self.store, self.overs, lambda: self.now_s, lambda: self.now_s)
        self.cycling = cast("Any", SimpleNamespace())
        self.look(JOB)
        self.verbs = RunVerbs(self.cycling, self.runs, self.overs, lambda: self.now_s)

    def look(self, *running: Job) -> None:
        snapshot = SimpleNamespace(running=running, now_s=self.now_s)
        self.cycling.seen = SimpleNamespace(snapshot=snapshot)

    def say(self, verb: str, asker: Asker = ALICE, **fields: str) -> RunAnswer:
        return self.verbs.answer(verb, {"job": "7", "run": "0", **fields}, asker)

    def refused(self, verb: str, asker: Asker = ALICE, **fields: str) -> str:
        with pytest.raises(PliantError) as caught:
            self.say(verb, asker, **fields)
        return str(caught.value)

    def wish(self) -> str:
        self.overs.begin(JOB, Wanted(Shape(1, 2)), 1100.0, "it fits better")
        over = self.overs.of("7")
        assert over is not None
        return name_of(over)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.store.close()


def test_a_program_works_since_it_says_so_however_late_that_is_heard(bench: Bench) -> None:
    bench.say("run-watch", launched="1", ago="4")
    assert [row.launched_s for row in bench.store.runs("7")] == [1006.0]
    bench.say("run-watch", launched="1", ago="4.5")
    assert [row.launched_s for row in bench.store.runs("7")] == [1006.0]
    bench.say("run-launched", ago="7")
    assert [row.launched_s for row in bench.store.runs("7")] == [1003.0]
    bench.say("run-watch", launched="1", ago="700")
    assert [row.launched_s for row in bench.store.runs("7")] == [1000.0]


def test_a_watch_is_told_the_wish_and_its_checkpoint_is_taken(bench: Bench) -> None:
    assert bench.say("run-begin", host="n1").wish == ""
    assert bench.say("run-watch", launched="1", step="10", rate="2.5").wish == ""
    wish = bench.wish()
    told = bench.say("run-watch", known="", step="20")
    assert (told.wish, told.why, told.shape, told.until_s) == (wish, "resize", "2", 1100.0)
    assert (told.state, told.now_s) == ("checkpointing", 1010.0)
    assert bench.say("run-saved", wish=wish, took="3.5").wish == ""
    (row,) = bench.store.runs("7")
    assert (row.step, row.rate, row.saved_took_s) == (20, 2.5, 3.5)


@pytest.mark.parametrize("asker", [BOB, ROOT])
@pytest.mark.parametrize("verb", ["run-begin", "run-watch", "run-saved", "run-failed", "run-end"])
def test_nobody_but_its_user_speaks_for_a_job(bench: Bench, asker: Asker, verb: str) -> None:
    words = "no running job of yours has this number"
    wish = bench.wish()
    assert words in bench.refused(verb, asker, wish=wish)
    over = bench.overs.of("7")
    assert over is not None
    assert over.saved_s == 0.0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"run": "1"}, "run 1 is not the one that is known"),
        ({"job": "8"}, "'8': no running job of yours"),
        ({"job": "7\nok"}, "no running job of yours"),
        ({"run": "x"}, "run: 'x': a number of at least 0 is expected"),
        ({"run": "-1"}, "run: '-1': a number of at least 0 is expected"),
        ({"step": "1e99"}, "step: '1e99': a number of at least 0 is expected"),
        ({"rate": "nan"}, "rate: 'nan': a number of at least 0 is expected"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(
    bench: Bench, fields: dict[str, str], words: str
) -> None:
    assert words in bench.refused("run-watch", ALICE, **fields)


def test_a_run_begins_as_it_runs_not_as_the_one_before_ends(bench: Bench) -> None:
    ends = replace(JOB, state=JobState.ENDING, restarts=1)  # Slurm 24.11, just requeued
    bench.look(ends)
    assert "run 1 is not the one that is known" in bench.refused("run-begin", run="1")
    runs = replace(JOB, restarts=1, shape=Shape(1, 2), start_s=1009.0)
    bench.look(runs)
    bench.say("run-begin", run="1")
    assert [(row.run, row.shape) for row in bench.store.runs("7")] == [(1, "2")]
    bench.look(replace(runs, state=JobState.ENDING))
    bench.say("run-end", run="1", code="0")
    assert [row.code for row in bench.store.runs("7")] == [0]


def test_a_program_whose_place_would_be_lost_is_told_to_go_on_however_often_it_asks(
    bench: Bench,
) -> None:
    wish = bench.wish()
    bench.has_place = False
    assert bench.say("run-saved", wish=wish).stays
    bench.overs.turn()
    assert bench.overs.of("7") is None
    bench.has_place = True  # what it was told once stands
    assert bench.say("run-saved", wish=wish).stays
    assert not bench.say("run-failed", wish=wish).stays
    assert bench.overs.of("7") is None


def test_a_checkpoint_that_nobody_asked_for_is_refused(bench: Bench) -> None:
    assert "nobody asked" in bench.refused("run-saved", wish="0.1")


def test_of_two_reports_the_later_one_counts_whichever_comes_first(bench: Bench) -> None:
    wish = bench.wish()
    bench.say("run-failed", word="a", wish=wish, number="2")
    assert "said something else" in bench.refused("run-saved", word="a", wish=wish, number="1")
    bench.say("run-saved", word="a", wish=wish, number="3")
    assert "said something else" in bench.refused("run-failed", word="a", wish=wish, number="2")


def test_one_that_could_not_be_told_goes_on_and_is_asked_again_later(bench: Bench) -> None:
    wish = bench.wish()
    bench.say("run-failed", wish=wish, untold="1")
    bench.overs.turn()
    assert bench.overs.of("7") is None
    assert bench.overs.rests("7")
    assert bench.say("run-watch", known=wish).wish == ""
    bench.say("run-saved", wish=wish)  # all the same: it is lost to nobody
    assert bench.overs.of("7") is not None


def test_a_program_that_ends_is_asked_no_more(bench: Bench) -> None:
    bench.wish()
    bench.say("run-end", code="3")
    over = bench.overs.of("7")
    assert over is not None
    assert over.until_s == 0.0  # given up at its next step
    assert [row.code for row in bench.store.runs("7")] == [3]


# Which job and which run it is


def test_a_task_of_an_array_is_spoken_for_by_its_own_number(bench: Bench) -> None:
    """Earlier releases spoke as squeue shows it, also a job that had inherited that."""
    task = replace(JOB, id="4_3", number="9")
    bench.look(JOB, task)
    for name in ("9", "4_3"):
        bench.say("run-watch", job=name, step="7")
        assert bench.verbs.id_of({"job": name}) == "4_3"
    assert "no running job of yours" in bench.refused("run-watch", job="4")
    assert [row.step for row in bench.store.runs("4_3")] == [7]
    assert not bench.store.runs("9")
    bench.overs.begin(task, Wanted(Shape(1, 2)), 1100.0, "it fits better")
    assert bench.verbs.is_news({"job": "9", "known": ""})
    assert bench.say("run-watch", job="9").shape == "2"
    bench.look(JOB)
    assert "no running job of yours" in bench.refused("run-watch", job="9")


def test_a_number_of_restarts_that_was_inherited_is_put_right(bench: Bench) -> None:
    assert bench.say("run-begin", run="2", age="1.0").run == 0
    assert "run 2 is not" in bench.refused("run-watch", run="2")
    assert bench.say("run-watch").run == 0


@pytest.mark.parametrize(
    ("restarts", "run", "age"), [(0, 2, "0.5"), (0, 2, ""), (1, 2, "5"), (1, 0, "5")]
)
def test_a_run_that_may_not_have_been_seen_yet_is_refused(
    bench: Bench, restarts: int, run: int, age: str
) -> None:
    bench.look(replace(JOB, restarts=restarts))
    bench.now_s += 1.0
    assert f"run {run} is not" in bench.refused("run-begin", run=str(run), age=age)


@pytest.mark.parametrize(
    ("age_s", "since_look_s", "told"),
    [
        (5.0, 1.0, "run 2 is forgotten"),
        (5.0, 6.0, "run 2 is not the one"),  # it may not have been seen yet
        (ONCE_MORE_S, 1.0, "run 2 is not the one"),  # it has worked for long
    ],
)
def test_a_run_that_a_killed_slurmctld_knows_nothing_of_goes_back_while_it_is_young(
    bench: Bench, age_s: float, since_look_s: float, told: str
) -> None:
    job = replace(JOB, restarts=1)
    bench.look(job)
    bench.overs.begin(job, Wanted(Shape(1, 2)), 1100.0, "it fits better")
    name = name_of(bench.overs.of("7") or pytest.fail())
    assert "run 2 is not" in bench.refused("run-begin", run="2", age="5")
    bench.say("run-saved", run="1", wish=name)
    bench.now_s += age_s + 10
    bench.look(job)
    bench.now_s += since_look_s
    assert "run 3 is not" in bench.refused("run-begin", run="3", age=str(age_s))
    assert "run 2 is not" in bench.refused("run-watch", run="2", age=str(age_s))
    assert told in bench.refused("run-begin", run="2", age=str(age_s))
    bench.look(replace(job, restarts=2))
    assert bench.say("run-begin", run="2", age=str(age_s)).run == 2


# What its owner said of checkpoints


def test_the_signal_that_was_said_at_submission_is_told(bench: Bench) -> None:
    assert bench.say("run-begin").signal == ""
    bench.look(replace(JOB, spec=Spec(Request(malleable=Malleable(15, "USR1")))))
    assert bench.say("run-begin").signal == "USR1"
    bench.wish()
    assert bench.say("run-watch").signal == "USR1"


def test_the_checkpoint_that_was_named_at_submission_is_told_with_each_wish(bench: Bench) -> None:
    bench.look(replace(JOB, spec=Spec(Request(malleable=Malleable(checkpoint="ckpt/last")))))
    assert bench.say("run-begin").checkpoint == ""
    bench.wish()
    assert bench.say("run-watch").checkpoint == "ckpt/last"


@pytest.mark.parametrize(
    ("submitted", "said", "counts"),
    [
        (0, "0", 120.0),
        (0, "300", 300.0),
        (0, "1e9", 86400.0),
        (60, "0", 60.0),
        (60, "10", 10.0),
        (60, "300", 60.0),
    ],
)
def test_a_grace_period_that_was_told_to_the_wrapper_counts_up_to_the_jobs(
    bench: Bench, submitted: int, said: str, counts: float
) -> None:
    job = replace(JOB, spec=Spec(Request(malleable=Malleable(submitted))))
    bench.look(job)
    bench.say("run-begin", grace=said)
    assert bench.runs.grace_s(job) == counts
    assert bench.runs.grace_s(replace(job, restarts=1)) == (submitted or 120.0)


# Two wrappers of one job


def matured(bench: Bench, *words: str) -> None:
    """Let wrappers begin, and their job be past its protected time."""
    for word in words:
        bench.say("run-begin", word=word)
        bench.say("run-watch", word=word, launched="1")
    bench.now_s = 1050.0
    for word in words:
        bench.say("run-watch", word=word)


def several(bench: Bench, word: str) -> bool:
    return bench.say("run-watch", word=word).several


def test_a_job_of_two_wrappers_is_asked_nothing_and_both_are_told(bench: Bench) -> None:
    matured(bench, "a", "b")
    assert not bench.runs.may_reshape(JOB)
    assert (several(bench, "a"), several(bench, "b")) == (True, True)


@pytest.mark.parametrize("words", [("a",), ("",), ("", "a"), ("a", "a")])
def test_one_wrapper_or_one_without_a_word_is_asked(bench: Bench, words: tuple[str, ...]) -> None:
    matured(bench, *words)
    assert bench.runs.may_reshape(JOB)
    assert not several(bench, words[-1])


def test_one_after_the_other_are_one_at_a_time(bench: Bench) -> None:
    matured(bench, "a")
    bench.say("run-end", word="a", code="0")
    bench.say("run-watch", word="a")  # what waited here until then
    assert not several(bench, "b")
    assert bench.runs.may_reshape(JOB)


def test_one_that_ends_before_it_hears_us_never_counts(bench: Bench) -> None:
    bench.say("run-begin", word="a")
    matured(bench, "b")
    assert bench.runs.may_reshape(JOB)


def test_one_that_was_killed_counts_until_it_has_been_silent_for_long(bench: Bench) -> None:
    matured(bench, "a", "b")
    bench.now_s += SILENT_S - 1
    assert several(bench, "b")
    bench.now_s += 1
    assert not several(bench, "b")
    assert bench.runs.may_reshape(JOB)


def test_one_that_comes_while_the_other_is_asked_takes_the_wish_away(bench: Bench) -> None:
    matured(bench, "a")
    wish = bench.wish()
    assert bench.say("run-watch", word="a").wish == wish
    assert bench.say("run-watch", word="b").wish == ""
    answer = bench.say("run-watch", word="a", known=wish)
    assert (answer.wish, answer.several) == ("", True)
    assert bench.say("run-saved", word="a", wish=wish).several
    over = bench.overs.of("7")
    assert over is not None
    assert (over.saved_s, over.until_s) == (0.0, 0.0)  # given up at its next step


def test_one_that_comes_after_the_checkpoint_changes_nothing(bench: Bench) -> None:
    matured(bench, "a")
    wish = bench.wish()
    bench.say("run-saved", word="a", wish=wish)
    assert not several(bench, "b")
    assert not bench.say("run-saved", word="a", wish=wish).several
    over = bench.overs.of("7")
    assert over is not None
    assert over.saved_s > 0


def test_the_next_pliantd_hears_of_one_that_it_has_not_heard(bench: Bench) -> None:
    assert bench.say("run-begin", word="a", others="1").several
    assert several(bench, "b")
    bench.say("run-end", word="b", code="0")
    assert not several(bench, "a")


def test_the_next_run_and_a_job_that_is_gone_know_nothing_of_it(bench: Bench) -> None:
    matured(bench, "a", "b")
    again = replace(JOB, restarts=1)
    assert not bench.runs.are_several(again)
    matured(bench, "a", "b")
    bench.runs.forget(())
    assert not bench.runs.are_several(JOB)


def test_no_more_wrappers_are_remembered_than_anybody_starts() -> None:
    speakers = Speakers()
    for number in range(3 * MOST):
        speakers.heard("7", 0, str(number), 0.0, others=False)
    for number in range(3 * MOST):
        speakers.ended("7", 0, str(number), 0.0)
    assert not speakers.are_several("7", 0, 0.0)


def test_a_watch_waits_until_there_is_news(bench: Bench) -> None:
    assert not bench.verbs.is_news({"job": "7", "known": ""})
    wish = bench.wish()
    assert bench.verbs.is_news({"job": "7", "known": ""})
    assert not bench.verbs.is_news({"job": "7", "known": wish})
    bench.say("run-saved", wish=wish)
    assert bench.verbs.is_news({"job": "7", "known": wish})


def test_a_wrapper_that_leaves_without_a_word_makes_its_run_unmanaged(bench: Bench) -> None:
    bench.say("run-watch", word="a")
    bench.wish()
    job = JOB
    assert not bench.verbs.runs.is_unmanaged(job)
    bench.verbs.left({"job": "7", "run": str(job.restarts), "word": "a"})
    assert bench.verbs.runs.is_unmanaged(job)
    assert not bench.verbs.runs.may_reshape(job)
    over = bench.overs.of("7")
    assert over is not None and over.until_s == 0.0
    bench.say("run-watch", word="a")
    assert not bench.verbs.runs.is_unmanaged(job)


@pytest.mark.parametrize("verb", ["run-begin", "run-watch"])
def test_a_step_that_has_lost_one_wrapper_is_unmanaged_until_it_has_not(
    bench: Bench, verb: str
) -> None:
    bench.say("run-watch", word="a", launched="1")
    bench.now_s += 1000
    bench.say("run-watch", word="a", launched="1")
    assert bench.runs.may_reshape(JOB)
    bench.wish()
    bench.say(verb, word="a", lost="1")
    assert (bench.runs.is_unmanaged(JOB), bench.runs.may_reshape(JOB)) == (True, False)
    over = bench.overs.of("7")
    assert over is not None and over.until_s == 0.0
    bench.overs.turn()
    bench.say(verb, word="a", lost="0")
    assert (bench.runs.is_unmanaged(JOB), bench.runs.may_reshape(JOB)) == (False, True)


GONE = "job 7: its `pliant run` is gone without a word: no checkpoint is asked for any more"


def test_a_wrapper_that_leaves_without_a_word_is_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.say("run-watch", word="a")
    bench.verbs.left({"job": "7", "run": "0", "word": "a"})
    assert caplog.messages == [GONE]


def test_one_that_leaves_as_its_job_is_requeued_is_not(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.say("run-watch", word="a")
    bench.wish()
    over = bench.overs.of("7")
    assert over is not None
    bench.say("run-saved", word="a", wish=name_of(over))
    caplog.set_level(logging.INFO)
    bench.verbs.left({"job": "7", "run": "0", "word": "a"})
    assert GONE not in caplog.messages


def test_one_that_leaves_after_its_programs_end_does_not(bench: Bench) -> None:
    bench.say("run-watch", word="a")
    bench.say("run-end", word="a", code="0")
    bench.verbs.left({"job": "7", "run": "0", "word": "a"})
    assert not bench.verbs.runs.is_unmanaged(JOB)


async def left(watching: Watching) -> bool:
    async def gone() -> bool:
        return True

    with watching.of("7") as changed:
        return await news(changed, gone(), 60)


def test_a_watch_ends_where_its_wrapper_has_left() -> None:
    async def see() -> bool:
        return await left(Watching())

    assert asyncio.run(see())


async def watch(watching: Watching, job_id: str, at_most_s: float) -> None:
    with watching.of(job_id) as changed, stays() as gone:
        assert not await news(changed, gone(), at_most_s)


async def waits() -> list[bool]:
    watching = Watching()
    first = asyncio.create_task(watch(watching, "7", 60))
    second = asyncio.create_task(watch(watching, "7", 60))
    other = asyncio.create_task(watch(watching, "8", 60))
    await asyncio.sleep(0)
    assert len(watching) == 3
    watching.tell("7")
    await asyncio.gather(first, second)
    again = asyncio.create_task(watch(watching, "7", 0.0))
    await again
    found = [first.done(), second.done(), other.done(), len(watching) == 1]
    other.cancel()
    return found


def test_who_watches_a_job_wakes_when_it_changes_and_nobody_else() -> None:
    assert asyncio.run(waits()) == [True, True, False, True]


async def crowd() -> int:
    watching = Watching()
    tasks = [asyncio.create_task(watch(watching, "7", 60)) for _ in range(MOST_OF_JOB + 3)]
    _done, pending = await asyncio.wait(tasks, timeout=0.2)
    for task in pending:
        task.cancel()
    return len(pending)


def test_of_one_job_only_a_few_watches_wait() -> None:
    assert asyncio.run(crowd()) == MOST_OF_JOB
