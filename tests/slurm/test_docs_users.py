"""What the pages for users show, and those on the sandbox, typed as it stands there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from slurm_helpers import wait_until
from user_helpers import commands_for

from docs_helpers import Terminal, fenced
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.accounts import person

pytestmark = pytest.mark.slurm

ALICE, BOB = "pliant-alice", "pliant-bob"
PYTHON = "#!/bin/sh\nexec sleep 600\n"
"""Stands for the training that a page's script starts."""

Open = Callable[..., Terminal]


@pytest.fixture
def opened(users: tuple[str, str], workdir: Path) -> Iterator[Open]:
    """Open a shell of Alice's, in a sandbox or, where none is given, on this machine."""
    made: list[Terminal] = []
    alice = person(ALICE)
    commands = commands_for(alice, workdir)
    training = workdir / "bin"
    training.mkdir()
    (training / "python").write_text(PYTHON)
    (training / "python").chmod(0o755)
    path = f"{training}:{commands}:/usr/sbin:/usr/bin:/sbin:/bin"

    def shell(sandbox: Sandbox | None = None) -> Terminal:
        env = {**alice.environment({"LANG": "C.UTF-8"}), "PATH": path, "SHELL": "/bin/bash"}
        if sandbox is not None:
            env |= {key: sandbox.env[key] for key in ("SLURM_CONF", "PLIANT_CONFIG")}
        made.append(Terminal("runuser", "-u", ALICE, "--", "bash", cwd=workdir, env=env))
        return made[-1]

    yield shell
    for terminal in made:
        terminal.close()


@contextmanager
def fresh(nodes: int) -> Iterator[Sandbox]:
    """A Slurm whose first job will be number 1."""
    made = Sandbox(f"pytest-docs-{os.getpid()}", Options(nodes=nodes))
    made.up()
    try:
        yield made
    finally:
        made.down()


def script(workdir: Path, page: str, then: str = "") -> None:
    """Write the script that a page shows first; ``then``: what it does besides."""
    (workdir / "train.sh").write_text(fenced(page, "bash")[0] + then)


def holds(sandbox: Sandbox, job: str, *options: str) -> None:
    """Let a job of Bob's run, which has this number."""
    argv = (
        "sbatch",
        "--parsable",
        "-o",
        "/dev/null",
        "-J",
        "eval",
        *options,
        "--wrap",
        "sleep 600",
    )
    assert sandbox.run(argv, user=BOB, check=True).stdout.strip() == job
    state = ("squeue", "-h", "-o", "%T", "-j", job)
    wait_until(lambda: sandbox.run(state).stdout == "RUNNING\n", f"job {job} to run")


def submitted(terminal: Terminal, *options: str) -> str:
    """Submit train.sh and return the job's number."""
    status, printed = terminal.run(f"sbatch --parsable {' '.join(options)} train.sh")
    assert status == 0, printed
    return printed.strip()


def test_the_first_page(opened: Open, workdir: Path) -> None:
    with fresh(nodes=1) as sandbox:
        alice = opened(sandbox)
        holds(sandbox, "1", "--gres=gpu:3", "-t60")
        script(workdir, "README.md", "sleep 20\n")
        alice.types("README.md", "sbatch train.sh")
        # It has ended when the next is asked about.
        sandbox.run(["scancel", "2"], check=True)
        holds(sandbox, "3", "--gres=gpu:1", "-t80")
        assert submitted(alice) == "4"
        alice.types("README.md", "pliant why 4")


