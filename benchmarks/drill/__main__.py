"""``python -m benchmarks.drill``: runs more of the drill, and writes docs/drill.md of all.

Each run is a line of runs.jsonl, and counts with those of earlier sittings. The kinds of which
there are fewest come first. SIGTERM and Ctrl-C let what runs end, and then end it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.drill.document import document
from benchmarks.drill.faults import FAULTS, Fault
from benchmarks.drill.record import ROOT, RUNS, Origin, append, read
from benchmarks.drill.sitting import Task, drilled

DOCUMENT = ROOT / "docs" / "drill.md"


def rarest(kinds: Sequence[Fault], counts: Counter[str], seed: int) -> Iterator[Task]:
    """Yield runs without end, of the kinds first of which there are fewest so far."""
    draw, had = random.Random(seed), Counter(counts)
    while True:
        least = min(had[one.name] for one in kinds)
        some = [one for one in kinds if had[one.name] == least]
        draw.shuffle(some)
        for one in some:
            yield Task(one, seed)
            had[one.name] += 1
            seed += 1


def main() -> None:
    """Run it and write the document."""
    chosen = _parser().parse_args()
    seed = chosen.seed or random.SystemRandom().randrange(1, 2**31)
    kinds = [one for one in FAULTS if any(word in one.name for word in chosen.only.split(","))]
    origin, stopping = Origin.now(), threading.Event()
    before = read(chosen.record, origin.files)
    counts = Counter(run.seen.fault for run in before if run.slurm == origin.slurm)
    print(f"seed {seed}; {counts.total()} runs are recorded of these files", flush=True)
    _end_at_a_signal(stopping)
    tasks = islice(rarest(kinds, counts, seed), chosen.runs or len(kinds))
    for task, seen in drilled(tasks, chosen.at_once, stopping):
        append(chosen.record, origin.noted(task, seen))
        mark = "ok " if seen.is_good else "NOT"
        print(
            f"{mark} {seen.seconds:4.0f} s  {seen.fault} ({seen.moment}), seed {task.seed}"
            f" {seen.words}",
            flush=True,
        )
        if not seen.is_good:
            print(f"    {replace(seen, said='')}\n{seen.said}", flush=True)
    runs = read(chosen.record, origin.files)
    if runs:
        chosen.out.write_text(document(runs))


def _end_at_a_signal(stopping: threading.Event) -> None:
    """End after the runs that are under way; at the second signal at once."""

    def end(number: int, _frame: object) -> None:
        print("ending after what runs now", flush=True)
        stopping.set()
        signal.signal(number, signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drill", description=__doc__)
    parser.add_argument("--runs", type=int, default=0, help="how many; each kind once by default")
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument(
        *("--seed",), type=int, default=0, help="of the first run; drawn where it is 0, and printed"
    )
    parser.add_argument("--only", default="", help="kinds with these words, split by commas")
    parser.add_argument("--record", type=Path, default=RUNS, help="where runs are kept")
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    return parser


if __name__ == "__main__":
    main()
