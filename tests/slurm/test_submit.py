"""Submission through slurmctld with the real pliantd: the forms that requests get, and who is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from asking_helpers import wait_for_look
from daemon_helpers import configured
from lua_helpers import PLAIN, close_breaker, job_submit_lua, run_asked, with_pliant
from release_helpers import Release, from_on
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.grammar import find_token
from pliant.grammar.token import spec_text
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

Show = Callable[[int | str], dict[str, str]]

USER = "pliant-alice"
HELD = "--hold"
"""A held job cannot start now: it is given its own shape, and stays to be looked at."""
NOT_UNDERSTOOD = (
    "pliant: not available now, and what was said to it is not understood: the job is submitted as"
    " written"
)


@pytest.fixture
def submit_asked(submit: Submit, clean: Sandbox, show: Show) -> Submit:
    """Submit, and once more where a busy machine let pliantd answer too late."""

    def submitted(*options: str, script: str = "true", user: str | None = USER) -> int:
        for _ in range(3):
            job = submit(*options, script=script, user=user)
            if "own=" in noted(clean, job):
                return job
            clean.run(["scancel", str(job)], check=True)
            close_breaker(clean)
            wait_for_look(clean)
        raise AssertionError(f"pliantd did not answer in time: {options}")

    return submitted


def noted(sandbox: Sandbox, job: int) -> str:
    """What a job's token says, in words."""
    spec = find_token(" ".join(words_of(sandbox, job)))
    return spec_text(spec) if spec else ""


def words_of(sandbox: Sandbox, job: int) -> list[str]:
    """The blank-separated words of a job's AdminComment."""
    argv = ["squeue", "-h", "-j", str(job), "-O", "admin_comment:|"]
    return sandbox.run(argv, check=True).stdout.strip().removesuffix("|").split(" ")


FORMS = [
    ("--gres=gpu:2", "own=2;fp=1,0,1,0,0,0,0", "1 1 1 1 gres:gpu:2"),
    ("--gpus=2", "own=2;fp=1,0,1,0,0,0,0", "1 1 1 1 gres:gpu:2"),
    ("--gpus=8", "own=2x4;fp=1,0,1,0,0,0,0", "2 2 2 1 gres:gpu:4"),
    ("-N2 --gpus=4", "own=2x2;fp=1,0,1,0,0,0,0", "2 2 2 1 gres:gpu:2"),
    ("--gpus-per-node=2 -N2", "own=2x2;fp=1,0,1,0,0,0,0", "2 2 2 1 gres:gpu:2"),
    ("--gpus-per-task=1 -n4 -c2", "own=4;fp=1,1,2,0,0,0,0", "1 4 8 2 gres:gpu:4"),
    ("--gpus-per-task=1 --ntasks-per-node=2 -N2", "own=2x2;fp=1,1,1,0,0,0,0",
     "2 4 4 1 gres:gpu:2"),
    ("--gpus=2 --ntasks-per-gpu=2", "own=2;fp=1,2,1,0,0,0,0", "1 4 4 1 gres:gpu:2"),
    ("--gpus=2 --cpus-per-gpu=3 --mem-per-gpu=500", "own=2;fp=1,0,1,3,0,0,500",
     "1 1 6 6 gres:gpu:2"),
    ("--gres=gpu:1 -n4 --mem-per-cpu=100", "own=1;fp=4,0,1,0,0,100,0", "{} 4 4 1 gres:gpu:1"),
    ("--gres=gpu:1 -n24 -N2", "own=2x1;fp=12,0,1,0,0,0,0", "2 24 24 1 gres:gpu:1"),
    ("--gres=shard:2", "own=1/2;fp=1,0,1,0,0,0,0", "1 1 1 1 gres:shard:2"),
    ("", "own=4;fp=1,0,1,0,0,0,0", "1 1 1 1 gres:gpu:4"),
]  # fmt: skip