def test_the_page_for_users(opened: Open, workdir: Path) -> None:
    with fresh(nodes=2) as sandbox:
        alice = opened(sandbox)
        holds(sandbox, "1", "--gres=gpu:3", "-wn1", "-c15", "-t30")
        holds(sandbox, "2", "--gres=gpu:3", "-wn2", "-c15", "-t60")
        script(workdir, "docs/users.md")
        alice.types("docs/users.md", "sbatch train.sh")
        alice.types("docs/users.md", 'squeue -Si -o "%.6i %.8u %.8j %.2t %.6D %b %R"')
        alice.types("docs/users.md", "sbatch --moldable=gpus=4-1 train.sh")
        alice.types("spank/README.md", "sbatch --help")
        assert submitted(alice, "--moldable=gpus=4") == "4"
        assert submitted(alice, "--moldable=gpus=2-4") == "5"
        alice.types("docs/users.md", "pliant why 5")
        alice.types("docs/users.md", "pliant set 5 gpus=1-4")
        alice.types("docs/users.md", "pliant jobs")

        # Nothing is free now: what comes next waits.
        job = {"5": submitted(alice, "--moldable=gpus=2-4")}
        alice.types("docs/users.md", "pliant pin 5", job)
        alice.types("docs/users.md", "pliant pin --undo 5", job)
        alice.types("docs/users.md", "pliant set 5 gpus=1", job)
        task = {"12_3": submitted(alice, "--array=0-3") + "_3"}
        assert "all its waiting tasks" in alice.types(
            "docs/users.md", "pliant set 12_3 gpus=1-2", task
        )
        assert "all its waiting tasks" in alice.types("docs/users.md", "pliant pin 12_3", task)
        job = {"5": submitted(alice, "--gres=gpu:1", "--moldable=type=gpu:cpu,cores=16")}
        alice.types(
            "docs/users.md", "scontrol update jobid=5 numcpus=4 cpuspertask=4 mincpusnode=4", job
        )
        alice.types("docs/users.md", "pliant set 5 type=gpu:cpu,cores=4", job)

        alice.types("docs/users.md", "sbatch --comment=pliant:gpus=1-4 --gres=gpu:4 train.sh")
        alice.types("docs/users.md", "pliant sbatch --moldable=gpus=1-4 --gres=gpu:4 train.sh")
        alice.types("README.md", "sbatch --moldable=gpus=1-4 train.sh")
        alice.types("docs/how-it-works.md", "squeue -O StartTime,SchedNodes")
        alice.types("docs/troubleshooting.md", "pliant why JOB", {"JOB": "4"})
        alice.types("docs/troubleshooting.md", "pliant why JOB --json", {"JOB": "4"})
        set_again = {"JOB": "6", "SPEC": "gpus=1-2"}
        alice.types("docs/troubleshooting.md", "pliant set JOB SPEC", set_again)


def test_a_plan_before_anything_is_installed(opened: Open, clean: Sandbox) -> None:
    alice = opened(clean)
    alice.types("docs/admin.md", "pliant plan --live")
    assert alice.run("pliant plan --live --save snapshot.json")[0] == 0
    alice.types("docs/admin.md", "pliant plan --file snapshot.json --policy fms")
    alice.types(
        "docs/configuration.md", "pliant plan --file snapshot.json --policy fms --with sizes=all"
    )


def test_the_page_on_the_sandbox(opened: Open, workdir: Path) -> None:
    script(workdir, "docs/users.md")
    alice = opened()
    try:
        alice.types("docs/sandbox.md", "pliant sandbox up --nodes 4 --gpus 8")
        alice.types("docs/admin.md", "pliant sandbox up")
        alice.run("squeue")
        assert alice.run("pliant status")[1].startswith("pliantd ")
        alice.run("exit")
        alice.types("docs/sandbox.md", "pliant sandbox status")
        alice.types(
            "docs/sandbox.md", "pliant sandbox exec -- COMMAND", {"COMMAND": "pliant doctor"}
        )
    finally:
        alice.types("docs/sandbox.md", "pliant sandbox down")


def test_the_plugin_is_built_as_its_page_says(workdir: Path) -> None:
    here = {"/opt/slurm/include": "/usr/include", "/usr/lib/pliant": str(workdir / "lib")}
    root = Terminal()
    root.types("spank/README.md", "make -C spank", here)
    root.close()
    assert (workdir / "lib" / "pliant.so").exists()
