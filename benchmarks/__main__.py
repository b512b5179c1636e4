"""Measure and write docs/benchmarks.md: ``python -m benchmarks [--quick] [PART ...]``.

Parts that are named are measured alone; the others stay in the document as they are.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from benchmarks import parts
from benchmarks.section import Section

PARTS = (
    *("cycle", "pbs-hook", "pbs-runjob", "guardian"),
    *("ranks", "submission", "attack", "start", "idle", "native", "monitor", "monitors"),
    *("sharing", "history", "remembered"),
)
"""Each is a module ``benchmarks.bench_PART`` with ``measure(quick) -> list[Section]``; _ for -."""

NEED_ROOT = PARTS[4:]

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"

_HEAD = """\
# Benchmarks

Written by `make bench`, part by part: when each was measured, and on what, stands above it. In
brackets: the interval that holds 95 % of a bootstrap. GPUs are fake throughout; Slurm is real
unless it is said."""


def main(arguments: list[str]) -> None:
    """Measure the parts that were asked for, all by default, and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions: to try it out")
    parser.add_argument("--out", type=Path, help="where to write; - for standard output")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: of {', '.join(PARTS)} is expected")
    rooted = [part for part in chosen.parts or PARTS if part in NEED_ROOT]
    if rooted and os.geteuid():
        parser.error(
            f"{', '.join(rooted)}: only root can measure that, in sandboxes of several users"
        )
    out = chosen.out or (parts.SHOWN if chosen.quick else DOCUMENT)
    remark = "A quick run: too few repetitions to go by." if chosen.quick else ""
    wanted = chosen.parts or PARTS
    parts.write(out, _HEAD, PARTS, wanted, lambda part: measure(part, chosen.quick), remark=remark)


def measure(part: str, quick: bool) -> list[Section]:
    """Run one benchmark."""
    module = importlib.import_module(f"benchmarks.bench_{part.replace('-', '_')}")
    sections: list[Section] = module.measure(quick)
    return sections


if __name__ == "__main__":
    main(sys.argv[1:])
