"""Which drawn clusters are kept: so many that each policy shows each thing often enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing import Pool

from golden.cases import cases
from golden.draw import THEMES, drawn
from golden.saved import Golden, Plans, lines_of
from golden.things import can_show, plan_of, shown
from pliant.model import Snapshot
from pliant.plan import Policy

OFTEN = 100
"""How often each policy is to show each thing that it can."""
BROAD = 30
"""After so many draws of each theme only those count that have shown what is wanted."""


def choose(draws: int, often: int = OFTEN) -> tuple[dict[str, Snapshot], Plans]:
    """Return what is kept of so many draws of each theme, and the plans that are wanted of it."""
    chosen = _Chosen(often)
    with Pool() as pool:
        for seed in range(draws):
            tasks = [(theme, seed, chosen.wanted(theme, seed)) for theme in THEMES]
            for task, found in zip(tasks, pool.map(_seen, tasks, chunksize=1), strict=True):
                chosen.add(task, found)
    return chosen.kept, chosen.plans


_Wanted = Mapping[str, frozenset[str]]
_Task = tuple[str, int, _Wanted]


class _Chosen:
    """What is kept so far, and what is wanted yet."""

    def __init__(self, often: int) -> None:
        self.kept: dict[str, Snapshot] = {}
        self.plans: Plans = {case: {} for case in cases()}
        self._often = often
        self._counts: Counter[tuple[str, str]] = Counter()
        self._themes: set[tuple[str, str]] = set()  # what clusters of a theme have shown

    def wanted(self, theme: str, seed: int) -> _Wanted:
        """Return, by policy, what it has shown too seldom, and may on a cluster of a theme."""
        found = {case: self._lacks(case, theme, seed) for case in self.plans}
        return {case: things for case, things in found.items() if things}

    def _lacks(self, case: str, theme: str, seed: int) -> frozenset[str]:
        lacks = [thing for thing in can_show(case) if self._counts[case, thing] < self._often]
        seen = self._themes
        return frozenset(one for one in lacks if seed < BROAD or (theme, one) in seen)

    def add(self, task: _Task, found: Mapping[str, Golden]) -> None:
        """Keep the plans that show what is wanted, and the cluster that they are of."""
        theme, seed, wanted = task
        for case, golden in found.items():
            self._themes.update((theme, thing) for thing in golden.shows)
            if golden.shows & wanted[case]:
                name = f"{theme} {seed}"
                self.kept.setdefault(name, drawn(theme, seed))
                self.plans[case][name] = golden
                self._counts.update((case, thing) for thing in golden.shows)


_policies: dict[str, Policy] = {}


def _seen(task: _Task) -> dict[str, Golden]:
    """What each policy shows of one draw, of what is wanted of it."""
    theme, seed, wanted = task
    if not _policies:
        _policies.update(cases())
    return dict(_goldens(drawn(theme, seed), wanted))


def _goldens(snapshot: Snapshot, wanted: _Wanted) -> Iterator[tuple[str, Golden]]:
    for case, things in wanted.items():
        plan = plan_of(snapshot, _policies[case])
        shows = frozenset(shown(snapshot, _policies[case], plan, things))
        yield case, Golden(lines_of(plan), shows)
