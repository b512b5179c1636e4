"""The same as :mod:`pliant.daemon.lines`, in a thread of its own: for the door slurmctld waits at.

slurmctld holds its locks while it waits for an answer, and asyncio's streams take half a
millisecond for a connection; here it is four system calls, and as little else as can be: between
two submissions what is not used leaves the CPU's caches, so that each step costs ten times what it
does in a loop. The rules are the same: a connection above the cap is closed at once, a line above
the limit and a slow one are dropped with their connection, and so is an answer that is not taken at
once.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from pliant.daemon.lines import Limits

log = logging.getLogger("pliant.doors")

Answer = Callable[[bytes, socket.socket], bytes]
"""From a request line to an answer line, both without the newline; b"" closes unanswered."""

_CHUNK = 65536


@dataclass(slots=True)
class _Connection:
    peer: socket.socket
    deadline_s: float  # for the line that is awaited
    lines_left: int
    unread: bytearray = field(default_factory=bytearray)
    watched: bool = False


class QuickServer:
    """Serve connections with one Answer, within Limits."""

    def __init__(
        self,
        name: str,
        answer: Answer,
        limits: Limits,
        monotonic: Callable[[], float],
        afterwards: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve with ``answer``; ``afterwards`` is called when an answer is on its way.

        Both are called in the thread. ``name`` stands in the log.
        """
        self._name, self._answer, self._limits, self._monotonic = name, answer, limits, monotonic
        self._afterwards = afterwards
        self._open: dict[int, _Connection] = {}
        self._epoll = select.epoll()
        self._ending, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.turned_away = 0
        """Connections closed because too many were open."""

    def start(self, door: socket.socket) -> None:
        """Serve at a listening socket that does not block, until closed."""
        self._door = door
        for one in (door, self._ending):
            self._epoll.register(one.fileno(), select.EPOLLIN)
        self._thread.start()

    def close(self) -> None:
        """End the thread and all connections, the door too."""
        self._end.send(b".")
        self._thread.join()

    # In the thread

    def _run(self) -> None:
        door, ending = self._door.fileno(), self._ending.fileno()
        while True:
            for number, _ in self._epoll.poll(self._pause_s()):
                if number == ending:
                    self._close_all()
                    return
                try:
                    if number == door:
                        self._accept()
                    else:
                        self._serve(self._open[number])
                except OSError as error:  # no more descriptors, say
                    log.warning("%s: %s", self._name, error)
            if self._open:
                self._drop_slow()

    def _accept(self) -> None:
        try:
            peer, _ = self._door.accept()
        except (BlockingIOError, ConnectionError):
            return
        if len(self._open) >= self._limits.connections:
            self.turned_away += 1
            peer.close()
            return
        until_s = self._monotonic() + self._limits.line_s
        connection = self._open[peer.fileno()] = _Connection(peer, until_s, self._limits.lines)
        self._serve(connection)  # its line is often there already

    def _serve(self, connection: _Connection) -> None:
        try:
            stays = self._read(connection)
        except OSError:
            stays = False
        except Exception:
            log.exception("%s: a request failed", self._name)
            stays = False
        if not stays:
            self._close(connection)
        elif not connection.watched:
            self._epoll.register(connection.peer.fileno(), select.EPOLLIN)
            connection.watched = True

    def _read(self, connection: _Connection) -> bool:
        """Read what is there and answer whole lines; say whether the connection stays."""
        try:
            got = connection.peer.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        if not got:
            return False
        unread = connection.unread
        unread += got
        while (end := unread.find(b"\n")) >= 0:
            if end > self._limits.line_bytes:
                return False
            line = bytes(unread[:end])
            del unread[: end + 1]
            if not self._reply(connection, line):
                return False
        return len(unread) <= self._limits.line_bytes

    def _reply(self, connection: _Connection, line: bytes) -> bool:
        answer = self._answer(line, connection.peer)
        if not answer:
            return False
        connection.lines_left -= 1
        connection.deadline_s = self._monotonic() + self._limits.line_s
        taken = connection.peer.send(answer + b"\n", socket.MSG_DONTWAIT)
        self._afterwards()
        return taken == len(answer) + 1 and connection.lines_left > 0

    def _pause_s(self) -> float | None:
        if not self._open:
            return None
        first_s = min(connection.deadline_s for connection in self._open.values())
        return max(0.0, first_s - self._monotonic())

    def _drop_slow(self) -> None:
        now_s = self._monotonic()
        for connection in [one for one in self._open.values() if one.deadline_s <= now_s]:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        del self._open[connection.peer.fileno()]
        connection.peer.close()  # and is watched no more

    def _close_all(self) -> None:
        for connection in list(self._open.values()):
            self._close(connection)
        for one in (self._door, self._ending, self._end, self._epoll):
            one.close()
