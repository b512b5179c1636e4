"""``pliant run`` with real programs, beside a fake pliantd: what each program sees and says."""

from __future__ import annotations

import ast
import json
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import pliant
from fake_door import wait_until
from pliant.wire.runs import RunAnswer
from wrapped_job import (
    BRIEF,
    FROM_SOURCE,
    HASTY,
    HEAD,
    IMPATIENT,
    PLIANT,
    ROOT,
    Job,
    ended,
    taken_over,
    wrapped_job,
)

LOOP = "while not {until}: time.sleep(0.02)\n"
GO = "os.path.exists('go')"
REQUESTED = "os.path.exists(os.environ['PLIANT_CHECKPOINT_REQUESTED'])"
PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        yield one


# Without Pliant


@pytest.mark.parametrize(("code", "shell"), [("0", 0), ("3", 3), ("85", 85)])
def test_outside_a_job_the_program_runs_as_if_by_itself(job: Job, code: str, shell: int) -> None:
    del job.environment["SLURM_JOB_ID"]
    process = job.start(
        f"print(pliant.checkpoint_wanted(), pliant.checkpointed()); sys.exit({code})"
    )
    assert ended(process) == (shell, "False None\n", "")
    assert job.door.said == []
    assert list((job.folder / "tmp").iterdir()) == []


def test_a_program_that_a_signal_ends_counts_as_128_and_the_signal(job: Job) -> None:
    assert ended(job.start("os.kill(os.getpid(), 9)"))[0] == 137


def test_a_program_that_is_not_there_is_said_in_one_line(job: Job) -> None:
    process = job.start_argv(["--", "/not/there"], {})
    assert ended(process) == (127, "", "pliant run: /not/there: No such file or directory\n")


@pytest.mark.parametrize("before", [(), ("--", *PLIANT, "run")], ids=["alone", "inside another"])
@pytest.mark.parametrize("job_id", ["4711", ""])
def test_a_script_that_does_not_say_by_what_it_runs_is_one_for_sh(
    job: Job, before: tuple[str, ...], job_id: str
) -> None:
    """As for a shell, and for execvp(3)."""
    job.environment["SLURM_JOB_ID"] = job_id
    script = job.bin / "no-shebang"
    script.write_text("echo $0 $1\nexit 3\n")
    script.chmod(0o755)
    for name in (str(script), script.name):
        process = job.start_argv([*before, "--", name, "a"], {})
        assert ended(process)[:2] == (3, f"{script} a\n")


@pytest.mark.parametrize("how", ["alone", "inside another", "without files"])
def test_signals_that_python_ignores_are_not_ignored_in_the_program(job: Job, how: str) -> None:
    """`yes | head` in it would run for ever."""
    words = ["--", "grep", "SigIgn", "/proc/self/status"]
    if how == "inside another":
        words = ["--", *PLIANT, "run", *words]
    limit = "ulimit -n 7;" if how == "without files" else ""
    job.pliant = ["sh", "-c", f'{limit} exec "$@"', "sh", *PLIANT]
    code, out, _ = ended(job.start_argv(words, {}))
    ignored = int(out.removeprefix("SigIgn:"), 16)  # what the tests' own parent ignores may stay
    of_python = [number for number in PYTHON_IGNORES if ignored >> (number - 1) & 1]
    assert (code, of_python) == (0, [])


@pytest.mark.parametrize("where", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("exit 0", 0), ("kill -9 $$", 137)])
@pytest.mark.parametrize("job_id", ["4711", ""])
def test_the_exit_code_is_the_programs_also_where_nothing_can_be_said(
    job: Job, where: str, script: str, code: int, job_id: str
) -> None:
    job.environment["SLURM_JOB_ID"] = job_id
    job.pliant = ["sh", "-c", f'exec "$@" {where}', "sh", *PLIANT]
    assert ended(job.start_argv(["--", "sh", "-c", script], {})) == (code, "", "")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_program_that_is_not_there_is_127_also_where_nothing_can_be_said(
    job: Job, where: str, wrapped: bool
) -> None:
    if wrapped:
        ours = job.folder / "tmp" / "pliant-4711-x"
        ours.mkdir()
        job.environment["PLIANT_CHECKPOINT_REQUESTED"] = str(ours / "checkpoint-requested")
    job.pliant = ["sh", "-c", f'exec "$@" {where}', "sh", *PLIANT]
    assert ended(job.start_argv(["--", "/not/there"], {})) == (127, "", "")


@pytest.mark.parametrize("lacks", ["config", "munge", "daemon", "verbs"])
def test_whatever_is_missing_the_program_runs_and_one_line_says_so(job: Job, lacks: str) -> None:
    match lacks:
        case "config":
            job.environment["PLIANT_CONFIG"] = "/not/there"
        case "munge":
            (job.bin / "munge").write_text("#!/bin/sh\necho munged is away >&2\nexit 1\n")
        case "daemon":
            job.door.close()
        case _:
            job.door.refuses = frozenset({"run-begin"})
    program = LOOP.format(until="os.path.exists('go')") + "print('done')"
    process = job.start(program)
    assert process.stderr is not None
    line = process.stderr.readline()
    (job.folder / "go").touch()
    code, out, rest = ended(process)
    assert (code, out, rest) == (0, "done\n", "")
    assert line.startswith("pliant run: ")
    assert line.endswith("; the program runs all the same\n")


def test_of_a_job_that_pliantd_sees_a_moment_later_nothing_is_said(job: Job) -> None:
    job.door.refuses = frozenset({"run-begin"})
    process = job.start(LOOP.format(until="os.path.exists('go')"))
    job.door.wait_for("run-begin")
    job.door.refuses = frozenset()
    job.door.wait_for("run-watch")
    (job.folder / "go").touch()
    assert ended(process) == (0, "", "")


def test_another_wrapper_inside_is_none(job: Job) -> None:
    waits = "until [ -e go ]; do sleep 0.05; done; exit 5"
    inner = f"os.execvp({sys.executable!r}, {[*PLIANT, 'run', '--', 'sh', '-c', waits]!r})"
    process = job.start(inner)
    job.door.wait_for("run-watch")
    (job.folder / "go").touch()
    process.wait()
    job.door.wait_for("run-end")
    assert [fields["code"] for fields in job.door.of("run-end")] == ["5"]
    assert len(job.door.of("run-begin")) == 1


def test_a_wrapper_of_another_job_whose_variable_was_inherited_is_none(job: Job) -> None:
    theirs = job.folder / "tmp" / "pliant-4710-inherited"
    theirs.mkdir()
    (theirs / "checkpoint-requested").touch()
    job.environment["PLIANT_CHECKPOINT_REQUESTED"] = str(theirs / "checkpoint-requested")
    process = job.start(f"print(pliant.checkpoint_wanted())\n{LOOP.format(until=GO)}")
    job.door.wait_for("run-begin")
    (job.folder / "go").touch()
    assert ended(process)[:2] == (0, "False\n")


