"""What plots show of a replay: distributions, and how many GPUs were held when.

A replay of any size comes to a few hundred numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pliant.simulator.metrics import Task

PARTS = 200
"""Of a distribution, and of the time."""


@dataclass(frozen=True, slots=True)
class Curves:
    """``flow_s``, ``wait_s`` and ``slowdown``: the figures at equal parts of all tasks, ascending.

    ``busy``: how many GPUs were held on average in each of equal spans of ``step_s`` from
    ``begin_s`` on, the first submission.
    """

    flow_s: tuple[float, ...]
    wait_s: tuple[float, ...]
    slowdown: tuple[float, ...]
    begin_s: float
    step_s: float
    busy: tuple[float, ...]


class Trail:
    """Collects what curves are made of, task by task."""

    def __init__(self) -> None:
        self._flow_s, self._wait_s, self._slowdown = array("d"), array("d"), array("d")
        self._start_s, self._end_s, self._gpus = array("d"), array("d"), array("d")
        self._begin_s = float("inf")

    def add(self, task: Task) -> None:
        """Note one task."""
        self._flow_s.append(task.flow_s)
        self._wait_s.append(task.wait_s)
        self._slowdown.append(task.slowdown)
        self._begin_s = min(self._begin_s, task.submit_s)
        for span in task.spans:
            self._start_s.append(span.start_s)
            self._end_s.append(span.end_s)
            self._gpus.append(span.gpus)

    def curves(self) -> Curves | None:
        """Return the curves; None where no task ended."""
        if not self._flow_s:
            return None
        length_s = max(self._end_s) - self._begin_s
        return Curves(
            quantiles(self._flow_s),
            quantiles(self._wait_s),
            quantiles(self._slowdown),
            self._begin_s,
            length_s / PARTS,
            self._busy(length_s),
        )

    def _busy(self, length_s: float) -> tuple[float, ...]:
        """The area under each part of a line that goes up at a start and down at an end."""
        step_s = length_s / PARTS or 1.0
        part, all_from = [0.0] * (PARTS + 1), [0.0] * (PARTS + 1)
        for instants, sign in ((self._start_s, 1.0), (self._end_s, -1.0)):
            for instant_s, gpus in zip(instants, self._gpus, strict=True):
                at = (instant_s - self._begin_s) / step_s
                place = min(int(at), PARTS - 1)
                part[place] += sign * gpus * (place + 1 - at)
                all_from[place + 1] += sign * gpus
        held, found = 0.0, []
        for place in range(PARTS):
            held += all_from[place]
            found.append(max(0.0, held + part[place]))
        return tuple(found)


def quantiles(values: Iterable[float], parts: int = PARTS) -> tuple[float, ...]:
    """Return ``parts`` + 1 of the figures, from the least to the most; there is one at least."""
    ranked: Sequence[float] = sorted(values)
    last = len(ranked) - 1
    return tuple(ranked[round(place * last / parts)] for place in range(parts + 1))
