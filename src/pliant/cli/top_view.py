"""What ``pliant top`` shows, as text: lines at the head, then tables. Pure.

The tables: nodes, changes of running jobs under way, the queue, running jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

from pliant.cli.output import Column, plain_table, printable
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.watched import TIERS, NodeRow, RunningRow, TierSpeed, TopAnswer
from pliant.figures import duration
from pliant.wire.monitor import NodeGpu

IDLE_S = 300.0
"""A GPU that a job holds and is not on is told after so long: a program may load its data first."""
MOST_GPUS = 8
"""Of how many GPUs of a node each is told; of more there is a mean."""
MOST_BESIDE = 3

NO_MONITOR = (
    "no node's monitor reports: only programs' own steps are known (pliant monitor --report)"
)
LONG = frozenset({"note", "why"})
"""Columns of sentences: they have what room the others leave."""
TEXTS = LONG | {
    *("node", "user", "name", "shape", "nodes"),
    *("partition", "own", "allowed", "reason", "change"),
}
"""Columns whose cells may be cut; a number that is cut reads as another one."""
NODES_SPARED = ("gpu_gib", "cpus", "busy_%", "jobs", "heard", "up")
JOBS_SPARED = (
    "gpu_gib",
    "mem_gib",
    "for",
    "name",
    "nodes",
    "with",
    "shape",
    "cpu",
    "gpu_%",
    "idle_gpus",
)
RESIZES_SPARED = ("user",)
QUEUE_SPARED = ("partition", "own", "user", "allowed")
"""The columns that are left out where there is no room for all, in this order."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: its columns, and the cells of each row, printable.

    ``spared``: the columns that are left out first where there is no room, in this order;
    ``more``: rows that are not here.
    """

    columns: Sequence[Column[Any]]
    cells: list[list[str]]
    spared: Sequence[str]
    more: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """One reading."""

    head: tuple[str, ...]
    nodes: Sheet
    resizes: Sheet
    queue: Sheet
    jobs: Sheet

    @property
    def sheets(self) -> list[Sheet]:
        """The tables that have rows."""
        every = (self.nodes, self.resizes, self.queue, self.jobs)
        return [sheet for sheet in every if sheet.cells]

    def plain(self) -> str:
        """Return it as plain text, with all columns."""
        tables = [plain_table(t.columns, t.cells, True) + _more(t) for t in self.sheets]
        return "\n".join(["".join(f"{line}\n" for line in self.head), *tables])


def _more(sheet: Sheet) -> str:
    return f"{sheet.more} more\n" if sheet.more else ""


def view(answer: TopAnswer) -> View:
    """Return what is shown of pliantd's answer."""
    more = max(0, answer.queued - len(answer.queue))
    return View(
        tuple(map(printable, _head(answer))),
        _sheet(node_columns(answer), answer.nodes, NODES_SPARED),
        _sheet(resize_columns(answer), answer.resizes, RESIZES_SPARED),
        _sheet(queue_columns(answer), answer.queue, QUEUE_SPARED, more),
        _sheet(job_columns(answer), answer.jobs, JOBS_SPARED),
    )


def _sheet(
    columns: Sequence[Column[Any]], rows: Sequence[Any], spared: Sequence[str], more: int = 0
) -> Sheet:
    cells = [[printable(column.text(row)) for column in columns] for row in rows]
    return Sheet(columns, cells, spared, more)


def _head(answer: TopAnswer) -> list[str]:
    gpus = sum(node.gpus for node in answer.nodes)
    free = sum(node.gpus_free for node in answer.nodes if node.up)
    idle = sum(len(held_idle(job, answer.now_s)) for job in answer.jobs)
    words = [f"{len(answer.nodes)} nodes, {gpus} GPUs, {free} free"] if answer.nodes else []
    words += [f"held and idle: {idle} GPUs"] if idle else []
    flagged = f" ({answer.queued} flagged)" if answer.queued else ""
    words += [f"{answer.running} jobs run, {answer.waiting} wait{flagged}"]
    paused = ", PAUSED: no job is changed" if answer.paused else ""
    looked = duration(answer.now_s - answer.observed_s)
    head = ["; ".join(words), f"policy {answer.policy}{paused}, last look {looked} ago"]
    if not answer.monitored:
        head.append(NO_MONITOR)
    elif answer.nodes and answer.monitored < len(answer.nodes):
        head.append(f"monitors of {answer.monitored} of {len(answer.nodes)} nodes report")
    if answer.more:
        head.append(f"{answer.more} more nodes and jobs are not shown")
    troubles = [f"trouble: {trouble}" for trouble in answer.troubles]
    return [*head, *([answer.stands_by] if answer.stands_by else []), *troubles]


# Nodes


def node_columns(answer: TopAnswer) -> list[Column[NodeRow]]:
    """Return the columns of nodes as they read at the moment of the answer."""
    jobs: dict[str, int] = {}
    for job in answer.jobs:
        for node in job.nodes:
            jobs[node] = jobs.get(node, 0) + 1
    return [
        Column("node", lambda row: row.name),
        Column("up", lambda row: "yes" if row.up else "no"),
        Column("jobs", lambda row: str(jobs.get(row.name, 0)), right=True),
        Column("cpus", lambda row: f"{row.cpus - row.cpus_free}/{row.cpus}", right=True),
        Column("gpus", _held, right=True),
        Column("busy_%", lambda row: _busy(row.seen)),
        Column("gpu_gib", lambda row: _memory(row.seen), right=True),
        Column("heard", lambda row: _heard(row, answer.now_s), right=True),
    ]


def _held(row: NodeRow) -> str:
    return f"{row.gpus - row.gpus_free}/{row.gpus}" if row.gpus else ""


