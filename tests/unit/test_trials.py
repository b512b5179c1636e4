"""Trial and best-effort jobs in a cycle: who is one here, and who is left in peace."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from build import snapshot
from slurm_recorded import NONCE, recorded
from test_policies_fitgpp import best_effort, full, trial

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import running_job, waiting_job
from pliant.batch.slurm.site import parse_config
from pliant.cycle import capped, cycle, explain, trials_held, view, why_stays
from pliant.daemon.config import Config, parse
from pliant.daemon.trials import DEFAULT, preemption_trouble, read_caps, trials_seen
from pliant.errors import BadConfig
from pliant.model import Abilities, Job, JobState, Shape, Snapshot, TrialCap, TrialCaps
from pliant.policies import by_name, has_classes, names, preempts

CAPS = TrialCaps(TrialCap(2, 4, 60), {"bob": TrialCap(max_jobs=1), "eve": TrialCap(max_jobs=0)})
FITGPP = by_name("fitgpp")


# Caps


def of(user: str, number: int, **fields: Any) -> Job:
    return trial(number, fields.pop("gpus", 1), user=user, **fields)


def trials(found: Snapshot) -> list[str]:
    return [job.id for job in (*found.running, *found.waiting) if job.is_trial]


@pytest.mark.parametrize(
    ("waiting", "running", "kept"),
    [
        ([], [], []),
        ([of("al", 1), of("al", 2), of("al", 3)], [], ["1", "2"]),
        ([of("al", 3), of("al", 1), of("al", 2)], [], ["3", "1"]),  # in the order of the queue
        ([of("al", 1), of("cy", 2), of("al", 3), of("cy", 4), of("cy", 5)], [], ["1", "2", "3", "4"]),
        ([of("al", 1), of("al", 2)], [of("al", 9)], ["9", "1"]),  # who runs comes first
        ([of("bob", 1), of("bob", 2)], [], ["1"]),
        ([of("bob", 1, gpus=8, time_limit_s=0)], [], ["1"]),
        ([of("eve", 1)], [], []),
        ([of("al", 1, gpus=8), of("al", 2), of("al", 3)], [], ["2", "3"]),  # takes no place
        ([of("al", 1, time_limit_s=3601), of("al", 2, time_limit_s=0)], [], []),
        ([of("al", 1, shapes=(Shape(1, 1), Shape(1, 5)))], [], []),  # the largest of its shapes
        ([of("al", 1, tasks_waiting=3), of("al", 2, tasks_waiting=2)], [], ["2"]),
        ([of("al", 1, eligible=False), of("al", 2), of("al", 3)], [], ["1", "2"]),
    ],
)  # fmt: skip
def test_trial_jobs_beyond_their_users_cap_are_ordinary_ones(
    waiting: list[Job], running: list[Job], kept: list[str]
) -> None:
    run = [replace(job, state=JobState.RUNNING) for job in running]
    seen = replace(snapshot([], waiting), running=tuple(run))
    found = capped(seen, CAPS)
    assert trials(found) == kept
    assert capped(found, CAPS) == found
    plain = [replace(job, ordinary="") for job in found.waiting]
    assert plain == waiting  # nothing else of them is touched: what their tokens say, least of all


def test_a_run_that_is_over_takes_no_place() -> None:
    over = replace(of("bob", 9), state=JobState.ENDING)
    seen = replace(snapshot([], [of("bob", 1)]), running=(over,))
    found = capped(seen, CAPS)
    assert (trials(found), trials_held(found)) == (["9", "1"], {"bob": 1})


def test_those_who_are_trial_jobs_are_counted_by_user_and_task() -> None:
    jobs = [of("al", 1, tasks_waiting=2), of("al", 2), of("cy", 3), best_effort(90, 1, "n1")]
    assert trials_held(capped(snapshot([], jobs), CAPS)) == {"al": 2, "cy": 1}


def test_one_beyond_the_cap_takes_nobodys_room_and_why_says_so() -> None:
    view_ = full(best_effort(90, 8, "n1"), best_effort(91, 8, "n2"))
    assert len(cycle(view_, FITGPP).preempts) == 1
    found = capped(view_, TrialCaps(TrialCap(max_gpus=1)))
    assert cycle(found, FITGPP).preempts == ()
    words = "it may take 2 GPUs, and a trial job here 1 at most"
    says = explain(found, FITGPP, "1").says
    assert says.endswith(f"; it is no trial job here but an ordinary one: {words}")


# Slurm's own preemption


def test_where_the_batch_system_preempts_itself_no_job_is_told_to_make_room() -> None:
    seen = full(
        best_effort(90, 8, "n1"), best_effort(91, 8, "n2"), waiting=(trial(1, 2), trial(2, 4))
    )
    here = replace(seen, abilities=Abilities(preempts="PreemptType=preempt/qos"))
    for name in ("fitgpp", "lrtp", "rand"):
        assert cycle(seen, by_name(name)).preempts
        assert cycle(here, by_name(name)) == cycle(here, by_name("fifo"))
    assert view(view(here)) == view(here)
    told = explain(here, FITGPP, "90").says
    assert told == "it runs as 8; it is not preempted: PreemptType=preempt/qos"


def test_the_trouble_is_one_line_where_the_policy_would_preempt() -> None:
    said = "PreemptMode=REQUEUE"
    told = {name: preemption_trouble(by_name(name), said) for name in names()}
    assert [name for name, words in told.items() if words] == ["fitgpp", "lrtp", "rand"]
    words = "[daemon] policy fitgpp preempts no job and decides as fifo: PreemptMode=REQUEUE"
    assert told["fitgpp"] == words
    assert preemption_trouble(FITGPP, "") == ""


@pytest.mark.parametrize(
    ("kind", "mode", "words"),
    [
        ("preempt/none", "OFF", ""),
        ("(null)", "OFF", ""),  # the same, from 24.11 on
        ("preempt/qos", "OFF", "PreemptType=preempt/qos"),
        ("preempt/none", "GANG", "PreemptMode=GANG"),
        ("preempt/partition_prio", "REQUEUE",
         "PreemptType=preempt/partition_prio, PreemptMode=REQUEUE"),
    ],
)  # fmt: skip
def test_how_slurm_preempts_is_in_its_configuration(kind: str, mode: str, words: str) -> None:
    text = recorded("22.05", "config.txt")
    text = text.replace("= preempt/none", f"= {kind}").replace(
        "PreemptMode             = OFF", f"PreemptMode = {mode}"
    )
    found = parse_config(text)
    assert found.own_preemption == words
    right = "PreemptMode=OFF and PreemptType=preempt/none in slurm.conf are right for it"
    assert found.no_room == (
        f"the batch system itself preempts here ({words}); {right}" if words else ""
    )


@pytest.mark.parametrize(
    ("parameters", "makes_room"),
    [
        ("bf_interval=5", True),
        ("bf_job_part_count_reserve=0", True),
        ("bf_interval=5,bf_job_part_count_reserve=1", False),
        ("bf_job_part_count_reserve=10", False),
    ],
)
def test_no_job_makes_room_where_slurm_keeps_an_opening_for_the_first_alone(
    parameters: str, *, makes_room: bool
) -> None:
    """It waits before all others: the opening would be its own."""
    text = re.sub(
        r"(?m)^(SchedulerParameters +=).*$", rf"\1 {parameters}", recorded("22.05", "config.txt")
    )
    assert (parse_config(text).no_room == "") is makes_room


# Requeue


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, ""),
        ({"requeues": False},
         "it is neither resized nor preempted: the batch system would not requeue it"
         " (--no-requeue, -r n, or no batch job)"),
        ({"requeues": False, "state": JobState.ENDING}, ""),
    ],
)  # fmt: skip
def test_a_job_that_would_not_be_requeued_is_neither_resized_nor_preempted(
    fields: dict[str, Any], says: str
) -> None:
    four = (Shape(1, 2), Shape(1, 8))
    job = replace(best_effort(90, 8, "n1"), shapes=four, **fields)
    (seen,) = view(full(job)).running
    stays = bool(fields)
    assert (seen.shapes, seen.preemptible) == ((job.shape,) if stays else four, not stays)
    assert why_stays(job) == says


ROW = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))[1]


@pytest.mark.parametrize(
    ("batch", "requeue", "requeues"),
    [
        ("1", "1", True),
        ("3", "1", True),
        ("1", "0", False),
        ("0", "1", False),
        ("0", "0", False),
        ("1", "?", False),
    ],
)
def test_only_jobs_of_sbatch_without_no_requeue_are_requeued(
    batch: str, requeue: str, requeues: bool
) -> None:
    row: JobRow = replace(ROW, batch=batch, requeue=requeue)
    cluster = Cluster((22, 5), {}, {})
    assert running_job(row, cluster).requeues is requeues
    assert waiting_job(replace(row, state="PENDING"), cluster, 0.0).requeues is requeues


# pliant.toml


def test_without_a_word_of_the_administrator_there_are_caps() -> None:
    assert parse({}).trial == Config().trial == TrialCaps(DEFAULT)


def test_users_have_caps_of_their_own_beside_the_general_ones() -> None:
    caps = read_caps("", {"max_jobs": 9, "users": {"al": {"max_gpus": "unlimited"}, "cy": {}}})
    assert caps.of("al") == TrialCap(9, None, 60)
    assert caps.of("cy") == caps.of("anyone") == TrialCap(9, 8, 60)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (3, "trial: '3': a section [trial] is expected"),
        ({"jobs": 1}, "[trial] jobs: '1': one of max_jobs, max_gpus, max_minutes is expected"),
        ({"max_jobs": -1}, "[trial] max_jobs: '-1': a whole number of jobs from 0 to 100000, or"
         ' "unlimited", is expected'),
        ({"max_gpus": True}, "[trial] max_gpus: 'True': a whole number of GPUs from 0 to 100000, or"
         ' "unlimited", is expected'),
        ({"max_minutes": 0.5}, "[trial] max_minutes: '0.5': a whole number of minutes from 1 to"
         ' 525600, or "unlimited", is expected'),
        ({"users": 4}, "[trial] users: '4': a section [trial.users.NAME] is expected"),
        ({"users": {"al": 4}}, "[trial.users.al]: '4': a section is expected"),
        ({"users": {"al": {"max_jobs": "x"}}}, "[trial.users.al] max_jobs: 'x': a whole number of"
         ' jobs from 0 to 100000, or "unlimited", is expected'),
    ],
)  # fmt: skip
def test_what_is_wrong_in_it_is_said_in_one_line(values: object, says: str) -> None:
    with pytest.raises(BadConfig) as wrong:
        parse({"trial": values})
    assert str(wrong.value) == f"pliant.toml: {says}"


def test_the_filter_looks_at_trial_jobs_where_the_policy_does() -> None:
    told = {name: trials_seen(full(), by_name(name), CAPS) is not None for name in names()}
    assert [name for name, looks in told.items() if looks] == ["fitgpp", "fifo", "lrtp", "rand"]
    assert [name for name in names() if has_classes(by_name(name))] == [
        "fitgpp",
        "fifo",
        "lrtp",
        "rand",
    ]
    assert [name for name in names() if preempts(by_name(name))] == ["fitgpp", "lrtp", "rand"]