# What pliantd hears


def test_pliantd_hears_how_a_run_begins_and_ends(job: Job) -> None:
    process = job.start(
        "pliant.heartbeat(7)\n" + LOOP.format(until="os.path.exists('go')"),
        "--grace",
        "2m",
        SLURM_RESTART_COUNT="3",
    )
    begun = job.door.wait_for("run-begin")
    wait_until(lambda: any(f["step"] == "7" for f in job.door.of("run-watch")), "a heartbeat")
    (job.folder / "go").touch()
    assert ended(process) == (0, "", "")
    who = {"job": "4711", "run": "3", "word": begun["word"]}
    says = {"host": os.uname().nodename, "grace": "120", "signal": "", "others": "0", "lost": "0"}
    assert float(begun.pop("age")) >= 0
    assert begun == {**who, **says}
    watched = next(fields for fields in job.door.of("run-watch") if fields["step"] == "7")
    assert float(watched.pop("ago")) >= 0
    assert 0 <= float(watched.pop("beat")) < 60
    assert watched == {**who, "known": "", "step": "7", "rate": "", "launched": "1", "lost": "0"}
    assert job.door.of("run-end") == [{**who, "code": "0", "termed": "0"}]


def test_a_wrapper_goes_by_what_pliantd_knows_of_its_run(job: Job) -> None:
    """SLURM_RESTART_COUNT may be that of the job that submitted this one."""
    job.door.wish = RunAnswer(run=0)
    process = job.start(LOOP.format(until=GO), SLURM_RESTART_COUNT="2")
    job.door.wait_for("run-watch")
    (job.folder / "go").touch()
    assert ended(process) == (0, "", "")
    runs = [job.door.of(verb)[0]["run"] for verb in ("run-begin", "run-watch", "run-end")]
    assert runs == ["2", "0", "0"]


INHERITED = {"SLURM_SPANK__SLURM_SPANK_OPTION_pliant_malleable": "grace=1,signal=USR2"}


@pytest.mark.parametrize(
    ("known", "typed"), [("USR1", ()), ("", ("--signal", "USR1")), ("USR2", ("--signal", "USR1"))]
)
def test_the_signal_is_what_was_typed_here_or_else_what_pliantd_knows(
    job: Job, known: str, typed: tuple[str, ...]
) -> None:
    """It may have been said in the job's comment; what the environment says, to another job."""
    job.door.answers["run-begin"] = RunAnswer(run=0, signal=known)
    process = job.start(WAYS["signal"][1], *typed, **INHERITED)
    job.door.wait_for("run-watch")
    job.door.want("w1")
    assert taken_over(job, process)[0] == 85


def test_steps_that_are_none_do_not_keep_a_program_from_being_asked(job: Job) -> None:
    process = job.start("pliant.heartbeat(-1)\n" + LOOP.format(until=GO))
    job.door.wait_for("run-watch", 3)
    (job.folder / "go").touch()
    assert ended(process) == (0, "", "")
    assert {said["step"] for said in job.door.of("run-watch")} == {""}


def test_what_the_job_said_at_submission_counts(job: Job) -> None:
    option = {"SLURM_SPANK__SLURM_SPANK_OPTION_pliant_malleable": "grace=90,signal=USR2"}
    process = job.start(LOOP.format(until="os.path.exists('go')"), **option)
    begun = job.door.wait_for("run-begin")
    (job.folder / "go").touch()
    ended(process)
    assert (begun["grace"], begun["signal"]) == ("0", "USR2")


# Checkpoints


