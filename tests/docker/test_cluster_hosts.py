"""Pliant where login, controller and compute nodes are different hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_helpers import ALICE, BOB, NODES, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

TELL = 'echo "$(hostname) $PLIANT_SHAPE $SLURM_GPUS_ON_NODE $CUDA_VISIBLE_DEVICES"'


@pytest.fixture
def half(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with two GPUs of each node taken by another user."""
    others = cluster.submit("login", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    cluster.wait(others, "RUNNING")
    yield cluster
    cluster.no_jobs()


@pytest.mark.parametrize("host", ["login", "controller", *NODES])
def test_the_flags_are_known_on_every_host(cluster: Cluster, host: str) -> None:
    assert "--moldable=" in cluster.out(host, "sbatch", "--help")


def test_a_job_is_molded_and_runs_across_hosts(half: Cluster) -> None:
    job = half.submit(
        *("login", ALICE, "-N3", "--gres=gpu:4", "--moldable=gpus=3:6:12,nodes=3"),
        script=f"srun sh -c '{TELL}'",
    )
    assert half.said(job, ALICE) == [f"{node} 3x2 2 2,3" for node in NODES]


def test_a_steps_number_of_tasks_follows_the_nodes_that_the_job_got(half: Cluster) -> None:
    job = half.submit(
        *("login", ALICE, "-N3", "--ntasks-per-node=4", "--gres=gpu:4"),
        "--moldable=gpus=3:6:12,nodes=3",
        script="srun hostname",
    )
    assert half.said(job, ALICE) == ["n1", "n1", "n2", "n2", "n3", "n3"]


def test_a_task_that_its_owner_changed_is_left_alone(half: Cluster) -> None:
    rest = half.submit("login", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    half.wait(rest, "RUNNING")
    options = ("-a", "0-3", "-n2", "-N1", "--gres=gpu:4", "--moldable=gpus=1-4")
    array = half.submit("login", ALICE, *options, script="sleep 600")
    half.out("login", "scontrol", "update", f"jobid={array}_2", "numtasks=3", user=ALICE)
    words = ("squeue", "-h", "-r", "-O", "ArrayTaskID:|,NumTasks:|,NumCPUs:|,tres-per-node:|")

    def third() -> list[str]:
        return [line for line in half.out("login", *words).splitlines() if line.startswith("2|")]

    before = third()
    half.out("login", "scancel", rest, user=BOB)
    half.wait(f"{array}_0", "RUNNING")
    assert third() == before


@pytest.mark.parametrize("host", ["login", "n2"])
def test_a_user_asks_pliantd_from_any_host(half: Cluster, host: str) -> None:
    job = half.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4", script="sleep 600")
    half.wait(job, "RUNNING")
    assert "pliantd" in half.out(host, "pliant", "status", user=ALICE)
    assert job in half.out(host, "pliant", "jobs", user=ALICE)
    line = f"job {job} of {ALICE} in gpu: running as 2 (its own shape is 4)"
    why = ("pliant", "why", job)  # pliantd looks at the cluster now and then
    wait_until(lambda: line in half.out(host, *why, user=ALICE), line)


def test_pliantd_answers_while_slurmctld_hangs(cluster: Cluster) -> None:
    cluster.out("controller", "pkill", "-STOP", "slurmctld")
    try:
        assert "pliantd" in cluster.out("login", "pliant", "status", user=ALICE)
    finally:
        cluster.out("controller", "pkill", "-CONT", "slurmctld")


def test_a_host_without_any_file_of_pliant_submits_by_comment(half: Cluster) -> None:
    assert half.on("outside", "sh", "-c", "command -v pliant").returncode != 0
    assert half.on("outside", "test", "-e", "/usr/lib/pliant").returncode != 0
    job = half.submit("outside", ALICE, "--gres=gpu:4", "--comment=pliant:gpus=1-4", script=TELL)
    (said,) = half.said(job, ALICE)
    assert said.split()[1:] == ["2", "2", "2,3"]


def test_the_doctor_finds_no_fault_on_any_host(cluster: Cluster) -> None:
    found = {
        host: cluster.on(host, "pliant", "doctor").stdout for host in ("login", "controller", "n1")
    }
    faults = {
        host: [line for line in text.splitlines() if line.startswith("fault ")]
        for host, text in found.items()
    }
    assert faults == {"login": [], "controller": [], "n1": []}


def test_the_first_job_is_submitted_as_the_page_says(cluster: Cluster) -> None:
    with cluster.typing() as here:
        here.types("docker/README.md", "docker compose up -d --wait")
        here.types("docker/README.md", "docker compose logs controller")
        here.run("cd ..")
        here.types("docker/README.md", "cd docker")
        wait_until(lambda: here.run("squeue -h -t R")[1], "the job does not run")
    cluster.no_jobs()
