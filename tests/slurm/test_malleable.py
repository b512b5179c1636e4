"""Running jobs that change on a real Slurm, with pliantd: saved, requeued, resumed elsewhere."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
from asking_helpers import answer_of, ask, wait_for_look
from daemon_helpers import LONG, has_saved, is_mature, slurm_says
from lua_helpers import job_submit_lua, with_pliant
from resizing_helpers import LONG_STEP_S, Place
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.daemon import answers as a
from pliant.grammar import PRIORITY, note
from pliant.handover import OURS, PINNED, Outcome
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
COUNT = ROOT / "docs" / "examples" / "count.py"
USERS = ("pliant-alice", "pliant-bob")


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four GPUs, whose running jobs are changed on request alone, and a licence."""
    options = Options(nodes=2, gpus=4, accounting=True, users=users)
    made = Sandbox(f"pytest-malleable-{os.getpid()}", options)
    made.up()
    licence = ("resource", "name=tool", "server=desk", "count=1", "type=license")
    share = (f"cluster={slurm_cluster(made)}", "percentallowed=100")
    made.run(["sacctmgr", "-i", "add", *licence, *share], check=True)
    yield made
    made.down()


class Counting:
    """One malleable job that counts, and what is asked of it."""

    def __init__(self, sandbox: Sandbox, pliant: Path, job: int | str) -> None:
        self.sandbox, self.pliant, self.job = sandbox, pliant, job

    def is_known(self) -> bool:
        """Whether pliantd has seen it: its next look may be a while away."""
        return answer_of(self.sandbox, "history", job=str(self.job)).is_ok

    def history(self) -> a.HistoryAnswer:
        wait_until(self.is_known, f"job {self.job} to be seen")
        return ask(self.sandbox, a.HistoryAnswer, "history", job=str(self.job))

    def resized(self) -> int:
        return sum(row.outcome == "done" for row in self.history().handovers)

    def works(self) -> bool:
        """Whether its program works at the shape that it was given last."""
        told = self.history()
        return len(told.runs) > len(told.handovers) and told.runs[-1].launched_s > 0

    def began(self) -> str:
        """Wait until its program works; return the shape of its first run."""
        wait_until(self.works, f"the program of job {self.job} to work")
        return self.history().runs[0].shape

    def resize(self, shape: str, user: str | None = USERS[0]) -> subprocess.CompletedProcess[str]:
        return self.sandbox.run([str(self.pliant), "resize", str(self.job), shape], user=user)

    def told(self, verb: str) -> str:
        """Return what `pliant why` and the like print of it."""
        argv = [str(self.pliant), verb, str(self.job)]
        return self.sandbox.run(argv, user=USERS[0], check=True).stdout

    def becomes(self, shape: str) -> None:
        """Ask until it can be asked, and wait until it is done."""
        before = self.resized()

        def asked() -> bool:
            done = self.resize(shape)
            if "has that shape" in done.stderr:
                pytest.fail(done.stderr)
            return done.returncode == 0

        wait_until(asked, f"job {self.job} to be asked for {shape}")
        wait_until(lambda: self.resized() > before, f"job {self.job} to be {shape}")


def slurm_cluster(sandbox: Sandbox) -> str:
    shown = sandbox.run(["sacctmgr", "-n", "-P", "show", "cluster", "format=cluster"], check=True)
    return shown.stdout.strip()


Count = Callable[..., Counting]


@pytest.fixture
def count(
    clean: Sandbox, submit: Submit, workdir: Path, wait_for_state: WaitForState, programs: Path
) -> Count:
    """Submit a job that counts to so many, and wait until it runs."""
    wait_for_look(clean)  # else what the jobs of the test before had is taken for used

    def begun(*options: str, steps: int, step_s: float = 0.02, runs: str = "RUNNING") -> Counting:
        program = shutil.copy(COUNT, workdir)
        script = (
            f"export PLIANT_CHECKPOINT_DIR={workdir}/saves$SLURM_ARRAY_TASK_ID\n"
            f"exec {programs}/pliant run -- {programs}/python {program} {steps} "
            f"{workdir}/count$SLURM_ARRAY_TASK_ID {step_s}"
        )
        malleable = ("--malleable=grace=20", "--open-mode=append", "--time=30")
        job = submit(*malleable, *options, script=script)
        wait_for_state(job, runs)
        return Counting(clean, programs / "pliant", job)

    return begun


