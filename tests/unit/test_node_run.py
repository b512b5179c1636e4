"""``pliant run`` with real programs, beside a fake pliantd: what each program sees and says."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_door import FakeDoor, munge_program, wait_until

ROOT = Path(__file__).parents[2]
PLIANT = [sys.executable, "-c", "from pliant.cli import main; main()"]
HASTY = "import pliant.node.core as core; core.SILENT_S = 3.0; from pliant.cli import main; main()"
COUNT = str(ROOT / "docs" / "examples" / "count.py")
SCONTROL = '#!/bin/sh\necho "$@" >>{log}\n{then}\n'

LOOP = "while not {until}: time.sleep(0.02)\n"
HEAD = "import os, pathlib, signal, sys, time, pliant\n"
REQUESTED = "os.path.exists(os.environ['PLIANT_CHECKPOINT_REQUESTED'])"


class Job:
    """A job's script on its only node: `pliant run` as a process, and its surroundings."""

    def __init__(self, folder: Path, door: FakeDoor) -> None:
        self.folder, self.door = folder, door
        self.bin = folder / "bin"
        self.requeues = folder / "requeues"
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "src"),
            "TMPDIR": str(folder / "tmp"),
            "PLIANT_CONFIG": str(folder / "pliant.toml"),
            "SLURM_JOB_ID": "4711",
            "SLURM_SUBMIT_DIR": str(folder),
        }
        self.pliant = PLIANT
        self.started: list[subprocess.Popen[str]] = []
        (folder / "tmp").mkdir()
        self.bin.mkdir()
        munge_program(self.bin)
        self.scontrol("exit 0")

    def scontrol(self, then: str) -> None:
        """Let scontrol write down what it is asked, and do something then."""
        program = self.bin / "scontrol"
        program.write_text(SCONTROL.format(log=self.requeues, then=then))
        program.chmod(0o755)

    def start(self, program: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Run a Python program under `pliant run`."""
        return self.start_argv([*options, "--", sys.executable, "-c", HEAD + program], environment)

    def start_argv(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.pliant, "run", *words],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        self.started.append(process)
        return process

    def wait_for_file(self, name: str) -> str:
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text() != "", f"{name} is written")
        return path.read_text()

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    door = FakeDoor(tmp_path)
    door.open()
    one = Job(tmp_path, door)
    yield one
    one.end()
    door.close()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


TAKEN_OVER = "run-saved"


def taken_over(job: Job, process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Do what a requeue does to the wrapper, once its checkpoint was reported."""
    job.door.wait_for(TAKEN_OVER)
    process.terminate()
    return ended(process)


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


def test_another_wrapper_inside_is_none(job: Job) -> None:
    inner = f"os.execvp({sys.executable!r}, {[*PLIANT, 'run', '--', 'sh', '-c', 'exit 5']!r})"
    job.start(inner).wait()
    job.door.wait_for("run-end")
    assert [fields["code"] for fields in job.door.of("run-end")] == ["5"]


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
    who = {"job": "4711", "run": "3"}
    assert begun == {**who, "host": os.uname().nodename, "grace": "120", "signal": ""}
    watched = next(fields for fields in job.door.of("run-watch") if fields["step"] == "7")
    assert watched == {**who, "known": "", "step": "7", "rate": "", "launched": "1"}
    assert job.door.of("run-end") == [{**who, "code": "0", "termed": "0"}]


def test_what_the_job_said_at_submission_counts(job: Job) -> None:
    option = {"SLURM_SPANK__SLURM_SPANK_OPTION_pliant_malleable": "grace=90,signal=USR2"}
    process = job.start(LOOP.format(until="os.path.exists('go')"), **option)
    begun = job.door.wait_for("run-begin")
    (job.folder / "go").touch()
    ended(process)
    assert (begun["grace"], begun["signal"]) == ("90", "USR2")


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
    assert saved.keys() == {"job", "run", "wish", "took", "step"}
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


def test_pliantd_that_is_back_in_time_takes_over(job: Job) -> None:
    process = saved_in_silence(job)
    job.door.open()
    assert taken_over(job, process)[0] == 85
    assert not job.requeues.exists()


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
    assert job.wait_for_file("termed") == "1"


@pytest.mark.parametrize("termed", [False, True])
def test_a_mistake_of_our_own_leaves_the_program_as_if_by_itself(job: Job, termed: bool) -> None:
    broken = "import pliant.node.wrapper as w; w.Wrapper.run = lambda self: 1 // 0\n"
    job.pliant = [sys.executable, "-c", f"{broken}from pliant.cli import main; main()"]
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
    assert list(job.folder.glob("pliant-4711*")) == []


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


# The example


def test_the_counting_example_goes_on_where_it_was(job: Job) -> None:
    words = ["--", sys.executable, COUNT, "400", "count", "0.01"]
    for run in range(2):
        process = job.start_argv(words, {"SLURM_RESTART_COUNT": str(run)})
        wait_until(lambda run=run: len(job.door.of("run-begin")) > run, "a run begins")  # type: ignore[misc]
        job.door.want(f"w{run}")
        job.door.wait_for("run-saved", run + 1)
        process.terminate()
        assert ended(process)[0] == 85
        job.door.want("")
    code, out, _ = ended(job.start_argv(words, {"SLURM_RESTART_COUNT": "2"}))
    checksum = 0
    for step in range(1, 401):
        checksum = (checksum * 31 + step) % (2**61 - 1)
    assert (code, out) == (0, f"400 {checksum}\n")
