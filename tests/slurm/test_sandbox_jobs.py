"""Jobs in the sandbox that all tests on a real Slurm share."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

ENVIRONMENT = 'echo "$USER $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE $SLURM_JOB_GPUS"'


@pytest.mark.parametrize("request_", ["--gres=gpu:2", "--gpus-per-node=2", "--gres=gpu:a100:2"])
def test_a_job_sees_the_fake_gpus_that_it_was_given(
    submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str], request_: str
) -> None:
    job = submit(request_, script=ENVIRONMENT)
    wait_for_state(job, "COMPLETED")
    assert output(job) == "pliant-alice 0,1 2 0,1\n"


def test_a_job_may_have_a_share_of_one_gpu(
    submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    job = submit("--gres=shard:1", script='echo "$CUDA_VISIBLE_DEVICES $SLURM_SHARDS_ON_NODE"')
    wait_for_state(job, "COMPLETED")
    assert output(job) == "0 1\n"


def test_jobs_of_several_users_run_at_once(
    submit: Submit, wait_for_state: WaitForState, clean: Sandbox, users: tuple[str, str]
) -> None:
    jobs = [submit("--gres=gpu:1", script="sleep 60", user=user) for user in (*users, "root")]
    for job in jobs:
        wait_for_state(job, "RUNNING")
    owners = clean.run(["squeue", "-h", "-t", "R", "-o", "%u"]).stdout.split()
    assert sorted(owners) == ["pliant-alice", "pliant-bob", "root"]


def test_a_slurmd_is_started_again_while_a_job_runs_on(
    submit: Submit, wait_for_state: WaitForState, clean: Sandbox
) -> None:
    job = submit("--gres=gpu:1", "--nodelist=n1", script="sleep 60")
    wait_for_state(job, "RUNNING")
    before = clean.pid("slurmd-n1")
    clean.restart("slurmd-n1")
    after = clean.pid("slurmd-n1")
    assert after not in (None, before)
    assert psutil.Process(after).name() == "slurmd"
    assert clean.run(["squeue", "-h", "-j", str(job), "-o", "%T"]).stdout == "RUNNING\n"


def test_accounting_counts_gpus_and_holds_users_to_a_qos(
    submit: Submit, wait_for_state: WaitForState, clean: Sandbox
) -> None:
    for argv in (
        ["add", "qos", "narrow", "MaxTRESPerUser=gres/gpu=2"],
        ["modify", "user", "pliant-alice", "set", "qos+=narrow"],
    ):
        clean.run(["sacctmgr", "-i", *argv])
    fits = submit("--qos=narrow", "--gres=gpu:2", script="sleep 60")
    wait_for_state(fits, "RUNNING")
    over = submit("--qos=narrow", "--gres=gpu:1", script="sleep 60")
    reason = ["squeue", "-h", "-j", str(over), "-o", "%T %r"]
    wait_until(
        lambda: clean.run(reason).stdout == "PENDING QOSMaxGRESPerUser\n", "the limit to be seen"
    )
