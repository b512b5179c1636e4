"""Trial jobs beyond their user's cap on a real Slurm: taken, as ordinary ones, and told so."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from asking_helpers import ask, wait_for_look
from daemon_helpers import slurm_says, why
from lua_helpers import close_breaker, run_asked

from pliant.daemon import answers as a
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

ALICE, BOB = "pliant-alice", "pliant-bob"
CAPS = f"""
[trial]
max_jobs = 2
max_gpus = 2
max_minutes = 10

[trial.users.{BOB}]
max_minutes = "unlimited"
"""


@contextmanager
def deciding_by(sandbox: Sandbox, policy: str) -> Iterator[None]:
    """Let pliantd decide by a policy that looks at classes, with caps."""
    path = sandbox.layout.pliant_toml
    before = path.read_text()
    lines = [line for line in before.splitlines() if not line.startswith("policy =")]
    text = "\n".join(lines).replace("[daemon]", f'[daemon]\npolicy = "{policy}"')
    path.write_text(f"{text}\n{CAPS}")
    try:
        sandbox.signal("pliantd", signal.SIGHUP)
        wait_for_look(sandbox)
        close_breaker(sandbox)
        yield
    finally:
        path.write_text(before)
        sandbox.signal("pliantd", signal.SIGHUP)
        wait_for_look(sandbox)


def sbatch(sandbox: Sandbox, *options: str, user: str = ALICE) -> tuple[int, str]:
    """Submit a held trial job; return its number and what was said."""
    argv = ["sbatch", "--parsable", "--hold", "--output=/dev/null", "--class=trial", *options]
    done = run_asked(sandbox, [*argv, "--wrap=true"], user)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr.replace("sbatch: ", "").strip()


def test_a_job_beyond_a_cap_is_taken_as_an_ordinary_one_and_becomes_a_trial_job_in_its_turn(
    clean: Sandbox,
) -> None:
    ordinary = "; it is taken as an ordinary job"
    with deciding_by(clean, "fifo"):
        told = {
            options: sbatch(clean, *options.split())
            for options in ("-t20", "--gres=gpu:4 -t5", "--gpus=8 -t5", "-t5", "-t 5", "-t05")
        }
        says = [words.removesuffix(ordinary) for _, words in told.values()]
        number = "2 trial jobs of this user wait or run before it, and 2 at most may:"
        assert says == [
            "pliant: --class=trial: its time limit is 20 minutes, and a trial job here has 10"
            " minutes at most (-t 10)",
            "pliant: --class=trial: it may take 4 GPUs, and a trial job here 2 at most",
            "pliant: --class=trial: it may take 8 GPUs, and a trial job here 2 at most",
            "",
            "",
            f"pliant: --class=trial: {number} it is one as soon as enough of them have ended",
        ]
        assert sbatch(clean, "-t20", user=BOB)[1] == ""
        wait_for_look(clean)
        jobs = [job for job, _ in told.values()]
        ordinary_ones = [job for job in jobs if "but an ordinary one" in why(clean, job).text]
        assert ordinary_ones == [*jobs[:3], jobs[5]]
        clean.run(["scancel", str(jobs[3])], check=True)
        clean.run(["scontrol", "update", f"jobid={jobs[0]}", "timelimit=10"], check=True)
        wait_for_look(clean)
        ordinary_ones = [job for job in jobs[4:] if "ordinary" in why(clean, job).text]
        assert ordinary_ones == [jobs[5]]  # the first is one now, and stands before it
        assert "ordinary" not in why(clean, jobs[0]).text


PREEMPTING = ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE")
"""Slurm itself preempts."""


@pytest.mark.parametrize(
    ("policy", "troubles"),
    [("fifo", []), ("fitgpp", ["[daemon] policy fitgpp preempts no job and decides as fifo: "])],
)
def test_where_slurm_itself_preempts_a_policy_that_would_too_is_a_trouble(
    clean: Sandbox, policy: str, troubles: list[str]
) -> None:
    with slurm_says(clean, *PREEMPTING), deciding_by(clean, policy):
        said = ask(clean, a.StatusAnswer, "status").troubles
        assert [words.partition("the batch system")[0] for words in said] == troubles
    assert ask(clean, a.StatusAnswer, "status").troubles == ()