def checksum(steps: int) -> str:
    """What count.py prints in the end."""
    total = 0
    for step in range(1, steps + 1):
        total = (total * 31 + step) % (2**61 - 1)
    return f"{steps} {total}"


def test_a_job_is_resized_while_others_wait_for_its_gpus_and_loses_nothing(
    count: Count, submit: Submit, wait_for_state: WaitForState, clean: Sandbox, workdir: Path
) -> None:
    steps = 2000
    counting = count("--gres=gpu:4", "--nodelist=n1", "--moldable=gpus=1:2:4", steps=steps)
    others = [
        submit("--gres=gpu:4", "--nodelist=n1", "--time=5", script=LONG, user=USERS[1])
        for _ in range(3)
    ]
    draw, shape = random.Random(1), "4"  # noqa: S311  # a draw, no secret
    for _ in range(2):
        shape = draw.choice([other for other in ("1", "2", "4") if other != shape])
        time.sleep(draw.uniform(0, 0.5))
        counting.becomes(shape)
        states = clean.run(["squeue", "-h", "-j", ",".join(map(str, others)), "-o", "%T"])
        assert set(states.stdout.split()) == {"PENDING"}
    wait_until(counting.works, "the last run to work")
    history = counting.history()
    assert [row.outcome for row in history.handovers] == ["done"] * 2
    assert [run.run for run in history.runs] == [0, 1, 2]
    assert all(change.lost_s > 0 for change in history.handovers)
    clean.run(["scancel", *map(str, others)], check=True)
    wait_for_state(counting.job, "COMPLETED")
    assert (workdir / f"{counting.job}.out").read_text().splitlines()[-1] == checksum(steps)


def test_a_job_starts_where_it_was_although_more_is_free_that_is_kept_for_another(
    count: Count,
    submit: Submit,
    runs_on: Callable[[int, int, int], int],
    show: Callable[[int | str], dict[str, str]],
    clean: Sandbox,
) -> None:
    """Pinned it is before all others, and Slurm takes the first of the nodes that have room."""
    other = runs_on(1, 4, 10)
    counting = count("--gres=gpu:2", "--moldable=gpus=1-2", steps=20_000)
    clean.run(["scancel", str(other)], check=True)
    wait_until(lambda: show(other)["JobState"] == "CANCELLED", "it to be gone")
    runs_on(2, 2, 40)
    runs_on(1, 2, 5)
    first = submit("--gres=gpu:4", "--time=10", script=LONG)
    wait_until(counting.works, "its program to work")
    wait_until(lambda: show(first).get("SchedNodeList") == "n1", "Slurm to plan for the first")
    counting.becomes("1")
    assert (show(counting.job)["NodeList"], show(counting.job)["Restarts"]) == ("n2", "1")
    assert show(first)["JobState"] == "PENDING"
    shown = clean.run(["scontrol", "-o", "show", "reservation"], check=True).stdout
    assert "pliant_" not in shown


def test_a_program_whose_own_python_has_no_pliant_is_resized_whatever_its_job_inherited(
    submit: Submit, wait_for_state: WaitForState, clean: Sandbox, workdir: Path, programs: Path
) -> None:
    wait_for_look(clean)  # else it is molded for what the jobs of the test before had
    shutil.copy(COUNT, workdir)
    run = f"{programs}/pliant run -- /usr/bin/python3 count.py 1500 count 0.02"
    words = ("--gres=gpu:2", "--moldable=gpus=1-2", "--malleable=grace=20", "--open-mode=append")
    inherited = "SLURM_ARRAY_JOB_ID=1 SLURM_ARRAY_TASK_ID=3 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_ID=0"
    script = (
        f"export {inherited} SLURM_RESTART_COUNT=${{SLURM_RESTART_COUNT:-7}}\n"
        f"export PLIANT_CHECKPOINT_DIR={workdir}/saves; unset PYTHONPATH; exec {run}"
    )
    job = submit(*words, "--time=30", script=script)
    wait_for_state(job, "RUNNING")
    Counting(clean, programs / "pliant", job).becomes("1")
    wait_for_state(job, "COMPLETED")
    assert (workdir / f"{job}.out").read_text().splitlines()[-1] == checksum(1500)


