"""A process that reads GPUs: a time on each line in, a reading and what it logged on each line out.

Words may stand for a time: "node PROC" begins anew with that folder for /proc, "close" ends the
session, "nobody" goes on as that user. The driver's library is found when a process starts: with
LD_LIBRARY_PATH, it is the stub's.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import msgspec

from pliant.monitor.gpus import GpuReading, Gpus


class Answer(msgspec.Struct, frozen=True):
    """A reading, and the lines that it logged."""

    reading: GpuReading
    logged: list[str]


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname}: {record.getMessage()}")


def main() -> None:
    """Do what each line says."""
    kept = _Kept()
    logging.basicConfig(level=logging.INFO, handlers=[kept])
    gpus = Gpus()
    for line in sys.stdin:
        match line.split():
            case ["node", proc]:
                gpus.close()
                os.seteuid(os.getuid())
                gpus = Gpus(Path(proc))
            case ["close"]:
                gpus.close()
            case ["nobody"]:
                os.seteuid(65534)
            case _:
                reading = gpus.read(float(line))
                print(msgspec.json.encode(Answer(reading, kept.lines)).decode(), flush=True)
                kept.lines = []


if __name__ == "__main__":
    main()
