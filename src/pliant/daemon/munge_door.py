"""Door 2, TCP: munge proves who asks; what, to whom and in which words is the verbs' affair.

Each connection has a challenge of its own, which the credential must carry: what somebody recorded
counts on no other connection, neither here nor at the pliantd of another controller. A credential
that pliantd's user alone can read may carry a key, which seals the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from pliant.daemon.answers import to_json
from pliant.daemon.lines import Answer, GivingWay, Limits
from pliant.daemon.monitors import Monitors
from pliant.daemon.munge import BadCredential, Munge, Proof
from pliant.daemon.rights import Asker
from pliant.daemon.run_verbs import VERBS, WATCH, RunVerbs
from pliant.daemon.verbs import Verbs
from pliant.daemon.watching import Watching, news
from pliant.errors import PliantError, Unavailable
from pliant.wire import (
    CHALLENGE,
    HELLO,
    SEAL_KEY,
    STANDS_BY,
    Message,
    decode,
    encode,
    no,
    ok,
    sealed,
)
from pliant.wire.monitor import REPORT
from pliant.wire.runs import WATCH_S

log = logging.getLogger("pliant.doors")

PREFIX = b"munge "

MOST_OF_ONE = 16
"""How many requests of one user are taken at once; what is above is refused."""
THREADS_OF_ONE = 2
"""How many of them have a thread at once: some wait seconds for a new look, and asyncio has four
threads more than there are cores, for all users."""

FEW = 2
"""So many requests of malleable jobs' programs are looked at at once."""


@dataclass(frozen=True, slots=True)
class Watches:
    """What answers the programs of malleable jobs, and where their watches wait."""

    verbs: RunVerbs
    watching: Watching


class MungeDoor:
    """Answers ``hello``, and then one ``munge <credential>`` line."""

    # Half of the open files that pliantd's unit allows: each malleable job that runs watches here.
    # So many lines that never end take 128 MiB. A request has some hundred bytes.
    limits = Limits(connections=4096, line_s=10.0, lines=2, line_bytes=32 * 1024)

    def __init__(
        self,
        munge: Munge,
        verbs: Verbs,
        who: Callable[[int], Asker],
        watches: Watches | None = None,
        monitors: Monitors | None = None,
    ) -> None:
        """``who`` tells what a uid may do; ``watches`` answers the programs of malleable jobs."""
        self._munge, self._verbs, self._who, self._watches = munge, verbs, who, watches
        self._monitors = monitors
        self.refused: Counter[str] = Counter()
        """Credentials that proved nothing since the start, by kind."""
        self._asking: Counter[int] = Counter()  # requests being answered, by uid
        self._few = asyncio.Semaphore(FEW)
        self._turns: dict[int, asyncio.Semaphore] = {}  # of who is asking

    def begin(self) -> Answer:
        """Return what answers on one connection; what is wrong is said in one line."""
        challenge = secrets.token_hex(16)

        async def answer(line: bytes, giving_way: GivingWay) -> bytes:
            if line == HELLO.encode():
                return encode(ok(**{CHALLENGE: challenge}))
            return await self._say(line, challenge, giving_way)

        return answer

    async def _say(self, line: bytes, challenge: str, giving_way: GivingWay) -> bytes:
        key = ""
        try:
            if not line.startswith(PREFIX):
                raise Unavailable("munge <credential> is expected")
            proof = await self._munge.prove(line[len(PREFIX) :].strip())
            request = decode(proof.payload)
            key = request.fields.get(SEAL_KEY, "")
            answer = await self._answer(proof, _checked(request, challenge), giving_way)
        except BadCredential as error:
            self.refused[error.kind] += 1
            answer = no(str(error))
        except PliantError as error:
            answer = no(str(error))
        except Exception as error:
            log.exception("a request failed: this is Pliant's own mistake")
            answer = no(f"a mistake of Pliant's own: {type(error).__name__}")
        answer = self._with_standing(answer)
        return encode(sealed(answer, key) if key else answer)

    def _with_standing(self, answer: Message) -> Message:
        """Say that another host acts, so that the client asks there."""
        why = self._verbs.stands_by()
        return replace(answer, fields={**answer.fields, STANDS_BY: why}) if why else answer

    async def _answer(self, proof: Proof, request: Message, giving_way: GivingWay) -> Message:
        uid = proof.uid
        if self._monitors is not None and request.word == REPORT:
            return ok(json=to_json(await self._monitors.answer(request.fields, proof)))
        if self._watches is None or request.word not in VERBS:
            return await self._in_turn(uid, request)
        if request.word != WATCH:
            return await self._of_a_run(uid, request)
        with self._watches.watching.of(self._watches.verbs.id_of(request.fields)) as changed:
            answer = await self._of_a_run(uid, request)
            if self._watches.verbs.is_news(request.fields):
                return answer
            with giving_way() as gone:
                if await news(changed, gone(), WATCH_S):
                    self._watches.verbs.left(request.fields)
                    raise Unavailable("who asked has left")
        return await self._of_a_run(uid, request)

    async def _of_a_run(self, uid: int, request: Message) -> Message:
        """One user may have thousands of jobs: these queue, beside all other requests."""
        async with self._few:
            return await asyncio.to_thread(self._ask, uid, request)

    async def _in_turn(self, uid: int, request: Message) -> Message:
        if self._asking[uid] >= MOST_OF_ONE:
            raise Unavailable(f"{MOST_OF_ONE} requests of yours are being answered: ask after that")
        async with self._turn(uid):
            return await asyncio.to_thread(self._ask, uid, request)

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
        word, fields, who = request.word, request.fields, self._who(uid)
        if self._watches is not None and word in VERBS:
            return ok(json=to_json(self._watches.verbs.answer(word, fields, who)))
        return ok(json=to_json(self._verbs.answer(word, fields, who)))


def _checked(request: Message, challenge: str) -> Message:
    """Return a request that was made for this connection, without what proves it.

    Raises BadCredential.
    """
    fields = dict(request.fields)
    said = fields.pop(CHALLENGE, None)
    fields.pop(SEAL_KEY, None)
    if said is None:
        raise BadCredential(
            "for no connection",
            "this pliant is of an earlier release than pliantd: upgrade it on this host",
        )
    if said != challenge:
        raise BadCredential(
            "for another connection", "this munge credential was made for another connection"
        )
    return replace(request, fields=fields)
