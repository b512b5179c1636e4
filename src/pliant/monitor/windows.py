"""When what costs something is measured: in windows, and each node in its own. Pure.

Counters are open for ``length_s`` of every ``every_s`` seconds; what is cheap is read at each tick.
Practice elsewhere is 10 s once a minute (Koordinator). The phase is drawn from the node's name, so
that a cluster's nodes, often started together, do not all measure in the same ten seconds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_SLACK_S = 1e-3
"""A moment so close before an edge counts as after it: who sleeps until then may wake too early."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that begin at ``phase_s`` and every ``every_s`` seconds before and after that.

    Raises ValueError unless 0 < length_s <= every_s.
    """

    every_s: float = 60.0
    length_s: float = 10.0
    phase_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.length_s <= self.every_s:
            raise ValueError(f"a window of {self.length_s} s every {self.every_s} s")

    @property
    def duty(self) -> float:
        """Return the part of the time that windows take."""
        return self.length_s / self.every_s

    def is_open(self, at_s: float) -> bool:
        """Say whether a moment is in a window; its end is not."""
        return self._into(at_s) < self.length_s

    def next_edge(self, at_s: float) -> float:
        """Return when a window next begins or ends."""
        begin = at_s + _SLACK_S - self._into(at_s)
        edge = begin + self.length_s
        return edge if self.is_open(at_s) else begin + self.every_s

    def _into(self, at_s: float) -> float:
        """Return how long ago the last window began."""
        return (at_s + _SLACK_S - self.phase_s) % self.every_s


def of_node(name: str, every_s: float = 60.0, length_s: float = 10.0) -> Windows:
    """Return the windows of a node: the same name has the same phase always."""
    drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) / 2**64
    return Windows(every_s, length_s, drawn * every_s)


def pause_s(every_s: float, cost_s: float, most: float) -> float:
    """Return how long to wait from tick to tick so that ticks take at most that part of a core.

    ``cost_s``: CPU seconds that the last tick took. A crowded node is looked at less often.
    """
    return max(every_s, cost_s / most)


def next_tick(windows: Windows, at_s: float, pause_s: float) -> float:
    """Return when to look next where windows are to be kept: at each edge, and between them.

    Little can be said of a short time: two ticks are half a pause apart at least, or as far as two
    edges are. So a tick that would come shortly before an edge is left out, and so is an edge that
    comes shortly after the very first tick.
    """
    least_s = min(pause_s / 2, windows.length_s, windows.every_s - windows.length_s or pause_s)
    tick_s, edge_s = at_s + pause_s, windows.next_edge(at_s)
    if edge_s - at_s < least_s - 2 * _SLACK_S:
        edge_s = windows.next_edge(edge_s)
    return edge_s if edge_s < tick_s + pause_s / 2 else tick_s
