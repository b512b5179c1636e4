"""Run two papers' experiments live on a real Slurm: ``python -m benchmarks.live [SECTION ...]``.

Writes docs/live.md. A section that is not asked for stays there as it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchmarks import machine
from benchmarks.live import arms, fitgpp, seo
from benchmarks.live.arms import attempt
from benchmarks.section import Section

DOCUMENT = Path(__file__).parents[2] / "docs" / "live.md"

_HEAD = """\
# Two papers' experiments, live

Written by `make live`; every number below was measured by that run. GPUs are fake, and training is
a stand-in that counts steps by the clock; Slurm, checkpoints and hand-overs are real.
"""


def main() -> None:
    """Run the sections that were asked for, all by default, and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="seo, fitgpp")
    parser.add_argument("--scale", type=float, default=0.3, help="of Seo's times")
    parser.add_argument("--jobs", type=int, default=60, help="FitGpp's")
    parser.add_argument("--seed", type=int, default=1, help="of FitGpp's workload")
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    measure: Mapping[str, Callable[[], Iterable[Section]]] = {
        "seo": lambda: seo.sections(chosen.scale),
        "fitgpp": lambda: fitgpp.sections(chosen.jobs, chosen.seed),
    }
    unknown = set(chosen.sections) - measure.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: of {', '.join(measure)} is expected")
    before = chosen.out.read_text() if chosen.out.exists() else ""
    texts = told(before, measure)
    for name in chosen.sections or measure:
        print(f"running: {name}", file=sys.stderr, flush=True)
        texts[name] = measured(name, measure[name])
        chosen.out.write_text(document(texts))


def measured(name: str, sections: Callable[[], Iterable[Section]]) -> str:
    """Return what one part of the document says; that it failed, where it did."""
    lines, failed = [*machine.lines(), ""], dict[str, str]()
    for section in attempt(name, lambda: [*sections()], failed) or ():
        lines += section.markdown()
    return "\n".join([*lines, arms.told(failed)])


def document(texts: Mapping[str, str]) -> str:
    """Return the document that holds these sections."""
    marked = [f"{_mark(name)}\n\n{texts[name].strip()}\n" for name in sorted(texts, reverse=True)]
    return "\n".join([_HEAD, *marked])


def told(text: str, names: Mapping[str, object]) -> dict[str, str]:
    """Return the sections that a document holds."""
    found, name = dict[str, str](), ""
    for line in text.splitlines(keepends=True):
        marked = [other for other in names if line.strip() == _mark(other)]
        if marked:
            name = marked[0]
            found[name] = ""
        elif name:
            found[name] += line
    return found


def _mark(name: str) -> str:
    return f"<!-- {name} -->"


if __name__ == "__main__":
    main()
