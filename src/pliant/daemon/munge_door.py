"""Door 2, TCP: munge proves who asks; what, to whom and in which words is the verbs' affair."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import replace

from pliant.daemon.answers import to_json
from pliant.daemon.lines import Limits
from pliant.daemon.munge import Munge
from pliant.daemon.rights import Asker
from pliant.daemon.verbs import Verbs
from pliant.errors import PliantError, Unavailable
from pliant.wire import MAX_REQUEST, STANDS_BY, Message, decode, encode, no, ok

log = logging.getLogger("pliant.doors")

PREFIX = b"munge "


class MungeDoor:
    """Answers ``munge <credential>`` lines."""

    # A credential is its payload in base64, and then some.
    limits = Limits(connections=64, line_s=10.0, lines=1, line_bytes=2 * MAX_REQUEST)

    def __init__(self, munge: Munge, verbs: Verbs, who: Callable[[int], Asker]) -> None:
        """``who`` tells what a uid may do."""
        self._munge, self._verbs, self._who = munge, verbs, who

    async def answer(self, line: bytes, _peer: socket.socket) -> bytes:
        """Answer one line; what is wrong is said in one line."""
        try:
            answer = await self._answer(line)
        except PliantError as error:
            answer = no(str(error))
        except Exception as error:
            log.exception("a request failed: this is Pliant's own mistake")
            answer = no(f"a mistake of Pliant's own: {type(error).__name__}")
        return encode(self._with_standing(answer))

    def _with_standing(self, answer: Message) -> Message:
        """Say that another host acts, so that the client asks there."""
        why = self._verbs.stands_by()
        return replace(answer, fields={**answer.fields, STANDS_BY: why}) if why else answer

    async def _answer(self, line: bytes) -> Message:
        if not line.startswith(PREFIX):
            raise Unavailable("munge <credential> is expected")
        proof = await self._munge.prove(line[len(PREFIX) :].strip())
        request = decode(proof.payload)
        return await asyncio.to_thread(self._ask, proof.uid, request)

    def _ask(self, uid: int, request: Message) -> Message:
        """In a thread of its own: names of users and the batch system may take their time."""
        answer = self._verbs.answer(request.word, request.fields, self._who(uid))
        return ok(json=to_json(answer))
