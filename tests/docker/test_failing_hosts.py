"""Hosts that fail beside the controllers: a node cut off, accounting away, names that come slowly."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cluster_helpers import ALICE, BOB, NODES, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

NOWHERE = "192.0.2.1"
"""An address of which nothing ever answers (RFC 5737)."""


@pytest.fixture
def whole(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with all its hosts, which it has again at the end."""
    yield cluster
    for host in ("n2", "accounting"):
        cluster.plug(host, "up")
    wait_until(lambda: nodes_up(cluster) == len(NODES), "the nodes do not come back")
    cluster.no_jobs()


def nodes_up(cluster: Cluster) -> int:
    """How many nodes Slurm would use."""
    states = cluster.out("login", "sinfo", "-h", "-N", "-o", "%T").split()
    return sum(state in ("idle", "mixed", "allocated") for state in states)


def gpus_free(cluster: Cluster) -> int:
    """How many GPUs pliantd saw free at its last look; -1 where it does not say."""
    # Where it has trouble, which it says too, status ends with 1.
    told = cluster.on("controller", "pliant", "status", "--json").stdout
    return sum(row["gpus_free"] for row in json.loads(told)["partitions"]) if told else -1


def shape(cluster: Cluster, job: str) -> str:
    """Return a job's GPUs per node and its nodes."""
    form = "tres-per-node:|,NodeList:|"
    return cluster.out("login", "squeue", "-h", "-O", form, "-j", job).rpartition(":")[2]


def test_a_node_that_is_cut_off_takes_its_own_jobs_along_and_no_other(whole: Cluster) -> None:
    each = {
        node: whole.submit("login", BOB, "-w", node, "--gres=gpu:2", script="sleep 600")
        for node in NODES
    }
    for job in each.values():
        whole.wait(job, "RUNNING")
    lost = whole.submit(
        *("login", ALICE, "-x", "n1,n3", "--gres=gpu:4", "--moldable=gpus=1-4"),
        script="sleep 600",
    )
    whole.wait(lost, "RUNNING")
    whole.plug("n2", "down")
    wait_until(lambda: nodes_up(whole) == 2, "n2 is not missed")
    # What comes now runs on the others, as large as they have room. What ran there is requeued.
    molded = whole.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4", "-t", "1")
    whole.wait(molded, "COMPLETED")
    assert [whole.state(each[node]) for node in ("n1", "n3")] == ["RUNNING", "RUNNING"]
    whole.wait(lost, "PENDING")
    why = ("login", "pliant", "why", lost)
    wait_until(lambda: "waiting as" in whole.out(*why, user=ALICE), "pliant why does not say so")

    wait_until(lambda: shape(whole, lost) == "4||", "it does not carry what its owner wrote")

    whole.plug("n2", "up")
    wait_until(lambda: nodes_up(whole) == 3, "n2 does not come back")
    options = ("-w", "n2", "-t", "1", "--gres=gpu:4", "--moldable=gpus=1-4")
    back = whole.submit("login", ALICE, *options, script="echo $PLIANT_SHAPE")
    assert whole.said(back, ALICE) == ["4"]
    assert [whole.state(job) for job in (lost, each["n2"])] == ["PENDING", "PENDING"]


def test_without_accounting_jobs_are_molded_and_run_and_slurmctld_restarts(whole: Cluster) -> None:
    others = whole.submit("login", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    whole.wait(others, "RUNNING")
    # 22.05 changes no job that was submitted since: what the filter knows counts.
    wait_until(lambda: gpus_free(whole) == 6, "pliantd does not see what runs")
    # Its name stays known: one that is not costs slurmctld 24.11 twenty seconds at its start, for
    # it asks ten times for each connection, and answers nobody meanwhile.
    whole.plug("accounting", "down")
    molded = whole.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4", script="sleep 600")
    whole.wait(molded, "RUNNING")
    assert shape(whole, molded) == "2|n1|"
    whole.compose("restart", "-t", "10", "controller")
    wait_until(lambda: whole.state(molded) == "RUNNING", "slurmctld does not restart")
    again = whole.submit("login", ALICE, "-t", "1", "--gres=gpu:4", "--moldable=gpus=1-4")
    whole.wait(again, "COMPLETED")
    assert shape(whole, molded) == "2|n1|"


@pytest.fixture
def slow(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster whose login and controllers ask a name server first that never answers.

    They wait for it for 4 s, not for 5: `scontrol show config` asks for two names, and what takes
    longer than 10 s pliantd gives up ([slurm] timeout_s).
    """
    hosts = ("login", "controller", "backup")
    for host in hosts:
        first = (f"nameserver {NOWHERE}", "options timeout:4")
        keep = (
            "cp /etc/resolv.conf /tmp/resolv.conf &&"
            ' { echo "$0"; echo "$1"; cat /tmp/resolv.conf; } >/etc/resolv.conf'
        )
        cluster.out(host, "sh", "-c", keep, *first)
    yield cluster
    for host in hosts:
        cluster.out(host, "sh", "-c", "cat /tmp/resolv.conf >/etc/resolv.conf")
    cluster.no_jobs()


def test_where_names_come_slowly_jobs_are_submitted_molded_and_explained(slow: Cluster) -> None:
    others = slow.submit("outside", BOB, "-N3", "--gres=gpu:2", script="sleep 600")
    wait_until(lambda: gpus_free(slow) == 6, "pliantd does not see what runs")
    job = slow.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4", script="sleep 600")
    wait_until(lambda: "R" in slow.out("outside", "squeue", "-h", "-o", "%t", "-j", job), job)
    form = ("squeue", "-h", "-O", "tres-per-node:|", "-j", job)
    assert slow.out("outside", *form).endswith("gpu:2|")
    slow.out("outside", "scancel", others)
    # It is told, or why not in one line: pliantd's own looks are slow, too, and so are seldom.
    said = slow.on("login", "timeout", "25", "pliant", "why", job, user=ALICE)
    lines = (said.stdout + said.stderr).splitlines()
    assert lines[0].startswith((f"job {job} of {ALICE}", "pliant: "))
    assert said.returncode == 0 or len(lines) == 1
