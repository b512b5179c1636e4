"""``pliant monitor``: how fast each job on this node runs, measured from outside it."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec

from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.cli.seconds import Seconds
from pliant.errors import BadInput, Unavailable

if TYPE_CHECKING:  # every `pliant --help` loads this module
    from pliant.monitor.reading import JobReading, NodeReading
    from pliant.monitor.service import Node, Wait

ONCE_S = 1.0
EVERY_S = 10.0
TRACE_S = 15.0
"""From look to look at GPUs (Fujiwara et al., section V-A)."""
SPOOL = Path("/var/spool/pliant-monitor")
WINDOWS_S = 60.0
"""From window to window of the counters, or as long as from reading to reading."""
DRIVER = Path("/proc/driver/nvidia")


@click.command(short_help="How fast each job on this node runs (root).")
@click.option("--once", is_flag=True, help="Print one reading and end.")
@json_option
@click.option(
    "--every",
    "every_s",
    type=Seconds(min=0.1, max=86400),
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

    Without hardware counters a speed is CPU time alone (tier 3). It sees jobs that take turns on
    CPUs, and does not see jobs that slow each other down in caches and memory. With them (tier 1)
    instructions are counted for ten seconds of each minute, with a reading before and after, and
    IPC is instructions per cycle.

    A job's GPUs are those that its processes are on, by the numbers of their files /dev/nvidiaN.

    With --trace it looks at GPUs instead, and prints nothing: a line per process and GPU goes to
    FILE at each look, and --once is one look. FILE may be moved away at any time; it is begun anew.

    With --report pliantd is told once a minute. While it does not answer, reports wait on disk.
    """
    from pliant.monitor import counters, service  # noqa: PLC0415  # `pliant --help` loads us too
    from pliant.monitor.gpus import Gpus  # noqa: PLC0415  # and needs neither this
    from pliant.monitor.windows import of_node  # noqa: PLC0415  # nor this

    if os.geteuid() != 0:
        raise Unavailable("only root can see which processes are a job's: run it as root")
    if trace and as_json:
        raise BadInput("--json: a trace has its own form; it does not go with --trace")
    if report and (once or as_json or trace):
        raise click.UsageError("--report prints no readings: not with --once, --json or --trace")
    looked_at = service.Node(node or socket.gethostname().partition(".")[0], gpus=Gpus())
    ended = _ended_by_signals()
    if trace:
        _trace(looked_at, trace, every_s or TRACE_S, once, ended.wait)
        return
    _log(nothing=once)
    counted = counters.here()
    if once:
        if found := service.once(looked_at, every_s or ONCE_S, ended.wait, counted):
            print_json(found) if as_json else print_reading(found)
        return
    every_s = every_s or EVERY_S
    windows = of_node(looked_at.name, max(every_s, WINDOWS_S))
    with _sink(report, as_json, looked_at.name, spool, ended) as sink:
        service.run(looked_at, sink, every_s, ended.wait, counters=counted, windows=windows)


def _log(nothing: bool) -> None:
    """Log changes to stderr; one reading has all in it that would be logged."""
    log = logging.getLogger("pliant")
    if nothing:
        log.addHandler(logging.NullHandler())
    else:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        log.setLevel(logging.INFO)


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


def _ipc(row: JobReading) -> str:
    ipc = row.speed.parts.ipc if row.speed else None
    return "" if ipc is None else f"{ipc:.2f}"


def _gpus(row: JobReading) -> str:
    minors = ("?" if use.minor is None else str(use.minor) for use in row.gpus)
    return ",".join(dict.fromkeys(minors))  # MIG instances of one GPU have one file


def _gpu_mib(row: JobReading) -> str:
    """Return how much memory it has on all GPUs; nothing where that of one is not known."""
    known = [use.mem_mib for use in row.gpus if use.mem_mib is not None]
    return str(sum(known)) if known and len(known) == len(row.gpus) else ""


COLUMNS: list[Column[JobReading]] = [
    Column("job", lambda row: row.job),
    Column("tier", lambda row: f"{row.speed.tier}" if row.speed else "-", right=True),
    Column("cpu", _speed, right=True),
    Column("ran", _ran, right=True),
    Column("ipc", _ipc, right=True, usual=False),
    Column("cpu_s", lambda row: f"{row.cpu_s:.1f}", right=True),
    Column("mem_mib", lambda row: f"{row.memory_bytes / 2**20:.0f}", right=True),
    Column("processes", lambda row: str(row.processes), right=True),
    Column("threads", lambda row: str(row.threads), right=True),
    Column("gpus", _gpus, usual=False),
    Column("gpu_mib", _gpu_mib, right=True, usual=False),
    Column("stalled", lambda row: ",".join(row.alarms)),
]


def print_reading(found: NodeReading) -> None:
    """Print a reading for a person."""
    say(f"{found.node}, over {found.window_s:.1f} s: {len(found.jobs)} job(s)")
    if found.alarms:
        say(f"the node's work is stalled for: {', '.join(found.alarms)}")
    if DRIVER.exists():  # else there is no GPU to be read, and nothing is missing
        for words in found.unread:
            say(words)
    if found.jobs:
        shown = [each for each in COLUMNS if each.usual or any(map(each.text, found.jobs))]
        print_table(found.jobs, shown, Style(fields=",".join(each.name for each in shown)))


def print_lines(found: NodeReading) -> None:
    """Print a line per job."""
    clock = time.strftime("%m-%d %H:%M:%S", time.localtime(found.at_s))
    for row in found.jobs:
        words = [f"{column.name}={column.text(row)}" for column in COLUMNS[1:] if column.text(row)]
        say(clock, f"job {row.job}", *words)


def print_json_line(found: NodeReading) -> None:
    """Print a reading as one line of JSON."""
    click.echo(msgspec.json.encode(found))
