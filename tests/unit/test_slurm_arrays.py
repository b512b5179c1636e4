"""Tasks of an array that have a record of their own, where squeue writes them into the array's."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.arrays import apart, parse_tasks, ranges
from pliant.batch.slurm.job_rows import parse_jobs
from pliant.errors import BadAnswer

ROW = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))[0]
ARRAY = replace(ROW, job_id="5", array_id="5", state="PENDING", array_tasks="0-3%2")
SAID = "6|2|\n5|0|\n5|1|\n5|3|\n9|N/A|\n"
"""24.11.5, after `scontrol update jobid=5_2 gres=gpu:2`, beside a job that is no array."""


def test_a_task_that_its_owner_changed_is_not_the_arrays_to_change() -> None:
    assert parse_tasks(SAID) == {"6": [2], "5": [0, 1, 3]}
    assert apart([ARRAY, ROW], parse_tasks(SAID)) == [replace(ARRAY, array_tasks="0-1,3%2"), ROW]


def test_an_array_that_is_whole_stays_as_squeue_writes_it() -> None:
    assert apart([ARRAY], {"5": [0, 1, 2, 3]}) == [ARRAY]
    assert apart([ARRAY], {}) == [ARRAY]


def test_what_is_no_task_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match="is no number"):
        parse_tasks("5|x|\n")


@given(st.sets(st.integers(0, 300), min_size=1))
def test_ranges_hold_their_numbers_and_no_others(numbers: set[int]) -> None:
    found: set[int] = set()
    for part in ranges(numbers).split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers
