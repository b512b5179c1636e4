"""``python -m benchmarks.drill``: makes more runs of the drill.

Each run is a line of benchmarks/drill/runs.jsonl: when, of which commit and hash of the files under
test, on which batch system and release, drawn by which seed, and what it showed. Those of the same
hash and batch system count together, over sittings; a change of a file under test begins the
counting anew, but of one that only another batch system's runs execute. The kinds of which there
are fewest hand-overs come first. SIGTERM and Ctrl-C let what runs end, and then end it; the next
sitting goes on from there. ``python -m benchmarks.drill.document`` writes docs/drill.md of all that
count: how many, of what, what was lost, stuck or done again, and by kind how often harm may be done
at most.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.drill.fault import Fault
from benchmarks.drill.record import RUNS, Origin, append, counted, read
from benchmarks.drill.run import Ran
from benchmarks.drill.sitting import Task, drilled
from benchmarks.drill.systems import SYSTEMS

IN_VAIN = 10
"""How many runs of a kind may pass by the moment of its fault."""


def named(kinds: Sequence[Fault], only: str) -> Sequence[Fault]:
    """Return the kind of this name, or those with any of its words, which commas split."""
    same = [one for one in kinds if one.name == only]
    return same or [one for one in kinds if any(word in one.name for word in only.split(","))]


def rarest(kinds: Sequence[Fault], counts: Counter[str], seed: int) -> Iterator[Task]:
    """Yield runs without end, of the kinds first of which there are fewest hand-overs.

    Those of a run count in ``counts`` once it is yielded, as many as it may make.
    """
    draw = random.Random(seed)
    while True:
        least = min(counts[one.name] for one in kinds)
        some = [one for one in kinds if counts[one.name] == least]
        draw.shuffle(some)
        for one in some:
            counts[one.name] += one.hand_overs
            yield Task(one, seed)
            seed += 1


def enough(
    tasks: Iterator[Task], runs: int, each: int, kinds: Sequence[Fault], counts: Counter[str]
) -> Iterator[Task]:
    """Yield so many of them, or until there are so many hand-overs of each kind.

    Or until one has been tried for so often that its fault seems to come no more.
    """
    if runs or not each:
        yield from islice(tasks, runs or len(kinds))
    drawn = Counter[str]()
    while each and min(counts[one.name] for one in kinds) < each:
        task = next(tasks)
        drawn[task.fault.name] += 1
        if drawn[task.fault.name] > each + IN_VAIN:
            vain = f"its fault came in too few of {each + IN_VAIN} runs"
            print(f"{task.fault.name}: {vain}: ending", flush=True)
            counts[task.fault.name] -= task.fault.hand_overs  # this one is not made
            return
        yield task


def main() -> int:
    """Make the runs, and note each as it ends; 1 where one of them was not good."""
    parser = _parser()
    chosen = parser.parse_args()
    seed = chosen.seed or random.SystemRandom().randrange(1, 2**31)
    system = SYSTEMS[chosen.batch]
    for name in system.needs:
        if name not in os.environ:
            parser.error(f"--batch {chosen.batch}: {name} is not set, see its field's module")
    kinds = named(system.faults, chosen.only)
    if not kinds:
        parser.error(f"--only {chosen.only!r}: no kind has one of these words in its name")
    origin = Origin.now(f"{system.name} {system.release()}", chosen.where)
    stopping = threading.Event()
    counts = counted(read(chosen.record), origin.on)
    print(f"seed {seed}; {origin.on}, commit {origin.commit}, hash of files {origin.files}")
    print(_standing(chosen.record, origin, system.faults), flush=True)
    _end_at_a_signal(stopping)
    at_once = system.at_once or chosen.at_once
    tasks = enough(rarest(kinds, counts, seed), chosen.runs, chosen.each, kinds, counts)
    bad, changed = 0, False
    for task, ran in drilled(tasks, at_once, stopping, chosen.logs, system.up):
        bad += not ran.is_good
        if origin.is_as_now():
            append(chosen.record, origin.noted(task, ran))
            counts[ran.fault] += ran.faults - task.fault.hand_overs
            _print(task, ran)
        else:
            stopping.set()
            changed = True
            print("a file under test was changed: this run does not count, ending", flush=True)
    print(_standing(chosen.record, origin, system.faults), flush=True)
    short = not stopping.is_set() and min(counts[one.name] for one in kinds) < chosen.each
    return int(bad > 0 or short or changed)


def _standing(record: Path, origin: Origin, kinds: Sequence[Fault]) -> str:
    counts = counted(read(record), origin.on)
    tried = sum(counts[kind.name] > 0 for kind in kinds)
    least = min(counts[kind.name] for kind in kinds)
    return (
        f"recorded of these files: {counts.total()} hand-overs, of {tried} of"
        f" {len(kinds)} kinds, at least {least} of each"
    )


def _print(task: Task, ran: Ran) -> None:
    mark, moments = "ok " if ran.is_good else "NOT", ", ".join(seen.moment for seen in ran.seen)
    print(f"{mark} {ran.seconds:4.0f} s  {ran.fault} ({moments}), seed {task.seed}", flush=True)
    if not ran.is_good:
        print(*ran.seen, ran.said, sep="\n    ", flush=True)


def _end_at_a_signal(stopping: threading.Event) -> None:
    """End after the runs that are under way, whose batch systems are to be taken down."""

    def end(_number: int, _frame: object) -> None:
        print("ending after what runs now", flush=True)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def _many(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 0 on is expected")
    return int(text)


def _some(text: str) -> int:
    if not _many(text):
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 on is expected")
    return _many(text)


def _file(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text!r}: a file in a directory that is there is expected"
        )
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drill", description=__doc__)
    parser.add_argument("--batch", choices=[*SYSTEMS], default="slurm", help="pbs: pbs_field.py")
    parser.add_argument("--runs", type=_many, default=0, help="how many; each kind once by default")
    parser.add_argument(
        "--each", type=_many, default=0, help="until so many hand-overs of each kind"
    )
    half = max(1, (os.cpu_count() or 2) // 2)
    parser.add_argument("--at-once", type=_some, default=half, help="how many at the same time")
    parser.add_argument(
        *("--seed",),
        type=_many,
        default=0,
        help="of the first run; drawn where it is 0, and printed",
    )
    parser.add_argument(
        "--only", default="", help="a kind, or those with these words, split by commas"
    )
    parser.add_argument("--record", type=_file, default=RUNS, help="where runs are kept")
    parser.add_argument("--logs", type=Path, help="keep what the daemons log there")
    parser.add_argument("--where", default="", help="what the record says of this machine")
    return parser


if __name__ == "__main__":
    sys.exit(main())