SAVES = "pathlib.Path('saved').write_text('whole')\n"
WAYS = {
    "file": ("", LOOP.format(until=REQUESTED) + SAVES + "sys.exit(85)"),
    "api": ("", LOOP.format(until="pliant.checkpoint_wanted()") + SAVES + "pliant.checkpointed()"),
    "signal": (
        "USR1",
        "told = []\nsignal.signal(signal.SIGUSR1, lambda *a: told.append(1))\n"
        + LOOP.format(until="told")
        + SAVES
        + "sys.exit(85)",
    ),
    # torchrun and the like end with 1 whatever their workers ended with
    "launcher": (
        "",
        LOOP.format(until="pliant.checkpoint_wanted()")
        + SAVES
        + "try: pliant.checkpointed()\nexcept SystemExit: sys.exit(1)",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_program_saves_when_it_is_asked_and_pliantd_takes_over(job: Job, way: str) -> None:
    name, program = WAYS[way]
    process = job.start(program, *(["--signal", name] if name else []))
    job.door.wait_for("run-watch")
    job.door.want("w1")
    saved = job.door.wait_for("run-saved")
    assert (job.folder / "saved").read_text() == "whole"
    assert process.poll() is None, "it keeps the allocation until it is ended"
    code, _, err = taken_over(job, process)
    assert (code, err) == (85, "")
    assert saved.keys() == {"job", "run", "word", "wish", "took", "step", "number"}
    assert (saved["wish"], job.door.of("run-end"), job.requeues.exists()) == ("w1", [], False)
    assert list((job.folder / "tmp").iterdir()) == []


def test_the_file_says_what_is_wanted(job: Job) -> None:
    copy = (
        "pathlib.Path('copy').write_text(open(os.environ['PLIANT_CHECKPOINT_REQUESTED']).read())\n"
    )
    process = job.start(LOOP.format(until=REQUESTED) + copy + "sys.exit(85)")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    taken_over(job, process)
    said = json.loads((job.folder / "copy").read_text())
    assert (said["wish"], said["why"], said["shape"]) == ("w1", "resize", "2")


WHOLE = (
    "os.makedirs('ckpt', exist_ok=True)\npathlib.Path('ckpt/step').write_text(str(time.time()))\n"
)
BESIDE = (
    "there = pathlib.Path(os.environ['PLIANT_CHECKPOINT_DIR'])\n(there / 'ckpt').write_text('7')\n"
)


def saving(how: str) -> str:
    """A program that says that it has saved, and goes on to the end where it is started again."""
    return (
        f"if os.path.exists('asked'):\n    {LOOP.format(until=GO)}    print('again'); sys.exit(0)\n"
        + LOOP.format(until="pliant.checkpoint_wanted()")
        + f"pathlib.Path('asked').touch()\n{how}pliant.checkpointed()"
    )


@pytest.mark.parametrize(
    ("before", "how"),
    [
        ("", WHOLE),
        ("old", WHOLE),
        ("", "pathlib.Path('ckpt').write_text('7')\n"),
        ("", BESIDE),
    ],
    ids=["folder", "folder that was there", "file", "in the directory for checkpoints"],
)
def test_a_named_checkpoint_that_is_new_and_whole_is_reported(
    job: Job, before: str, how: str
) -> None:
    if before:
        (job.folder / "ckpt").mkdir()
        (job.folder / "ckpt" / "step").write_text(before)
    process = job.start(saving(how))
    job.door.wait_for("run-watch")
    job.door.want("w1", checkpoint="ckpt")
    assert taken_over(job, process)[0::2] == (85, "")
    assert job.door.of("run-failed") == []


@pytest.mark.parametrize(
    ("before", "how", "words"),
    [
        ("", "", "ckpt is not there"),
        ("old", "", "ckpt is no newer than the request"),
        ("old", "os.rename('ckpt/step', 'ckpt/earlier')\n", "ckpt is no newer than the request"),
        ("old", "open('ckpt/step', 'w').close()\n", "ckpt is empty"),
        ("old", "open('ckpt/next', 'w').close()\n", "ckpt is no newer than the request"),
        ("", "os.mkfifo('ckpt')\n", "ckpt is neither a file nor a directory"),
        ("", "os.symlink('$(touch owned)', 'ckpt')\n", "ckpt is not there"),
    ],
)
def test_where_a_named_checkpoint_is_not_new_and_whole_the_program_goes_on(
    job: Job, before: str, how: str, words: str
) -> None:
    if before:
        (job.folder / "ckpt").mkdir()
        (job.folder / "ckpt" / "step").write_text(before)
    job.pliant = [sys.executable, "-c", IMPATIENT]
    process = job.start(saving(how))
    job.door.wait_for("run-watch")
    job.door.want("w1", checkpoint="ckpt")
    says = f"the checkpoint is not new and whole: {words}"
    assert job.door.wait_for("run-failed")["words"] == says
    (job.folder / "go").touch()
    assert ended(process) == (
        0,
        "again\n",
        f"pliant run: {says}\npliant run: the program goes on here\n",
    )
    assert len(job.door.of("run-failed")) == 1
    assert (job.door.of("run-saved"), job.requeues.exists()) == ([], False)
    assert not (job.folder / "owned").exists()


@pytest.mark.parametrize(("how", "reported"), [(WHOLE, "run-saved"), ("", "run-failed")])
def test_what_is_saved_as_others_end_the_job_is_reported_only_where_it_is_whole(
    job: Job, how: str, reported: str
) -> None:
    program = (
        f"def end(*told):\n    {how.strip().replace(chr(10), chr(10) + '    ') or 'pass'}\n"
        "    sys.exit(85)\nsignal.signal(signal.SIGTERM, end)\n"
        + LOOP.format(until="pliant.checkpoint_wanted()")
        + "pathlib.Path('asked').write_text('yes')\n"
        + LOOP.format(until=GO)
    )
    process = job.start(program)
    job.door.wait_for("run-watch")
    job.door.want("w1", checkpoint="ckpt")
    job.wait_for_file("asked")
    process.terminate()
    assert ended(process)[0] == 85
    assert [verb for verb in ("run-saved", "run-failed") if job.door.of(verb)] == [reported]
    assert not job.requeues.exists()


def test_all_tasks_go_on_where_a_named_checkpoint_is_not_there(job: Job) -> None:
    program = (
        "mine = pathlib.Path('asked' + os.environ['SLURM_PROCID'])\n"
        "if mine.exists(): print('again'); sys.exit(0)\n"
        + LOOP.format(until="pliant.checkpoint_wanted()")
        + "mine.touch()\npliant.checkpointed()"
    )
    job.pliant = [sys.executable, "-c", IMPATIENT]
    tasks = [
        job.start(program, SLURM_PROCID=str(rank), SLURM_STEP_NUM_TASKS="2") for rank in range(2)
    ]
    job.door.wait_for("run-watch")
    job.door.want("w1", checkpoint="ckpt")
    assert [ended(task)[:2] for task in tasks] == [(0, "again\n")] * 2
    assert job.door.of("run-saved") == []


def test_a_program_that_finishes_when_it_is_asked_has_finished(job: Job) -> None:
    process = job.start(LOOP.format(until=REQUESTED))
    job.door.wait_for("run-watch")
    job.door.want("w1")
    assert ended(process)[0] == 0
    assert [fields["code"] for fields in job.door.of("run-end")] == ["0"]
    assert job.door.of("run-saved") == []


def test_a_program_that_fails_while_it_saves_has_failed(job: Job) -> None:
    half = "pathlib.Path('saved.new').write_text('ha')\nos.abort()"
    process = job.start(LOOP.format(until=REQUESTED) + half)
    job.door.wait_for("run-watch")
    job.door.want("w1")
    assert ended(process)[0] == 134
    assert [fields["code"] for fields in job.door.of("run-end")] == ["134"]
    assert job.door.of("run-saved") == []


def test_a_program_that_saves_too_late_runs_on_and_may_still_save(job: Job) -> None:
    program = LOOP.format(until=REQUESTED) + LOOP.format(until=f"not {REQUESTED}")
    process = job.start(
        program + LOOP.format(until="os.path.exists('go')") + SAVES + "sys.exit(85)"
    )
    job.door.wait_for("run-watch")
    job.door.want("w1", within_s=1.0)
    failed = job.door.wait_for("run-failed")
    assert failed["words"] == "no checkpoint within the grace period"
    assert process.poll() is None
    (job.folder / "go").touch()
    code, _, err = taken_over(job, process)
    assert code == 85
    assert err == (
        "pliant run: no checkpoint was made: no checkpoint within the grace period; "
        "the program runs on\n"
    )


def test_a_signal_that_would_kill_the_program_is_not_sent(job: Job) -> None:
    process = job.start(
        LOOP.format(until="os.path.exists('go')") + "print('alive')", "--signal", "USR1"
    )
    job.door.wait_for("run-watch")
    job.door.want("w1", within_s=1.0)
    assert "does not handle signal 10" in job.door.wait_for("run-failed")["words"]
    (job.folder / "go").touch()
    assert ended(process)[:2] == (0, "alive\n")


def test_a_wish_that_is_repeated_is_one(job: Job) -> None:
    program = (
        "told = []\nsignal.signal(signal.SIGUSR1, lambda *a: told.append(1))\n"
        + LOOP.format(until="os.path.exists('go')")
        + "print(len(told)); sys.exit(85)"
    )
    process = job.start(program, "--signal", "USR1")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    count = len(job.door.of("run-watch"))
    job.door.wait_for("run-watch", count + 3)
    (job.folder / "go").touch()
    assert taken_over(job, process)[:2] == (85, "1\n")


def test_a_wish_that_is_withdrawn_is_gone(job: Job) -> None:
    program = LOOP.format(until=REQUESTED) + "pathlib.Path('seen').write_text('1')\n"
    process = job.start(program + LOOP.format(until=f"not {REQUESTED}"))
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.wait_for_file("seen")
    job.door.want("")
    assert ended(process)[0] == 0


# Pliantd silent


def test_pliantd_that_comes_late_is_found(job: Job) -> None:
    job.door.close()
    process = job.start(LOOP.format(until="pliant.checkpoint_wanted()") + "pliant.checkpointed()")
    assert process.stderr is not None
    assert "the program runs all the same" in process.stderr.readline()
    job.door.open()
    job.door.wait_for("run-begin")
    job.door.want("w1")
    assert taken_over(job, process)[0] == 85


def saved_in_silence(job: Job) -> subprocess.Popen[str]:
    """Return a wrapper whose program has saved, and whose pliantd is away since."""
    program = LOOP.format(until=REQUESTED) + "pathlib.Path('seen').write_text('1')\n"
    again = "n = pathlib.Path('again')\nif n.exists(): print('again'); sys.exit(0)\nn.touch()\n"
    go_on = LOOP.format(until="os.path.exists('go')") + "sys.exit(85)"
    process = job.start(again + program + go_on)
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.wait_for_file("seen")
    job.door.close()
    (job.folder / "go").touch()
    return process


def test_where_pliantd_falls_silent_the_wrapper_requeues_its_own_job_once(job: Job) -> None:
    job.pliant = [sys.executable, "-c", HASTY]
    process = saved_in_silence(job)
    assert job.wait_for_file("requeues") == "requeue 4711\n"
    process.terminate()
    assert ended(process)[:2] == (85, "")
    assert job.requeues.read_text() == "requeue 4711\n"


def test_where_the_requeue_is_refused_the_program_goes_on_in_its_place(job: Job) -> None:
    job.scontrol("echo 'scontrol: error: Requested operation is presently disabled' >&2; exit 1")
    job.pliant = [sys.executable, "-c", HASTY]
    process = saved_in_silence(job)
    code, out, err = ended(process)
    assert (code, out) == (0, "again\n")
    assert "could not be requeued (" in err
    assert "presently disabled): the program goes on here" in err


def ends_once_slurm_said(job: Job, row: str) -> None:
    """Let it save in silence, and be ended once its wrapper has asked Slurm."""
    job.knows("squeue", "sh", "-c", f"echo '{row}'; touch {job.folder / 'asked'}")
    job.pliant = [sys.executable, "-c", HASTY]
    process = saved_in_silence(job)
    asked = (job.folder / "asked").exists
    wait_until(lambda: asked() or process.poll() is not None, "Slurm to be asked")
    process.terminate()
    assert ended(process)[:2] == (85, "")


@pytest.mark.parametrize("row", ["PENDING|BeginTime|10:00|1|", "COMPLETING|None|10:00|0|"])
def test_where_the_job_is_requeued_already_the_program_does_not_go_on(job: Job, row: str) -> None:
    """It may have begun elsewhere by now: Slurm says `Job is pending execution`."""
    job.scontrol("echo 'Job is pending execution for job 4711' >&2; exit 1")
    ends_once_slurm_said(job, row)


def test_where_slurm_does_not_know_the_job_any_more_the_program_does_not_go_on(job: Job) -> None:
    """Its slurmstepd was killed and its job cancelled some time ago: another may have its GPUs."""
    job.scontrol("echo 'Invalid job id specified for job 4711' >&2; exit 1")
    job.knows("squeue", "sh", "-c", "echo 'slurm_load_jobs error: Invalid job id' >&2; exit 1")
    job.pliant = [sys.executable, "-c", HASTY]
    assert ended(saved_in_silence(job))[:2] == (85, "")


def test_a_later_run_of_its_job_is_not_sent_back(job: Job) -> None:
    """Nobody has ended this one: its slurmstepd was killed, say."""
    ends_once_slurm_said(job, "RUNNING|None|10:00|1|")
    assert not job.requeues.exists()


def test_pliantd_that_is_back_in_time_takes_over(job: Job) -> None:
    process = saved_in_silence(job)
    job.door.open()
    assert taken_over(job, process)[0] == 85
    assert not job.requeues.exists()


# What it was started with


def test_files_that_were_opened_for_the_program_are(job: Job) -> None:
    """As by srun --mpi=pmi2, `exec 7>file`, `<(...)`, make -j."""
    job.pliant = ["sh", "-c", 'exec 7>kept; exec "$@"', "sh", *PLIANT]
    assert ended(job.start("os.write(7, b'whole')"))[0] == 0
    assert (job.folder / "kept").read_text() == "whole"


# Signals


ECHO = (
    "told = []\nsignal.signal(signal.SIGTERM, lambda *a: told.append(1))\n"
    "signal.signal(signal.SIGUSR1, lambda *a: told.append(1))\n"
    "pathlib.Path('ready').write_text('1')\n"
    + LOOP.format(until="told")
    + "time.sleep(0.5); print(len(told)); sys.exit(9)"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("whom", ["us", "all"])
def test_a_signal_reaches_the_program_once_whether_we_alone_get_it_or_all(
    job: Job, number: signal.Signals, whom: str
) -> None:
    words = ["setsid", *PLIANT, "run", "--", sys.executable, "-c", HEAD + ECHO]
    process = subprocess.Popen(
        words[1:],
        env=job.environment,
        cwd=job.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    job.started.append(process)
    job.wait_for_file("ready")
    job.door.wait_for("run-watch")
    if whom == "us":
        process.send_signal(number)
    else:
        os.killpg(process.pid, number)
    assert ended(process)[:2] == (9, "1\n")
    termed = "1" if number == signal.SIGTERM else "0"
    assert [fields["termed"] for fields in job.door.of("run-end")] == [termed]


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGXCPU, signal.SIGRTMIN + 2])
def test_every_other_signal_is_the_programs_too(job: Job, number: int) -> None:
    told = f"told = []\nsignal.signal({int(number)}, lambda *a: told.append(1))\n"
    ready = "pathlib.Path('ready').write_text('1')\n"
    process = job.start(f"{told}{ready}{LOOP.format(until='told')}sys.exit(9)")
    job.wait_for_file("ready")
    job.door.wait_for("run-watch")
    process.send_signal(number)
    assert ended(process)[0] == 9


def test_why_a_program_is_ended_is_said_also_where_it_ends_at_once(job: Job) -> None:
    squeue = job.bin / "squeue"
    squeue.write_text("#!/bin/sh\nsleep 0.5\necho 'COMPLETING|None|0:57|0|'\n")
    squeue.chmod(0o755)
    process = job.start_argv(["--", "sleep", "1000"], {})
    job.door.wait_for("run-watch")
    process.terminate()
    assert ended(process) == (
        143,
        "",
        "pliant run: the program was sent TERM: it is cancelled\n",
    )


def test_after_a_term_no_checkpoint_is_asked_for(job: Job) -> None:
    program = "signal.signal(signal.SIGTERM, lambda *a: pathlib.Path('termed').write_text('1'))\n"
    process = job.start(
        program
        + "pathlib.Path('ready').write_text('1')\n"
        + LOOP.format(until="os.path.exists('go')")
        + f"print({REQUESTED})"
    )
    job.wait_for_file("ready")
    job.door.wait_for("run-watch")
    process.terminate()
    job.wait_for_file("termed")
    job.door.want("w1")
    count = len(job.door.of("run-watch"))
    job.door.wait_for("run-watch", count + 2)
    (job.folder / "go").touch()
    code, out, err = ended(process)
    assert (code, out) == (0, "False\n")
    assert err.startswith("pliant run: the program was sent TERM")


def test_where_the_wrapper_is_killed_the_program_is_told_to_end(job: Job) -> None:
    program = "signal.signal(signal.SIGTERM, lambda *a: pathlib.Path('termed').write_text('1'))\n"
    process = job.start(
        program
        + "pathlib.Path('ready').write_text('1')\n"
        + LOOP.format(until="os.path.exists('termed')")
    )
    job.wait_for_file("ready")
    process.kill()
    job.wait_for_file("termed")


@pytest.mark.parametrize("termed", [False, True])
def test_a_mistake_of_our_own_leaves_the_program_as_if_by_itself(job: Job, termed: bool) -> None:
    broken = "import pliant.node.wrapper as w; w.Wrapper.run = lambda self: 1 // 0\n"
    job.pliant = [sys.executable, "-c", f"{broken}from pliant.entry import main; main()"]
    program = "pathlib.Path('ready').write_text('1')\n" + LOOP.format(until="os.path.exists('go')")
    process = job.start(program + "sys.exit(7)")
    job.wait_for_file("ready")
    assert process.stderr is not None
    assert "a mistake of Pliant's own (ZeroDivisionError" in process.stderr.readline()
    if termed:
        process.terminate()
    else:
        (job.folder / "go").touch()
    assert ended(process)[0] == (143 if termed else 7)


# Its private directory is gone

LOSES = (
    "import shutil\n"
    "where = pathlib.Path(os.environ['PLIANT_CHECKPOINT_REQUESTED']).parent\n"
    "def beat(step):\n    pliant.heartbeat(step)\n    time.sleep(0.02)\n    return step + 1\n"
    "step = 1\nwhile not os.path.exists('go'): step = beat(step)\n"
)
SAVES_BEATING = "while not pliant.checkpoint_wanted(): step = beat(step)\npliant.checkpointed()"
FOREIGN = "where.symlink_to('/')"


def test_a_program_whose_directory_is_gone_is_told_and_heard_in_a_new_one(job: Job) -> None:
    process = job.start(LOSES + "shutil.rmtree(where)\nstep = 10**6\n" + SAVES_BEATING)
    job.door.wait_for("run-watch")
    (job.folder / "go").touch()
    wait_until(lambda: int(job.door.of("run-watch")[-1]["step"] or 0) > 10**6, "its heartbeats")
    job.door.want("w1")
    assert taken_over(job, process) == (85, "", "")
    assert list((job.folder / "tmp").iterdir()) == []


def test_what_was_asked_in_one_that_is_gone_is_asked_again(job: Job) -> None:
    process = job.start(
        LOOP.format(until=REQUESTED) + LOSES + "shutil.rmtree(where)\n" + SAVES_BEATING
    )
    (job.folder / "go").touch()
    job.door.wait_for("run-watch")
    job.door.want("w1")
    assert taken_over(job, process)[0] == 85


def test_where_none_can_be_made_the_program_counts_as_not_told_and_not_as_silent(job: Job) -> None:
    process = job.start(
        LOSES + f"shutil.rmtree(where)\n{FOREIGN}\nwhile not os.path.exists('end'): pass"
    )
    wait_until(lambda: any(said["step"] for said in job.door.of("run-watch")), "its heartbeats")
    (job.folder / "go").touch()
    wait_until(lambda: job.door.of("run-watch")[-1]["step"] == "", "that it is heard no more")
    job.door.want("w1", within_s=600.0)
    failed = job.door.wait_for("run-failed")
    assert (failed["words"], failed["untold"]) == (
        "the program could not be told (File exists)",
        "1",
    )
    (job.folder / "end").touch()
    code, _, err = ended(process)
    assert code == 0
    lost, untold = err.splitlines()
    assert lost.endswith(
        " is gone and cannot be made again (File exists): the program is neither told nor heard"
    )
    assert untold == (
        "pliant run: no checkpoint was made: the program could not be told (File exists); "
        "it runs on"
    )


def test_a_request_that_cannot_be_written_counts_as_not_told(job: Job) -> None:
    """On a full disk, say."""
    process = job.start(
        "where = pathlib.Path(os.environ['PLIANT_CHECKPOINT_REQUESTED']).parent\n"
        "(where / 'new').mkdir()\npathlib.Path('ready').write_text('1')\n" + LOOP.format(until=GO)
    )
    job.wait_for_file("ready")
    job.door.wait_for("run-watch")
    job.door.want("w1", within_s=600.0)
    assert job.door.wait_for("run-failed")["untold"] == "1"
    (job.folder / "go").touch()
    assert ended(process)[0] == 0


def test_where_the_first_task_cannot_be_told_the_others_are_not_asked_either(job: Job) -> None:
    program = LOSES + "if os.environ['SLURM_PROCID'] == '0':\n    shutil.rmtree(where)\n    "
    program += f"{FOREIGN}\nwhile not os.path.exists('end'): pass"
    step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}
    tasks = [job.start(program, SLURM_PROCID=str(rank), **step) for rank in range(2)]
    wait_until(lambda: any(said["step"] for said in job.door.of("run-watch")), "its heartbeats")
    (job.folder / "go").touch()
    wait_until(lambda: job.door.of("run-watch")[-1]["step"] == "", "that it is heard no more")
    job.door.want("w1", within_s=600.0)
    assert job.door.wait_for("run-failed")["untold"] == "1"
    told = next((job.folder / "pliant-4711").glob(".pliant-*/told"))
    wait_until(lambda: '"again"' in told.read_text(), "the others to be told")
    (job.folder / "end").touch()
    assert [ended(task)[0] for task in tasks] == [0, 0]


# Several tasks of a step


def test_all_tasks_of_a_step_save_and_end_together(job: Job) -> None:
    program = (
        LOOP.format(until="pliant.checkpoint_wanted()")
        + "pathlib.Path('rank' + os.environ['SLURM_PROCID']).write_text('1')\npliant.checkpointed()"
    )
    tasks = [
        job.start(program, SLURM_PROCID=str(rank), SLURM_STEP_NUM_TASKS="3") for rank in range(3)
    ]
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.door.wait_for("run-saved")
    assert [(job.folder / f"rank{rank}").exists() for rank in range(3)] == [True, True, True]
    assert [task.poll() for task in tasks] == [None, None, None]
    tasks[0].terminate()
    assert [ended(task)[0] for task in tasks] == [85, 85, 85]
    assert len(job.door.of("run-begin")) == 1
    assert list((job.folder / "pliant-4711").iterdir()) == []


def test_all_tasks_are_told_by_the_signal_that_pliantd_knows(job: Job) -> None:
    job.door.answers["run-begin"] = RunAnswer(run=0, signal="USR1")
    step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0"}
    tasks = [job.start(WAYS["signal"][1], SLURM_PROCID=str(rank), **step) for rank in range(2)]
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.door.wait_for("run-saved")
    tasks[0].terminate()
    assert [ended(task)[0] for task in tasks] == [85, 85]


def test_a_task_that_cannot_save_lets_the_step_fail(job: Job) -> None:
    """And what a step before it has left does not count for it."""
    stale = job.folder / "pliant-4711" / ".pliant-4711-0-0"
    stale.mkdir(mode=0o700, parents=True)
    (stale / "ended-1").write_text("- 0")
    program = (
        LOOP.format(until="pliant.checkpoint_wanted()")
        + "if os.environ['SLURM_PROCID'] == '1': time.sleep(0.5); sys.exit(7)\n"
        + "pliant.checkpointed()"
    )
    step = {"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_ID": "1"}
    tasks = [job.start(program, SLURM_PROCID=str(rank), **step) for rank in range(3)]
    job.door.wait_for("run-watch")
    job.door.want("w1")
    words = "pliant run: task 1 has not saved, it ended with exit code 7: the job is not requeued\n"
    assert [ended(task)[0::2] for task in tasks] == [(7, words), (7, ""), (7, "")]
    assert job.door.of("run-saved") == []
    assert [said["code"] for said in job.door.of("run-end")] == ["7"]
    assert not job.requeues.exists()


# Two wrappers of one job


SEVERAL = (
    "pliant run: another `pliant run` of this job speaks to pliantd: "
    "neither is asked for checkpoints; one for each job, or one srun of it\n"
)


def test_two_wrappers_of_one_job_have_each_a_word_of_its_own_and_say_it_always(job: Job) -> None:
    two = [job.start(LOOP.format(until=GO)) for _ in range(2)]
    job.door.wait_for("run-watch", 4)
    (job.folder / "go").touch()
    assert [ended(one) for one in two] == [(0, "", ""), (0, "", "")]
    words = [{said["word"] for said in job.door.of(verb)} for verb in ("run-begin", "run-end")]
    assert (len(words[0]), words[0] == words[1]) == (2, True)
    assert {said["word"] for said in job.door.of("run-watch")} <= words[0]


def test_one_that_is_not_alone_says_so_once_also_to_the_next_pliantd(job: Job) -> None:
    job.door.wish = RunAnswer(several=True)
    process = job.start(LOOP.format(until=GO))
    job.door.wait_for("run-watch")
    job.door.refuses = frozenset({"run-watch"})
    job.door.wait_for("run-begin", 2)
    job.door.refuses = frozenset()
    (job.folder / "go").touch()
    assert ended(process) == (0, "", SEVERAL)
    assert [said["others"] for said in job.door.of("run-begin")][:2] == ["0", "1"]


@pytest.mark.parametrize("learns", ["while it saves", "by its report"])
def test_a_checkpoint_of_one_that_is_not_alone_leads_to_nothing_and_it_goes_on(
    job: Job, learns: str
) -> None:
    again = "n = pathlib.Path('again')\nif n.exists(): print('again'); sys.exit(0)\nn.touch()\n"
    program = LOOP.format(until=REQUESTED) + "pathlib.Path('seen').write_text('1')\n"
    process = job.start(again + program + LOOP.format(until=GO) + "sys.exit(85)")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.wait_for_file("seen")
    if learns == "while it saves":
        job.door.wish = RunAnswer(several=True)
        assert process.stderr is not None
        assert process.stderr.readline() == SEVERAL
    else:
        job.door.wait_for("run-watch", len(job.door.of("run-watch")) + 1)
        job.door.answers["run-saved"] = RunAnswer("w1", until_s=2e9, several=True)
    (job.folder / "go").touch()
    code, out, err = ended(process)
    on = "pliant run: the program goes on here\n"
    assert (code, out, err) == (0, "again\n", on if learns == "while it saves" else SEVERAL + on)
    assert (job.door.of("run-saved") == []) is (learns == "while it saves")
    assert not job.requeues.exists()


@pytest.mark.parametrize("told", ["at once", "later"])
def test_a_program_that_pliantd_leaves_where_it_is_goes_on_there(job: Job, told: str) -> None:
    again = "n = pathlib.Path('again')\nif n.exists(): print('again'); sys.exit(0)\nn.touch()\n"
    process = job.start(again + LOOP.format(until=REQUESTED) + "sys.exit(85)")
    job.door.wait_for("run-watch")
    job.door.answers["run-saved"] = RunAnswer(stays=told == "at once")
    job.door.want("w1")
    if told == "later":  # its requeue was refused
        job.door.wait_for("run-saved")
        job.door.wish = RunAnswer(stays=True)
    code, out, err = ended(process)
    words = (
        "the job could not be requeued (it could not start again now, or is to stay, pliantd says)"
    )
    assert (code, out, err) == (0, "again\n", f"pliant run: {words}: the program goes on here\n")
    assert not job.requeues.exists()


# A program that is to go on where it is, and cannot be started


def cannot_start_again(job: Job) -> tuple[subprocess.Popen[str], str]:
    """Return a wrapper whose program is to go on in place and is gone, and what it says of that."""
    job.pliant = [sys.executable, "-c", BRIEF]
    job.door.answers["run-saved"] = RunAnswer(stays=True)
    program = job.folder / "train"
    again = "n = pathlib.Path('again')\nif n.exists(): print('again'); sys.exit(0)\nn.touch()\n"
    saves = LOOP.format(until=REQUESTED) + "os.rename('train', 'away'); sys.exit(85)"
    program.write_text(f"#!{sys.executable}\n{HEAD}{again}{saves}")
    program.chmod(0o755)
    process = job.start_argv(["--", str(program)], {})
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.door.wait_for("run-saved")
    assert process.stderr is not None
    assert "the program goes on here" in process.stderr.readline()
    return process, process.stderr.readline()


def test_a_program_that_is_back_soon_goes_on_where_it_is(job: Job) -> None:
    process, says = cannot_start_again(job)
    words = "the program could not be started again (No such file or directory)"
    assert says == f"pliant run: {words}: it is tried for 2 s\n"
    job.door.want("")
    (job.folder / "away").rename(job.folder / "train")
    assert ended(process) == (0, "again\n", "pliant run: the program was started again\n")
    assert not job.requeues.exists()


def test_a_job_whose_program_cannot_be_started_again_is_requeued(job: Job) -> None:
    process, _ = cannot_start_again(job)
    assert job.wait_for_file("requeues") == "requeue 4711\n"
    process.terminate()
    words = "the program cannot be started again (No such file or directory)"
    assert ended(process) == (85, "", f"pliant run: {words}: the job goes back to the queue\n")


def test_where_that_is_refused_it_ends_as_a_program_that_is_not_there(job: Job) -> None:
    job.scontrol("echo 'scontrol: error: Requested operation is presently disabled' >&2; exit 1")
    process, _ = cannot_start_again(job)
    code, out, err = ended(process)
    words = "the job could not be requeued (Requested operation is presently disabled)"
    assert (code, out) == (127, "")
    assert err.splitlines()[1:] == [f"pliant run: {words}; its checkpoint stays"]
    assert job.door.of("run-end")[0]["code"] == "127"


def test_where_nothing_can_be_opened_any_more_nobody_waits_for_ever(job: Job) -> None:
    """Not even what a requeue takes."""
    job.pliant = [sys.executable, "-c", BRIEF]
    job.door.answers["run-saved"] = RunAnswer(stays=True)
    process = job.start(LOOP.format(until=REQUESTED) + LOOP.format(until=GO) + "sys.exit(85)")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.door.wait_for("run-watch", 2)
    guardian = psutil.Process(process.pid)
    (wrapper,) = (one for one in guardian.children() if one.cmdline() == guardian.cmdline())
    resource.prlimit(wrapper.pid, resource.RLIMIT_NOFILE, (3, 3))
    (job.folder / "go").touch()
    code, out, err = ended(process)
    assert (code, out) == (126, "")
    assert "the program cannot be started again (Too many open files)" in err


# Programs that requeue their own job


OWN = (
    "import subprocess\ntold = []\nsignal.signal(signal.SIGUSR2, lambda *a: told.append(1))\n"
    + LOOP.format(until="told")
    + SAVES
    + "code = subprocess.run(['scontrol', 'requeue', {name}]).returncode\n{then}"
)
GOES_ON = (
    "signal.signal(signal.SIGTERM, lambda *a: pathlib.Path('termed').write_text('1'))\n"
    + LOOP.format(until="os.path.exists('termed')")
    + "sys.exit(1)"
)


@pytest.mark.parametrize("then", ["sys.exit(255)", GOES_ON], ids=["ends", "goes on"])
@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "array"])
def test_one_that_requeues_its_job_when_it_is_asked_has_saved(
    job: Job, name: str, then: str
) -> None:
    job.environment |= {"SLURM_ARRAY_JOB_ID": "47", "SLURM_ARRAY_TASK_ID": "3"}
    called = "'47_3'" if name == "array" else "os.environ['SLURM_JOB_ID']"
    process = job.start(OWN.format(name=called, then=then), "--signal", "USR2")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    assert job.door.wait_for("run-saved")["wish"] == "w1"
    assert taken_over(job, process)[0] == 85
    assert not job.requeues.exists()


