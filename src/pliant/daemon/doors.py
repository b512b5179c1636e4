"""Opens the two doors, the filter's socket and the port for all hosts, and closes them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

from pliant.daemon import sockets
from pliant.daemon.config import DaemonConfig
from pliant.daemon.filter_door import FilterDoor
from pliant.daemon.lines import LineServer
from pliant.daemon.quick import QuickServer
from pliant.errors import Unavailable

log = logging.getLogger("pliant.daemon")


class Doors:
    """Both doors. ``trouble``: why the second one is not open; "" for nothing."""

    def __init__(self, config: DaemonConfig, first: FilterDoor, second: LineServer) -> None:
        self._config, self._first, self._second = config, first, second
        self.trouble = ""

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Open both doors; close them and remove the socket at the end."""
        path, first = Path(self._config.socket), self._first
        one = QuickServer(
            "the filter's door", first.answer, first.limits, time.monotonic, first.afterwards
        )
        async with contextlib.AsyncExitStack() as stack:
            door = sockets.unix_socket(path)
            stack.callback(path.unlink, missing_ok=True)
            one.start(door)
            stack.callback(one.close)
            if self._config.listen:
                await self._open_second(stack)
            yield

    async def _open_second(self, stack: contextlib.AsyncExitStack) -> None:
        """Without the second door nobody's job is hurt: say so and go on."""
        second = self._second
        try:
            door = sockets.tcp_socket(self._config.listen)
        except Unavailable as error:
            log.warning("%s", error)
            self.trouble = str(error)
            return
        server = await asyncio.start_server(second, sock=door, limit=second.most_bytes)
        stack.push_async_callback(_close, server, second)


async def _close(server: asyncio.Server, lines: LineServer) -> None:
    server.close()
    await lines.close()
