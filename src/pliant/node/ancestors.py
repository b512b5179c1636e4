"""What started this process, as proc(5) shows: the only word that no job inherits of its step.

Nor does a job inherit who waits for its script to end.
"""

from __future__ import annotations

import contextlib
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


def above(name: str, proc: Path = Path("/proc")) -> tuple[str, str]:
    """Return the process id and the name of the nearest process of this name above this one.

    Where there is none, those of the uppermost one: "0" for whom a container does not show. The
    name is "" where other users' processes are not shown (hidepid).
    """
    process, called = str(os.getpid()), ""
    for _ in range(_MOST):
        try:
            status = (proc / process / "status").read_text(errors="replace")
        except OSError:
            return process, ""
        said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        called, parent = said.get("Name", "").strip(), said.get("PPid", "0").strip()
        if called == name or parent == "0":
            return process, called
        process = parent
    return process, ""


def is_anywhere(name: str, proc: Path = Path("/proc")) -> bool:
    """Whether any process of this name is to be seen."""
    for comm in proc.glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if comm.read_text(errors="replace").strip() == name:
                return True
    return False
