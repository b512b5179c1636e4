"""What the tests of pliantd on a real Slurm share: asking it, and changing its configuration."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from slurm_helpers import wait_until

from pliant.daemon import answers as a
from pliant.daemon.config import address, load
from pliant.errors import Unavailable
from pliant.sandbox import Sandbox
from pliant.wire import Message, ask_over_tcp

T = TypeVar("T")


def answer_of(sandbox: Sandbox, verb: str, **fields: str) -> Message:
    """Ask pliantd at its second door, as root."""
    daemon = load(sandbox.layout.pliant_toml).daemon
    host, port = address(daemon.listen)
    request = Message(verb, fields)
    return ask_over_tcp(host, port, request, munge_socket=daemon.munge_socket)


def ask(sandbox: Sandbox, kind: type[T], verb: str, **fields: str) -> T:
    """Ask pliantd and read its answer; fail on a no."""
    answer = answer_of(sandbox, verb, **fields)
    assert answer.is_ok, answer.message
    return a.from_json(kind, answer.fields["json"])


def why(sandbox: Sandbox, job: int | str) -> a.WhyAnswer:
    """Ask why a job waits."""
    return ask(sandbox, a.WhyAnswer, "why", job=str(job))


def wait_for_look(sandbox: Sandbox, timeout_s: float = 30) -> None:
    """Wait until pliantd has seen what is so now, and done about it what it will do."""
    now_s = time.time()

    def looked_twice() -> bool:
        try:
            return ask(sandbox, a.StatusAnswer, "status").observed_s > now_s + 1.0
        except Unavailable:
            return False

    wait_until(looked_twice, "pliantd to look", timeout_s)


@contextmanager
def configured(sandbox: Sandbox, **changes: str) -> Iterator[None]:
    """Let pliantd read a changed pliant.toml for a while: ``default='"observe"'`` and the like."""
    path = sandbox.layout.pliant_toml
    before = path.read_text()
    lines = before.splitlines()
    for key, value in changes.items():
        lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in lines]
    path.write_text("\n".join(lines) + "\n")
    try:
        sandbox.signal("pliantd", signal.SIGHUP)
        wait_for_look(sandbox)
        yield
    finally:
        path.write_text(before)
        sandbox.signal("pliantd", signal.SIGHUP)