TWO = f"""#!/bin/bash
#SBATCH --gres=gpu:2 --moldable=gpus=1-2 --malleable=grace=20 --open-mode=append --time=30
pliant run -- sh -c 'until [ -e stop ]; do sleep 0.1; done' &
pliant run -- python count.py 2000 count {LONG_STEP_S} &
wait
"""


def test_two_wrappers_of_one_job_are_left_as_they_are_until_one_has_ended(
    place: Place, wait_for_state: WaitForState
) -> None:
    (place.folder / "two.sh").write_text(TWO)
    both = place.submit("two.sh")
    out = place.folder / f"{both.job}.out"
    says = "pliant run: another `pliant run` of this job speaks to pliantd"
    wait_until(lambda: out.exists() and out.read_text().count(says) == 2, "both to say it")
    counting = Counting(place.sandbox, Path("pliant"), both.job)
    wait_until(counting.works, "the program to work")
    for _ in range(4):
        assert "nothing can be asked of it now" in counting.resize("1", user=None).stderr
        time.sleep(0.5)
    (place.folder / "stop").touch()
    both.becomes("1")
    place.hurry()
    wait_for_state(both.job, "COMPLETED")
    assert out.read_text().splitlines()[-1] == checksum(2000)
    assert out.read_text().count(says) == 2


def test_a_job_moves_between_one_and_two_nodes(
    count: Count,
    show: Callable[[int | str], dict[str, str]],
    wait_for_state: WaitForState,
    workdir: Path,
) -> None:
    steps = 1500
    counting = count("-N1", "--gres=gpu:4", "--moldable=gpus=4:8,nodes=1-2", steps=steps)
    nodes = {"4": "1", "2x4": "2"}
    began = show(counting.job)["NumNodes"]  # it was molded to what was seen free
    for shape in ("4", "2x4", "4") if began == "2" else ("2x4", "4"):
        counting.becomes(shape)
        assert show(counting.job)["NumNodes"] == nodes[shape]
    wait_for_state(counting.job, "COMPLETED")
    assert (workdir / f"{counting.job}.out").read_text().splitlines()[-1] == checksum(steps)


@pytest.mark.parametrize(("checkpoint", "whole"), [("count", True), ("saves/it", False)])
def test_an_owners_words_for_a_long_run_are_kept_and_bind_no_resize_of_its_own(
    count: Count, wait_for_state: WaitForState, workdir: Path, checkpoint: str, whole: bool
) -> None:
    """The checkpoint is looked at on the node: where it is not there, the program goes on there."""
    says = f"--malleable=grace=20,max-resizes=0,min-run=1h,checkpoint={workdir}/{checkpoint}"
    steps = 1000
    counting = count("--gres=gpu:2", "--moldable=gpus=1-2", says, steps=steps)
    wait_until(counting.works, "the program to work")
    why = ask(counting.sandbox, a.WhyAnswer, "why", job=str(counting.job))
    assert "it is not resized: its owner's max-resizes=0: only `pliant resize` does" in why.text
    wait_until(lambda: counting.resize("1").returncode == 0, "it to be asked")
    out = workdir / f"{counting.job}.out"
    wait_until(lambda: counting.history().handovers[0].outcome != "", "something to come of it")
    (change,) = counting.history().handovers
    assert (change.outcome == "done") is whole
    wait_for_state(counting.job, "COMPLETED")
    assert out.read_text().splitlines()[-1] == checksum(steps)
    words = f"pliant run: the checkpoint is not new and whole: {workdir}/{checkpoint} is not there"
    assert (words in out.read_text()) is not whole
    cost = ask(counting.sandbox, a.WhyAnswer, "why", job=str(counting.job)).cost
    assert (cost.resized, cost.lost_gpu_s > 0) == (int(whole), whole)


