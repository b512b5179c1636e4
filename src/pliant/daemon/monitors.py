"""What pliantd does with the reports of nodes' monitors (see :mod:`pliant.wire.monitor`).

A report counts where root sent it, from the host that it speaks of as far as munge and the name
server tell, and of jobs that run there. Root of a node holds the cluster's munge key and could
forge any credential: what is checked here keeps users out, and mistakes, as of a cloned image.

What comes again is acknowledged and not counted again. All of it runs in the event loop, in half a
millisecond or so, the first after each look in 10 ms where 10,000 jobs run: no thread is taken from
others, and a thousand monitors, all of root, are no crowd.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pliant.daemon.held import Idle, gpus_of, held
from pliant.daemon.libmunge import Proof
from pliant.daemon.origins import Origins
from pliant.daemon.watched import MonitorRow, MonitorsRow, SpeedRow
from pliant.errors import BadInput, Refused
from pliant.model import Job, Node, Snapshot
from pliant.wire.monitor import NodeGpu, Report, ReportAnswer, Window, requested

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
    """What is kept of a node: its GPUs as they were at ``seen_s``."""

    heard_s: float = 0.0
    seen_s: float = 0.0
    gpus: tuple[NodeGpu, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)  # the last of each start, latest last


@dataclass(slots=True)
class _Kept:
    """What is kept of a job on a node: its last windows, and which of its GPUs are idle."""

    windows: deque[Measured] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    idle: Idle = field(default_factory=Idle)


class _Index:
    """What reports are checked against: a look, by names."""

    def __init__(self, seen: Snapshot | None) -> None:
        self.seen = seen
        running = seen.running if seen else ()
        self.jobs: Mapping[str, Job] = {job.number or job.id: job for job in running}
        self.nodes: Mapping[str, Node] = {node.name: node for node in seen.nodes} if seen else {}
        self.held = held(seen) if seen else {}


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
    _kept: dict[str, dict[str, _Kept]] = field(default_factory=dict)  # by job, by node
    _index: _Index = field(default_factory=lambda: _Index(None))
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
        node = self._nodes.get(report.node) or _Node()
        last = node.numbers.get(report.start, 0)
        if report.number == last:
            self.repeated += 1
            return ReportAnswer("taken")
        if report.number < last:
            why = f"{report.node}: report {report.number} comes after {last}"
            return self._refuse("out of order", why)
        now_s = self.clock()
        measured = [_measured(window, report.now_s, now_s) for window in report.windows]
        left = [m for m in measured if self._job(m, report.node) is None]
        if any(m.end_s > seen.now_s for m in left):
            return ReportAnswer("again", f"job {left[0].window.job} was not seen yet")
        self._nodes[report.node] = node
        self._note(node, report, last, now_s)
        for each in measured:
            self._keep(each, report.node)
        self.refused["job not there"] += len(left)
        why = f"job {left[0].window.job} does not run on {report.node}" if left else ""
        return ReportAnswer("taken", why, len(left))

    def _note(self, node: _Node, report: Report, last: int, now_s: float) -> None:
        self.reports += 1
        if last:  # of what was before the first that we hear, an earlier pliantd heard
            self.missing += report.number - last - 1
        node.numbers.pop(report.start, None)
        node.numbers[report.start] = report.number
        if len(node.numbers) > MOST_STARTS:
            del node.numbers[next(iter(node.numbers))]
        node.heard_s = now_s
        if report.seen_s:
            node.gpus, node.seen_s = report.gpus, _here_s(report.seen_s, report.now_s, now_s)

    def _keep(self, measured: Measured, node: str) -> None:
        job = self._job(measured, node)
        if job is None:
            return
        self.windows += 1
        kept = self._kept.setdefault(job.id, {}).setdefault(node, _Kept())
        kept.windows.append(measured)
        before = kept.idle if kept.idle.seen_s > job.start_s else Idle()  # of an earlier run
        kept.idle = before.seen(self._idle(job, measured, node), measured.end_s)

    def _idle(self, job: Job, measured: Measured, node: str) -> int:
        """Return how many GPUs a job holds on a node and does not use; 0 where it is not known."""
        holds = self._index.held.get((job.id, node), 0)
        are_read = len(self._nodes[node].gpus) >= gpus_of(self._index.nodes[node])
        window = measured.window
        return max(0, holds - len(window.gpus)) if are_read and window.all_gpus else 0

    def _job(self, measured: Measured, node: str) -> Job | None:
        """Return the job that a window is of; None where this run of it was not on that node."""
        job = self._index.jobs.get(measured.window.job)
        there = job is not None and node in job.nodes and measured.end_s > job.start_s
        return job if there else None

    def _nodes_of(self, seen: Snapshot) -> Collection[str]:
        """Return the names of all nodes; with a new look, forget the jobs that are gone."""
        if self._index.seen is not seen:
            self._index = _Index(seen)
            there = {job.id: job.nodes for job in seen.running}
            with self._lock:
                self._kept = {
                    job: {node: kept for node, kept in by_node.items() if node in there[job]}
                    for job, by_node in self._kept.items()
                    if job in there
                }
                self._nodes = {n: row for n, row in self._nodes.items() if n in self._index.nodes}
        return self._index.nodes.keys()

    # What is known

    def of(self, job_id: str) -> Mapping[str, tuple[Measured, ...]]:
        """Return the last windows of a running job, by node, the latest last."""
        with self._lock:
            return {node: tuple(kept.windows) for node, kept in self._kept.get(job_id, {}).items()}

    def heard(self) -> Mapping[str, float]:
        """Return when each node was heard last, of those that were."""
        with self._lock:
            return {name: row.heard_s for name, row in self._nodes.items()}

    def gpu_mib(self) -> Mapping[str, int]:
        """Return the memory of each node's smallest GPU, of those where all were read."""
        with self._lock:
            rows = [(name, row.gpus) for name, row in self._nodes.items() if row.gpus]
        known = self._index.nodes
        gpus = {n: seen for n, seen in rows if n in known and len(seen) >= gpus_of(known[n])}
        least = {name: min(int(gpu.total_mib or 0) for gpu in seen) for name, seen in gpus.items()}
        return {name: mib for name, mib in least.items() if mib}

    def nodes(self) -> Mapping[str, MonitorRow]:
        """Return each node's last reading, by its name; of those that were heard."""
        with self._lock:
            nodes = [(name, self._nodes[name]) for name in sorted(self._nodes)]
            kept = [(node, k) for by_node in self._kept.values() for node, k in by_node.items()]
        speeds: dict[str, list[SpeedRow]] = {}
        for node, each in kept:
            speeds.setdefault(node, []).append(_speed_row(each))
        return {
            name: MonitorRow(name, row.heard_s, tuple(speeds.get(name, ())), row.seen_s, row.gpus)
            for name, row in nodes
        }

    def row(self, *, with_nodes: bool) -> MonitorsRow:
        """Return what ``pliant status`` shows; ``with_nodes``: with each node's last reading."""
        return MonitorsRow(
            nodes=len(self.heard()),
            reports=self.reports,
            repeated=self.repeated,
            missing=self.missing,
            windows=self.windows,
            refused={kind: count for kind, count in self.refused.items() if count},
            last=tuple(self.nodes().values()) if with_nodes else (),
        )


def _here_s(at_s: float, sent_s: float, now_s: float) -> float:
    """Put an instant on pliantd's clock: two may be hours apart, a distance is the same."""
    return now_s - max(0.0, sent_s - at_s)


def _measured(window: Window, sent_s: float, now_s: float) -> Measured:
    end_s = _here_s(window.end_s, sent_s, now_s)
    return Measured(end_s - (window.end_s - window.begin_s), end_s, window)


def _speed_row(kept: _Kept) -> SpeedRow:
    last = kept.windows[-1]
    window = last.window
    return SpeedRow(
        job=window.job,
        tier=window.tier,
        value=window.value,
        unit=window.unit,
        end_s=last.end_s,
        cpu=window.cpu,
        memory_mib=window.memory_mib,
        waited=window.waited,
        gpus=window.gpus,
        idle_since_s=kept.idle.since_s,
    )
