"""FitGpp live on a real Slurm: a trial job gets the GPUs of the best-effort job that loses least."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from asking_helpers import ask
from daemon_helpers import LONG, is_mature, slurm_says
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.handover import Outcome
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

BOB = "pliant-bob"
COUNT = Path(__file__).parents[2] / "docs" / "examples" / "count.py"
BEST_EFFORT, TRIAL = "--class=best-effort", "--class=trial"
Show = Callable[[int | str], dict[str, str]]


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four GPUs under FitGpp."""
    options = Options(nodes=2, gpus=4, users=users, policy="fitgpp")
    made = Sandbox(f"pytest-fitgpp-{os.getpid()}", options)
    made.up()
    yield made
    made.down()


@pytest.fixture
def counts(submit: Submit, workdir: Path, programs: Path) -> Callable[..., int]:
    """Submit a best-effort job under `pliant run` that counts on so many GPUs."""

    def begun(gpus: int, *more: str) -> int:
        program = shutil.copy(COUNT, workdir)
        script = (
            f"export PLIANT_CHECKPOINT_DIR={workdir}/saves{gpus}\n"
            f"exec {programs}/pliant run -- {programs}/python {program} 100000 count{gpus} 0.02"
        )
        return submit(f"--gres=gpu:{gpus}", BEST_EFFORT, "--time=10", *more, script=script)

    return begun


def let_cycles_pass(sandbox: Sandbox, number: int) -> None:
    """Wait until pliantd has decided so often once more."""
    seen = ask(sandbox, a.StatusAnswer, "status").cycles
    wait_until(lambda: ask(sandbox, a.StatusAnswer, "status").cycles > seen + number, "cycles")


def test_a_trial_takes_the_room_of_a_best_effort_job_which_goes_on_after_it(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Show,
    counts: Callable[[int], int],
) -> None:
    large, small = counts(4), counts(2)
    for job in (large, small):
        wait_until(partial(is_mature, clean, job), f"job {job} to be mature")
    trials = submit(
        *("--array=1-3%1", "--gres=gpu:4", TRIAL, "--time=2"), script="sleep 5", user=BOB
    )
    trial, held, later = (f"{trials}_{task}" for task in (1, 2, 3))
    clean.run(["scontrol", "hold", held], user=BOB, check=True)
    rigid = submit("--gres=gpu:4", "--time=10", script=LONG, user=BOB)
    wait_for_state(trial, "RUNNING")
    wait_until(lambda: show(small)["Restarts"] == "1", "the smaller one to have made room")
    assert show(large)["Restarts"] == "0"
    wait_until(lambda: int(show(later)["Priority"]) < 4_294_901_760, "its turn to be its own")
    assert show(held)["Priority"] == "0"
    clean.run(["scancel", held, later], check=True)
    wait_for_state(trial, "COMPLETED")
    wait_for_state(small, "RUNNING")
    wait_until(lambda: int(show(small)["Priority"]) < 4_294_901_760, "its place to be its own")
    history = ask(clean, a.HistoryAnswer, "history", job=str(small))
    assert [(row.guest, row.outcome) for row in history.handovers] == [(f"job {trial}", "done")]
    wait_for_state(rigid, "PENDING")  # it never came before


def test_of_an_array_one_task_has_the_room_that_was_made_for_it(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Show,
    counts: Callable[[int], int],
) -> None:
    wait_for_state(
        submit("--nodelist=n2", "--gres=gpu:4", "--time=10", script=LONG, user=None), "RUNNING"
    )
    victim = counts(4)
    wait_until(partial(is_mature, clean, victim), "it to be mature")
    trials = submit("--array=1-4", "--gres=gpu:1", TRIAL, "--time=2", script=LONG, user=BOB)
    wait_for_state(f"{trials}_1", "RUNNING")
    assert [show(f"{trials}_{task}")["JobState"] for task in (2, 3, 4)] == ["PENDING"] * 3
    wait_until(lambda: int(show(f"{trials}_1")["Priority"]) < 4_294_901_760, "its pin to be gone")
    let_cycles_pass(clean, 5)
    shown = clean.run(["squeue", "-h", "-r", "-t", "PENDING", "-j", str(trials), "-o", "%Q"]).stdout
    assert [int(priority) < 4_294_901_760 for priority in shown.split()] == [True] * 3
    history = ask(clean, a.HistoryAnswer, "history", job=str(victim))
    assert [row.guest for row in history.handovers] == [f"job {trials}_1"]


def test_each_task_of_an_array_has_room_of_its_own(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    counts: Callable[[int], int],
) -> None:
    wait_for_state(
        submit("--nodelist=n2", "--gres=gpu:4", "--time=10", script=LONG, user=None), "RUNNING"
    )
    smaller = [counts(1) for _ in range(4)]
    for job in smaller:
        wait_until(partial(is_mature, clean, job), f"job {job} to be mature")
    trials = submit("--array=1-2", "--gres=gpu:1", TRIAL, "--time=2", script=LONG, user=BOB)
    for task in (1, 2):
        wait_for_state(f"{trials}_{task}", "RUNNING")
    let_cycles_pass(clean, 5)
    ends = [ask(clean, a.HistoryAnswer, "history", job=str(job)).handovers for job in smaller]
    guests = sorted(row.guest for rows in ends for row in rows)
    assert guests == [f"job {trials}_1", f"job {trials}_2"]


