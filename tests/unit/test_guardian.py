"""The guardian of ``pliant run``: whatever becomes of the wrapper, the job ends as its program."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fake_door import wait_until
from limits import HANG_S
from pliant.node.copies import AT_ONCE_S, Copies
from pliant.node.guardian import Guardian
from wrapped_job import ROOT, Job, ended, wrapped_job

BEGAN = "pathlib.Path('pid').write_text(str(os.getpid()))\n"
WAITS = BEGAN + "while not os.path.exists('go'): time.sleep(0.02)\n"
COUNTS = """
told = []
signal.signal(signal.SIGTERM, lambda *a: told.append(1))
pathlib.Path('pid').write_text(str(os.getpid()))
while not told: time.sleep(0.02)
time.sleep(0.6)
print(f"told {len(told)}", flush=True)
sys.exit(3)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        yield one


def _program(job: Job) -> psutil.Process:
    return psutil.Process(int(job.wait_for_file("pid")))


def _wrapper(process: subprocess.Popen[str], program: psutil.Process) -> psutil.Process:
    children = [*psutil.Process(process.pid).children()]
    assert program in children
    return next(child for child in children if child.cmdline() == _guardian(process))


def _guardian(process: subprocess.Popen[str]) -> list[str]:
    return psutil.Process(process.pid).cmdline()


def _kill_wrapper(job: Job, process: subprocess.Popen[str], number: int = signal.SIGKILL) -> str:
    """End the wrapper; return the line that says so."""
    program = _program(job)
    _wrapper(process, program).send_signal(number)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert program.is_running()
    return line


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@pytest.mark.parametrize(("end", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)])
def test_where_the_wrapper_is_killed_the_job_ends_as_its_program(
    job: Job, number: int, end: str, code: int
) -> None:
    process = job.start(WAITS + end)
    line = _kill_wrapper(job, process, number)
    assert line == f"pliant run: its wrapper was killed by signal {number}: the program runs on\n"
    (job.folder / "go").touch()
    assert ended(process) == (code, "", "")


@pytest.mark.parametrize("has_job", [True, False])
def test_a_script_that_ignores_the_ends_of_its_children_learns_of_the_exit_code(
    job: Job, has_job: bool
) -> None:
    """``trap '' CHLD; exec pliant run …``: the program ignores them too, as it would without us."""
    if not has_job:
        del job.environment["SLURM_JOB_ID"]
    says = "print(signal.getsignal(signal.SIGCHLD).name, flush=True); sys.exit(7)"
    deaf = "import os, signal, sys; signal.signal(17, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    job.pliant = [sys.executable, "-c", deaf, *job.pliant]
    assert ended(job.start(says))[:2] == (7, "SIG_IGN\n")


GUARDIAN_KILLED = "pliant run: its guardian was killed: the program is told to end\n"


def test_where_the_guardian_is_killed_the_program_is_told_to_end_and_so_is_pliantd(
    job: Job,
) -> None:
    process = job.start(COUNTS)
    program = _program(job)
    wrapper = _wrapper(process, program)
    job.door.wait_for("run-watch")
    process.kill()
    assert (process.stdout is not None) and (process.stderr is not None)
    assert process.stderr.readline() == GUARDIAN_KILLED
    assert process.stdout.readline() == "told 1\n"
    said = job.door.wait_for("run-end")
    assert (said["code"], said["termed"]) == ("137", "1")
    wait_until(lambda: not wrapper.is_running(), "the wrapper to end too")
    assert not list((job.folder / "tmp").iterdir())


def test_where_the_guardian_is_killed_whose_program_has_saved_pliantd_hears_of_the_checkpoint(
    job: Job,
) -> None:
    waits = "while not pliant.checkpoint_wanted(): time.sleep(0.02)\n"
    process = job.start(waits + BEGAN + "pliant.checkpointed()")
    job.door.wait_for("run-watch")
    process.send_signal(signal.SIGSTOP)  # so that it does not tell how the program ended
    job.door.want("w1")
    program = _program(job)
    wait_until(lambda: program.status() == psutil.STATUS_ZOMBIE, "the program to end")
    process.kill()
    assert job.door.wait_for("run-saved")["wish"] == "w1"
    assert process.stderr is not None
    assert process.stderr.readline() == GUARDIAN_KILLED
    assert not job.requeues.exists()


