"""Runs each measurement in a process of its own, so that its memory is its own too."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.sim.points import Came, Point

TOP = Path(__file__).parents[2]
LONGEST_S = 1800.0
"""A process that takes longer is ended, and the benchmark with it."""

T = TypeVar("T")


class Peer(msgspec.Struct, frozen=True):
    """What came of a run of AccaSim; as :class:`benchmarks.sim.points.Came` has it."""

    jobs: int
    wall_s: float
    peak_mib: float
    wait_s: float
    slowdown: float

    @property
    def rate(self) -> float:
        """Jobs a second."""
        return self.jobs / self.wall_s


def ours(point: Point) -> Came:
    """Replay a point with Pliant."""
    text = msgspec.json.encode(point).decode()
    return _said([sys.executable, "-m", "benchmarks.sim.points", text], Came)


def theirs(python: Path, *arguments: str) -> Peer:
    """Run AccaSim with the Python of its own environment."""
    # Its patterns have escapes that Python warns of.
    command = [str(python), "-W", "ignore", "-m", "benchmarks.sim.accasim_run", *arguments]
    return _said(command, Peer)


def all_of(points: Iterable[Point], at_once: int) -> list[Came]:
    """Replay points, so many at once."""
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(ours, points))


def _said(command: Sequence[str], kind: type[T]) -> T:
    """Return what a process printed last; raises what went wrong with its last words."""
    print("  ", " ".join(command[3:]), file=sys.stderr, flush=True)
    began_s = time.monotonic()
    done = subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    print(f"    {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return msgspec.json.decode(done.stdout.strip().splitlines()[-1], type=kind)
