"""Submission when Pliant is dead, slow or wrong: each job is accepted as written, runs and ends."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemon_helpers import configured
from lua_helpers import (
    Serve,
    close_breaker,
    door,
    garbage,
    hang_up,
    job_submit_lua,
    silent,
    trickle,
    with_pliant,
)
from slurm_helpers import WaitForState

from pliant import resources
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

Show = Callable[[int | str], dict[str, str]]

SCRIPT = (
    "#!/bin/bash\n#SBATCH --moldable=gpus=1-4\necho ran '$HOME' \\\\ \"quoted\" as $SLURM_JOB_ID\n"
)
BY_COMMENT = SCRIPT.replace("--moldable=gpus=1-4", "--comment=pliant:gpus=1-4")
UNFLAGGED = SCRIPT.replace("#SBATCH --moldable=gpus=1-4\n", "")

Ended = Callable[..., list[int]]


@pytest.fixture
def all_end_as_written(
    clean: Sandbox, workdir: Path, wait_for_state: WaitForState, show: Show, users: tuple[str, str]
) -> Ended:
    """Submit three jobs, flagged in both ways and not at all, and see each end as it was written."""

    def ended(scripts: tuple[str, ...] = (SCRIPT, BY_COMMENT, UNFLAGGED)) -> list[int]:
        jobs = []
        for script in scripts:
            argv = ["sbatch", "--parsable", f"--chdir={workdir}", "--output=%j.out"]
            done = clean.run([*argv, "--gpus=2", "-n2"], user=users[0], stdin=script)
            assert done.returncode == 0, done.stderr
            jobs.append(int(done.stdout))
        for job, script in zip(jobs, scripts, strict=True):
            wait_for_state(job, "COMPLETED")
            fields = show(job)
            assert fields["TresPerJob"] == "gres:gpu:2", "as written"
            assert "TresPerNode" not in fields and fields["NumTasks"] == "2"
            kept = clean.run(["scontrol", "write", "batch_script", str(job), "-"], check=True)
            assert kept.stdout.removesuffix("\n") == script.removesuffix("\n")
            assert (workdir / f"{job}.out").read_text() == f"ran $HOME \\ quoted as {job}\n"
        return jobs

    return ended


@pytest.fixture(scope="module", autouse=True)
def asking_again(sandbox: Sandbox) -> Iterator[None]:
    """Let the tests after these not find the breaker open."""
    yield
    close_breaker(sandbox)


def carries_token(show: Show, job: int) -> bool:
    return show(job).get("AdminComment", "").startswith("pliant=v1:")


# pliantd itself


def test_pliantd_not_there(clean: Sandbox, all_end_as_written: Ended, show: Show) -> None:
    clean.stop("pliantd")
    clean.layout.pliant_socket.unlink(missing_ok=True)
    jobs = all_end_as_written()
    assert [carries_token(show, job) for job in jobs] == [True, True, False]


def test_pliantd_killed(clean: Sandbox, all_end_as_written: Ended) -> None:
    clean.signal("pliantd", signal.SIGKILL)
    all_end_as_written()


def test_pliantd_stopped(clean: Sandbox, all_end_as_written: Ended) -> None:
    clean.signal("pliantd", signal.SIGSTOP)
    all_end_as_written()


def test_mode_off(clean: Sandbox, all_end_as_written: Ended, show: Show) -> None:
    close_breaker(clean)
    with configured(clean, default='"off"'):
        jobs = all_end_as_written()
        assert not any(carries_token(show, job) for job in jobs)


# Something else at the door


@pytest.mark.parametrize("serve", [garbage, silent, trickle, hang_up], ids=lambda s: s.__name__)
def test_a_door_that_does_not_answer_rightly(
    clean: Sandbox, all_end_as_written: Ended, workdir: Path, show: Show, serve: Serve
) -> None:
    clean.stop("pliantd")  # it would find the tokens and use them
    text = with_pliant(clean, setup=f'socket = "{workdir}/door"')
    with door(workdir / "door", serve), job_submit_lua(clean, text):
        jobs = all_end_as_written()
    assert [carries_token(show, job) for job in jobs] == [True, True, False]


def test_a_silent_door_is_asked_once_per_breaker_period(clean: Sandbox, workdir: Path) -> None:
    breaker_s = 3
    text = with_pliant(clean, setup=f'breaker = {breaker_s}, socket = "{workdir}/door"')

    def submit() -> None:
        clean.run(
            ["sbatch", "--hold", "--moldable=gpus=1", "--gres=gpu:1", "--wrap=true"], check=True
        )

    with door(workdir / "door", silent) as asked, job_submit_lua(clean, text):
        begin_s = time.monotonic()
        for _ in range(10):
            submit()
        took_s = time.monotonic() - begin_s
        assert 1 <= asked.asked <= 1 + took_s // (breaker_s - 1)
        time.sleep(breaker_s + 1)
        before = asked.asked
        submit()
        submit()
        assert asked.asked == before + 1
    assert clean.run(["scancel", "--state=PENDING", "--user=root"]).returncode == 0


# Our own Lua


BREAKS = {
    "no luasocket": ('package.preload["socket.unix"] = function() error("none") end', None),
    "no pliant.lua": ("", ""),
    "broken pliant.lua": ("", "local M = = {}"),
    "an error at its start": ("", "error('at the start')"),
    "nothing returned": ("", "local M = {}"),
}


@pytest.mark.parametrize("what", BREAKS)
def test_our_lua_broken(clean: Sandbox, all_end_as_written: Ended, show: Show, what: str) -> None:
    before, module = BREAKS[what]
    text = resources.find("plugins", "slurm", "job_submit.lua").read_text()
    if before:
        clean.stop("pliantd")  # it would find the tokens and use them
        text = with_pliant(clean, before=before)
    with job_submit_lua(clean, text, module):
        if what == "no pliant.lua":
            (clean.layout.etc / "pliant.lua").unlink()
        jobs = all_end_as_written()
    has_token = [carries_token(show, job) for job in jobs]
    assert has_token == ([True, True, False] if what == "no luasocket" else [False] * 3)


def test_an_error_in_our_lua(clean: Sandbox, all_end_as_written: Ended) -> None:
    module = resources.find("plugins", "slurm", "pliant.lua").read_text()
    broken = module.replace(
        "local function submit(job_desc, part_list)\n",
        "local function submit(job_desc, part_list)\n   error({})\n",
    )
    assert broken != module
    with job_submit_lua(clean, with_pliant(clean), broken):
        all_end_as_written()


def test_slurmctld_starts_beside_a_broken_pliant_lua(
    clean: Sandbox, all_end_as_written: Ended
) -> None:
    text = resources.find("plugins", "slurm", "job_submit.lua").read_text()
    with job_submit_lua(clean, text, "local M = = {}"):
        clean.restart("slurmctld")
        all_end_as_written()
    clean.restart("slurmctld")
