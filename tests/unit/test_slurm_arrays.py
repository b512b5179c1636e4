"""Tasks of an array that have a record of their own, where squeue writes them into the array's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.arrays import Tasks, apart, parse_tasks, ranges
from pliant.batch.slurm.job_rows import parse_jobs
from pliant.errors import BadAnswer

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