def test_where_both_are_killed_the_program_is_told_to_end(job: Job) -> None:
    process = job.start(COUNTS)
    _kill_wrapper(job, process)
    process.kill()
    assert process.stdout is not None
    assert process.stdout.readline() == "told 1\n"


KILLED_AT_ONCE = """
import ctypes, os, signal, time
from pliant.node.bystander import bystander
prctl = ctypes.CDLL(None).prctl
guardian = os.getpid()

def late(*words):
    print(os.getpid(), flush=True)
    while os.getppid() == guardian: time.sleep(0.01)
    prctl(*words)

bystander(late)
signal.pause()
"""


def test_a_bystander_ends_whose_guardian_is_killed_as_it_begins() -> None:
    env = {"PYTHONPATH": str(ROOT / "src")}
    argv = [sys.executable, "-c", KILLED_AT_ONCE]
    guardian = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True)
    assert guardian.stdout is not None
    beside = psutil.Process(int(guardian.stdout.readline()))
    guardian.kill()
    guardian.wait()
    assert psutil.wait_procs([beside], HANG_S)[1] == []
    guardian.stdout.close()


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("who", ["guardian", "all", "program"])
def test_a_signal_reaches_the_program_once_whoever_it_is_sent_to(
    job: Job, lost: bool, who: str
) -> None:
    job.pliant = ["setsid", "--wait", *job.pliant]
    process = job.start(COUNTS)
    program = _program(job)
    guardian = program.parent()
    assert guardian is not None
    if lost:
        next(one for one in guardian.children() if one.cmdline() == guardian.cmdline()).kill()
        assert process.stderr is not None
        process.stderr.readline()
    match who:
        case "all":
            os.killpg(os.getpgid(guardian.pid), signal.SIGTERM)
        case "program":
            program.terminate()
        case _:
            guardian.terminate()
    assert ended(process)[:2] == (3, "told 1\n")


def test_what_the_program_leaves_behind_is_reaped_and_holds_nobody_up(job: Job) -> None:
    leaves = "subprocess.Popen(['sh', '-c', 'sleep 0.1 & exec sleep 0.2'])\n"
    process = job.start("import subprocess\n" + BEGAN + leaves + "time.sleep(0.5); sys.exit(4)")
    assert ended(process)[0] == 4


SAYS_SO_AND_ENDS = "try: pliant.checkpointed()\nfinally: os._exit(3)"


@pytest.mark.parametrize("says", ["sys.exit(85)", "pliant.checkpointed()", SAYS_SO_AND_ENDS])
def test_a_program_that_has_saved_without_its_wrapper_is_requeued(job: Job, says: str) -> None:
    job.door.want("w1")
    waits = "while not pliant.checkpoint_wanted(): time.sleep(0.02)\n"
    process = job.start(waits + WAITS + says)
    _kill_wrapper(job, process)
    (job.folder / "go").touch()
    wait_until(job.requeues.exists, "the requeue")
    process.terminate()
    assert ended(process)[0] == 85
    assert job.requeues.read_text() == "requeue 4711\n"
    assert list((job.folder / "tmp").iterdir()) == []


def test_the_end_of_a_program_counts_where_it_could_not_be_started_again() -> None:
    """The process that could not become it has an exit code as well, which may be known first."""
    guardian = Guardian(1, (0, 1), (set(), set()), None)
    for program, code in ((5, 85), (6, 255), (0, None), (7, 255), (0, None)):
        guardian.starts(program)
        guardian.code = guardian.code if code is None else code
    assert (guardian.program, guardian.code) == (0, 85)
    guardian.starts(8)
    guardian.code = 3
    guardian.starts(9)
    assert (guardian.program, guardian.code) == (9, 3)


def test_where_the_requeue_is_refused_the_program_goes_on_here(job: Job) -> None:
    job.scontrol("echo no >&2; exit 1")
    again = "if os.path.exists('go'): print('again'); sys.exit(6)\n"
    process = job.start(again + WAITS + "sys.exit(85)")
    _kill_wrapper(job, process)
    (job.folder / "go").touch()
    code, out, err = ended(process)
    assert (code, out) == (6, "again\n")
    assert "pliant run: the job could not be requeued (no): the program goes on here\n" in err


