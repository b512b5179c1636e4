"""Many simulations as a job array of a real Slurm."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from slurm_helpers import wait_until

from docs_helpers import Terminal
from limits import HANG_S
from pliant.errors import Unavailable
from pliant.sandbox import Sandbox
from pliant.simulator import job_array
from pliant.simulator.job_array import JobArray

pytestmark = pytest.mark.slurm

COMPARE = ("compare", "torque", "rsa", "--workload", "ravi", "--jobs", "6", "--seeds", "2")
PENDING = ("--sbatch", "begin=now+1hour")


@pytest.fixture
def env(clean: Sandbox, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The sandbox's Slurm, also for what runs in this process; nothing is left in ``workdir``."""
    monkeypatch.chdir(workdir)
    monkeypatch.setenv("SLURM_CONF", clean.env["SLURM_CONF"])
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def pliant(env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["pliant", *words]
    return subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=HANG_S, check=False
    )


def test_an_array_comes_to_the_same_as_processes(env: Mapping[str, str], workdir: Path) -> None:
    here = pliant(env, *COMPARE, "--json")
    there = pliant(env, *COMPARE, "--json", "--slurm", "--sbatch", "partition=cpu")
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")
    assert here.stdout
    assert [*workdir.iterdir()] == []


def test_the_guide_runs_an_array(env: Mapping[str, str], workdir: Path) -> None:
    terminal = Terminal(cwd=workdir, env=dict(env))
    try:
        terminal.types(
            "docs/simulator.md",
            "pliant compare torque rsa --workload ravi --seeds 2 --slurm --sbatch partition=cpu",
        )
    finally:
        terminal.close()


def test_runs_share_tasks_where_they_are_many(
    env: Mapping[str, str], workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_array, "TASKS", 2)
    told: list[int] = []
    assert JobArray().each(math.sqrt, [1, 4, 9, 16, 25], told.append) == [1, 2, 3, 4, 5]
    assert sorted(told) in ([2, 5], [3, 5])
    assert [*workdir.iterdir()] == []


def test_what_a_run_raises_is_raised_here(env: Mapping[str, str], workdir: Path) -> None:
    with pytest.raises(ValueError, match="minus one"):
        JobArray().each(float, ["4", "minus one"], lambda _: None)
    trace = ("--trace", "nothing.swf", "--processors", "4")
    done = pliant(env, "compare", "fifo", "rigid-fcfs", *trace, "--slurm")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr == pliant(env, "compare", "fifo", "rigid-fcfs", *trace).stderr
    assert [*workdir.iterdir()] == []


def test_a_task_that_is_lost_is_said_and_what_it_left_is_kept(
    clean: Sandbox, env: Mapping[str, str], workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_array, "ASK_S", 1.0)
    with pytest.raises(Unavailable, match=r"^--slurm: task \d+ ended without a result: it left no"):
        JobArray().each(os._exit, [3], lambda _: None)
    (folder,) = workdir.iterdir()
    assert folder.name.startswith("pliant-sweep-")


def test_what_sbatch_refuses_is_said(env: Mapping[str, str], workdir: Path) -> None:
    done = pliant(env, *COMPARE, "--slurm", "--sbatch", "partition=none")
    assert done.returncode == 2
    assert done.stderr.startswith("pliant: --slurm: sbatch: error: ")
    assert "nvalid partition" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [*workdir.iterdir()] == []


def test_who_interrupts_leaves_no_job(
    clean: Sandbox, env: Mapping[str, str], workdir: Path
) -> None:
    def waiting() -> list[str]:
        return clean.run(["squeue", "-h", "-r", "-o", "%i"]).stdout.split()

    # A shell that starts these tests behind itself has them ignore Ctrl-C, and what they start.
    argv = ["env", "--default-signal=INT", "pliant", *COMPARE, "--slurm", *PENDING]
    process = subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(waiting()) == 4, "the array to wait")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=HANG_S)[1].strip() == "pliant: interrupted"
    assert process.returncode == 2
    assert waiting() == []
    assert [*workdir.iterdir()] == []
