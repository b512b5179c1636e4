"""Measure and write docs/benchmarks.md: ``python -m benchmarks [--quick] [PART ...]``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

from benchmarks import machine
from benchmarks.section import Section

PARTS = ("cycle", "submission", "start", "idle", "native", "monitor", "monitors", "sharing")
"""Each is a module ``benchmarks.bench_PART`` with ``measure(quick) -> list[Section]``."""

NEED_ROOT = PARTS[1:]

DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"

_HEAD = """\
# Benchmarks

Written by `make bench`; every number below was measured by that run. In brackets: the interval
that holds 95 % of a bootstrap. GPUs are fake throughout; Slurm is real unless it is said."""


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
    # Half a set of measurements is no document: it is shown, and the document stays as it is.
    whole = not (chosen.parts or chosen.quick)
    out = chosen.out or (DOCUMENT if whole else Path("-"))
    text = document(chosen.parts or list(PARTS), chosen.quick)
    if out == Path("-"):
        print(text)
    else:
        out.write_text(text)


def document(parts: list[str], quick: bool) -> str:
    """Measure and return the document."""
    lines = [_HEAD, "", *machine.lines(), ""]
    for part in parts:
        print(f"measuring: {part}", file=sys.stderr, flush=True)
        began = time.monotonic()
        for section in measure(part, quick):
            lines += section.markdown()
        print(f"  took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if quick:
        lines.append("(A quick run: too few repetitions to go by.)")
    return "\n".join(lines).rstrip() + "\n"


def measure(part: str, quick: bool) -> list[Section]:
    """Run one benchmark."""
    module = importlib.import_module(f"benchmarks.bench_{part}")
    sections: list[Section] = module.measure(quick)
    return sections


if __name__ == "__main__":
    main(sys.argv[1:])
