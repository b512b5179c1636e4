"""Partitions with limits and defaults of their own: what runs there, and what keeps its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from asking_helpers import wait_for_look
from daemon_helpers import LONG, OneNode
from lua_helpers import close_breaker
from slurm_helpers import Submit, WaitForState

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

Show = Callable[[int | str], dict[str, str]]

PARTITIONS = {
    "few": "MaxCPUsPerNode=8",
    "two": "MinNodes=2",
    "given": "JobDefaults=DefCpuPerGPU=4,DefMemPerGPU=500",
    "alone": "OverSubscribe=EXCLUSIVE",
    "hungry": "DefMemPerCPU=3000",
    "raised": "DefMemPerNode=16000 MaxMemPerCPU=4000",
}


@pytest.fixture(scope="module", autouse=True)
def partitions(sandbox: Sandbox) -> Iterator[None]:
    """More partitions of the same nodes, for these tests alone."""
    for name, words in PARTITIONS.items():
        create = ["scontrol", "create", f"partition={name}", "nodes=ALL", *words.split()]
        sandbox.run(create, check=True)
    wait_for_look(sandbox)
    yield
    for name in PARTITIONS:
        sandbox.run(["scontrol", "delete", f"partition={name}"], check=True)


def test_no_submission_is_molded_beyond_the_cpus_that_its_partition_gives_on_a_node(
    submit: Submit, clean: Sandbox, show: Show, wait_for_state: WaitForState
) -> None:
    wait_for_look(clean)
    for options in (
        ("--gpus=2", "--cpus-per-gpu=4", "-N1"),
        ("-n2", "-c4", "--gpus-per-task=1", "-N1"),
    ):
        job = submit("-pfew", *options, "--moldable=gpus=1-4", script=LONG)
        wait_for_state(job, "RUNNING")
        assert (show(job)["NumCPUs"], show(job)["NumNodes"]) == ("8", "1")


def test_a_range_that_its_partitions_min_nodes_excludes_leaves_the_job_as_written(
    submit: Submit, clean: Sandbox, show: Show, wait_for_state: WaitForState
) -> None:
    wait_for_look(clean)
    job = submit("-ptwo", "-N2", "--gpus-per-node=2", "--moldable=gpus=2-4,nodes=1", script=LONG)
    wait_for_state(job, "RUNNING")
    assert (show(job)["NumNodes"], show(job)["TresPerNode"]) == ("2", "gres:gpu:2")


def test_a_partitions_cpus_and_memory_per_gpu_follow_what_a_waiting_job_becomes(
    n1: OneNode,
) -> None:
    one, other = (n1.fill("gpu:2", "--cpus-per-task=2") for _ in range(2))
    job = n1.wait_in_line("-pgiven", "--gres=gpu:4", "--moldable=gpus=2-4", script=LONG)
    assert n1.gpus(job) == "gres:gpu:4"
    n1.cancel(other)
    n1.wait_for_state(job, "RUNNING")
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["NumCPUs"]) == ("gres:gpu:2", "8")
    assert "mem=1000M" in (shown.get("TRES") or shown["AllocTRES"])  # TRES before 23.02
    assert n1.states(one) == ["RUNNING"]


def test_they_do_so_where_pliantd_was_dead_when_the_job_was_submitted(n1: OneNode) -> None:
    n1.fill("gpu:2", "--cpus-per-task=2")
    other = n1.fill("gpu:2", "--cpus-per-task=2")
    n1.sandbox.stop("pliantd")
    try:
        job = n1.submit("-pgiven", "--gres=gpu:4", "--moldable=gpus=2-4", script=LONG)
    finally:
        n1.sandbox.start("pliantd")
    n1.cancel(other)
    n1.wait_for_state(job, "RUNNING")
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["NumCPUs"]) == ("gres:gpu:2", "8")
    assert "mem=1000M" in (shown.get("TRES") or shown["AllocTRES"])


def test_a_partition_of_whole_nodes_leaves_the_shape_to_the_owner(n1: OneNode) -> None:
    n1.fill("gpu:3")
    close_breaker(n1.sandbox)
    job = n1.wait_in_line("-palone", "-n4", "--gres=gpu:4", "--moldable=gpus=1-4")
    n1.look()
    shown = n1.show(job)
    assert (shown["TresPerNode"], shown["NumTasks"]) == ("gres:gpu:4", "4")


@pytest.mark.parametrize(
    "options",
    [
        ("--gpus=2", "--cpus-per-gpu=3", "--moldable=gpus=1-4"),
        ("-n2", "-c3", "--gpus-per-task=1", "--moldable=gpus=1-4"),
        ("--gres=gpu:1", "--moldable=type=gpu:cpu,cores=all"),
    ],
)
def test_no_submission_is_molded_beyond_the_memory_that_slurm_adds_to_it(
    options: tuple[str, ...], submit: Submit, clean: Sandbox, wait_for_state: WaitForState
) -> None:
    wait_for_look(clean)
    wait_for_state(submit("-phungry", *options, script=LONG), "RUNNING")


@pytest.mark.parametrize("options", [("-praised",), ("-pgiven", "--mem=0")])
def test_a_job_whose_memory_slurm_counts_its_own_way_starts_as_its_owner_wrote_it(
    options: tuple[str, ...], n1: OneNode
) -> None:
    close_breaker(n1.sandbox)
    n1.look()
    job = n1.submit(*options, "--gres=gpu:2", "--moldable=gpus=1-4", script=LONG)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


BY_GPU = (
    "-praised --gres=gpu:1 --cpus-per-gpu=2 --mem-per-cpu=9000",
    "-praised --gres=gpu:1 --mem-per-gpu=9000",
    "-palone --gres=gpu:1 --mem-per-gpu=500",
)


@pytest.mark.parametrize("options", BY_GPU)
def test_what_is_said_by_the_gpu_comes_to_the_same_where_nobody_answers(
    clean: Sandbox, submit: Submit, show: Show, wait_for_state: WaitForState, options: str
) -> None:
    """Said for the node it would be more CPUs beyond MaxMemPerCPU, and less memory of whole nodes."""
    clean.stop("pliantd")
    close_breaker(clean)
    given = []
    for more in ((), ("--moldable=gpus=1-4",)):
        job = submit("-N1", *options.split(), *more, script=LONG)
        wait_for_state(job, "RUNNING")
        shown = show(job)
        given.append((shown.get("TRES") or shown["AllocTRES"], shown["NumCPUs"]))
        clean.run(["scancel", str(job)], check=True)
        wait_for_state(job, "CANCELLED")
    assert given[0] == given[1]