SLOWLY = """
import itertools, os, time, pliant
for step in itertools.count(1):
    time.sleep(0.05)
    pliant.heartbeat(step)
    if pliant.checkpoint_wanted():
        open("asked", "w").close()
        while not os.path.exists("may_save"):
            time.sleep(0.05)
        open("saved", "w").close()
        raise SystemExit(85)
"""


@pytest.fixture
def saves_slowly(
    clean: Sandbox, submit: Submit, workdir: Path, programs: Path
) -> Callable[..., int]:
    """Run a best-effort job on so many GPUs, which saves once there is a file ``may_save``."""

    def begun(gpus: int, *more: str) -> int:
        (workdir / "slowly.py").write_text(SLOWLY)
        script = f"exec {programs}/pliant run -- {programs}/python slowly.py"
        job = submit(f"--gres=gpu:{gpus}", BEST_EFFORT, "--time=10", *more, script=script)
        wait_until(partial(is_mature, clean, job), "it to be mature")
        return job

    return begun


def ends(sandbox: Sandbox, job: int) -> list[str]:
    """Return how the hand-overs of a job have ended."""
    rows = ask(sandbox, a.HistoryAnswer, "history", job=str(job)).handovers
    return [row.outcome for row in rows]


def is_over(sandbox: Sandbox, job: int) -> bool:
    """Whether none of its hand-overs is under way."""
    return "" not in ends(sandbox, job)


def takes_another_node(submit: Submit, show: Show) -> int:
    """Let a job have all of n2."""
    other = submit("--nodelist=n2", "--gres=gpu:4", "--time=10", script=LONG, user=None)
    wait_until(lambda: show(other)["JobState"] == "RUNNING", "the other node to be taken")
    return other


def test_a_trial_job_that_asks_for_more_meanwhile_has_no_room_made_for_it(
    clean: Sandbox, submit: Submit, show: Show, workdir: Path, saves_slowly: Callable[[int], int]
) -> None:
    takes_another_node(submit, show)
    victim = saves_slowly(4)
    first = submit("--gres=gpu:4", "--time=10", script=LONG)
    trial = submit("--gres=gpu:1", TRIAL, "--time=2", script=LONG, user=BOB)
    wait_until((workdir / "asked").exists, "it to be asked")
    clean.run(["scontrol", "update", f"jobid={trial}", "Gres=gpu:4"], user=BOB, check=True)
    wait_until(lambda: ends(clean, victim) == [Outcome.NOT_SAVED], "it to be asked no more")
    (workdir / "may_save").touch()
    wait_until(lambda: ends(clean, victim) == [Outcome.STAYS], "it to go on")
    shown = [show(job) for job in (victim, first, trial)]
    assert [one["JobState"] for one in shown] == ["RUNNING", "PENDING", "PENDING"]
    assert (shown[0]["Restarts"], int(shown[2]["Priority"]) < 4_294_901_760) == ("0", True)


def test_nobody_leaves_for_a_trial_job_whose_other_gpus_somebody_has_taken_meanwhile(
    clean: Sandbox, submit: Submit, show: Show, workdir: Path, saves_slowly: Callable[[int], int]
) -> None:
    other = takes_another_node(submit, show)
    victim = saves_slowly(2)
    trial = submit("--gres=gpu:4", TRIAL, "--time=2", script=LONG, user=BOB)
    wait_until((workdir / "asked").exists, "it to be asked")
    first = submit("--gres=gpu:2", "--time=10", script=LONG)
    clean.run(["scontrol", "update", f"jobid={first}", "Priority=1000"], check=True)
    wait_until(lambda: show(first)["JobState"] == "RUNNING", "the two free GPUs to be taken")
    let_cycles_pass(clean, 2)
    (workdir / "may_save").touch()
    wait_until(lambda: ends(clean, victim) == [Outcome.STAYS], "it to go on")
    assert (show(victim)["JobState"], show(victim)["Restarts"]) == ("RUNNING", "0")
    assert int(show(trial)["Priority"]) < 4_294_901_760
    clean.run(["scancel", str(other)], check=True)
    wait_until(lambda: show(trial)["JobState"] == "RUNNING", "it to have its turn")


