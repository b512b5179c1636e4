"""`pliant run` in a job of PBS: which run it is, and that its end requeues the job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pliant.node import pbs
from pliant.node import words as w
from pliant.node.ancestors import above, is_anywhere
from pliant.node.core import step
from pliant.node.run import from_environment
from pliant.node.words import Stage, State
from wrapped_job import HASTY, ROOT, Job, ended, wrapped_job

JOB = {
    "PBS_JOBID": "7.head",
    "PBS_O_WORKDIR": "/home/ada",
    "PLIANT_RESTART_COUNT": "2",
    "PLIANT_RETURNS": "85",
}
WISH = w.Wish("0.1")


def test_a_run_of_pbs_is_known_by_its_environment() -> None:
    this = from_environment(JOB)
    assert (this.job, this.restarts, this.ranks, this.returns) == ("7", 2, 1, True)
    assert this.directory == Path("/home/ada/pliant-7")
    assert from_environment({**JOB, "PBS_JOBID": "7[3].head"}).job == "7[3]"


@pytest.mark.parametrize(
    "environ",
    [
        {**JOB, "PLIANT_RETURNS": ""},
        {**JOB, "PLIANT_RETURNS": "7"},
        {**JOB, "SLURM_JOB_ID": "9"},  # it was submitted from within a job of PBS
        {"PLIANT_RETURNS": "85"},
    ],
)
def test_without_our_hooks_nothing_returns(environ: dict[str, str]) -> None:
    assert not from_environment(environ).returns
    assert "no hook of Pliant's" in pbs.requeue("7", 0)
    assert pbs.why_ended("7", 0) == ""


@pytest.mark.parametrize("event", [w.Answered(1.0), w.Ticked(1000.0)])
def test_where_its_end_requeues_the_job_a_wrapper_waits_for_nobody(event: w.Event) -> None:
    handing = State(stage=Stage.HANDING, wish=WISH, until_s=20.0, returns=True)
    assert step(handing, event) == (
        State(stage=Stage.OVER, wish=WISH, until_s=20.0, returns=True),
        (w.Exit(85),),
    )


def test_a_job_that_is_to_stay_goes_on_here_on_pbs_too() -> None:
    handing = State(stage=Stage.HANDING, wish=WISH, until_s=20.0, returns=True)
    after, effects = step(handing, w.Stays(1.0))
    assert (after.stage, w.Start() in effects) == (Stage.RUNNING, True)


def test_who_has_saved_and_may_not_go_back_by_its_end_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in JOB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert pbs.requeue("7", 0) == "PBS lets no job requeue itself, and pliantd has not done it"


# Whether PBS learns how the job's script ends

LOOKS = f"""
import sys; sys.path.insert(0, {str(ROOT / "src")!r})
from pliant.node.pbs import Mom
mom = Mom()
while True: print(mom.waits(), flush=True); sys.stdin.readline() or sys.exit()
"""
SAVED = "pathlib.Path('saved').touch(); sys.exit(85)"
AGAIN = "if os.path.exists('saved'): print('again', flush=True); sys.exit(6)\n"
SAVES = (
    "pathlib.Path('pid').write_text('1')\n"
    "while not pliant.checkpoint_wanted(): time.sleep(0.02)\n"
    "pathlib.Path('saved').touch(); pliant.checkpointed()"
)


@pytest.fixture
def mom(tmp_path: Path) -> list[str]:
    """What starts a job's script as PBS's daemon of a node does."""
    return [shutil.copy("/bin/sh", str(tmp_path / pbs.MOM)), "-c", '"$@"; exit $?', "mom"]


@pytest.fixture
def job(tmp_path: Path, mom: list[str]) -> Iterator[Job]:
    """A job of PBS's, below a pbs_mom."""
    folder = tmp_path / "job"
    folder.mkdir()
    with wrapped_job(folder) as one:
        del one.environment["SLURM_JOB_ID"]
        one.environment |= {"PBS_JOBID": "4711.head", "PLIANT_RETURNS": "85"}
        one.pliant = [*mom, sys.executable, "-c", HASTY]
        yield one


