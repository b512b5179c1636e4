"""Controllers that fail: no job is lost, held or changed wrongly, and who takes over molds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_helpers import ALICE, BOB, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

MOLDABLE = ("--gres=gpu:4", "--moldable=gpus=1-4")


@pytest.fixture
def both(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with its first controller acting, which comes back at the end."""
    wait_until(lambda: acts(cluster, "controller"), "the first controller does not act")
    yield cluster
    cluster.plug("controller", "up")
    cluster.start_slurmctld()
    wait_until(lambda: acts(cluster, "controller"), "the first controller does not come back")
    cluster.no_jobs()


def pliant(cluster: Cluster, host: str, *words: str, asked: str = "") -> str:
    """Run pliant as Alice within 15 s and return what it said; ``asked``: which pliantd."""
    argv = ("env", f"PLIANT_HOST={asked}", "timeout", "15", "pliant", *words)
    done = cluster.on(host, *argv, user=ALICE)
    return done.stdout + done.stderr


def acts(cluster: Cluster, host: str) -> bool:
    """Whether a controller acts, and the pliantd beside it and no other."""
    said = pliant(cluster, "login", "status")
    return cluster.acting() == host and f" on {host}," in said and "last look" in said


def stands_by(cluster: Cluster, host: str, other: str) -> None:
    """Wait until the pliantd of a host has noticed that another one acts."""
    words = f"{host} stands by: slurmctld runs on {other}"
    wait_until(lambda: words in pliant(cluster, "login", "status", asked=host), words)


def changes(cluster: Cluster, host: str) -> str:
    """What the pliantd of a host says of its changes since its start."""
    said = pliant(cluster, "login", "status", asked=host)
    return next((line for line in said.splitlines() if line.startswith("since the start")), said)


def queue(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Return each job's state, restarts, GPUs, nodes and priority, by its number."""
    form = "JobID:|,State:|,RestartCnt:|,tres-per-node:|,NumNodes:|,NodeList:|"
    lines = cluster.out("login", "squeue", "-h", "-O", form).splitlines()
    return {line.split("|")[0]: tuple(line.split("|")[1:-1]) for line in lines}


def held(cluster: Cluster) -> list[str]:
    """Return the jobs of priority 0."""
    lines = cluster.out("login", "squeue", "-h", "-o", "%i %Q").splitlines()
    return [line for line in lines if line.endswith(" 0")]


def test_a_backup_takes_over_in_the_middle_of_a_cycle_and_gives_back(both: Cluster) -> None:
    others = both.submit("login", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    both.wait(others, "RUNNING")
    running = both.submit("login", ALICE, *MOLDABLE, script="sleep 600")
    both.wait(running, "RUNNING")
    rigid = both.submit("login", ALICE, "-N3", "--gres=gpu:4")
    waiting = both.submit("login", ALICE, "-N3", "--gres=gpu:4", "--moldable=gpus=9:12,nodes=3")
    before = queue(both)
    assert before[running][:2] == ("RUNNING", "0")
    assert before[running][2].endswith("gpu:2")  # gres:gpu:2 in 22.05
    # Many that can start just now, so that updates are under way when it ends.
    small = ("-t", "1", "--gres=gpu:3", "--moldable=gpus=1-3")
    crowd = [both.submit("login", ALICE, *small) for _ in range(4)]
    with both.typing() as here:
        here.types(
            "docker/README.md",
            "docker compose exec controller sh -c 'touch /run/slurm/slurmctld.stopped; pkill slurmctld'",
        )

    # To submit meanwhile is to wait for a controller, with or without Pliant; but one that ends as it
    # is asked resets the connection.
    wait_until(
        lambda: both.on("controller", "pgrep", "-x", "slurmctld").returncode == 1,
        "slurmctld does not end",
    )
    during = both.submit("login", ALICE, "-t", "1", *MOLDABLE, "--hold")
    wait_until(lambda: acts(both, "backup"), "the backup's pliantd does not act")
    now = queue(both)
    assert {job: now.get(job) for job in before} == before
    both.out("login", "scontrol", "release", during, user=ALICE)
    assert held(both) == []
    stands_by(both, "controller", "backup")
    idle = changes(both, "controller")
    after = both.submit("login", ALICE, "-t", "1", *MOLDABLE)
    assert f"job {after} of {ALICE}" in pliant(both, "n2", "why", after)
    for job in (*crowd, during, after):
        both.wait(job, "COMPLETED")
    assert changes(both, "controller") == idle
    both.plug("controller", "down")  # its host is gone too: names and addresses stay
    assert f"job {waiting} of {ALICE}" in pliant(both, "login", "why", waiting)
    both.plug("controller", "up")

    with both.typing() as here:
        here.types("docker/README.md", "docker compose exec login scontrol ping")
        here.types(
            "docker/README.md", "docker compose exec controller rm /run/slurm/slurmctld.stopped"
        )
    wait_until(lambda: acts(both, "controller"), "the first controller's pliantd does not act")
    assert {job: queue(both).get(job) for job in before} == before
    stands_by(both, "backup", "controller")
    idle = changes(both, "backup")
    both.out("login", "scancel", others, running)
    late = both.submit("login", ALICE, "-N3", "--gres=gpu:4", "--moldable=gpus=6:9,nodes=3")
    for job in (rigid, waiting, late):
        both.wait(job, "COMPLETED")
    assert changes(both, "backup") == idle


def test_a_pause_is_told_to_every_controller(both: Cluster) -> None:
    assert both.out("login", "pliant", "pause").startswith("paused")
    try:
        for host in ("controller", "backup"):
            assert "PAUSED" in pliant(both, "login", "status", asked=host)
    finally:
        both.out("login", "pliant", "resume")
    for host in ("controller", "backup"):
        assert "PAUSED" not in pliant(both, "login", "status", asked=host)


def test_a_controller_s_restart_loses_no_job(both: Cluster) -> None:
    others = both.submit("login", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    both.wait(others, "RUNNING")
    running = both.submit("login", ALICE, *MOLDABLE, script="sleep 600")
    both.wait(running, "RUNNING")
    waiting = both.submit("login", ALICE, "-N3", "--gres=gpu:4", "--moldable=gpus=12,nodes=3")
    before = queue(both)
    both.compose("restart", "-t", "10", "controller")
    wait_until(lambda: acts(both, "controller"), "pliantd does not act after the restart")
    assert queue(both) == before
    molded = both.submit("login", ALICE, "-t", "1", *MOLDABLE)
    both.wait(molded, "COMPLETED")
    both.out("login", "scancel", others, running)
    both.wait(waiting, "COMPLETED")
