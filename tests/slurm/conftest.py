"""One private Slurm for each worker of the run, and what tests do with it.

Needs root and the packages that `make test` installs; where one is missing the run fails and says
which. Two ordinary users, pliant-alice and pliant-bob, are made where they are missing and stay.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psutil
import pytest
from asking_helpers import answer_of
from changing_helpers import Cluster
from daemon_helpers import LONG, OneNode
from release_helpers import Release, release_here, requests
from resizing_helpers import Place
from slurm_helpers import POLL_S, Submit, WaitForState, wait_until
from user_helpers import commands_for
from wrapper_helpers import HASTY, SOURCE

from fake_door import FakeDoor, munge_program
from limits import HANG_S
from pliant.batch.slurm.queries import CAREFUL
from pliant.errors import PliantError
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.accounts import person
from pliant.sandbox.layout import Layout, base_directory
from pliant.sandbox.processes import find
from pliant.sandbox.record import all_names

USERS = ("pliant-alice", "pliant-bob")
PREFIX = "pytest-"
TAKEN = re.compile(r" GresUsed=\S*(gpu|shard)(:[a-z]\w*)?:[1-9]")
"""GPUs that slurmctld still counts as used once all jobs have ended: 22.05 has done so (GresUsed of 4
where no CPU was allocated), and would start no job there for ever; it counts anew when it begins."""


@pytest.fixture(scope="session")
def release() -> Release:
    """The release of the Slurm under test: (22, 5)."""
    return release_here()


@pytest.fixture(scope="session")
def users() -> tuple[str, str]:
    """Two ordinary users with homes."""
    for name in USERS:
        try:
            pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "-m", "-s", "/bin/bash", name], check=False, timeout=HANG_S)
            pwd.getpwnam(name)  # another worker may have been first
    return USERS


@pytest.fixture(scope="session")
def programs(users: tuple[str, str]) -> Iterator[Path]:
    """A folder with `pliant`, and a Python, that users may run."""
    folder = Path(tempfile.mkdtemp(prefix="pliant-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield commands_for(person(users[0]), folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Four nodes with four fake GPUs and 16 CPUs each, with accounting, Pliant enforcing."""
    _remove_left_by_dead_runs()
    made = Sandbox(f"{PREFIX}{os.getpid()}", Options(nodes=4, gpus=4, accounting=True, users=users))
    try:
        made.up()
    except PliantError as error:
        pytest.fail(f"no real Slurm for these tests: {error}", pytrace=False)
    yield made
    made.down()


@pytest.fixture(scope="session")
def without_pliant(users: tuple[str, str]) -> Iterator[Sandbox]:
    """The same cluster without any part of Pliant: no plugin, no filter, no daemon."""
    options = Options(nodes=4, gpus=4, accounting=True, users=users, mode="none")
    made = Sandbox(f"{PREFIX}none-{os.getpid()}", options)
    made.up()
    yield made
    made.down()


def _remove_left_by_dead_runs() -> None:
    for name in all_names(base_directory()):
        pid = name.rpartition("-")[2]
        if name.startswith(PREFIX) and pid.isdigit() and not psutil.pid_exists(int(pid)):
            Sandbox(name).down()


