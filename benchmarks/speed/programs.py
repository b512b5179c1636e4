"""Programs of known kinds, each as a job of its own that is halted, let go, and counted.

A program counts its units of work in a file that it shares with us, so its true speed is read
without a word from it. All are started once; whoever is not measured is stopped (SIGSTOP).
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import stepd
from pliant.errors import Unavailable
from pliant.monitor.service import Node

HERE = Path(__file__).parent
PROGRAMS = {
    "integer": "shifts and adds in registers",
    "matrix": "product of matrices of 96 × 96, floating point",
    "cached": "reads and writes here and there in 512 KiB",
    "stream": "a[i] = b[i] + 3 c[i], arrays of 32 MiB",
    "chase": "from pointer to pointer through 128 MiB",
    "sort": "quicksort of 8,192 numbers",
    "zlib": "compression of 32 KiB of text, from Python",
    "files": "pwrite and pread of 4 KiB, in the page cache",
    "half": "work, then a pause of 5 ms, in turn",
    "threads": "two threads, each with a product of matrices",
}
_FIRST_JOB = stepd.FIRST_JOB - 1000
_SLOTS = 2
"""Threads that count."""
_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs: its job, its process, and the file with its counts."""

    name: str
    job: str
    pid: int
    file: Path

    def units(self) -> int:
        """Return the units of work done until now."""
        return _units(self.file)

    def go(self, cpus: Collection[int]) -> None:
        """Let it run on these CPUs alone."""
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), cpus)
        os.kill(self.pid, signal.SIGCONT)

    def halt(self) -> None:
        """Stop it where it is."""
        os.kill(self.pid, signal.SIGSTOP)


@contextmanager
def started(names: Sequence[str]) -> Iterator[list[Program]]:
    """Start programs, and yield them halted. Raises Unavailable where they cannot be compiled."""
    with tempfile.TemporaryDirectory(prefix="pliant-speed-") as folder:
        binary = _compiled(Path(folder))
        files = [Path(folder) / f"{place}.count" for place in range(len(names))]
        commands = [_command(binary, *each) for each in zip(names, files, strict=True)]
        with stepd.jobs(commands, _FIRST_JOB):
            yield [
                _halted(name, str(_FIRST_JOB + place), file)
                for place, (name, file) in enumerate(zip(names, files, strict=True))
            ]


def _compiled(folder: Path) -> Path:
    binary = folder / "programs"
    argv = ["cc", "-O2", "-Wall", "-Wextra", "-pthread", "-o", str(binary)]
    try:
        subprocess.run([*argv, str(HERE / "programs.c")], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"cc: cannot compile programs.c: {error}; install gcc") from error
    return binary


def _command(binary: Path, name: str, file: Path) -> list[str]:
    file.write_bytes(bytes(8 * _SLOTS))
    if name == "zlib":
        return [sys.executable, str(HERE / "compress.py"), str(file)]
    return [str(binary), name, str(file), str(8 * _SLOTS)]


def _halted(name: str, job: str, file: Path) -> Program:
    """Wait until a program counts, and stop it."""
    deadline_s = time.monotonic() + _START_S
    while not _units(file):
        if time.monotonic() > deadline_s:
            raise Unavailable(f"{name}: has done nothing in {_START_S:g} s")
        time.sleep(0.02)
    threads = Node("bench").look().jobs[job].threads
    program = Program(name, job, next(pid for pid, _, _ in threads), file)
    program.halt()
    return program


def _units(file: Path) -> int:
    return sum(struct.unpack(f"={_SLOTS}Q", file.read_bytes()))
