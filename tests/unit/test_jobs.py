"""A job with other values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pliant.model import Job, JobState, Shape


def test_a_job_with_other_values_is_what_replace_makes_of_it() -> None:
    job = Job("7", user="ada", shape=Shape(2, 4), progress=0.25)
    other = job.but(state=JobState.RUNNING, nodes=("n1", "n2"), progress=0.5)
    assert other == replace(job, state=JobState.RUNNING, nodes=("n1", "n2"), progress=0.5)
    assert job == Job("7", user="ada", shape=Shape(2, 4), progress=0.25)
    assert job.but() == job
    assert job.at(0.25) is job


def test_a_value_that_no_job_has_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        Job("7").but(colour="red")
