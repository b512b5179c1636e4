"""``make prove-seeds``: so many seeds, some at once; or one again, with all that happened in it.

Prints of which commit, and a line for each seed; 1 where something was wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from multiprocessing import get_context

from prove.asked import many, some
from prove.seeds.seed import Found, run


def main() -> int:
    """Run them, and say what was found."""
    parser = argparse.ArgumentParser(prog="make prove-seeds", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seeds", type=some, default=50, help="how many")
    which.add_argument("--one", type=many, help="this one alone, with its trace")
    parser.add_argument("--first", type=many, default=0, help="the first of them")
    parser.add_argument("--at-once", type=some, default=os.cpu_count(), help="processes")
    chosen = parser.parse_args()
    if chosen.one is not None:
        found = run(chosen.one, shown=True)
        return _told([found], 0.0)
    print(f"commit {_commit()}", flush=True)
    since_s = time.monotonic()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    with get_context("fork").Pool(chosen.at_once) as pool:
        return _told(pool.imap(run, seeds), since_s)


def _commit() -> str:
    """Of what is run, as git says, and whether it was changed since."""
    argv = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()


def _told(every: Iterable[Found], since_s: float) -> int:
    """Print each as it comes, and then all together."""
    seeds, jobs, hand_overs, made, wrong, faults = 0, 0, 0, 0, 0, Counter[str]()
    for found in every:
        seeds, jobs, hand_overs = seeds + 1, jobs + found.jobs, hand_overs + found.hand_overs
        made += found.made
        faults.update(found.faults)
        wrong += bool(found.wrong)
        came = sum(found.faults.values())
        print(
            f"seed {found.seed}: {found.jobs} jobs, {found.hand_overs} hand-overs, {found.made} made,"
            f" {came} faults, {found.hash[:16]}{': WRONG' if found.wrong else ''}",
            *found.wrong,
            sep="\n  ",
            flush=True,
        )
    print(
        f"{seeds} seeds: {jobs} jobs, {hand_overs} hand-overs, {made} made, {wrong} seeds wrong",
        end="",
    )
    print(f"; {time.monotonic() - since_s:.0f} s" if since_s else "")
    for name, times in sorted(faults.items()):
        print(f"{times:6} {name}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
