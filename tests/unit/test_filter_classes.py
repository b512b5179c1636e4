"""Malleable, best-effort and trial jobs at submission: may they be requeued, may they be trial."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_filter import SNAPSHOT, VIEW, asked, token

from pliant.filter import Answer, Inventory, Trials, View, filter_submission
from pliant.filter.trials import tasks_of
from pliant.model import TrialCap, TrialCaps

BOTH = {"option.malleable": "(null)", "option.job-class": "best-effort"}
MALLEABLE = {"option.malleable": "(null)"}
BEST_EFFORT = {"option.job-class": "best-effort"}
TRIAL = {"option.job-class": "trial", "user_name": "alice", "time_limit": "60"}
UNSET = {"requeue": "65534"}
SET = {"requeue": "1"}


# Requeue


@pytest.mark.parametrize(
    ("flags", "written", "fields", "says"),
    [
        (MALLEABLE, UNSET, SET, ()),
        (BEST_EFFORT, UNSET, SET, ()),
        (BOTH, UNSET, SET, ()),
        (MALLEABLE, {}, SET, ()),
        ({"comment": "pliant:malleable=grace=2m"}, UNSET, SET, ()),
        (TRIAL, UNSET, {}, ()),
        ({"option.colocate": "(null)"}, UNSET, {}, ()),
        (MALLEABLE, SET, {}, ()),
        (MALLEABLE, {"requeue": "0"}, {}, ("pliant: --no-requeue: the job is not resized",)),
        (BEST_EFFORT, {"requeue": "0"}, {}, ("pliant: --no-requeue: the job is not preempted",)),
        (BOTH, {"requeue": "0"}, {},
         ("pliant: --no-requeue: the job is neither resized nor preempted",)),
        (TRIAL, {"requeue": "0"}, {}, ()),
        (MALLEABLE, {"batch": "0"}, {},
         ("pliant: only jobs of sbatch can be requeued: this one is not resized",)),
        (BOTH, {"het_job_offset": "1"}, {},
         ("pliant: a component of a heterogeneous job is neither resized nor preempted",)),
        (MALLEABLE, {"partition": "seen"}, {}, ()),
        (MALLEABLE, {"partition": "seen", "requeue": "0"}, {},
         ("pliant: --no-requeue: the job is not resized",)),
    ],
)  # fmt: skip
def test_a_job_that_may_be_resized_or_preempted_may_be_requeued(
    flags: dict[str, str], written: dict[str, str], fields: dict[str, str], says: tuple[str, ...]
) -> None:
    answer = filter_submission(asked(**flags, **{"batch": "1", **written}), VIEW)
    assert replace(answer, most_gpus=None) == Answer(spec=answer.spec, fields=fields, lines=says)
    assert answer.spec is not None


def test_nothing_is_set_or_said_where_pliant_is_off() -> None:
    job = asked(**BOTH, partition="off", requeue="0")
    assert filter_submission(job, VIEW) == Answer()


def test_nothing_is_set_while_pliant_is_paused() -> None:
    paused = replace(VIEW, inventory=VIEW.inventory.observing())
    assert filter_submission(asked(**BOTH), paused).fields == {}


@pytest.mark.parametrize(
    "form", [{"tres_per_node": "gres:gpu:2"}, {"tres_per_task": "gres:gpu:2", "num_tasks": "2"}]
)
def test_it_stands_beside_whatever_becomes_of_a_moldable_jobs_shape(form: dict[str, str]) -> None:
    flags = {"option.moldable": "gpus=1-4", **form}
    plain = filter_submission(asked(**flags), VIEW)
    both = filter_submission(asked(**flags, **MALLEABLE), VIEW)
    assert both.fields == {**plain.fields, "requeue": "1"}
    no = filter_submission(asked(**flags, **MALLEABLE, requeue="0"), VIEW)
    assert (no.fields, no.lines[:-1]) == (plain.fields, plain.lines)
    assert no.lines[-1] == "pliant: --no-requeue: the job is not resized"


# Trial jobs


CAPS = TrialCaps(TrialCap(2, 4, 60), {"bob": TrialCap(0, 4, 60), "carol": TrialCap()})
ORDINARY = "; it is taken as an ordinary job"


def view(**held: int) -> View:
    return View(Inventory.of(SNAPSHOT), trials=Trials(CAPS, held))


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"tres_per_node": "gres:gpu:4"}, ""),
        ({}, ""),
        ({"tres_per_node": "gres:gpu:8"}, ""),  # more than a node has: only the cycle can tell
        ({"tres_per_job": "gres:gpu:8"}, "it may take 8 GPUs, and a trial job here 4 at most"),
        ({"tres_per_node": "gres:gpu:2", "min_nodes": "4", "max_nodes": "4"},
         "it may take 8 GPUs, and a trial job here 4 at most"),
        ({"option.moldable": "gpus=2-8,nodes=1-2", "tres_per_node": "gres:gpu:2"},
         "it may take 8 GPUs, and a trial job here 4 at most"),
        ({"option.moldable": "gpus=1-4", "tres_per_node": "gres:gpu:2"}, ""),
        ({"option.moldable": "gpus=1/4-1", "tres_per_node": "gres:shard:1"}, ""),
        ({"time_limit": "61"},
         "its time limit is 61 minutes, and a trial job here has 60 minutes at most (-t 60)"),
        ({"time_limit": "4294967294"},
         "it has no time limit, and a trial job here has 60 minutes at most (-t 60)"),
        ({"partition": "hour", "time_limit": "4294967294"}, ""),
        ({"array_inx": "0-1"}, ""),
        ({"array_inx": "1-9%2"}, ""),
        ({"array_inx": "1-3"}, "it has 3 tasks, and 2 trial jobs of a user at most wait or run here"),
        ({"user_name": "bob"}, "no job of this user may be a trial job here"),
        ({"user_name": "carol", "time_limit": "99999", "tres_per_job": "gres:gpu:8"}, ""),
        ({"user_name": ""}, ""),
        ({"partition": "seen", "time_limit": "61"},
         "its time limit is 61 minutes, and a trial job here has 60 minutes at most (-t 60)"),
    ],
)  # fmt: skip
def test_a_trial_job_beyond_its_users_cap_is_taken_as_an_ordinary_one(
    written: dict[str, str], says: str
) -> None:
    hour = replace(SNAPSHOT.partitions[0], name="hour", default=False, default_time_s=3600)
    snapshot = replace(SNAPSHOT, partitions=(*SNAPSHOT.partitions, hour))
    capped = View(Inventory.of(snapshot), trials=Trials(CAPS, {}))
    job = asked(**{**TRIAL, **written})
    answer, plain = (
        filter_submission(job, capped),
        filter_submission(job, replace(capped, trials=None)),
    )
    line = f"pliant: --class=trial: {says}{ORDINARY}"
    assert answer.lines == (*plain.lines, *([line] if says else []))
    assert answer.as_fields == {
        **plain.as_fields,
        **({"say": "\n".join(answer.lines)} if says else {}),
    }
    assert answer.refusal == "" and "job-class=trial" in token(answer)


def test_each_trial_job_counts_until_the_next_look_whatever_was_known_of_the_first() -> None:
    now, job = view(alice=1), asked(**TRIAL)
    first, second = filter_submission(job, now), filter_submission(job, now)
    words = "2 trial jobs of this user wait or run before it, and 2 at most may"
    assert (first.lines, first.once) == ((), True)
    assert words in second.lines[0]
    other = filter_submission(asked(**{**TRIAL, "user_name": "dave"}), now)
    assert other.lines == ()


def test_who_is_no_trial_job_is_neither_counted_nor_told_anything() -> None:
    now = view(alice=2)
    for flags in (BEST_EFFORT, MALLEABLE, {"option.moldable": "gpus=1-4"}):
        job = asked(**flags, user_name="alice", time_limit="9999")
        assert filter_submission(job, now) == filter_submission(job, VIEW)
    assert filter_submission(asked(**TRIAL, partition="off"), now) == Answer()


@pytest.mark.parametrize(
    ("array", "tasks"),
    [("", 1), ("7", 1), ("0-9", 10), ("0-9%3", 3), ("1-9:2,20", 6), ("1-3,x", 1), ("5-1", 1),
     ("0-9%0", 10), ("0-9%x", 10)],
)  # fmt: skip
def test_the_tasks_of_an_array_that_may_run_at_once_count(array: str, tasks: int) -> None:
    assert tasks_of(array) == tasks