def test_only_its_owner_resizes_a_job_and_only_to_what_it_allows(count: Count) -> None:
    counting = count("--gres=gpu:2", "--moldable=gpus=1-2", steps=4000)
    wait_until(counting.works, "the program to work")
    told = counting.resize("1", USERS[1])
    assert (told.returncode, "is not yours" in told.stderr) == (1, True)
    assert "it may be 1, 2" in counting.resize("4").stderr
    assert "it has that shape" in counting.resize("2").stderr
    pin = [str(counting.pliant), "pin"]
    done = counting.sandbox.run([*pin, str(counting.job)], user=USERS[0])
    assert (done.returncode, done.stdout) == (0, f"job {counting.job} stays as it is\n")
    wait_until(lambda: "pinned it" in counting.resize("1").stderr, "the pin to be seen")
    assert counting.sandbox.run([*pin, "--undo", str(counting.job)], user=USERS[1]).returncode == 1
    counting.sandbox.run([*pin, "--undo", str(counting.job)], user=USERS[0], check=True)
    bad = counting.resize("many")
    assert (bad.returncode, len(bad.stderr.splitlines())) == (2, 1)
    assert counting.history().handovers == ()


def test_by_hand_a_job_takes_no_place_of_others_and_keeps_its_time_limit(
    count: Count,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    clean: Sandbox,
) -> None:
    """Neither room that is not there, nor that of who is next, nor more time than was asked for."""
    counting = count("--gres=gpu:1", "--nodelist=n1", "--moldable=gpus=1:2", steps=4000)
    wait_until(counting.works, "the program to work")
    began = show(counting.job)["TresPerNode"]
    if began == "gres:gpu:2":  # it was molded to what was seen free
        counting.becomes("1")
    other = submit("--gres=gpu:3", "--nodelist=n1", "--time=5", script=LONG, user=USERS[1])
    wait_for_state(other, "RUNNING")
    told: list[str] = []

    def refused() -> bool:
        told[:] = [counting.resize("2").stderr]
        return "there is no room for that now" in told[0]

    wait_until(refused, f"a refusal: {told}")
    assert (show(counting.job)["JobState"], show(counting.job)["TresPerNode"]) == (
        "RUNNING",
        "gres:gpu:1",
    )
    clean.run(["scancel", str(other)], check=True)
    ends = show(counting.job)["EndTime"]
    counting.becomes("2")
    assert show(counting.job)["EndTime"] == ends


def test_a_jobs_time_min_neither_keeps_it_from_its_shape_nor_shortens_it(
    count: Count, show: Callable[[int | str], dict[str, str]], clean: Sandbox
) -> None:
    """Less is left than its --time-min; it has that again where it waits outside a hand-over."""
    gpus = ("--gres=gpu:2", "--nodelist=n1", "--moldable=gpus=1:2")
    counting = count(*gpus, "--time=30", "--time-min=30", steps=20_000)
    wait_until(counting.works, "the program to work")
    ends = show(counting.job)["EndTime"]
    counting.becomes("1")
    told = show(counting.job)
    assert (told["TimeMin"], told["EndTime"]) == ("N/A", ends)
    lowers = ["scontrol", "update", f"jobid={counting.job}", "TimeLimit=20"]
    assert clean.run(lowers, user=USERS[0]).returncode == 0  # as it may without Pliant
    assert told["AdminComment"] == "pliant-time-min=30"  # and the token
    for words in (("requeuehold", str(counting.job)), *_waits_for(counting.job, "TimeLimit=40")):
        clean.run(["scontrol", *words], check=True)
        wait_until(lambda: show(counting.job)["JobState"] == "PENDING", "the job to wait")
    wait_until(lambda: show(counting.job)["TimeMin"] == "00:30:00", "its own --time-min")
    assert show(counting.job)["AdminComment"].startswith("pliant=v1:")


