"""Look at the processes on this node's GPUs again and again, and append each look to a trace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pliant.monitor.gpu_rows import jobs_by_pid, rows_of
from pliant.monitor.gpus import GpuReading
from pliant.monitor.service import MOST, Node, Wait
from pliant.monitor.windows import pause_s
from pliant.wire.gpu_trace import to_line

log = logging.getLogger("pliant.trace")


class Reader(Protocol):
    """What reads GPUs at a moment of Unix time."""

    def read(self, now_s: float) -> GpuReading:
        """Return what they do."""


@dataclass(slots=True)
class Instants:
    """Unix time that never goes back: what a clock that is set later would do to a trace's order.

    After the clock was set back, time goes on from where it was; set forward, it is followed.
    """

    epoch: Callable[[], float]
    monotonic: Callable[[], float]
    _last: tuple[float, float] | None = None

    def now_s(self) -> float:
        """Return the time of a look."""
        at_s, tick_s = self.epoch(), self.monotonic()
        if self._last is not None:
            before_s, before_tick_s = self._last
            if at_s <= before_s:
                at_s = before_s + tick_s - before_tick_s
        self._last = (at_s, tick_s)
        return at_s


def trace(
    node: Node,
    gpus: Reader,
    append: Callable[[str], None],
    every_s: float,
    wait: Wait,
) -> None:
    """Append a look every ``every_s`` seconds, until ``wait`` says that it is time to end.

    Less often where a look costs more than :data:`~pliant.monitor.service.MOST` of a core.
    """
    clocks = node.clocks
    instants = Instants(clocks.epoch, clocks.monotonic)
    while True:
        at_s, began_cpu_s = clocks.monotonic(), clocks.cpu()
        if text := look(node, gpus, instants.now_s()):
            append(text)
        next_s = at_s + pause_s(every_s, clocks.cpu() - began_cpu_s, MOST)
        if wait(max(0.0, next_s - clocks.monotonic())):
            return


def look(node: Node, gpus: Reader, at_s: float) -> str:
    """Return one look's lines; "" where no GPU can be read, which was logged."""
    reading = gpus.read(at_s)
    if not reading.gpus:
        return ""
    known = any(one.known for gpu in reading.gpus for one in gpu.processes or ())
    try:
        jobs = jobs_by_pid(node.proc, node.cgroup) if known else {}
        return "".join(map(to_line, rows_of(reading, node.name, jobs, node.proc)))
    except OSError as error:
        log.warning("%s: %s", node.proc, error.strerror)
        return ""