def test_each_way_to_ask_is_given_the_per_node_form(
    submit_asked: Submit, show: Show, clean: Sandbox, release: Release
) -> None:
    wait_for_look(clean)
    found = []
    for options, _, _ in FORMS:
        total = 4 if not options else 8
        job = submit_asked(HELD, f"--moldable=gpus=1/4-{total}", *options.split())
        fields = show(job)
        # A waiting job's nodes: "2" where it is fixed, "2-4" where it is a range.
        asked = [fields[name] for name in ("NumNodes", "NumTasks", "NumCPUs", "CPUs/Task")]
        asked[0] = asked[0].removesuffix(f"-{asked[0].partition('-')[0]}")
        leftover = {
            name: value
            for name, value in fields.items()
            if name.startswith(("TresPerJob", "TresPerTask", "CpusPerTres", "MemPerTres"))
        }
        # from 24.11 on the CPUs of a task stand beside its GPUs
        assert leftover in ({}, {"TresPerTask": f"cpu={fields['CPUs/Task']}"}), options
        found.append((options, noted(clean, job).partition(";")[2],
                      " ".join([*asked, fields["TresPerNode"]])))  # fmt: skip
    # 26.05 says on how many nodes tasks may be spread, too
    spread = from_on({"22.05": "1", "26.05": "1-4"}, release)
    assert found == [(*form, asked.format(spread)) for *form, asked in FORMS]


def test_what_fits_now_starts_at_once_as_that(
    submit: Submit,
    submit_asked: Submit,
    show: Show,
    clean: Sandbox,
    wait_for_state: WaitForState,
) -> None:
    others = submit("-N3", "--exclusive", script="sleep 600", user=None)
    wait_for_state(others, "RUNNING")
    filler = submit("--gres=gpu:2", script="sleep 600", user=None)
    wait_for_state(filler, "RUNNING")
    wait_for_look(clean)
    job = submit_asked("--moldable=gpus=1-4", "--gres=gpu:4", script="sleep 600")
    assert noted(clean, job) == "moldable=gpus=1-4;own=4;set=2;fp=1,0,1,0,0,0,0"
    wait_for_state(job, "RUNNING")
    assert show(job)["TresPerNode"] == "gres:gpu:2"


def test_what_an_owner_should_know_is_said_at_submission(
    clean: Sandbox,
) -> None:
    close_breaker(clean)
    wait_for_look(clean)

    def said(*options: str) -> list[str]:
        argv = ["sbatch", "--parsable", HELD, "--moldable=gpus=1:3:16", *options, "--wrap=true"]
        return run_asked(clean, argv, "pliant-alice").stderr.splitlines()

    never = "sbatch: pliant: gpus=16: no node here could ever give it, left out"
    assert said("--gres=gpu:1") == [never]
    assert said("--gres=gpu:2") == [
        never,
        "sbatch: pliant: it asks for 2 besides, which is not among the shapes that it may have:"
        " it is submitted with 1",
    ]
    assert said("--exclusive") == [
        "sbatch: pliant: --exclusive: a job that has its nodes alone keeps its shape;"
        " the job is submitted as written",
        "sbatch: pliant: the job asks for no GPU beside --moldable and runs without one:"
        " add --gres=gpu:N to say what it should run with then",
    ]


def test_an_array_and_a_job_by_its_comment_carry_the_token_too(
    submit_asked: Submit, show: Show, clean: Sandbox
) -> None:
    wait_for_look(clean)
    array = submit_asked(HELD, "--moldable=gpus=1-2", "--array=1-3", "--gres=gpu:1")
    assert noted(clean, array) == "moldable=gpus=1-2;own=1;fp=1,0,1,0,0,0,0"
    for blank in ("", " "):
        said = f"--comment=pliant:{blank}gpus=1-2;steps=5 and my own"
        comment = submit_asked(HELD, said, "--gres=gpu:1")
        assert noted(clean, comment) == "moldable=gpus=1-2;steps=5;own=1;fp=1,0,1,0,0,0,0"


