"""What pliantd and its worker say to each other: msgpack behind its length, over a socket pair."""

from __future__ import annotations

import socket
from typing import Any

import msgspec

from pliant.batch.slurm.commands import MAX_OUTPUT

_LENGTH = 8  # bytes


def send(door: socket.socket, message: object) -> None:
    """Send one message.

    Raises OSError, also (as TimeoutError) where the socket's time limit is over.
    """
    body = msgspec.msgpack.encode(message)
    door.sendall(len(body).to_bytes(_LENGTH, "big") + body)


def receive(door: socket.socket) -> Any:
    """Return the next message.

    Raises EOFError where the other side is gone, OSError and ValueError where it fails.
    """
    length = int.from_bytes(_exactly(door, _LENGTH), "big")
    if length > MAX_OUTPUT:
        raise ValueError(f"more than {MAX_OUTPUT} bytes")
    return msgspec.msgpack.decode(_exactly(door, length))


def _exactly(door: socket.socket, length: int) -> bytearray:
    found = bytearray(length)
    view, have = memoryview(found), 0
    while have < length:
        read = door.recv_into(view[have:])
        if not read:
            raise EOFError
        have += read
    return found
