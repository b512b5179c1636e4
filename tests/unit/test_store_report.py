"""The report's sums, from the tables: what was put in comes out added up."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pliant.store import (
    Decision,
    HandOverRow,
    JobRecord,
    JobSums,
    PartitionReport,
    Refusal,
    Resizes,
    RunRow,
    Store,
    Tally,
    Waits,
)

BASE = JobRecord(
    *("1", "alice", "a", "gpu", "enforce", "moldable=gpus=1-4", "4", "", True, 1000.0, 1000.0),
    *("ended", 1, False, "4"),
)
DAY_S = 86_400.0


def ran(
    job: str, wait_s: float, run_s: float, gpus: float, *, molded: str = "", **more: object
) -> JobRecord:
    """A job that asked for four GPUs, and has ended."""
    start_s = BASE.submit_s + wait_s
    record = replace(
        BASE,
        job=job,
        molded=molded,
        start_s=start_s,
        end_s=start_s + run_s,
        exit="COMPLETED",
        gpu_s=gpus * run_s,
        own_gpu_s=4 * run_s,
        own_gpus=4.0,
    )
    return replace(record, **more)  # type: ignore[arg-type]  # any of its fields


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def total(store: Store, since_s: float = 0.0, until_s: float = DAY_S) -> JobSums:
    return store.report(since_s, until_s).total.sums


def test_nothing_is_a_report_too(store: Store) -> None:
    found = store.report(0.0, DAY_S)
    assert (found.total, found.partitions) == (PartitionReport(""), ())
    assert (found.resizes, found.refusals, found.steps, found.first_s) == ((), (), (), 0.0)


def test_jobs_are_added_up_by_partition(store: Store) -> None:
    waits = replace(BASE, job="5", state="waiting", end_s=0.0, answered=False, partition="cpu")
    runs = replace(
        BASE, job="6", state="running", start_s=2000.0, run_s=2000.0, gpus=2.0, own_gpus=4.0,
        molded="smaller",
    )  # fmt: skip
    store.jobs.keep(
        [
            ran("1", 100.0, 1000.0, 4.0),
            ran("2", 300.0, 1000.0, 4.0, exit="FAILED"),
            ran("3", 0.0, 1000.0, 1.0, molded="smaller", expected_s=1600.0),
            ran("4", 50.0, 1000.0, 8.0, molded="larger", expected_s=1040.0),
            *(waits, runs),
        ]
    )
    found = store.report(0.0, 3000.0)
    gpu, cpu = found.partitions[1], found.partitions[0]
    assert (gpu.partition, cpu.partition) == ("gpu", "cpu")
    assert gpu.sums == JobSums(
        jobs=5, running=1, ended=4, failed=1, started=5, smaller=2, larger=1, expected=2,
        sooner_s=600.0, later_s=10.0,
        gpu_s=4000.0 + 4000.0 + 1000.0 + 8000.0 + 2000.0,
        fewer_gpu_s=3000.0 + 2000.0, more_gpu_s=4000.0,
    )  # fmt: skip
    assert (gpu.written, gpu.molded) == (Waits(2, 200.0, 200.0), Waits(3, 350.0, 50.0))
    assert cpu.sums == JobSums(jobs=1, waiting=1, unanswered=1)
    assert found.total.sums == replace(gpu.sums, jobs=6, waiting=1, unanswered=1)
    assert found.total.molded == gpu.molded
    assert found.first_s == 1000.0


@pytest.mark.parametrize(
    ("since_s", "until_s", "jobs"),
    [(0.0, 999.0, 0), (0.0, 1001.0, 2), (2000.0, 3000.0, 2), (2101.0, 3000.0, 1)],
)
def test_jobs_that_were_there_in_the_time_count(
    store: Store, since_s: float, until_s: float, jobs: int
) -> None:
    lives = replace(BASE, job="2", state="waiting", end_s=0.0)
    store.jobs.keep([ran("1", 100.0, 1000.0, 4.0), lives])
    assert total(store, since_s, until_s).jobs == jobs


def test_an_array_counts_by_its_tasks(store: Store) -> None:
    array = replace(BASE, job="7", array=True, state="waiting", tasks=98, end_s=0.0)
    started = replace(array, job="8", state="ended", tasks=0, end_s=3000.0)
    store.jobs.keep([array, started, ran("7_0", 0.0, 10.0, 4.0), ran("7_1", 0.0, 10.0, 4.0)])
    found = total(store)
    assert (found.jobs, found.waiting, found.ended, found.started) == (100, 98, 2, 2)


def test_what_would_have_been_sooner_is_told_where_pliant_observes(store: Store) -> None:
    observed: dict[str, Any] = {"mode": "observe", "would": "2", "would_s": 1100.0}
    waits = replace(BASE, job="2", state="waiting", end_s=0.0, would="1", would_s=1500.0)
    store.jobs.keep(
        [
            ran("1", 700.0, 10.0, 4.0, **observed),
            waits,
            replace(BASE, job="3", end_s=1600.0, would="1", would_s=1500.0, exit="CANCELLED"),
        ]
    )
    found = total(store, until_s=2000.0)
    assert (found.would, found.would_sooner_s) == (3, 600.0 + 500.0)


def test_resizes_are_told_by_why_and_how_they_ended_with_their_cost(store: Store) -> None:
    store.jobs.keep([ran("1", 0.0, 100.0, 4.0)])
    for run, gpus in ((0, 4.0), (1, 2.0)):
        begins = RunRow("1", run, "alice", "a", "4", "n1", 0.0, 0.0, 0.0, gpus=gpus)
        store.jobs.keep(begun=[begins])
        told = replace(begins, at_s=1.0, launched_s=1050.0 * run, saved_took_s=5.0)
        store.run_began(told)
        store.run_told(told)
    row = HandOverRow(0, 1000.0, "1", "alice", "a", 0, "4", "2", "", "it fits", 2000.0)
    first = store.hand_over(row)
    store.saved(first, 1020.0)
    store.handed_over(first, 1040.0, "done")
    refused = "it goes on as it was, for the batch system does not give it that shape"
    store.handed_over(store.hand_over(replace(row, run=1, guest="9")), 1100.0, f"{refused}: no")
    store.hand_over(replace(row, run=1, reason="alice asked for it"))
    assert store.report(0.0, DAY_S).resizes == (
        Resizes("gpu", "owner", "under way", 1, 10.0, 0.0),
        Resizes("gpu", "policy", "done", 1, 20.0 + 30.0 * 2, 20.0),
        Resizes("gpu", "room", refused, 1, 10.0, 0.0),
    )


def test_refusals_are_told_by_the_batch_systems_words(store: Store) -> None:
    words = "job {}: the node is not there; left out for {} s"
    some = [("1", 15), ("2", 30), ("2", 60)]
    made = [Decision(5.0, job, "refused", "2", words.format(job, s)) for job, s in some]
    made.append(Decision(6.0, "3", "refused", "2", "the batch system did not start it so in time"))
    store.decide(made)
    assert store.report(0.0, DAY_S).refusals == (
        Refusal("the node is not there", 3),
        Refusal("the batch system did not start it so in time", 1),
    )


def test_what_was_counted_is_added_up_and_told_by_steps_of_time(store: Store) -> None:
    hours = [
        Tally(0.0, "gpu", answered=1, flagged_gpu_s=10.0),
        Tally(0.0, "both", answered=2, flagged_gpu_s=10.0),
        Tally(0.0, "", flagged_gpu_s=10.0, idle_gpu_s=5.0),
        Tally(3600.0, "gpu", unanswered=4),
        Tally(90_000.0, "gpu", answered=100),
    ]
    store.jobs.keep(tallies=hours)
    store.jobs.keep(tallies=hours[:1])
    found = store.report(0.0, DAY_S)
    assert found.total.counted == Tally(
        answered=4, unanswered=4, flagged_gpu_s=10.0, idle_gpu_s=5.0
    )
    parts = {part.partition: part.counted for part in found.partitions}
    assert parts["gpu"] == Tally(0.0, "gpu", answered=2, unanswered=4, flagged_gpu_s=20.0)
    assert [(step.hour_s, step.answered, step.unanswered) for step in found.steps] == [
        (0.0, 4, 0),
        (3600.0, 0, 4),
    ]
    month = store.report(0.0, 30 * DAY_S)
    assert (month.step_s, [step.answered for step in month.steps]) == (5 * 3600.0, [4, 100])


def test_a_report_keeps_nobody_from_writing(store: Store) -> None:
    with store._db.reading() as read:
        store.jobs.keep([ran("1", 0.0, 10.0, 4.0)])
        assert read("SELECT count(*) FROM jobs", ()) == [(0,)]
    assert total(store).jobs == 1


def test_where_the_history_is_in_memory_a_report_is_of_that(tmp_path: Path) -> None:
    store = Store(tmp_path / "missing")
    store.jobs.keep([ran("1", 0.0, 10.0, 4.0)])
    assert total(store).jobs == 1


def test_the_oldest_go_where_there_are_too_many(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.store.remembered.MOST_JOBS", 3)
    lives = replace(BASE, job="9", state="waiting", end_s=0.0)
    runs = [RunRow(str(n), 0, "alice", "a", "4", "n1", 0.0, 1e6, 0.0) for n in range(9)]
    store.jobs.keep([lives, *(ran(str(n), float(n), 10.0, 4.0) for n in range(6))], runs)
    store.prune(2000.0, DAY_S)
    assert [n for n in range(10) if store.jobs.job(str(n))] == [3, 4, 5, 9]
    assert [n for n in range(10) if store.runs(str(n), silent=True)] == [3, 4, 5, 6, 7, 8]


def test_a_users_jobs_that_have_ended_are_forgotten(store: Store) -> None:
    lives = replace(BASE, job="2", state="waiting", end_s=0.0)
    others = replace(ran("3", 0.0, 10.0, 4.0), user="bob")
    store.jobs.keep(
        [ran("1", 0.0, 10.0, 4.0), lives, others],
        [RunRow(job, 0, user, "a", "4", "n1", 0.0, 1.0, 0.0) for job, user in (("1", "alice"), ("3", "bob"))],
        decisions=[Decision(1.0, job, "start", "4", "it fits") for job in "123"],
    )  # fmt: skip
    over = HandOverRow(0, 1000.0, "1", "alice", "a", 0, "4", "2", "", "it fits", 2000.0)
    store.handed_over(store.hand_over(over), 1100.0, "done")
    going_on = store.hand_over(replace(over, job="2"))
    assert store.jobs.forget_user("alice") == 1
    assert [bool(store.jobs.job(job)) for job in "123"] == [False, True, True]
    assert [bool(store.runs(job, silent=True)) for job in "123"] == [False, False, True]
    assert [bool(store.decisions(job)) for job in "123"] == [False, True, True]
    assert [row.id for row in store.handovers()] == [going_on]


def test_what_has_changed_a_job_that_still_lives_is_kept_however_long_ago(store: Store) -> None:
    """How often it may be resized counts from its first run."""
    lives = replace(BASE, job="2", state="running", end_s=0.0)
    runs = [RunRow(job, 0, "alice", "a", "4", "n1", 0.0, 1.0, 0.0) for job in "123"]
    store.jobs.keep([ran("1", 0.0, 10.0, 4.0), lives], runs)
    over = HandOverRow(0, 1000.0, "", "alice", "a", 0, "4", "2", "", "it fits", 2000.0)
    for job in "123":
        store.handed_over(store.hand_over(replace(over, job=job)), 1100.0, "done")
    assert store.jobs.forget_user("alice") == 1
    store.prune(90 * DAY_S, 30 * DAY_S)
    assert [len(store.handovers(job)) for job in "123"] == [0, 1, 0]
    assert [len(store.runs(job, silent=True)) for job in "123"] == [0, 1, 0]
    assert store.handovers("1") == ()
    assert store.jobs.forget_user("alice' OR 1=1 --") == 0


def test_what_ended_before_the_retention_goes_and_what_lives_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    lives = replace(BASE, job="2", state="waiting", end_s=0.0)
    store.jobs.keep(
        [ran("1", 0.0, 10.0, 4.0), lives, ran("3", 5000.0, 10.0, 4.0)],
        tallies=[Tally(0.0, "gpu", answered=1), Tally(3600.0, "gpu", answered=1)],
    )
    store.prune(5000.0, 2000.0)
    store.close()
    db = sqlite3.connect(store.file)
    assert db.execute("SELECT job FROM jobs").fetchall() == [("2",), ("3",)]
    assert db.execute("SELECT hour_s FROM hours").fetchall() == [(3600.0,)]
