"""``make prove``: every order of events of a hand-over, with so many faults in each.

Prints states, moves and seconds; 1 where something is wrong, with the moves that lead to it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time

from prove.asked import some
from prove.explore import explored
from prove.on_pbs import OnPbs
from prove.on_slurm import OnSlurm
from prove.shown import listed

SYSTEMS = (OnSlurm, OnPbs)


def main() -> int:
    """Explore all, and say what was found."""
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    parser.add_argument("--faults", type=int, choices=range(4), default=2, help="how many come")
    parser.add_argument("--most", type=some, default=10_000_000, help="states at which to give up")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    bad = 0
    for system, kind in ((one, kind) for one in SYSTEMS for kind in one.kinds):
        since_s = time.process_time()
        try:
            found = explored(system, faults=chosen.faults, kind=kind, most=chosen.most)
        except OverflowError as error:
            print(f"{system.name}: {kind.name}: {error}", file=sys.stderr)
            return 1
        took_s = time.process_time() - since_s
        restless, lasts = found.restless(), found.longest()
        unlisted = sorted(found.edges - listed().keys())
        print(
            f"{system.name}: {kind.name}, {chosen.faults} faults: {found.states} states, {found.moves} moves,"
            f" {took_s:.0f} s: {len(found.wrong)} wrong, {len(restless)} without an end; pins and"
            f" fences outlast their use by {lasts.s:.0f} s, {lasts.turns} turns of pliantd's at most",
            flush=True,
        )
        for words, path in found.wrong:
            print(f"- {words}\n  {path}")
        for path in restless:
            print(f"- no end: {path}")
        for edge in unlisted:
            print(f"- not in edges.tsv: {edge}")
        bad += len(found.wrong) + len(restless) + len(unlisted)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
