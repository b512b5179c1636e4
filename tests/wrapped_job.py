"""A job's script on its only node, without a batch system: `pliant run` beside a fake pliantd."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fake_door import FakeDoor, munge_program, wait_until
from limits import HANG_S

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PLIANT = [sys.executable, "-c", "from pliant.entry import main; main()"]
FROM_SOURCE = (
    f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from pliant.entry import main; main()"
)
HASTY = (
    "import pliant.node.core as core; core.SILENT_S = 3.0; from pliant.entry import main; main()"
)
BRIEF = (
    "import pliant.node.core as core; core.SILENT_S, core.TRY_S, core.TRIES_S = 3, 0.2, 2; "
    "core.ROUNDS = 2; from pliant.entry import main; main()"
)
IMPATIENT = (
    "import pliant.node.named as named; named.WAIT_S = 0.3; from pliant.entry import main; main()"
)
HEAD = "import os, pathlib, signal, sys, time, pliant\n"
SCONTROL = '#!/bin/sh\necho "$@" >>{log}\n{then}\n'


class Job:
    """`pliant run` as a process, and its surroundings."""

    def __init__(self, folder: Path, door: FakeDoor) -> None:
        self.folder, self.door = folder, door
        self.bin = folder / "bin"
        self.requeues = folder / "requeues"
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "src"),
            "TMPDIR": str(folder / "tmp"),
            "PLIANT_CONFIG": str(folder / "pliant.toml"),
            "SLURM_JOB_ID": "4711",
            "SLURM_SUBMIT_DIR": str(folder),
        }
        self.pliant = PLIANT
        self.started: list[subprocess.Popen[str]] = []
        (folder / "tmp").mkdir()
        self.bin.mkdir()
        munge_program(self.bin)
        self.scontrol("exit 0")

    def scontrol(self, then: str) -> None:
        """Let scontrol write down what it is asked, and do something then."""
        program = self.bin / "scontrol"
        program.write_text(SCONTROL.format(log=self.requeues, then=then))
        program.chmod(0o755)

    def start(self, program: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Run a Python program under `pliant run`."""
        return self.start_argv([*options, "--", sys.executable, "-c", HEAD + program], environment)

    def start_argv(
        self, words: Sequence[str], environment: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """Run a command under `pliant run`."""
        return self._start([*self.pliant, "run", *words], environment)

    def _start(self, argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            argv,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )
        self.started.append(process)
        return process

    def wait_for_file(self, name: str) -> str:
        """Return what a program has written."""
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text() != "", f"{name} is written")
        return path.read_text()

    def end(self) -> None:
        """End what still runs."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    # The examples, as they stand in docs/examples

    def knows(self, name: str, *argv: str) -> None:
        """Put a program on the job's PATH."""
        program = self.bin / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
        program.chmod(0o755)

    def sized(
        self,
        script: str,
        *words: str,
        gpus: Sequence[int],
        moments_s: Sequence[float],
        last: Sequence[str] = (),
    ) -> str:
        """Run an example's script once for each number of GPUs; return all that it printed.

        ``moments_s``: how long after the begin of each run but the last a checkpoint is wanted.
        ``last``: further words for the last run alone.
        """
        self.knows("pliant", *PLIANT)
        shutil.copytree(EXAMPLES, self.folder, dirs_exist_ok=True)
        printed = ""
        for run, number in enumerate(gpus):
            has = {"SLURM_RESTART_COUNT": str(run), "SLURM_GPUS_ON_NODE": str(number)}
            more = last if run == len(gpus) - 1 else ()
            process = self._start(["bash", script, *words, *more], has)
            if run < len(moments_s):
                self._hands_over(process, run, moments_s[run])
            code, out, err = ended(process)
            assert code == (85 if run < len(moments_s) else 0), err
            printed += out
        return printed

    def _hands_over(self, process: subprocess.Popen[str], run: int, after_s: float) -> None:
        self.door.wait_for("run-begin", run + 1)
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            self.door.want(f"w{run}")
            self.door.wait_for("run-saved", run + 1)
            self.door.want("")
            process.terminate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a program's end; return its exit code and what it printed."""
    out, err = process.communicate(timeout=HANG_S)
    return process.returncode, out, err


def taken_over(job: Job, process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Do what a requeue does to the wrapper, once its checkpoint was reported."""
    job.door.wait_for("run-saved")
    process.terminate()
    return ended(process)


@contextmanager
def wrapped_job(folder: Path) -> Iterator[Job]:
    """A job in a folder, and its door."""
    door = FakeDoor(folder)
    door.open()
    one = Job(folder, door)
    yield one
    one.end()
    door.close()