def test_where_the_job_is_requeued_already_it_is_left(job: Job) -> None:
    job.scontrol("echo 'Job is pending execution for job 4711' >&2; exit 1")
    told = f"echo 'COMPLETING|None|10:00|1|'; touch {job.folder / 'asked'}"
    job.knows("squeue", "sh", "-c", told)
    process = job.start("if os.path.exists('go'): sys.exit(6)\n" + WAITS + "sys.exit(85)")
    _kill_wrapper(job, process)
    (job.folder / "go").touch()
    asked = (job.folder / "asked").exists
    wait_until(lambda: asked() or process.poll() is not None, "Slurm to be asked")
    process.terminate()
    assert ended(process)[0] == 85


def test_on_pbs_the_exit_code_is_kept(job: Job) -> None:
    """Where a pbs_mom sees it."""
    del job.environment["SLURM_JOB_ID"]
    mom = [shutil.copy("/bin/sh", str(job.folder / "pbs_mom")), "-c", '"$@"; exit $?', "mom"]
    job.pliant = [*mom, *job.pliant]
    process = job.start(WAITS + "sys.exit(85)", PBS_JOBID="4711.server", PLIANT_RETURNS="85")
    program = _program(job)
    guardian = psutil.Process(process.pid).children()[0]
    (wrapper,) = (one for one in guardian.children() if one != program)
    wrapper.kill()
    (job.folder / "go").touch()
    code, _, err = ended(process)
    assert (code, "goes on here" in err) == (85, False)
    assert not job.requeues.exists()


def test_without_prctl_the_program_runs_as_without_a_guardian(job: Job) -> None:
    breaks = (
        "import os, sys; sys.modules['ctypes'] = None\n"
        "from pliant.node.guarded import guard; guard(os.environ)\n"
        "del sys.modules['ctypes']; from pliant.cli import main; main()"
    )
    job.pliant = [sys.executable, "-c", breaks]
    process = job.start(WAITS + "sys.exit(5)")
    parent = _program(job).parent()
    assert parent is not None and parent.pid == process.pid
    (job.folder / "go").touch()
    assert ended(process) == (5, "", "")


