"""``python -m golden``, in tests/: what the golden plans show, and what makes them.

``python -m golden``            prints how often each policy shows each thing that it can
``python -m golden check [P]``  compares what is decided now; 1 where that is something else
``python -m golden renew``      writes down what is decided now, on the same snapshots
``python -m golden draw N``     draws N clusters of each theme, and keeps what is needed of them
``python -m golden record DIR`` keeps some of what ``python -m golden.record DIR`` has left there
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from golden import check, large, replays
from golden.cases import cases, live_cases
from golden.choose import OFTEN, choose
from golden.saved import DATA, Golden, Plans, lines_of, save_plans, save_snapshots, snapshots_of
from golden.things import SHOWN, THINGS, can_show, plan_of
from pliant.batch.snapshot_file import read_snapshot
from pliant.model import Snapshot
from pliant.plan import Plan, Policy

MOST = 40
"""How many snapshots are kept of each recording, spread over it."""
SEEDS = (1, 2, 3)
"""Of how many drawn workloads each cluster has."""


def main() -> int:
    """Do as told."""
    parser = ArgumentParser(prog="python -m golden", description=__doc__)
    parser.add_argument("what", nargs="?", choices=(*_DO, "show", "check"), default="show")
    parser.add_argument("of", nargs="?", default="")
    told = parser.parse_args()
    if told.what == "check":
        return _check(told.of)
    if told.what in _DO:
        _DO[told.what](told.of)
    _show()
    return 0


def _check(case: str) -> int:
    """Print where plans are others; of one policy the first is enough."""
    some = {case: cases()[case]} if case else cases()
    found = (words for one, policy in some.items() for words in check.differences(one, policy))
    status = 0
    for words in islice(found, 1 if case else None):
        print(words)
        status = 1
    return status


def _draw(draws: str) -> None:
    snapshots, plans = choose(int(draws))
    save_snapshots("drawn", snapshots)
    save_plans("drawn", plans, _commit())
    for cluster in replays.CLUSTERS:
        for seed in SEEDS:
            rows = replays.table(replays.drawn_rows(cluster, seed))
            (DATA / f"{cluster} {seed}.tsv").write_text(rows)
    _keep("large", {f"poll {at}": one for at, one in enumerate(large.polls())}, live_cases())
    _renew_replays()


def _record(directory: str) -> None:
    found = {}
    for place in sorted(Path(directory).iterdir()):
        paths = sorted(place.iterdir())
        for path in paths[:: max(1, len(paths) // MOST)][:MOST]:
            found[f"{place.name} {path.stem}"] = read_snapshot(path.read_bytes())
    _keep("recorded", found, cases())


def _keep(name: str, snapshots: dict[str, Snapshot], policies: Mapping[str, Policy]) -> None:
    """Write snapshots down, and what is decided on each."""
    save_snapshots(name, snapshots)
    plans: Plans = {
        case: {
            of: Golden(lines_of(plan := plan_of(one, policy, check.SETS[name])), _shows(one, plan))
            for of, one in snapshots.items()
        }
        for case, policy in policies.items()
    }
    save_plans(name, plans, _commit())


def _shows(snapshot: Snapshot, plan: Plan) -> frozenset[str]:
    return frozenset(name for name, shows in SHOWN.items() if shows(snapshot, plan))


def _renew(_: str) -> None:
    for name, limit in check.SETS.items():
        snapshots, was = snapshots_of(name), check.saved(name)
        now: Plans = {case: {} for case in was}
        for case, policy in cases().items():
            for of, golden in was.get(case, {}).items():
                lines = lines_of(plan_of(snapshots[of], policy, limit))
                now[case][of] = Golden(lines, golden.shows)
            changed = sum(now[case][of] != golden for of, golden in was.get(case, {}).items())
            print(f"{name}: {case}: {changed} plans are others")
        save_plans(name, now, _commit())
    _renew_replays()


def _renew_replays() -> None:
    tables = check.tables()
    plans: Plans = {
        case: {
            f"{table}: {decision}": golden
            for table, text in tables.items()
            for decision, golden in replays.decisions_of(table, text, policy).items()
        }
        for case, policy in cases().items()
    }
    save_plans(check.REPLAYS, plans, _commit())


def _show() -> None:
    every = {case: check.shown_by(case) for case in cases()}
    for thing in THINGS:
        counts = {case: of[thing] for case, of in every.items() if thing in can_show(case)}
        least = min(counts, key=lambda case: counts[case])
        short = sum(count < OFTEN for count in counts.values())
        print(
            f"{thing}: {len(counts)} policies, {counts[least]} times or more ({least});"
            f" {short} of them less than {OFTEN} times"
        )


def _commit() -> str:
    told = ("git", "rev-parse", "--short=8", "HEAD")
    return subprocess.run(told, check=True, capture_output=True, text=True).stdout.strip()


_DO: Mapping[str, Callable[[str], None]] = {"renew": _renew, "draw": _draw, "record": _record}


if __name__ == "__main__":
    sys.exit(main())