def test_a_job_has_its_own_place_before_one_that_was_preempted_and_waits(
    count: Count,
    clean: Sandbox,
    submit: Submit,
    show: Callable[[int | str], dict[str, str]],
    wait_for_state: WaitForState,
) -> None:
    """Its number is lower: of two with one priority Slurm starts that one first."""
    wait_for_state(submit("--gres=gpu:4", "--nodelist=n2", "--time=60", script=LONG), "RUNNING")
    victim = submit("--hold", "--gres=gpu:4", "--moldable=gpus=4", "--time=10", script=LONG)
    counting = count("--gres=gpu:4", "--moldable=gpus=2:4", steps=20_000)
    counting.began()
    clean.run(["scontrol", "release", str(victim)], check=True)
    wait_until(lambda: show(victim)["Reason"] in ("Priority", "Resources"), "its turn to come")
    wait_for_look(clean)  # who is held at a look, and pinned at the next, has been let wait
    comment = note(show(victim)["AdminComment"], PRIORITY, 1)
    pinned = (f"jobid={victim}", f"Priority={PINNED}", f"AdminComment={comment}")
    clean.run(["scontrol", "update", *pinned], check=True)
    counting.becomes("2")
    assert (show(victim)["JobState"], show(victim)["Priority"]) == ("PENDING", str(PINNED))


def test_a_job_that_its_owner_sends_elsewhere_between_two_runs_is_before_nobody(
    count: Count,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    clean: Sandbox,
) -> None:
    """Else any owner could have the highest priority of all for as long as its job waits."""
    other = submit("--gres=gpu:4", "--nodelist=n2", "--time=60", script=LONG)
    wait_for_state(other, "RUNNING")
    counting = count("--gres=gpu:2", "--moldable=gpus=1:2", steps=20_000)
    wait_for_state(submit("--gres=gpu:2", "--time=60", script=LONG), "RUNNING")
    wait_until(counting.works, "the program to work")
    first = submit("--gres=gpu:4", "--time=10", script=LONG, user=USERS[1])
    elsewhere = ("scontrol", "update", f"jobid={counting.job}", "ExcNodeList=n1")

    def sent() -> bool:
        """Whether its owner has come between two runs, which last for a second."""
        return clean.run(elsewhere, user=USERS[0]).returncode == 0 or asked_again()

    def asked_again() -> bool:
        if counting.history().handovers[-1].outcome:
            counting.resize("1" if show(counting.job)["TresPerNode"].endswith(":2") else "2")
        return False

    wait_until(lambda: counting.resize("1").returncode == 0, "the job to be asked")
    wait_until(sent, "its owner to send it elsewhere")
    wait_until(lambda: int(show(counting.job)["Priority"]) < min(OURS), "its pin to be gone")
    assert show(counting.job)["ExcNodeList"] == "n1"
    wait_until(
        lambda: counting.history().handovers[-1].outcome == Outcome.CHANGED,
        "its resize to end for that",
    )
    clean.run(["scancel", str(other)], check=True)
    wait_for_state(first, "RUNNING")
    assert show(counting.job)["JobState"] == "PENDING"


MAY_DIFFER = frozenset(
    (
        *("Priority", "Restarts", "RunTime", "SubmitTime", "EligibleTime", "AccrueTime"),
        *("StartTime", "EndTime", "LastSchedEval", "Scheduler", "TimeLimit", "AdminComment"),
        *("CPU_IDs", "Reason", "NodeList", "BatchHost", "Nodes", "SuspendTime", "SLUID"),
    )
)
"""What says when and where a job runs, how often it did, and what is left of its time."""


def test_a_resize_and_its_way_back_leave_all_else_that_is_recorded_of_a_job(
    count: Count, show: Callable[[int | str], dict[str, str]]
) -> None:
    options = ("--nice=100", "--comment=by hand", "--mail-type=END", "--mem=100", "--requeue")
    counting = count("--gres=gpu:2", "--moldable=gpus=1:2", *options, steps=20_000)
    wait_until(counting.works, "the program to work")
    before = show(counting.job)
    for shape in ("1", "2"):
        counting.becomes(shape)
        wait_until(lambda: show(counting.job)["Nice"] == "100", "its own nice value")
    after = show(counting.job)
    differ = {key for key in before | after if before.get(key) != after.get(key)}
    assert differ - MAY_DIFFER == set()


