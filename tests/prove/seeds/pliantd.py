"""The shipped pliantd: its loop, its store on a disk, its hand-overs; and the ways to it.

Nothing of it is replaced but what it stands on: time, threads, sockets, munge and the commands.
"""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pliant.batch.slurm import Slurm
from pliant.daemon.config import DaemonConfig, load
from pliant.daemon.doors import Doors
from pliant.daemon.filter_door import FilterDoor
from pliant.daemon.libmunge import Proof
from pliant.daemon.lines import LineServer
from pliant.daemon.main import _surroundings
from pliant.daemon.server import Daemon
from pliant.errors import Unavailable
from pliant.handover import HandOver, Step
from pliant.model import Job
from pliant.wire import Message, decode
from prove.seeds.loops import Loop, Time

CONF = """\
[daemon]
socket = "{folder}/pliantd.sock"
state_dir = "{state}"
listen = "127.0.0.1:6830"
policy = "{policy}"
cycle_s = {cycle_s}
admins = ["root"]

[policy]
{options}

[partitions]
default = "{mode}"

[trial]
max_jobs = "unlimited"
"""


class Inline(Executor):
    """Threads that do at once what they are given."""

    def __init__(self, _many: int) -> None:
        """Be as many as are wanted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class Doorway(Doors):
    """Both doors, without a socket."""

    def __init__(self, config: DaemonConfig, first: FilterDoor, second: LineServer) -> None:
        super().__init__(config, first, second)
        self.first, self.second, self.is_open = first, second, False

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False


class Slurmctld:
    """Who asks at the filter's door, as a socket tells it: root."""

    def getsockopt(self, *_which: int) -> bytes:
        return struct.pack("3i", 1, 0, 0)


class ServersEnd:
    """Pliantd's end of a connection, as asyncio's streams have it."""

    def __init__(self, line: Line) -> None:
        self._line, self._is_closing = line, False
        self.transport = self

    def write(self, data: bytes) -> None:
        self._line.hears(data[:-1])

    async def drain(self) -> None:
        """Nothing waits."""

    def is_closing(self) -> bool:
        return self._is_closing

    def abort(self) -> None:
        self._is_closing = True
        self._line.lost()

    close = abort

    def get_extra_info(self, _name: str) -> None:
        return None


class Line:
    """A program's connection to the second door."""

    def __init__(self, server: Loop, client: Loop, second: LineServer) -> None:
        self._client = client
        self._reader = asyncio.StreamReader(limit=second.most_bytes, loop=server.as_asyncio)
        self._heard: asyncio.Future[bytes] = client.create_future()
        self._is_lost = False
        server.call_soon(self._served, server, second)

    def _served(self, server: Loop, second: LineServer) -> None:
        server.create_task(second(self._reader, cast("Any", ServersEnd(self))))

    async def say(self, line: bytes) -> bytes:
        """Say a line, and return the answer's. Raises Unavailable."""
        if self._is_lost:
            raise Unavailable("pliantd closed the connection")
        self._heard = self._client.create_future()
        self._reader.feed_data(line + b"\n")
        return await self._heard

    def hears(self, line: bytes) -> None:
        """Take an answer."""
        if not self._heard.done():
            self._heard.set_result(line)

    def lost(self) -> None:
        """Notice that nobody is at the other end any more."""
        self._is_lost = True
        if not self._heard.done():
            self._heard.set_exception(Unavailable("pliantd closed the connection"))

    def hang_up(self) -> None:
        """End it."""
        if not self._is_lost:
            self._is_lost = True
            self._reader.feed_eof()


def proof(credential: bytes, _socket: str) -> Proof:
    """Tell whose a credential is that :func:`credential_of` made."""
    uid, _, payload = base64.b64decode(credential[6:-1]).partition(b" ")
    return Proof(int(uid), payload)


def credential_of(uid: int, payload: bytes) -> bytes:
    """Return what munge would make of it."""
    return b"MUNGE:" + base64.b64encode(b"%d %b" % (uid, payload)) + b":"


class Halting(Slurm):
    """As it ships, but that pliantd may stand still between its look at a job and its step."""

    halts: Callable[[str, str], None] = staticmethod(lambda _step, _job: None)

    def step(self, step: Step, over: HandOver, job: Job) -> None:
        self.halts(step.do, over.job)
        super().step(step, over, job)


class Process:
    """One pliantd, from its start to its end; ``commands``: what it runs them by."""

    def __init__(self, time: Time, conf: Path, slurm: Slurm, clock: Callable[[], float]) -> None:
        self.loop, self.lines = Loop(time), list[Line]()
        self.door: Doorway | None = None
        self._ran: asyncio.Task[None] | None = None
        config = load(conf)
        around = replace(
            _surroundings(slurm, config),
            cluster="",
            clock=clock,
            monotonic=lambda: time.now_s,
            doors=self._doors,
            prove=proof,
        )
        self.daemon = Daemon(conf, config, around)
        self.state = Path(config.daemon.state_dir)
        self.loop.call_soon(self._begin)

    def _doors(self, config: DaemonConfig, first: FilterDoor, second: LineServer) -> Doorway:
        self.door = Doorway(config, first, second)
        return self.door

    def _begin(self) -> None:
        self._ran = self.loop.create_task(self.daemon.run())

    @property
    def has_ended(self) -> bool:
        """Whether it has come to its end by itself."""
        return self._ran is not None and self._ran.done()

    @property
    def listens(self) -> bool:
        """Whether its doors are open."""
        return self.door is not None and self.door.is_open and not self.loop.is_dead

    def connect(self, client: Loop) -> Line:
        """Connect to the second door. Raises Unavailable."""
        if self.door is None or not self.listens:
            raise Unavailable("pliantd: connection refused")
        line = Line(self.loop, client, self.door.second)
        self.lines = [one for one in self.lines if not one._is_lost]
        self.lines.append(line)
        return line

    def submit(self, request: bytes) -> Message | None:
        """Ask at the filter's door; None where nobody answers."""
        if self.door is None or not self.listens or self.loop.stands_still:
            return None
        answer = self.door.first.answer(request, cast("Any", Slurmctld()))
        self.door.first.afterwards()
        return decode(answer) if answer else None

    def dies(self) -> None:
        """Do nothing more from here on, whatever was under way."""
        self.loop.is_dead = True
        for line in self.lines:
            line.lost()
