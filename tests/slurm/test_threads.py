"""Nodes whose cores have two threads: a task with more than one CPU gets whole cores or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from asking_helpers import wait_for_fresh_look, wait_for_look
from daemon_helpers import LONG, OneNode, why
from lua_helpers import close_breaker
from release_helpers import Release, from_on
from slurm_helpers import restart_with, wait_until

from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Four nodes of eight cores with two threads each, and a partition that gives 3 CPUs a GPU."""
    made = Sandbox(f"pytest-threads-{os.getpid()}", Options(nodes=4, gpus=4, users=users))
    made.up()
    try:
        _give_threads(made)
        create = ("scontrol", "create", "partition=given", "nodes=ALL")
        made.run([*create, "jobdefaults=DefCpuPerGPU=3"], check=True)
        wait_for_look(made)
        yield made
    finally:
        made.down()


def _give_threads(made: Sandbox) -> None:
    cores = "CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=2"
    restart_with(made, {"CPUs=16": cores})
    assert "ThreadsPerCore=2" in made.run(["scontrol", "show", "node", "n1"], check=True).stdout


RANGE = "--moldable=gpus=1:2:4"


def test_which_tasks_without_whole_cores_slurm_starts(
    clean: Sandbox, show: Callable[[int | str], dict[str, str]], release: Release
) -> None:
    """Two tasks of three CPUs are no whole cores; Pliant makes no job such a one on any release."""
    starts = {
        "-N1 -n2 -c2 --gres=gpu:2": {"22.05": "starts"},
        "-N1 -n2 -c3": {"22.05": "starts"},
        "-N1 -n2 -c3 --gres=gpu:2": {"22.05": "is refused", "24.11": "starts"},
    }

    def becomes(options: str) -> str:
        argv = ["sbatch", "--parsable", *options.split(), "-o/dev/null", f"--wrap={LONG}"]
        done = clean.run(argv)
        if done.returncode:
            return "is refused"
        job = done.stdout.strip()

        def looked_at() -> bool:
            return show(job)["JobState"] == "RUNNING" or show(job)["Reason"] != "None"

        wait_until(looked_at, "Slurm to look at the job")
        fields = show(job)
        return "starts" if fields["JobState"] == "RUNNING" else fields["Reason"]

    found = {options: becomes(options) for options in starts}
    assert found == {options: from_on(table, release) for options, table in starts.items()}


@pytest.mark.parametrize(
    ("options", "runs_with"),
    [
        (("--gpus-per-node=2", "--cpus-per-gpu=3", "-n2"), ("gres:gpu:2", "6")),
        (("--gpus-per-node=2", "--cpus-per-gpu=3", "-n2", "-N1"), ("gres:gpu:2", "6")),
        (("-pgiven", "--gres=gpu:2", "-n2", "-N1"), ("gres:gpu:2", "6")),
        (("--gpus-per-node=2", "--cpus-per-gpu=3", "-n1"), ("gres:gpu:4", "12")),
        (("--gpus-per-node=2", "--cpus-per-gpu=2", "-n2", "-N1"), ("gres:gpu:4", "8")),
        (("--gpus-per-node=2", "-n2", "-N1"), ("gres:gpu:4", "4")),  # one CPU a task
        (("--gpus-per-node=2", "-n3", "-N1"), ("gres:gpu:4", "4")),  # of two cores
    ],
)
def test_every_submission_starts_whose_twin_without_a_flag_does(
    options: tuple[str, ...], runs_with: tuple[str, str], n1: OneNode
) -> None:
    close_breaker(n1.sandbox)
    wait_for_fresh_look(n1.sandbox)
    job = n1.submit(*options, RANGE, script=LONG)
    n1.wait_for_state(job, "RUNNING")
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["NumCPUs"]) == runs_with


def test_a_waiting_job_is_not_molded_to_tasks_without_whole_cores(n1: OneNode) -> None:
    n1.fill("gpu:2")
    close_breaker(n1.sandbox)
    options = ("-N1", "-n2", "--gpus-per-node=4", "--cpus-per-gpu=3")
    job = n1.wait_in_line(*options, RANGE, script=LONG)
    n1.look()
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["CPUs/Task"]) == ("gres:gpu:4", "6")
    assert (shown["JobState"], shown["Reason"]) == ("PENDING", "Resources")


def test_one_task_of_any_number_of_cpus_is_molded_and_starts(n1: OneNode) -> None:
    _, small = n1.fill("gpu:3"), n1.fill("gpu:1")
    close_breaker(n1.sandbox)
    job = n1.wait_in_line("-n1", "--gpus-per-node=4", "--cpus-per-gpu=3", RANGE, script=LONG)
    n1.cancel(small)
    n1.wait_for_state(job, "RUNNING")
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["CPUs/Task"], shown["NumCPUs"]) == ("gres:gpu:1", "3", "4")


def test_a_job_submitted_while_pliantd_is_away_gets_no_tasks_without_whole_cores(
    n1: OneNode,
) -> None:
    n1.sandbox.stop("pliantd")
    options = ("-N2", "-n4", "-c3", "--mincpus=6", "--gres=gpu:2")
    job = n1.submit(*options, "--moldable=gpus=4,nodes=1:2", "--time=10", script=LONG)
    n1.wait_for_reason(job, "Resources")
    n1.sandbox.start("pliantd")
    n1.look()
    told = why(n1.sandbox, job)
    assert [row.shapes for row in told.cannot] == [("4",)]  # 4 tasks of 3 CPUs on n1
    assert "mold" not in {row.what for row in told.decisions}
    assert n1.show(job)["Reason"] == "Resources"