def test_with_basic_priorities_a_job_has_its_very_priority_after_a_resize(
    count: Count, show: Callable[[int | str], dict[str, str]], clean: Sandbox
) -> None:
    with slurm_says(clean, "PriorityType=priority/basic"):
        counting = count("--gres=gpu:2", "--moldable=gpus=1:2", "--nice=100", steps=20_000)
        wait_until(counting.works, "the program to work")
        before = show(counting.job)["Priority"]
        counting.becomes("1")
        after = show(counting.job)
        assert (after["Priority"], "pliant-priority" in after) == (before, False)
        clean.run(["scancel", str(counting.job)], check=True)


def _waits_for(job: int | str, words: str) -> list[tuple[str, ...]]:
    return [("update", f"jobid={job}", words)]


def test_a_shape_that_a_limit_forbids_is_taken_back_and_not_tried_again(
    count: Count, clean: Sandbox, submit: Submit, wait_for_state: WaitForState
) -> None:
    """Slurm takes the update, and never starts the job: it goes on as it was.

    A limit that is known is not tried; one that was lowered within the last minute is not known.
    """
    few, user = f"few{os.getpid()}", ("user", USERS[0])
    add = ("sacctmgr", "-i")
    clean.run([*add, "add", "qos", few, "set", "MaxTRESPerUser=gres/gpu=3"], check=True)
    clean.run([*add, "modify", *user, "set", f"qos+={few}"], check=True)
    wait_for_state(submit("--gres=gpu:1", f"--qos={few}", script=LONG), "RUNNING")
    words = ("--gres=gpu:1", "--nodelist=n1", "--moldable=gpus=1:2:4", f"--qos={few}")
    counting = count(*words, steps=3000)
    wait_until(counting.works, "the program to work")
    clean.signal("pliantd", signal.SIGHUP)  # it reads limits again
    beyond = f"job {counting.job}: 4: its QOS lets one job have 3 GPUs at most"
    wait_until(lambda: beyond in counting.resize("4").stderr, "its limit to be known")
    assert counting.history().handovers == ()

    def asked() -> bool:
        """Lower the limit once pliantd has just read it, and ask."""
        clean.run([*lower, "MaxTRESPerUser=gres/gpu=3"], check=True)
        clean.signal("pliantd", signal.SIGHUP)
        wait_for_look(clean)
        clean.run([*lower, "MaxTRESPerUser=gres/gpu=2"], check=True)
        return counting.resize("2").returncode == 0

    lower = (*add, "modify", "qos", few, "set")
    wait_until(asked, "the job to be asked")
    wait_until(lambda: counting.history().handovers[-1].outcome != "", "its end")
    (row,) = counting.history().handovers
    limit = "QOSMaxGRESPerUser, a limit of its QOS"
    assert row.outcome == f"{Outcome.REFUSED}: {limit}"
    wait_until(lambda: len(counting.history().runs) == 2, "the program to run again")
    assert [run.shape for run in counting.history().runs] == ["1", "1"]
    tried = f"it was tried before, and refused: {limit}"
    wait_until(lambda: tried in counting.resize("2").stderr, "it not to be tried again")


def test_a_job_whose_submission_got_no_answer_is_resized(count: Count, clean: Sandbox) -> None:
    """What Slurm makes of its request at the start and the requeue is no update of its owner's."""
    clean.stop("pliantd")
    counting = count("--gres=gpu:2", "-c3", "--moldable=gpus=1:2", steps=20_000)
    clean.start("pliantd")
    wait_for_look(clean)
    wait_until(counting.works, "the program to work")
    counting.becomes("1")
    assert [run.shape for run in counting.history().runs] == ["2", "1"]


AGAINST_POLICY = "Job violates accounting/QOS policy"
NOT_ONE_GPU = """
   if job_desc.tres_per_node and job_desc.tres_per_node:find("gpu:1", 1, true) then
      slurm.log_info("%s", "own rule: refused")
      return slurm.ESLURM_ACCOUNTING_POLICY
   end
"""
"""A site's own rule for updates."""