def test_a_job_by_its_comment_is_told_what_it_is_submitted_with_and_what_is_not_understood(
    clean: Sandbox,
) -> None:
    """A blank after the colon or none; a comment that only begins so is not passed over."""
    close_breaker(clean)

    def says(words: str) -> str:
        wait_for_look(clean)
        options = ("sbatch", "--parsable", HELD, f"--comment=pliant:{words}", "--gres=gpu:2")
        return run_asked(clean, [*options, "--wrap=true"], USER).stderr

    less = "which is not among the shapes that it may have: it is submitted with 1\n"
    assert [says(blank + "gpus=1").endswith(less) for blank in ("", " ")] == [True, True]
    assert "pliant: 'see': one of moldable" in says(" see notes")
    assert "a value is expected after gpus=" in says("gpus = 1-4")
    clean.stop("pliantd")
    for words in (" see notes", "gpus = 1-4", " gpus"):
        done = clean.run(["sbatch", HELD, f"--comment=pliant:{words}", "--wrap=true"], user=USER)
        assert (done.returncode, done.stderr) == (0, f"sbatch: {NOT_UNDERSTOOD}\n")


def test_observing_writes_the_token_and_nothing_else(
    submit: Submit, submit_asked: Submit, show: Show, clean: Sandbox
) -> None:
    options = (HELD, "--moldable=gpus=1-2", "--gpus=4", "-n4")
    with job_submit_lua(clean, PLAIN):
        plain = show(submit(*options))
    with configured(clean, default='"observe"'):
        job = submit_asked(*options)
        assert noted(clean, job) == "moldable=gpus=1-2,nodes=1-4;own=4;fp=1,1,1,0,0,0,0"
        assert masked(show(job) | {"AdminComment": ""}) == masked(plain | {"AdminComment": ""})
        wrong = clean.run(["sbatch", HELD, "--comment=pliant:gpus=x", "--wrap=true"])
        assert wrong.returncode == 0
        assert wrong.stderr.endswith("is expected; nothing of it is used\n")


def test_tasks_start_on_the_nodes_that_slurm_spreads_them_over(
    clean: Sandbox, submit: Submit, submit_asked: Submit, wait_for_state: WaitForState, show: Show
) -> None:
    for number in range(1, 5):
        taken = submit("-w", f"n{number}", "-n1", "-c13", script="sleep 300")
        wait_for_state(taken, "RUNNING")
    wait_for_look(clean)
    job = submit_asked("-n4", "--gres=gpu:1", "--moldable=gpus=1-4", script="sleep 300")
    wait_for_state(job, "RUNNING")
    assert show(job)["NumNodes"] == "2"


@pytest.mark.parametrize("nodes", ["-N2", "-N1-2"])
def test_a_total_starts_on_the_uneven_nodes_that_slurm_spreads_it_over(
    clean: Sandbox,
    submit: Submit,
    submit_asked: Submit,
    wait_for_state: WaitForState,
    nodes: str,
) -> None:
    for node, gpus in {"n1": 1, "n2": 3, "n3": 4, "n4": 4}.items():
        taken = submit("-w", node, f"--gres=gpu:{gpus}", script="sleep 300")
        wait_for_state(taken, "RUNNING")
    wait_for_look(clean)
    job = submit_asked(nodes, "--gpus=4", "--moldable=gpus=4-8", script="sleep 300")
    wait_for_state(job, "RUNNING")
    assert clean.run(["squeue", "-h", "-j", str(job), "-o", "%D"]).stdout == "2\n"


VARYING = {
    *("JobId", "ArrayJobId", "SLUID", "StdErr", "StdOut"),  # the paths hold the job's number
    *("SubmitTime", "LastSchedEval"),
}
"""What is another's with each held job; none of it is the owner's own word."""


def masked(fields: dict[str, str]) -> dict[str, str]:
    """Leave out numbers, and moments of time."""
    return {name: value for name, value in fields.items() if name not in VARYING}


UNFLAGGED = [
    "",
    "--gres=gpu:2",
    "--gpus=4",
    "-N2 --gpus-per-node=2 --ntasks-per-node=3 -c2",
    "-n4 --gpus-per-task=1 --mem-per-gpu=100 --cpus-per-gpu=2",
    "--gres=shard:1,nogpu:1 -C a100 --mem=500 -t 5 --time-min=2",
    "--array=1-5%2 --gres=gpu:1 --comment=hello --requeue",
    "--exclusive --nice=5 --begin=2040-01-01 --job-name=x",
    "-p gpu,cpu --mincpus=2 --ntasks-per-core=1 -N1-3 --licenses= --oversubscribe",
]


