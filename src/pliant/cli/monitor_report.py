"""How ``pliant monitor --report`` sends what it sees to pliantd."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from pliant.cli.door import ask, client_config
from pliant.daemon.config import config_path
from pliant.monitor.reading import NodeReading
from pliant.monitor.report import Sender, World
from pliant.monitor.spool import Spool
from pliant.wire.monitor import ReportAnswer

END_S = 5.0
"""How long the end waits for what is being sent; what was seen is on disk then."""


@contextmanager
def reporting(
    node: str, folder: Path, ended: threading.Event
) -> Iterator[Callable[[NodeReading], None]]:
    """Give what takes readings; they are sent from a thread until ``ended`` is set or the end.

    Raises Unavailable, BadConfig where this host has no pliant.toml that leads to pliantd.
    """
    client_config(config_path())
    draw = random.SystemRandom().random
    world = World(time.time, time.monotonic, draw, _say)
    sender = Sender(node, secrets.token_hex(16), Spool(folder), _ask, world)
    thread = threading.Thread(target=sender.run, args=(ended.wait,), name="report", daemon=True)
    thread.start()
    try:
        yield sender.take
    finally:
        ended.set()
        thread.join(END_S)


def _ask(verb: str, fields: Mapping[str, str]) -> ReportAnswer:
    return ask(ReportAnswer, verb, **fields)


def _say(line: str) -> None:
    click.echo(f"pliant monitor: {line}", err=True)