@pytest.fixture
def workdir() -> Iterator[Path]:
    """A directory where every user may write; jobs run there and leave their output there."""
    path = Path(tempfile.mkdtemp(prefix="pliant-test-", dir="/tmp"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def clean(sandbox: Sandbox) -> Iterator[Sandbox]:
    """The sandbox with no job in it and every part running, before and after the test."""
    _clean(sandbox)
    yield sandbox
    _clean(sandbox)


STUCK_S = 120.0
"""How long a job may be listed that was cancelled: then its node is taken for lost.

Slurm sends the kill of one that is COMPLETING again after 60 s, looked at once a minute. Seen once:
an array's task that was cancelled as it started was there for more than ten minutes. Of Pliant's a
slurmd loads what is asked as a job or a task starts, and nothing that is asked as it ends.
"""


def _clean(sandbox: Sandbox) -> None:
    _restore(sandbox)
    there, since_s = list[str](), time.monotonic()

    def all_ended() -> bool:
        nonlocal there, since_s
        asked = sandbox.run(["squeue", "-h", "-o", "%A"])
        if asked.returncode != 0:  # slurmctld was about to end, as the test before had asked it to
            print(asked.stderr)
            _restore(sandbox)
            return False
        jobs = asked.stdout.split()
        if jobs:
            sandbox.run(["scancel", *dict.fromkeys(jobs)])
        if jobs != there:
            there, since_s = jobs, time.monotonic()
        elif jobs and time.monotonic() - since_s > STUCK_S:
            warnings.warn(f"stuck, and ended by hand:\n{_standing(sandbox)}", stacklevel=1)
            sandbox.run(["scontrol", "update", "nodename=ALL", "state=down", "reason=stuck"])
            _restore(sandbox)
            since_s = time.monotonic()
        return not jobs

    def all_idle() -> bool:
        states = sandbox.run(["sinfo", "-h", "-N", "-p", "gpu", "-o", "%T"]).stdout.split()
        return bool(states) and set(states) <= {"idle", "reserved", "maint"}

    def knows_limits() -> bool:
        """Whether slurmdbd has answered pliantd: until then it makes no job larger."""
        if sandbox.pid("pliantd") is None or not sandbox.record.options.accounting:
            return True
        answer = answer_of(sandbox, "status")
        return answer.is_ok and CAREFUL not in answer.fields["json"]

    wait_until(all_ended, "all jobs to end")
    wait_until(all_idle, "all nodes to be idle")
    if TAKEN.search(sandbox.run(["scontrol", "-o", "-d", "show", "node"]).stdout):
        sandbox.stop("slurmctld")
        sandbox.start("slurmctld")
        wait_until(all_idle, "all nodes to be idle again")
    wait_until(knows_limits, "pliantd to know of limits")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure what the cluster says of itself then."""
    report = yield
    made = getattr(item, "funcargs", {}).get("sandbox")
    if report.failed and isinstance(made, Sandbox):
        try:
            told = _standing(made)
        except (PliantError, OSError, subprocess.SubprocessError) as error:  # it hangs, or is down
            told = f"it does not say: {error}"
        report.sections.append(("the cluster", told))
    return report


def _standing(sandbox: Sandbox) -> str:
    """Return what a cluster on which a test has failed says of itself, the most telling first."""
    asked = (
        ["squeue", "-a", "-o", "%i %T %r %N %u %S"],
        ["sinfo", "-N", "-o", "%N %T %E"],
        ["scontrol", "-o", "show", "reservation"],
        ["scontrol", "ping"],
        ["scontrol", "-o", "-d", "show", "node"],
        ["squeue", "-a", "-t", "all", "-o", "%i %T %r %N %u"],
    )
    told = [answer.stdout + answer.stderr for answer in map(sandbox.run, asked)]
    layout = sandbox.layout
    files = (layout.log("slurmctld"), *layout.logs.glob("slurmd-*.log"), layout.output("pliantd"))
    logs = [
        f"{file.stem}: {line}"
        for file in files
        if file.exists()
        for line in [
            line
            for line in file.read_text(errors="replace").splitlines()
            if "REQUEST_KILL_JOB" not in line  # ours, as all is cleaned up
        ][-20:]
    ]
    parts = str(sandbox.status()["parts"])
    with contextlib.suppress(PliantError):
        parts += f"\n{answer_of(sandbox, 'status').fields}"
    return "\n".join([told[0], *_threads(layout), parts, *told[1:-1], *logs, told[-1]])


def _threads(layout: Layout) -> list[str]:
    """Return a line for each of Slurm's processes: in what call of the kernel each thread waits."""
    lines = []
    for process in find(layout):
        try:
            name = psutil.Process(process.pid).name()
            tasks = Path(f"/proc/{process.pid}/task").glob("*/wchan")
            calls = Counter(task.read_text() for task in tasks)
        except (psutil.Error, OSError):  # it has just ended
            continue
        if name.startswith("slurm"):
            lines.append(f"{process.part} {process.pid} {name}: {dict(calls)}")
    return lines


def _restore(sandbox: Sandbox) -> None:
    """Let every part run again that a test stopped or killed."""
    for part, pid in sandbox.status()["parts"].items():
        if pid is None:
            sandbox.start(part)
        elif psutil.Process(pid).status() == psutil.STATUS_STOPPED:
            sandbox.signal(part, signal.SIGCONT)
    tired = sandbox.run(["sinfo", "-h", "-N", "-p", "gpu", "-t", "drain,down", "-o", "%N"])
    for node in tired.stdout.split():
        sandbox.run(["scontrol", "update", f"nodename={node}", "state=resume"])


@pytest.fixture
def submit(clean: Sandbox, workdir: Path) -> Submit:
    """Submit a batch script with the real sbatch."""

    def submitted(*options: str, script: str = "true", user: str | None = USERS[0]) -> int:
        argv = ["sbatch", "--parsable", f"--chdir={workdir}", "--output=%j.out", *options]
        done = clean.run(argv, user=user, stdin=f"#!/bin/bash\n{script}\n")
        assert done.returncode == 0, f"{argv}: {done.stderr}"
        return int(done.stdout.strip().partition(";")[0])

    return submitted


@pytest.fixture
def wait_for_state(sandbox: Sandbox) -> WaitForState:
    """Wait for a job to reach one of the states and return it."""

    def waited(job: int | str, states: str) -> str:
        deadline = time.monotonic() + HANG_S
        while True:
            seen = sandbox.run(["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T"]).stdout
            if seen.strip() and set(seen.split()) <= set(states.split("|")):
                return seen.split()[0]
            if time.monotonic() > deadline:
                told = sandbox.run(["scontrol", "show", "job", str(job)]).stdout
                pytest.fail(f"job {job} is {seen.split()}, not {states}:\n{told}")
            time.sleep(POLL_S)

    return waited


@pytest.fixture
def runs_on(submit: Submit, wait_for_state: WaitForState) -> Callable[[int, int, int], int]:
    """Let a job of root's run on a node with so many GPUs, for so many minutes."""

    def begun(node: int, gpus: int, minutes: int) -> int:
        words = (f"--nodelist=n{node}", f"--gres=gpu:{gpus}", f"--time={minutes}")
        job = submit(*words, script=LONG, user=None)
        wait_for_state(job, "RUNNING")
        return job

    return begun


@pytest.fixture
def show(sandbox: Sandbox) -> Callable[[int | str], dict[str, str]]:
    """Return a job's fields as `scontrol show job` has them; for jobs with tame text only.

    What a job asks for is written as in 22.05 on every release: gres:gpu:2.
    """

    def shown(job: int | str) -> dict[str, str]:
        told = sandbox.run(["scontrol", "-d", "show", "job", str(job)], check=True).stdout
        fields = (word.partition("=") for word in requests(told).split() if "=" in word)
        return {key: value for key, _, value in fields}

    return shown


@pytest.fixture
def output(workdir: Path) -> Callable[[int], str]:
    """Return what a job that has ended has written."""

    def read(job: int) -> str:
        return (workdir / f"{job}.out").read_text()

    return read


@pytest.fixture
def n1(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    show: Callable[[int | str], dict[str, str]],
    output: Callable[[int], str],
) -> OneNode:
    """n1 alone: one job holds the other nodes."""
    options = ("-N3", "--exclusive", "--nodelist=n2,n3,n4", "--time=60")
    wait_for_state(submit(*options, script=LONG, user=None), "RUNNING")
    return OneNode(clean, submit, wait_for_state, show, output)


@pytest.fixture(scope="module")
def cluster(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The sandbox, empty, without pliantd."""
    sandbox.stop("pliantd")
    made = Cluster(sandbox, str(tmp_path_factory.mktemp("changing")))
    made.empty()
    yield made
    made.empty()
    if sandbox.pid("pliantd") is None:
        sandbox.start("pliantd")


@pytest.fixture
def full(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without pliantd of which every node is taken."""
    cluster.empty()
    cluster.fill()
    yield cluster
    cluster.empty()


@pytest.fixture
def place(clean: Sandbox, workdir: Path) -> Place:
    """Where jobs find the examples."""
    return Place(clean, workdir)


@pytest.fixture
def door(workdir: Path) -> Iterator[FakeDoor]:
    """What stands for pliantd to a job's wrapper."""
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
