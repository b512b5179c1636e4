"""`pliant run` in a job of PBS: which run it is, and that its end requeues the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from pliant.node import pbs
from pliant.node import words as w
from pliant.node.core import step
from pliant.node.run import from_environment
from pliant.node.words import Stage, State

JOB = {
    "PBS_JOBID": "7.head",
    "PBS_O_WORKDIR": "/home/ada",
    "PLIANT_RESTART_COUNT": "2",
    "PLIANT_RETURNS": "85",
}
WISH = w.Wish("0.1")


def test_a_run_of_pbs_is_known_by_its_environment() -> None:
    this = from_environment(JOB)
    assert (this.job, this.restarts, this.ranks, this.returns) == ("7", 2, 1, True)
    assert this.directory == Path("/home/ada/pliant-7")
    assert from_environment({**JOB, "PBS_JOBID": "7[3].head"}).job == "7[3]"


@pytest.mark.parametrize(
    "environ",
    [
        {**JOB, "PLIANT_RETURNS": ""},
        {**JOB, "PLIANT_RETURNS": "7"},
        {**JOB, "SLURM_JOB_ID": "9"},  # it was submitted from within a job of PBS
        {"PLIANT_RETURNS": "85"},
    ],
)
def test_without_our_hooks_nothing_returns(environ: dict[str, str]) -> None:
    assert not from_environment(environ).returns
    assert "no hook of Pliant's" in pbs.requeue("7", 0)
    assert pbs.why_ended("7", 0) == ""


@pytest.mark.parametrize("event", [w.Answered(1.0), w.Ticked(1000.0)])
def test_where_its_end_requeues_the_job_a_wrapper_waits_for_nobody(event: w.Event) -> None:
    handing = State(stage=Stage.HANDING, wish=WISH, until_s=20.0, returns=True)
    assert step(handing, event) == (
        State(stage=Stage.OVER, wish=WISH, until_s=20.0, returns=True),
        (w.Exit(85),),
    )


def test_a_job_that_is_to_stay_goes_on_here_on_pbs_too() -> None:
    handing = State(stage=Stage.HANDING, wish=WISH, until_s=20.0, returns=True)
    after, effects = step(handing, w.Requeued(1.0, "it is to stay"))
    assert (after.stage, w.Start() in effects) == (Stage.RUNNING, True)
