"""The Debian package on a cluster at work: in, on, up, off and out again, and no job notices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster_helpers import ALICE, BOB, NODES, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

HOSTS = ("controller", "login", "n1")
"""Those that get Pliant; n2 and n3 have none, as half-way through an installation."""

SITE_LUA = (Path(__file__).parents[1] / "assets" / "site_job_submit.lua").read_text()
SCRIPT = """#!/bin/bash
#SBATCH -N1 --gres=gpu:4 --moldable=gpus=1-4 -t 30 -D /home/pliant-alice -o /dev/null
sleep 1500
"""
NEXT = """set -e
dpkg-deb -R /home/pliant.deb /tmp/next
sed -i 's/^Version: .*/&+next/' /tmp/next/DEBIAN/control
dpkg-deb -Znone -b /tmp/next /home/next.deb
"""


def as_a_site(plain: Cluster) -> None:
    """Give the cluster rules and plugins of its own."""
    for host in ("controller", "login", *NODES):
        plain.out(host, "sh", "-c", "echo JobSubmitPlugins=lua >>/etc/slurm/slurm.conf")
        plain.out(host, "sh", "-c", "echo '# the site has none' >/etc/slurm/plugstack.conf")
        plain.out(host, "sh", "-c", 'printf %s "$0" >/etc/slurm/job_submit.lua', SITE_LUA)
    plain.out("controller", "scontrol", "reconfigure")
    plain.out("login", "sh", "-c", 'printf %s "$0" >/home/train.sh', SCRIPT)


def files(plain: Cluster) -> dict[str, str]:
    """Slurm's files on every host: names, modes, owners, digests."""
    look = "cd /etc/slurm; find . -printf '%p %m %u\\n' | sort; sha256sum $(find . -type f | sort)"
    return {host: plain.out(host, "sh", "-c", look) for host in ("controller", "login", *NODES)}


def jobs(plain: Cluster) -> list[str]:
    """Every job's number, state, restarts, shape and nodes."""
    form = "JobID:|,State:|,RestartCnt:|,tres-per-node:|,NumNodes:|,NodeList:|"
    return sorted(plain.out("login", "squeue", "-h", "-O", form).splitlines())


def apt(plain: Cluster, *words: str) -> str:
    """Run apt-get on the hosts that get Pliant."""
    argv = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", *words)
    with ThreadPoolExecutor() as pool:
        return "\n".join(pool.map(lambda host: plain.out(host, *argv), HOSTS))


def test_a_cluster_at_work_goes_through_the_package_s_life(plain: Cluster, package: Path) -> None:
    as_a_site(plain)
    before = files(plain)
    others = plain.submit("login", BOB, "-N3", "--gres=gpu:2", "-t", "60", script="sleep 3000")
    plain.wait(others, "RUNNING")
    rigid = plain.submit("login", ALICE, "-N3", "--gres=gpu:4")

    # Install: the package alone changes nothing of Slurm.
    plain.compose("cp", str(package), "controller:/home/pliant.deb")
    plain.out("controller", "chmod", "644", "/home/pliant.deb")
    queue = jobs(plain)
    apt(plain, "update")
    apt(plain, "install", "/home/pliant.deb", "lua-socket")
    assert (files(plain), jobs(plain)) == (before, queue)

    # Apply, part by part, as the administrator's guide says.
    plain.out("controller", "pliant", "install", "slurm", "--apply")
    for host in ("login", "n1"):
        plain.out(host, "pliant", "install", "slurm", "--part", "spank", "--apply")
    plain.spread()
    act = 's/^default = "observe"$/default = "enforce"/'
    plain.out("controller", "sed", "-i", act, "/etc/pliant/pliant.toml")
    plain.out("controller", "systemctl", "restart", "pliantd")
    wait_until(lambda: plain.on("controller", "pliant", "status").returncode == 0, "no pliantd")
    molded = plain.out("login", "sbatch", "--parsable", "/home/train.sh", user=ALICE)
    plain.wait(molded, "RUNNING")
    waiting = plain.submit("login", ALICE, "-N3", "--gres=gpu:4", "--moldable=gpus=12,nodes=3")
    queue = jobs(plain)
    assert queue[-2].split("|")[:3] == [molded, "RUNNING", "0"]
    assert "gpu:2" in queue[-2]  # of the four that the script asks for

    # Upgrade.
    plugin = plain.out("login", "sha256sum", "/usr/lib/pliant/pliant.so")
    plain.out("controller", "sh", "-c", NEXT)
    apt(plain, "install", "/home/next.deb")
    assert "+next" in plain.out("login", "dpkg-query", "-W", "pliant")
    assert plain.out("login", "sha256sum", "/usr/lib/pliant/pliant.so") == plugin
    assert jobs(plain) == queue

    # Off, while Slurm's files still name Pliant: scripts with the flags go on working.
    said = apt(plain, "remove", "pliant")
    assert "Slurm's files on this host still name Pliant" in said
    plain.on("controller", "pkill", "-x", "pliantd")
    assert jobs(plain) == queue
    late = plain.out("login", "sbatch", "--parsable", "--hold", "/home/train.sh", user=ALICE)
    no = plain.on("login", "sbatch", "-J", "forbidden", "/home/train.sh", user=ALICE)
    assert "the site says no" in no.stderr
    plain.out("login", "scancel", late, user=ALICE)
    wait_until(lambda: late not in plain.out("login", "squeue", "-h", "-o", "%i"), late)
    plain.compose("restart", "-t", "10", "controller")
    wait_until(plain.answers, "slurmctld does not start without the package")
    assert jobs(plain) == queue

    # And out: the files as they were, byte for byte.
    apt(plain, "install", "/home/pliant.deb")
    for host in HOSTS:
        done = plain.out(host, "pliant", "install", "slurm", "--remove", "--yes")
        assert host != "controller" or waiting in done
    plain.spread()
    plain.out("controller", "rm", "-r", "/etc/pliant")  # pliant.toml, which was changed by hand
    plain.on("controller", "pkill", "-x", "pliantd")
    apt(plain, "purge", "pliant")
    assert files(plain) == before
    left = "ls -d /etc/pliant /usr/lib/pliant /var/lib/pliant /usr/bin/pliant* 2>/dev/null; true"
    assert [plain.out(host, "sh", "-c", left) for host in HOSTS] == ["", "", ""]
    assert jobs(plain) == queue

    plain.out("login", "scancel", others, molded)
    for job in (rigid, waiting):
        plain.wait(job, "COMPLETED")
