"""The administrator's guide and the page on trouble, typed as they stand on a cluster of hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cluster_helpers import ALICE, BOB, Cluster, wait_until

from docs_helpers import Terminal

pytest_plugins = ["cluster_fixtures"]

FOUR = ("--gres=gpu:4", "-t", "30")
YES = 'echo "APT::Get::Assume-Yes yes;" >/etc/apt/apt.conf.d/yes; mkdir -p dist /etc/bash_completion.d'
"""So that apt asks nothing; where bash-completion is installed there is its folder."""


@pytest.fixture
def root(plain: Cluster, package: Path) -> Iterator[Terminal]:
    """A shell of root's on the controller, in a folder that has the package in dist/."""

    def prepare(host: str) -> None:
        plain.out(host, "sh", "-c", f"cd /root; {YES}; apt-get update")
        assert plain.compose("cp", str(package), f"{host}:/root/dist/").returncode == 0

    with ThreadPoolExecutor() as pool:
        list(pool.map(prepare, ("controller", "login")))
    with plain.typing("controller") as terminal:
        terminal.run("cd /root; umask 022")
        yield terminal


@pytest.fixture
def login(plain: Cluster) -> Iterator[Terminal]:
    """A shell of root's on the login host."""
    with plain.typing("login") as terminal:
        terminal.run("cd /root; umask 022")
        yield terminal


def write_mode(terminal: Terminal, line: str) -> None:
    """Write the mode of the partition gpu into pliant.toml."""
    change = f"sed -i 's/^#* *gpu = .*/{line}/' /etc/pliant/pliant.toml"
    assert terminal.run(change)[0] == 0


def says(terminal: Terminal, command: str, words: str) -> None:
    """Wait until a command prints some words."""
    wait_until(lambda: words in terminal.run(command)[1], f"{command}: {words}")


def test_from_source(cluster: Cluster, package: Path) -> None:
    with cluster.typing() as here:
        here.run("docker compose run --rm -T package bash")  # its folder is a copy of the source
        here.types("README.md", "python3 -m venv /opt/pliant")
        here.types("docs/admin.md", "/opt/pliant/bin/pip install --upgrade .")
        status, printed = here.run("pliant --version && pliantd --version")
        assert (status, len(printed.splitlines())) == (0, 2)


def test_the_administrators_guide(
    plain: Cluster, package: Path, root: Terminal, login: Terminal
) -> None:
    look = "(cd /etc/slurm; find . -printf '%p %m %u\\n' | sort; find . -type f | sort | xargs sha256sum)"
    before = [root.run(look), login.run(look)]

    # Install
    name = {"pliant_0.2.0+slurm24.11_amd64.deb": package.name}
    for terminal in (root, login):
        terminal.types(
            "docs/admin.md", "apt-get install ./dist/pliant_0.2.0+slurm24.11_amd64.deb", name
        )
    assert (
        "unrecognized option '--moldable=" in login.run("sbatch --moldable=gpus=1 --wrap true")[1]
    )
    root.types("docs/admin.md", "pliant install slurm --print")
    root.types("docs/admin.md", "pliant install slurm")
    root.types("docs/admin.md", "pliant install slurm --apply")
    root.run("systemctl daemon-reload && systemctl enable --now pliantd")
    assert "pliant.toml is not there" in login.run("pliant status")[1]
    plain.out("controller", "cp", "/etc/pliant/pliant.toml", "/home/")
    assert login.run("mkdir -p /etc/pliant; cp /home/pliant.toml /etc/pliant/")[0] == 0
    plain.spread()
    login.types("docs/troubleshooting.md", "pliant install slurm --part spank --apply")
    root.types("docs/admin.md", "pliant completion bash >/etc/bash_completion.d/pliant")
    root.types("docs/admin.md", "scontrol ping")

    # Check and watch: Bob has two nodes and a half, Alice waits.
    root.types("docs/admin.md", "pliant doctor")
    root.types("docs/configuration.md", "pliantd --check")
    for options in (("-N2", "--gres=gpu:4"), ("--gres=gpu:3",)):
        plain.wait(plain.submit("login", BOB, *options, script="sleep 600"), "RUNNING")
    job = plain.submit("login", ALICE, *FOUR, "--moldable=gpus=1-4", script="sleep 600")
    root.types("docs/admin.md", "pliant status")
    root.types("docs/admin.md", "pliant plan")
    root.types("docs/admin.md", "pliant jobs")
    root.types("docs/admin.md", "pliant why JOB", {"JOB": job})
    assert "Pliant observes in its partition" in root.run(f"pliant why {job}")[1]

    # Let it act, and switch it off.
    write_mode(root, 'gpu = "enforce"')
    root.types("docs/admin.md", "systemctl reload pliantd")
    plain.wait(job, "RUNNING")
    root.types("docs/admin.md", "scontrol show partition")
    root.types("docs/admin.md", "pliant pause")
    says(login, "pliant status", "PAUSED")
    root.types("docs/admin.md", "pliant resume")
    root.types("docs/admin.md", "systemctl stop pliantd")
    assert "Connection refused" in login.run("pliant status")[1]
    late = plain.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=1-4")
    plug = "sed -i '/pliant.so/s/$/ off/' /etc/slurm/plugstack.conf.d/pliant.conf"
    assert login.run(plug)[0] == 0
    off = plain.submit("login", ALICE, "--gres=gpu:4", "--moldable=gpus=4-1")
    assert login.run(f"scancel {late} {off}; {plug.replace('s/$/ off/', 's/ off$//')}")[0] == 0

    # Trouble
    root.run("rm /etc/slurm/pliant.lua")
    root.types("docs/troubleshooting.md", "pliant doctor")
    root.types("docs/troubleshooting.md", "pliant install slurm --part lua --apply")
    root.types("docs/admin.md", "scontrol reconfigure")
    root.types("docs/troubleshooting.md", "systemctl start pliantd")
    address = re.split(r"\s", plain.out("login", "getent", "hosts", "controller"))[0]
    login.types("docs/troubleshooting.md", "PLIANT_HOST=ctl pliant status", {"ctl": "controller"})
    login.types(
        "docs/troubleshooting.md", "PLIANT_HOST=10.0.0.1 pliant status", {"10.0.0.1": address}
    )
    login.run("pkill -x munged; sleep 1")
    assert "pliant: munge: " in login.run("pliant status")[1]
    login.types("docs/troubleshooting.md", "systemctl start munge")
    assert login.run("pliant status")[0] == 0

    # Upgrade, and remove.
    root.run("pliant install slurm --apply")
    root.types("docs/admin.md", "systemctl restart pliantd")
    plain.no_jobs()
    write_mode(root, '# gpu = "enforce"')
    root.types("docs/admin.md", "systemctl disable --now pliantd")
    assert login.run("pliant install slurm --remove")[0] == 0
    plain.spread()
    root.run("rm -r /etc/pliant")
    login.run("rm -r /etc/pliant")
    for terminal in (root, login):
        terminal.types("docs/admin.md", "apt-get purge pliant")
    assert [root.run(look), login.run(look)] == before
