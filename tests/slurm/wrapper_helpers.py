"""What the tests of `pliant run` in jobs share: a program that counts, and who stands above it."""

from __future__ import annotations

from pathlib import Path

import psutil
from slurm_helpers import wait_until

SOURCE = Path(__file__).parents[2] / "src"
HASTY = (
    "import pliant.node.core as core; core.SILENT_S = 3.0; from pliant.entry import main; main()"
)
COUNTS_TERMS = """
import os, signal, sys, time
told = []
signal.signal(signal.SIGTERM, lambda *a: told.append(1))
open("pid", "w").write(str(os.getpid()))
open("began.0", "w").close()
while not told: time.sleep(0.05)
time.sleep(0.5)
open("told", "w").write(str(len(told)))
sys.exit(3)
"""


def guardian_in(workdir: Path) -> psutil.Process:
    """The guardian of the program that has left its process id there."""
    guardian = psutil.Process(int((workdir / "pid").read_text())).parent()
    assert guardian is not None
    return guardian


def wrapper_in(workdir: Path) -> psutil.Process:
    """What asks pliantd for the program: the guardian's other child of its own command."""
    guardian = guardian_in(workdir)
    (wrapper,) = (one for one in guardian.children() if one.cmdline() == guardian.cmdline())
    return wrapper


def told_in(workdir: Path) -> str:
    """How often COUNTS_TERMS was told to end; what it prints is lost where its srun is told too."""
    told = workdir / "told"
    wait_until(lambda: told.exists() and told.read_text() != "", "the program to have been told")
    return told.read_text()
