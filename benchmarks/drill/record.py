"""What the runs showed, a line of JSON each, kept over sittings.

A run counts for as long as the files under test are those that it ran with.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine
from benchmarks.drill.run import Seen
from benchmarks.drill.sitting import Task

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).parent / "runs.jsonl"
UNDER_TEST = ("src/pliant", "plugins/slurm", "spank", "wrappers", "benchmarks/drill")
"""Where the files are whose change begins the counting anew."""
_KINDS = (".py", ".lua", ".c", ".h", ".j2")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: when, of what, with which Slurm, and what was seen."""

    at: str
    commit: str
    files: str
    slurm: str
    seed: int
    seen: Seen


@dataclass(frozen=True, slots=True)
class Origin:
    """What is the same for all runs of a sitting."""

    commit: str
    files: str
    slurm: str

    @classmethod
    def now(cls) -> Origin:
        """As the files and the Slurm of this machine are."""
        return cls(_commit(), hash_of(ROOT), machine.slurm())

    def noted(self, task: Task, seen: Seen) -> Run:
        """A run that ended just now."""
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return Run(at, self.commit, self.files, self.slurm, task.seed, seen)


def hash_of(root: Path) -> str:
    """Return what tells the files under test, by path and content, from any others."""
    total = hashlib.sha256()
    for place in UNDER_TEST:
        for path in sorted((root / place).rglob("*")):
            if path.suffix in _KINDS and path.is_file():
                total.update(f"{path.relative_to(root)}\0".encode())
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def append(path: Path, run: Run) -> None:
    """Add a line; what pliantd said is kept of runs only that showed something."""
    said = {} if not run.seen.is_good else {"said": ""}
    line = {name: getattr(run, name) for name in _OWN} | asdict(run.seen) | said
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def read(path: Path, files: str) -> Sequence[Run]:
    """Return the runs with these files under test."""
    return tuple(run for run in _all(path) if run.files == files)


def _all(path: Path) -> Iterator[Run]:
    lines = path.read_text().splitlines() if path.exists() else ()
    for line in lines:
        told = json.loads(line)
        yield Run(**{name: told.pop(name) for name in _OWN}, seen=Seen(**told))


def _commit() -> str:
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


_OWN = tuple(one.name for one in fields(Run) if one.name != "seen")
