"""From 0.1.0 to what is here and back on a real Slurm, with jobs that run meanwhile.

Each part may be of either release: the wrapper and the program's `import pliant` for as long as a
job runs, the plugins until they are installed anew, pliantd. What is read of files alone is in
tests/unit/test_upgrade.py.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from asking_helpers import ask, wait_for_look
from daemon_helpers import LONG
from lua_helpers import close_breaker, job_submit_lua, run_asked
from release_helpers import Release as SlurmRelease
from slurm_helpers import Submit, WaitForState, wait_until

from older_release import Release, install
from pliant.daemon import answers as a
from pliant.errors import PliantError
from pliant.handover import OURS
from pliant.sandbox import Options, Sandbox, environment, processes
from pliant.sandbox.notified import Notified
from pliant.store import MIGRATIONS

pytestmark = pytest.mark.slurm

ALICE = "pliant-alice"
PROGRAM = """
import pathlib, sys, time, pliant
place = pathlib.Path(sys.argv[1])
saved, new = place / "saved", place / "saved.new"
step = first = int(saved.read_text()) if saved.exists() else 0
while not (place / "enough").exists():
    time.sleep(0.02)
    step += 1
    pliant.heartbeat(step)
    if pliant.checkpoint_wanted():
        new.write_text(str(step))
        new.replace(saved)
        pliant.checkpointed()
print("from", first, pliant.shape().gpus, flush=True)
"""
SOON = "from pliant import lifecycle; lifecycle.PROTECTION = 0.3\n"
DAEMON = "from pliant.daemon.main import main; main()\n"
DIES_AFTER = """
import os
from pliant.batch.slurm import Slurm
step = Slurm.step
def stepped(self, one, over, job):
    step(self, one, over, job)
    if one.do == {step!r}:
        os.kill(os.getpid(), 9)
Slurm.step = stepped
"""
DIES_WHEN_ASKED = """
import os
from pliant.daemon.handing import HandOvers
HandOvers.saved = lambda *_: os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Pliant 0.1.0."""
    return install("0.1.0", tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes of four GPUs, whose running jobs are changed on request alone."""
    made = Sandbox(f"pytest-upgrading-{os.getpid()}", Options(nodes=2, gpus=4, users=users))
    made.up()
    yield made
    made.down()


@pytest.fixture(autouse=True)
def _ends_with_ours(clean: Sandbox) -> Iterator[None]:
    yield
    clean.restart("pliantd")


def start(sandbox: Sandbox, release: Release | None = None, before: str = "") -> None:
    """Let another pliantd run from now on: that of a release, or ours; it asks jobs soon."""
    sandbox.stop("pliantd")
    layout = sandbox.layout
    argv = [sys.executable, "-c", SOON + before + DAEMON, "--config", str(layout.pliant_toml)]
    env = {**environment.for_daemons(layout), "NOTIFY_SOCKET": str(layout.notify_socket)}
    notified = Notified(layout.notify_socket)
    try:
        child = processes.start(
            layout, "pliantd", argv, {**env, **(release.environment if release else {})}
        )
        wait_until(lambda: notified.ready() or child.poll() is not None, "pliantd to answer")
        assert child.poll() is None, said(sandbox)
    finally:
        notified.close()
    if not before:
        wait_for_look(sandbox)


def said(sandbox: Sandbox) -> str:
    """All that pliantds said."""
    return sandbox.layout.output("pliantd").read_text(errors="replace")


