"""``pliant run`` in jobs of a real Slurm, beside a fake pliantd: signals, steps, the own requeue."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_helpers import Submit, WaitForState, restart_with, wait_until
from wrapper_helpers import COUNTS_TERMS, HASTY, SOURCE, told_in, wrapper_in

from fake_door import FakeDoor
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

SAVES = """
import os, sys, time, pliant
open(f"began.{os.environ['SLURM_PROCID']}", "w").close()
while not pliant.checkpoint_wanted(): time.sleep(0.05)
while os.path.exists("hold"): time.sleep(0.05)
open(f"saved.{os.environ['SLURM_PROCID']}", "w").close()
pliant.checkpointed()
"""
STAYS = """
import os, signal, time
told = []
signal.signal(signal.SIGTERM, lambda *a: told.append(1))
open("began.0", "w").close()
while not told or not os.path.exists("go"): time.sleep(0.05)
"""


ONE_ARRAY = """
import os, time, pliant
task = os.environ["SLURM_ARRAY_TASK_ID"]
while not pliant.checkpoint_wanted(): time.sleep(0.05)
open("asked" + task, "w").close()
while not os.path.exists("saves" + task): time.sleep(0.05)
pliant.checkpointed()
"""


def test_the_environment_of_a_batch_script_is_not_taken_for_a_step(
    submit: Submit, wait_for_state: WaitForState, output: Callable[[int], str]
) -> None:
    """Nor what the step in which its job was submitted has left in it."""
    tells = (
        "import os; from pliant.node.run import from_environment as f; print(f(os.environ).ranks)"
    )
    told = f"{sys.executable} -P -c '{tells}'"
    script = (
        'echo "[$SLURM_STEP_NUM_TASKS] $SLURM_PROCID"\n'
        f"export PYTHONPATH={SOURCE}\nSLURM_STEP_NUM_TASKS=8 {told}\nsrun -n2 {told}"
    )
    job = submit("-N2", "-n2", script=script, user=None)
    wait_for_state(job, "COMPLETED")
    assert output(job) == "[] 0\n1\n2\n2\n"


def test_a_task_that_has_the_number_of_its_array_requeues_itself_alone(
    submit: Submit, workdir: Path, door: FakeDoor, show: Callable[[int | str], dict[str, str]]
) -> None:
    (workdir / "program.py").write_text(ONE_ARRAY)
    (workdir / "wrapper.py").write_text(HASTY)
    script = (
        f"export PYTHONPATH={SOURCE} PLIANT_CONFIG={workdir}/pliant.toml\n"
        f"export PLIANT_HOST=127.0.0.1 PATH={workdir}/bin:$PATH\n"
        f"exec {sys.executable} -P wrapper.py run -- {sys.executable} -P program.py\n"
    )
    array = submit("--array=3-4", "--requeue", "--time=10", script=script, user=None)
    wait_until(lambda: len({said["job"] for said in door.of("run-watch")}) == 2, "both tasks")
    tasks = {number: show(f"{array}_{number}") for number in (3, 4)}
    same = next(number for number, task in tasks.items() if task["JobId"] == str(array))
    assert {said["job"] for said in door.of("run-watch")} == {t["JobId"] for t in tasks.values()}
    door.want("w1")
    wait_until((workdir / f"asked{same}").exists, "the program to be asked")
    door.close()
    (workdir / f"saves{same}").touch()
    wait_until(lambda: show(f"{array}_{same}")["Restarts"] == "1", "the task to be requeued")
    other = show(f"{array}_{7 - same}")
    assert (other["Restarts"], other["JobState"]) == ("0", "RUNNING")


def test_a_job_that_may_start_no_process_runs_its_program_alone(
    submit: Submit,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    show: Callable[[int | str], dict[str, str]],
    programs: Path,
) -> None:
    program = "print('ran', flush=True); raise SystemExit(7)"
    job = submit(
        script=f'ulimit -u 1; exec {programs}/pliant run -- {programs}/python -c "{program}"'
    )
    wait_for_state(job, "FAILED")
    said = "no process can be made here: the program runs without its wrapper"
    assert output(job) == f"pliant run: {said}\nran\n"
    assert show(job)["ExitCode"] == "7:0"


@pytest.mark.parametrize("lost", [False, True])
def test_a_cancel_reaches_the_program_of_a_script_once(  # noqa: PLR0917  # fixtures
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    clean: Sandbox,
    workdir: Path,
    lost: bool,
) -> None:
    """By proctrack/linuxproc; by pgid and cgroup Slurm kills it at once, also without Pliant."""
    job = started(COUNTS_TERMS, before="")
    if lost:
        wrapper_in(workdir).kill()
        wait_until(lambda: "its wrapper was killed" in output(job), "the loss to be said")
    clean.run(["scancel", str(job)])
    wait_for_state(job, "CANCELLED")
    assert told_in(workdir) == "1"


@pytest.fixture
def patient(clean: Sandbox) -> Iterator[Sandbox]:
    """It kills a minute after its TERM: elsewhere after 5 s, and a busy Slurm may answer later."""
    restart_with(clean, {"KillWait=5\n": "KillWait=60\n"})
    yield clean
    restart_with(clean, {"KillWait=60\n": "KillWait=5\n"})


@pytest.mark.parametrize(
    "case", [("scancel", "it is cancelled"), ("scontrol requeue", "it is requeued")]
)
def test_why_a_program_is_ended_is_said(
    patient: Sandbox,
    started: Callable[..., int],
    output: Callable[[int], str],
    workdir: Path,
    case: tuple[str, str],
) -> None:
    ends, says = case
    job = started(STAYS)
    patient.run([*ends.split(), str(job)])
    line = f"pliant run: the program was sent TERM: {says}\n"
    try:
        wait_until(lambda: line in output(job), f"{line} in the log")
    except AssertionError as error:
        raise AssertionError(f"{error}: {output(job)}") from None
    (workdir / "go").touch()


def test_tasks_on_two_nodes_save_together_and_the_job_requeues_itself_in_silence(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    show: Callable[[int], dict[str, str]],
    door: FakeDoor,
    workdir: Path,
) -> None:
    (workdir / "hold").touch()
    job = started(SAVES, "-N2", "-n2", before="srun")
    door.wait_for("run-watch")
    door.want("w1")
    wanted = f"saves/.pliant-{job}-0-0/told"
    wait_until(lambda: "w1" in (workdir / wanted).read_text(), "task 0 to tell the others")
    door.close()
    (workdir / "hold").unlink()
    wait_for_state(job, "PENDING")
    assert (workdir / "saved.0").exists()
    assert (workdir / "saved.1").exists()
    assert show(job)["Restarts"] == "1"


TOLD_BY_SIGNAL = """
import os, signal, sys, time
rank, told = os.environ["SLURM_PROCID"], []
signal.signal(signal.SIGUSR1, lambda *a: told.append(time.time()))
open(f"began.{rank}", "w").close()
while not told: time.sleep(0.001)
open(f"told.{rank}", "w").write(str(told[0]))
sys.exit(85)
"""


def test_one_signal_to_srun_reaches_every_task_of_the_step(
    started: Callable[..., int], door: FakeDoor, workdir: Path
) -> None:
    started(TOLD_BY_SIGNAL, "-N2", "-n4", run="run --signal USR1 -- srun")
    began, told = ([workdir / f"{what}.{rank}" for rank in range(4)] for what in ("began", "told"))
    wait_until(lambda: all(file.exists() for file in began), "all tasks to begin")
    door.wait_for("run-watch")
    door.want("w1")
    door.wait_for("run-saved")
    at_s = sorted(float(file.read_text()) for file in told)
    print(f"told within {1000 * (at_s[-1] - at_s[0]):.1f} ms")


def test_a_log_that_a_requeue_empties_is_warned_of(
    started: Callable[..., int], door: FakeDoor, output: Callable[[int], str]
) -> None:
    warning = "pliant run: a requeue empties this job's log; sbatch --open-mode=append keeps it\n"
    cut = started(COUNTS_TERMS)
    door.wait_for("run-watch")
    assert output(cut) == warning


def test_a_log_that_is_appended_to_is_not(
    started: Callable[..., int], door: FakeDoor, output: Callable[[int], str]
) -> None:
    kept = started(COUNTS_TERMS, "--open-mode=append")
    door.wait_for("run-watch")
    assert output(kept) == ""


def test_what_was_said_at_submission_arrives(started: Callable[..., int], door: FakeDoor) -> None:
    job = started(COUNTS_TERMS, "--malleable=grace=90,signal=USR2")
    begun = door.wait_for("run-begin")
    assert {key: begun[key] for key in ("job", "run", "grace", "signal")} == {
        "job": str(job),
        "run": "0",
        "grace": "0",  # that pliantd knows
        "signal": "USR2",
    }
