"""The demonstration's round on the real Slurm, with fewer and shorter jobs."""

from __future__ import annotations

import pytest

from pliant.demo.live import submit_all
from pliant.demo.mix import SHARDS, mix
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm


def test_every_job_runs_at_an_allowed_shape_and_at_its_speed(clean: Sandbox) -> None:
    """submit_all itself compares Slurm's record of each job with what the job saw."""
    assert clean.record.options.shards == SHARDS
    jobs = mix(stretch=0.25)[:14]
    found = submit_all(clean, jobs, print)
    assert [run.job for run in found] == list(jobs)
    assert [(str(run.shape), run.job) for run in found if run.shape not in run.job.shapes] == []
    assert {run.job.moldable for run in found} > {"", "gpus=1-4"}
    for run in found:
        assert run.waited_s >= 0
        assert run.end_s - run.start_s >= int(run.job.run_s(run.shape))
