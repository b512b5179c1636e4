"""What ``pliant monitor`` does once it is known what is wanted: one reading, readings, a trace."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

from pliant.cli.monitor_report import reporting
from pliant.cli.monitor_view import print_json_line, print_lines, print_reading
from pliant.cli.output import print_json
from pliant.errors import Unavailable
from pliant.monitor import counters, service, tracing
from pliant.monitor.gpus import Gpus
from pliant.monitor.trace_file import TraceFile
from pliant.monitor.windows import of_node

WINDOWS_S = 60.0
"""From window to window of the counters, or as long as from reading to reading."""


def read_once(name: str, window_s: float, as_json: bool) -> None:
    """Print one reading over so many seconds; what would be logged is in it."""
    logging.getLogger("pliant").addHandler(logging.NullHandler())
    node = service.Node(name, gpus=Gpus())
    if found := service.once(node, window_s, _ended_by_signals().wait, counters.here()):
        print_json(found) if as_json else print_reading(found)


def read_on(name: str, every_s: float, as_json: bool, spool: Path | None) -> None:
    """Print readings until Ctrl-C or TERM, or with ``spool`` send them to pliantd.

    Raises as :func:`reporting`.
    """
    _log_to_stderr()
    ended = _ended_by_signals()
    printed = nullcontext(print_json_line if as_json else print_lines)
    with printed if spool is None else reporting(name, spool, ended) as sink:
        service.run(
            service.Node(name, gpus=Gpus()),
            sink,
            every_s,
            ended.wait,
            counters=counters.here(),
            windows=of_node(name, max(every_s, WINDOWS_S)),
        )


def trace(name: str, path: str, every_s: float, once: bool) -> None:
    """Append the processes on GPUs to a file, once or until Ctrl-C or TERM.

    Raises BadInput for the file, Unavailable where once no GPU can be read.
    """
    node, gpus, file = service.Node(name), Gpus(), TraceFile(Path(path))
    wait = _ended_by_signals().wait
    try:
        if not once:
            tracing.trace(node, gpus, file.append, every_s, wait)
        elif text := tracing.look(node, gpus, node.clocks.epoch()):
            file.append(text)
        else:
            raise Unavailable(f"{path}: nothing is appended, for no GPU can be read")
    finally:
        gpus.close()
        file.close()


def _log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pliant").setLevel(logging.INFO)


def _ended_by_signals() -> threading.Event:
    """Return an event that Ctrl-C and TERM set: both are the way to end it, and no failure."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    return ended
