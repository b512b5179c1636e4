"""What the runs showed, a short line of JSON each, kept over sittings.

A run counts for as long as the files under test are those that it ran with.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.drill.run import Ran, Seen
from benchmarks.drill.sitting import Task

ROOT = Path(__file__).parents[2]
RUNS = Path(__file__).parent / "runs.jsonl"
UNDER_TEST = (
    *("src/pliant/**/*", "plugins/**/*", "spank/**/*", "wrappers/**/*", "benchmarks/drill/**/*"),
    *("templates/*.j2", "docs/examples/count.py"),
)
"""Which files' change begins the counting anew; the last two: the sandbox's, and the program."""
_OF_ONE = {
    "Slurm": (
        *("src/pliant/batch/slurm/", "src/pliant/sandbox/", "plugins/slurm/", "spank/"),
        *("templates/", "benchmarks/drill/slurm_"),
    ),
    "OpenPBS": (
        *("src/pliant/batch/pbs/", "src/pliant/filter/pbs/", "src/pliant/hooks/", "plugins/pbs/"),
        "benchmarks/drill/pbs_",
    ),
}
"""Which of them nothing runs but on that batch system: their change leaves the others' runs."""
_KINDS = (".py", ".lua", ".c", ".h", ".map", ".j2", "")
"""What they end in: the last are scripts and a Makefile."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What is the same for all runs of a sitting; ``on``: which batch system, and where."""

    commit: str
    files: str
    on: str

    @classmethod
    def now(cls, system: str, where: str = "") -> Origin:
        """As the files are now; ``system``: with its release; ``where`` it is, if not just here."""
        on = f"{system} {where}".rstrip()
        return cls(_commit(), hash_of(ROOT, on), on)

    def noted(self, task: Task, ran: Ran) -> Run:
        """A run that ended just now."""
        return Run(f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}", self, task.seed, ran)

    def is_as_now(self) -> bool:
        """Whether the files are what they were: pliantd is started from them in every run."""
        return self.files == hash_of(ROOT, self.on)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: when, of what, drawn by which seed, and what it showed."""

    at: str
    origin: Origin
    seed: int
    ran: Ran


def hash_of(root: Path, on: str) -> str:
    """Return what tells the files under test there, by path and content, from any others."""
    others = tuple(one for system in _OF_ONE if system not in on.split() for one in _OF_ONE[system])
    total = hashlib.sha256()
    for path in sorted(path for pattern in UNDER_TEST for path in root.glob(pattern)):
        if f"{path.relative_to(root)}".startswith(others):
            continue
        content = path.read_bytes() if path.suffix in _KINDS and path.is_file() else None
        if content is not None and b"\0" not in content:  # else it is built from the others
            total.update(f"{path.relative_to(root)}\0".encode())
            total.update(hashlib.sha256(content).digest())
    return total.hexdigest()[:16]


def append(path: Path, run: Run) -> None:
    """Add a line; what pliantd said is kept of runs only that showed something."""
    ran = run.ran
    line = {"at": run.at, **_told(run.origin), "seed": run.seed, **_told(ran)}
    line |= {"seconds": round(ran.seconds, 1), "seen": [_short(seen) for seen in ran.seen]}
    if ran.is_good:
        line.pop("said", None)
    last = path.read_bytes()[-1:] if path.exists() else b""
    torn = last not in (b"", b"\n")  # whoever wrote it was killed
    with path.open("a") as file:
        file.write("\n" * torn + json.dumps(line, separators=(",", ":")) + "\n")


def read(path: Path, root: Path = ROOT) -> Sequence[Run]:
    """Return the runs in which the files under test were what they are now."""
    now = cache(partial(hash_of, root))
    return tuple(run for run in _all(path) if run.origin.files == now(run.origin.on))


def counted(runs: Sequence[Run], on: str) -> Counter[str]:
    """Return how many hand-overs with a fault there were of each kind on this batch system."""
    counts = Counter[str]()
    for run in runs:
        if run.origin.on == on:
            counts[run.ran.fault] += run.ran.faults
    return counts


def _all(path: Path) -> Iterator[Run]:
    lines = path.read_text().splitlines() if path.exists() else ()
    for number, line in enumerate(lines, 1):
        try:
            told = json.loads(line)
        except ValueError:
            print(f"{path}, line {number} is no run, and left out: {line[:40]!r}", file=sys.stderr)
            continue
        seen = [Seen(**_long(each)) for each in told.pop("seen")]
        origin = Origin(**{one.name: told.pop(one.name) for one in fields(Origin)})
        yield Run(told.pop("at"), origin, told.pop("seed"), Ran(**told, seen=seen))


def _short(seen: Seen) -> str | Mapping[str, Any]:
    """Of one that showed nothing else its moment."""
    told = _told(seen)
    return seen.moment if len(told) == 1 else told


def _long(told: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"moment": told} if isinstance(told, str) else told


def _told(what: Origin | Ran | Seen) -> Mapping[str, Any]:
    """Return its fields that say anything."""
    every = {one.name: getattr(what, one.name) for one in fields(what)}
    return {name: value for name, value in every.items() if value}


def _commit() -> str:
    """As git says, or who started this where there is no git."""
    if "DRILL_COMMIT" in os.environ:
        return os.environ["DRILL_COMMIT"]
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
