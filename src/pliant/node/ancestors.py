"""What started this process, as proc(5) shows: the only word that no job inherits of its step."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 64
_STEPD = b"slurmstepd: ["


def is_batch(job: str, proc: Path = Path("/proc")) -> bool:
    """Whether this runs in a job's batch script and in no step of it.

    slurmstepd names itself after the step that it started: ``slurmstepd: [4711.batch]``. False
    where it is not seen, as in a container.
    """
    process = str(os.getpid())
    for _ in range(_MOST):
        try:
            words = (proc / process / "cmdline").read_bytes()
            status = (proc / process / "status").read_text(errors="replace")
        except OSError:
            return False
        if words.startswith(_STEPD):
            return words.startswith(_STEPD + job.encode() + b".batch]")
        process = next(
            (line.split()[1] for line in status.splitlines() if line.startswith("PPid:")), "0"
        )
    return False
