"""pliantd's second door between hosts: who asks is proven, once, and sees what Slurm would show."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_helpers import ALICE, BOB, NODES, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

SEND = """
exec 3<>/dev/tcp/controller/6830
printf 'munge %s\\n' "$0" >&3
timeout 10 head -n 1 <&3
"""
"""The protocol by hand: what somebody sends who has no Pliant."""

OTHER_KEY = """
head -c 128 /dev/urandom >/tmp/key && chown munge: /tmp/key && chmod 400 /tmp/key
install -d -o munge -g munge /tmp/munged
munged="runuser -u munge -- /usr/sbin/munged --key-file=/tmp/key --socket=/tmp/munged/socket"
$munged --pid-file=/tmp/munged/pid --log-file=/tmp/munged/log --seed-file=/tmp/munged/seed
printf status | munge --socket=/tmp/munged/socket
kill "$(cat /tmp/munged/pid)"
"""


@pytest.fixture
def job(cluster: Cluster) -> Iterator[str]:
    """A moldable job of Alice's that waits."""
    others = cluster.submit("login", BOB, "-N3", "--gres=gpu:4", script="sleep 600")
    cluster.wait(others, "RUNNING")
    yield cluster.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4")
    cluster.no_jobs()


def credential(cluster: Cluster, host: str, user: str, request: str) -> str:
    """Make a munge credential for a request."""
    return cluster.out(host, "sh", "-c", 'printf %s "$0" | munge', request, user=user)


def send(cluster: Cluster, host: str, made: str) -> str:
    """Send a credential to pliantd from a host and return the answer's line."""
    return cluster.out(host, "bash", "-c", SEND, made)


def test_a_recorded_request_is_refused_from_whatever_host(cluster: Cluster) -> None:
    made = credential(cluster, "login", ALICE, "status")
    assert send(cluster, "login", made).startswith("ok json=")
    for host in ("login", "n2", "outside"):
        assert "used%20before" in send(cluster, host, made)


def test_a_credential_of_another_key_is_refused(cluster: Cluster) -> None:
    forged = cluster.out("outside", "bash", "-c", OTHER_KEY).splitlines()[-1]
    assert forged.startswith("MUNGE:")
    answer = send(cluster, "outside", forged)
    assert answer.startswith("no message=munge%20refused%20the%20credential")


def test_nobody_changes_a_job_of_another_user_s(cluster: Cluster, job: str) -> None:
    request = f"set job={job}&spec=gpus%3D1"
    for user, word in ((BOB, "no"), (ALICE, "ok")):
        for host in ("n2", "outside"):
            answer = send(cluster, host, credential(cluster, host, user, request))
            assert answer.startswith(f"{word} "), answer
    denied = cluster.on("login", "pliant", "set", job, "gpus=1", user=BOB)
    assert (denied.returncode, denied.stdout) == (1, "")
    assert f"job {job} is not yours" in denied.stderr


@pytest.fixture
def private(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster where users see their own jobs only."""
    conf = "/etc/slurm/slurm.conf"
    hosts = ("controller", "backup", "login", *NODES)
    for host in hosts:
        cluster.out(host, "sh", "-c", f"cp {conf} /tmp/conf && echo PrivateData=jobs >>{conf}")
    anew(cluster)
    yield cluster
    for host in hosts:
        cluster.out(host, "cp", "/tmp/conf", conf)
    anew(cluster)


def anew(cluster: Cluster) -> None:
    """Let slurmctld and pliantd read their configuration."""
    cluster.out("controller", "scontrol", "reconfigure")
    cluster.out("controller", "pkill", "-x", "pliantd")
    wait_until(lambda: "last look" in cluster.on("login", "pliant", "status").stdout, "no pliantd")


def listed(cluster: Cluster, host: str, job: str) -> bool:
    """Whether Alice sees a job on a host."""
    return job in cluster.on(host, "pliant", "jobs", user=ALICE).stdout


def test_private_jobs_are_shown_to_their_owners_alone(private: Cluster, job: str) -> None:
    wait_until(lambda: listed(private, "login", job), job)
    for host in ("login", "n2"):
        assert listed(private, host, job)
        assert private.on(host, "pliant", "jobs", user=BOB).stdout == ""
        told = private.on(host, "pliant", "why", job, user=BOB)
        assert (told.returncode, told.stdout) == (1, "")
        assert (
            told.stderr == f"pliant: '{job}': no waiting or running job of this number is known\n"
        )