@pytest.mark.parametrize(("array", "called"), [("47", "4711"), ("4711", "4711_3")])
def test_a_job_requeues_itself_alone_whatever_array_it_is_of(
    job: Job, array: str, called: str
) -> None:
    """One submitted from an array task inherits SLURM_ARRAY_*; task 3 may have the array's number."""
    job.environment |= {"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": "3"}
    job.pliant = [sys.executable, "-c", HASTY]
    process = saved_in_silence(job)
    assert job.wait_for_file("requeues") == f"requeue {called}\n"
    process.terminate()
    assert ended(process)[0] == 85
    assert {said["job"] for said in job.door.of("run-watch")} == {"4711"}


def test_nothing_is_left_of_a_requeue_for_a_program_that_is_started_again(job: Job) -> None:
    job.scontrol("exit 1")
    job.pliant = [sys.executable, "-c", HASTY]
    again = "n = pathlib.Path('again')\nif n.exists(): time.sleep(2.5); sys.exit(7)\nn.touch()\n"
    own = OWN.format(name="'4711'", then="sys.exit(255)")
    process = job.start(again + own, "--signal", "USR2")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.wait_for_file("saved")
    job.door.close()
    assert ended(process)[0] == 7
    assert job.requeues.read_text() == "requeue 4711\n"


