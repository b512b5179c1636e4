"""Who asks at the second door: munge(7) proves the user."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from pliant.errors import Unavailable
from pliant.grammar import quoted

TIME_LIMIT_S = 5.0

_CREDENTIAL = re.compile(rb"MUNGE:[A-Za-z0-9+/=]{1,262144}:")
_UID = re.compile(rb"^UID:\s*([0-9]{1,10})$", re.MULTILINE)


_REASONS = {
    15: "it has expired; do the clocks of the two hosts agree?",
    16: "it is from the future; do the clocks of the two hosts agree?",
    17: "it was used before",
}
"""By unmunge's exit status, munge_enum(3): these are said on standard output only."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A credential's proven user and what it carried."""

    uid: int
    payload: bytes


class Munge:
    """Reads credentials with unmunge(1)."""

    def __init__(self, socket: str, program: str = "unmunge") -> None:
        """Ask munged at ``socket`` ("": its default)."""
        where = [f"--socket={socket}"] if socket else []
        self._argv = [program, "--numeric", "--keys=STATUS,UID", *where]
        self._turns = asyncio.Semaphore(8)

    async def prove(self, credential: bytes) -> Proof:
        """Return who made the credential and what it says.

        Raises Unavailable in one line: no credential, a bad one, no munge.
        """
        if not _CREDENTIAL.fullmatch(credential):
            raise Unavailable("a munge credential is expected")
        async with self._turns:
            out = await self._unmunge(credential)
        head, blank, payload = out.partition(b"\n\n")
        uid = _UID.search(head)
        if not blank or uid is None:
            raise Unavailable("munge's answer is not understood")
        return Proof(int(uid[1]), payload)

    async def _unmunge(self, credential: bytes) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise Unavailable(f"unmunge: {error.strerror}") from None
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                out, err = await process.communicate(credential)
        except TimeoutError:
            raise Unavailable("munge does not answer") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            words = err.decode(errors="replace").strip().splitlines() or ["no reason given"]
            reason = _REASONS.get(process.returncode or 0, quoted(words[-1]))
            raise Unavailable(f"munge refused the credential: {reason}")
        return out