@pytest.mark.parametrize("script", [[], ["sh", "-c", '"$@"; exit $?', "sh"], ["setsid", "-w"]])
def test_a_pbs_mom_that_was_started_again_does_not_wait_for_the_scripts_of_before(
    mom: list[str], script: list[str]
) -> None:
    with subprocess.Popen(
        [*mom, *script, sys.executable, "-c", LOOKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "True\n"
        process.kill()
        process.wait()
        process.stdin.write("\n")
        assert process.stdout.readline() == "False\n"


@pytest.mark.parametrize(
    ("first", "now", "waits"),
    [
        (("9", ""), ("9", ""), True),
        (("9", ""), ("1", ""), False),
        (("1", ""), ("1", ""), False),
        (("9", ""), ("8", ""), False),  # another subreaper has taken it
    ],
)
def test_where_other_users_processes_are_not_shown_the_same_parent_still_waits(
    monkeypatch: pytest.MonkeyPatch, first: tuple[str, str], now: tuple[str, str], waits: bool
) -> None:
    monkeypatch.setattr(pbs, "above", lambda _: first)
    mom = pbs.Mom()
    monkeypatch.setattr(pbs, "above", lambda _: now)
    assert mom.waits() is waits


@pytest.mark.parametrize(
    ("first", "is_anywhere", "waits"),
    [
        (("1", "init"), True, False),  # it was started again before `pliant run` began
        (("1", "tini"), False, True),
        (("9", "pbs_mom"), True, False),
        (("9", "pbs_mom"), False, False),  # and is not there yet
    ],
)
def test_in_a_container_that_shows_no_pbs_mom_it_is_taken_to_wait_outside(
    monkeypatch: pytest.MonkeyPatch, first: tuple[str, str], is_anywhere: bool, waits: bool
) -> None:
    monkeypatch.setattr(pbs, "is_anywhere", lambda _: is_anywhere)
    monkeypatch.setattr(pbs, "above", lambda _: first)
    mom = pbs.Mom()
    now = first if first[1] != pbs.MOM else ("1", "init")
    monkeypatch.setattr(pbs, "above", lambda _: now)
    assert mom.waits() is waits


def test_whose_processes_are_not_shown_has_no_name(tmp_path: Path) -> None:
    own = tmp_path / str(os.getpid())
    own.mkdir()
    (own / "status").write_text("Name:\tpython\nPPid:\t2\n")
    assert above(pbs.MOM, tmp_path) == ("2", "")
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "status").write_text("Name:\tinit\nPPid:\t0\n")
    assert above(pbs.MOM, tmp_path) == ("2", "init")
    assert not is_anywhere(pbs.MOM, tmp_path)
    (tmp_path / "2" / "comm").write_text("pbs_mom\n")
    assert is_anywhere(pbs.MOM, tmp_path)


def test_one_whose_end_pbs_sees_ends_once_it_has_saved(job: Job) -> None:
    process = job.start(AGAIN + SAVES)
    job.wait_for_file("pid")
    job.door.want("w1")
    assert ended(process) == (85, "", "")


def test_one_whose_end_pbs_would_not_see_waits_and_goes_on_where_nobody_sends_it_back(
    job: Job,
) -> None:
    process = job.start(AGAIN + SAVES)
    job.wait_for_file("pid")
    process.kill()
    job.door.want("w1")
    _, out, err = ended(process)
    assert out == "again\n"
    assert "no pbs_mom would see this run end: it waits here for pliantd" in err
    assert "the program goes on here" in err
    assert len(job.door.of("run-saved")) > 0


def test_one_whose_end_pbs_would_not_see_is_waiting_when_it_is_sent_back(job: Job) -> None:
    process = job.start(AGAIN + SAVES)
    job.wait_for_file("pid")
    wrapper = psutil.Process(process.pid).children()[0]
    process.kill()
    job.door.want("w1")
    job.door.wait_for("run-saved")
    time.sleep(1.0)
    assert wrapper.is_running()
    wrapper.terminate()  # as a qrerun does
    assert "again" not in ended(process)[1]


def test_so_it_is_where_the_wrapper_is_killed(job: Job, mom: list[str]) -> None:
    waits = "while not os.path.exists('go'): time.sleep(0.02)\n"
    process = job.start(
        AGAIN + "pathlib.Path('pid').write_text(str(os.getpid()))\n" + waits + SAVED
    )
    job.wait_for_file("pid")
    program = psutil.Process(int((job.folder / "pid").read_text()))
    guardian = psutil.Process(process.pid).children()[0]
    process.kill()
    (wrapper,) = (one for one in guardian.children() if one.cmdline() == guardian.cmdline())
    wrapper.kill()
    assert program.is_running()
    with subprocess.Popen([*mom[:2], "read line", "mom"], stdin=subprocess.PIPE):  # started again
        (job.folder / "go").touch()
        assert ended(process)[1] == "again\n"
