"""Which addresses a node's name has, so that a credential's host can be told to be that node."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

KNOWN_S = 600.0
UNKNOWN_S = 60.0
"""After so long a name is looked up again."""
LIMIT_S = 2.0
"""For one look-up: a report waits for it. What is not known in time is not known."""


def look_up(name: str) -> frozenset[str]:
    """Return a name's IPv4 addresses: munge knows no others. Raises OSError, ValueError."""
    found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    return frozenset(str(address[0]) for *_, address in found)


@dataclass(slots=True)
class Origins:
    """Addresses of names, kept for a while; looked up in one thread, in nobody's way."""

    monotonic: Callable[[], float]
    look: Callable[[str], frozenset[str]] = look_up
    _known: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="origins")
    )

    async def is_foreign(self, node: str, host: str) -> bool:
        """Whether ``host``, an address as munge tells it, is known not to be this node's.

        It cannot be told where one of both has no address beside loopback: on many hosts the own
        name has 127.0.1.1.
        """
        if not _tells(host):
            return False
        known = {address for address in await self._of(node) if _tells(address)}
        return bool(known) and host not in known

    async def _of(self, node: str) -> frozenset[str]:
        until_s, known = self._known.get(node, (-1.0, frozenset()))
        if self.monotonic() < until_s:
            return known
        try:
            async with asyncio.timeout(LIMIT_S):
                running = asyncio.get_running_loop()
                found = await running.run_in_executor(self._thread, self.look, node)
        except (OSError, ValueError, TimeoutError):  # no such name, none at all, no answer
            found = frozenset()
        self._known[node] = self.monotonic() + (KNOWN_S if found else UNKNOWN_S), found
        return found


def _tells(address: str) -> bool:
    return bool(address) and not ipaddress.ip_address(address).is_loopback
