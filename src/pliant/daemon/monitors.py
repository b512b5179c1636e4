"""What pliantd does with the reports of nodes' monitors (see :mod:`pliant.wire.monitor`).

A report counts where root sent it, from the host that it speaks of as far as munge and the name
server tell, and of jobs that run there. Root of a node holds the cluster's munge key and could
forge any credential: what is checked here keeps users out, and mistakes, as of a cloned image.

What comes again is acknowledged and not counted again. All of it runs in the event loop, in
0.1 ms or so: no thread is taken from others, and a thousand monitors, all of root, are no crowd.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pliant.daemon import answers as a
from pliant.daemon.libmunge import Proof
from pliant.daemon.origins import Origins
from pliant.errors import BadInput, Refused
from pliant.model import Job, Snapshot
from pliant.wire.monitor import Report, ReportAnswer, Window, requested

MOST_KEPT = 10
"""Windows of one job on one node, the latest."""
MOST_STARTS = 4
"""Of one node: one that was started anew sends first what it had kept before."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A window, and when it was by pliantd's clock."""

    begin_s: float
    end_s: float
    window: Window


@dataclass(slots=True)
class _Node:
    heard_s: float = 0.0
    last: tuple[Measured, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)  # the last of each start, latest last


@dataclass(slots=True)
class Monitors:
    """What monitors have said. Told in the event loop, asked from any thread."""

    look: Callable[[], Snapshot | None]  # the last one; None: there was none yet
    clock: Callable[[], float]
    origins: Origins
    stands_by: Callable[[], str] = str
    reports: int = 0
    repeated: int = 0  # came again: the answer was lost
    missing: int = 0  # never came: dropped by the node, or refused
    windows: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by kind; windows of foreign jobs too
    _nodes: dict[str, _Node] = field(default_factory=dict)
    _kept: dict[str, dict[str, deque[Measured]]] = field(default_factory=dict)  # by job, by node
    _index: tuple[Snapshot | None, dict[str, Job], frozenset[str]] = (None, {}, frozenset())
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def answer(self, fields: Mapping[str, str], proof: Proof) -> ReportAnswer:
        """Take a report, or say why not.

        Raises Refused for users.
        """
        if proof.uid != 0:
            self.refused["not root"] += 1
            raise Refused("only root's monitor of a node may report")
        try:
            report = requested(fields)
        except BadInput as wrong:
            return self._refuse("malformed", str(wrong))
        seen = self.look()
        if seen is None or self.stands_by():
            return ReportAnswer("again", self.stands_by() or "the first look is not done yet")
        if report.node not in self._nodes_of(seen):
            return self._refuse("unknown node", f"{report.node}: no node of this name is known")
        if await self.origins.is_foreign(report.node, proof.host):
            why = (
                f"{report.node}: the report was made at {proof.host}, which is no address of this "
                "node's name: munged --origin sets what its host is known by"
            )
            return self._refuse("foreign host", why)
        with self._lock:
            return self._take(report, seen)

    def _refuse(self, kind: str, why: str) -> ReportAnswer:
        self.refused[kind] += 1
        return ReportAnswer("refused", why)

    def _take(self, report: Report, seen: Snapshot) -> ReportAnswer:
        node = self._nodes.setdefault(report.node, _Node())
        last = node.numbers.get(report.start, 0)
        if report.number == last:
            self.repeated += 1
            return ReportAnswer("taken")
        if report.number < last:
            why = f"{report.node}: report {report.number} comes after {last}"
            return self._refuse("out of order", why)
        now_s = self.clock()
        measured = [_measured(window, report.now_s, now_s) for window in report.windows]
        here = [m for m in measured if self._job(m, report.node) is not None]
        left = [m for m in measured if self._job(m, report.node) is None]
        if any(m.end_s > seen.now_s for m in left):
            return ReportAnswer("again", f"job {left[0].window.job} was not seen yet")
        self._note(node, report, last)
        node.heard_s, node.last = now_s, tuple({m.window.job: m for m in here}.values())
        for each in here:
            self._keep(each, report.node)
        self.refused["job not there"] += len(left)
        why = f"job {left[0].window.job} does not run on {report.node}" if left else ""
        return ReportAnswer("taken", why, len(left))

    def _note(self, node: _Node, report: Report, last: int) -> None:
        self.reports += 1
        if last:  # of what was before the first that we hear, an earlier pliantd heard
            self.missing += report.number - last - 1
        node.numbers.pop(report.start, None)
        node.numbers[report.start] = report.number
        if len(node.numbers) > MOST_STARTS:
            del node.numbers[next(iter(node.numbers))]

    def _keep(self, measured: Measured, node: str) -> None:
        job = self._job(measured, node)
        if job is not None:
            self.windows += 1
            by_node = self._kept.setdefault(job.id, {})
            by_node.setdefault(node, deque(maxlen=MOST_KEPT)).append(measured)

    def _job(self, measured: Measured, node: str) -> Job | None:
        """Return the job that a window is of; None where this run of it was not on that node."""
        job = self._index[1].get(measured.window.job)
        there = job is not None and node in job.nodes and measured.end_s > job.start_s
        return job if there else None

    def _nodes_of(self, seen: Snapshot) -> frozenset[str]:
        """Return the names of all nodes; with a new look, forget the jobs that are gone."""
        if self._index[0] is not seen:
            running = seen.running
            jobs = {job.number or job.id: job for job in running}
            self._index = seen, jobs, frozenset(node.name for node in seen.nodes)
            there = {job.id for job in running}
            with self._lock:
                self._kept = {job: kept for job, kept in self._kept.items() if job in there}
                self._nodes = {n: row for n, row in self._nodes.items() if n in self._index[2]}
        return self._index[2]

    # What is known

    def of(self, job_id: str) -> Mapping[str, tuple[Measured, ...]]:
        """Return the last windows of a running job, by node, the latest last."""
        with self._lock:
            return {node: tuple(kept) for node, kept in self._kept.get(job_id, {}).items()}

    def row(self, *, with_nodes: bool) -> a.MonitorsRow:
        """Return what ``pliant status`` shows; ``with_nodes``: with each node's last reading."""
        with self._lock:
            nodes = {name: node for name, node in self._nodes.items() if node.heard_s}
            rows = tuple(_row(name, node) for name, node in sorted(nodes.items()))
            return a.MonitorsRow(
                nodes=len(rows),
                reports=self.reports,
                repeated=self.repeated,
                missing=self.missing,
                windows=self.windows,
                refused={kind: count for kind, count in self.refused.items() if count},
                last=rows if with_nodes else (),
            )


def _measured(window: Window, sent_s: float, now_s: float) -> Measured:
    """Put a window on pliantd's clock: two clocks may be hours apart, a distance is the same."""
    end_s = now_s - max(0.0, sent_s - window.end_s)
    return Measured(end_s - (window.end_s - window.begin_s), end_s, window)


def _row(name: str, node: _Node) -> a.MonitorRow:
    speeds = tuple(
        a.SpeedRow(m.window.job, m.window.tier, m.window.value, m.window.unit, m.end_s)
        for m in node.last
    )
    return a.MonitorRow(name, node.heard_s, speeds)
