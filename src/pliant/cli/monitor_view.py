"""What ``pliant monitor`` prints of a reading."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from pliant.cli.output import Column, Style, print_table, say
from pliant.monitor.reading import JobReading, NodeReading

DRIVER = Path("/proc/driver/nvidia")


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
