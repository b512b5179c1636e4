"""Tasks of an array that have a record of their own, where squeue writes them into the array's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recorded import NONCE, printed, recorded

from pliant.batch.slurm.arrays import (
    FORMAT,
    Tasks,
    apart,
    of_unknown_limit,
    parse_tasks,
    ranges,
    with_limits,
)
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.snapshot import snapshot_of
from pliant.errors import BadAnswer
from pliant.grammar import parse, parse_shape, token_text
from pliant.handover import GUEST
from pliant.model import ARRAY_LIMIT, Spec

ROW = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))[0]
ARRAY = replace(
    ROW,
    job_id="5",
    array_id="5",
    state="PENDING",
    array_tasks="0-3%2",
    reason="Resources,JobHeldUser",
)
SAID = "6|2|JobHeldUser|\n5|0|Resources|\n5|1|Resources|\n5|3|Resources|\n9|N/A|None|\n"
"""24.11.5, after `scontrol hold 5_2`, beside a job that is no array."""


def test_a_task_that_its_owner_changed_or_holds_is_not_the_arrays_to_change() -> None:
    told = {"6": Tasks([2], "JobHeldUser"), "5": Tasks([0, 1, 3], "Resources")}
    own = replace(ARRAY, array_tasks="0-1,3%2", reason="Resources")
    assert parse_tasks(SAID) == told
    assert apart([ARRAY, ROW], told) == [own, ROW]


def test_an_array_that_is_whole_stays_as_squeue_writes_it() -> None:
    assert apart([ARRAY], {"5": Tasks([0, 1, 2, 3], ARRAY.reason)}) == [ARRAY]
    assert apart([ARRAY], {}) == [ARRAY]


TRIAL = token_text(Spec(parse("job-class=trial"), parse_shape("1")))
TASK = replace(ARRAY, job_id="8", array_tasks="4", reason="Resources", admin_comment=TRIAL)
LAST = replace(TASK, job_id="5", array_tasks="3")


def test_the_limit_of_an_array_is_asked_for_where_a_trial_of_its_last_tasks_may_wait_for_it() -> (
    None
):
    shown = replace(LAST, array_tasks="1-3%1")
    assert of_unknown_limit([LAST, TASK, ROW]) == ["5"]
    assert of_unknown_limit([replace(LAST, state="RUNNING"), TASK]) == ["5"]
    assert of_unknown_limit([LAST]) == of_unknown_limit([replace(LAST, array_id="6"), TASK]) == []
    assert of_unknown_limit([shown, TASK]) == []  # squeue has said it
    assert of_unknown_limit([replace(row, admin_comment="") for row in (LAST, TASK)]) == []
    assert of_unknown_limit([replace(row, state="RUNNING") for row in (LAST, TASK)]) == []


def test_it_holds_for_all_its_waiting_tasks_and_their_names_stay() -> None:
    runs = replace(TASK, state="RUNNING")
    named = [row.key for row in (LAST, TASK)]
    for rows, said in (([LAST, TASK, runs, ROW], {"5": 2}), ([LAST, TASK, runs, ROW], {"8": 2})):
        limited = with_limits(rows, said)
        assert [row.at_once for row in limited] == [2, 2, 0, 0]
        assert [row.key for row in limited[:2]] == named
        assert limited[0].is_last_task
    shown = replace(LAST, array_tasks="1-3%1")
    assert with_limits([shown, TASK], {}) == [shown, replace(TASK, array_tasks="4%1")]


def seen(*rows: JobRow) -> list[tuple[str, str, int]]:
    """What waits of these: its id, why, and how many of it may start."""
    waiting = snapshot_of(rows, Cluster((22, 5), {}, {}), {}, 1e10).waiting
    return [(job.id, job.reason, job.tasks_waiting) for job in waiting]


def test_while_a_task_has_its_turn_the_next_of_a_limited_array_waits_for_it() -> None:
    pinned = replace(TASK, array_tasks="4%1", priority=str(GUEST))
    last = replace(LAST, array_tasks="3%1")
    waits = ("5_3", ARRAY_LIMIT, 1)
    assert seen(pinned, last) == [("5_4", "Resources", 1), waits]
    assert seen(replace(pinned, state="RUNNING"), last) == [waits]
    rest = replace(last, array_tasks="1-3%2")
    assert seen(replace(pinned, array_tasks="4%2"), rest)[1] == ("5", "Resources", 1)


def test_of_two_tasks_that_wait_alone_one_is_asked_for_room() -> None:
    tasks = [replace(row, array_tasks=f"{row.array_tasks}%1") for row in (LAST, TASK)]
    assert [why for _, why, _ in seen(*tasks)] == ["Resources", ARRAY_LIMIT]
    held = replace(tasks[0], priority="0", reason="JobHeldUser")
    assert seen(held, tasks[1])[0] == ("5_4", "Resources", 1)
    others = [replace(row, admin_comment="") for row in tasks]
    assert [why for _, why, _ in seen(*others)] == ["Resources", "Resources"]


def test_of_a_limited_array_that_waits_for_something_else_no_more_count() -> None:
    later = replace(TASK, job_id="5", array_tasks="0-99%2", eligible="N/A", reason="Dependency")
    assert seen(later) == [("5", "Dependency", 2)]
    last = replace(LAST, array_tasks="3%1")
    assert seen(replace(TASK, array_tasks="4%1", eligible="N/A", reason="Dependency"), last)[1] == (
        *("5_4", "Dependency"),
        1,
    )
    assert seen(replace(TASK, array_tasks="4%1", eligible="N/A"), last)[0] == (
        "5_3",
        "Resources",
        1,
    )


def test_what_is_no_task_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match="is no number"):
        parse_tasks("5|x|None|\n")


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_hold_their_numbers_and_no_others(numbers: set[int]) -> None:
    found: set[int] = set()
    for part in ranges(numbers).split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers


class Merged:
    """squeue of 26.05: the requeued task 3_4 (JobID 7) waits, and stands in its array's line."""

    def __init__(self, gone: bool) -> None:
        self.gone, self.asked = gone, list[str]()
        self.array = replace(ARRAY, job_id="3", array_id="3", array_tasks="4-6", tres="")
        self.task = replace(self.array, job_id="7", array_tasks="4", reason="BeginTime")

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        assert stdin == ""
        if argv[0] == "scontrol":
            text = recorded("22.05", "config.txt")
            return Answer(text.replace("= 22.05.8", "= 26.05.0"), "", 0)
        self.asked.append(" ".join(argv[1:]))
        form = (env or {})["SQUEUE_FORMAT2"]
        if form == FORMAT:
            return Answer("3|5|Resources|\n3|6|Resources|\n7|4|BeginTime|\n", "", 0)
        if "-r" in argv and self.gone:
            return Answer("", "slurm_load_jobs error: Invalid job id specified", 1)
        nonce = re.search(r"N[0-9a-f]{16}", form)
        assert nonce
        return Answer(printed(self.task if "-r" in argv else self.array, nonce[0], (26, 5)), "", 0)


def test_a_requeued_task_is_seen_that_stands_in_its_arrays_line() -> None:
    slurm = Merged(gone=False)
    found = Queries(slurm).again(["3_4"])
    assert {key: row.array_tasks for key, row in found.items()} == {"3": "5-6", "3_4": "4"}
    assert slurm.asked[-1] == "-h -a --local -r -j 7"


def test_a_task_that_has_ended_meanwhile_is_not_seen() -> None:
    assert [*Queries(Merged(gone=True)).again(["3_4"])] == ["3"]