def test_nothing_on_the_programs_path_is_made_for_this_job_alone(job: Job) -> None:
    """A job that is submitted from within inherits it, and anybody may make what is gone."""
    told = ended(
        job.start("print(os.environ['PATH'], os.environ['PYTHONPATH'])", "--signal", "USR2")
    )
    assert told[0] == 0
    places = told[1].strip().replace(" ", ":").split(":")
    assert places[0].endswith("/wrappers/requeue")
    assert [place for place in places if place.startswith(str(job.folder / "tmp"))] == []


SAYS_IT = "import subprocess; subprocess.run([{words}]); sys.exit(85)"


@pytest.mark.parametrize("words", ["'requeue', '4712'", "'show', 'job', '4711'", "'requeue'"])
def test_all_else_that_is_said_to_scontrol_is_said_to_slurms(job: Job, words: str) -> None:
    program = LOOP.format(until=REQUESTED) + SAYS_IT.format(words=f"'scontrol', {words}")
    process = job.start(program, "--signal", "USR2")
    job.door.wait_for("run-watch")
    job.door.want("w1")
    job.wait_for_file("requeues")
    taken_over(job, process)
    assert job.requeues.read_text().split() == [word.strip("' ") for word in words.split(",")]


def test_a_requeue_that_nobody_asked_for_is_slurms(job: Job) -> None:
    code, _, _ = ended(
        job.start(SAYS_IT.format(words="'scontrol', 'requeue', '4711'"), "--signal", "USR2")
    )
    assert (code, job.requeues.read_text()) == (85, "requeue 4711\n")


