"""Running malleable jobs of the sandbox, resized by their owner, root.

A job that was started or resized is left alone for a while, the longer the slower the machine is. So
the examples count slowly until a test has done what it wants, and hurry from then on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asking_helpers import answer_of
from slurm_helpers import wait_until

from limits import HANG_S
from pliant.daemon import answers as a
from pliant.sandbox import Sandbox
from wrapped_job import EXAMPLES

STEPS = 10_000
STEP_S, LONG_STEP_S = 0.021, 0.101
PACE = """
import os, time
sleep = time.sleep
def paced(seconds):
    if seconds not in {paces} or not os.path.exists({hurry!r}):
        sleep(seconds)
time.sleep = paced
"""


@dataclass(frozen=True)
class Place:
    """A folder with the examples as they stand, in which jobs run."""

    sandbox: Sandbox
    folder: Path

    def __post_init__(self) -> None:
        """Fill it."""
        shutil.copytree(EXAMPLES, self.folder, dirs_exist_ok=True)
        text = PACE.format(paces=(STEP_S, LONG_STEP_S), hurry=str(self._hurry))
        (self.folder / "sitecustomize.py").write_text(text)

    @property
    def _hurry(self) -> Path:
        return self.folder / "hurry"

    def hurry(self) -> None:
        """Let steps take no time from now on."""
        self._hurry.touch()

    def submit(self, script: str, *words: str) -> Resizable:
        """Submit an example's job script."""
        done = subprocess.run(
            ["sbatch", "--parsable", "--output=%j.out", script, *words],
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        )
        return Resizable(self.sandbox, int(done.stdout))

    @property
    def environment(self) -> Mapping[str, str]:
        """An environment in which a job finds `python`, `pliant` and `torchrun` as ours."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{self.sandbox.env['PATH']}"
        return {**self.sandbox.env, "PATH": path, "PYTHONPATH": str(self.folder)}


@dataclass(frozen=True)
class Resizable:
    """One running malleable job."""

    sandbox: Sandbox
    job: int

    def changes(self) -> Sequence[a.HandOverHistory]:
        """Return its changes that are over, in order; none where it is not known yet."""
        answer = answer_of(self.sandbox, "history", job=str(self.job))
        if not answer.is_ok:
            return []
        told = a.from_json(a.HistoryAnswer, answer.fields["json"])
        return [change for change in told.handovers if change.outcome]

    def becomes(self, shape: str) -> None:
        """Ask for another shape as soon as its program may be asked, and wait until it is done."""
        before = len(self.changes())
        said = ""

        def asked() -> bool:
            nonlocal said
            done = self.sandbox.run(["pliant", "resize", str(self.job), shape])
            said = done.stderr
            return done.returncode == 0

        try:
            wait_until(asked, f"job {self.job} to be asked for {shape}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {said}") from None
        wait_until(lambda: len(self.changes()) > before, f"job {self.job} to be {shape}")
        assert self.changes()[-1].outcome == "done"
