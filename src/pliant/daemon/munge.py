"""Who asks at the second door: munge(7) proves the user."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pliant.daemon import libmunge
from pliant.daemon.libmunge import BadCredential, Proof
from pliant.errors import Unavailable

__all__ = ["BadCredential", "Munge", "Proof"]

TIME_LIMIT_S = 5.0
AT_ONCE = 8
"""So many credentials are read at once; munged answers within 0.1 ms."""

_CREDENTIAL = re.compile(rb"MUNGE:[A-Za-z0-9+/=]{1,262144}:")


class Munge:
    """Reads credentials, in threads of its own."""

    def __init__(
        self, socket: str, decode: Callable[[bytes, str], Proof] = libmunge.decode
    ) -> None:
        """Ask munged at ``socket`` ("": its default)."""
        self._socket, self._decode = socket, decode
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="munge")

    async def prove(self, credential: bytes) -> Proof:
        """Return who made the credential and what it says.

        Raises BadCredential for a bad one or none, and Unavailable without a munge, in one line.
        """
        if not _CREDENTIAL.fullmatch(credential):
            raise BadCredential("damaged", "a munge credential is expected")
        running = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                return await running.run_in_executor(
                    self._threads, self._decode, credential, self._socket
                )
        except TimeoutError:
            raise Unavailable("munge does not answer") from None
