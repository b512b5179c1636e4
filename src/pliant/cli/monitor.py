"""``pliant monitor``: how fast each job on this node runs, measured from outside it."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from pliant.cli.output import Column, Style, json_option, print_json, print_table, printable, say
from pliant.errors import BadInput, Unavailable

if TYPE_CHECKING:  # every `pliant --help` loads this module
    from pliant.monitor.reading import JobReading, NodeReading
    from pliant.monitor.service import Node, Wait

ONCE_S = 1.0
EVERY_S = 10.0
TRACE_S = 15.0
"""From look to look at GPUs (Fujiwara et al., section V-A)."""
SPOOL = Path("/var/spool/pliant-monitor")


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
    help="The time from reading to reading.  "
    f"[default: {EVERY_S:g}; {ONCE_S:g} with --once; {TRACE_S:g} with --trace]",
)
@click.option(
    "--trace",
    metavar="FILE",
    default="",
    help="Append the processes on GPUs to FILE instead, for pliant simulate.",
)
@click.option("--report", is_flag=True, help="Send the readings to pliantd; print troubles alone.")
@click.option(
    "--node", metavar="NAME", help="This node as Slurm names it.  [default: its host name]"
)
@click.option(
    "--spool",
    type=click.Path(path_type=Path),
    default=SPOOL,
    metavar="FOLDER",
    help=f"Where reports wait while pliantd is away.  [default: {SPOOL}]",
)
def monitor(
    *,
    once: bool,
    as_json: bool,
    every_s: float | None,
    trace: str,
    report: bool,
    node: str | None,
    spool: Path,
) -> None:
    """Measure how fast each Slurm job on this node runs, from outside it.

    A line per job after each --every seconds, until Ctrl-C or TERM; with --json an object per line.
    A job's processes are those that slurmd and slurmstepd say, so only root can look. CPU is CPU
    seconds per second; RAN how much of the time that its threads wanted to run they did run.

    Hardware counters of the Linux kernel (perf) tell the instructions that a job executes per
    second (tier 1), for 10 s of each minute, or in all of a reading with --once. Without them a
    speed is CPU time alone (tier 3). It sees jobs that take turns on CPUs, and does not see jobs
    that slow each other down in caches and memory.

    With --trace it looks at GPUs instead, and prints nothing: a line per process and GPU goes to
    FILE at each look, and --once is one look. FILE may be moved away at any time; it is begun anew.

    With --report pliantd is told once a minute. While it does not answer, reports wait on disk.
    """
    # Every `pliant --help` loads this module.
    from pliant.monitor import counters, service, windows  # noqa: PLC0415  # as said above

    if os.geteuid() != 0:
        raise Unavailable("only root can see which processes are a job's: run it as root")
    if trace and as_json:
        raise BadInput("--json: a trace has its own form; it does not go with --trace")
    if report and (once or as_json or trace):
        raise click.UsageError("--report prints no readings: not with --once, --json or --trace")
    looked_at = service.Node(node or socket.gethostname().partition(".")[0])
    ended = _ended_by_signals()
    if trace:
        _trace(looked_at, trace, every_s or TRACE_S, once, ended.wait)
        return
    if once:
        counted = counters.here(lambda _line: None)  # the reading has each job's tier
        if found := service.once(looked_at, every_s or ONCE_S, ended.wait, counted):
            print_json(found) if as_json else print_reading(found)
        return
    counted = counters.here(_log)
    opened = windows.of_node(looked_at.name)
    with _sink(report, as_json, looked_at.name, spool, ended) as sink:
        every = every_s or EVERY_S
        service.run(looked_at, sink, every, ended.wait, counters=counted, windows=opened)


def _log(line: str) -> None:
    click.echo(printable(line), err=True)


def _trace(node: Node, path: str, every_s: float, once: bool, wait: Wait) -> None:
    """Append to a trace until it is time to end. Raises BadInput."""
    from pliant.monitor.gpus import Gpus  # noqa: PLC0415  # as above
    from pliant.monitor.trace_file import TraceFile  # noqa: PLC0415  # as above
    from pliant.monitor.tracing import look, trace  # noqa: PLC0415  # as above

    file, gpus = TraceFile(Path(path)), Gpus(node.proc)
    try:
        if not once:
            trace(node, gpus, file.append, every_s, wait)
        elif not (text := look(node, gpus, node.clocks.epoch())):
            raise Unavailable(f"{path}: nothing is appended, for no GPU can be read")
        else:
            file.append(text)
    finally:
        gpus.close()
        file.close()


def _sink(
    report: bool, as_json: bool, node: str, spool: Path, ended: threading.Event
) -> AbstractContextManager[Callable[[NodeReading], None]]:
    """Return what takes readings: pliantd, or who reads what is printed."""
    if not report:
        return nullcontext(print_json_line if as_json else print_lines)
    from pliant.cli.monitor_report import reporting  # noqa: PLC0415  # as above

    return reporting(node, spool, ended)


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