def test_a_program_that_asked_for_no_signal_finds_its_own_path(job: Job) -> None:
    code, out, _ = ended(job.start("print(os.environ['PATH'])"))
    assert (code, out) == (0, f"{job.environment['PATH']}\n")


# Directories


def test_the_checkpoint_directory_is_the_users_alone_and_stays_where_it_is_used(job: Job) -> None:
    program = "pathlib.Path(os.environ['PLIANT_CHECKPOINT_DIR'], 'x').touch()"
    ended(job.start(program))
    made = job.folder / "pliant-4711"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert [path.name for path in made.iterdir()] == ["x"]


def test_a_checkpoint_directory_may_be_named(job: Job) -> None:
    process = job.start("print(os.environ['PLIANT_CHECKPOINT_DIR'])", "--checkpoint-dir", "here")
    assert ended(process)[:2] == (0, f"{job.folder}/here\n")


def test_a_job_from_a_directory_that_its_user_may_not_write_saves_at_home(job: Job) -> None:
    home = job.folder / "home"
    job.environment |= {"SLURM_SUBMIT_DIR": "/proc", "HOME": str(home)}
    code, out, err = ended(job.start("print(os.environ['PLIANT_CHECKPOINT_DIR'])"))
    assert (code, out) == (0, f"{home}/pliant-4711\n")
    said = f"pliant run: /proc/pliant-4711 cannot be made: checkpoints go to {home}/pliant-4711"
    assert said in err.splitlines()
    assert (home / "pliant-4711").is_dir()


