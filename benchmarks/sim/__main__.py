"""Measure the simulator and write docs/benchmarks-sim.md: ``make bench-sim DATA=DIR``.

``PARTS="fujiwara growth"`` measures these alone; the others stay in the document as they are. Each
part says when it was measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import parts
from benchmarks.section import Section
from benchmarks.sim import peers, sizes, trace
from pliant.errors import BadInput
from pliant.simulator.reproduce.fujiwara_runs import ALL
from pliant.simulator.workloads.fitgpp import JOBS

TOP = Path(__file__).parents[2]
DOCUMENT = TOP / "docs" / "benchmarks-sim.md"
PARTS = ("peers", "shares", "fujiwara", "fitgpp", "growth")

_HEAD = """\
# Benchmarks of the simulator

Written by `make bench-sim`, part by part: when each was measured stands above it."""


def main(arguments: list[str]) -> None:
    """Measure the parts that were asked for, all by default, and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sim", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, required=True, help=f"the folder with {trace.NAME}")
    parser.add_argument("--peer", type=Path, help="the Python of AccaSim's own environment")
    parser.add_argument("--rounds", type=int, default=2, help="of the comparison with AccaSim")
    parser.add_argument("--at-once", type=int, default=1, help="runs of Fujiwara's policies")
    parser.add_argument("--quick", action="store_true", help="few jobs: to try it out")
    parser.add_argument("--out", type=Path, help="where to write; - for standard output")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.parts) - set(PARTS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: of {', '.join(PARTS)} is expected")
    if min(chosen.rounds, chosen.at_once) < 1:
        parser.error(f"--rounds {chosen.rounds} --at-once {chosen.at_once}: 1 or more is expected")
    try:
        chosen.trace = trace.found(chosen.data)
    except BadInput as error:
        parser.error(str(error))
    out = chosen.out or (parts.SHOWN if chosen.quick else DOCUMENT)
    remark = "A quick run: too few jobs to go by." if chosen.quick else ""
    wanted = chosen.parts or PARTS
    parts.write(out, _HEAD, PARTS, wanted, lambda part: measured(part, chosen), remark=remark)


def measured(part: str, chosen: argparse.Namespace) -> Iterator[Section]:
    """Measure one part."""
    jobs = 2_000 if chosen.quick else ALL
    if part == "fujiwara":
        yield sizes.fujiwara(chosen.trace, jobs, chosen.at_once)
    elif part == "fitgpp":
        yield sizes.fitgpp(2_000 if chosen.quick else JOBS)
    else:
        plain = trace.written(chosen.trace, TOP / "build" / "bench-sim" / "hpc2n.swf", jobs)
        if part == "peers":
            runs = peers.measured(plain, chosen.peer, jobs, chosen.rounds)
            yield peers.section(runs, jobs, chosen.rounds)
        elif part == "shares":
            yield peers.shares(plain, jobs)
        else:
            yield sizes.growth(plain, (500, 1_000, 2_000) if chosen.quick else sizes.SIZES)


if __name__ == "__main__":
    main(sys.argv[1:])
