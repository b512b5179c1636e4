"""Whether every policy still decides what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import zip_longest

from golden import replays
from golden.saved import DATA, Golden, Plans, lines_of, plans_of, snapshots_of
from golden.things import LIMIT, can_show, plan_of
from pliant.plan import Policy

SETS: Mapping[str, int] = {"drawn": LIMIT, "recorded": LIMIT, "large": 100_000}
"""Which files of snapshots and their plans there are; how many changes a plan of each may make."""
FEW = 7
"""Of the large ones, of which each plan takes long, one in so many is tried in tests."""
REPLAYS = "replays"

_snapshots = cache(snapshots_of)
_plans = cache(plans_of)


def saved(name: str) -> Plans:
    """Return the plans of a set; read once."""
    return _plans(name)


def tables() -> dict[str, str]:
    """Return the workloads that are replayed, by name."""
    found = sorted(DATA.glob("*.tsv"))
    return {path.stem: path.read_text() for path in found}


def differences(case: str, policy: Policy, *, every: bool = True) -> Iterator[str]:
    """Yield where a policy decides otherwise than it did, in words; ``every``: of all snapshots."""
    for name, limit in SETS.items():
        snapshots = _snapshots(name)
        some = [*saved(name).get(case, {}).items()]
        for snapshot, golden in some if every or name != "large" else some[::FEW]:
            now = Golden(lines_of(plan_of(snapshots[snapshot], policy, limit)))
            yield from compared(f"{name}: {snapshot}", golden, now)
    was = saved(REPLAYS).get(case, {})
    for table, text in tables().items():
        for decision, now in replays.decisions_of(table, text, policy).items():
            key = f"{table}: {decision}"
            yield from compared(key, was.get(key, Golden(("no such decision",))), now)


def compared(where: str, was: Golden, now: Golden) -> Iterator[str]:
    """Yield the first line that is another one, if any."""
    for old, new in zip_longest(was.lines, now.lines, fillvalue="(nothing)"):
        if old != new:
            reason = old.partition("\t")[0] == new.partition("\t")[0]
            what = "another reason" if reason else "another plan"
            yield f"{where}: {what}:\n  was {old!r}\n  now {new!r}"
            return


def shown_by(case: str) -> Counter[str]:
    """Return on how many snapshots a policy shows each thing that it can."""
    counts: Counter[str] = Counter(dict.fromkeys(can_show(case), 0))
    for name in SETS:
        for golden in saved(name).get(case, {}).values():
            counts.update(thing for thing in golden.shows if thing in counts)
    return counts
