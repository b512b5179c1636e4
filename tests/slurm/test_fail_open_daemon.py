"""pliantd dies, hangs or loses its ground while jobs wait: each job runs and ends all the same.

What a dead pliantd means for a submission is tested beside the submit plugin; here jobs are
already in the queue, and pliantd must find its way back by itself.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asking_helpers import ask, wait_for_look
from daemon_helpers import LONG, OneNode, configured, why
from lua_helpers import PLAIN, close_breaker, job_submit_lua
from slurm_helpers import wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

SCRIPT = "echo ran '$HOME' as $SLURM_JOB_ID"
FLAGGED = ("--moldable=gpus=1-4", "--gres=gpu:4")
BY_COMMENT = ("--comment=pliant:gpus=1-4", "--gres=gpu:4")
UNFLAGGED = ("--gres=gpu:4",)


@pytest.fixture(autouse=True)
def asked_again(sandbox: Sandbox) -> Iterator[None]:
    """Let slurmctld ask pliantd again afterwards: no breaker is open."""
    yield
    close_breaker(sandbox)


@pytest.fixture
def line(n1: OneNode) -> list[int]:
    """Three jobs that wait, flagged in both ways and not at all; four GPUs are in use."""
    n1.fill("gpu:2")
    n1.fill("gpu:2")
    n1.look()
    jobs = [n1.submit("--time=10", *o, script=SCRIPT) for o in (FLAGGED, BY_COMMENT, UNFLAGGED)]
    for job in jobs:
        n1.wait_for_reason(job, "Resources", "Priority")
    n1.look()
    return jobs


@pytest.fixture
def all_end(n1: OneNode) -> Callable[[list[int]], None]:
    """Free n1 and see waiting jobs, and three more submitted now, run and end unchanged."""

    def ended(waiting: list[int]) -> None:
        now = [n1.submit("--time=10", *o, script=SCRIPT) for o in (FLAGGED, BY_COMMENT, UNFLAGGED)]
        n1.run("scancel", "--nodelist=n1", "--state=RUNNING", "--user=root")
        for job in (*waiting, *now):
            ends_unchanged(n1, job)

    return ended


def ends_unchanged(n1: OneNode, job: int) -> None:
    """See a job end that has run its user's script as it was written."""
    n1.wait_for_state(job, "COMPLETED")
    script = n1.run("scontrol", "write", "batch_script", str(job), "-")
    assert script.rstrip("\n") == f"#!/bin/bash\n{SCRIPT}"
    assert n1.output(job) == f"ran $HOME as {job}\n"


AllEnd = Callable[[list[int]], None]


def status(sandbox: Sandbox) -> a.StatusAnswer:
    return ask(sandbox, a.StatusAnswer, "status")


def wait_for_trouble(sandbox: Sandbox, words: str) -> None:
    """Wait until status says what is wrong."""
    wait_until(lambda: any(words in t for t in status(sandbox).troubles), f"{words!r} to be said")


def wait_for_health(sandbox: Sandbox) -> None:
    """Wait until status says that all is well."""
    wait_until(lambda: status(sandbox).troubles == (), "all to be well")


def molds(n1: OneNode) -> None:
    """See pliantd mold a job into a hole, as if nothing had happened."""
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    n1.cancel(leaving)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