def test_of_a_named_directory_that_cannot_be_made_it_is_said(job: Job) -> None:
    process = job.start("print(os.environ['PLIANT_CHECKPOINT_DIR'])", "--checkpoint-dir", "/proc/x")
    code, out, err = ended(process)
    assert (code, out) == (0, "/proc/x\n")
    assert "pliant run: /proc/x cannot be made (No such file or directory)" in err


@pytest.mark.parametrize("words", [("--checkpoint-dir", "shared"), ()])
def test_a_checkpoint_directory_is_taken_from_nobody(job: Job, words: tuple[str, ...]) -> None:
    """Another wrapper of this job, or another job, may be about to save there."""
    other = job.start(LOOP.format(until=GO), *words)
    job.door.wait_for("run-watch")
    assert ended(job.start("", *words))[0] == 0
    assert (job.folder / ("shared" if words else "pliant-4711")).is_dir()
    (job.folder / "go").touch()
    ended(other)


def test_a_job_that_is_submitted_from_within_does_not_save_where_this_one_does(job: Job) -> None:
    where = "print(os.environ['PLIANT_CHECKPOINT_DIR'])"
    inner = [*PLIANT, "run", "--", sys.executable, "-c", HEAD + where]
    as_job = "import subprocess; sys.stdout.flush(); subprocess.run({}, env={{**os.environ, **{}}})"
    for words in ((), ("--checkpoint-dir", "here")):
        process = job.start(f"{where}\n{as_job.format(inner, {'SLURM_JOB_ID': '4712'})}", *words)
        first = "here" if words else "pliant-4711"
        said = f"{job.folder}/{first}\n{job.folder}/pliant-4712\n"
        assert ended(process)[:2] == (0, said)
    process = job.start(where, PLIANT_CHECKPOINT_DIR="/tmp", SLURM_JOB_ID="4712")
    assert ended(process)[:2] == (0, "/tmp\n")


