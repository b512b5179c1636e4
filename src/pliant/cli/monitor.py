"""``pliant monitor``: how fast each job on this node runs, measured from outside it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from pliant.cli.output import json_option
from pliant.cli.seconds import Seconds
from pliant.errors import BadInput, Unavailable

ONCE_S = 1.0
EVERY_S = 10.0
TRACE_S = 15.0
"""From look to look at GPUs (Fujiwara et al., section V-A)."""
SPOOL = Path("/var/spool/pliant-monitor")


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
    from pliant.cli import monitoring  # noqa: PLC0415  # `pliant --help` loads us too

    if os.geteuid() != 0:
        raise Unavailable("only root can see which processes are a job's: run it as root")
    if trace and as_json:
        raise BadInput("--json: a trace has its own form; it does not go with --trace")
    if report and (once or as_json or trace):
        raise click.UsageError("--report prints no readings: not with --once, --json or --trace")
    name = node or socket.gethostname().partition(".")[0]
    if trace:
        monitoring.trace(name, trace, every_s or TRACE_S, once)
    elif once:
        monitoring.read_once(name, every_s or ONCE_S, as_json)
    else:
        monitoring.read_on(name, every_s or EVERY_S, as_json, spool if report else None)