@dataclass(frozen=True)
class Counting:
    """One malleable job that counts until it is enough."""

    sandbox: Sandbox
    place: Path
    job: int

    def history(self) -> a.HistoryAnswer:
        return ask(self.sandbox, a.HistoryAnswer, "history", job=str(self.job))

    def launched(self) -> bool:
        """Whether its last run is known to work."""
        try:
            runs = self.history().runs
        except (AssertionError, PliantError):
            return False
        shown = self.sandbox.run(["squeue", "-h", "-j", str(self.job), "-O", "restartcnt"])
        return bool(runs) and runs[-1].launched_s > 0 and str(runs[-1].run) == shown.stdout.strip()

    def beats(self) -> None:
        """See its steps grow: they are told every WATCH_S seconds of pliant.wire.runs."""
        wait_until(self.launched, f"job {self.job} to work")
        step = self.history().runs[-1].step
        wait_until(lambda: self.history().runs[-1].step > step, f"job {self.job} to beat")

    def ask_for(self, shape: str) -> None:
        """Ask until it may be asked."""
        wait_until(self.launched, f"job {self.job} to work")
        argv = ["pliant", "resize", str(self.job), shape]

        def asked() -> bool:
            done = self.sandbox.run(argv)
            dead = self.sandbox.pid("pliantd") is None
            return done.returncode == 0 or dead

        wait_until(asked, f"job {self.job} to be asked for {shape}")

    def outcomes(self) -> list[str]:
        return [row.outcome for row in self.history().handovers]

    def becomes(self, shape: str) -> None:
        """Ask, and see it done."""
        before = len(self.outcomes())
        self.ask_for(shape)
        self.is_done(before + 1)

    def is_done(self, number: int) -> None:
        """Wait until so many of its changes are over, all of them done."""

        def over() -> bool:
            outcomes = self.outcomes()
            return len(outcomes) >= number and all(outcomes)

        wait_until(over, f"change {number} of job {self.job} to end")
        assert self.outcomes() == ["done"] * number

    def ends(self, wait_for_state: WaitForState) -> None:
        """Let it come to its end, and see that it went on from where it had saved."""
        (self.place / "enough").touch()
        wait_for_state(self.job, "COMPLETED")
        out = (self.place / f"{self.job}.out").read_text()
        assert "Traceback" not in out
        assert int(out.split()[-2]) > 0, out


OldPlugins = Callable[[], AbstractContextManager[None]]
Count = Callable[[Release | None], Counting]


@pytest.fixture
def count(clean: Sandbox, submit: Submit, workdir: Path, wait_for_state: WaitForState) -> Count:
    """Submit a job whose wrapper and program are of a release, or ours, and see it run."""

    def begun(release: Release | None) -> Counting:
        paths = [str(release.folder)] if release else [str(Path(a.__file__).parents[2])]
        paths.append(sysconfig.get_path("purelib"))
        (workdir / "program.py").write_text(PROGRAM)
        python = f"{sys.executable} -P"
        script = (
            f"export PYTHONPATH={':'.join(paths)} PLIANT_CHECKPOINT_DIR={workdir}/saves\n"
            f"exec {python} -c 'from pliant.cli import main; main()' run -- "
            f"{python} program.py {workdir}"
        )
        options = ("--gres=gpu:4", "--moldable=gpus=1:2:4", "--malleable=grace=20", "--time=30")
        job = submit(*options, "--open-mode=append", script=script, user=None)
        wait_for_state(job, "RUNNING")
        return Counting(clean, workdir, job)

    return begun


@pytest.fixture
def old_plugins(clean: Sandbox, old: Release, release: SlurmRelease) -> OldPlugins:
    """Let slurmctld and slurmds use the plugins of 0.1.0; its pliant.so is of Slurm 22.05."""
    plugin = clean.layout.plugin
    kept = plugin.with_suffix(".kept")
    texts = [(old.assets / name).read_text() for name in ("job_submit.lua", "pliant.lua")]

    @contextmanager
    def used() -> Iterator[None]:
        shutil.copy(plugin, kept)
        try:
            if release == (22, 5):
                _replace(old.assets / "pliant.so", plugin)
            with job_submit_lua(clean, *texts):
                yield
        finally:
            _replace(kept, plugin)

    return used


def _replace(source: Path, target: Path) -> None:
    new = target.with_suffix(".new")
    shutil.copy(source, new)
    new.replace(target)


def nothing_is_left(sandbox: Sandbox, job: int) -> None:
    """Wait until there is neither a fence nor a pinned priority of ours."""

    def gone() -> bool:
        fences = sandbox.run(["scontrol", "-o", "show", "reservation"]).stdout
        priority = sandbox.run(["squeue", "-h", "-j", str(job), "-o", "%Q"]).stdout.strip()
        return "pliant_" not in fences and bool(priority) and int(priority) not in OURS

    wait_until(gone, f"the fence and the pin of job {job} to be gone")


