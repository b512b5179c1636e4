"""What Pliant did, and would have done, over a time: for administrators. It names no person."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace

from pliant import __version__
from pliant.daemon.cycling import Cycling
from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.store import PartitionReport, Report

LONGEST_S = 3650 * 86_400.0


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """A report, and whose it is."""

    cluster: str
    host: str
    version: str
    policy: str
    paused: bool
    report: Report


def report_answer(cycling: Cycling, cluster: str, since: str, now_s: float) -> ReportAnswer:
    """Add up the last ``since`` seconds.

    Raises BadInput for what is no number of seconds.
    """
    if not since.isdecimal() or not 0 < int(since) <= LONGEST_S:
        raise BadInput(f"since={quoted(since)}: a number of seconds is expected")
    found = cycling.store.report(now_s - int(since), now_s)
    known = (part for part in found.partitions if part.partition)
    return ReportAnswer(
        cluster,
        socket.gethostname(),
        __version__,
        cycling.policy.name,
        cycling.store.paused,
        replace(found, partitions=tuple(_with_mode(part, cycling) for part in known)),
    )


def _with_mode(part: PartitionReport, cycling: Cycling) -> PartitionReport:
    """Add what Pliant may do there now: the least of it where jobs named several partitions."""
    modes = {str(cycling.config.mode(name)) for name in part.partition.split(",")}
    mode = next((m for m in ("off", "observe") if m in modes), "enforce")
    return replace(part, mode=mode)
