"""`pliant monitor` beside a real Slurm, which tracks processes by their parents."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import psutil
import pytest
from slurm_helpers import Submit, WaitForState, wait_until

from pliant.monitor.service import Node, once
from pliant.monitor.tier import Tier
from pliant.sandbox import Sandbox
from pliant.sandbox.accounts import person

pytestmark = pytest.mark.slurm

PLIANT = str(Path(sys.executable).with_name("pliant"))
FORGED = 1_987_654_321
"""More than any job's number."""
SPINS = "(while :; do :; done) &\necho $! $$ >spinning\nwait"
SLEEPS = "orphan=$(sleep 300 >/dev/null & echo $!)\nsleep 300 &\necho $orphan $! $$ >sleeping\nwait"
ON_N1 = ("--nodelist=n1", "--mem=100", "--time=30")
Impostors = Callable[[int], list[int]]


@pytest.fixture
def impostors(workdir: Path, users: tuple[str, str]) -> Iterator[Impostors]:
    """Start a user's processes that say they are of a job, or its slurmstepd; return all so far."""
    own = shutil.copy("/bin/sleep", workdir / "slurmstepd")
    alice = person(users[0])
    account = {"user": alice.uid, "group": alice.gid, "extra_groups": []}
    started: list[subprocess.Popen[bytes]] = []

    def start(job: int) -> list[int]:
        for program, title in (("/bin/sleep", "sleep"), (own, f"slurmstepd: [{job}.batch]")):
            said = {"SLURM_JOB_ID": str(job)}
            begun = subprocess.Popen([title, "300"], executable=program, env=said, **account)  # type: ignore[call-overload]  # **account
            started.append(begun)
        return [process.pid for process in started]

    yield start
    for process in started:
        process.kill()
        process.wait()


def cpu_s(pids: list[int]) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:4]) for pid in pids)


def seen_of(sandbox: Sandbox, pids: list[int], place: Path) -> Path:
    """A /proc of one sandbox's processes and some more: others on this host have our numbers too."""
    place.mkdir()
    for pid in {*pids, *(found.pid for found in sandbox.processes())}:
        (place / str(pid)).symlink_to(f"/proc/{pid}")
    return place


def test_a_reading_has_what_jobs_used_and_nobody_who_says_he_is_of_a_job(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    workdir: Path,
    impostors: Impostors,
) -> None:
    jobs = [submit(*ON_N1, script=script) for script in (SPINS, SLEEPS)]
    for job in jobs:
        wait_for_state(job, "RUNNING")
    told = workdir / "spinning", workdir / "sleeping"
    wait_until(lambda: all(each.exists() and each.read_text() for each in told), "jobs to work")
    spinners, sleepers = ([int(pid) for pid in each.read_text().split()] for each in told)
    impostors(jobs[1])
    liars = impostors(FORGED)

    printed = clean.run([PLIANT, "monitor", "--once", "--json"])
    assert (printed.returncode, printed.stderr) == (0, "")
    numbers = {int(row["job"]) for row in json.loads(printed.stdout)["jobs"]}
    assert numbers >= set(jobs)
    assert FORGED not in numbers

    node = Node("n1", proc=seen_of(clean, liars, workdir / "proc"))
    least = cpu_s(spinners)
    found = once(node, 0.5, Event().wait)
    most = cpu_s(spinners)
    assert found is not None
    spinning, sleeping = found.jobs
    assert [int(row.job) for row in found.jobs] == jobs
    assert (spinning.processes, sleeping.processes) == (len(spinners), len(sleepers))
    starting_s = 1.0  # what its slurmstepd had others do before the script began
    assert least <= spinning.cpu_s <= most + starting_s
    assert sleeping.cpu_s <= starting_s
    assert psutil.Process(sleepers[0]).ppid() != sleepers[-1]
    assert spinning.speed is not None
    assert sleeping.speed is not None
    assert spinning.speed.value > sleeping.speed.value == 0
    assert spinning.speed.tier is sleeping.speed.tier is Tier.CPU
    assert all(psutil.pid_exists(pid) for pid in liars)