# `import pliant` in the program's own Python


OURS = str(ROOT / "wrappers" / "python")
BARE = (sys.executable, "-S")  # without our packages
IMPORTS = "import pliant, sys; print(pliant.__all__, pliant.program.__file__)"


def bare(job: Job, *program: str, path: str | None = None, job_id: str = "4711") -> str:
    """Return what a program says whose Python has no pliant."""
    job.environment["SLURM_JOB_ID"] = job_id
    del job.environment["PYTHONPATH"]
    job.pliant = [sys.executable, "-c", FROM_SOURCE]
    given = {} if path is None else {"PYTHONPATH": path}
    code, out, err = ended(job.start_argv(["--", *program], given))
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize("path", [None, "", "/not/there", "/not/there:"])
@pytest.mark.parametrize("job_id", ["4711", ""])
def test_a_program_whose_python_has_no_pliant_imports_it(
    job: Job, path: str | None, job_id: str
) -> None:
    says = f"{pliant.__all__} {ROOT}/src/pliant/program.py\n"
    assert bare(job, *BARE, "-c", IMPORTS, path=path, job_id=job_id) == says
    assert list((job.folder / "tmp").iterdir()) == []


def test_a_program_that_imports_pliant_so_is_asked_and_heard(job: Job) -> None:
    del job.environment["PYTHONPATH"]
    job.pliant = [sys.executable, "-c", FROM_SOURCE]
    program = "pliant.heartbeat(3)\n" + LOOP.format(until="pliant.checkpoint_wanted()")
    program = f"{HEAD}{program}pliant.checkpointed()"
    process = job.start_argv(["--", *BARE, "-c", program], {})
    wait_until(lambda: any(f["step"] == "3" for f in job.door.of("run-watch")), "a heartbeat")
    job.door.want("w1")
    assert taken_over(job, process)[0] == 85


def test_the_programs_own_pliant_wins_wherever_it_is(job: Job) -> None:
    own = job.folder / "own"
    (own / "pliant").mkdir(parents=True)
    (own / "pliant" / "__init__.py").write_text("from pliant.more import whose\n")
    (own / "pliant" / "more.py").write_text("whose = __file__\n")
    program = "import pliant; print(pliant.whose, pliant.__file__)"
    says = f"{own}/pliant/more.py {own}/pliant/__init__.py\n"
    assert bare(job, *BARE, "-c", program, path=str(own)) == says
    later = f"import sys; sys.path.append({str(own)!r}); {program}"  # as site-packages are
    job.environment["PYTHONPATH"] = ""
    assert bare(job, *BARE, "-c", later) == says


def test_it_stands_last_on_the_path_and_once(job: Job) -> None:
    again = [sys.executable, "-c", FROM_SOURCE, "run", "--", "printenv", "PYTHONPATH"]
    assert bare(job, *again, path="/a:/b") == f"/a:/b:{OURS}\n"


def test_pliants_own_commands_run_inside_a_job_too(job: Job) -> None:
    says = bare(job, sys.executable, "-c", "from pliant.cli import main; main()", "--version")
    assert says == f"pliant {pliant.__version__}\n"


def test_a_directory_of_that_name_is_no_pliant(job: Job) -> None:
    (job.folder / "pliant").mkdir()
    assert bare(job, *BARE, "-c", IMPORTS).startswith(f"{pliant.__all__}")


def is_for_checkers(part: ast.stmt) -> bool:
    """Whether no Python ever comes here."""
    return isinstance(part, ast.If) and getattr(part.test, "id", "") == "TYPE_CHECKING"


@pytest.mark.parametrize("name", ["src/pliant/__init__.py", "src/pliant/program.py", OURS])
def test_what_programs_import_is_written_for_their_old_pythons_too(name: str) -> None:
    path = ROOT / name / "pliant" / "__init__.py" if name == OURS else ROOT / name
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    nodes = [n for part in tree.body if not is_for_checkers(part) for n in ast.walk(part)]
    modules = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    modules |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    assert modules <= {"importlib.machinery", "os", "pliant.program", "sys", "time"}
