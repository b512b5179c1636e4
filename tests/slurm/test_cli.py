"""The command line against a real Slurm with pliantd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking_helpers import wait_for_look
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

PLIANT = str(Path(sys.executable).with_name("pliant"))

Pliant = Callable[..., subprocess.CompletedProcess[str]]
Asked = Callable[..., dict[str, Any]]


@pytest.fixture
def pliant(clean: Sandbox) -> Pliant:
    """Run `pliant` in the sandbox."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return clean.run([PLIANT, *words])

    return run


@pytest.fixture
def asked(pliant: Pliant) -> Asked:
    """Run `pliant ... --json` and return what it printed."""

    def run(*words: str) -> dict[str, Any]:
        done = pliant(*words, "--json")
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return run


@pytest.fixture
def full(submit: Submit, wait_for_state: WaitForState) -> list[int]:
    """Jobs on three of the four GPUs of each node."""
    jobs = [submit("--gres=gpu:3", "--time=20", script="sleep 600") for _ in range(4)]
    for job in jobs:
        wait_for_state(job, "RUNNING")
    return jobs


def until_seen(asked: Asked, job: int, state: str = "waiting") -> dict[str, Any]:
    """Wait until pliantd has seen a job in a state; return its row."""

    def rows() -> list[dict[str, Any]]:
        found = asked("jobs")["jobs"]
        return [row for row in found if row["id"] == str(job) and row["state"] == state]

    wait_until(lambda: bool(rows()), f"pliantd to see job {job} {state}")
    return rows()[0]


def test_status_says_that_all_is_well(pliant: Pliant, asked: Asked) -> None:
    wait_until(lambda: pliant("status").returncode == 0, "an end of troubles")
    wait_until(lambda: bool(asked("status")["partitions"]), "pliantd's first look")
    done = pliant("status")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    modes = {row["name"]: (row["mode"], row["gpus"]) for row in asked("status")["partitions"]}
    assert modes == {"gpu": ("enforce", 16), "cpu": ("enforce", 16), "short": ("enforce", 16)}
    table = [line.split() for line in done.stdout.splitlines()[-4:]]
    assert table[0] == ["PARTITION", "MODE", "UP", "NODES", "GPUS", "FREE"]
    assert sorted(line[0] for line in table[1:]) == ["cpu", "gpu", "short"]


def test_the_doctor_finds_no_fault_in_a_sandbox(pliant: Pliant) -> None:
    done = pliant("doctor")
    faults = [line for line in done.stdout.splitlines() if line.startswith("fault ")]
    assert (done.returncode, faults) == (0, [])


def test_why_names_every_shape_and_set_lets_the_job_start(
    pliant: Pliant, asked: Asked, full: list[int], submit: Submit, wait_for_state: WaitForState
) -> None:
    job = submit("--gres=gpu:4", "--moldable=gpus=2-4", "--time=30", script="sleep 600")
    until_seen(asked, job)
    answer = asked("why", str(job))
    assert [(row["shape"], row["now"]) for row in answer["shapes"]] == [
        ("2", False),
        ("3", False),
        ("4", False),
    ]
    text = pliant("why", str(job)).stdout
    assert text.startswith(f"job {job} of pliant-alice in gpu: waiting as 4")
    assert "it says moldable=gpus=2-4\n" in text

    done = pliant("set", str(job), "gpus=1-4")
    assert (done.returncode, done.stdout) == (0, f"job {job} now says moldable=gpus=1-4\n")
    wait_for_state(job, "RUNNING")
    assert until_seen(asked, job, "running")["carried"] == "1"


