"""A stand-in for training: counts steps as fast as its GPUs would make them; computes nothing.

usage: python stand_in.py JSON, with ``steps``, ``speeds`` (steps per second on 1, 2, ... GPUs; one
alone holds for all), ``launch_s`` and ``save_s`` (how long it takes to begin, and to save) and
``file``. Steps are counted by the wall clock, so that a busy machine slows it as little as it would
slow a GPU.

FILE.log gets one line for each event: ``start AT STEP GPUS LOST``, ``saved AT STEP GPUS 0`` and
``end AT STEP GPUS 0``; LOST: steps that the run before had made and not saved.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pliant

TICK_S = 0.05


class Work:
    """One run of it."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.steps, self.speeds = asked["steps"], asked["speeds"]
        self.launch_s, self.save_s = asked["launch_s"], asked["save_s"]
        self.file = Path(asked["file"])
        self.told = False
        self.gpus = max(1, pliant.shape().gpus)

    def run(self) -> None:
        """Count to the end, or save when asked."""
        signal.signal(signal.SIGTERM, self._on_signal)  # how Slurm's own preemption asks
        time.sleep(self.launch_s)
        first = self._read(self.file)
        self._log("start", first, max(0, self._read(self._now) - first))
        speed, began_s = self.speeds[min(self.gpus, len(self.speeds)) - 1], time.monotonic()
        step = first
        while step < self.steps:
            step = min(self.steps, first + int((time.monotonic() - began_s) * speed))
            self._write(self._now, step)
            pliant.heartbeat(step)
            if self.told or pliant.checkpoint_wanted():
                self._save(step)
            time.sleep(TICK_S)
        self._log("end", step)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.told = True

    def _save(self, step: int) -> None:
        time.sleep(self.save_s)
        self._write(self.file, step)
        self._log("saved", step)
        pliant.checkpointed()
        raise SystemExit(85)

    @property
    def _now(self) -> Path:
        return self.file.with_name(f"{self.file.name}.now")

    def _read(self, path: Path) -> int:
        return int(path.read_text()) if path.exists() else 0

    def _write(self, path: Path, step: int) -> None:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(str(step))
        new.replace(path)

    def _log(self, event: str, step: int, lost: int = 0) -> None:
        with self.file.with_name(f"{self.file.name}.log").open("a") as log:
            log.write(f"{event} {time.time():.3f} {step} {self.gpus} {lost}\n")


if __name__ == "__main__":
    Work(json.loads(sys.argv[1])).run()