def shown_by(sandbox: Sandbox, workdir: Path, options: str) -> dict[str, str]:
    """Submit a held job and return its fields; it is cancelled."""
    argv = ["sbatch", "--parsable", HELD, f"--chdir={workdir}", *options.split(), "--wrap=true"]
    job = sandbox.run(argv, user="pliant-alice", check=True).stdout.strip()
    told = sandbox.run(["scontrol", "-d", "show", "job", job], check=True).stdout
    sandbox.run(["scancel", job], check=True)
    return dict(word.split("=", 1) for word in told.split() if "=" in word)


def test_jobs_that_say_nothing_are_as_if_pliant_were_not_there(
    clean: Sandbox, without_pliant: Sandbox, workdir: Path
) -> None:
    wait_for_look(clean)
    for options in UNFLAGGED:
        fields = shown_by(clean, workdir, options)
        assert masked(fields) == masked(shown_by(without_pliant, workdir, options)), options
        assert "AdminComment" not in fields and fields.keys() >= {
            "TimeLimit",
            "TimeMin",
            "Priority",
        }


ENVIRONMENT = 'env -0 | sort -z | tr "\\n\\0" " \\n"; echo; ulimit -a; srun -Q env | sort'


ANOTHERS = {
    *("SLURM_JOB_ID", "SLURM_JOBID", "SLURM_TASK_PID", "SLURM_WORKING_CLUSTER"),
    *("SLURM_SRUN_COMM_PORT", "SLURM_STEP_LAUNCHER_PORT"),
    *("SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME", "SLURM_JOB_SLUID"),
}
"""Numbers in the environment that are another's in each run."""


def environment_in(sandbox: Sandbox, workdir: Path, options: str) -> list[str]:
    """Run a job to its end and return what its script and its first step find around them."""
    argv = ["sbatch", "--parsable", f"--chdir={workdir}", "--output=said", *options.split()]
    stdin = f"#!/bin/bash\n{ENVIRONMENT}\n"
    job = sandbox.run(argv, user="pliant-alice", stdin=stdin, check=True).stdout.strip()

    def has_ended() -> bool:
        states = sandbox.run(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"], check=True)
        return states.stdout == "COMPLETED\n"

    wait_until(has_ended, f"job {job} to end")
    said = (workdir / "said").read_text().replace(sandbox.name, "NAME")
    return [line for line in said.splitlines() if line.partition("=")[0] not in ANOTHERS]


def test_jobs_that_say_nothing_find_what_they_would_find_without_pliant(
    clean: Sandbox, without_pliant: Sandbox, workdir: Path
) -> None:
    options = "--gres=gpu:2 -n4 -N1 -t 5"
    with_it = environment_in(clean, workdir, options)
    without = environment_in(without_pliant, workdir, options)
    assert not set(with_it) ^ set(without), sorted(set(with_it) ^ set(without))
    assert with_it == without
    assert with_it.count("SLURM_NTASKS=4") == 1 + 4


SITE = """
   if job_desc.time_limit == slurm.NO_VAL then
      slurm.log_user("site: say a time limit")
      return slurm.ERROR
   end
   job_desc.admin_comment = "site=checked"
   if job_desc.partition == nil then job_desc.partition = "gpu" end
"""


def test_a_sites_own_rules_go_on_beside_pliant(
    submit: Submit, submit_asked: Submit, show: Show, clean: Sandbox
) -> None:
    wait_for_look(clean)
    with job_submit_lua(clean, with_pliant(clean, submit=SITE)):
        refused = clean.run(["sbatch", "--moldable=gpus=1-4", "--wrap=true"])
        assert refused.returncode != 0
        assert "site: say a time limit" in refused.stderr and "pliant" not in refused.stderr
        plain = submit(HELD, "-t", "5")
        flagged = submit_asked(HELD, "-t", "5", "--moldable=gpus=1-4", "--gpus=2")
    assert show(plain)["AdminComment"] == "site=checked"
    words = words_of(clean, flagged)
    assert words[0] == "site=checked" and words[1].startswith("pliant=v1:") and len(words) == 2
    assert show(flagged)["TresPerNode"] == "gres:gpu:2"
    wait_until(lambda: words_of(clean, flagged) == words, "nothing to be lost later")
