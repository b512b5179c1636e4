"""Commands that look like Slurm's jobs: below what looks like a slurmstepd of root's. No Slurm."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

FIRST_JOB = 1_987_600_000
"""More than any job's number."""
_SCRIPT = '"$@" & trap "kill -KILL $!" TERM; wait; wait'


@contextmanager
def jobs(commands: Sequence[Sequence[str]], first: int = FIRST_JOB) -> Iterator[None]:
    """Run each command as a job of its own until the end; they are numbered from ``first`` on."""
    with tempfile.TemporaryDirectory(prefix="pliant-") as folder:
        stepd = shutil.copy("/bin/sh", Path(folder) / "slurmstepd")
        running: list[subprocess.Popen[bytes]] = []
        try:
            for number, command in enumerate(commands, first):
                argv = [f"slurmstepd: [{number}.batch]", "-c", _SCRIPT, "sh", *command]
                running.append(subprocess.Popen(argv, executable=stepd, start_new_session=True))
            yield
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait()