def test_killed_while_jobs_wait(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    n1.sandbox.signal("pliantd", signal.SIGKILL)
    all_end(line)
    n1.sandbox.start("pliantd")
    close_breaker(n1.sandbox)
    molds(n1)


def test_stopped_while_jobs_wait(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    n1.sandbox.signal("pliantd", signal.SIGSTOP)
    all_end(line)
    n1.sandbox.signal("pliantd", signal.SIGCONT)
    close_breaker(n1.sandbox)
    molds(n1)
    assert status(n1.sandbox).troubles == ()


def test_switched_off_while_jobs_wait(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    with configured(n1.sandbox, default='"off"'):
        assert "Pliant is off" in why(n1.sandbox, line[0]).left
        all_end(line)
        assert n1.gpus(line[0]) == "gres:gpu:4"


def test_a_restart_loses_no_job(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    for file in n1.sandbox.layout.pliant_state.glob("pliant.db*"):
        n1.sandbox.stop("pliantd")
        file.unlink(missing_ok=True)
    n1.sandbox.start("pliantd")
    wait_for_look(n1.sandbox)
    jobs = ask(n1.sandbox, a.JobsAnswer, "jobs").jobs
    assert [(row.id, row.own) for row in jobs] == [(str(job), "4") for job in line[:2]]
    all_end(line)


# In the middle of a cycle


@pytest.fixture
def slow(workdir: Path) -> Path:
    """A directory for slow commands."""
    made = workdir / "bin"
    made.mkdir()
    return made


@contextmanager
def slow_updates(sandbox: Sandbox, directory: Path) -> Iterator[Path]:
    """Let pliantd's updates take some seconds before they do anything."""
    for name in ("scontrol", "squeue", "sacctmgr"):
        real = subprocess.run(["which", name], capture_output=True, text=True, check=True)
        wait = f'[ "$1" = update ] && {{ touch {directory}/begun; sleep 4; }}'
        wait = wait if name == "scontrol" else ""
        program = directory / name
        program.write_text(f'#!/bin/bash\n{wait}\nexec {real.stdout.strip()} "$@"\n')
        program.chmod(0o755)
    path = sandbox.layout.pliant_toml
    before = path.read_text()
    path.write_text(before.replace("[slurm]", f'[slurm]\nbin_dir = "{directory}"'))
    try:
        sandbox.restart("pliantd")
        wait_for_look(sandbox)
        yield directory / "begun"
    finally:
        path.write_text(before)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_the_middle_of_a_cycle(
    n1: OneNode, all_end: AllEnd, slow: Path, number: signal.Signals
) -> None:
    """Killed, the update is lost or not; asked to end, pliantd finishes it. Both ways all is well."""
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    with slow_updates(n1.sandbox, slow) as begun:
        job = n1.wait_in_line(*FLAGGED, script=SCRIPT)
        waiting = n1.wait_in_line(*UNFLAGGED, script=SCRIPT)
        before = n1.show(waiting)
        n1.cancel(leaving)
        wait_until(begun.exists, "an update to begin")
        n1.sandbox.signal("pliantd", number)
        wait_until(lambda: n1.sandbox.pid("pliantd") is None, "pliantd to end")
        was_molded = n1.gpus(job) == "gres:gpu:2"
        ends_unchanged(n1, n1.submit("--time=1", script=SCRIPT))
    assert was_molded is (number is signal.SIGTERM)
    n1.sandbox.start("pliantd")
    ends_unchanged(n1, job)
    assert n1.gpus(job) == "gres:gpu:2"
    assert n1.changed(waiting, before) == set()
    told = n1.sandbox.layout.output("pliantd").read_text()
    assert (f"job {job}: a change was in flight" in told) is (number is signal.SIGKILL)
    all_end([waiting])


# Without its ground


@contextmanager
def full_disk(sandbox: Sandbox) -> Iterator[Path]:
    """Put pliantd's state on a small disk that is full."""
    state = sandbox.layout.pliant_state
    sandbox.stop("pliantd")
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(state)]
    subprocess.run(mount, check=True)
    ballast = state / "ballast"
    try:
        subprocess.run(["dd", "if=/dev/zero", f"of={ballast}"], capture_output=True, check=False)
        sandbox.start("pliantd")
        wait_for_look(sandbox)
        yield ballast
    finally:
        sandbox.stop("pliantd")
        subprocess.run(["umount", "-l", str(state)], check=True)
        sandbox.start("pliantd")


def test_a_full_disk(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    with full_disk(n1.sandbox):
        close_breaker(n1.sandbox)
        assert any("kept in memory only" in trouble for trouble in status(n1.sandbox).troubles)
        all_end(line)
        molds(n1)


def test_slurmctld_restarted_while_jobs_wait(n1: OneNode, line: list[int], all_end: AllEnd) -> None:
    n1.sandbox.stop("slurmctld")
    wait_for_trouble(n1.sandbox, "squeue")
    n1.sandbox.start("slurmctld")
    # A job that ends before its node has registered again leaves its GPUs in use for ever (22.05).
    wait_until(lambda: "unk" not in n1.run("sinfo", "-h", "-o", "%t"), "the nodes to be known")
    wait_for_health(n1.sandbox)
    all_end(line)
    molds(n1)


def test_a_slurmctld_that_hangs_leaves_the_doors_open(n1: OneNode, line: list[int]) -> None:
    n1.sandbox.signal("slurmctld", signal.SIGSTOP)
    try:
        wait_for_trouble(n1.sandbox, "no answer within")
        assert status(n1.sandbox).waiting == 3
        rows = ask(n1.sandbox, a.JobsAnswer, "jobs").jobs
        assert [row.id for row in rows] == [str(job) for job in line[:2]]
    finally:
        n1.sandbox.signal("slurmctld", signal.SIGCONT)
    wait_for_health(n1.sandbox)


def test_the_spank_plugin_without_the_rest(n1: OneNode, all_end: AllEnd) -> None:
    n1.sandbox.stop("pliantd")
    with job_submit_lua(n1.sandbox, PLAIN):
        all_end([])


def test_a_broken_configuration_leaves_the_old_one(n1: OneNode) -> None:
    with configured(n1.sandbox, default='"on"'):
        (trouble,) = status(n1.sandbox).troubles
        assert trouble == (
            f"{n1.sandbox.layout.pliant_toml}: [partitions] default: 'on': "
            "one of off, observe, enforce is expected: the old configuration stays"
        )
        molds(n1)
    wait_for_health(n1.sandbox)
