"""Run the tests of the cluster on each release of Slurm and write docs/releases.md.

``python -m benchmarks.releases``, or ``make test-releases``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

SUITES = {"bookworm": "22.05", "trixie": "24.11", "forky": "26.05"}
"""Debian's releases, and the Slurm that each has."""

TOP = Path(__file__).parents[1]
DOCUMENT = TOP / "docs" / "releases.md"

_HEAD = """\
# Releases of Slurm

Written by `make test-releases`, which runs the tests of the cluster in containers (`tests/docker`)
on the Slurm of each Debian release. GPUs are fake; the hosts, the network and Slurm are real."""

Results = dict[str, str]
"""How each test ended, by its name."""


def main() -> int:
    """Run all and write the document; return 1 where a test failed."""
    found = {suite: run(suite) for suite in SUITES}
    DOCUMENT.write_text(document({suite: results for suite, (results, _) in found.items()}))
    return int(any(failed for _, failed in found.values()))


def run(suite: str) -> tuple[Results, bool]:
    """Run the tests on one release; return how they ended, and whether one failed."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        argv = [sys.executable, "-m", "pytest", "--timeout", "900", f"--junitxml={report}"]
        argv.append(str(TOP / "tests" / "docker"))
        done = subprocess.run(argv, env={**os.environ, "SUITE": suite}, check=False)
        return read(report.read_text()), done.returncode != 0


def read(report: str) -> Results:
    """Read pytest's JUnit report."""
    found: Results = {}
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        ended = {child.tag for child in case} & {"failure", "error", "skipped"}
        found[case.get("name", "")] = ended.pop() if ended else "passed"
    return found


def document(found: Mapping[str, Results]) -> str:
    """Return the document: one row for each test; ``–`` where it is about other releases."""
    names = list(dict.fromkeys(name for results in found.values() for name in results))
    titles = [f"Slurm {SUITES[suite]} ({suite})" for suite in found]
    rows = [
        (_words(name), *(results.get(name, "–") for results in found.values())) for name in names
    ]
    totals = [
        f"{sum(end == 'passed' for end in results.values())} of {len(results)} passed"
        for results in found.values()
    ]
    lines = [_HEAD, "", f"Date: {datetime.now(UTC):%Y-%m-%d}", ""]
    lines += [_row("", *titles), _row("---", *["---"] * len(titles)), _row("all", *totals)]
    lines += [_row(*row) for row in rows]
    return "\n".join(lines) + "\n"


def _words(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ").replace("|", "\\|")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
