"""Processes on GPUs, as ``pliant monitor --trace`` writes them (:mod:`pliant.wire.gpu_trace`).

As Fujiwara et al. read theirs (section V-A): a process that was seen for more than 300 seconds is a
task, submitted and started when it was first seen, and ended when it was last. It takes as many
GPUs as it was seen on at most at once. Its run is what it would take without company: with c
processes on its GPU, on the fullest of them where it has several, a second counts as 1/c.

A process that several looks do not see has left its GPUs; what it does there later is another task.
Where nobody looked meanwhile, as while the monitor was away, it has not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pliant.simulator.traces.lines import Record, trace_lines, wrong
from pliant.wire.gpu_trace import HEADER, NotSoError, Row, to_row

TASK_S = 300.0
"""What was not seen for longer is no task."""
MISSED = 4
"""So many looks in a row may miss a process that is still there."""

_Process = tuple[str, str]
"""A process of a node: its number, and when it began."""


@dataclass(slots=True)
class _Seen:
    """A process since it was first seen, and when it was last.

    ``on``: its GPUs then; ``sharing``: how many processes were on the fullest of them; ``most``: on
    how many GPUs it was at most; ``missed``: how many looks at its GPUs have not seen it since.
    """

    user: str
    first_s: float
    last_s: float
    on: list[str]
    sharing: int = 1
    most: int = 0
    missed: int = 0
    run_s: float = 0.0


@dataclass(slots=True)
class _Look:
    """The lines of one look: on which GPUs each process is, and how many are on each GPU."""

    time: str
    gpus: dict[str, int] = field(default_factory=dict)
    processes: dict[_Process, list[str]] = field(default_factory=dict)
    users: dict[_Process, str] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take a line. Raises NotSoError for one that another has contradicted."""
        if not row.pid:
            if row.gpu in self.gpus:
                raise NotSoError(f"gpu {row.gpu} has another line of the same time")
            self.gpus[row.gpu] = 0
            return
        if self.started.setdefault(row.pid, row.started) != row.started:
            words = f"pid {row.pid}: it began at {self.started[row.pid] or 'no time'} and at"
            raise NotSoError(f"{words} {row.started or 'no time'} in lines of the same time")
        process = (row.pid, row.started)
        on = self.processes.setdefault(process, [])
        if row.gpu in on or self.gpus.get(row.gpu) == 0:
            raise NotSoError(f"gpu {row.gpu}, pid {row.pid}: another line of the same time has it")
        on.append(row.gpu)
        self.gpus[row.gpu] = self.gpus.get(row.gpu, 0) + 1
        self.users[process] = row.user


class _Node:
    """What was seen on one node until now."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seen: dict[_Process, _Seen] = {}
        self._look: _Look | None = None

    def add(self, row: Row) -> Iterator[Record]:
        """Take a line; yield the tasks that the look before it shows to have ended.

        Raises NotSoError for a line that the lines before contradict.
        """
        now = self._look
        if now is not None and float(row.time) < float(now.time):
            before = f"before that of a line above ({now.time}) of node {row.node}"
            raise NotSoError(f"time {row.time} is {before}: sort -n puts the lines in order")
        if now is None or row.time != now.time:
            yield from self._done()
            now = self._look = _Look(row.time)
        now.add(row)

    def ended(self) -> Iterator[Record]:
        """Yield the tasks that were still there when the trace ended."""
        yield from self._done()
        for process, seen in self._seen.items():
            yield from self._task(process, seen)

    def _done(self) -> Iterator[Record]:
        """Reckon with a look that is whole."""
        look, self._look = self._look, None
        if look is None:
            return
        at_s = float(look.time)
        for process, on in look.processes.items():
            seen = self._seen.get(process)
            if seen is not None and _is_another(process, seen, at_s):
                yield from self._task(process, self._seen.pop(process))
                seen = None
            if seen is None:
                seen = self._seen[process] = _Seen(look.users[process], at_s, at_s, on)
            seen.run_s += (at_s - seen.last_s) / seen.sharing
            seen.last_s, seen.on, seen.missed = at_s, on, 0
            seen.sharing = max(look.gpus[gpu] for gpu in on)
            seen.most = max(seen.most, len(on))
        yield from self._gone(look)

    def _gone(self, look: _Look) -> Iterator[Record]:
        """Yield the tasks that have been missed too often."""
        for process, seen in [*self._seen.items()]:
            if process not in look.processes and all(gpu in look.gpus for gpu in seen.on):
                seen.missed += 1
                if seen.missed > MISSED:
                    yield from self._task(process, self._seen.pop(process))

    def _task(self, process: _Process, seen: _Seen) -> Iterator[Record]:
        if seen.last_s - seen.first_s > TASK_S:
            yield Record(
                id=f"{self._name}/{process[0]}@{seen.first_s:.0f}",
                submit_s=seen.first_s,
                run_s=seen.run_s,
                width=seen.most,
                asked=seen.most,
                user=seen.user,
                gpus=seen.most,
            )


def _is_another(process: _Process, seen: _Seen, at_s: float) -> bool:
    """Say whether a number may have been given to another process while nobody looked."""
    return not process[1] and at_s - seen.last_s > TASK_S


def read_gpus(path: Path) -> Iterator[Record]:
    """Yield the tasks, in the order in which they were first seen.

    A last line without an end is left out. Several files may be one, each with its own first line,
    if their lines are in the order of time on each node.

    Raises BadInput for a line that is cut off, that cannot be right or contradicts another.
    """
    tasks: list[Record] = []
    nodes: dict[str, _Node] = {}
    for number, line in trace_lines(path, ended=True):
        if number == 1 and line != HEADER:
            raise wrong(path, number, f"the columns {HEADER} are expected")
        if line in ("", HEADER):
            continue
        try:
            row = to_row(line)
            if row.node not in nodes:
                nodes[row.node] = _Node(row.node)
            tasks += nodes[row.node].add(row)
        except NotSoError as error:
            raise wrong(path, number, str(error)) from None
    for node in nodes.values():
        tasks += node.ended()
    yield from sorted(tasks, key=lambda task: (task.submit_s, task.id))


def gpus_of(path: Path) -> int:
    """Return how many GPUs a trace tells of; an instance of MIG is one. Raises BadInput."""
    found: set[tuple[str, str]] = set()
    for number, line in trace_lines(path, ended=True):
        if line not in ("", HEADER):
            try:
                row = to_row(line)
            except NotSoError as error:
                raise wrong(path, number, str(error)) from None
            found.add((row.node, row.gpu))
    return len(found)
