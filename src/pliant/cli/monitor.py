"""``pliant monitor``: how fast each job on this node runs, measured from outside it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from math import isfinite
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.errors import Unavailable

if TYPE_CHECKING:  # every `pliant --help` loads this module
    from pliant.monitor.reading import JobReading, NodeReading

ONCE_S = 1.0
EVERY_S = 10.0


class _Seconds(click.FloatRange):
    """A range without nan and infinity, for which nobody can wait."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if not isfinite(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


@click.command(short_help="How fast each job on this node runs (root).")
@click.option("--once", is_flag=True, help="Print one reading and end.")
@json_option
@click.option(
    "--every",
    "every_s",
    type=_Seconds(min=0.1, max=86400),
    metavar="SECONDS",
    help=f"The time from reading to reading.  [default: {EVERY_S:g}; {ONCE_S:g} with --once]",
)
def monitor(once: bool, as_json: bool, every_s: float | None) -> None:
    """Measure how fast each Slurm job on this node runs, from outside it.

    A line per job after each --every seconds, until Ctrl-C or TERM; with --json an object per line.
    A job's processes are those that slurmd and slurmstepd say, so only root can look. CPU is CPU
    seconds per second; RAN how much of the time that its threads wanted to run they did run.

    Without hardware counters a speed is CPU time alone (tier 3). It sees jobs that take turns on
    CPUs, and does not see jobs that slow each other down in caches and memory.
    """
    from pliant.monitor import service  # noqa: PLC0415  # every `pliant --help` loads this module

    if os.geteuid() != 0:
        raise Unavailable("only root can see which processes are a job's: run it as root")
    node = service.Node(socket.gethostname().partition(".")[0])
    ended = _ended_by_signals()
    if once:
        if found := service.once(node, every_s or ONCE_S, ended.wait):
            print_json(found) if as_json else print_reading(found)
        return
    sink = print_json_line if as_json else print_lines
    service.run(node, sink, every_s or EVERY_S, ended.wait)


def _ended_by_signals() -> threading.Event:
    """Return an event that Ctrl-C and TERM set: both are the way to end it, and no failure."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return ended


def _speed(row: JobReading) -> str:
    return f"{row.speed.parts.cpu:.2f}" if row.speed else "-"


def _ran(row: JobReading) -> str:
    share = row.speed.parts.run_share if row.speed else None
    return "-" if share is None else f"{100 * share:.0f}%"


COLUMNS: list[Column[JobReading]] = [
    Column("job", lambda row: row.job),
    Column("tier", lambda row: f"{row.speed.tier}" if row.speed else "-", right=True),
    Column("cpu", _speed, right=True),
    Column("ran", _ran, right=True),
    Column("cpu_s", lambda row: f"{row.cpu_s:.1f}", right=True),
    Column("mem_mib", lambda row: f"{row.memory_bytes / 2**20:.0f}", right=True),
    Column("processes", lambda row: str(row.processes), right=True),
    Column("threads", lambda row: str(row.threads), right=True),
    Column("stalled", lambda row: ",".join(row.alarms)),
]


def print_reading(found: NodeReading) -> None:
    """Print a reading for a person."""
    say(f"{found.node}, over {found.window_s:.1f} s: {len(found.jobs)} job(s)")
    if found.alarms:
        say(f"the node's work is stalled for: {', '.join(found.alarms)}")
    if found.jobs:
        print_table(found.jobs, COLUMNS, Style())


def print_lines(found: NodeReading) -> None:
    """Print a line per job."""
    clock = time.strftime("%m-%d %H:%M:%S", time.localtime(found.at_s))
    for row in found.jobs:
        words = [f"{column.name}={column.text(row)}" for column in COLUMNS[1:] if column.text(row)]
        say(clock, f"job {row.job}", *words)


def print_json_line(found: NodeReading) -> None:
    """Print a reading as one line of JSON."""
    click.echo(msgspec.json.encode(found))