def test_nothing_large_is_imported_before_the_fork() -> None:
    shows = (
        "import sys, pliant.node.guarded as g; from pliant.node.guardian import Guardian\n"
        "Guardian.stand = lambda self: [print(*sorted(sys.modules), flush=True), os._exit(0)]\n"
        "import os; os.environ['SLURM_JOB_ID'] = '1'; os.fork = lambda: 1\n"
        "g.guard(os.environ)"
    )
    out = subprocess.run([sys.executable, "-c", shows], capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert "pliant.node.guardian" in loaded
    assert not loaded & {"click", "msgspec", "threading", "typing", "subprocess", "signal", "re"}


FALLS = "from pliant.node import launch; launch.run = lambda *a, **k: os.kill(os.getpid(), 9)"
CHANGES = "from pliant.node import launch; launch.run = lambda *a, **k: 1 / 0"


@pytest.mark.parametrize(("falls", "how"), [(FALLS, "was killed by signal 9"), (CHANGES, "failed")])
def test_where_the_wrapper_ends_before_the_program_began_that_runs_without(
    job: Job, falls: str, how: str
) -> None:
    entry = "import os, pliant.entry as e; import pliant.cli as c; main = c.main\n"
    patched = f"{entry}def late():\n    {falls}\n    main()\nc.main = late; e.main()"
    job.pliant = [sys.executable, "-c", patched]
    process = job.start("sys.exit(5)")
    code, out, err = ended(process)
    assert (code, out) == (5, "")
    line = f"pliant run: its wrapper {how} before the program began: it runs without"
    assert err.splitlines()[-1] == line


def test_a_wrapper_that_a_signal_ends_before_the_program_began_starts_nothing(job: Job) -> None:
    job.pliant = [
        sys.executable,
        "-c",
        "import os, signal, pliant.cli as c, pliant.entry as e\n"
        "c.main = lambda: [signal.signal(15, signal.SIG_DFL), os.kill(os.getpid(), 15)]\n"
        "e.main()",
    ]
    assert ended(job.start("print('began')")) == (143, "", "")


@pytest.mark.parametrize("name", ["random.py", "msgspec.py", "subprocess.py"])
def test_what_lies_on_the_programs_own_path_is_not_imported(job: Job, name: str) -> None:
    theirs = job.folder / "theirs"
    theirs.mkdir()
    (theirs / name).write_text("raise RuntimeError('not for you')\n")
    path = f"{theirs}{os.pathsep}{job.environment['PYTHONPATH']}"
    waits = 'echo "$PYTHONPATH"; until [ -e go ]; do sleep 0.02; done'
    process = job.start_argv(["--", "sh", "-c", waits], {"PYTHONPATH": path})
    job.door.wait_for("run-begin")
    (job.folder / "go").touch()
    code, out, err = ended(process)
    assert (code, err) == (0, "")
    assert out.startswith(path)


def test_a_lost_wrappers_own_directory_is_removed_at_the_end(job: Job) -> None:
    process = job.start(WAITS)
    _kill_wrapper(job, process)
    assert list((job.folder / "tmp").glob("pliant-*"))
    (job.folder / "go").touch()
    assert ended(process)[0] == 0
    assert not list((job.folder / "tmp").glob("pliant-*"))


BRIEF = "import pliant.node.guardian as g; g.LEAVE_S = 0.5; from pliant.entry import main; main()"


def test_a_wrapper_that_hangs_once_its_program_has_ended_holds_nobody_up(job: Job) -> None:
    job.pliant = [sys.executable, "-c", BRIEF]
    process = job.start(WAITS + "sys.exit(5)")
    _wrapper(process, _program(job)).send_signal(signal.SIGSTOP)
    (job.folder / "go").touch()
    assert ended(process) == (5, "", "pliant run: its wrapper hangs: it is killed\n")
    assert list((job.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize("says", ["sys.exit(85)", SAYS_SO_AND_ENDS])
def test_one_whose_program_has_saved_has_all_the_time_it_takes(job: Job, says: str) -> None:
    job.pliant = [sys.executable, "-c", BRIEF]
    asked = "while not pliant.checkpoint_wanted(): time.sleep(0.02)\n"
    process = job.start(BEGAN + asked + says)
    job.door.want("w1")
    program = _program(job)
    wrapper = _wrapper(process, program)
    job.door.wait_for("run-saved")
    wrapper.send_signal(signal.SIGSTOP)
    time.sleep(2.0)  # more than one has whose program has not
    wrapper.send_signal(signal.SIGCONT)
    process.terminate()
    code, _, err = ended(process)
    assert (code, "hangs" in err) == (85, False)


def test_one_whose_program_could_not_be_started_again_is_not_ended_for_that() -> None:
    hears, says = os.pipe()
    guardian = Guardian(0, (hears, says), ({signal.SIGTERM}, set()), None)
    guardian.program, guardian.until_s = 6, 1.0  # it ended just now
    os.write(says, b"program 0\n")
    assert (guardian.signal(), guardian.until_s, guardian.is_alone) == (0, 0.0, False)
    os.close(hears)
    os.close(says)


def test_one_that_not_even_a_kill_ends_is_left_behind(capfd: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sleep", "600"]) as hangs:
        guardian = Guardian(hangs.pid, (0, 1), (set(), set()), None)
        guardian.ends_wrapper()
        assert (guardian.wrapper, guardian.is_alone) == (hangs.pid, True)
        guardian.ends_wrapper()  # and nobody has seen its end
        assert (guardian.wrapper, guardian.until_s) == (0, 0.0)
    assert capfd.readouterr().err == "pliant run: its wrapper hangs: it is killed\n"


def test_of_two_copies_of_a_signal_one_counts() -> None:
    copies = Copies()
    came = [copies.is_second(15, passed_on, 0.0) for passed_on in (False, True, True, False)]
    assert came == [False, True, False, True]
    assert not copies.is_second(15, True, 1.0)
    assert not copies.is_second(15, True, 2.0)
    assert not copies.is_second(15, False, 2.0 + AT_ONCE_S)
