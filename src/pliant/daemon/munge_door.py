"""Door 2, TCP: munge proves who asks; what, to whom and in which words is the verbs' affair.

Each connection has a challenge of its own, which the credential must carry: what somebody recorded
counts on no other connection, neither here nor at the pliantd of another controller.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from pliant.daemon.answers import to_json
from pliant.daemon.lines import Answer, Limits
from pliant.daemon.munge import Munge
from pliant.daemon.rights import Asker
from pliant.daemon.verbs import Verbs
from pliant.errors import PliantError, Unavailable
from pliant.wire import (
    CHALLENGE,
    HELLO,
    STANDS_BY,
    Message,
    decode,
    encode,
    no,
    ok,
)

log = logging.getLogger("pliant.doors")

PREFIX = b"munge "

MOST_OF_ONE = 16
"""How many requests of one user are taken at once; what is above is refused."""
THREADS_OF_ONE = 2
"""How many of them have a thread at once: some wait seconds for a new look, and asyncio has four
threads more than there are cores, for all users."""


class MungeDoor:
    """Answers ``hello``, and then one ``munge <credential>`` line."""

    # Half of the 1024 open files that systemd gives a service; so many lines that never end take
    # 64 MiB. A request has some hundred bytes.
    limits = Limits(connections=512, line_s=10.0, lines=2, line_bytes=128 * 1024)

    def __init__(self, munge: Munge, verbs: Verbs, who: Callable[[int], Asker]) -> None:
        """``who`` tells what a uid may do."""
        self._munge, self._verbs, self._who = munge, verbs, who
        self._asking: Counter[int] = Counter()  # requests being answered, by uid
        self._turns: dict[int, asyncio.Semaphore] = {}  # of who is asking

    def begin(self) -> Answer:
        """Return what answers on one connection; what is wrong is said in one line."""
        challenge = secrets.token_hex(16)

        async def answer(line: bytes, _peer: socket.socket) -> bytes:
            if line == HELLO.encode():
                return encode(ok(**{CHALLENGE: challenge}))
            return await self._say(line, challenge)

        return answer

    async def _say(self, line: bytes, challenge: str) -> bytes:
        try:
            answer = await self._answer(line, challenge)
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

    async def _answer(self, line: bytes, challenge: str) -> Message:
        if not line.startswith(PREFIX):
            raise Unavailable("munge <credential> is expected")
        proof = await self._munge.prove(line[len(PREFIX) :].strip())
        request = _checked(decode(proof.payload), challenge)
        if self._asking[proof.uid] >= MOST_OF_ONE:
            raise Unavailable(f"{MOST_OF_ONE} requests of yours are being answered: ask after that")
        async with self._turn(proof.uid):
            return await asyncio.to_thread(self._ask, proof.uid, request)

    @contextlib.asynccontextmanager
    async def _turn(self, uid: int) -> AsyncIterator[None]:
        """Wait until a thread may be taken for one more request of a user."""
        self._asking[uid] += 1
        turn = self._turns.setdefault(uid, asyncio.Semaphore(THREADS_OF_ONE))
        try:
            async with turn:
                yield
        finally:
            self._asking[uid] -= 1
            if not self._asking[uid]:
                del self._asking[uid], self._turns[uid]

    def _ask(self, uid: int, request: Message) -> Message:
        """In a thread of its own: names of users and the batch system may take their time."""
        answer = self._verbs.answer(request.word, request.fields, self._who(uid))
        return ok(json=to_json(answer))


def _checked(request: Message, challenge: str) -> Message:
    """Return a request that was made for this connection, without what proves it.

    Raises Unavailable.
    """
    fields = dict(request.fields)
    said = fields.pop(CHALLENGE, None)
    if said is None:
        raise Unavailable(
            "this pliant is of an earlier release than pliantd: upgrade it on this host"
        )
    if said != challenge:
        raise Unavailable("this munge credential was made for another connection")
    return replace(request, fields=fields)
