"""``pliant run`` in jobs of a real Slurm, beside a fake pliantd: signals, steps, the own requeue."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from slurm_helpers import Submit, WaitForState, wait_until

from fake_door import FakeDoor, munge_program
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

SOURCE = Path(__file__).parents[2] / "src"
HASTY = (
    "import pliant.node.core as core; core.SILENT_S = 3.0; from pliant.entry import main; main()"
)
SAVES = """
import os, sys, time, pliant
open(f"began.{os.environ['SLURM_PROCID']}", "w").close()
while not pliant.checkpoint_wanted(): time.sleep(0.05)
while os.path.exists("hold"): time.sleep(0.05)
open(f"saved.{os.environ['SLURM_PROCID']}", "w").close()
pliant.checkpointed()
"""
COUNTS_TERMS = """
import signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *a: told.append(1))
open("began.0", "w").close()
while not told: time.sleep(0.05)
time.sleep(0.5)
print(f"told {len(told)}", flush=True)
sys.exit(3)
"""

STAYS = """
import os, signal, time
told = []
signal.signal(signal.SIGTERM, lambda *a: told.append(1))
open("began.0", "w").close()
while not told or not os.path.exists("go"): time.sleep(0.05)
"""


@pytest.fixture
def door(workdir: Path) -> Iterator[FakeDoor]:
    (workdir / "bin").mkdir()
    munge_program(workdir / "bin")
    one = FakeDoor(workdir)
    one.open()
    yield one
    one.close()


@pytest.fixture
def started(submit: Submit, workdir: Path, door: FakeDoor) -> Callable[..., int]:
    """Submit a job that runs a program under `pliant run`, and wait for the program."""

    def start(program: str, *options: str, before: str = "exec", run: str = "run --") -> int:
        (workdir / "program.py").write_text(program)
        (workdir / "wrapper.py").write_text(HASTY)
        script = (
            f"export PYTHONPATH={SOURCE} PLIANT_CONFIG={workdir}/pliant.toml\n"
            f"export PLIANT_HOST=127.0.0.1 PLIANT_CHECKPOINT_DIR={workdir}/saves PATH={workdir}/bin:$PATH\n"
            f"{before} {sys.executable} -P wrapper.py {run} {sys.executable} -P program.py\n"
        )
        job = submit(*options, "--requeue", "--time=10", script=script, user=None)
        wait_until((workdir / "began.0").exists, "the program to begin")
        return job

    return start


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


@pytest.mark.parametrize("before", ["exec", "srun", ""])
def test_a_cancel_reaches_the_program_once(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    clean: Sandbox,
    before: str,
) -> None:
    job = started(COUNTS_TERMS, before=before)
    clean.run(["scancel", str(job)])
    wait_for_state(job, "CANCELLED")
    wait_until(lambda: "told" in output(job), "the program to have been told")
    assert "told 1\n" in output(job)


@pytest.mark.parametrize(
    "case", [("scancel", "it is cancelled"), ("scontrol requeue", "it is requeued")]
)
def test_why_a_program_is_ended_is_said(
    started: Callable[..., int],
    output: Callable[[int], str],
    clean: Sandbox,
    workdir: Path,
    case: tuple[str, str],
) -> None:
    ends, says = case
    job = started(STAYS)
    clean.run([*ends.split(), str(job)])
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


ENDS_BY_ITSELF = """
import os, sys, time
open("pid", "w").write(str(os.getpid()))
open("began.0", "w").close()
while not os.path.exists("go"): time.sleep(0.05)
print("done", flush=True)
sys.exit(int(os.environ.get("ENDS", "0")))
"""


def _kill_wrapper(workdir: Path) -> None:
    """Kill what asks pliantd for the program: the guardian's other child of its own command."""
    program = psutil.Process(int((workdir / "pid").read_text()))
    guardian = program.parent()
    assert guardian is not None
    others = [one for one in guardian.children() if one.cmdline() == guardian.cmdline()]
    assert len(others) == 1
    others[0].kill()


@pytest.mark.parametrize("before", ["exec", "srun", ""])
def test_a_job_whose_wrapper_is_killed_completes(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    workdir: Path,
    before: str,
) -> None:
    job = started(ENDS_BY_ITSELF, before=before)
    _kill_wrapper(workdir)
    line = "pliant run: its wrapper was killed by signal 9: the program runs on\n"
    wait_until(lambda: line in output(job), "the loss to be said")
    (workdir / "go").touch()
    wait_for_state(job, "COMPLETED")
    assert "done\n" in output(job)


@pytest.mark.parametrize("before", ["exec", "srun", ""])
def test_a_cancel_reaches_a_program_without_its_wrapper_once(  # noqa: PLR0917  # fixtures
    started: Callable[..., int],
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    clean: Sandbox,
    workdir: Path,
    before: str,
) -> None:
    job = started(
        COUNTS_TERMS.replace(
            'open("began', 'open("pid", "w").write(str(os.getpid()))\nopen("began'
        ).replace("import signal", "import os, signal"),
        before=before,
    )
    _kill_wrapper(workdir)
    wait_until(lambda: "its wrapper was killed" in output(job), "the loss to be said")
    clean.run(["scancel", str(job)])
    wait_for_state(job, "CANCELLED")
    wait_until(lambda: "told" in output(job), "the program to have been told")
    assert "told 1\n" in output(job)


def test_a_job_that_has_saved_without_its_wrapper_is_requeued_and_never_failed(
    started: Callable[..., int],
    wait_for_state: WaitForState,
    show: Callable[[int], dict[str, str]],
    workdir: Path,
) -> None:
    job = started(ENDS_BY_ITSELF.replace('"0"', '"85"'))
    _kill_wrapper(workdir)
    (workdir / "go").touch()
    wait_for_state(job, "PENDING")
    assert show(job)["Restarts"] == "1"