def test_a_reshape_that_slurm_refuses_for_good_is_tried_once_and_the_job_goes_on_as_it_was(
    count: Count, clean: Sandbox, wait_for_state: WaitForState, workdir: Path
) -> None:
    counting = count("--gres=gpu:2", "--moldable=gpus=1:2", steps=1500)
    wait_until(counting.works, "the program to work")
    with job_submit_lua(clean, with_pliant(clean, modify=NOT_ONE_GPU)):
        wait_until(lambda: counting.resize("1").returncode == 0, "the job to be asked")
        wait_until(lambda: counting.history().handovers[-1].outcome != "", "its end")
    log = clean.layout.log("slurmctld").read_text(errors="replace")
    assert log.count("own rule: refused") == 1
    wait_for_state(counting.job, "COMPLETED")
    told = counting.history()
    assert [run.shape for run in told.runs] == ["2", "2"]
    assert (workdir / f"{counting.job}.out").read_text().splitlines()[-1] == checksum(1500)
    words = f"{Outcome.REFUSED}: {AGAINST_POLICY}"
    assert told.handovers[-1].outcome.startswith(words)
    assert all(words in counting.told(verb) for verb in ("why", "history"))


NO_PIN = """
   if job_desc.priority and job_desc.priority > 4294960000 and job_desc.priority < 4294967290 then
      return slurm.ESLURM_ACCOUNTING_POLICY
   end
"""
"""A site's rule that nobody sets a priority."""


def test_a_job_whose_place_a_sites_script_lets_nobody_keep_goes_on_where_it_is(
    count: Count,
    show: Callable[[int | str], dict[str, str]],
    clean: Sandbox,
    wait_for_state: WaitForState,
    workdir: Path,
) -> None:
    counting = count("--gres=gpu:2", "--moldable=gpus=1:2", steps=1500)
    wait_until(counting.works, "the program to work")
    with job_submit_lua(clean, with_pliant(clean, modify=NO_PIN)):
        wait_until(lambda: counting.resize("1").returncode == 0, "the job to be asked")
        wait_until(lambda: counting.history().handovers[-1].outcome != "", "its end")
        assert counting.history().handovers[-1].outcome == Outcome.STAYS
        wait_until(
            lambda: "saved in vain" in counting.resize("1").stderr, "it not to be asked again"
        )
        (trouble,) = ask(clean, a.StatusAnswer, "status").troubles
    assert AGAINST_POLICY in trouble
    clean.stop("pliantd")
    clean.start("pliantd")
    wait_for_state(counting.job, "COMPLETED")
    told = counting.history()
    assert (len(told.handovers), [run.shape for run in told.runs][-1]) == (1, "2")
    assert show(counting.job)["Restarts"] == "0"
    assert (workdir / f"{counting.job}.out").read_text().splitlines()[-1] == checksum(1500)


def test_each_task_of_an_array_is_resized_by_itself(
    count: Count,
    show: Callable[[int | str], dict[str, str]],
    wait_for_state: WaitForState,
    clean: Sandbox,
    workdir: Path,
) -> None:
    steps, shape = 1500, ("--gres=gpu:2", "--nodelist=n1", "--moldable=gpus=1:2")
    array = count("--array=3-5", "--output=%a.out", *shape, steps=steps, runs="RUNNING|PENDING")
    tasks = {n: Counting(clean, array.pliant, f"{array.job}_{n}") for n in (3, 4, 5)}
    tasks[4].becomes("1")
    wait_for_state(tasks[5].job, "RUNNING")
    tasks[3].becomes("1")
    assert [show(task.job)["TresPerNode"] for task in tasks.values()] == ["gres:gpu:1"] * 3
    for task in tasks.values():
        wait_for_state(task.job, "COMPLETED")
    for number in tasks:
        assert (workdir / f"{number}.out").read_text().splitlines()[-1] == checksum(steps)