def _busy(seen: Sequence[NodeGpu]) -> str:
    """Return how busy each GPU is; instances of MIG have no use of their own."""
    gpus = [gpu.busy for gpu in seen]
    known = [busy for busy in gpus if busy is not None]
    if len(gpus) > MOST_GPUS and known:
        return f"{100 * sum(known) / len(known):.0f}, a mean of {len(known)}"
    return " ".join("-" if busy is None else f"{100 * busy:.0f}" for busy in gpus)


def _memory(seen: Sequence[NodeGpu]) -> str:
    """Return the memory in use and all there is; with MIG it is told of GPUs and of instances."""
    gpus = [gpu for gpu in seen if not gpu.gpu.startswith("MIG-")]
    used = [gpu.memory_mib for gpu in gpus if gpu.memory_mib is not None]
    total = [gpu.total_mib for gpu in gpus if gpu.total_mib is not None]
    known = gpus and len(used) == len(total) == len(gpus)
    return f"{sum(used) / 1024:.0f}/{sum(total) / 1024:.0f}" if known else ""


def _heard(row: NodeRow, now_s: float) -> str:
    return f"{duration(now_s - row.heard_s)} ago" if row.heard_s else "never"


# Changes under way, and the queue


def resize_columns(answer: TopAnswer) -> list[Column[ResizeRow]]:
    """Return the columns of changes under way as they read at the moment of the answer."""
    now_s = answer.now_s
    return [
        Column("resizing", lambda row: row.id),
        Column("user", lambda row: row.user),
        Column("change", _change),
        Column("step", lambda row: _step(row, now_s)),
        Column("for", lambda row: duration(now_s - row.since_s), right=True),
        Column("why", lambda row: row.reason),
    ]


def _change(row: ResizeRow) -> str:
    return f"{row.before}, room for {row.guest}" if row.guest else f"{row.before} to {row.after}"


def _step(row: ResizeRow, now_s: float) -> str:
    left = f", {duration(row.until_s - now_s)} left" if row.until_s else ""
    return f"{row.step}{left}"


def queue_columns(answer: TopAnswer) -> list[Column[JobRow]]:
    """Return the columns of waiting jobs as they read at the moment of the answer."""
    now_s = answer.now_s
    return [
        Column("waiting", lambda row: f"{row.id} x{row.tasks}" if row.tasks > 1 else row.id),
        Column("user", lambda row: row.user),
        Column("partition", lambda row: ",".join(row.partitions)),
        Column("own", lambda row: row.own),
        Column("allowed", lambda row: " ".join(row.allowed)),
        Column("for", lambda row: duration(now_s - row.submitted_s), right=True),
        Column("reason", lambda row: row.reason),
        Column("note", lambda row: row.note.removeprefix("waits; ")),
    ]


# Jobs


def job_columns(answer: TopAnswer) -> list[Column[RunningRow]]:
    """Return the columns of running jobs as they read at the moment of the answer."""
    now_s = answer.now_s
    return [
        Column("running", lambda row: row.id),
        Column("user", lambda row: row.user),
        Column("name", lambda row: row.name),
        Column("shape", lambda row: row.shape),
        Column("nodes", lambda row: ",".join(row.nodes)),
        Column("for", lambda row: _for(row, now_s), right=True),
        Column("tier", lambda row: "+".join(map(_tier, row.speeds))),
        Column("speed", lambda row: " + ".join(map(_speed, row.speeds)), right=True),
        Column("cpu", _cpu, right=True),
        Column("mem_gib", lambda row: _gib(row.memory_mib), right=True),
        Column("gpu_%", _gpu, right=True),
        Column("gpu_gib", lambda row: _gib(row.gpu_memory_mib), right=True),
        Column("idle_gpus", lambda row: _idle(row, now_s)),
        Column("with", _beside),
    ]


def _for(row: RunningRow, now_s: float) -> str:
    return duration(now_s - row.started_s) if row.started_s else ""


def _tier(speed: TierSpeed) -> str:
    return str(TIERS.index(speed.tier) + 1) if speed.tier in TIERS else "?"


def _speed(speed: TierSpeed) -> str:
    """Write a speed with three digits: instructions or steps per second, or CPU seconds."""
    return f"{speed.value:.2f}" if speed.tier == "cpu" else f"{_short(speed.value)}/s"


def _short(value: float) -> str:
    """Write a number with three digits and k, M, G or T."""
    step = min(4, max(0, int(log10(value) // 3))) if value >= 1 else 0
    return f"{value / 1000**step:.3g}{' ' if step else ''}{['', 'k', 'M', 'G', 'T'][step]}"


def _cpu(row: RunningRow) -> str:
    if row.cpu is None:
        return ""
    return f"{row.cpu:.1f}/{row.cpus}" if row.cpus else f"{row.cpu:.1f}"


def _gib(mib: float | None) -> str:
    return "" if mib is None else f"{mib / 1024:.1f}"


def _gpu(row: RunningRow) -> str:
    return "" if row.gpu_busy is None else f"{100 * row.gpu_busy:.0f}"


def held_idle(row: RunningRow, now_s: float) -> list[float]:
    """Return for how long (s) GPUs are held and idle, of those that have been for IDLE_S."""
    return [now_s - since_s for since_s in row.idle_since_s if now_s - since_s >= IDLE_S]


def _idle(row: RunningRow, now_s: float) -> str:
    idle_s = held_idle(row, now_s)
    return f"{len(idle_s)}, {duration(min(idle_s))}" if idle_s else ""


def _beside(row: RunningRow) -> str:
    named = ",".join(row.beside[:MOST_BESIDE])
    more = len(row.beside) - MOST_BESIDE
    rest = (max(0, more)) + row.hidden
    return named + (f"{' ' if named else ''}+{rest}" if rest else "")
