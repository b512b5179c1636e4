"""Door 2's way with a connection: one line in, one line out, and nobody hurts anybody else.

A connection above the cap is closed at once, a line above the limit and a slow one are dropped
with their connection. An exception in what answers closes that connection and is logged.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

log = logging.getLogger("pliant.doors")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one door."""

    connections: int = 64
    line_s: float = 2.0  # for a request to arrive, and for an answer to be taken
    lines: int = 16  # on one connection
    line_bytes: int = 256 * 1024  # of a request


Answer = Callable[[bytes, socket.socket], Awaitable[bytes]]
"""From a request line to an answer line, both without the newline; b"" closes unanswered."""


class LineServer:
    """Serve each connection with an Answer of its own, within Limits."""

    def __init__(self, name: str, begin: Callable[[], Answer], limits: Limits) -> None:
        """Serve a connection with what ``begin`` returns for it; ``name`` stands in the log."""
        self._name, self._begin, self._limits = name, begin, limits
        self._open: set[asyncio.Task[None]] = set()
        self.most_bytes = limits.line_bytes
        self.turned_away = 0
        """Connections closed because too many were open."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; the callback of asyncio.start_server."""
        task = asyncio.current_task()
        if task is None or len(self._open) >= self._limits.connections:
            self.turned_away += 1
            writer.transport.abort()
            return
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            pass  # gone, slow, too long or unfinished
        except Exception:
            log.exception("%s: a request failed", self._name)
        finally:
            self._open.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("socket")
        answers = self._begin()
        for _ in range(self._limits.lines):
            async with asyncio.timeout(self._limits.line_s):
                line = await reader.readuntil(b"\n")
            answer = await answers(line[:-1], peer)
            if not answer:
                return
            writer.write(answer + b"\n")
            async with asyncio.timeout(self._limits.line_s):
                await writer.drain()

    async def close(self) -> None:
        """End the open connections."""
        for task in tuple(self._open):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._open, return_exceptions=True)


def peer_uid(peer: socket.socket) -> int:
    """Return who is at the other end of a Unix socket (SO_PEERCRED, unix(7)).

    Raises OSError.
    """
    _pid, uid, _gid = struct.unpack(
        "3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return int(uid)
