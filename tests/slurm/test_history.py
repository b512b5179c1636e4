"""What pliantd remembers of jobs that have ended, beside what Slurm's accounting says of them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import pytest
from asking_helpers import answer_of, ask, wait_for_look
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Sandbox

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

MANY = 100
FIELDS = "JobID,User,Partition,State,Submit,Start,End,AllocTRES"


@dataclass(frozen=True)
class Accounted:
    """A job as sacct shows it; instants in seconds since the epoch, 0 for none."""

    user: str
    partition: str
    state: str
    submit_s: float
    start_s: float
    end_s: float
    gpus: float


def accounted(sandbox: Sandbox, jobs: Iterable[int], count: int) -> Mapping[str, Accounted]:
    """Ask slurmdbd, once it knows all ends of so many jobs and tasks."""
    argv = ["sacct", "-X", "-n", "-P", "-o", FIELDS, "-j", ",".join(map(str, jobs))]
    found: dict[str, Accounted] = {}

    def told() -> bool:
        found.clear()
        for line in sandbox.run(argv, check=True).stdout.splitlines():
            job, user, partition, state, *instants, tres = line.split("|")
            given = dict(one.partition("=")[::2] for one in tres.split(",") if one)
            gpus = float(given.get("gres/gpu", 0))
            submit_s, start_s, end_s = map(instant, instants)
            word = state.split()[0]
            found[job] = Accounted(user, partition, word, submit_s, start_s, end_s, gpus)
        return len(found) >= count and all(one.end_s for one in found.values())

    wait_until(told, "sacct to tell all ends")
    return found


def instant(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def history(sandbox: Sandbox, job: int | str) -> a.HistoryAnswer:
    return ask(sandbox, a.HistoryAnswer, "history", job=str(job))


def has_ended(sandbox: Sandbox, job: int | str) -> bool:
    """Whether pliantd knows that a job has ended, and how."""
    answer = answer_of(sandbox, "history", job=str(job))
    return answer.is_ok and a.from_json(a.HistoryAnswer, answer.fields["json"]).exit != ""


@pytest.fixture
def ended(clean: Sandbox, submit: Submit, wait_for_state: WaitForState) -> Iterator[list[int]]:
    """Jobs of all kinds that have ended: completed, failed, cancelled, an array."""
    wait_for_look(clean)
    done = submit("--gres=gpu:2", "--moldable=gpus=1-2", script="sleep 2")
    fails = submit("--gres=gpu:1", "--moldable=gpus=1", script="exit 3")
    many = submit("--gres=gpu:1", "--moldable=gpus=1-2", "--array=0-2", script="sleep 1")
    killed = submit("--gres=gpu:1", "--moldable=gpus=1", script="sleep 3600")
    waits = submit("--gres=gpu:1", "--moldable=gpus=1", "--begin=now+1hour", script="true")
    silent = submit("--gres=gpu:1", script="true")
    wait_for_state(killed, "RUNNING")
    wait_for_look(clean)
    clean.run(["scancel", str(killed), str(waits)], check=True)
    yield [done, fails, many, killed, waits, silent]


def test_what_is_remembered_of_ended_jobs_is_what_sacct_says(
    clean: Sandbox, ended: list[int]
) -> None:
    *flagged, silent = ended
    jobs = accounted(clean, flagged, len(flagged) + 2)
    assert len(jobs) == len(flagged) + 2
    for job in jobs:
        wait_until(lambda job=job: has_ended(clean, job), f"pliantd to know the end of job {job}")  # type: ignore[misc]  # bound early
    for job, told in jobs.items():
        found = history(clean, job)
        gpus = found.runs[-1].gpus if found.runs else 0.0
        assert (
            Accounted(
                *(found.user, found.partition, found.exit, found.submit_s),
                *(found.start_s or told.start_s, found.end_s, gpus),
            )
            == told
        ), job
        assert bool(found.start_s) is bool(found.runs) is (told.gpus > 0)
        assert [run.end_s for run in found.runs] == [found.end_s] * len(found.runs)
    assert "nothing is known" in answer_of(clean, "history", job=str(silent)).message or not (
        answer_of(clean, "history", job=str(silent)).is_ok
    )
    why = ask(clean, a.WhyAnswer, "why", job=str(flagged[1]))
    assert (why.job.state, why.text) == ("ended", "it has ended: FAILED; it started as 1")


def test_what_the_filter_set_is_remembered_after_the_end(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    for node in ("n1", "n2", "n3", "n4"):
        held = submit("--gres=gpu:3", f"--nodelist={node}", "--time=60", script="sleep 3600")
        wait_for_state(held, "RUNNING")
    wait_for_look(clean)
    job = submit("--gres=gpu:4", "--moldable=gpus=1-4", "--time=1", script="true")
    wait_until(lambda: has_ended(clean, job), "pliantd to know its end")
    told = history(clean, job)
    assert (told.own, told.runs[0].shape, told.exit) == ("4", "1", "COMPLETED")
    assert told.answered
    assert {d.what for d in told.decisions} & {"filter", "mold"}


def test_jobs_that_came_and_went_while_pliantd_was_dead_are_found(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    wait_for_look(clean)
    before = submit("--gres=gpu:1", "--moldable=gpus=1-2", script="sleep 1")
    clean.stop("pliantd")
    unseen = submit("--gres=gpu:1", "--moldable=gpus=1-2", script="true")
    wait_for_state(before, "COMPLETED")
    wait_for_state(unseen, "COMPLETED")
    clean.start("pliantd")
    for job in (before, unseen):
        wait_until(lambda job=job: has_ended(clean, job), f"the end of job {job}")  # type: ignore[misc]  # bound early
    assert [history(clean, job).answered for job in (before, unseen)] == [True, False]
    assert [d.what for d in history(clean, unseen).decisions] == ["unanswered"]


def reported(sandbox: Sandbox) -> dict[str, float]:
    """What `pliant report` says of the last day's jobs, added up."""
    done = sandbox.run(["pliant", "report", "--json"], check=True)
    total = json.loads(done.stdout)["report"]["total"]
    kinds = (total["written"], total["molded"])
    sums: dict[str, float] = total["sums"]
    return sums | {
        "waits": sum(one["jobs"] for one in kinds),
        "waits_s": sum(one["jobs"] * one["mean_s"] for one in kinds),
        "submissions": total["counted"]["answered"] + total["counted"]["unanswered"],
    }


