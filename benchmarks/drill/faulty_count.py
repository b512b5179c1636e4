"""docs/examples/count.py, whose checkpoints fail as the file PLACE/how says, and which keeps a log.

``python faulty_count.py STEPS PLACE STEP_S``, beside a copy of count.py. PLACE/log has a line for
each start (``began STEP DONE``: where it goes on, how far it was) and for each checkpoint, which
lies in PLACE/kept.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import count  # type: ignore[import-not-found]  # lies beside it where it runs

import pliant

SAVING_S = 1.0
HURRIED_S = 0.0
PLACE = Path(sys.argv[2])
_load, _save = count.load, count.save
_heartbeat, _checkpointed = pliant.heartbeat, pliant.checkpointed
_done = os.open(PLACE / "done", os.O_RDWR | os.O_CREAT, 0o644)


def _log(line: str) -> None:
    with (PLACE / "log").open("a") as file:
        file.write(f"{line}\n")


def _how() -> str:
    try:
        return (PLACE / "how").read_text().strip()
    except FileNotFoundError:
        return ""


def load(path: Path) -> tuple[int, int]:
    """Begin where the last run ended, and say so."""
    step, checksum = _load(path)
    _log(f"began {step} {int(os.pread(_done, 20, 0) or b'0')}")
    return step, checksum


def heartbeat(step: int) -> None:
    """Note each step, so that it is known what was lost."""
    os.pwrite(_done, b"%020d" % step, 0)
    _heartbeat(step)


class Time:
    """Stands for the module time in count.py: its steps are short once PLACE/hurry is there."""

    @staticmethod
    def sleep(step_s: float) -> None:
        """Do a step's work."""
        time.sleep(HURRIED_S if (PLACE / "hurry").exists() else step_s)


def save(path: Path, step: int, checksum: int) -> None:
    """Save, or fail to, as it is said."""
    if pliant.checkpoint_wanted():
        how = _how()
        if how == "half":
            path.with_name(f"{path.name}.half").write_text(f"{step} "[:2])
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "fails":
            raise OSError(28, "No space left on device")
        if how == "never":
            while pliant.checkpoint_wanted():
                time.sleep(0.05)
            return
        time.sleep(6.0 if how == "late" else SAVING_S)
    try:
        _save(path, step, checksum)
    except OSError:
        if _how() != "again":
            raise
        return
    _log(f"saved {step}")


def checkpointed() -> None:
    """End after a checkpoint; not after one that never came, or could not be written."""
    if _saved_now():
        _checkpointed()


def _saved_now() -> bool:
    """Whether the last thing that was done is a checkpoint."""
    with (PLACE / "log").open() as file:
        return file.readlines()[-1].startswith("saved")


count.load, count.save, count.time = load, save, Time
pliant.heartbeat, pliant.checkpointed = heartbeat, checkpointed

if __name__ == "__main__":
    new = PLACE / f"pid.{os.getpid()}"
    new.write_text(f"{os.getpid()} {os.getppid()}")
    new.rename(PLACE / "pid")
    count.main(int(sys.argv[1]), PLACE / "kept" / "count", float(sys.argv[3]))
