"""Door 2's way with a connection: one line in, one line out, and nobody hurts anybody else.

Where as many connections are open as may be, the one that has been silent for the longest makes
way for a new one; while all are being answered, the new one is closed. One whose answer waits for
news may make way too. A line above the limit and a slow one are dropped with their connection. An
exception in what answers closes that connection and is logged.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

log = logging.getLogger("pliant.doors")

CROWD_S = 60.0
"""For so long after a connection was turned away it is said that the door is crowded."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one door."""

    connections: int = 64
    line_s: float = 2.0  # for a request to arrive, and for an answer to be taken
    lines: int = 16  # on one connection
    line_bytes: int = 256 * 1024  # of a request


Gone = Callable[[], Awaitable[bool]]
"""Waits until nobody is at the other end any more; whether they left, and were not turned away."""
GivingWay = Callable[[], AbstractContextManager[Gone]]
"""While it is entered, the connection may be closed for a new one, as one that is silent."""
Answer = Callable[[bytes, GivingWay], Awaitable[bytes]]
"""From a request line to an answer line, both without the newline; b"" closes unanswered."""


def most_connections(wanted: int) -> int:
    """Return ``wanted``, or fewer where that would be more than half of the open files allowed."""
    files, _most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files // 2))


class LineServer:
    """Serve each connection with an Answer of its own, within Limits."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Answer],
        limits: Limits,
        monotonic: Callable[[], float],
    ) -> None:
        """Serve a connection with what ``begin`` returns for it; ``name`` stands in the log."""
        self._name, self._begin, self._limits = name, begin, limits
        self._monotonic = monotonic
        self._most = most_connections(limits.connections)
        self._open: set[asyncio.StreamWriter] = set()
        # A subset, the longest silent first: a dict keeps its order.
        self._silent: dict[asyncio.StreamWriter, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turned_away_s = -CROWD_S
        self.most_bytes = limits.line_bytes
        self.turned_away = 0
        """Connections closed because too many were open."""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; the callback of asyncio.start_server."""
        task = asyncio.current_task()
        if task is None or not self._has_room():
            writer.transport.abort()
            return
        self._open.add(writer)
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            pass  # gone, slow, too long, unfinished, or made way
        except asyncio.CancelledError:
            pass  # we end; passed on, it would be logged as a fault of ours (Python before 3.12)
        except Exception:
            log.exception("%s: a request failed", self._name)
        finally:
            self._tasks.discard(task)
            self._forget(writer)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers = self._begin()
        for _ in range(self._limits.lines):
            if writer not in self._open:
                return  # it made way while it took an answer
            self._silent[writer] = None
            async with asyncio.timeout(self._limits.line_s):
                line = await reader.readuntil(b"\n")
            if writer not in self._open:
                return  # it made way while its line came in
            self._silent.pop(writer)
            answer = await answers(line[:-1], lambda: self._giving_way(reader, writer))
            if not answer or writer not in self._open:
                return
            self._silent[writer] = None  # until it has taken the answer
            writer.write(answer + b"\n")
            async with asyncio.timeout(self._limits.line_s):
                await writer.drain()
            self._silent.pop(writer, None)

    # Room

    @contextmanager
    def _giving_way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Iterator[Gone]:
        async def gone() -> bool:
            with suppress(OSError):
                await reader.read(1)  # nobody sends a line before the last is answered
            return writer in self._open

        if writer in self._open:
            self._silent[writer] = None
        try:
            yield gone
        finally:
            self._silent.pop(writer, None)

    def _has_room(self) -> bool:
        """Make room for one more, if need be and if it can be done."""
        if len(self._open) < self._most:
            return True
        self._say_crowded()
        self.turned_away += 1
        self._turned_away_s = self._monotonic()
        longest = next(iter(self._silent), None)
        if longest is None:
            return False
        self._forget(longest)
        longest.transport.abort()
        return True

    def _forget(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        self._silent.pop(writer, None)

    def _say_crowded(self) -> None:
        """Log it once, and again only after it was over."""
        if not self.trouble:
            hosts = Counter(_host(writer) for writer in self._open)
            (host, number), *_ = hosts.most_common(1)
            log.warning(
                "%s: %d connections are open, %d of them from %s: the longest silent one is "
                "closed for each new one",
                *(self._name, len(self._open), number, host),
            )

    @property
    def trouble(self) -> str:
        """What to say of a crowd now; "" where there was none of late."""
        if self._monotonic() - self._turned_away_s >= CROWD_S:
            return ""
        return (
            f"{self._name} is crowded: more than {self._most} connections at once, of which the "
            "longest silent ones are closed; the log names the host"
        )

    async def close(self) -> None:
        """End the open connections."""
        for task in tuple(self._tasks):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)


def _host(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else "this host"


def peer_uid(peer: socket.socket) -> int:
    """Return who is at the other end of a Unix socket (SO_PEERCRED, unix(7)).

    Raises OSError.
    """
    _pid, uid, _gid = struct.unpack(
        "3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    )
    return int(uid)
