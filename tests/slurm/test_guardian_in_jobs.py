"""The guardian of `pliant run` in jobs of a Slurm that tracks their processes in each of its ways."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from slurm_helpers import WaitForState, restart_with, wait_until
from wrapper_helpers import COUNTS_TERMS, guardian_in, told_in, wrapper_in

from pliant.errors import PliantError
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

CGROUPS = Path("/sys/fs/cgroup")
TRACKERS = ("linuxproc", "pgid", "cgroup")
WAYS = ("exec", "srun")
"""How a job's script starts `pliant run`, so that Slurm's signals reach it."""


@pytest.fixture(scope="module", params=TRACKERS)
def sandbox(request: pytest.FixtureRequest, users: tuple[str, str]) -> Iterator[Sandbox]:
    """One node whose slurmd knows the processes of a job by its parents, group or cgroup."""
    tracker = str(request.param)
    options = Options(nodes=1, gpus=0, mode="none", users=users)
    made = Sandbox(f"pytest-{tracker}-{os.getpid()}", options)
    made.up()
    try:
        _track_by(made, tracker)
        yield made
    finally:
        made.down()


def _track_by(made: Sandbox, tracker: str) -> None:
    """The cgroups of all slurmd of one machine lie beside each other, by the number of the job."""
    if tracker == "cgroup" and _are_cgroups_read_only():
        pytest.skip("no proctrack/cgroup on this machine: cgroups are mounted read-only")
    first = f"proctrack/{tracker}\nFirstJobId={os.getpid()}"
    try:
        restart_with(made, {"proctrack/linuxproc": first})
    except PliantError as error:
        if tracker != "cgroup":
            raise
        pytest.skip(f"no proctrack/cgroup on this machine: {error}")
    told = made.run(["scontrol", "show", "config"], check=True).stdout
    assert f"proctrack/{tracker}\n" in told


def _are_cgroups_read_only() -> bool:
    """Whether slurmd can make no group for a job, as in a container."""
    first, *_ = (path for path in (CGROUPS / "freezer", CGROUPS) if path.exists())
    return bool(os.statvfs(first).f_flag & os.ST_RDONLY)


ENDS_BY_ITSELF = """
import os, sys, time
open("pid", "w").write(str(os.getpid()))
open("began.0", "w").close()
while not os.path.exists("go"): time.sleep(0.05)
print("done", flush=True)
sys.exit(int(os.environ.get("ENDS", "0")))
"""


@pytest.mark.parametrize("before", WAYS)
def test_a_cancel_reaches_the_program_once(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    clean: Sandbox,
    workdir: Path,
    before: str,
) -> None:
    job = started(COUNTS_TERMS, before=before)
    clean.run(["scancel", str(job)])
    wait_for_state(job, "CANCELLED")
    assert told_in(workdir) == "1"


@pytest.mark.parametrize("before", (*WAYS, ""))
def test_a_job_whose_wrapper_is_killed_completes(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    workdir: Path,
    before: str,
) -> None:
    job = started(ENDS_BY_ITSELF, before=before)
    wrapper_in(workdir).kill()
    line = "pliant run: its wrapper was killed by signal 9: the program runs on\n"
    wait_until(lambda: line in output(job), "the loss to be said")
    (workdir / "go").touch()
    wait_for_state(job, "COMPLETED")
    assert "done\n" in output(job)


@pytest.mark.parametrize("before", WAYS)
def test_a_cancel_reaches_a_program_without_its_wrapper_once(  # noqa: PLR0917  # fixtures
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    clean: Sandbox,
    workdir: Path,
    before: str,
) -> None:
    job = started(COUNTS_TERMS, before=before)
    wrapper_in(workdir).kill()
    wait_until(lambda: "its wrapper was killed" in output(job), "the loss to be said")
    clean.run(["scancel", str(job)])
    wait_for_state(job, "CANCELLED")
    assert told_in(workdir) == "1"


@pytest.mark.parametrize("before", WAYS)
def test_a_job_that_has_saved_without_its_wrapper_is_requeued_and_never_failed(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    show: Callable[[int], dict[str, str]],
    workdir: Path,
    before: str,
) -> None:
    job = started(ENDS_BY_ITSELF.replace('"0"', '"85"'), before=before)
    wrapper_in(workdir).kill()
    (workdir / "go").touch()
    wait_for_state(job, "PENDING")
    assert show(job)["Restarts"] == "1"


@pytest.mark.parametrize("before", WAYS)
def test_a_job_whose_guardian_is_killed_ends_as_if_its_program_had_been(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    show: Callable[[int], dict[str, str]],
    workdir: Path,
    before: str,
) -> None:
    job = started(ENDS_BY_ITSELF, before=before)
    program, wrapper = psutil.Process(int((workdir / "pid").read_text())), wrapper_in(workdir)
    guardian_in(workdir).kill()
    wait_for_state(job, "FAILED")
    assert show(job)["ExitCode"] == ("0:9" if before == "exec" else "137:0")
    wait_until(lambda: not program.is_running(), "the program to end")
    wait_until(lambda: not wrapper.is_running(), "the wrapper to end")
