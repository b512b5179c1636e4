"""pliantd's second door as other users find it, and a site that keeps jobs private."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pliant.sandbox import Sandbox
from pliant.wire import Message, decode, encode


def credential(sandbox: Sandbox, user: str, verb: str, /, **fields: str) -> bytes:
    """Let a user make a munge credential of a request."""
    argv = ["munge", f"--socket={sandbox.layout.munge_socket}"]
    request = encode(Message(verb, fields)).decode()
    return sandbox.run(argv, user=user, stdin=request, check=True).stdout.strip().encode()


@contextmanager
def second_door(sandbox: Sandbox) -> Iterator[Callable[[bytes], Message]]:
    """Connect to the second door; what sends a line there and returns the answer."""
    with (
        socket.create_connection(("127.0.0.1", sandbox.record.ports.pliant), 10) as door,
        door.makefile("rb") as answers,
    ):

        def send_line(line: bytes) -> Message:
            door.sendall(line + b"\n")
            return decode(answers.readline())

        yield send_line


def send(sandbox: Sandbox, *lines: bytes) -> Message:
    """Send lines to the second door on one connection; return the last answer."""
    with second_door(sandbox) as send_line:
        return [send_line(line) for line in lines][-1]


def ask_as(sandbox: Sandbox, user: str, verb: str, /, **fields: str) -> Message:
    """Ask at the second door as a user."""
    with second_door(sandbox) as send_line:
        made = credential(sandbox, user, verb, **fields, **send_line(b"hello").fields)
        return send_line(b"munge " + made)
