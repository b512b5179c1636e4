"""Counts what happens, by partition: since the start for metrics, by the hour for the report."""

from __future__ import annotations

from collections.abc import Mapping

from pliant.daemon.idling import Use
from pliant.store import Tally

HOUR_S = 3600.0
GAP_S = 120.0
"""Between looks that are farther apart nobody knows whose the GPUs were."""


class Counting:
    """Used from the cycle's thread; :attr:`since_start` may be read from any."""

    def __init__(self) -> None:
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

    def total(self) -> Tally:
        """Return what was counted since the start in all partitions; its GPUs are not added up."""
        found = Tally()
        for tally in [*self.since_start.values()]:
            found.add(tally)
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
