"""The wrapper's small parts: what the environment says, files, words, the shell script."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from limits import HANG_S
from pliant import resources
from pliant.errors import BadInput
from pliant.node.ancestors import is_batch
from pliant.node.files import TOUCH_S, Pace, Private, for_checkpoints
from pliant.node.logs import cut_on_requeue
from pliant.node.ranks import Ranks
from pliant.node.run import CHOSEN, DIRECTORY, MALLEABLE, from_environment, signal_number
from pliant.node.slurm import is_over, words
from pliant.node.words import Wish

SCRIPT = resources.find("wrappers", "pliant-run")
BATCH = {
    "SLURM_JOB_ID": "7",
    "SLURM_SUBMIT_DIR": "/home/ann",
    "SLURM_PROCID": "0",
    "SLURM_NTASKS": "8",
}


def test_a_batch_script_is_one_task_whatever_its_job_has() -> None:
    run = from_environment(BATCH)
    assert (run.job, run.rank, run.ranks, run.leads) == ("7", 0, 1, True)
    assert run.directory == Path("/home/ann/pliant-7")


def test_a_task_of_a_step_knows_its_rank() -> None:
    run = from_environment({**BATCH, "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"})
    assert (run.rank, run.ranks, run.leads) == (3, 8, False)


@pytest.mark.parametrize(("array", "called"), [("5", "7"), ("7", "7_3")])
def test_a_job_goes_by_its_own_number_whatever_array_it_is_of_or_was_submitted_from(
    array: str, called: str
) -> None:
    """``scontrol requeue 7`` is for all of array 7, also where one task has that number."""
    run = from_environment({**BATCH, "SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": "3"})
    assert (run.job, run.called, run.directory) == ("7", called, Path("/home/ann/pliant-7"))


def test_a_directory_that_another_jobs_wrapper_chose_is_not_this_ones() -> None:
    chosen = {DIRECTORY: "/home/ann/pliant-6", CHOSEN: "6:/home/ann/pliant-6"}
    run = from_environment({**BATCH, **chosen})
    assert (run.directory, run.chosen) == (Path("/home/ann/pliant-7"), True)
    own = from_environment({**BATCH, **chosen, DIRECTORY: "/mine"})
    assert (own.directory, own.chosen) == (Path("/mine"), False)
    again = from_environment({**BATCH, DIRECTORY: "/x", CHOSEN: "7:/x"})
    assert again.directory == Path("/x")
    assert from_environment(BATCH, directory="/typed").chosen


def test_a_user_without_a_home_has_a_directory_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert from_environment(BATCH).otherwise == Path(f"/home/ann/pliant-7-{os.geteuid()}")


def processes(folder: Path, started: str) -> Path:
    """Return a /proc in which this process's parent was started by somebody."""
    for number, parent, name in ((os.getpid(), 2, "python"), (2, 1, started), (1, 0, "init")):
        (folder / str(number)).mkdir()
        (folder / str(number) / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
        (folder / str(number) / "cmdline").write_text(f"{name}\0")
    return folder


@pytest.mark.parametrize(
    ("started", "batch"),
    [
        ("slurmstepd: [7.batch]", True),
        ("slurmstepd: [7.0]", False),
        ("slurmstepd: [77.batch]", False),
        ("bash", False),
    ],
)
def test_a_batch_script_is_known_by_who_started_it(
    tmp_path: Path, started: str, batch: bool
) -> None:
    assert is_batch("7", processes(tmp_path, started)) is batch


def test_a_batch_script_is_one_task_also_where_a_step_submitted_its_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pliant.node.run.is_batch", lambda job: job == "7")
    assert from_environment({**BATCH, "SLURM_STEP_NUM_TASKS": "8"}).ranks == 1


def test_outside_a_job_there_is_nothing() -> None:
    run = from_environment({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"})
    assert (run.job, run.leads, run.directory) == ("", True, None)


@pytest.mark.parametrize(
    ("said", "number"),
    [("grace=2m,signal=USR1", 10), ("(null)", 0), ("nonsense=1", 0), ("", 0)],
)
def test_what_the_job_said_is_read_and_nonsense_is_not(said: str, number: int) -> None:
    run = from_environment({**BATCH, MALLEABLE: said})
    assert (run.grace_s, run.signal, run.typed) == (0, number, False)


def test_what_is_typed_wins() -> None:
    said = {**BATCH, MALLEABLE: "grace=2m,signal=USR1"}
    run = from_environment(said, grace_s=5, signal_name="sigusr2", directory="/scratch")
    assert (run.grace_s, run.signal, run.typed) == (5, 12, True)
    assert run.directory == Path("/scratch")


def test_an_unknown_signal_is_told_with_what_would_be_right() -> None:
    with pytest.raises(BadInput, match=r"^signal: 'FOO': one of HUP, INT, .* is expected$"):
        signal_number("FOO")


def test_a_pace_is_told_over_some_seconds_and_begins_anew_where_steps_go_back() -> None:
    pace = Pace()
    pace.add(10, 100.0)
    assert pace.rate is None
    pace.add(30, 110.0)
    assert pace.rate == 2.0
    pace.add(5, 111.0)
    assert pace.rate is None
    assert pace.step == 5


@pytest.mark.parametrize(("step", "told"), [("-1", False), ("7", True), ("1" * 17, False)])
def test_a_step_that_is_none_is_not_told(step: str, told: bool) -> None:
    files = Private("7")
    (files.path / "heartbeat").write_text(f"{step} 5.0")
    assert (files.beat() is not None) is told
    files.remove()


def test_a_directory_that_is_gone_is_made_again_as_it_was(tmp_path: Path) -> None:
    files = Private("7")
    assert files.keep(0.0) is False
    shutil.rmtree(files.path)
    assert files.keep(1.0) is True
    assert stat.S_IMODE(files.path.stat().st_mode) == 0o700
    assert files.keep(2.0) is False
    shutil.rmtree(files.path)
    files.ask(Wish("w1"))  # before the next look
    assert files.request.exists()
    files.remove()


@pytest.mark.parametrize("what", ["directory", "link", "file"])
def test_what_is_another_users_in_its_place_is_not_trusted(tmp_path: Path, what: str) -> None:
    files = Private("7")
    files.path.rmdir()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    match what:
        case "directory":
            files.path.mkdir()
            files._owner += 1
        case "link":
            files.path.symlink_to(theirs)
        case _:
            files.path.touch()
    if what != "file":
        for name, text in (("saved", ""), ("requeued", ""), ("heartbeat", "7 5.0")):
            (files.path / name).write_text(text)
    assert (files.beat(), files.take_saved(), files.take_requeued()) == (None, False, False)
    for act in (lambda: files.keep(1.0), lambda: files.ask(Wish("w1"))):
        with pytest.raises(FileExistsError):
            act()
    files.remove()
    assert os.path.lexists(files.path)
    assert what == "file" or len([*files.path.iterdir()]) == 3
    shutil.rmtree(files.path) if what == "directory" else files.path.unlink()


def test_it_is_touched_now_and_then_so_that_no_cleaner_takes_it() -> None:
    files = Private("7")
    files.ask(Wish("w1"))
    both = (files.path, files.request)

    def ages(now_s: float) -> list[bool]:
        for one in both:
            os.utime(one, (5.0, 5.0))
        files.keep(now_s)
        return [one.stat().st_mtime == 5.0 for one in both]

    looks = [ages(at_s) for at_s in (0.0, 1.0, TOUCH_S - 1, TOUCH_S, TOUCH_S + 1)]
    assert looks == [[old, old] for old in (False, True, True, False, True)]
    files.remove()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("COMPLETING|TimeLimit|INVALID|0|", "its time limit is reached"),  # 22.05's rows
        ("COMPLETING|None|0:57|0|", "it is cancelled"),
        ("COMPLETING|None|1:00|1|", "it is requeued"),
        ("PREEMPTED|None|5:00|0|", "Slurm preempts it"),
        ("NODE_FAIL|NodeDown|10:00|0|", "its node is taken away"),
        ("RUNNING|None|10:00|0|", ""),
        ("", ""),
    ],
)
def test_why_a_job_is_ended_is_said_in_words(row: str, says: str) -> None:
    assert words(row, 0) == says


@pytest.mark.parametrize(
    ("row", "over"),
    [
        ("RUNNING|None|10:00|2|", False),
        ("COMPLETING|None|10:00|2|", True),
        ("PENDING|BeginTime|10:00|3|", True),
        ("RUNNING|None|10:00|3|", True),  # elsewhere
        ("SUSPENDED|None|10:00|2|", False),
        ("CANCELLED|None|10:00|2|", True),  # it does not come back
        ("TIMEOUT|TimeLimit|0:00|2|", True),
        ("NODE_FAIL|None|10:00|2|", False),  # it would lose what it has saved
        ("", False),  # slurmctld does not answer
    ],
)
def test_a_run_is_over_once_its_job_waits_or_runs_again_or_has_ended(row: str, over: bool) -> None:
    assert is_over(row, 2) is over


@pytest.mark.parametrize(
    ("mode", "conf", "cut"),
    [
        ("a", "", False),
        ("t", "JobFileAppend=1", True),
        ("", "", True),
        ("", "JobFileAppend=1", False),
    ],
)
def test_a_log_that_a_requeue_would_empty_is_warned_of(
    tmp_path: Path, mode: str, conf: str, cut: bool
) -> None:
    (tmp_path / "slurm.conf").write_text(f"ClusterName=x\n{conf}\n")
    program = (
        "import os, sys; from pliant.node.logs import cut_on_requeue as cut\n"
        "print(cut(os.environ), file=sys.stderr)"
    )
    with (tmp_path / "log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={
                "SLURM_OPEN_MODE": mode,
                "SLURM_CONF": str(tmp_path / "slurm.conf"),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            timeout=HANG_S,
        )
    assert bool(done.stderr.strip()) is cut


def test_output_that_is_no_file_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.node.logs._is_file", lambda _handle: False)
    assert cut_on_requeue({}) == ""


def test_nor_is_a_job_of_pbs_whose_log_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.node.logs._is_file", lambda _handle: True)
    assert cut_on_requeue({"PBS_JOBID": "7.head"}) == ""


# Several tasks


def ranks(folder: Path, rank: int = 0) -> Ranks:
    return Ranks(folder, "7-0-0", rank, 2)


def test_tasks_see_what_the_first_one_tells(tmp_path: Path) -> None:
    first, other = ranks(tmp_path), ranks(tmp_path, 1)
    assert other.told() is None
    first.prepare()
    assert other.told() == (None, "", 0)
    wish = Wish("w1", "resize", "2", 30.0)
    first.tell(wish, signal=10)
    assert other.told() == (wish, "", 10)
    first.tell(wish, "again")
    assert other.told() == (wish, "again", 0)
    first.tell(None)
    assert other.told() == (None, "", 0)


@pytest.mark.parametrize("text", ["", "{", '{"wish": "w1", "decided"', "[]", '{"wish": "w"}', "7"])
def test_what_is_half_written_is_not_there(tmp_path: Path, text: str) -> None:
    first = ranks(tmp_path)
    first.prepare()
    (first.path / "told").write_text(text)
    assert first.told() is None


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    first = ranks(tmp_path)
    first.prepare()
    (first.path / "told").chmod(0o666)
    assert first.told() is None


def test_a_directory_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    first = ranks(tmp_path)
    first.path.mkdir()
    first.path.chmod(0o777)
    with pytest.raises(PermissionError, match="not this user's alone"):
        first.prepare()


def test_the_last_task_removes_what_they_shared(tmp_path: Path) -> None:
    first, other = ranks(tmp_path), ranks(tmp_path, 1)
    first.prepare()
    other.ended(85, "w1")
    assert not first.all_ended("w1")
    first.ended(85, "w1")
    assert first.all_ended("w1")
    first.leave()
    assert first.path.exists()
    other.leave()
    assert not first.path.exists()


def test_a_task_that_begins_anew_takes_its_marks_away_and_no_other_ones(tmp_path: Path) -> None:
    """As where its wrapper was lost, and its guardian began anew."""
    first, other = ranks(tmp_path), ranks(tmp_path, 1)
    for one in (first, other):
        one.join()
        one.ended(85, "w1")
        one.mark.touch()
    first.leave()
    first.prepare()
    assert sorted(path.name for path in first.path.iterdir()) == ["ended-1", "lost-1", "told"]
    assert first.lost() == 1
    other.join()
    assert [path.name for path in first.path.iterdir()] == ["told"]
    assert first.lost() is None


def test_a_look_for_lost_wrappers_is_one_for_all_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each second, in a directory that all nodes share."""
    first = Ranks(tmp_path, "7-0-0", 0, 1000)
    assert first.lost() is None
    first.prepare()
    Ranks(tmp_path, "7-0-0", 998, 1000).mark.touch()
    looks: list[Path] = []
    monkeypatch.setattr(Path, "exists", looks.append)
    assert (first.lost(), looks) == (998, [])


def test_a_task_whose_program_runs_again_has_not_ended(tmp_path: Path) -> None:
    first, other = ranks(tmp_path), ranks(tmp_path, 1)
    first.prepare()
    first.ended(85, "w1")
    other.ended(85, "w1")
    other.resumed()
    assert not first.all_ended("w1")


def test_a_task_that_failed_at_a_wish_is_known_and_one_that_ended_before_is_not(
    tmp_path: Path,
) -> None:
    first, other = ranks(tmp_path), ranks(tmp_path, 1)
    first.prepare()
    first.ended(85, "w1")
    other.ended(7)
    assert (first.all_ended("w1"), first.failed("w1")) == (True, None)
    other.ended(7, "w1")
    other.leave()
    assert (first.all_ended("w1"), first.failed("w1")) == (True, (1, 7))
    assert (first.all_ended("w2"), first.failed("w2")) == (False, None)
    other.ended(0, "w1")
    assert first.failed("w1") is None


# The Python API


def python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout


def test_importing_pliant_takes_the_standard_library_alone() -> None:
    said = python(
        "import sys; before = set(sys.modules); import pliant\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    assert set(said.split()) <= {"pliant", "__future__", "time"}


def test_a_program_reads_its_shape() -> None:
    program = "import pliant; print(pliant.shape())"
    assert python(program) == "Shape(gpus=0, nodes=1, type='', share=1, text='')\n"
    said = {"PLIANT_GPUS": "8", "PLIANT_NODES": "2", "PLIANT_TYPE": "gpu", "PLIANT_SHAPE": "2x4"}
    assert python(program, **said) == "Shape(gpus=8, nodes=2, type='gpu', share=1, text='2x4')\n"
    slurm = {"SLURM_JOB_NUM_NODES": "2", "SLURM_GPUS_ON_NODE": "4"}
    assert python(program, **slurm) == "Shape(gpus=8, nodes=2, type='', share=1, text='')\n"


def test_without_a_wrapper_nothing_happens() -> None:
    program = "import pliant; pliant.heartbeat(1); print(pliant.checkpoint_wanted(), pliant.checkpointed())"
    assert python(program) == "False None\n"
    assert python(program, PLIANT_CHECKPOINT_REQUESTED="/gone/since/checkpoint") == "False None\n"


def test_what_another_jobs_wrapper_looks_at_is_nothing(tmp_path: Path) -> None:
    """A job submitted from within a job inherits its variables."""
    program = "import pliant; print(pliant.checkpoint_wanted(), pliant.checkpointed())"
    (tmp_path / "pliant-11-x").mkdir()
    (tmp_path / "pliant-11-x" / "checkpoint-requested").touch()
    asked = {"PLIANT_CHECKPOINT_REQUESTED": str(tmp_path / "pliant-11-x" / "checkpoint-requested")}
    assert python(program, SLURM_JOB_ID="1", **asked) == "False None\n"
    wanted = "import pliant; print(pliant.checkpoint_wanted())"
    task = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "4"}  # its own, or inherited
    for more in ({}, task):
        assert python(wanted, SLURM_JOB_ID="11", **asked, **more) == "True\n"


def test_a_disk_that_is_full_disturbs_no_program(tmp_path: Path) -> None:
    (tmp_path / "heartbeat").mkdir()
    program = "import pliant; pliant.heartbeat(1); pliant.heartbeat(2); print('on')"
    path = str(tmp_path / "checkpoint-requested")
    assert python(program, PLIANT_CHECKPOINT_REQUESTED=path) == "on\n"


@pytest.mark.parametrize("what", ["directory", "link", "file", "loose end"])
def test_what_another_user_has_made_is_no_directory_for_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    theirs, home = tmp_path / "pliant-11", tmp_path / "home" / "pliant-11"
    match what:
        case "directory":
            theirs.mkdir()
        case "file":
            theirs.touch()
        case _:
            theirs.symlink_to(tmp_path if what == "link" else "/not/there")
    assert for_checkpoints(tmp_path / "new", home) == tmp_path / "new"
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    assert for_checkpoints(theirs, home) == home
    assert home.is_dir()
    assert os.path.lexists(theirs)


def test_where_none_can_be_made_checkpoints_go_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    home = tmp_path / "home" / "pliant-11"
    assert for_checkpoints(tmp_path / "file" / "pliant-11", home) == home
    assert home.is_dir()
    with pytest.raises(OSError, match="Not a directory"):
        for_checkpoints(tmp_path / "file" / "pliant-11", None)


def test_a_named_directory_for_checkpoints_may_be_another_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    assert for_checkpoints(tmp_path, None) == tmp_path


# wrappers/pliant-run


def script(folder: Path, *typed: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(SCRIPT), *typed],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_script_becomes_pliant_run(tmp_path: Path) -> None:
    program = tmp_path / "pliant"
    program.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    program.chmod(0o755)
    assert script(tmp_path, "--grace", "2m", "--", "a b")[:2] == (7, "run --grace 2m -- a b\n")


def test_where_pliant_is_not_found_the_script_runs_the_program(tmp_path: Path) -> None:
    line = "pliant-run: pliant is not on the PATH: sh runs without it\n"
    typed = ["sh", "-c", 'echo "$1"; exit 3', "sh", "a  b"]
    assert script(tmp_path, "--signal", "USR1", "--", *typed) == (3, "a  b\n", line)
    assert script(tmp_path, *typed) == (3, "a  b\n", line)
    assert script(tmp_path, "--grace", "2m", "--")[0] == 2