def test_the_report_of_many_jobs_is_what_sacct_says(clean: Sandbox, submit: Submit) -> None:
    wait_for_look(clean)
    before, draw = reported(clean), random.Random(20)  # noqa: S311  # no secret
    jobs = []
    for _ in range(MANY):
        gpus, least = draw.choice([(4, 1), (2, 1), (2, 2), (1, 1)])
        script = f"sleep {draw.choice([0, 0.5, 1])}; exit {draw.choice([0, 0, 0, 1])}"
        options = (f"--gres=gpu:{gpus}", f"--moldable=gpus={least}-{gpus}", "--time=5")
        jobs.append(submit(*options, script=script))
    told = accounted(clean, jobs, MANY)
    for job in jobs:
        wait_until(lambda job=job: has_ended(clean, job), f"pliantd to know the end of job {job}")  # type: ignore[misc]  # bound early
    after = reported(clean)
    found = {name: after[name] - before[name] for name in after}
    own = {str(job): int(history(clean, job).own) for job in jobs}
    expected = {
        **dict.fromkeys(("jobs", "started", "ended", "waits", "submissions"), MANY),
        "failed": sum(one.state != "COMPLETED" for one in told.values()),
        "smaller": sum(one.gpus < own[job] for job, one in told.items()),
        "larger": sum(one.gpus > own[job] for job, one in told.items()),
        "gpu_s": sum(one.gpus * (one.end_s - one.start_s) for one in told.values()),
        "waits_s": sum(one.start_s - one.submit_s for one in told.values()),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
