"""Run the tests on each release of Slurm and write docs/releases.md.

``python -m benchmarks.releases``, or ``make test-releases``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

SUITES = {"bookworm": "22.05", "trixie": "24.11", "forky": "26.05"}
"""Debian's releases, and the Slurm that each has."""

TOP = Path(__file__).parents[1]
DOCUMENT = TOP / "docs" / "releases.md"

DIFFERENCES = {"test_releases_differ", "test_lengths_slurm_takes"}
"""The tests of what releases do differently, or were measured to do alike."""

_HEAD = """\
# Releases of Slurm

Written by `make test-releases`, which runs the tests on the Slurm of each Debian release: those of
a private Slurm in one container (`tests/slurm`), and those of a cluster of containers
(`tests/docker`). GPUs are fake; the hosts, the network and Slurm are real. Of `tests/slurm` the
rows are what releases do differently where Pliant relies on it, and what did not pass."""


class Case(NamedTuple):
    """A test: ``docker`` or ``slurm``, its module and its name."""

    folder: str
    module: str
    name: str


Results = dict[Case, str]
"""How each test ended."""


def main() -> int:
    """Run all and write the document; return 1 where a test failed."""
    found = {suite: run(suite) for suite in SUITES}
    DOCUMENT.write_text(document({suite: results for suite, (results, _) in found.items()}))
    return int(any(failed for _, failed in found.values()))


def run(suite: str) -> tuple[Results, bool]:
    """Run the tests on one release; return how they ended, and whether one failed."""
    found: Results = {}
    failed = False
    for tests in (_in_container, _on_cluster):
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                tests(scratch), env={**os.environ, "SUITE": suite, "OUT": scratch}, check=False
            )
            report = Path(scratch) / "report.xml"
            found |= read(report.read_text()) if report.exists() else {}
            failed = failed or done.returncode != 0
    return found, failed


def _in_container(_: str) -> list[str]:
    words = ["-n", "2", "--dist", "loadfile", "--junitxml=/out/report.xml", "tests/slurm"]
    return [str(TOP / "docker" / "cluster"), "tests", *words]


def _on_cluster(scratch: str) -> list[str]:
    words = ["--timeout", "900", f"--junitxml={scratch}/report.xml", str(TOP / "tests" / "docker")]
    return [sys.executable, "-m", "pytest", *words]


def read(report: str) -> Results:
    """Read pytest's JUnit report."""
    found: Results = {}
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        _, folder, module = f"..{case.get('classname', '')}".rsplit(".", 2)
        ended = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[Case(folder, module, case.get("name", ""))] = ended.pop() if ended else "passed"
    return found


def document(found: Mapping[str, Results]) -> str:
    """Return the document: one row for each test; ``–`` where it is about other releases."""
    titles = [f"Slurm {SUITES[suite]} ({suite})" for suite in found]
    lines = [_HEAD, "", f"Date: {datetime.now(UTC):%Y-%m-%d}", ""]
    lines += [_row("", *titles), _row("---", *["---"] * len(titles))]
    every = list(dict.fromkeys(test for results in found.values() for test in results))
    for folder in ("slurm", "docker"):
        totals = [_total(folder, results) for results in found.values()]
        lines.append(_row(f"`tests/{folder}`", *totals))
        lines += [
            _row(_words(test.name), *(results.get(test, "–") for results in found.values()))
            for test in every
            if test.folder == folder and _is_told(test, found.values())
        ]
    return "\n".join(lines) + "\n"


def _total(folder: str, results: Results) -> str:
    ends = [end for test, end in results.items() if test.folder == folder]
    return f"{ends.count('passed')} of {len(ends)} passed"


def _is_told(test: Case, found: Iterable[Results]) -> bool:
    """Whether it is worth a row: how it ended differs, or it is about a difference."""
    if test.folder == "docker" or test.module in DIFFERENCES:
        return True
    return any(results.get(test, "passed") != "passed" for results in found)


def _words(name: str) -> str:
    what, _, case = name.removeprefix("test_").partition("[")
    words = what.replace("_", " ") + (f": {case.removesuffix(']')}" if case else "")
    return words.replace("|", "\\|")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