def test_jobs_of_one_node_grow_at_once_and_nobody_takes_their_gpus(
    count: Count, submit: Submit, wait_for_state: WaitForState, clean: Sandbox, workdir: Path
) -> None:
    steps, shape = 2000, ("--gres=gpu:1", "--nodelist=n1", "--moldable=gpus=1:2")
    clean.run(["pliant", "pause"], check=True)  # nobody is molded: all begin and end at once
    try:
        array = count("--array=1-2", "--output=%a.out", *shape, steps=steps)
    finally:
        clean.run(["pliant", "resume"], check=True)
    tasks = {n: Counting(clean, array.pliant, f"{array.job}_{n}") for n in (1, 2)}
    assert [task.began() for task in tasks.values()] == ["1", "1"]
    # Held until both have saved: it would forbid the second once the first is to end sooner.
    wants = ("--hold", "--gres=gpu:3", "--nodelist=n1", "--time=5")
    other = submit(*wants, script=LONG, user=USERS[1])
    done = {n: task.resized() for n, task in tasks.items()}
    for task in tasks.values():
        wait_until(partial(is_mature, clean, task.job), f"job {task.job} to be mature")
    wait_for_look(clean)
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(lambda task: task.resize("2"), tasks.values()))
    assert [one.stderr for one in told] == ["", ""]
    saved = [partial(has_saved, clean, task.job) for task in tasks.values()]
    wait_until(lambda: all(one() for one in saved), "both to have saved")
    clean.run(["scontrol", "release", str(other)], check=True)
    wait_until(lambda: all(tasks[n].resized() > done[n] for n in tasks), "both to be 2")
    assert clean.run(["squeue", "-h", "-j", str(other), "-o", "%T"]).stdout == "PENDING\n"
    for task in tasks.values():
        wait_for_state(task.job, "COMPLETED")
    for number in tasks:
        assert (workdir / f"{number}.out").read_text().splitlines()[-1] == checksum(steps)


def test_a_run_whose_slurmstepd_was_killed_does_not_send_the_next_one_back(
    count: Count,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    clean: Sandbox,
    workdir: Path,
) -> None:
    """Nobody ends it: its `pliant run` waits to be requeued, and then does so itself."""
    steps = 1500
    counting = count("--gres=gpu:2", "--nodelist=n1", "--moldable=gpus=1:2", steps=steps)
    counting.began()
    wait_until(partial(is_mature, clean, counting.job), "it to be mature")
    every = [psutil.Process(found.pid) for found in clean.processes()]
    (stepd,) = [one for one in every if one.name() == "slurmstepd"]
    left = stepd.children(recursive=True)
    stepd.kill()
    counting.becomes("1")
    wait_until(lambda: not any(one.is_running() for one in left), "what is left of it to end")
    wait_for_state(counting.job, "COMPLETED")
    assert show(counting.job)["Restarts"] == "1"
    (out,) = workdir.glob("*.out")
    assert out.read_text().splitlines()[-1] == checksum(steps)


@pytest.mark.parametrize(
    ("options", "task", "words"),
    [
        (("--deadline=now+2hours",), "", "it has a deadline"),
        (("--licenses=tool@desk:1",), "", "it holds licences"),
        (("--array=1-2%1",), "_1", "the next task of its array would start in its place"),
    ],
)
def test_a_job_that_would_lose_its_place_is_left_alone(
    count: Count, options: tuple[str, ...], task: str, words: str
) -> None:
    job = count(*options, "--gres=gpu:1", "--moldable=gpus=1:2", steps=9000, runs="RUNNING|PENDING")
    one = Counting(job.sandbox, job.pliant, f"{job.job}{task}")
    told = (one.resize("2"), one.resize("1"))
    wait_until(lambda: words in one.resize("2").stderr, f"words, not {told}")
    assert one.history().handovers == ()


def test_a_job_is_left_alone_while_another_waits_for_a_limit_of_its_user(
    count: Count, submit: Submit, clean: Sandbox
) -> None:
    counting = count("--gres=gpu:1", "--moldable=gpus=1:2", steps=3000)
    limit = ["sacctmgr", "-i", "modify", "user", USERS[0], "set"]
    clean.run([*limit, "maxjobs=1"], check=True)
    try:
        other = submit("--time=5", script=LONG)
        words = f"job {other} waits for a limit that may be its own too"
        wait_until(lambda: words in counting.resize("2").stderr, "the limit to be seen")
        clean.run(["scancel", str(other)], check=True)
    finally:
        clean.run([*limit, "maxjobs=-1"], check=True)
    counting.becomes("2" if counting.began() == "1" else "1")
