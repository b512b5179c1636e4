"""Counts what happens, by partition: since the start for metrics, by the hour for the report."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pliant.daemon.idling import Use
from pliant.handover import Outcome
from pliant.store import HandOverRow, Tally, reason_of

HOUR_S = 3600.0
GAP_S = 120.0
"""Between looks that are farther apart nobody knows whose the GPUs were."""


TOOK_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Of hand-overs it is counted how many took no longer than each of these."""


@dataclass(slots=True)
class ResizeCount:
    """How many changes of running jobs ended so; ``why``: policy, owner, room."""

    why: str
    result: str
    count: int


@dataclass(slots=True)
class Took:
    """How long hand-overs took, from the checkpoint until the job ran again: see TOOK_S."""

    within: list[int] = field(default_factory=lambda: [0] * len(TOOK_S))
    count: int = 0
    total_s: float = 0.0


class Counting:
    """Used from the cycle's thread, but for what says otherwise."""

    def __init__(self) -> None:
        self._resizes: Counter[tuple[str, str]] = Counter()
        self._took, self._lock = Took(), threading.Lock()
        self.since_start: dict[str, Tally] = {}
        """By partition; "": see :class:`~pliant.store.Tally`."""
        self._hours: dict[tuple[float, str], Tally] = {}  # not stored yet
        self._use: tuple[float, Mapping[str, Use]] | None = None  # since when, and whose

    def add(self, now_s: float, partition: str, **counted: float) -> None:
        """Count something that has happened in a partition."""
        hour_s = now_s - now_s % HOUR_S
        tally = Tally(hour_s, partition)
        for name, number in counted.items():
            setattr(tally, name, number)
        self.since_start.setdefault(partition, Tally(0.0, partition)).add(tally)
        self._hours.setdefault((hour_s, partition), Tally(hour_s, partition)).add(tally)

    def resized(self, row: HandOverRow, outcome: Outcome) -> None:
        """Count a hand-over that has ended; from any thread."""
        with self._lock:
            self._resizes[reason_of(row.guest, row.reason), outcome.name.lower()] += 1
            if outcome is Outcome.DONE and row.saved_s:
                took_s = max(0.0, row.done_s - row.saved_s)
                self._took.within = [
                    n + (took_s <= most) for n, most in zip(self._took.within, TOOK_S, strict=True)
                ]
                self._took.count += 1
                self._took.total_s += took_s

    def resizes(self) -> tuple[tuple[ResizeCount, ...], Took]:
        """Return what became of running jobs since the start; from any thread."""
        with self._lock:
            every = tuple(ResizeCount(*key, n) for key, n in sorted(self._resizes.items()))
            return every, replace(self._took)

    def total(self) -> Tally:
        """Return what was counted since the start in all partitions; from any thread.

        GPUs are those of all nodes, each once.
        """
        found = Tally()
        for tally in [*self.since_start.values()]:
            found.add(tally.without_gpus() if tally.partition else tally)
        return found

    def looked(self, now_s: float, use: Mapping[str, Use]) -> None:
        """Count the time since the last look as its GPUs were used; from now on it is ``use``."""
        if self._use is not None:
            since_s, before = self._use
            passed_s = now_s - since_s
            if 0 < passed_s <= GAP_S:
                for partition, gpus in before.items():
                    self.add(
                        now_s,
                        partition,
                        flagged_gpu_s=gpus.flagged * passed_s,
                        other_gpu_s=gpus.other * passed_s,
                        idle_gpu_s=gpus.idle * passed_s,
                        avoidable_gpu_s=gpus.avoidable * passed_s,
                        down_gpu_s=gpus.down * passed_s,
                    )
        self._use = now_s, use

    def taken(self) -> list[Tally]:
        """Return what was counted since this was asked last."""
        hours, self._hours = self._hours, {}
        return [*hours.values()]
