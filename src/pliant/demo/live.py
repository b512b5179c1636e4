"""One round of the demonstration on a real Slurm: submit, wait, read what Slurm recorded."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pliant.demo import records
from pliant.demo.mix import GPUS, NODES, SHARDS, Submission
from pliant.demo.run import Run
from pliant.demo.script import sbatch, script
from pliant.errors import BadAnswer, Refused, Unavailable
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.options import SCHEDULER_PARAMETERS

Say = Callable[[str], None]

_POLL_S = 0.5
_SPARE_S = 120.0


def live_round(
    name: str,
    mode: str,
    jobs: Sequence[Submission],
    say: Say,
    scheduler_parameters: str = SCHEDULER_PARAMETERS,
) -> Sequence[Run]:
    """Run the jobs in a sandbox of their own, in a mode of Pliant, and remove it.

    Raises Unavailable, Refused (by sbatch) and BadAnswer.
    """
    options = Options(
        nodes=NODES,
        gpus=GPUS,
        shards=SHARDS,
        mode=mode,
        scheduler_parameters=scheduler_parameters,
    )
    sandbox = Sandbox(name, options)
    sandbox.up()
    try:
        return submit_all(sandbox, jobs, say)
    finally:
        sandbox.down()


def submit_all(sandbox: Sandbox, jobs: Sequence[Submission], say: Say) -> Sequence[Run]:
    """Submit the jobs to a sandbox that is up, each at its time, and return how they ran."""
    outputs = sandbox.layout.top / "demo"
    outputs.mkdir(exist_ok=True)
    outputs.chmod(0o1777)  # both users write their jobs' output there
    flag = "--moldable=" if _has_flag(sandbox) else "--comment=pliant:"
    began = time.monotonic()
    numbers: dict[str, Submission] = {}
    for job in jobs:
        time.sleep(max(0.0, began + job.at_s - time.monotonic()))
        numbers[_submit(sandbox, job, outputs, flag)] = job
    say(f"{len(jobs)} jobs submitted in {time.monotonic() - began:.0f} s")
    _wait(sandbox, jobs, say)
    found = records.runs(_ask(sandbox, "scontrol", "-o", "-d", "show", "job"), numbers)
    _compare(found, outputs)
    return found


def _has_flag(sandbox: Sandbox) -> bool:
    return "--moldable" in _ask(sandbox, "sbatch", "--help")


def _submit(sandbox: Sandbox, job: Submission, outputs: Path, flag: str) -> str:
    argv = sbatch(job, str(outputs / f"{job.name}.out"), flag)
    done = sandbox.run(argv, user=job.user, stdin=script(job))
    if done.returncode:
        raise Refused(f"sbatch of {job.name}: {done.stderr.strip()}")
    return done.stdout.strip().partition(";")[0]


def _wait(sandbox: Sandbox, jobs: Sequence[Submission], say: Say) -> None:
    """Wait until no job is left; all together cannot take longer than one after another."""
    longest_s = sum(max(job.run_s(shape) for shape in job.shapes) for job in jobs)
    deadline = time.monotonic() + longest_s + _SPARE_S
    left = len(jobs)
    while left:
        time.sleep(_POLL_S)
        now = len(_ask(sandbox, "squeue", "-h", "-o", "%i").split())
        if time.monotonic() > deadline:
            raise Unavailable(f"{now} of {len(jobs)} jobs have not ended in time")
        if now // 5 != left // 5 or not now:
            say(f"{len(jobs) - now} of {len(jobs)} jobs have ended")
        left = now


def _ask(sandbox: Sandbox, *argv: str) -> str:
    try:
        done = sandbox.run(argv)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{argv[0]}: no answer within {error.timeout:.0f} s") from error
    if done.returncode:
        raise BadAnswer(f"{argv[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _compare(found: Sequence[Run], outputs: Path) -> None:
    """Check that every job worked at the speed of the GPUs that Slurm says it was given."""
    for run in found:
        text = (outputs / f"{run.job.name}.out").read_text()
        said = re.match(r"gpus (\S+) ", text)
        if said is None or float(said[1]) != float(run.shape.amount):
            raise BadAnswer(
                f"{run.job.name}: Slurm's record says {run.shape}, the job itself {text.strip()!r}"
            )