def test_a_trial_job_starts_in_its_room_although_more_is_free_that_is_kept_for_another(
    clean: Sandbox,
    submit: Submit,
    runs_on: Callable[[int, int, int], int],
    show: Show,
    counts: Callable[[int], int],
) -> None:
    """Pinned it is before all others, and Slurm takes the first of the nodes that have room."""
    other = runs_on(1, 4, 10)
    victim = counts(3)
    runs_on(2, 1, 20)
    wait_until(partial(is_mature, clean, victim), "it to be mature")
    clean.run(["scancel", str(other)], check=True)
    wait_until(lambda: show(other)["JobState"] == "CANCELLED", "it to be gone")
    runs_on(1, 2, 5)
    first = submit("--gres=gpu:4", "--time=10", script=LONG)
    trial = submit("--gres=gpu:2", TRIAL, "--time=30", script=LONG, user=BOB)
    wait_until(lambda: show(trial)["JobState"] == "RUNNING", "it to run")
    assert show(trial)["NodeList"] == "n2"
    assert (show(victim)["Restarts"], show(first)["JobState"]) == ("1", "PENDING")


def test_two_jobs_of_a_node_grow_although_one_saves_while_the_other_is_between_its_runs(
    clean: Sandbox, submit: Submit, show: Show, workdir: Path, request: pytest.FixtureRequest
) -> None:
    """For Slurm the fence around that one's nodes closes all of them."""
    saves_slowly, counts = map(request.getfixturevalue, ("saves_slowly", "counts"))
    takes_another_node(submit, show)
    slow, quick = [of(1, "--moldable=gpus=1-2", "--malleable") for of in (saves_slowly, counts)]
    wait_until(partial(is_mature, clean, quick), "it to be mature")
    clean.run(["pliant", "resize", str(slow), "2"], check=True)
    wait_until((workdir / "asked").exists, "it to be asked")
    clean.signal("slurmd-n1", signal.SIGSTOP)  # no run ends there meanwhile
    try:
        clean.run(["pliant", "resize", str(quick), "2"], check=True)
        wait_until(lambda: show(quick)["JobState"] == "COMPLETING", "the quick one to go")
        let_cycles_pass(clean, 2)
        (workdir / "may_save").touch()
        wait_until((workdir / "saved").exists, "the other one to have saved")
        let_cycles_pass(clean, 2)
    finally:
        clean.signal("slurmd-n1", signal.SIGCONT)
    for job in (slow, quick):
        wait_until(partial(is_over, clean, job), f"job {job} to have grown")
        assert ends(clean, job) == [Outcome.DONE]


def test_a_plain_job_makes_room_for_nobody(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    plain = [submit("--gres=gpu:4", "--time=10", script=LONG) for _ in range(2)]
    for job in plain:
        wait_for_state(job, "RUNNING")
    trial = submit("--gres=gpu:1", TRIAL, "--time=2", script=LONG)
    let_cycles_pass(clean, 35)
    wait_for_state(trial, "PENDING")


def test_no_room_is_made_for_one_that_takes_its_nodes_alone(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Show,
    counts: Callable[..., int],
) -> None:
    """A node on which another has a CPU is no room for it: its victim's GPUs would stand idle."""
    for option in ("--nodelist=n2", "--exclusive"), ("--nodelist=n1", "--cpus-per-task=1"):
        wait_for_state(submit(*option, "--time=10", script=LONG, user=None), "RUNNING")
    victim = counts(4)
    wait_until(partial(is_mature, clean, victim), "it to be mature")
    alone = submit("--gres=gpu:1", "--exclusive", TRIAL, "--time=2", script=LONG)
    said = clean.run(["pliant", "why", str(alone)]).stdout
    assert "an ordinary one: it has its nodes alone" in " ".join(said.split())
    let_cycles_pass(clean, 5)
    assert (show(victim)["JobState"], show(victim)["Restarts"]) == ("RUNNING", "0")
    trial = submit("--gres=gpu:1", TRIAL, "--time=2", script="true")
    wait_for_state(trial, "COMPLETED")
    assert show(victim)["Restarts"] == "1"


def test_no_job_gives_its_place_to_one_of_a_higher_tier_for_a_resize_or_a_trial_job(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Show,
    counts: Callable[..., int],
) -> None:
    with slurm_says(clean, "PartitionName=top Nodes=n[1-2] PriorityTier=10 MaxTime=60 State=UP"):
        wait_for_state(
            submit("--nodelist=n2", "--gres=gpu:4", "--time=10", script=LONG, user=None), "RUNNING"
        )
        job = counts(4, "--moldable=gpus=1-4", "--malleable")
        wait_until(partial(is_mature, clean, job), "it to be mature")
        first = submit("--partition=top", "--gres=gpu:3", "--time=10", script=LONG, user=BOB)
        trial = submit("--gres=gpu:2", TRIAL, "--time=2", script="true")
        let_cycles_pass(clean, 5)
        done = clean.run(["pliant", "resize", str(job), "2"])
        words = f"job {first}, of a partition of a higher PriorityTier, could start in its place"
        assert (done.returncode, words in done.stderr) == (1, True), done.stderr
        assert (show(job)["JobState"], show(job)["Restarts"]) == ("RUNNING", "0")
        clean.run(["scancel", str(first)], check=True)
        wait_for_state(trial, "COMPLETED")
        clean.run(["scancel", str(job)], check=True)
