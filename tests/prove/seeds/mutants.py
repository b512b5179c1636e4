"""``make prove-seeds MUTANTS=1``: which seed is the first to notice that a rule is missing.

Prints it for each; 1 where none of so many notices a rule that :data:`UNNOTICED` does not name, or
one notices a rule that it does.
"""

from __future__ import annotations

import sys
from unittest.mock import patch

from prove.missing import OF_PLIANTD, ON_SLURM
from prove.seeds.seed import run

SEEDS = (*range(42), 96, 148, 150)
"""The last are the first that notice what is rare: an owner who speaks between two runs, say."""
UNNOTICED = {
    "no pin": "it is set before the fence falls all the same",
    "one that comes late is refused": "its `pliant run` goes on by itself, as without a pliantd",
    "nothing is withdrawn": "it is given up a little later, at its time",
}
"""What so many seeds do not notice, and why."""


def noticed(place: object, what: str, instead: object) -> tuple[int, str] | None:
    """Return the first seed that notices it, and what it says is wrong."""
    for seed in SEEDS:
        with patch.object(place, what, instead):
            try:
                wrong = run(seed).wrong
            except Exception as error:
                wrong = [repr(error)]
        if wrong:
            return seed, wrong[0]
    return None


def main() -> int:
    """Try them all, and say what was found."""
    bad = 0
    for name, mutant in {**ON_SLURM, **OF_PLIANTD}.items():
        found, reason = noticed(*mutant), UNNOTICED.get(name, "")
        bad += bool(found) == bool(reason)
        told = f"seed {found[0]}: {found[1]}" if found else reason or f"NOT of {len(SEEDS)} seeds"
        print(f"{name}\t{told}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
