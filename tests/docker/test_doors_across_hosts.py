"""pliantd's second door between hosts: who asks is proven, once, and sees what Slurm would show.

A recorded request counts nowhere: on no other connection, and at no other controller.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_helpers import ALICE, BOB, NODES, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

ASK = """
exec 3<>/dev/tcp/controller/6830
echo hello >&3
read -r -t 10 ok challenge <&3
made=$(printf '%s%s' "$0" "$challenge" | munge)
echo "munge $made" >&3
timeout 10 head -n 1 <&3
echo "$made"
"""
"""The protocol by hand: what somebody says who has no Pliant; and the credential, recorded."""

SEND = """
exec 3<>/dev/tcp/$1/6830
echo hello >&3
read -r -t 10 challenge <&3
echo "munge $0" >&3
timeout 10 head -n 1 <&3
"""
"""What somebody says who has recorded a credential."""

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


def ask(cluster: Cluster, host: str, user: str, request: str) -> tuple[str, str]:
    """Ask pliantd from a host as a user; return the answer's line and the credential."""
    joined = f"{request}{'&' if ' ' in request else ' '}"
    answer, made = cluster.out(host, "bash", "-c", ASK, joined, user=user).splitlines()
    return answer, made


def send(cluster: Cluster, host: str, made: str, to: str = "controller") -> str:
    """Send a credential to pliantd from a host and return the answer's line."""
    return cluster.out(host, "bash", "-c", SEND, made, to)


def test_a_recorded_request_is_refused_from_whatever_host(cluster: Cluster) -> None:
    answer, made = ask(cluster, "login", ALICE, "status")
    assert answer.startswith("ok json=")
    for host in ("login", "n2", "outside"):
        assert "used%20before" in send(cluster, host, made)


def test_a_recorded_request_is_refused_by_the_other_controller(cluster: Cluster) -> None:
    _, made = ask(cluster, "login", ALICE, "status")
    assert "made%20for%20another%20connection" in send(cluster, "login", made, "backup")


def test_a_credential_of_another_key_is_refused(cluster: Cluster) -> None:
    forged = cluster.out("outside", "bash", "-c", OTHER_KEY).splitlines()[-1]
    assert forged.startswith("MUNGE:")
    answer = send(cluster, "outside", forged)
    assert answer.startswith("no message=munge%20refused%20the%20credential")


def test_nobody_changes_a_job_of_another_user_s(cluster: Cluster, job: str) -> None:
    wait_until(lambda: listed(cluster, "login", job), job)
    request = f"set job={job}&spec=gpus%3D1"
    for user, word in ((BOB, "no"), (ALICE, "ok")):
        for host in ("n2", "outside"):
            answer, _ = ask(cluster, host, user, request)
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