def test_a_job_of_0_1_0_lives_through_the_whole_upgrade(
    clean: Sandbox,
    old: Release,
    count: Count,
    wait_for_state: WaitForState,
    old_plugins: OldPlugins,
) -> None:
    with old_plugins():
        start(clean, old)
        job = count(old)
        job.becomes("2")
        start(clean)
        assert job.outcomes() == ["done"]
        job.beats()
        job.becomes("4")
    job.becomes("1")  # with plugins of here too
    nothing_is_left(clean, job.job)
    job.ends(wait_for_state)


def test_a_wrapper_of_here_works_with_a_pliantd_of_0_1_0(
    clean: Sandbox, old: Release, count: Count, wait_for_state: WaitForState
) -> None:
    start(clean, old)
    job = count(None)
    job.becomes("2")
    nothing_is_left(clean, job.job)
    job.ends(wait_for_state)


@pytest.mark.parametrize(
    "step", ["asked", "pin", "fence", "requeue", "reshape", "unfence", "release"]
)
def test_a_resize_that_0_1_0_began_is_ended_after_the_upgrade(
    clean: Sandbox, old: Release, count: Count, wait_for_state: WaitForState, step: str
) -> None:
    start(clean, old, DIES_WHEN_ASKED if step == "asked" else DIES_AFTER.format(step=step))
    job = count(old)
    job.ask_for("2")
    wait_until(lambda: clean.pid("pliantd") is None, f"pliantd to be killed after {step}")
    start(clean)
    job.is_done(1)
    nothing_is_left(clean, job.job)
    job.ends(wait_for_state)


@pytest.fixture
def molds(
    clean: Sandbox,
    submit: Submit,
    wait_for_state: WaitForState,
    output: Callable[[int], str],
    workdir: Path,
) -> Callable[[], None]:
    """Submit a job for which one GPU is free, and see that it runs with that one and knows so."""
    argv = ["sbatch", "--parsable", f"--chdir={workdir}", "--output=%j.out", "--time=5"]
    argv += ["--gres=gpu:4", "--moldable=gpus=1-4", "--wrap", "echo has $PLIANT_GPUS"]

    def does() -> None:
        for node, gpus in (("n1", 3), ("n2", 4)):
            where = (f"--nodelist={node}", f"--gres=gpu:{gpus}", "--time=60", "--mem=100")
            wait_for_state(submit(*where, script=LONG, user=None), "RUNNING")
        wait_for_look(clean)
        close_breaker(clean)
        job = int(run_asked(clean, argv, ALICE).stdout)
        wait_for_state(job, "COMPLETED")
        assert output(job) == "has 1\n"

    return does


def test_a_job_is_molded_by_the_plugins_of_0_1_0_and_pliantd_of_here(
    clean: Sandbox, old_plugins: OldPlugins, molds: Callable[[], None]
) -> None:
    start(clean)
    with old_plugins():
        molds()


def test_a_job_is_molded_by_the_plugins_of_here_and_pliantd_of_0_1_0(
    clean: Sandbox, old: Release, molds: Callable[[], None]
) -> None:
    start(clean, old)
    molds()


def test_after_a_downgrade_0_1_0_says_one_line_and_jobs_go_on(
    clean: Sandbox, old: Release, count: Count, wait_for_state: WaitForState
) -> None:
    start(clean)
    job = count(None)
    job.becomes("2")
    clean.stop("pliantd")
    history = clean.layout.pliant_state / "pliant.db"
    db = sqlite3.connect(history)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    before = len(said(clean))
    start(clean, old)
    lines = [line for line in said(clean)[before:].splitlines() if "newer Pliant" in line]
    assert lines == [
        f"WARNING pliant.store: {history}: version {len(MIGRATIONS) + 1} was written by a newer"
        " Pliant: kept as pliant.db.broken; a new one is begun"
    ]
    job.becomes("4")
    job.ends(wait_for_state)
    assert "Traceback" not in said(clean)[before:]