def test_a_pinned_job_is_left_alone_until_it_is_unpinned(
    pliant: Pliant, asked: Asked, full: list[int], submit: Submit, wait_for_state: WaitForState
) -> None:
    job = submit("--gres=gpu:4", "--moldable=gpus=2-4", "--time=30", script="sleep 600")
    until_seen(asked, job)
    assert pliant("pin", str(job)).stdout == f"job {job} stays as it is\n"
    wait_until(lambda: asked("why", str(job))["job"]["pinned"], "pliantd to see the pin")
    assert asked("why", str(job))["left"] == "its owner pinned it"
    assert pliant("pin", "--undo", str(job)).returncode == 0
    pliant("set", str(job), "gpus=1-4")
    wait_for_state(job, "RUNNING")


def test_while_paused_no_job_is_changed(
    pliant: Pliant, asked: Asked, full: list[int], submit: Submit, wait_for_state: WaitForState
) -> None:
    try:
        assert pliant("pause").returncode == 0
        assert "PAUSED: no job is changed" in pliant("status").stdout
        job = submit("--gres=gpu:4", "--moldable=gpus=1-4", "--time=30", script="sleep 600")
        assert until_seen(asked, job)["carried"] == "4"
        wait_until(
            lambda: (
                [row["done"] for row in asked("plan")["changes"] if row["id"] == str(job)]
                == [False]
            ),
            "the change to stand in the plan, not to be done",
        )
    finally:
        assert pliant("resume").stdout == "resumed\n"
    wait_for_state(job, "RUNNING")
    assert until_seen(asked, job, "running")["carried"] == "1"


def test_a_plan_needs_no_pliantd_where_slurm_is_looked_at(
    clean: Sandbox, pliant: Pliant, full: list[int], submit: Submit, workdir: Path
) -> None:
    clean.stop("pliantd")
    job = submit("--gres=gpu:4", "--comment=pliant:gpus=1-4", "--time=30", script="sleep 600")

    def starts(*words: str) -> list[tuple[str, str]]:
        done = pliant("plan", "--json", *words)
        assert done.returncode == 0, done.stderr
        return [(row["id"], row["shape"]) for row in json.loads(done.stdout)["starts"]]

    saved = str(workdir / "snapshot.json")
    wait_until(lambda: starts("--live", "--save", saved) == [(str(job), "1")], "the job to fit")
    assert starts("--file", saved) == [(str(job), "1")]
    assert starts("--file", saved, "--policy", "easy-backfill") == []


def test_a_job_that_is_not_there_is_exit_1(clean: Sandbox, pliant: Pliant) -> None:
    wait_for_look(clean)
    done = pliant("why", "999999")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pliant: '999999': ")
    assert done.stderr.count("\n") == 1


def test_pliant_sbatch_needs_no_plugin(
    clean: Sandbox, full: list[int], workdir: Path, wait_for_state: WaitForState
) -> None:
    script = workdir / "my train.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --gres=gpu:4 --moldable=gpus=1-4 --time=30\n"
        '#SBATCH --comment="run 7"\necho "$SLURM_JOB_NAME|$1|$PLIANT_GPUS"\n'
    )
    done = clean.run(
        [PLIANT, "sbatch", "--parsable", f"--output={workdir}/%j.out", str(script), "an argument"]
    )
    assert done.returncode == 0, done.stderr
    job = int(done.stdout)
    wait_for_state(job, "COMPLETED")
    assert (workdir / f"{job}.out").read_text() == "my train.sh|an argument|1\n"
    comment = clean.run(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%k"]).stdout
    assert comment == "pliant:moldable=gpus=1-4 run 7\n"


def test_without_pliantd_commands_are_one_line_and_jobs_go_on(
    clean: Sandbox, pliant: Pliant, submit: Submit, wait_for_state: WaitForState
) -> None:
    clean.stop("pliantd")
    for words in (["status"], ["jobs"], ["why", "1"], ["set", "1", "gpus=1"], ["plan"], ["pause"]):
        done = pliant(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), words
        assert done.stderr.startswith("pliant: pliantd at 127.0.0.1:"), words
    assert pliant("doctor").returncode == 1
    job = submit("--gres=gpu:1", "--moldable=gpus=1-4", "--time=5")
    wait_for_state(job, "COMPLETED")
